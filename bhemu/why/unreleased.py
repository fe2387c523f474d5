"""A hang in which a thread waits for a semaphore that its other side never posts, or never takes.

Two threads that hand something to each other wait for the two ends of one semaphore. So who should
have released it is the thread that waits for the other end, behind the last word of its unit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.machine.stop import now
from bhemu.memmap import CORE_NAMES
from bhemu.report import where_core
from bhemu.tensix.insn import decode
from bhemu.tensix.status import DONE
from bhemu.tile import Tile
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely
from bhemu.why.walk import MOST

_ON_ZERO, _ON_MAX = 1, 2  # wait_sem_cond
_WORKS = ("unpack", "matrix", "vector", "pack")
_RELEASES = {_ON_ZERO: "SEMPOST", _ON_MAX: "SEMGET"}
_VERBS = {_ON_ZERO: "posts", _ON_MAX: "takes from"}


@dataclass(frozen=True)
class _Word:
    """A word that a thread executed: by the instruction of `core` at `pc`."""

    thread: int
    core: int
    pc: int
    word: int
    clock: int


class _Words:
    """What a tile executes while it runs, in order."""

    def __init__(self, tile: Tile) -> None:
        self._tile, self._left = tile, MOST
        self.done: list[_Word] = []
        tile.backend.table.observe(self._before, self._after)

    def _before(self, t: int, word: int) -> _Word:
        s = self._tile.state
        self._left -= 1
        if not self._left:
            s.limit[0] = now(s)  # what goes on for ever is not looked at for ever
        return _Word(t, int(s.gate_core[t]), int(s.gate_pc[t]), word, now(s))

    def _after(self, seen: _Word, status: int) -> None:
        if status == DONE:
            self.done.append(seen)


def unreleased(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Who never releases a semaphore that a thread of a hang waits for."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    waiters = [
        one
        for one in getattr(graph, "waiters", ())
        if one.kind == "semaphore" and "thread" in one.where
    ]
    if not waiters:
        return
    machine = context.launch(engine="compiled")
    tiles = {tile.xy: _Words(tile) for tile in context.tiles(machine)}
    context.finish(machine, limit=context.most)
    for waiter in waiters:
        tile = _tile(context, waiter)
        found = _finding(tile, waiter, tiles[tile.xy].done)
        if found is not None:
            yield found
            return


def _tile(context: Context, waiter: Any) -> Tile:
    xy = tuple(waiter.where["tile"])
    return next(tile for tile in context.tiles(context.symptom.machine) if tile.xy == xy)


def _finding(tile: Tile, waiter: Any, words: Sequence[_Word]) -> Finding | None:
    """The last word of the unit of the thread that should have released it."""
    thread, index = int(waiter.where["thread"]), int(waiter.resource["index"])
    waits_for = _ON_MAX if waiter.resource["value"] else _ON_ZERO
    other_end = _ON_ZERO + _ON_MAX - waits_for
    if any(_is(one, _RELEASES[waits_for], index) for one in words):
        return None
    sides = {one.thread for one in words if _is(one, "SEMWAIT", index, other_end)}
    last = [one for one in words if one.thread in sides - {thread} and _unit(one) in _WORKS]
    if len(sides - {thread}) != 1 or not last:
        return None
    who = where_core(tile, last[-1].core, last[-1].pc, thread=last[-1].thread)
    core = CORE_NAMES.index(str(waiter.where["core"]))
    victim = where_core(tile, core, int(waiter.where["pc"]), thread=thread)
    text = (
        f"T{last[-1].thread} never {_VERBS[waits_for]} semaphore {index}, for which T{thread} waits"
    )
    evidence = (f"T{last[-1].thread} itself waits for the other end of it", *waiter.lines())
    return Finding(
        "hang", "error", text, place(who, last[-1].clock, tile), place(victim, None), evidence,
        f"{_RELEASES[waits_for]} of semaphore {index} behind this", likely("unreleased"),
    )  # fmt: skip


def _is(one: _Word, name: str, index: int, condition: int | None = None) -> bool:
    cls = decode(one.word)
    if cls is None or cls.name != name:
        return False
    values = cls.operands(one.word)
    if condition is not None and values["wait_sem_cond"] != condition:
        return False
    return bool(values["sem_sel"] >> index & 1)


def _unit(one: _Word) -> str | None:
    cls = decode(one.word)
    return None if cls is None else cls.unit
