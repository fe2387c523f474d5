"""Coverage by mode and format: what a run exercises, and the status of every mode."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from unit_runner import push

from bhemu.cli import isa, main
from bhemu.debug import trace
from bhemu.errors import Undefined
from bhemu.machine.tile import Tile
from bhemu.tensix.insn import instructions

ROOT = Path(__file__).parents[2]
ADD1 = ROOT / "elfs" / "add1"


def used(tile: Tile, cover: trace.Coverage, *words: tuple[str, dict[str, int]]) -> list[str]:
    """Modes of words pushed to thread 1, as text with their counts."""
    for mnemonic, fields in words:
        push(tile, 1, mnemonic, **fields)
    tile.run()
    return [
        f"{row['mnemonic']} {row['count']} {row['fields']} {row['formats']}"
        for row in trace.rows([cover.notes])
    ]


def test_words_are_counted_by_the_value_of_their_mode_fields() -> None:
    tile = Tile()
    cover = trace.Coverage(tile)
    moved = {"instr_mod1": 2, "lreg_dest": 1}
    assert used(tile, cover, ("SFPMOV", {}), ("SFPMOV", moved), ("SFPMOV", {"lreg_dest": 3})) == [
        "SFPMOV 2 {'instr_mod1': 0} ",
        "SFPMOV 1 {'instr_mod1': 2} ",
    ]


def test_a_blocked_word_is_counted_once_and_a_refused_one_by_its_rule() -> None:
    tile = Tile()
    cover = trace.Coverage(tile)
    push(tile, 1, "SEMINIT", sem_sel=1, max_value=2)
    tile.run()
    push(tile, 1, "SEMWAIT", sem_sel=1, wait_sem_cond=1, stall_res=0x1FF)
    push(tile, 1, "SEMGET", sem_sel=1)
    push(tile, 0, "SEMPOST", sem_sel=1)
    tile.run()
    counts = {mode.mnemonic: count for mode, count in cover.notes.executed.items()}
    assert counts == {"SEMINIT": 1, "SEMWAIT": 1, "SEMGET": 1, "SEMPOST": 1}
    push(tile, 1, "ATGETM", mutex_index=1)
    with pytest.raises(Undefined):
        tile.run()
    (row,) = [row for row in trace.rows([cover.notes]) if row["rule"]]
    assert (row["mnemonic"], row["rule"], row["count"]) == ("ATGETM", "MUTEX-INDEX", 0)


def test_the_run_is_the_same_with_and_without() -> None:
    """Observed words run through Python, one by one; nothing else changes."""
    clocks = []
    for observed in (False, True):
        tile = Tile()
        if observed:
            trace.Coverage(tile)
        for i in range(20):
            push(tile, i % 3, "SFPLOADI", imm16=i, lreg_ind=i % 8)
        tile.run()
        clocks.append((tile.clock, tile.tensix.lreg.tobytes()))
    assert clocks[0] == clocks[1]


def test_a_program_on_the_command_line() -> None:
    """add1 unpacks, moves, adds and packs bf16, 16 PACR of four rows each."""
    result = CliRunner().invoke(main, ["isa", "--coverage", str(ADD1), "--json"])
    report = json.loads(result.stdout)
    assert report["ended"] == "until"
    rows = {(r["mnemonic"], r["formats"]): r["count"] for r in report["rows"]}
    assert rows["PACR", "bf16 -> bf16 Dst16"] == 16
    assert rows["UNPACR", "bf16 -> bf16"] == 4
    assert rows["MOVA2D", "bf16 x bf16 Dst16"] == 8
    assert rows["SFPLOAD", "Dst16"] == rows["SFPSTORE", "Dst16"] == 32


def test_a_case_and_one_instruction() -> None:
    case = ROOT / "tests" / "golden" / "sem_ring.npz"
    result = CliRunner().invoke(main, ["isa", "sempost", "--coverage", str(case)])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split()[0] == "SEMPOST"
    assert len(result.stdout.splitlines()) == 1
    assert "the run ended: until" in result.stderr


def test_a_test_suite_writes_a_file(tmp_path: Path) -> None:
    """Every process adds a line; the rows of one mode are added up."""
    path = tmp_path / "suite.json"
    text = (
        "from bhemu.machine.tile import Tile\nfrom bhemu.tensix.insn import assemble\n"
        "for i in range(2):\n t = Tile()\n"
        " t.core['brisc'].write32(0xFFE40000, assemble('SFPMOV', instr_mod1=1))\n t.run()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), trace.VARIABLE: str(path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", text], env=environment, check=True)
    result = CliRunner().invoke(main, ["isa", "--coverage", str(path)])
    assert result.stdout.split() == ["SFPMOV", "4", "instr_mod1=1"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        ("no json", "no coverage"),
        ("[1]", "no coverage"),
    ],
)
def test_a_file_that_holds_no_coverage_is_named(
    tmp_path: Path, content: str | None, why: str
) -> None:
    path = tmp_path / "suite.json"
    if content is not None:
        path.write_text(content)
    result = CliRunner().invoke(main, ["isa", "--coverage", str(path)])
    assert result.exit_code == 2
    assert f"{path}: {why}" in result.stderr


def test_modes_are_shown_where_they_differ(tmp_path: Path, monkeypatch) -> None:
    one = {"fields": {"instr_mod1": 0}, "formats": "", "status": "golden"}
    two = {"fields": {"instr_mod1": 4}, "formats": "", "status": "refused", "reason": "X"}
    path = tmp_path / "modes.json"
    path.write_text(json.dumps({"SFPMOV": [one, two], "SFPABS": [one, one]}))
    monkeypatch.setattr(isa, "_MODES", path)
    classes = {cls.name: cls for cls in instructions().values()}
    assert isa.row(classes["SFPMOV"])["modes"] == [one, two]
    assert isa.row(classes["SFPABS"])["modes"] == isa.row(classes["SFPMAD"])["modes"] == []


def test_every_mode_is_probed() -> None:
    """SHIFTDMAREG has two operations; the packer turns bf16 into bfp8 but not into int8."""
    command = [sys.executable, str(ROOT / "scripts" / "probe_modes.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    names = {row["mnemonic"] for row in rows}
    assert len(names) > 100
    pack = {row["formats"]: row["rule"] for row in rows if row["mnemonic"] == "PACR"}
    assert pack["bf16 -> bfp8 Dst16"] == ""
    assert pack["bf16 -> int8 Dst16"] == "PACR-FORMATS"
