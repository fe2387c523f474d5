"""Stale lines of a core's data cache: bugs and twins that drop them."""

from pathlib import Path

import pytest
from corpus import Line, check_bug, folder, store

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.riscv.assembly import A0, A1, A2, ZERO, add, addi, beq, li, lw, sw

DATA, OUT = 0x20000, 0x20200
SEMAPHORES = 0xFFE80020
FENCE = 0x0FF0000F


def post(number: int) -> list[int]:
    return [*li(A0, SEMAPHORES + 4 * number), sw(ZERO, A0)]


def wait(number: int) -> list[int]:
    """For a post, which is taken."""
    poll = [*li(A0, SEMAPHORES + 4 * number), lw(A1, A0), beq(A1, ZERO, -4)]
    return [*poll, addi(A1, ZERO, 1), sw(A1, A0)]


def copy(source: int, target: int) -> list[int]:
    return [*li(A0, source), lw(A1, A0), *li(A0, target), sw(A1, A0)]


def adding(source: int) -> list[int]:
    """a2 += the word there."""
    return [*li(A0, source), lw(A1, A0), add(A2, A2, A1)]


WRITER: list[Line] = [wait(2), store(DATA, 77), post(1)]
NEIGHBOUR: list[Line] = [wait(2), store(DATA + 8, 77), post(1)]
AGAIN: list[Line] = [wait(2), store(DATA, 5), post(1), wait(4), store(DATA, 6), post(3)]
END = [*li(A0, OUT), sw(A2, A0)]


def same_word(fence: Line) -> list[Line]:
    return [copy(DATA, OUT + 4), post(2), wait(1), fence, copy(DATA, OUT)]


def same_line(fence: Line) -> list[Line]:
    return [copy(DATA, OUT + 4), post(2), wait(1), fence, copy(DATA + 8, OUT)]


def second_time(fence: Line) -> list[Line]:
    first = [addi(A2, ZERO, 0), post(2), wait(1), FENCE, adding(DATA)]
    return [*first, post(4), wait(3), fence, adding(DATA), END]


BUGS = {
    "same word": (same_word, WRITER, 5),
    "same line": (same_line, NEIGHBOUR, 5),
    "second time": (second_time, AGAIN, 9),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_stale_load_is_named_and_its_twin_is_silent(name: str, tmp_path: Path) -> None:
    reader, writer, line = BUGS[name]
    paths = []
    for kind, fence in (("bad", addi(0, 0, 0)), ("twin", FENCE)):
        kernels = {"trisc0": writer, "trisc1": reader(fence)}
        outputs = {OUT: 1}
        paths.append(folder(tmp_path / kind, kernels, inputs={DATA: [1] * 4}, outputs=outputs))
    check_bug(*paths, "stale", "trisc1", line)


def test_a_poll_without_fence_is_named_where_caches_are_asked_for(tmp_path: Path) -> None:
    polling = [*li(A0, DATA), *li(A2, 77), lw(A1, A0), beq(A1, A2, 8), beq(ZERO, ZERO, -8)]
    fenced = [*polling[:4], FENCE, lw(A1, A0), beq(A1, A2, 8), beq(ZERO, ZERO, -12)]
    writer = [addi(0, 0, 0)] * 40 + [store(DATA, 77)]
    paths = []
    for kind, poll in (("bad", polling), ("twin", fenced)):
        kernels = {"ncrisc": writer, "trisc1": [poll, copy(DATA, OUT)]}
        run = 'l0 = "model"\nlimit = 1_000_000'
        path = folder(tmp_path / kind, kernels, inputs={DATA: [1] * 4}, outputs={OUT: 1}, run=run)
        paths.append(path)
    check_bug(*paths, "stale", "trisc1", 1)
