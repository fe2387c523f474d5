"""Programs of a chip without firmware: ELFs and images on many tiles, tensors in L1 and DRAM."""

import struct
from pathlib import Path

import numpy as np
import pytest
from elf_builder import Elf, Seg

from bhemu.errors import InputError
from bhemu.launch import Program
from bhemu.machine.machine import Chip
from bhemu.riscv.assembly import A0, A1, A2, PARK, add, code, li, lw, sw

HEAD = 'bhemu = 1\nname = "small"\n'
CODE = 0x10000
# word at 0x20100 = word at 0x20000 + word at 0x20004, then a flag
SUM = code(
    li(A0, 0x20000),
    [lw(A1, A0), lw(A2, A0, 4), add(A1, A1, A2), sw(A1, A0, 0x100)],
    li(A2, 0xD0E0),
    sw(A2, A0, 0x104),
    PARK,
)
UNTIL = '[run]\nuntil = [{ tile = "3-4,5", word = 0x20104, equals = 0xD0E0 }]\n'


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """program(text): the launched chip."""
    monkeypatch.chdir(tmp_path)
    Path("sum.elf").write_bytes(bytes(Elf([Seg(CODE, SUM)], entry=CODE)))
    Path("l1.bin").write_bytes(bytes(CODE) + SUM)
    np.save("in.npy", np.array([[5]], np.int32))
    np.save("all.npy", np.arange(64 * 32, dtype=np.float32).reshape(64, 32) % 256)

    def launched(text: str, **options: object) -> Chip:
        Path("PROGRAM.toml").write_text(HEAD + text)
        chip = Program.load("PROGRAM.toml").launch(**options)
        assert isinstance(chip, Chip)
        return chip

    return launched


TILES = """
[[tile]]
at = "3-4,5"
[tile.cores]
trisc0 = { elf = "sum.elf" }
[[tile.set]]
at = 0x20004
values = ["tile:x"]
[[input]]
tile = "3-4,5"
at = 0x20000
file = "in.npy"
dtype = "int32"
layout = "rows"
"""


def outputs(*tiles: str) -> str:
    return "".join(
        f'[[output]]\nname = "at{i}"\ntile = "{at}"\nat = 0x20100\ndtype = "int32"\n'
        f'layout = "rows"\nshape = [1, 1]\nsave = "out{i}.npy"\n'
        for i, at in enumerate(tiles)
    )


def test_an_elf_on_two_tiles_with_inputs_values_and_outputs_of_each(program) -> None:
    chip = program(TILES + outputs("3,5", "4,5") + UNTIL)
    assert chip.run().reason == "until"
    assert len(chip.check()) == 2
    assert [int(np.load(f"out{i}.npy")[0, 0]) for i in (0, 1)] == [5 + 3, 5 + 4]
    assert [tile.xy for tile in chip.tiles()] == [(3, 5), (4, 5)]


def test_without_a_condition_it_ends_when_all_are_parked(program) -> None:
    chip = program(TILES)
    assert chip.run().reason == "idle"
    assert struct.unpack("<I", chip.read(4, 5, 0x20100, 4)) == (9,)


def test_an_image_on_each_tile(program) -> None:
    image = TILES.replace("[tile.cores]", 'image = { file = "l1.bin" }\n[tile.cores]')
    text = 'kind = "image"\n' + image.replace('elf = "sum.elf"', f"pc = {CODE}")
    chip = program(text + UNTIL)
    assert chip.run().reason == "until"
    assert chip.tile[3, 5].read32(0x20100) == 8


def test_a_tensor_in_dram_lies_page_by_page_over_the_banks(program) -> None:
    place = "dram = { address = 0x1000, banks = [6, 1] }\n"
    tensor = '[[input]]\nfile = "all.npy"\ndtype = "bf16"\n' + place
    out = '[[output]]\nname = "same"\nexpect = "all.npy"\ndtype = "bf16"\n' + place
    chip = program(TILES + tensor + out + UNTIL)
    for bank, first in ((6, 0), (1, 32)):  # tile rows of the matrix
        face = np.frombuffer(chip.dram[bank].read(0x1000, 512), "<u2").reshape(16, 16)
        rows = np.load("all.npy")[first : first + 16, :16]
        assert (face == rows.view(np.uint32) >> 16).all()
    assert chip.dram[0].pages == []
    chip.run()
    assert [result.equal for result in chip.check()] == [True]


def test_options_on_top_of_the_program(program) -> None:
    chip = program("[chip]\ndram_banks = 7\nharvest = [16]\n" + TILES, threads=2, engine="unicorn")
    assert (len(chip.dram), len(chip.tile), chip.threads, chip.engine) == (7, 130, 2, "unicorn")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TILES + UNTIL.replace('tile = "3-4,5", ', ""), "until: a word of which tile?"),
        (TILES + UNTIL.replace("0x20104", "0x20106"), "is not the address of a 32-bit word"),
        (TILES.replace("0x20000", "0x17FFFE"), "are not inside L1"),
        (TILES.replace("0x20004", '"nowhere"'), "no symbol or register nowhere"),
        ("[chip]\nharvest = [1, 2]\n" + TILES.replace("3-4,5", "15-16,5"), "is no Tensix tile"),
    ],
)
def test_what_can_be_found_out_without_running(program, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        program(text)


def test_options_of_the_other_kind_are_refused(program) -> None:
    with pytest.raises(InputError, match="xy: small is a program of a chip"):
        program(TILES, xy=(1, 2))
    Path("PROGRAM.toml").write_text(HEAD + '[cores]\ntrisc0 = { elf = "sum.elf" }\n')
    with pytest.raises(InputError, match="threads: small is a program of one tile"):
        Program.load("PROGRAM.toml").launch(threads=2)
