"""Who waits for whom: blocked cores and threads, cores that poll, and the cycle they form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from bhemu.errors import NoProgress
from bhemu.machine.error_text import where_core
from bhemu.machine.hang import waits
from bhemu.machine.hang.explore import Loop
from bhemu.machine.hang.release import Agents, Releaser
from bhemu.machine.hang.waits import Wait
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.state import BLOCKED, CORES, THREADS

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


_NOTHING = (
    "found nothing that could release it: no store to a constant address, no word in a program,"
    " queue, MOP or replay buffer"
)
_TRISC = re.compile(r"\btrisc(\d)$")  # pushes the words of its thread: the same giver
_NAMED = 4  # waiters that are named where more do the same


@dataclass(frozen=True)
class Waiter:
    """One that waits, or goes round in a loop.

    `kind` names the sort of resource ("semaphore", "mutex", "fifo", "src", "mailbox", "pcbuf",
    "ttsync", "l1", "stream", "clock", ...), `resource` which one with its present value,
    `releasers` who could have released it, `place` and `where` the instruction, `detail` the
    numbers, `history` who touched the resource last.
    """

    who: str
    kind: str
    reason: str
    place: str
    detail: str
    resource: dict[str, int] = field(default_factory=dict)
    releasers: tuple[Releaser, ...] = ()
    where: dict[str, object] = field(default_factory=dict)
    history: str = ""

    def __str__(self) -> str:
        text = f"{self.who} waits for {self.reason}"
        if self.detail:
            text += f" ({self.detail})"
        return f"{text}, {self.place}" if self.place else text

    def lines(self) -> list[str]:
        """The wait, then who could have ended it and who touched the resource last."""
        more = [str(releaser) for releaser in self.releasers] or [_NOTHING]
        return [f"  {self}", *(f"      {line}" for line in [*more, self.history] if line)]


@dataclass(frozen=True)
class WaitGraph:
    """All waiters of a tile that makes no progress; `cycle` names those that wait in a ring."""

    waiters: tuple[Waiter, ...]
    cycle: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [line for alike in self._alike() for line in _shown(alike)]
        return "\n".join(lines + ([f"  cycle: {self.ring()}"] if self.cycle else []))

    def _alike(self) -> list[list[Waiter]]:
        """The waiters, those together that do the same on different tiles."""
        groups: dict[object, list[Waiter]] = {}
        for waiter in self.waiters:
            tile, _, who = waiter.who.rpartition(") ")
            same = (who, waiter.where.get("pc"), waiter.reason, waiter.detail, waiter.history)
            groups.setdefault(same if tile else waiter.who, []).append(waiter)
        return list(groups.values())

    def headline(self) -> str:
        """The root of all the waits: the cycle, or the wait that no other one explains."""
        root = self.waiters[0]
        if root.who in self.cycle:
            return f"a cycle of waits: {self.ring()}"
        text = f"{root.who} waits for {root.reason}"
        able = {one.who: one for one in root.releasers if one.able}
        if not able:
            return f"{text}, and nothing that could give it was found"
        if len(able) > 1:
            who = " or ".join(f"{one.who} ({one.state})" for one in able.values())
            return f"{text}, which {who} could give"
        (only,) = able.values()
        return f"{text}, which {only.who} could give ({only.how}); {only.who} {only.state}"

    def ring(self) -> str:
        """The cycle in words: who needs what from whom."""
        by_name = {waiter.who: waiter for waiter in self.waiters}
        parts = []
        for i, name in enumerate(self.cycle):
            other = self.cycle[(i + 1) % len(self.cycle)]
            waiter = by_name[name]
            alone = "only " if len(waiter.releasers) == 1 else ""
            how = next(r.how for r in waiter.releasers if r.who == other)
            whom = "itself" if other == name else other
            parts.append(f"{name} needs {waiter.reason}: {alone}{whom} can give it ({how})")
        return "; ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """JSON form."""
        return {
            "waiters": [asdict(w) for w in self.waiters],
            "cycle": list(self.cycle),
            "text": str(self).splitlines(),
        }


def set_idle_apart(error: NoProgress, is_idle: Callable[[Waiter], bool]) -> None:
    """Those that wait in firmware come to the hint, where others wait in kernels."""
    graph = error.graph
    if not isinstance(graph, WaitGraph):
        return
    idle = [waiter.who for waiter in graph.waiters if is_idle(waiter)]
    at_work = tuple(waiter for waiter in graph.waiters if waiter.who not in idle)
    if at_work and idle:
        error.graph = replace(graph, waiters=at_work)
        error.hint = f"{error.hint}; in firmware: {_some(idle)}"


def _shown(alike: list[Waiter]) -> list[str]:
    """The lines of waiters of which the first stands for all."""
    lines, others = alike[0].lines(), [waiter.who for waiter in alike[1:]]
    if not others:
        return lines
    does = "does" if len(others) == 1 else "do"
    return [lines[0], f"      so {does} {_some(others)}", *lines[1:]]


def _some(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _waiter(agents: Agents, who: str, core: int, pc: int, wait: Wait) -> Waiter:
    where = where_core(agents.tile, core, pc, **wait.instruction).as_dict()
    return Waiter(
        who=who,
        kind=wait.resource.kind,
        reason=wait.reason,
        place=agents.tile.place(core, pc),
        detail=wait.detail,
        resource=wait.resource.numbers,
        releasers=tuple(wait.releasers),
        where=where,
        history=wait.history,
    )


def _cycle(waiters: Iterable[Waiter]) -> tuple[str, ...]:
    """The shortest ring of waiters, each of which is a releaser of the one before it."""
    after: dict[str, list[str]] = {}
    for waiter in waiters:
        after.setdefault(waiter.who, []).extend(r.who for r in waiter.releasers if r.able)
    best: tuple[str, ...] = ()
    for start in after:
        paths: list[tuple[str, ...]] = [(start,)]
        seen = {start}
        while paths and not (best and len(paths[0]) >= len(best)):
            path = paths.pop(0)
            for name in after[path[-1]]:
                if name == start:
                    best, paths = path, []
                    break
                if name in after and name not in seen:
                    seen.add(name)
                    paths.append((*path, name))
    return best


def _root_first(waiters: list[Waiter]) -> tuple[Waiter, ...]:
    """The waits that nobody can end, then rings, then what only follows from waits before it."""
    by_name: dict[str, set[str]] = {}  # of a tile, as a sender, all that wait on it
    for waiter in waiters:
        by_name.setdefault(waiter.who, set()).add(waiter.who)
        by_name.setdefault(f"tile {waiter.who.partition(' ')[0]}", set()).add(waiter.who)
    others = {
        id(one): set().union(*(by_name.get(r.who, set()) for r in one.releasers if r.able))
        for one in waiters
    }
    ordered = [waiter for waiter in waiters if not others[id(waiter)]]
    left = [waiter for waiter in waiters if others[id(waiter)]]
    while left:
        known = {waiter.who for waiter in ordered}
        after = [one for one in left if others[id(one)] & known] or _ring_of(left)
        ordered += after
        done = {id(one) for one in after}
        left = [one for one in left if id(one) not in done]
    return tuple(ordered)


def _ring_of(waiters: list[Waiter]) -> list[Waiter]:
    """The members of the shortest ring, first who has a giver outside; all where there is none."""
    ring = _cycle(waiters)
    members = [waiter for waiter in waiters if waiter.who in ring]
    members.sort(key=lambda one: all(r.who in ring for r in one.releasers if r.able))
    return members or waiters


def graph_of(waiters: list[Waiter]) -> WaitGraph:
    """The graph of these, the root of the waits first; a cycle of those that have but one giver."""
    givers: dict[str, set[str]] = {}
    for one in waiters:
        named = {_TRISC.sub(r"thread T\1", r.who) for r in one.releasers if r.able}
        givers.setdefault(one.who, set()).update(named)
    return WaitGraph(_root_first(waiters), _cycle(w for w in waiters if len(givers[w.who]) == 1))


def wait_for_graph(tile: Tile, loops: tuple[Loop, ...] = ()) -> WaitGraph:
    """The graph of `tile` (a Tile) as it stands; `loops` are those of its running cores."""
    agents = Agents(tile, loops)
    s = tile.state
    waiters = [
        _waiter(
            agents,
            f"thread T{t}",
            *waits.thread_place(agents, t),
            waits.thread(agents, t),
        )
        for t in range(THREADS)
        if s.gate_full[t]
    ]
    for c in range(CORES):
        if s.core_state[c] == BLOCKED:
            wait = waits.core(agents, c, int(s.core_wait[c]), int(s.core_address[c]))
            waiters.append(_waiter(agents, CORE_NAMES[c], c, int(s.pc[c]), wait))
    for loop in loops:
        for pc, wait in waits.loop(agents, loop):
            waiters.append(_waiter(agents, CORE_NAMES[loop.core], loop.core, pc, wait))
    return graph_of(waiters)


def no_progress(tile: Tile, loops: tuple[Loop, ...]) -> NoProgress:
    """Deadlock (no loops: everything waits) or livelock (running cores go round in `loops`)."""
    return of_graph(tile, wait_for_graph(tile, loops), loops)


def of_graph(tile: Tile, graph: WaitGraph, loops: tuple[Loop, ...]) -> NoProgress:
    """The error of the only tile that is in use, from its graph."""
    if not loops:
        text = f"deadlock: nothing can move any more ({len(graph.waiters)} waiting)"
        how = advice(tile, graph)
        return NoProgress(text, graph=graph, category="Deadlock", rule="DEADLOCK", hint=how)
    names = " and ".join(CORE_NAMES[loop.core] for loop in loops)
    theirs = "the loops they are in" if len(loops) > 1 else "the loop it is in"
    text = f"livelock: {names} can never leave {theirs}, whatever time passes"
    how = f"{advice(tile, graph)}; where the host is to answer, run with --livelock 0"
    return NoProgress(text, graph=graph, category="Livelock", rule="LIVELOCK", hint=how)


def release(graph: WaitGraph) -> str:
    """Which core is to be released, where a wait needs one that is in reset; "" for none."""
    for waiter in graph.waiters:
        for releaser in waiter.releasers:
            if releaser.able and "is in reset" in releaser.state:
                return f"release {releaser.who}: nothing has cleared its bit of SOFT_RESET_0"
    return ""


def advice(tile: Tile, graph: WaitGraph) -> str:
    """What to look at next: what is certain of the waits, otherwise the root of them."""
    s = tile.state
    if graph.cycle:
        return "one in the cycle must give before it takes; bhemu trace shows what ran before"
    for one in graph.waiters:
        if one.kind == "semaphore" and one.resource["max"] == 0:
            return f"no SEMINIT has given semaphore {one.resource['index']} a maximum"
    if text := release(graph):
        return text
    busy = [f"T{t}" for t in range(THREADS) if s.gate_full[t]]
    look = "bhemu trace shows the words before" if busy else "bhemu step shows the loop"
    return f"find who should have ended the wait of {graph.waiters[0].who}; {look}"
