"""`bhemu why`: findings with their culprit, exit codes, JSON."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main
from bhemu.why.findings import Finding

ROOT = Path(package.__file__).parent.parent


def why(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["why", "-q", *arguments])
    return done.exit_code, done.output


def test_nothing_is_wrong() -> None:
    code, shown = why(str(ROOT / "elfs" / "add1"))
    assert code == 0
    assert "nothing is wrong" in shown
    code, shown = why(str(ROOT / "elfs" / "add1"), "--json")
    assert (code, json.loads(shown)) == (
        0,
        {"verdict": "ok", "findings": [], "notes": [], "exit_code": 0},
    )


def test_what_was_not_checked_is_said_where_nothing_is_compiled() -> None:
    """The checks of order need an observed run, which interpreted takes too long."""
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "why", "-q", str(ROOT / "elfs" / "add1")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the run ended as it should, and no output differs; the order of")
    assert "pip install 'bhemu[compile]'" in done.stdout


def test_a_wrong_element_and_its_culprit(tmp_path) -> None:
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs" / "add1", folder)
    expected = np.load(folder / "expected.npy")
    expected[3, 5] += 1
    np.save(folder / "expected.npy", expected)
    code, shown = why(str(folder), "--json")
    assert code == 1
    (finding,) = json.loads(shown)["findings"]
    assert finding["check"] == "origin"
    assert finding["victim"] == {"output": "y", "index": [3, 5]}
    culprit = finding["culprit"]
    assert (culprit["core"], culprit["thread"], culprit["file"]) == ("trisc1", 1, "math.c")
    assert culprit["instant"] > 0
    assert any("UNPACR" in line for line in finding["evidence"])
    code, shown = why(str(folder))
    assert code == 1
    assert shown.startswith("[origin] y: 1 of 1024 elements differ")


_KEYS = "tile core thread pc function file line inlined instant word role".split()


def test_a_finding_has_every_key_whatever_is_known() -> None:
    found = Finding("cure", "error", "text", {"file": "PROGRAM.toml", "line": 3}, {}, ("a",), "")
    shown = found.as_dict()
    assert list(shown) == "check severity text culprit victim evidence advice".split()
    assert list(shown["culprit"]) == _KEYS
    assert shown["culprit"]["core"] == "" and shown["culprit"]["thread"] is None
    assert (shown["culprit"]["line"], shown["culprit"]["inlined"]) == (3, [])
    where = {"core": "brisc", "symbol": "main+0x24", "decoded": "lw"}
    shown = replace(found, culprit=where).as_dict()
    assert shown["culprit"]["function"] == "main" and {*_KEYS} < {*shown["culprit"]}


def test_a_hang_is_one_finding_and_its_root_the_headline() -> None:
    code, shown = why(str(ROOT / "elfs" / "hang_flag"), "--json")
    (found,) = json.loads(shown)["findings"]
    assert (code, found["check"], found["severity"]) == (1, "waiting", "error")
    assert found["text"].startswith(
        "livelock: brisc waits for L1 word 0x104 to become 0xd0e1 (it is 0), which trisc0"
    )
    assert found["text"].endswith("trisc0 is in reset: no core or host has released it")
    assert (found["culprit"]["core"], found["culprit"]["file"]) == ("brisc", "flag_brisc.c")


def test_a_cycle_of_waits_is_told_as_one_and_nothing_else_is() -> None:
    """Nor a change with which there would be none."""
    (found,) = json.loads(why(str(ROOT / "elfs" / "hang_cycle"), "--json")[1])["findings"]
    assert found["check"] == "waiting"
    assert found["text"].startswith("deadlock: a cycle of waits: thread T1 needs semaphore 2")
    assert "only thread T2 can give it" in found["text"] and "thread T2 needs" in found["text"]
    assert (found["culprit"]["file"], found["culprit"]["line"]) == ("cycle_math.c", 11)
    assert sum(" waits for " in line for line in found["evidence"]) == 4


def test_a_place_has_exit_code_0_and_bad_input_2() -> None:
    code, shown = why(str(ROOT / "elfs" / "add1"), "sem:1", "--json")
    assert code == 0
    links = json.loads(shown)["links"]
    assert links[0]["where"]["decoded"].startswith("SEM")
    code, shown = why(str(ROOT / "elfs" / "add1"), "nonsense")
    assert code == 2
    assert "no symbol or register nonsense" in shown


@pytest.mark.parametrize("command", [["why"], ["run", "--check", "races,stack"]])
def test_checks_for_which_no_work_was_left_are_told_also_where_little_is(
    monkeypatch, command
) -> None:
    monkeypatch.setattr("bhemu.why.check.WORK", -1)
    arguments = [*command, "-q", "--json", str(ROOT / "elfs" / "add1")]
    done = CliRunner().invoke(main, arguments)
    assert json.loads(done.stdout)["findings"] == []
    assert "not asked, all that checks may do is done: bhemu run --check " in done.stderr
    assert "stack" in done.stderr and "races" in done.stderr


@pytest.mark.parametrize("place", ["y", "y[a,b]", "y[3,5"])
def test_the_name_of_an_output_alone_is_no_place(place: str) -> None:
    code, shown = why(str(ROOT / "elfs" / "add1"), place)
    assert (code, shown.splitlines()[0]) == (2, f"error: {place}: y is an output")
    assert shown.endswith("hint: y[0,0] is its first element\n")


def test_a_hang_without_a_limit_is_explained_in_a_bounded_time() -> None:
    """Its time-out is some 10^12 clock units after the last thing that happened."""
    flags = ["--livelock", "0", "--timeout", "0.05", "--engine", "compiled"]
    code, shown = why(str(ROOT / "elfs" / "hang_flag"), *flags)
    assert code == 1
    assert shown.startswith("[waiting] livelock: brisc waits for L1 word 0x104")


def test_checks_refuse_modelled_time_before_the_run() -> None:
    words = ["run", "-q", str(ROOT / "elfs" / "hang_flag"), "--check", "races", "--timing", "model"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert done.output.startswith("error: checks need a run without --late and --timing")
    assert "livelock" not in done.output


def test_a_tool_that_finds_nothing_says_that_the_run_has_failed() -> None:
    words = ["check", "-q", str(ROOT / "elfs" / "hang_flag"), "--tool", "races"]
    done = CliRunner().invoke(main, words)
    told = "races: nothing was found; the run itself has failed (bhemu why)\n"
    assert (done.exit_code, done.output) == (0, told)
