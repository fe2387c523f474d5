"""Commands on programs of many tiles: what they print, --tile, --delivery, --threads."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ADD1 = ROOT / "elfs" / "add1_chip"


def test_run_sums_over_the_tiles(bhemu) -> None:
    result = bhemu("run", ADD1)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "y  128x128 bf16  equal (16384 of 16384)"
    assert lines[1].startswith("add1_chip: end condition met, clock ")
    assert lines[1].endswith(", 4 tiles")
    assert any(line.startswith("  trisc1") and "4 running" in line for line in lines)
    assert not any(line.startswith("tile (") for line in lines)


def test_run_shows_the_tile_that_is_named(bhemu) -> None:
    result = bhemu("run", ADD1, "--tile", "2,3", "--delivery", "late", "--threads", "2")
    assert result.exit_code == 0, result.stderr
    assert "\ntile (2,3)\n  brisc " in result.stdout


def test_json_has_every_tile(bhemu) -> None:
    report = json.loads(bhemu("run", ADD1, "--json").stdout)
    assert report["exit_code"] == 0
    assert list(report["tiles"]) == ["1,2", "2,2", "1,3", "2,3"]
    assert report["tiles"]["2,3"]["tensix"]["T1"] > 0
    assert report["outputs"][0]["equal"] is True


def test_a_limit_names_the_tile_that_is_late(bhemu) -> None:
    result = bhemu("run", ADD1, "--limit", "2000")
    assert result.exit_code == 7
    assert "the clock limit of 2000 was reached before the go message at 0x370 of tile (1,2)" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((ADD1, "--tile", "3,3"), "--tile 3,3: the program has nothing there"),
        ((ADD1, "--tile", "8,3"), "there is no Tensix tile in column 8"),
        ((ADD1, "--tile", "1-2,3"), "stands for 2 tiles, one is shown"),
        ((ROOT / "elfs" / "add1", "--tile", "3,3"), "--tile 3,3: the program has nothing there"),
        ((ROOT / "elfs" / "add1", "--threads", "2"), "--threads goes with a program of a chip"),
    ],
)
def test_bad_tiles_are_exit_code_2(bhemu, args, message) -> None:
    result = bhemu("run", *args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_program_of_one_tile_has_a_tile_too(bhemu) -> None:
    add1 = ROOT / "elfs" / "add1"
    assert bhemu("run", add1, "--tile", "1,2", "-q").exit_code == 0


def test_trace_is_of_one_tile(bhemu) -> None:
    result = bhemu("trace", ADD1, "--tile", "2,2", "--thread", "1", "--limit-words", "3")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert "SEMINIT sem_sel=0x2 max_value=0x2" in lines[0]
    assert "math.c" in lines[0]


def test_trace_to_the_end_has_all_words(bhemu) -> None:
    result = bhemu("trace", ADD1, "--tile", "2,2", "--json")
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    words = [row["mnemonic"] for row in rows if "mnemonic" in row]  # the others are stores
    assert words.count("SFPSTORE") == 4 * 32
    assert words.count("PACR") == 4 * 16


def test_dump_is_of_one_tile(bhemu) -> None:
    result = bhemu("dump", ADD1, "sem", "--tile", "2,3")
    assert result.exit_code == 0, result.stderr
    assert "sem1  value 0  max 2" in result.stdout


def test_the_state_of_a_chip_is_saved_and_shown_by_tile(bhemu, tmp_path: Path) -> None:
    path = tmp_path / "chip.npz"
    assert bhemu("run", ADD1, "--save", path, "-q").exit_code == 0
    first, other = bhemu("dump", path, "sem"), bhemu("dump", path, "sem", "--tile", "2,3")
    assert first.exit_code == other.exit_code == 0, other.stderr
    assert "sem1  value 0  max 2" in other.stdout
    missing = bhemu("dump", path, "--tile", "5,5")
    assert missing.exit_code == 2
    assert "has no tile 5,5\n  hint: 1,2 1,3 2,2 2,3" in missing.stderr


def test_check_shows_tiles_and_banks(bhemu) -> None:
    result = bhemu("check", ADD1)
    assert result.exit_code == 0, result.stderr
    assert "1,2 2,2 1,3 2,3 0x00030080..0x00031080  buffer  circular buffer 0" in result.stdout
    assert "DRAM 0,1,2,3,4,5,6,7 0x00200080..0x00201080  output  y 128x128" in result.stdout
    assert "ends when the go messages at 0x370 of 1,2 2,2 1,3 2,3 say DONE" in result.stdout
    assert json.loads(bhemu("check", ADD1, "--json").stdout)["exit_code"] == 0


def test_the_stepper_steps_one_tile_while_all_run(bhemu) -> None:
    commands = "break main trisc1; continue; step 3; tstep 2 1; delete; continue"
    result = bhemu("step", ADD1, "--tile", "2,2", "-x", commands)
    assert result.exit_code == 0, result.stderr
    shown = result.stdout.splitlines()
    assert any("hit: trisc1 0x00008" in line for line in shown), "the kernel's main"
    assert any("math.c" in line for line in shown)
    assert any(line.startswith("  T1 SEMINIT") for line in shown)
    assert any("stopped: until" in line for line in shown)


def test_the_end_of_a_chip_is_its_end_and_all_of_it_is_saved(bhemu, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    commands = "continue; continue; continue"
    result = bhemu("step", ADD1, "--tile", "2,2", "--save", path, "-x", commands)
    assert result.exit_code == 0, result.stderr
    stops = [line for line in result.stdout.splitlines() if line.startswith("stopped: until")]
    assert len(stops) == 3
    assert len(set(stops)) == 1, "nothing runs on"
    for tile in ("1,2", "2,3"):
        shown = bhemu("dump", path, "--tile", tile, "cores")
        assert shown.exit_code == 0, shown.stderr
        assert "brisc" in shown.stdout


def test_disasm_shows_the_kernel_of_a_core(bhemu) -> None:
    result = bhemu("disasm", ADD1, "--core", "trisc1", "--symbol", "main")
    assert result.exit_code == 0, result.stderr
    assert "SFPADD" in result.stdout
    assert "--core brisc" in bhemu("disasm", ADD1).stderr


def test_numerics_measures_outputs_in_dram(bhemu) -> None:
    result = bhemu("numerics", ADD1)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("y  128x128 bf16  0 ULP at most")
