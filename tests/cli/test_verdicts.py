"""One JSON document per command, with one of six verdicts; what each stands for."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bhemu import errors
from bhemu.cli import output as verdicts
from bhemu.riscv.assembly import A0, A1, A2, EBREAK, PARK, ZERO, addi, bne, code, jal, lui, lw, sw
from bhemu.why.findings import CLASSES

ROOT = Path(__file__).parents[2]
ADD1, CYCLE = ROOT / "elfs/add1", ROOT / "elfs/hang_cycle"
MODELS = ROOT / "docs/models.md"
READER = 0x4000  # where the second core's code lies, from the first one's

Ask = Callable[..., tuple[int, dict[str, object]]]


def two_cores(folder: Path) -> Path:
    """trisc0 writes a word, trisc1 reads it after a while: the result is right, by luck."""
    writer = code(lui(A0, 0x20000), addi(A1, ZERO, 42), sw(A1, A0), PARK)
    wait = [addi(A2, ZERO, 100), addi(A2, A2, -1), bne(A2, ZERO, -4)]
    reader = code(*wait, lui(A0, 0x20000), lw(A1, A0), lui(A0, 0x30000), sw(A1, A0), PARK)
    image = bytes(0x10000) + writer.ljust(READER, b"\0") + reader
    (folder / "l1.bin").write_bytes(image)
    np.save(folder / "out.npy", np.array([[42]], np.int32))
    path = folder / "PROGRAM.toml"
    path.write_text(
        'bhemu = 1\nname = "two"\nkind = "image"\nimage = { file = "l1.bin" }\n'
        f"[cores]\ntrisc0 = {{ pc = 0x10000 }}\ntrisc1 = {{ pc = {0x10000 + READER} }}\n"
        '[[output]]\nname = "out"\nat = 0x30000\ndtype = "int32"\nlayout = "raw"\n'
        'shape = [1, 1]\nexpect = "out.npy"\n[run]\nuntil = "idle"\n'
    )
    return path


def test_every_exit_code_and_class_of_finding_has_a_verdict() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert verdicts.BY_EXIT_CODE.keys() == codes
    assert verdicts.BY_FINDING.keys() == CLASSES.keys()
    used = {*verdicts.BY_EXIT_CODE.values(), *verdicts.BY_FINDING.values()}
    page = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    assert used == {*re.findall(r"^\| `([a-z ]+)` \| [a-z]+ ", page, re.MULTILINE)}


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    for exit_code, verdict in verdicts.BY_EXIT_CODE.items():
        assert f"| exit code {exit_code} " in page
        row = next(line for line in page.splitlines() if f"| exit code {exit_code} " in line)
        assert row.endswith(f"| `{verdict}` |")
    for check, verdict in verdicts.BY_FINDING.items():
        row = next(line for line in page.splitlines() if f"| finding `{check}`" in line)
        assert row.endswith(f"| `{verdict}` |")


COMMANDS: dict[str, tuple[object, ...]] = {
    "run": ("run", ADD1),
    "why": ("why", ADD1),
    "why of a place": ("why", ADD1, "y[3,5]"),
    "profile": ("profile", ADD1),
    "explain": ("explain", "SEMWAIT"),
    "explain all": ("explain",),
    "explain code": ("explain", ADD1 / "trisc1.elf", "--symbol", "main"),
    "explain coverage": ("explain", "--coverage", ADD1),
    "dump": ("dump", ADD1, "sem"),
    "check": ("check", ADD1),
    "check init": ("check", "--tool", "init", ADD1),
    "step": ("step", ADD1, "-x", "break main trisc1; continue; sem"),
    "numerics": ("numerics", ADD1),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_one_document_and_says_ok(name: str, report: Ask) -> None:
    exit_code, found = report(*COMMANDS[name])
    assert (exit_code, found["exit_code"], found["verdict"]) == (0, 0, "ok")
    assert len(found) > 2


def test_commands_that_write_files_print_a_document_too(report: Ask, tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    exit_code, found = report("report", ADD1, "-o", page)
    assert (exit_code, found["verdict"], found["report"]) == (0, "ok", str(page))
    exit_code, found = report("trace", ADD1, "--perfetto", trace)
    assert (exit_code, found["verdict"]) == (0, "ok")
    assert found["events"] == len(json.loads(trace.read_text())["traceEvents"])


@pytest.mark.parametrize("command", ["run", "why", "profile", "dump", "report", "numerics"])
def test_a_hang_is_a_bug_of_the_kernel(command: str, report: Ask, tmp_path: Path) -> None:
    more = ("-o", tmp_path / "page.html") if command == "report" else ()
    if command == "numerics":
        np.save(tmp_path / "x.npy", np.zeros((1, 1), np.int32))
        more = ("--expect", f"{tmp_path / 'x.npy'}@0x30000:int32:raw:1x1")
    exit_code, found = report(command, CYCLE, *more)
    assert exit_code == (1 if command in ("why", "report") else 3)
    assert (found["exit_code"], found["verdict"]) == (exit_code, "kernel bug")


def test_a_script_of_steps_tells_a_hang_with_what_it_printed(report: Ask) -> None:
    exit_code, found = report("step", CYCLE, "-x", "sem; continue")
    assert (exit_code, found["verdict"], found["rule"]) == (3, "kernel bug", "DEADLOCK")
    assert [one["command"] for one in found["commands"]] == ["sem", "continue"]
    assert found["commands"][0]["lines"][0].startswith("sem0 0/0")
    exit_code, found = report("step", CYCLE, "-x", "sem; nonsense; sem")
    assert (exit_code, found["verdict"]) == (2, "bad input")
    assert [len(one["lines"]) for one in found["commands"]] == [2, 0]


@pytest.mark.parametrize("command", ["run", "why", "profile", "dump"])
def test_an_assert_of_a_core_is_a_bug_of_the_kernel(command: str, write, report: Ask) -> None:
    exit_code, found = report(command, write(addi(A0, ZERO, 1), EBREAK))
    assert exit_code == (1 if command == "why" else 6)
    assert found["verdict"] == "kernel bug"


def test_an_output_that_differs_is_a_bug_of_the_kernel(report: Ask, tmp_path: Path) -> None:
    shutil.copytree(ADD1, tmp_path / "add1")
    expected = tmp_path / "add1/expected.npy"
    np.save(expected, np.zeros_like(np.load(expected)))
    for command in ("run", "why"):
        exit_code, found = report(command, tmp_path / "add1")
        assert (exit_code, found["verdict"]) == (1, "kernel bug")


def test_what_is_not_modelled_is_no_bug_of_the_kernel(write, report: Ask) -> None:
    from bhemu.tensix.insn import instructions

    refused = next(cls for cls in instructions().values() if cls.refused)
    word = refused.opcode << 24
    rotated = (word << 2 | word >> 30) & 0xFFFFFFFF  # .ttinsn
    for command in ("run", "why", "dump", "profile"):
        exit_code, found = report(command, write(rotated, PARK))
        assert exit_code == (1 if command == "why" else 4)
        assert found["verdict"] == "not modelled"


def test_an_order_that_nothing_fixes_is_a_race(report: Ask, tmp_path: Path) -> None:
    path = two_cores(tmp_path)
    assert report("run", path)[1]["verdict"] == "ok"
    for arguments in (
        ("why", path),
        ("check", "--tool", "races", path),
        ("run", path, "--check", "races"),
    ):
        exit_code, found = report(*arguments)
        assert (exit_code, found["verdict"]) == (1, "race")
        assert found["findings"][0]["check"] == "order"


@pytest.mark.parametrize("command", ["run", "why", "profile", "dump", "check", "step", "build"])
def test_a_program_that_cannot_be_read_is_bad_input(
    command: str, report: Ask, tmp_path: Path
) -> None:
    (tmp_path / "PROGRAM.toml").write_text("bhemu = 1\nname = \n")
    more = ("-x", "step") if command == "step" else ()
    exit_code, found = report(command, tmp_path, *more)
    assert (exit_code, found["exit_code"], found["verdict"]) == (2, 2, "bad input")
    assert (found["error"], found["category"]) == ("InputError", "InputError")


def test_a_wrong_flag_and_an_unknown_name_are_bad_input(report: Ask) -> None:
    assert report("run", ADD1, "--nonsense")[1]["verdict"] == "bad input"
    assert report("explain", "NONSENSE")[1]["verdict"] == "bad input"
    assert report("why", ADD1, "nonsense[0]")[1]["verdict"] == "bad input"


def test_a_limit_is_no_bug_of_the_kernel(write, report: Ask) -> None:
    work = [lui(A0, 0x8000), addi(A1, A1, 1), sw(A1, A0), jal(ZERO, -8)]
    for command in ("run", "why", "dump", "profile"):
        exit_code, found = report(command, write(*work), "--limit", 5002)
        assert exit_code == (1 if command == "why" else 7)
        assert found["verdict"] == "limit"


def test_a_build_says_what_was_built_and_what_the_compiler_said(report: Ask, bhemu, tmp_path):
    pytest.importorskip("ziglang", reason="the extra build is not installed")
    folder = tmp_path / "relu"
    assert bhemu("new", folder, "--kernel").exit_code == 0
    exit_code, found = report("build", folder)
    assert (exit_code, found["verdict"]) == (0, "ok")
    assert {(one["elf"], one["state"]) for one in found["elfs"]} >= {("build/math.elf", "built")}
    (folder / "math.c").write_text("int main(void) { return nonsense; }\n")
    exit_code, found = report("build", folder)
    assert (exit_code, found["verdict"]) == (2, "bad input")
    said = {one["elf"]: one["said"] for one in found["elfs"] if one["state"] == "failed"}
    assert "nonsense" in said["build/math.elf"]


def test_a_finding_outweighs_a_limit_that_cut_it_off_and_a_race_what_it_led_to() -> None:
    def finding(check: str, severity: str = "error") -> dict[str, str]:
        return {"check": check, "severity": severity}

    assert verdicts.verdict_of(7, [finding("waiting")]) == "kernel bug"
    assert verdicts.verdict_of(3, [finding("waiting"), finding("order")]) == "race"
    assert verdicts.verdict_of(1, [finding("origin"), finding("order", "note")]) == "kernel bug"
    assert verdicts.verdict_of(0, [finding("order", "note")]) == "race"
    assert verdicts.verdict_of(4, [finding("order")]) == "not modelled"
    assert verdicts.worst_verdict([0, 4, 3]) == "kernel bug"
    assert verdicts.worst_verdict([0, 4, 7]) == "not modelled"
    assert verdicts.worst_verdict([0, 0]) == "ok"
