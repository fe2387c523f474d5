"""Where modelled cycles went: by agent, by what it waited for, and by source line; transfers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc import times
from bhemu.noc.grid import tile_at
from bhemu.riscv.formats import Branch
from bhemu.riscv.isa import decode
from bhemu.tensix.in_flight import NAMES
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.rules import CONDITIONS
from bhemu.timing import cycles, spent
from bhemu.timing.loop import FIRST_CORE, FIRST_THREAD

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

AGENTS = (*NAMES, *CORE_NAMES, "T0", "T1", "T2")
_WAITS = {
    spent.NO_WORD: "a word (its core has pushed none)",
    spent.RESULT: "a register's value, or L1",
}
_MARKS = {
    spent.NOC_READ: "the answers of NoC reads",
    spent.NOC_ACK: "the acknowledgements of NoC writes, or requests of one id",
    spent.NOC_ATOMIC: "the answers of NoC atomics",
}
_LOOP = 8  # instructions of a loop that waits for a counter of an NIU, at most
_NOT_OF_NOC = "arbitration of routers packet by packet, row misses and refresh of DRAM"
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
            if counts[opcode] and (one := cycles.of(cls)) and one.kind == times.ESTIMATE
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
    """The rows of the record; those of a loop that polls a counter of an NIU are one wait."""
    s = tile.state
    table = [(*map(int, s.spent_key[i]), int(i)) for i in s.spent_key[:, 0].nonzero()[0]]
    loops = {
        (agent, pc, condition): (loop, i)
        for agent, pc, condition, i in table
        if condition in _MARKS and (loop := _loop(tile, pc)) is not None
    }
    polled: dict[tuple[int, int, int], int] = defaultdict(int)
    for agent, pc, condition, i in table:
        if condition in _MARKS:
            continue
        around = (
            key for key, ((first, last), _) in loops.items()
            if key[0] == agent and first <= pc <= last
        )  # fmt: skip
        taken, count = int(s.spent_cycles[i]), int(s.spent_times[i])
        if (key := next(around, None)) is not None:
            polled[key] += taken
            continue
        waits = _WAITS.get(condition) or (CONDITIONS[condition].text if condition else "")
        yield _row(tile, agent, pc, waits, taken, count)
    for (agent, pc, what), taken in polled.items():
        count = int(s.spent_times[loops[agent, pc, what][1]])
        yield _row(tile, agent, pc, _MARKS[what], taken, count)


def _row(tile: Tile, agent: int, pc: int, waits: str, taken: int, count: int) -> Row:
    place = tile.place(_core(tile, agent - 1, pc), pc)
    return Row(AGENTS[agent - 1], pc, waits, taken, count, place)


def _loop(tile: Tile, pc: int) -> tuple[int, int] | None:
    """First and last pc of a short loop around an instruction, None without one."""
    for at in range(pc, min(pc + 4 * _LOOP, L1_SIZE - 4), 4):
        word = tile.read32(at)
        cls = decode(word)
        if cls is not None and issubclass(cls, Branch):
            first = at + cls.offset.get(word)
            if pc - 4 * _LOOP <= first <= pc:
                return first, at
    return None


def _core(tile: Tile, agent: int, pc: int) -> int:
    """The core whose code stands at a pc: of a word the one that pushed it."""
    if FIRST_CORE <= agent < FIRST_THREAD:
        return agent - FIRST_CORE
    first = agent - FIRST_THREAD + 1 if agent >= FIRST_THREAD else 1
    for core in (first, *range(len(CORE_NAMES))):
        if tile.locate(core, pc)[0] is not None:
            return int(core)
    return int(first)


class Transfer(NamedTuple):
    """Requests to the NoC of one core at one pc: `cycles` of all, and what they waited for."""

    tile: str
    core: str
    pc: int
    what: str
    requests: int
    cycles: int
    niu: int
    links: int
    dram: int
    place: str


class ChipProfile:
    """A chip that has run with modelled times: each of its tiles, and all transfers.

    `begun`: the clock from which cycles are counted, behind the boot of firmware.
    """

    def __init__(self, chip: Machine, begun: int = 0) -> None:
        self.cycles, c = chip.clock - begun, chip.network.state
        self.tiles = {f"{t.xy[0]},{t.xy[1]}": Profile(t) for t in chip.tiles_made()}
        self.full = int(c.noc_counts[0]) > 1
        rows = []
        for row in c.noc_spent[c.noc_spent[:, 0] != 0]:
            key, pc, what, requests, taken, niu, links, dram = (int(n) for n in row)
            tile, core = chip.tile_at_index((key - 1) >> 8), (key - 1) & 0xFF
            xy = tile_at((key - 1) >> 8)
            named = f"{request.KIND_NAMES[what & 3]} of {noc_map.KIND_NAMES[what >> 2]}"
            by_core = core < len(CORE_NAMES)
            name = CORE_NAMES[core] if by_core else "host"
            place = tile.place(core, pc) if by_core else ""
            waits = niu, links, dram
            where = f"{xy[0]},{xy[1]}"
            rows.append(Transfer(where, name, pc, named, requests, taken, *waits, place))
        self.transfers = sorted(rows, key=lambda row: (-row.cycles, row.tile, row.core, row.pc))

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: cycles, tiles by "x,y" (Profile.as_dict), transfers."""
        return {
            "cycles": self.cycles,
            "complete": not self.full,
            "not_modelled": _NOT_OF_NOC,
            "noc": {name: figure._asdict() for name, figure in times.FIGURES.items()},
            "tiles": {xy: profile.as_dict() for xy, profile in self.tiles.items()},
            "transfers": [row._asdict() for row in self.transfers],
        }

    def lines(self, most: int) -> Iterator[str]:
        """What the cores of each tile wait for most, the longest waits, the longest transfers."""
        yield f"{self.cycles} cycles in modelled time (docs/timing.md: figures and their sources)"
        yield ""
        yield f"{'tile':>6} {'':12} {'works':>8}  waits most for"
        for xy, profile in self.tiles.items():
            for name, own in profile.by_agent().items():
                waits = {text: n for text, n in own.items() if text}
                longest = max(waits, key=lambda text: waits[text], default="")
                wait = f"{waits[longest]} for {longest}" if longest else ""
                yield f"{xy:>6} {name:12} {own.get('', 0):8}  {wait}".rstrip()
        found = [(row, xy) for xy, one in self.tiles.items() for row in one.rows if row.waits_for]
        yield ""
        yield f"{'cycles':>8} {'times':>6} {'tile':>6}  which waits, and for what"
        for row, xy in sorted(found, key=lambda one: -one[0].cycles)[:most]:
            what = f"{row.agent} for {row.waits_for}: {row.place}"
            yield f"{row.cycles:8} {row.times:6} {xy:>6}  {what}"
        yield ""
        head = f"{'cycles':>8} {'requests':>8} {'NIUs':>7} {'links':>7} {'DRAM':>7} {'tile':>6}"
        yield f"{head}  transfers, with what of their cycles they waited for"
        for one in self.transfers[:most]:
            waits_ = f"{one.niu:7} {one.links:7} {one.dram:7}"
            row_ = f"{one.cycles:8} {one.requests:8} {waits_} {one.tile:>6}"
            yield f"{row_}  {one.what}: {one.place}"
        yield ""
        guessed = ", ".join(name for name, f in times.FIGURES.items() if f.kind == times.ESTIMATE)
        words = {name for profile in self.tiles.values() for name in profile.estimates}
        named = ", ".join(sorted(words)) or "none"
        yield f"estimates: of words {named}; of cores {_GUESSED}; of the NoC {guessed}"
        yield f"not modelled: {cycles.NOT_MODELLED}, {_NOT_OF_NOC}"
        if self.full or any(profile.full for profile in self.tiles.values()):
            yield "the table of places is full: what was new after that is not counted"
