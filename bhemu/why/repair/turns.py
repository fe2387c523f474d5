"""Edits of how a loop begins: some turns earlier or later, with all that it counts and steps.

The compiler folds the first turn into constants and lets pointers go along with the count, so that
no one constant is wrong. What the turns step is put back where the loop is entered.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bhemu.riscv.assembly import addi, jal
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Pushed, Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import ADD, ADDI, AUIPC, SUB
from bhemu.why.repair.edits import NOP, Code, Edit

_EARLIER, _LATER, _GUARD = 1.71, 1.77, 0.02  # costs; more where the loop was not entered at all
_TURNS = (1, 2, 3, 4)
_LONGEST = 256  # instructions of a loop
_AHEAD, _BEHIND = 32, 4  # instructions from the branch around it to a loop, from its end


Step = tuple[int, int | None, int]  # a register, the register or number that is added
Changed = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Loop:
    """`head` to `end`, the last branch back to it; `at` stands for its line."""

    head: int
    end: int
    at: int
    steps: tuple[Step, ...]


def begins(code: Code, core: int) -> Iterator[Edit]:
    """Each loop begun some turns earlier, or one later."""
    held = code.words[core]
    jumps = [(pc, to) for pc, word in held.items() if (to := _target(pc, word)) is not None]
    for loop in loops(held):
        entries = list(_entries(held, jumps, loop))
        for turns in (*_TURNS, -1) if entries else ():
            how = "later" if turns < 0 else "earlier"
            text = f"begin this loop {abs(turns)} turn{'s' * (turns > 1)} {how}"
            cost = (_EARLIER if turns > 0 else _LATER) + abs(turns) / 1000
            for some in _choices(loop.steps):
                steps = tuple(_step(one, -turns) for one in some for _ in range(abs(turns)))
                for changed, more in _begun(held, loop, entries, steps):
                    yield Edit(core, ((loop.at, (held[loop.at],)), *changed), text, cost + more)


def _choices(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """What a turn steps: all; without one, which may be a count of its own; that alone."""
    if steps:
        yield steps
    if len(steps) > 1:
        yield from combinations(steps, len(steps) - 1)
    if len(steps) > 2:
        yield from combinations(steps, 1)


def _begun(
    held: dict[int, int], loop: Loop, entries: list[int], steps: tuple[int, ...]
) -> Iterator[tuple[tuple[Changed, ...], float]]:
    """The code at the entries of a loop; where a branch goes around it, also without that."""
    entered = {pc: _entered(pc, held[pc], steps, loop) for pc in entries}
    yield tuple(entered.items()), 0.0
    if (around := _around(held, loop)) is not None:
        entered[around] = (NOP, *steps) if around == loop.head - 4 else (NOP,)
        yield tuple(entered.items()), _GUARD


def _target(pc: int, word: int) -> int | None:
    """Where a branch or jump goes."""
    cls: Any = decode(word)
    goes = cls is not None and issubclass(cls, Branch | Jump)
    return pc + int(cls.offset.get(word)) if goes else None


def _entries(held: dict[int, int], jumps: list[tuple[int, int]], loop: Loop) -> Iterator[int]:
    """The instructions outside a loop behind which it begins."""
    before = held.get(loop.head - 4)
    cls = None if before is None else decode(before)
    falls = cls is not None and not issubclass(cls, Jump | IndirectJump) and cls is not AUIPC
    if falls:
        yield loop.head - 4
    for pc, to in jumps:
        if loop.head <= to <= loop.end and not loop.head <= pc <= loop.end:
            if pc != loop.head - 4 or not falls:
                yield pc


def _entered(pc: int, word: int, steps: tuple[int, ...], loop: Loop) -> tuple[int, ...]:
    """In place of an instruction behind which a loop begins: the same, and the steps on its way."""
    to = _target(pc, word)
    if to is None:
        return (word, *steps)
    cls: Any = decode(word)
    if issubclass(cls, Jump):
        return (*steps, word)
    inside = loop.head <= to <= loop.end
    away = jal(0, to - pc)
    if not inside:  # around the loop
        return (_inverted(word, 8), away, *steps)
    return (_inverted(word, 4 * len(steps) + 8), *steps, away)


def _inverted(word: int, offset: int) -> int:
    """The branch under the other condition, to `offset` bytes from itself."""
    return int(Branch.offset.put(word ^ 1 << 12, offset))


def _around(held: dict[int, int], loop: Loop) -> int | None:
    """The branch not far before a loop that goes around it."""
    for pc in range(loop.head - 4, loop.head - 4 * _AHEAD, -4):
        to = _target(pc, held.get(pc, 0))
        if to is not None and loop.end < to <= loop.end + 4 * _BEHIND:
            return pc if issubclass(decode(held[pc]) or Jump, Branch) else None
    return None


def _step(step: Step, turns: int) -> int:
    register, other, number = step
    if other is None:
        return addi(register, register, number if turns > 0 else -number)
    return (ADD if turns > 0 else SUB).assemble(register, register, other)


def loops(held: dict[int, int]) -> Iterator[Loop]:
    """The loops of some code."""
    ends: dict[int, int] = {}
    for pc, word in sorted(held.items()):
        head, cls = _target(pc, word), decode(word)
        calls = cls is not None and issubclass(cls, Jump) and word >> 7 & 31
        if head is not None and head in held and head < pc and not calls:
            ends[head] = pc
    for head, end in ends.items():
        inside = {at: held[at] for at in range(head, end + 4, 4) if at in held}
        if len(inside) <= _LONGEST:
            steps = dict(_steps(inside))
            jumps = issubclass(decode(held[end]) or Jump, Jump)
            counted = next((at for at, (_, other, _) in steps.items() if other is None), end)
            yield Loop(head, end, counted if jumps else end, tuple(steps.values()))


def _steps(inside: dict[int, int]) -> Iterator[tuple[int, Step]]:
    """The instructions by which a loop steps a register by a number or by what stays the same."""
    written: dict[int, list[int]] = {}
    for at, word in inside.items():
        cls: Any = decode(word)
        if cls is not None and not issubclass(cls, Store | Branch | Pushed) and word >> 7 & 31:
            written.setdefault(word >> 7 & 31, []).append(at)
    for register, places in written.items():
        word = inside[places[0]]
        cls, one, two = decode(word), word >> 15 & 31, word >> 20 & 31
        if len(places) != 1 or cls not in (ADDI, ADD):
            continue
        if cls is ADDI and one == register and ADDI.imm.get(word):
            yield places[0], (register, None, ADDI.imm.get(word))
        elif cls is ADD and register in (one, two):
            other = two if one == register else one
            if other and other not in written:
                yield places[0], (register, other, 0)
