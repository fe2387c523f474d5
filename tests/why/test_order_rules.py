"""Rules of order: what spins, what a count lacks, what takes turns, who adds to L1."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from corpus import ROOT, Line, check_bug, folder, found, store

from bhemu import Program, Tile
from bhemu.debug.places import Sources
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    T1,
    T2,
    ZERO,
    add,
    addi,
    beq,
    branch,
    li,
    lw,
    sw,
)
from bhemu.riscv.isa.rv32i import SLLI, SUB
from bhemu.why.order.observe import is_polled, spin

AT, FENCE = 0x8000, 0x0FF0000F
DATA, COUNT, OUT = 0x20000, 0x20100, 0x20200
BLTU, BGEU = 6, 7
sub = SUB.assemble
LOOK = [lw(T1, A0), sub(T1, A1, T1), branch(BGEU, T1, A2, -8)]  # while a1 - [a0] >= a2


def tile_with(*words: int) -> Tile:
    tile = Program.load(ROOT / "elfs" / "add1").launch()
    assert isinstance(tile, Tile)
    tile.state.l1.view("<u4")[AT >> 2 : (AT >> 2) + len(words)] = np.array(words, np.uint32)
    return tile


@pytest.mark.parametrize(
    ("words", "at", "loop"),
    [
        (LOOK, AT, (AT, AT + 8)),
        ([FENCE, *LOOK[:2], branch(BGEU, T1, A2, -12)], AT + 4, (AT, AT + 12)),
        ([*LOOK[:2], branch(BGEU, T1, A2, 8)], AT, None),  # leads nowhere back
        ([lw(T1, A0), sw(T1, A1), *LOOK[1:2], branch(BGEU, T1, A2, -12)], AT, None),  # acts
        ([lw(T1, A0), addi(A0, A0, 4), *LOOK[1:2], branch(BGEU, T1, A2, -12)], AT, None),  # goes on
        ([lw(T1, A0), add(T2, T2, T1), addi(T1, ZERO, 0), branch(1, T1, A2, -12)], AT, None),
    ],
)
def test_a_load_that_spins(words: list[int], at: int, loop: tuple[int, int] | None) -> None:
    """It waits where what is computed of its word decides a branch back, over nothing that acts."""
    tile = tile_with(*words)
    assert spin(tile.state.l1, at) == loop
    assert is_polled(tile.state.l1, at) == (loop is not None)


@pytest.mark.parametrize(
    ("between", "polls"), [(FENCE, True), (sw(T2, A1), False), (addi(A0, A0, 4), False)]
)
def test_a_load_that_looks_before_its_loop_polls(between: int, polls: bool) -> None:
    """`while` as compilers write it: the first look may skip the loop, which looks at its end."""
    skips = branch(BLTU, T1, A2, 24)
    loop = [FENCE, *LOOK[:2], branch(BGEU, T1, A2, -12)]
    tile = tile_with(*LOOK[:2], skips, between, *loop)
    assert spin(tile.state.l1, AT) is None
    assert is_polled(tile.state.l1, AT) == polls


def test_a_branch_uses_a_loaded_word_only_by_its_register() -> None:
    """An immediate may have the bits of its number; x0 keeps nothing of a load."""
    later = [SLLI.assemble(A2, A1, T1), beq(T1, T2, 8)]
    assert is_polled(tile_with(lw(T1, A0), *later).state.l1, AT)
    assert not is_polled(tile_with(lw(ZERO, A0), beq(A1, ZERO, 8)).state.l1, AT)
    assert spin(tile_with(lw(ZERO, A0), beq(A1, ZERO, -4)).state.l1, AT) is None


def waiting(want: int) -> list[Line]:
    return [[*li(A0, COUNT), *li(A1, want)], [lw(T1, A0), FENCE, branch(BLTU, T1, A1, -8)]]


def counting(to: int) -> list[Line]:
    return [store(COUNT, n) for n in range(1, to + 1)]


def test_a_word_that_was_there_and_is_overwritten_is_still_named(tmp_path: Path) -> None:
    kernels: dict[str, list[Line]] = {
        "trisc0": [*waiting(3), store(OUT, 1)],
        "brisc": [store(COUNT, 3), store(COUNT, 1)],
    }
    path = folder(tmp_path / "bad", kernels, inputs={COUNT: [0]}, outputs={OUT: [1]})
    first = found(path)[0]
    (told,) = [line for line in first["evidence"] if "overwrote it with 0x1" in line]
    assert "(brisc.s:2" in told
    assert (first["culprit"]["core"], first["culprit"]["line"]) == ("brisc", 2)
    assert first["victim"]["core"] == "trisc0"


def polling(fence: int) -> list[int]:
    """Waits until the word is 0, or more than 4 is left."""
    begin = [*li(A0, DATA), *li(A1, 77), *li(A2, 1)]
    return [*begin, fence, lw(T1, A0), sub(T1, A1, T1), branch(BGEU, T1, A2, -12)]


def test_a_wait_without_fence_is_named_though_it_came_in_time(tmp_path: Path) -> None:
    paths = []
    for kind, fence in (("bad", addi(0, 0, 0)), ("twin", FENCE)):
        late: list[Line] = [addi(0, 0, 0)] * 400
        kernels: dict[str, list[Line]] = {
            "brisc": [store(DATA, 77)],
            "trisc1": [*late, polling(fence), store(OUT, 1)],
        }
        inputs, outputs = {DATA: [0] * 4}, {OUT: [1]}
        run = 'l0 = "model"\nlimit = 1_000_000'
        paths.append(folder(tmp_path / kind, kernels, inputs=inputs, outputs=outputs, run=run))
    check_bug(*paths, "stale", "trisc1", 401)


def test_the_same_loop_is_silent_where_no_cache_is_modelled(tmp_path: Path) -> None:
    kernels: dict[str, list[Line]] = {
        "brisc": [store(DATA, 77)],
        "trisc1": [*[addi(0, 0, 0)] * 400, polling(addi(0, 0, 0)), store(OUT, 1)],
    }
    path = folder(tmp_path / "off", kernels, inputs={DATA: [0] * 4}, outputs={OUT: [1]})
    assert found(path) == []


def test_a_source_of_the_program_of_that_name_is_found(tmp_path: Path) -> None:
    """Of several files of a name, beside firmware of other programs."""
    shutil.copytree(ROOT / "elfs" / "reduce", tmp_path / "mine")
    for name in ("reduce", "matmul"):
        shutil.copytree(ROOT / "firmware" / name, tmp_path / "firmware" / name)
    text = Sources(Program.load(tmp_path / "mine")).line("brisc", "brisc.c", 1)
    assert text is not None
    assert "scaler" in text


def summing(words: int) -> list[Line]:
    loop = [lw(A2, A0), add(T1, T1, A2), addi(A0, A0, 4), branch(1, A0, A1, -12)]
    begin = [*li(A0, DATA), *li(A1, DATA + 4 * words), addi(T1, ZERO, 0)]
    return [begin, loop, [*li(A0, OUT), sw(T1, A0)]]


def filling(words: int) -> list[int]:
    begin = [*li(A0, DATA), *li(A1, DATA + 4 * words), *li(T2, 0x1234567)]
    return [*begin, sw(T2, A0), addi(A0, A0, 4), branch(1, A0, A1, -8), beq(ZERO, ZERO, 4)]


def test_stores_that_end_at_a_round_place_are_named(tmp_path: Path) -> None:
    """Sixteen words are written, of thirty-two that are read."""
    paths = []
    for kind, words in (("bad", 16), ("twin", 32)):
        kernel = [filling(words), *summing(32)]
        total = 32 * 0x1234567 & 0xFFFFFFFF
        total -= (total & 0x80000000) << 1
        paths.append(folder(tmp_path / kind, {"trisc0": kernel}, outputs={OUT: [total]}))
    check_bug(*paths, "unwritten", "trisc0", 1)
