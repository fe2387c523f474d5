"""What the packer notes: rows of edge masks counted by ttsim and by the text, fp16 sums in L1."""

from typing import Any

import numpy as np
import pytest
from pack_model import Pack
from pack_runner import execute, setup
from unpack_model import put

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.rules import REFERENCE_ISA, REFERENCE_LLK, REFERENCE_TTSIM, counted
from bhemu.tensix.state import State
from bhemu.tensix.units.matrix.matmul import MVMUL

REFERENCES = {"ttsim": REFERENCE_TTSIM, "llk": REFERENCE_LLK, "isa": REFERENCE_ISA}


def noted(s: State) -> dict[str, int]:
    return {sentences.RULES[number].rule: times for number, times in counted(s).items()}


def begun(p: Pack, reference: str) -> State:
    """A state in which the next PACR packs four whole rows that are not zero."""
    s, _ = setup(p)
    s.dst_valid[:] = 1
    s.dst[:] = 0x1234
    s.adc[0, 2, 1, 0] = 15
    s.reference[0] = REFERENCES[reference]
    return s


def rows(s: State, p: Pack, number: int = 4) -> list[int]:
    """Which of the rows at the packer's address hold a datum in column 1, as bits of 0 or 1."""
    at = (p.address + 1) * 16
    packed = s.l1[at : at + 32 * number].view(np.uint16).reshape(number, 16)
    return [int(datum != 0) for datum in packed[:, 1]]


@pytest.mark.parametrize("reference", REFERENCES)
def test_planes_of_six_rows_packed_by_fours(reference: str) -> None:
    """The second PACR of a tile: rows 4, 5, 0, 1 by datums; by the text the counter steps over 6.

    The text (PACR, Blackhole ISA) has rows 4 to 7.  Row 6 and 7 keep datums, rows 0 and 1 none.
    """
    p = Pack(masks=(0xFFFF, 1), sets=(0b0101, 0), reads=6)  # rows 0 and 1 keep column 0 only
    s = begun(p, reference)
    assert execute(s) == rules.DONE
    assert rows(s, p) == [0, 0, 1, 1] and noted(s) == {}
    s.l1[(p.address + 1) * 16 :][:256] = 0
    assert execute(s, last=1) == rules.DONE
    packed = rows(s, p, 8)[4:]
    assert packed == ([1, 1, 1, 1] if reference == "isa" else [1, 1, 0, 0])
    assert noted(s) == ({} if reference == "isa" else {"PACR-EDGE-ROW": 1})
    assert s.pack_plane[0] == 8


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_tile_that_begins_within_a_plane(reference: str) -> None:
    """ttsim begins each tile in row 0, the text goes on in row 4."""
    p = Pack(masks=(0xFFFF, 1), sets=(0x0100, 0))  # row 4 keeps column 0 only
    s = begun(p, reference)
    for _ in range(2):
        assert execute(s, last=1) == rules.DONE
    assert rows(s, p) == ([0, 1, 1, 1] if reference == "isa" else [1, 1, 1, 1])
    assert noted(s) == ({} if reference == "isa" else {"PACR-EDGE-ROW": 1})


@pytest.mark.parametrize("reference", ["ttsim", "isa"])
def test_masks_that_make_no_difference_note_nothing(reference: str) -> None:
    """Whole tiles of whole planes, and rows that have the same mask."""
    p = Pack(masks=(0xFFFF, 1), sets=(0x0100, 0))
    s = begun(p, reference)
    for number in range(8):
        assert execute(s, last=int(number % 4 == 3)) == rules.DONE
    p = Pack(masks=(1, 1), sets=(0x0100, 0), reads=6)
    p.program(s)
    for _ in range(3):
        assert execute(s, last=1) == rules.DONE
    assert noted(s) == {}


def test_the_text_decides_masks_that_ttsim_does_not_take() -> None:
    """With reference isa, where ttsim's is refused (PACR-TILE-POSITION)."""
    p = Pack(masks=(0xFFFF, 0x00FD), sets=(0x0100, 0))  # row 4 loses column 1
    for reference, want in (("ttsim", "PACR-TILE-POSITION"), ("isa", "")):
        s = begun(p, reference)
        assert execute(s, last=1) == rules.DONE
        number = execute(s, last=1)
        assert (sentences.RULES[number].rule if number else "") == want
        assert rows(s, p) == ([0, 1, 1, 1] if reference == "isa" else [1, 1, 1, 1])
        assert noted(s) == {}


class Sums:
    """Subblocks of two fp16 tiles (eight PACRs of four rows) packed behind one matmul each."""

    def __init__(self, out: int = 1, offsets: tuple[int, ...] = (0, 512), matmul: int = 1) -> None:
        self.p = Pack(fmt=out, out=out, accumulate=1)
        self.s = begun(self.p, "ttsim")
        self.s.dst[:] = 0x3C00
        self.offsets, self.matmul, self.number = offsets, matmul, 0

    def subblock(self, place: int, **change: Any) -> None:
        s, p = self.s, self.p
        s.op_count[1, MVMUL.opcode] += self.matmul
        p.offset = self.offsets[self.number % len(self.offsets)]
        p.accumulate = change.get("accumulate", 1)
        self.number += 1
        for tile in range(2):
            p.address = place + 0x80 * tile
            p.program(s)
            for face in range(2):
                s.adc[0, 2, 0, 1] = 64 * tile + 4 * face
                # the matmul of the next subblock goes on meanwhile
                s.op_count[1, MVMUL.opcode] += self.matmul
                assert execute(s, last=face) == rules.DONE


PLACES = (0x5000, 0x5200)


@pytest.mark.parametrize("offsets", [(0, 512), (0,)], ids=["half Dst", "whole Dst"])
def test_two_subblocks_of_fp16_behind_a_matmul_are_noted(offsets: tuple[int, ...]) -> None:
    sums = Sums(offsets=offsets)
    for place in PLACES:
        sums.subblock(place, accumulate=0)
    assert noted(sums.s) == {}
    for place in PLACES:
        sums.subblock(place)
    assert noted(sums.s) == {"PACR-FP16-SUMS": 1}


@pytest.mark.parametrize("offsets", [(0, 512), (0,)], ids=["half Dst", "whole Dst"])
def test_what_the_report_calls_clean_is_not_noted(offsets: tuple[int, ...]) -> None:
    """One subblock per cycle, bf16, sums without a matmul."""
    one = Sums(offsets=offsets)
    for _ in range(4):
        one.subblock(PLACES[0])
    one.subblock(PLACES[1], accumulate=0)
    one.subblock(PLACES[1])
    bf16, copies = Sums(out=5, offsets=offsets), Sums(offsets=offsets, matmul=0)
    for place in PLACES * 2:
        bf16.subblock(place)
        copies.subblock(place)
    assert [noted(sums.s) for sums in (one, bf16, copies)] == [{}, {}, {}]


def test_a_plane_of_another_count_has_no_position_of_ttsim() -> None:
    """pack_reads_per_xy_plane above 16: the text's counter, in every reference, without a note."""
    p = Pack(masks=(0xFFFF, 1), sets=(0x0100, 0))
    s = begun(p, "ttsim")
    put(s, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 17)
    for _ in range(2):
        assert execute(s, last=1) == rules.DONE
    assert rows(s, p) == [0, 1, 1, 1] and noted(s) == {}
