"""Where modelled cycles went: by agent, by what it waited for, and by source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.memmap import CORE_NAMES
from bhemu.tensix.in_flight import NAMES
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.rules import CONDITIONS
from bhemu.timing import cycles, spent
from bhemu.timing.loop import FIRST_CORE, FIRST_THREAD

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

AGENTS = (*NAMES, *CORE_NAMES, "T0", "T1", "T2")
_WAITS = {
    spent.NO_WORD: "a word (its core has pushed none)",
    spent.RESULT: "a register's value, or L1",
}

_GUESSED = "loads of device registers, atomics, how many stores are not waited for"


class Row(NamedTuple):
    """Cycles of one agent at one pc: `waits_for` is "" where it works."""

    agent: str
    pc: int
    waits_for: str
    cycles: int
    times: int
    place: str


class Profile:
    """The rows of a tile that has run with modelled times; `full`: the table had no more room."""

    def __init__(self, tile: Tile) -> None:
        s = tile.state
        self.cycles, self.full = int(s.clock[0]), int(s.spent[0]) == spent.FULL
        counts = s.op_count.sum(axis=0)
        self.estimates = {
            cls.name: int(counts[opcode])
            for opcode, cls in REGISTRY.items()
            if counts[opcode] and (one := cycles.of(cls)) and one.kind == cycles.ESTIMATE
        }
        self.rows = sorted(_rows(tile), key=lambda row: (-row.cycles, row.agent, row.pc))

    def by_agent(self) -> dict[str, dict[str, int]]:
        """Cycles of each agent that did anything, by what it waited for; "" = it worked."""
        found: dict[str, dict[str, int]] = {}
        for name in AGENTS:
            own: dict[str, int] = defaultdict(int)
            for row in self.rows:
                if row.agent == name:
                    own[row.waits_for] += row.cycles
            if own:
                found[name] = dict(own)
        return found

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: cycles, agents, rows."""
        return {
            "cycles": self.cycles,
            "complete": not self.full,
            "estimates": self.estimates,
            "not_modelled": cycles.NOT_MODELLED,
            "agents": self.by_agent(),
            "rows": [row._asdict() for row in self.rows],
        }

    def lines(self, most: int) -> Iterator[str]:
        """A table of the agents, and the `most` longest waits by source line."""
        yield f"{self.cycles} cycles in modelled time (docs/timing.md: figures and their sources)"
        yield ""
        yield f"{'':12} {'works':>8} {'':>6}  waits most for"
        for name, own in self.by_agent().items():
            works = own.pop("", 0)
            longest = max(own, key=lambda text: own[text], default="")
            share = f"{100 * works / max(self.cycles, 1):.0f} %"
            wait = f"{own[longest]} for {longest}" if longest else ""
            yield f"{name:12} {works:8} {share:>6}  {wait}".rstrip()
        waits = [row for row in self.rows if row.waits_for][:most]
        if waits:
            yield ""
            yield f"{'cycles':>8} {'times':>6}  which waits, and for what"
        for row in waits:
            yield f"{row.cycles:8} {row.times:6}  {row.agent} for {row.waits_for}: {row.place}"
        yield ""
        named = ", ".join(f"{name} ({times})" for name, times in self.estimates.items())
        yield f"estimates: of words {named or 'none'}; of cores {_GUESSED}"
        yield f"not modelled: {cycles.NOT_MODELLED}"
        if self.full:
            yield "the table of places is full: what was new after that is not counted"


def _rows(tile: Tile) -> Iterator[Row]:
    s = tile.state
    for i in s.spent_key[:, 0].nonzero()[0]:
        agent, pc, condition = (int(n) for n in s.spent_key[i])
        agent -= 1
        waits = _WAITS.get(condition) or (CONDITIONS[condition].text if condition else "")
        place = tile.place(_core(tile, agent, pc), pc)
        name = AGENTS[agent]
        yield Row(name, pc, waits, int(s.spent_cycles[i]), int(s.spent_times[i]), place)


def _core(tile: Tile, agent: int, pc: int) -> int:
    """The core whose code stands at a pc: of a word the one that pushed it."""
    if FIRST_CORE <= agent < FIRST_THREAD:
        return agent - FIRST_CORE
    first = agent - FIRST_THREAD + 1 if agent >= FIRST_THREAD else 1
    for core in (first, *range(len(CORE_NAMES))):
        if tile.locate(core, pc)[0] is not None:
            return int(core)
    return int(first)
