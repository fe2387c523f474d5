"""`bhemu dump`: saved states and programs, JSON, differences, exit codes."""

import json

import numpy as np
import pytest

from bhemu.cli import inspect
from bhemu.debug.decoded import View
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, EBREAK, PARK, ZERO, addi, tt
from bhemu.tensix.views import NAMED

WORDS = [addi(A0, ZERO, 5), tt("SEMINIT", sem_sel=2, init_value=1, max_value=3), PARK]


@pytest.fixture
def saved(write, bhemu, tmp_path):
    """The path of a state saved by `bhemu run`."""

    def save(*words, name: str = "state.npz"):
        assert bhemu("run", write(*words), "--save", tmp_path / name, "-q").exit_code in (0, 6)
        return tmp_path / name

    return save


def test_a_saved_state_by_name(saved, bhemu) -> None:
    result = bhemu("dump", saved(*WORDS), "sem", "cores")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["sem  semaphores: value and maximum", "  sem1  value 1  max 3"]
    assert "  trisc0   state parked  pc 0x00010008  retired 2" in lines


def test_without_names_everything_but_memory(saved, bhemu) -> None:
    lines = bhemu("dump", saved(*WORDS)).stdout.splitlines()
    titles = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert titles == [named.name for named in NAMED if not named.bulky]


def test_a_program_is_run_to_its_end_first(write, bhemu) -> None:
    result = bhemu("dump", write(*WORDS), "sem", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "  sem1  value 1  max 3" in result.stdout.splitlines()


def test_a_program_that_fails_is_dumped_with_its_error_and_exit_code(write, bhemu) -> None:
    path = write(addi(A0, ZERO, 9), EBREAK)
    result = bhemu("dump", path, "regs")
    assert result.exit_code == 6
    assert "a0 00000009" in result.stdout
    assert "error: [EBREAK] " in result.stderr
    report = json.loads(bhemu("dump", path, "regs", "--json").stdout)
    assert (report["rule"], report["exit_code"]) == ("EBREAK", 6)
    assert report["state"]["regs"]["trisc0  x8 "]["a0"] == 9


def test_json_has_names_labels_and_cells(saved, bhemu) -> None:
    result = bhemu("dump", saved(*WORDS), "sem", "ALU_ACC_CTRL_Fp32_enabled", "--json")
    assert json.loads(result.stdout) == {
        "state": {
            "sem": {"sem1": {"value": 1, "max": 3}},
            "cfg": {"ALU_ACC_CTRL_Fp32_enabled": {"bank 0": 0, "bank 1": 0}},
        },
        "verdict": "ok",
        "exit_code": 0,
    }


def test_diff_shows_only_what_differs_and_exits_with_1(saved, bhemu) -> None:
    one = saved(*WORDS)
    other = saved(tt("SEMINIT", sem_sel=2, init_value=2, max_value=3), PARK, name="b.npz")
    result = bhemu("dump", one, "--diff", other, "sem", "gpr")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "sem  semaphores: value and maximum",
        "    sem1 value: 1 -> 2",
    ]
    same = bhemu("dump", one, "--diff", one)
    assert (same.exit_code, same.stdout) == (0, f"no difference to {one}\n")
    report = json.loads(bhemu("dump", one, "--diff", other, "sem", "--json").stdout)
    assert (len(report["differences"]), report["exit_code"]) == (2, 1)


def test_the_names_are_listed(bhemu) -> None:
    lines = bhemu("dump", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [named.name for named in NAMED]


def test_every_format_of_the_command_is_one_of_dst() -> None:
    from bhemu.debug.dump import select

    for fmt in inspect._FORMATS:
        rows = select(["dst"])[0].rows(Tile().snapshot(), View(fmt, every=True))
        assert next(rows).label.startswith(fmt)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "name a STATE.npz or a program"),
        (("none.npz",), "none.npz: no such file"),
        (("none.toml",), "none.toml: no such file"),
        (("text.npz",), "text.npz: not a saved state"),
        (("other.npz",), "other.npz: no array l1"),
        (("one.npy",), "one.npy: neither .npz nor .toml"),
        (("none.npz", "semm"), "no state is called 'semm'"),
        (("other.npz", "--limit", "5"), "--limit goes with a program"),
        (("other.npz", "--timeout", "5"), "--timeout goes with a program"),
    ],
)
def test_bad_input_is_exit_code_2(bhemu, tmp_path, monkeypatch, args, message) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.npz").write_text("not a zip file")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.save(tmp_path / "one.npy", np.zeros(3))
    result = bhemu("dump", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("dst:0-2000", "rows 0 to 1023"),
        ("l1:0x17fff0-0x180010", "bytes 0 to 1572863"),
        ("cfg:99999", "words 0 to 222"),
        ("lreg:99", "LRegs 0 to 15"),
        ("retired:5-9", "rows 0 to 4"),
    ],
)
def test_a_range_that_ends_behind_the_last_is_refused(saved, bhemu, name, there) -> None:
    result = bhemu("dump", saved(PARK), name)
    assert (result.exit_code, result.stdout) == (2, "") and f"there are {there}" in result.stderr


def test_a_state_of_another_layout_is_refused(saved, bhemu, tmp_path) -> None:
    with np.load(saved(*WORDS)) as archive:
        arrays = {**archive, "gpr": np.zeros((3, 32), np.uint32)}
    np.savez(tmp_path / "old.npz", **arrays)
    result = bhemu("dump", tmp_path / "old.npz")
    assert result.exit_code == 2
    assert "gpr is uint32 [3, 32], not uint32 [3, 64]" in result.stderr
