"""Who changes a MOP template too early, lines of assembler, who leaves a tile open."""

from pathlib import Path

import pytest
from corpus import Line, check_bug, folder, store

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.memmap import MOP_CFG_BASE, PC_BUF_BASE, TENSIX_CFG_BASE
from bhemu.program.dwarf import Row, _words_of_assembler
from bhemu.riscv.assembly import T0, T1, ZERO, li, lw, sw, tt

OUT, NOP = 0x20200, 0x02000000
TEMPLATE: list[Line] = [store(MOP_CFG_BASE + 4 * n, v) for n, v in enumerate((1, 1, *[NOP] * 7))]
WAITS = {"mop_sync": 8, "TTSync": 4, "neither": 0x20}  # offsets; the last is a semaphore


def programmed(path: Path, offset: int, value: int) -> Path:
    """T1 pushes a MOP, reads something of its PCBuf, and stores a word of its template again."""
    at = PC_BUF_BASE + offset
    ask = [*li(T0, at), *([sw(ZERO, T0)] if offset < 0x20 else []), lw(T1, T0), 0x00637033]
    again = store(MOP_CFG_BASE + 4, value)
    kernel = [*TEMPLATE, tt("MOP", mop_type=1), ask, again, store(OUT, 1)]
    return folder(path, {"trisc1": kernel}, outputs={OUT: [1]})


@pytest.mark.parametrize("wait", ["mop_sync", "TTSync"])
def test_a_template_that_changes_after_a_mop(wait: str, tmp_path: Path) -> None:
    bad = programmed(tmp_path / "bad", WAITS["neither"], 2)
    twin = programmed(tmp_path / "twin", WAITS[wait], 2)
    check_bug(bad, twin, "races", "trisc1", len(TEMPLATE) + 3)


def test_the_same_value_once_more_changes_nothing(tmp_path: Path) -> None:
    same = programmed(tmp_path / "same", WAITS["neither"], 1)
    check_bug(programmed(tmp_path / "bad", WAITS["neither"], 3), same, "races", "trisc1", 12)


def table(*rows: tuple[int, int, str, int], words: bool = True) -> list[tuple[int, int, str, int]]:
    return [tuple(one) for one in _words_of_assembler([Row(*one) for one in rows], lambda _: words)]


def test_words_of_an_assembler_have_lines_of_their_own() -> None:
    """Where there are as many as lines up to the next instruction."""
    last = (0x110, 0x114, "a.S", 24)
    assert table((0x100, 0x110, "a.S", 20), last) == [
        (0x100, 0x104, "a.S", 20), (0x104, 0x108, "a.S", 21), (0x108, 0x10C, "a.S", 22),
        (0x10C, 0x110, "a.S", 23), last,
    ]  # fmt: skip
    for rows in (
        [(0x100, 0x110, "a.S", 19), last],  # a line without a word, which one is unknown
        [(0x100, 0x110, "a.c", 20), (0x110, 0x114, "a.c", 24)],  # compilers give each its row
        [(0x100, 0x110, "a.S", 20), (0x110, 0x114, "b.S", 24)],
        [(0x100, 0x104, "a.S", 20), (0x104, 0x114, "a.S", 21)],
    ):
        assert table(*rows) == rows
    pseudo = [(0x100, 0x108, "a.S", 22), (0x108, 0x10C, "a.S", 24)]  # of two instructions
    assert table(*pseudo, words=False) == pseudo


SYNC = [*li(T0, PC_BUF_BASE + 4), sw(ZERO, T0), lw(T1, T0), 0x00637033]
PACKER: list[Line] = [
    [w for k, v in {1: 5 << 25, 2: 0, 12: 0x200000, 13: 0x8000200, 24: 0xFFFF, 28: 0x1000,
                    69: 0x2FFF, 70: 0x551, 71: 0, 180: 0}.items()
     for w in store(TENSIX_CFG_BASE + 4 * k, v)],
    [tt("ZEROACC", clear_mode=3), tt("STALLWAIT", wait_res=0x10, stall_res=1 << 8),
     tt("SETRWC", bit_mask=0xF), tt("SFPLOADI", imm16=0x3F80, lreg_ind=1),
     tt("SFPSTORE", lreg_ind=1), tt("SFPSTORE", lreg_ind=1, dest_reg_addr=2), *SYNC,
     tt("SETADCXX", cnt_set_mask=4, x_end2=15)],
]  # fmt: skip


def packed(path: Path, last: int) -> Path:
    """T2 packs twice and ends the tile with the second PACR, in line 9, or leaves it open."""
    twice = [tt("PACR", last=0), *[tt("NOP")] * 5, tt("PACR", last=last), SYNC]
    return folder(path, {"trisc2": [*PACKER, *twice]}, outputs={0x30000: 8})


def test_the_pack_that_leaves_a_tile_open_is_named(tmp_path: Path) -> None:
    """And not the first one of the next launch, which goes on after it."""
    check_bug(packed(tmp_path / "bad", 0), packed(tmp_path / "twin", 1), "unwritten", "trisc2", 9)
