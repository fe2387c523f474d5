"""reference = "isa" wherever a reference is chosen; a run says where ttsim's way was taken."""

import json
from pathlib import Path

import pytest

import bhemu as package
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw, tt
from bhemu.tensix import config_fields as cf

RULE = "PACR-EDGE-ROW"
FIELDS = (
    (cf.ALU_FORMAT_SPEC_REG2_Dstacc, 5),
    (cf.THCON_SEC0_REG1_In_data_format, 5),
    (cf.THCON_SEC0_REG1_Out_data_format, 5),
    (cf.THCON_SEC0_REG1_L1_Dest_addr, 0x4000),
    (cf.THCON_SEC0_REG1_Disable_zero_compress, 1),
    (cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16),
    (cf.PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF),
    (cf.PCK_EDGE_OFFSET_SEC1_mask, 1),
    (cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_4, 1),
)
OPTIONS = [(None, 1), ("ttsim", 1), ("llk", 1), ("isa", 0)]


def program() -> list[object]:
    """A second tile of four rows: ttsim's row 0, row 4 by the text, where a mask keeps column 0."""
    config: dict[int, int] = {}
    for field, value in FIELDS:
        config[field.word] = config.get(field.word, 0) | value << field.shift
    stores = [[*li(A0, 0xFFEF0000 + 4 * w), *li(A1, v), sw(A1, A0)] for w, v in config.items()]
    counters = tt("SETADCXX", cnt_set_mask=4, x_end2=15)
    return [*stores, tt("ZEROACC", clear_mode=3), counters, *[tt("PACR", last=1)] * 2, PARK]


@pytest.mark.parametrize(("reference", "times"), OPTIONS)
def test_the_summary_names_what_follows_ttsim(write, bhemu, reference, times) -> None:
    flags = () if reference is None else ("--reference", reference)
    result = bhemu("run", write(*program()), *flags)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count(RULE) == times
    assert result.stdout.count('reference = "isa" follows the text') == times


@pytest.mark.parametrize(("reference", "times"), OPTIONS)
def test_so_does_the_json_of_a_program_that_asks_for_it(write, report, reference, times) -> None:
    run = "" if reference is None else f'reference = "{reference}"'
    code, shown = report("run", write(*program(), run=run))
    assert (code, shown["tolerated"]) == (0, {RULE: 1} if times else {})


def test_a_sweep_takes_it_as_a_parameter(write, bhemu, tmp_path: Path) -> None:
    write(*program())
    plan = tmp_path / "sweep.toml"
    plan.write_text(
        'sweep = 1\nprogram = "PROGRAM.toml"\n[parameters]\nreference = ["ttsim", "isa"]\n'
    )
    result = bhemu("sweep", plan, "--workers", "1", "--out", tmp_path / "out", "-q")
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(x) for x in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()]
    told = {row["reference"]: row.get("tolerated") for row in rows}
    assert told == {"ttsim": json.dumps({RULE: 1}), "isa": None}


def test_the_api_takes_it(write) -> None:
    assert package.Tile(reference="isa").state.reference[0] == 2
    chip = package.Chip(reference="isa")
    assert chip.tile[1, 2].state.reference[0] == 2
    with pytest.raises(package.InputError, match="isa"):
        package.Tile(reference="text")


def test_a_chip_sums_what_its_tiles_note(tmp_path: Path, bhemu) -> None:
    """One line for all tiles, without --tile."""
    (tmp_path / "image.bin").write_bytes(bytes(0x10000) + code(*program()))
    tiles = "".join(
        f'[[tile]]\nat = "{at}"\nimage = {{ file = "image.bin" }}\n'
        "[tile.cores]\ntrisc0 = { pc = 65536 }\n"
        for at in ("1,2", "2,2")
    )
    path = tmp_path / "PROGRAM.toml"
    path.write_text(f'bhemu = 1\nname = "two"\nkind = "image"\n{tiles}[chip]\n')
    result = bhemu("run", path)
    assert result.exit_code == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if RULE in line]
    assert len(lines) == 1 and f"tolerated  {RULE}: 2 times" in lines[0]
