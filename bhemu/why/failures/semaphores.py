"""Semaphores that one side never posts or takes, in a hang, or takes without a wait, in an error.

Two threads that hand something to each other wait for the two ends of one semaphore. So who should
have released it is the thread that waits for the other end, behind the last word of its unit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.report import where_core
from bhemu.tensix.insn import decode
from bhemu.tensix.status import DONE
from bhemu.tensix.units.sync import SEMGET
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely
from bhemu.why.walk import MOST

_ON_ZERO, _ON_MAX = 1, 2  # wait_sem_cond
_EMPTY = "SEM-GET-EMPTY"
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
    words = _executed(context)
    for waiter in waiters:
        xy = tuple(waiter.where["tile"])
        found = _unreleased(_tile(context, xy), waiter, words[xy])
        if found is not None:
            yield found
            return


def taken(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """A semaphore that is taken at 0 by a thread that has not waited for it."""
    where = None if error is None else error.where
    if error is None or error.rule != _EMPTY or where is None or where.thread is None:
        return
    tile = _tile(context, where.tile)
    done = [one for one in _executed(context)[tile.xy] if one.thread == where.thread]
    selected = SEMGET.operands(where.word or 0)["sem_sel"]
    index = next(i for i in range(8) if selected >> i & 1 and not tile.state.sem[i])
    gets = [n for n, one in enumerate(done) if _is(one, "SEMGET", index)]
    since = done[gets[-1] + 1 if gets else 0 :]
    if any(_is(one, "SEMWAIT", index, _ON_ZERO) for one in since):
        return
    first = next((one for one in since if _unit(one) in _WORKS), None)
    if any(_waits_elsewhere(one, index) for one in since):  # it takes from another one than that
        first = None
    who = where if first is None else where_core(tile, first.core, first.pc, thread=first.thread)
    text = f"T{where.thread} takes from semaphore {index} and does not wait for it before"
    told = f"{error.message}: the unit of T{where.thread} may use what is not handed over yet"
    yield Finding(
        "error", "error", text, place(who, first.clock if first else None, tile),
        place(where, None, tile), (told,),
        f"SEMWAIT for semaphore {index} to become non-zero in front of this",
        likely("not waited for"),
    )  # fmt: skip


def _executed(context: Context) -> dict[Any, list[_Word]]:
    """The words of all tiles in one more run."""
    machine = context.launch(engine="compiled")
    tiles = {tile.xy: _Words(tile) for tile in context.tiles(machine)}
    context.finish(machine, limit=context.most)
    return {xy: words.done for xy, words in tiles.items()}


def _tile(context: Context, xy: Any) -> Tile:
    return next(tile for tile in context.tiles(context.symptom.machine) if tile.xy == xy)


def _unreleased(tile: Tile, waiter: Any, words: Sequence[_Word]) -> Finding | None:
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


def _waits_elsewhere(one: _Word, index: int) -> bool:
    """Whether it waits for another semaphore than that to become non-zero."""
    return any(_is(one, "SEMWAIT", i, _ON_ZERO) for i in range(8) if i != index)


def _unit(one: _Word) -> str | None:
    cls = decode(one.word)
    return None if cls is None else cls.unit
