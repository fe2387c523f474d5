"""Issue and later execution of a word do what executing it at the gate does.

For every class that a unit takes: ready + take + advance + exchange + execute + exchange = execute.
"""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bhemu.jit.record import plain
from bhemu.machine.tile import Tile
from bhemu.tensix import banks, compiled, in_flight, issue
from bhemu.tensix.insn import instructions
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import MEMBERS, POINTERS, reset
from bhemu.tensix.units import counters

TAKEN = sorted(
    cls.opcode
    for cls in instructions().values()
    if cls.execute and plain(issue.unit_of)(cls.opcode, 0) >= 0 and cls.name != "SFPLOADMACRO"
)
APART = ("in_flight", "host", "detail", "py", "unit_")  # what issuing itself keeps
COMPARED = [m.name for m in MEMBERS if not m.name.startswith((*APART, *POINTERS))]
FILLED = ("rwc", "rwc_cr", "adc", "adc_cr", "unpack_row", "thread_cfg", "src", "dst", "gpr")
LEAST, MOST, COMPLETED = 40, 1200, 5  # words of a class; executed ones of them


def fill(s: Any, seed: int) -> None:
    """Counters, address modifiers, banks, cells; Config is 0."""
    dice = np.random.default_rng(seed)
    reset(s)
    s.rwc[:, :3] = dice.integers(0, 8, (3, 3)) * 8
    s.rwc[:, 3] = dice.integers(0, 4, 3)
    s.rwc_cr[:, :3] = dice.integers(0, 8, (3, 3)) * 8
    s.adc[:] = dice.integers(0, 4, s.adc.shape)
    s.adc_cr[:] = dice.integers(0, 4, s.adc.shape)
    s.unpack_row[:] = dice.integers(0, 2, (2, 3)) * 16
    for first in (counters._AB, counters._DST):
        s.thread_cfg[:, first : first + 8] = dice.integers(0, 1 << 12, (3, 8))
    s.src_valid[:] = dice.integers(0, 4, (2, 2)) != 0
    s.unpack_bank[:], s.matrix_bank[:] = dice.integers(0, 2, (2, 2))
    s.gpr[:] = dice.integers(0, 1 << 12, s.gpr.shape)
    s.src[:] = dice.integers(0, 1 << 8, s.src.shape) << 24
    if seed % 2:
        s.src[1] = 0x3F800000  # 1.0, as pooling wants its scale
    s.src_fmt[:] = 5
    s.srca_row[0] = 16
    s.dst[:] = dice.integers(0, 1 << 10, s.dst.shape)
    s.dst_valid[:] = 1


@pytest.fixture(scope="module")
def tiles() -> tuple[Tile, Tile]:
    return Tile(engine="compiled"), Tile(engine="compiled")


completed: Counter[int] = Counter()  # words by opcode that were executed both ways


def differences(name: str, at_gate: Any, later: Any, t: int, word: int) -> list[str]:
    """What executing a word in two ways makes differently; counts nothing where it waits."""
    for s in (at_gate, later):
        s.gate_word[t] = word
    with np.errstate(all="ignore"):
        status = compiled.execute(at_gate, t, word)
        waits = plain(issue.ready)(later, t, word)
        if waits:
            return [] if status == waits or status < 0 else [f"waits, but executes: {status}"]
        if status in banks.WAITED_FOR:
            return [f"does not wait, but executes: {status}"]
        unit = int(plain(issue.unit_of)(word >> 24, word))
        plain(in_flight.take)(later, unit, t)
        plain(issue.advance)(later, t, word)
        plain(in_flight.exchange)(later, unit)
        again = compiled.execute(later, t, word)
        plain(in_flight.exchange)(later, unit)
        plain(in_flight.free)(later, unit)
    if again != status:
        return [f"{status} at the gate, {again} later"]
    if status != DONE:
        return []
    completed[word >> 24] += 1
    members = ((m, getattr(at_gate, m), getattr(later, m)) for m in COMPARED)
    return [m for m, one, other in members if one.tobytes() != other.tobytes()]


@pytest.mark.parametrize("opcode", TAKEN, ids=lambda opcode: instructions()[opcode].name)
def test_a_word_does_the_same_later(tiles: tuple[Tile, Tile], opcode: int) -> None:
    """Random words, from all bits to few, until enough of them were not refused."""
    cls, dice = instructions()[opcode], random.Random(opcode)
    for i in range(MOST):
        bits = -1
        for _ in range(1 + i % 4):
            bits &= dice.getrandbits(24)
        word, t, seed = opcode << 24 | bits & ~cls.reserved, dice.randrange(3), dice.getrandbits(30)
        for tile in tiles:
            fill(tile.state, seed)
        found = differences(cls.name, tiles[0].state, tiles[1].state, t, word)
        assert found == [], f"{word:#010x} of thread {t}"
        if i >= LEAST and completed[opcode] >= COMPLETED:
            return
    pytest.fail(f"{completed[opcode]} of {MOST} words were executed")


def test_an_advance_that_is_missing_is_noticed(tiles: Any, monkeypatch) -> None:
    """The test above sees it when a counter does not move at issue."""
    setrwc = 0x37 << 24 | 0xF | 3 << 6
    for tile in tiles:
        fill(tile.state, 1)
    monkeypatch.setattr(issue, "advance", lambda s, t, word: 0)  # moves nothing
    assert "rwc" in differences("SETRWC", tiles[0].state, tiles[1].state, 1, setrwc)
