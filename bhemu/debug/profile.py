"""Where modelled cycles went: by agent, by what it waited for, and by source line; transfers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.sentences import CONDITIONS
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc import timed, times
from bhemu.noc.grid import XY, tile_at
from bhemu.riscv.formats import Branch
from bhemu.riscv.isa import decode
from bhemu.tensix import in_flight, observe
from bhemu.tensix.in_flight import NAMES
from bhemu.tensix.insn import instructions
from bhemu.timing import cycles
from bhemu.timing.loop import FIRST_CORE, FIRST_THREAD

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

AGENTS = (*NAMES, *CORE_NAMES, "T0", "T1", "T2")
_WAITS = {
    observe.NO_WORD: "a word (its core has pushed none)",
    observe.RESULT: "a register's value, or L1",
}
_MARKS = {
    observe.NOC_READ: "the answers of NoC reads",
    observe.NOC_ACK: "the acknowledgements of NoC writes, or requests of one id",
    observe.NOC_ATOMIC: "the answers of NoC atomics",
}
_LOOP = 8  # instructions of a loop that waits for a counter of an NIU, at most
_NOT_OF_NOC = "arbitration of routers packet by packet, row misses and refresh of DRAM"
SOURCES = {
    times.ISA: "isa text", times.MEASURED: "measured", times.DERIVED: "derived",
    times.ESTIMATE: "estimate",
}  # fmt: skip
"""Where a figure is from, in words, the most certain first. One that is made of several has the
least certain of theirs."""
_CERTAINTY = tuple(SOURCES.values())
_GUESSED = "loads of device registers, how many stores are not waited for"


class Row(NamedTuple):
    """Cycles of one agent at one pc: `waits_for` is "" where it works, `word` what it executes.

    source: one of SOURCES' words.
    """

    agent: str
    pc: int
    waits_for: str
    cycles: int
    times: int
    where: Where
    word: str
    source: str


class Profile:
    """The rows of a tile that has run with modelled times; `full`: the table had no more room.

    part: what it has spent and done since a moment: `spent_cycles`, `spent_times`, `op_count`.
    """

    def __init__(self, tile: Tile, part: tuple[Any, Any, Any] | None = None) -> None:
        s = tile.state
        self.xy, self.full = tile.xy, int(s.spent[0]) == observe.TABLE_FULL
        taken, count, words = part or (s.spent_cycles, s.spent_times, s.op_count)
        counts = words.sum(axis=0)
        self.sources = Counter[str]()  # words by where their figure is from
        self.estimates: dict[str, int] = {}
        for opcode, cls in instructions().items():
            if counts[opcode] and (figure := cycles.of(cls)):
                self.sources[figure.kind] += int(counts[opcode])
                if figure.kind == times.ESTIMATE:
                    self.estimates[cls.name] = int(counts[opcode])
        rows = _sourced(_rows(tile, taken, count))
        self.rows = sorted(rows, key=lambda row: (-row.cycles, *row[:2], row.word))

    def source_of(self, name: str) -> str:
        """Where the figures are from by which an agent works."""
        found = (row.source for row in self.rows if row.agent == name and not row.waits_for)
        return least_certain(found)

    def by_agent(self) -> dict[str, dict[str, int]]:
        """Cycles of each agent that did anything, by what it waited for; "" = it worked."""
        found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for row in self.rows:
            found[row.agent][row.waits_for] += row.cycles
        return {name: dict(found[name]) for name in AGENTS if name in found}


def waits(profiles: Iterable[Profile]) -> list[tuple[Row, XY]]:
    """The rows of waits with their tiles, the longest first."""
    rows = [(row, one.xy) for one in profiles for row in one.rows if row.waits_for]
    return sorted(rows, key=lambda pair: -pair[0].cycles)


def _rows(tile: Tile, spent_cycles: Any, spent_times: Any) -> Iterator[Row]:
    """The rows of the record; those of a loop that polls a counter of an NIU are one wait."""
    s = tile.state
    used = (spent_cycles != 0) | (spent_times != 0)
    table = [(*map(int, s.spent_key[i]), int(i)) for i in used.nonzero()[0]]
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
        taken, count = int(spent_cycles[i]), int(spent_times[i])
        if (key := next(around, None)) is not None:
            polled[key] += taken
            continue
        yield _row(tile, agent, pc, condition, taken, count)
    for (agent, pc, what), taken in polled.items():
        yield _row(tile, agent, pc, what, taken, int(spent_times[loops[agent, pc, what][1]]))


def _row(tile: Tile, agent: int, pc: int, condition: int, taken: int, count: int) -> Row:
    """A row of work with where its figure is from, or of a wait, which `_sourced` completes."""
    where = error_text.where_core(tile, core_of(tile, agent - 1, pc), pc)
    word, source = "", SOURCES[times.MEASURED] if condition == 0 else ""
    if condition < 0:
        cls = instructions()[-1 - condition]
        figure = cycles.of(cls)
        word, source = cls.name, SOURCES[times.MEASURED]  # a word a cycle leaves the gate
        if figure and (agent - 1 < FIRST_CORE or cycles.is_scalar(cls)):
            source = SOURCES[figure.kind]
    return Row(AGENTS[agent - 1], pc, reason(condition), taken, count, where, word, source)


def reason(condition: int) -> str:
    """What an agent waits for, in words; "" where it works."""
    told = {**_WAITS, **_MARKS}.get(condition)
    return told or (CONDITIONS[condition].text if condition > 0 else "")


def least_certain(sources: Iterable[str]) -> str:
    """Where a figure is from that is made of some of these; "" of none."""
    return max(filter(None, sources), key=_CERTAINTY.index, default="")


def _sourced(rows: Iterable[Row]) -> list[Row]:
    """The rows; a wait for a unit is as certain as its words, another one as all that was timed."""
    found = list(rows)
    of_unit = {
        name: least_certain(row.source for row in found if row.agent == name) for name in NAMES
    }
    every = least_certain(row.source for row in found)
    by_text = {_WAITS[observe.RESULT]: SOURCES[times.ESTIMATE]}  # loads of devices are estimates
    for unit, name in enumerate(NAMES):
        for condition in (in_flight.WAIT_UNIT[unit], in_flight.WAIT_IDLE[unit]):
            by_text[CONDITIONS[condition].text] = of_unit[name]
    return [
        row if row.source else row._replace(source=by_text.get(row.waits_for) or every)
        for row in found
    ]


def _loop(tile: Tile, pc: int) -> tuple[int, int] | None:
    """First and last pc of a short loop around an instruction, None without one."""
    for at in range(pc, min(pc + 4 * _LOOP, L1_SIZE - 4), 4):
        word = tile.read32(at)
        if (cls := decode(word)) is not None and issubclass(cls, Branch):
            first = at + cls.offset.get(word)
            if pc - 4 * _LOOP <= first <= pc:
                return first, at
    return None


def core_of(tile: Tile, agent: int, pc: int) -> int:
    """The core whose code stands at a pc: of a word the one that pushed it."""
    if FIRST_CORE <= agent < FIRST_THREAD:
        return agent - FIRST_CORE
    first = agent - FIRST_THREAD + 1 if agent >= FIRST_THREAD else 1
    for core in (first, *range(len(CORE_NAMES))):
        if tile.locate(core, pc)[0] is not None:
            return int(core)
    return int(first)


def reported(
    taken: int, profiles: list[Profile], transfers: list[Transfer], *, complete: bool
) -> dict[str, Any]:
    """JSON-ready: agents and units by tile, lines, transfers, where figures are from, all rows.

    "bound": the agent that works most of the cycles. "sources": words by source of their figure.
    """
    agents: list[dict[str, Any]] = []
    units: list[dict[str, Any]] = []
    for profile in profiles:
        for name, own in profile.by_agent().items():
            waiting = {text: n for text, n in own.items() if text}
            one = {"tile": list(profile.xy), "name": name, "busy": own.get("", 0)}
            one["source"] = profile.source_of(name)
            (units if name in NAMES else agents).append({**one, "waiting": waiting})
    busiest = max((*agents, *units), key=lambda one: int(one["busy"]), default=None)
    bound = "" if busiest is None else "{name} of tile ({tile[0]},{tile[1]})".format(**busiest)
    moved = [row._asdict() for row in transfers]
    counts: Counter[str] = sum((profile.sources for profile in profiles), Counter())
    return {
        "cycles": taken,
        "complete": complete,
        "bound": bound,
        "agents": agents,
        "units": units,
        "lines": _by_line(profiles),
        "noc": [one for one in moved if "DRAM" not in one["what"]],
        "dram": [one for one in moved if "DRAM" in one["what"]],
        "sources": {name: counts[kind] for kind, name in SOURCES.items()},
        "estimates": dict(sum((Counter(one.estimates) for one in profiles), Counter())),
        "not_modelled": f"{cycles.NOT_MODELLED}, {_NOT_OF_NOC}",
        "rows": [
            {
                "tile": list(profile.xy),
                **{name: v for name, v in row._asdict().items() if name != "where"},
                "place": str(row.where),
            }
            for profile in profiles
            for row in profile.rows
        ],
    }


def _by_line(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Cycles of cores and threads by source line, the longest first: those of work, the waits.

    "bound": what takes most of them; "source": where the least certain figure is from.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for profile in profiles:
        for row in profile.rows:
            where = row.where
            if row.agent in NAMES or not where.line:
                continue
            key = profile.xy, where.core, where.file, where.line
            named: dict[str, Any] = {"tile": list(profile.xy), "core": where.core}
            named |= {"file": where.file, "line": where.line, "cycles": 0, "waiting": {}}
            named |= {"bound": "", "source": ""}
            one = found.setdefault(key, named)
            one["cycles"] += row.cycles
            if row.waits_for:
                waiting = one["waiting"]
                waiting[row.waits_for] = waiting.get(row.waits_for, 0) + row.cycles
            one["source"] = least_certain((one["source"], row.source))
    for one in found.values():
        worked = one["cycles"] - sum(one["waiting"].values())
        longest = max(one["waiting"], key=one["waiting"].__getitem__, default="")
        one["bound"] = longest if longest and one["waiting"][longest] > worked else "its own work"
    return sorted(found.values(), key=lambda one: -int(one["cycles"]))


def differing(now: dict[str, Any], other: dict[str, Any], most: int) -> Iterator[str]:
    """Lines of source whose cycles differ most between two reports; `other` is subtracted."""
    yield f"{now['cycles']} cycles, {now['cycles'] - other['cycles']:+} against {other['cycles']}"
    yield f"{'cycles':>8} {'change':>8}  line, of all tiles"
    held = Counter[str](), Counter[str]()
    for found, report in zip(held, (now, other), strict=True):
        for one in report["lines"]:
            found[f"{one['core']} {one['file']}:{one['line']}"] += one["cycles"]
    changes = {key: held[0][key] - held[1][key] for key in held[0] | held[1]}
    for key in sorted(changes, key=lambda key: (-abs(changes[key]), key))[:most]:
        if changes[key]:
            yield f"{held[0][key]:8} {changes[key]:+8}  {key}"


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
    source: str


def asked(what: int) -> str:
    """What a request asks for, in words, of its number in the record of a chip."""
    kind = noc_map.KIND_NAMES[(what & ~timed.MULTICAST) >> 2]
    many = "multicast " if what & timed.MULTICAST else ""
    return f"{many}{request.KIND_NAMES[what & 3]} of {kind}"


def transfer_source(what: int) -> str:
    """Where the least certain figure of such a request is from."""
    kind = (what & ~timed.MULTICAST) >> 2
    used = ["hop", "flit on a link", "flit in or out of an NIU", "out of an NIU", "into an NIU"]
    if what & timed.MULTICAST:
        used.append("path of a multicast, a hop")
    elif kind == noc_map.DRAM:
        read = what & 3 == request.READ
        used += ["read of DRAM"] if read else ["write to DRAM", "writes that a bank keeps"]
    elif kind != noc_map.TENSIX:
        used.append("register or memory of another tile")
    return least_certain(SOURCES[times.FIGURES[name].kind] for name in used)


class Link(NamedTuple):
    """A link of a NoC from the router at a physical coordinate, along "x" or "y".

    flits: of 64 bytes, so cycles in which it is taken. waited: cycles that packets waited for it.
    """

    noc: int
    xy: XY
    axis: str
    flits: int
    waited: int


class MachineProfile:
    """What has run with modelled times: each of its tiles; of a chip all transfers, the links.

    `begun`: the clock from which cycles are counted, after the boot of firmware. `links`: those of
    both NoCs that carried anything; `full`: a table had no more room.
    """

    def __init__(self, machine: Machine | Tile, begun: int = 0) -> None:
        self.tiles = {f"{t.xy[0]},{t.xy[1]}": Profile(t) for t in machine.tiles_made()}
        self.full = any(profile.full for profile in self.tiles.values())
        self.links, self.transfers = list[Link](), list[Transfer]()
        self.is_chip = machine.network is not None
        if machine.network is None:
            self.cycles = int(machine.state.clock[0])
            return
        self.cycles, c = machine.clock - begun, machine.network.state
        self.full |= int(c.noc_counts[0]) > 1
        for noc, axis, at in zip(*(c.link_used != 0).any(axis=-1).nonzero(), strict=True):
            y, x = divmod(int(at), noc_map.WIDTH)
            flits, waited = (int(n) for n in c.link_used[noc, axis, at])
            xy = noc_map.on_noc(int(noc), (x, y))
            self.links.append(Link(int(noc), xy, "xy"[axis], flits, waited // times.PARTS))
        for row in c.noc_spent[c.noc_spent[:, 0] != 0]:
            key, pc, what, requests, taken, niu, on_links, dram = (int(n) for n in row)
            tile, core = machine.tile_at_index((key - 1) >> 8), (key - 1) & 0xFF
            xy = tile_at((key - 1) >> 8)
            by_core = core < len(CORE_NAMES)
            name = CORE_NAMES[core] if by_core else "host"
            place = tile.place(core, pc) if by_core else ""
            head = f"{xy[0]},{xy[1]}", name, pc, asked(what), requests, taken
            source = transfer_source(what)
            self.transfers.append(Transfer(*head, niu, on_links, dram, place, source))
        self.transfers.sort(key=lambda row: (-row.cycles, row.tile, row.core, row.pc))

    @property
    def busiest(self) -> str | None:
        """The agent that works most of the cycles, of any tile; None when all are idle."""
        tiles = self.tiles.values()
        works = [(own.get("", 0), name) for one in tiles for name, own in one.by_agent().items()]
        taken, name = max(works, key=lambda one: one[0], default=(0, ""))
        return name if taken else None

    def source_of(self, name: str) -> str:
        """Where the figures are from by which an agent works, the least certain of all tiles."""
        return least_certain(one.source_of(name) for one in self.tiles.values())

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, as `reported`."""
        tiles = list(self.tiles.values())
        report = reported(self.cycles, tiles, self.transfers, complete=not self.full)
        return {**report, "links": [link._asdict() for link in self.links]}

    def lines(self, most: int) -> Iterator[str]:
        """A table of the agents, the `most` longest waits by source line, of a chip transfers."""

        def at(xy: str) -> str:
            return f"{xy:>6} " if self.is_chip else ""

        yield f"{self.cycles} cycles in modelled time (docs/timing.md: figures and their sources)"
        yield ""
        yield f"{at('tile')}{'':12} {'works':>8} {'':>6} {'figures':9} waits most for"
        for xy, profile in self.tiles.items():
            for name, own in profile.by_agent().items():
                works = own.pop("", 0)
                longest = max(own, key=own.__getitem__, default="")
                wait = f"{own[longest]} for {longest}" if longest else ""
                source = profile.source_of(name) if works else ""
                share = f"{100 * works / max(self.cycles, 1):.0f} %"
                yield f"{at(xy)}{name:12} {works:8} {share:>6} {source:9} {wait}".rstrip()
        waited = waits(self.tiles.values())[:most]
        if waited:
            yield ""
            head = f"{'cycles':>8} {'times':>6} {at('tile')}"
            yield f"{head}{'figure':9} which waits, and for what"
        for row, (x, y) in waited:
            what = f"{row.agent} for {row.waits_for}: {row.where}"
            yield f"{row.cycles:8} {row.times:6} {at(f'{x},{y}')}{row.source:9} {what}"
        if self.transfers:
            yield ""
            head = f"{'cycles':>8} {'requests':>8} {'NIUs':>7} {'links':>7} {'DRAM':>7} {'tile':>6}"
            yield f"{head} {'figures':9}  transfers, with what of their cycles they waited for"
        for one in self.transfers[:most]:
            waits_ = f"{one.niu:7} {one.links:7} {one.dram:7}"
            row_ = f"{one.cycles:8} {one.requests:8} {waits_} {one.tile:>6}"
            yield f"{row_} {one.source:9}  {one.what}: {one.place}"
        yield ""
        report = self.as_dict()
        named = ", ".join(f"{name} ({n})" for name, n in report["estimates"].items()) or "none"
        told = f"estimates: of words {named}; of cores {_GUESSED}"
        if self.is_chip:
            figures = times.FIGURES.items()
            told += f"; of the NoC {', '.join(n for n, f in figures if f.kind == times.ESTIMATE)}"
        yield told
        yield f"not modelled: {report['not_modelled'] if self.is_chip else cycles.NOT_MODELLED}"
        if self.full:
            yield "the table of places is full: what was new after that is not counted"
