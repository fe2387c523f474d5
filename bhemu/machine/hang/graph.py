"""The wait-for graph of a hang, on one tile and over the NoC, and who could write over that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices.niu_request import at as shown
from bhemu.errors import NoProgress
from bhemu.machine.error_text import where_core
from bhemu.machine.hang import waits
from bhemu.machine.hang.explore import DECIMAL, Loop, Value, livelock
from bhemu.machine.hang.givers import (
    NEVER,
    NO_MORE,
    Agents,
    Releaser,
    aims,
    arrivals,
    last_writer,
    name_of,
    times,
)
from bhemu.machine.hang.waits import Waiter
from bhemu.memmap import CORE_NAMES, HOST, NOC_CTRL, NOC_RET_ADDR_LO, NOC_TARG_ADDR_LO
from bhemu.noc.grid import XY, number_at
from bhemu.tensix.state import BLOCKED, CORES, NOC_ARRIVED, THREADS

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile

# The graph of waits: blocked cores and threads, cores that poll, and the cycle they form.

_TRISC = re.compile(r"\btrisc(\d)$")  # pushes the words of its thread: the same giver
_NOTHING_MOVES = "nothing can move"
NOT_FOUND = ", and nothing that could give it was found"
_CYCLE = "one in the cycle must give before it takes; bhemu trace shows what ran before"
_FIND = "find the agent that should have ended the wait of"
_OVER = ("has parked", "has ended")
_NAMED = 4  # waiters that are named where more do the same
GAVE = "it has written there over the NoC"


@dataclass(frozen=True)
class WaitGraph:
    """All waiters of a tile that makes no progress; `cycle` names those that wait in a ring."""

    waiters: tuple[Waiter, ...]
    cycle: tuple[str, ...] = ()

    def __str__(self) -> str:
        groups: dict[object, list[Waiter]] = {}  # those that do the same on different tiles
        for one in self.waiters:
            tile, _, who = one.who.rpartition(") ")
            same = (who, one.where.get("pc"), one.reason, one.detail, one.history)
            groups.setdefault(same if tile else (one.who, one.reason), []).append(one)
        lines = []
        for first, *others in groups.values():
            head, *more = first.lines()
            does = "does" if len(others) == 1 else "do"
            so = f"      so {does} {_some([one.who for one in others])}"
            lines += [head, so, *more] if others else [head, *more]
        return "\n".join(lines + ([f"  cycle: {self.ring()}"] if self.cycle else []))

    def headline(self) -> str:
        """The root of all the waits: the cycle, or the wait that no other one explains."""
        root = self.waiters[0]
        text = f"{root.who} waits for {root.reason}{_present(root)}"
        if (rival := self.rival(root)) is not None:
            return f"{text}, and {rival.who} for the same word to become {rival.wanted}"
        if _is_past(root) and any(one.how.startswith(GAVE) for one in root.releasers):
            return f"{text}: it has passed that, and nothing has set it back"
        if root.who in self.cycle:
            return f"a cycle of waits: {self.ring()}"
        able = {one.who: one for one in root.releasers if one.able}
        given, few = [one.given for one in able.values() if one.given is not None], ""
        if given and len(given) == len(able):
            low, high = min(given), max(given)
            few = f"has written there {times(low)}" if low else "has not written there"
            few += f" so far, others {times(high)}, and " if low < high else " and "
            able = {who: one for who, one in able.items() if one.given == low}
        if not able and (most := _no_maximum(root)):
            return f"{text}: {most}"
        if not able:
            if behind := [f"{one.who} ({one.means})" for one in root.releasers if one.behind]:
                return f"{text}: {f' {NO_MORE}, and '.join(behind)} {NO_MORE}"
            if _got_nothing(root) and root.elsewhere:
                return f"{text}: {NEVER}, {root.elsewhere}"
            return f"{text}: {NEVER}{NOT_FOUND}" if _got_nothing(root) else text + NOT_FOUND
        states = {one.state for one in able.values()}
        if len(able) > 1 and len(states) == 1:
            each = f"each of them {few}{states.pop()}"
            return f"{text}, which {' or '.join(able)} could give; {each}"
        if len(able) > 1:
            who = " or ".join(f"{one.who} ({one.state})" for one in able.values())
            return f"{text}, which {who} could give"
        (only,) = able.values()
        few = few if len({*given}) > 1 else ""  # what it is able by says how often
        return f"{text}, which {only.who} could give ({only.means}); {only.who} {few}{only.state}"

    def rival(self, root: Waiter) -> Waiter | None:
        """Another core that waits for a value of a word that has passed what both wait for."""
        others = (one for one in self.waiters if one.who != root.who and _is_past(one))
        tile = root.where.get("tile")
        same = (
            one for one in others if one.resource == root.resource and one.where.get("tile") == tile
        )
        return next(same, None) if _is_past(root) else None

    def ring(self) -> str:
        """The cycle in words: what each member needs, and which other can give it."""
        parts = []
        for i, name in enumerate(self.cycle):
            other = self.cycle[(i + 1) % len(self.cycle)]
            waiter, by = next(
                (one, r)
                for one in self.waiters
                if one.who == name
                for r in one.releasers
                if r.able and r.who == other
            )
            alone = "only " if len(waiter.releasers) == 1 and waiter.kind != "l1" else ""
            giver = "itself" if other == name else other
            needs = f"{waiter.reason}{_present(waiter)}"
            if waiter.elsewhere:
                needs += f", where nothing was ever written over the NoC, {waiter.elsewhere}"
            parts.append(f"{name} needs {needs}: {alone}{giver} can give it ({by.means})")
        return "; ".join(parts)

    def as_dict(self) -> dict[str, object]:
        """JSON form."""
        waiters = [asdict(w) for w in self.waiters]
        for one in waiters:
            del one["elsewhere"]  # history says it
            for by in one["releasers"]:
                del by["given"], by["behind"]
        return {"waiters": waiters, "cycle": list(self.cycle), "text": str(self).splitlines()}


def _present(waiter: Waiter) -> str:
    """The present value of a polled word of L1, in words."""
    value = waiter.resource.get("value")
    if waiter.kind != "l1" or value is None:
        return ""
    now = str(value) if value < DECIMAL else f"{value:#x}"
    return f" (it is {now}{' already' if _is_past(waiter) else ''})"


def _is_past(waiter: Waiter) -> bool:
    """Whether a word that is counted up is past the one value with which a core goes on."""
    wanted = waiter.wanted
    known = wanted is not None and waiter.kind == "l1" and not wanted.more
    return known and wanted is not None and 0 < wanted.value < waiter.resource["value"]


def set_idle_apart(error: NoProgress, is_idle: Callable[[Waiter], bool]) -> None:
    """Those that wait in firmware come to the hint, where others wait in kernels."""
    graph = error.graph
    if not isinstance(graph, WaitGraph):
        return
    idle = [waiter.who for waiter in graph.waiters if is_idle(waiter)]
    back, at_work = "has ended: it is back in firmware", []
    for one in (one for one in graph.waiters if one.who not in idle):
        of = tuple(replace(r, state=back) if r.who in idle else r for r in one.releasers)
        at_work.append(replace(one, releasers=of))
    if at_work and idle:
        error.graph = graph_of(at_work)
        hint = _look(error.graph) if error.hint == _look(graph) else error.hint
        error.hint = f"{hint}; in firmware: {_some(idle)}"


def _some(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _waiter(agents: Agents, name: str, core: int, pc: int, wait: Waiter) -> Waiter:
    """A wait with the name and place of who waits."""
    where = where_core(agents.tile, core, pc, **wait.where).as_dict()
    return replace(wait, who=name, place=agents.tile.place(core, pc), where=where)


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
            if start in after[path[-1]]:
                best = path
                break
            for name in after[path[-1]]:
                if name in after and name not in seen:
                    seen.add(name)
                    paths.append((*path, name))
    return best


def _got_nothing(waiter: Waiter) -> bool:
    """Whether nothing was ever written to the awaited word, and nobody is known that would."""
    return NEVER in waiter.history and not any(one.able for one in waiter.releasers)


def graph_of(waiters: list[Waiter]) -> WaitGraph:
    """The graph of these, and a cycle of those that have but one giver.

    First come the waits that nothing can end, then rings, then what follows from waits before it.
    """
    givers: dict[str, set[str]] = {}
    for one in waiters:
        named = {_TRISC.sub(r"thread T\1", r.who) for r in one.releasers if r.able}
        givers.setdefault(one.who, set()).update(named)
    cycle = _cycle(w for w in waiters if len(givers[w.who]) == 1)
    by_name: dict[str, set[str]] = {}  # of a tile, as a sender, all that wait on it
    for waiter in waiters:
        by_name.setdefault(waiter.who, set()).add(waiter.who)
        by_name.setdefault(f"tile {waiter.who.partition(' ')[0]}", set()).add(waiter.who)
    others = {
        id(one): set().union(*(by_name.get(r.who, set()) for r in one.releasers if r.able))
        for one in waiters
    }
    ordered: list[Waiter] = []
    left = waiters
    while left:
        known = {waiter.who for waiter in ordered}
        after = [one for one in left if not others[id(one)] or others[id(one)] & known]
        if not ordered:  # among several roots who never got anything
            after.sort(key=lambda one: not _got_nothing(one))
        if not after:  # what no count up can end; of the shortest ring those with a giver outside
            after = [one for one in left if _is_past(one)]
        if not after:
            ring = _cycle(left)
            after = [waiter for waiter in left if waiter.who in ring]
            after.sort(key=lambda one: one.wanted is None)  # a program has chosen the others
            after.sort(key=lambda one: all(r.who in ring for r in one.releasers if r.able))
        ordered += after or left
        done = {id(one) for one in ordered}
        left = [one for one in left if id(one) not in done]
    first = next((cycle.index(one.who) for one in ordered if one.who in cycle), 0)
    return WaitGraph(tuple(ordered), cycle[first:] + cycle[:first])


def _waiters(agents: Agents) -> list[Waiter]:
    """All that wait on a tile."""
    s, waiters = agents.s, []
    for t in range(THREADS):
        if s.gate_full[t]:
            pc = int(s.latch_pc[t] if s.latch[t] else s.gate_pc[t])
            wait = waits.thread(agents, t)
            waiters.append(_waiter(agents, f"thread T{t}", int(s.gate_core[t]), pc, wait))
    for c in range(CORES):
        if s.core_state[c] == BLOCKED:
            wait = waits.core(agents, c, int(s.core_wait[c]), int(s.core_address[c]))
            waiters.append(_waiter(agents, CORE_NAMES[c], c, int(s.pc[c]), wait))
    for loop in agents.loops.values():
        for pc, wait in waits.loop(agents, loop):
            waiters.append(_waiter(agents, CORE_NAMES[loop.core], loop.core, pc, wait))
    return waiters


def _error(text: str, graph: WaitGraph | None, hint: str, *, live: bool) -> NoProgress:
    """The error of a livelock or deadlock; without a graph, which takes longer than many runs."""
    kind = "Livelock" if live else "Deadlock"
    text = f"{kind.lower()}: {text}"
    return NoProgress(text, graph=graph, category=kind, rule=kind.upper(), hint=hint)


def release(graph: WaitGraph) -> str:
    """Which core is to be released, where a wait needs one that is in reset; "" for none."""
    for waiter in graph.waiters:
        for releaser in waiter.releasers:
            if releaser.able and "is in reset" in releaser.state:
                return f"release {releaser.who}: nothing has cleared its bit of SOFT_RESET_0"
    return ""


def advice(tile: Tile, graph: WaitGraph) -> str:
    """What to look at next: what is certain of the waits, or else their root."""
    s = tile.state
    if graph.cycle:
        return _CYCLE
    if text := next(filter(None, map(_no_maximum, graph.waiters)), ""):
        return text
    if text := release(graph):
        return text
    busy = [f"T{t}" for t in range(THREADS) if s.gate_full[t]]
    look = "bhemu trace shows the words before" if busy else "bhemu step shows the loop"
    return f"{_FIND} {graph.waiters[0].who}; {look}"


def _no_maximum(waiter: Waiter) -> str:
    """What a wait for a semaphore without a maximum lacks, which holds up only such a wait."""
    if not waiter.reason.endswith(waits.BELOW_MAXIMUM) or waiter.resource.get("max", 1):
        return ""
    return f"no SEMINIT has given semaphore {waiter.resource['index']} a maximum"


def _look(graph: WaitGraph) -> str:
    """The same of a chip: by the root of its waits."""
    root = graph.waiters[0]
    if text := _no_maximum(root):
        return text
    if graph.rival(root) is not None:
        return "give each of them a word of its own, or let one of them set it back"
    if root.who in graph.cycle:
        return _CYCLE
    able = [one for one in root.releasers if one.able]
    if able and all(one.state.startswith(_OVER) for one in able):
        who = " and ".join(one.who for one in able)
        return f"compare how often {who} gives with how often {root.who} waits"
    if _got_nothing(root) and (elsewhere := root.history.partition(f"{NEVER}; ")[2]):
        return f"its sender leaves it out, or {root.who} is not to wait: {elsewhere}"
    by_noc = root.kind == "l1" and ("NoC" in root.history or any("NoC" in r.how for r in able))
    return _LOOK if by_noc or "NoC" in root.reason else f"{_FIND} {root.who}"


# Who could change a word of L1 over the NoC: by what has come, by code, by registers.

_INITIATORS, _REGISTERS = 4, 12
_TILES = {NOC_TARG_ADDR_LO + 8, NOC_RET_ADDR_LO + 8}
_SET = _TILES | {NOC_TARG_ADDR_LO, NOC_RET_ADDR_LO, NOC_CTRL, mm.NOC_AT_LEN_BE}
_UNKNOWN = "its code sends a request to this word of a tile that is not known yet"
MOST = 4  # senders named for one wait
_LOOKED = 64  # cores whose code is looked at
_TRIED = 64  # combinations of their values for one request


def initiators(chip: Controls) -> Iterator[tuple[Tile, int, list[int]]]:
    """Every initiator of the tiles that are in use: its tile, NoC and registers."""
    for tile in chip.tiles_made():
        for noc in (0, 1):
            for i in range(_INITIATORS):
                yield tile, noc, [int(word) for word in tile.state.niu_command[noc, i]]


class Senders:
    """Who could write to words of L1 over the NoC, on a chip that stands still."""

    def __init__(self, chip: Controls, agents: dict[XY, Agents]) -> None:
        self._chip, self._agents = chip, agents
        self._elsewhere: dict[int, dict[str, Releaser]] = {}
        self._requests: dict[tuple[XY, int], list[tuple[int, list[list[Value]]]]] = {}

    def of(self, tile: Tile, address: int, beside: int) -> list[Releaser]:
        """Those that have written to the word, and others with their code, who has done so least
        first; else those whose code would; else tiles whose initiators are set up for it; else
        those whose code would write to such a word of an unknown tile. Without the core that waits.
        """
        found: dict[tuple[XY, int], Releaser] = {}
        came = [one for one in arrivals(self._chip, tile, address) if one[1] < CORES]
        count = Counter((sender.xy, core) for sender, core, _, _ in came)
        known = int(tile.state.noc_arrivals[0]) <= NOC_ARRIVED
        for sender, core, pc, when in came:
            if (at := (sender.xy, core)) not in found:
                how = f"{GAVE}{' ' + times(count[at]) if known else ''}, last in round {when}"
                by = self._core(sender.xy, core, pc, how)
                found[at] = replace(by, given=count[at] if known else None)
        x, y = tile.xy
        near = sorted(self._agents, key=lambda xy: abs(xy[0] - x) + abs(xy[1] - y))
        codes = {self._code(xy, core) for xy, core in found}
        able = sum(one.able for one in found.values())
        asked = product(near, (0, CORES - 1)) if able != 1 else ()  # one has a word of its own
        unsure: list[Releaser] = []
        for xy, core in asked:
            if (xy, core) in found or (codes and self._code(xy, core) not in codes):
                continue
            pc, known = self._coded(xy, core, tile.xy, address)
            if known:
                by = self._core(xy, core, pc, "its code sends a request to it")
                found[xy, core] = replace(by, given=0)
            elif pc and (xy, core) != (tile.xy, beside):
                unsure.append(self._core(xy, core, pc, _UNKNOWN))
        found.pop((tile.xy, beside), None)
        ready = sorted(found.values(), key=lambda one: one.given or 0)
        return (ready or [*self._set_up(tile.xy, address)] or unsure)[:MOST]

    def _code(self, xy: XY, core: int) -> tuple[bytes, ...]:
        """The ELFs of a core."""
        held = self._agents[xy].tile.core[CORE_NAMES[core]].images
        return tuple(image.data for image in held)

    def _set_up(self, to: XY, address: int) -> Iterator[Releaser]:
        """The tiles whose initiators are set up for a request to a word."""
        known: set[XY] = set()
        for tile, noc, registers in initiators(self._chip):
            if tile.xy not in known and aims(registers, to, address):
                known.add(tile.xy)
                how = f"registers of its NoC {noc} name this word as the destination"
                cores = ", ".join(f"{one.name} {one.state}" for one in tile.core.values())
                yield Releaser(f"tile {name_of(tile)}", how, "", f"has {cores}")

    def elsewhere(self, address: int) -> dict[str, Releaser]:
        """By tile of which this word was written: the last core that did."""
        if address not in self._elsewhere:
            self._elsewhere[address] = found = dict[str, Releaser]()
            for other in self._chip.tiles_made():
                last = (one for one in arrivals(self._chip, other, address) if one[1] < CORES)
                for sender, core, pc, when in last:
                    how = f"{GAVE}, last in round {when}"
                    found[name_of(other)] = self._core(sender.xy, core, pc, how)
                    break
        return self._elsewhere[address]

    def _core(self, xy: XY, core: int, pc: int, how: str) -> Releaser:
        found = self._agents[xy].acts(core, pc, how)
        return replace(found, who=f"{name_of(self._agents[xy].tile)} {found.who}")

    def _coded(self, xy: XY, core: int, to: XY, address: int) -> tuple[int, bool]:
        """The pc to which a core may come and that would send a request to a word, and whether the
        tile is known; 0 for none."""
        unsure, here = 0, to[0] | to[1] << 6
        for pc, values in self._sent(xy, core):
            if not any(low is not None and low <= address for i in (0, 3) for low in values[i]):
                continue
            for n, registers in enumerate(product(*values)):
                if n == _TRIED:
                    break
                if aims([here if one is None else one for one in registers], to, address):
                    if None not in registers:
                        return pc, True
                    unsure = unsure or pc
        return unsure, False

    def _sent(self, xy: XY, core: int) -> list[tuple[int, list[list[Value]]]]:
        """The requests that the code of a core sends: pc, what each register may hold.

        Of the first cores that are asked for: looking at code takes long.
        """
        if (xy, core) not in self._requests and len(self._requests) < _LOOKED:
            self._requests[xy, core] = list(self._of_code(self._agents[xy], core))
        return self._requests.get((xy, core), [])

    def _of_code(self, agents: Agents, core: int) -> Iterator[tuple[int, list[list[Value]]]]:
        """By the order of the code: a register holds what the store before has left there; one that
        names a tile may hold what is not known, None."""
        held: dict[tuple[int, int], tuple[int, set[Value]]] = {}
        for pc, address, _, value in agents.stores(core, held=True).stores:
            noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
            i, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if noc not in (0, 1) or i >= _INITIATORS:
                continue
            which = _INITIATORS * noc + i
            if register == mm.NOC_CMD_CTRL:
                every = [held.get((which, 4 * n), (0, {0}))[1] for n in range(_REGISTERS)]
                values = [sorted(each, key=lambda one: one or -1) for each in every]
                if all(values) and agents.comes(core, pc):
                    yield pc, values
            elif register in _SET:
                by, known = held.get((which, register), (-1, set[Value]()))
                known = known if by == pc else set()
                given = value is not None or register in _TILES
                held[which, register] = pc, known | ({value} if given else set())


# The wait-for graph of a chip: what the tiles wait for, and what the NoC could still bring.

_BUDGET = 10_000  # steps of a look at what a core can still do
_LOOK = "look at the core that should have sent it, and at counts of destinations"
# What the number of answers is compared with: (answers, requests sent that are answered, in words)
_ANSWERS = {
    niu.ATOMIC_ANSWERS: (niu.ATOMICS_SENT, "atomic results", "answered atomics"),
    niu.ACKS: (niu.WRITES_SENT, "acknowledgements", "acknowledged writes"),
    niu.READ_ANSWERS: (niu.READS_SENT, "read answers", "reads"),
}


def _counter(tile: Tile, address: int) -> str | None:
    """A counter that is polled, and what it is to be compared with; None for another address."""
    place = niu.place(address)
    if place is None:
        return None
    noc, n = place
    counts = [int(value) for value in tile.state.niu_counter[noc]]
    text = f"counter {niu.NAMES[n]} of NoC {noc} to change"
    if n not in _ANSWERS:
        return text
    sent, answers, requests = _ANSWERS[n]
    return (
        f"{text}: {counts[n]} {answers} have come for {counts[sent]} {requests} sent, and nothing"
        " is under way (a multicast has one for each receiver)"
    )


def _astray(chip: Controls, waiters: Iterable[Waiter]) -> str:
    """A request to the address of a wait that nothing was found to end, but of a tile on which
    nothing of the program runs; "" for none."""
    program = chip.loop.program
    at_work = {xy for part in (program.placed() if program else ()) for xy in part.at}
    lost = [one for one in waiters if one.kind == "l1" and not one.releasers]
    for tile, noc, registers in initiators(chip) if lost and at_work else ():
        given = (registers[(first >> 2) + 2] for first in (NOC_TARG_ADDR_LO, NOC_RET_ADDR_LO))
        for x, y in {(to & 63, to >> 6 & 63) for to in given} - at_work:
            for one in lost:
                if aims(registers, (x, y), address := one.resource["address"]):
                    return (
                        f"registers of NoC {noc} of tile {name_of(tile)} name {address:#x} of"
                        f" ({x},{y}) as the destination, where nothing of the program runs;"
                        f" {one.who} waits for this word of its own tile"
                    )
    return ""


def _only(others: Mapping[str, Releaser]) -> str:
    """Of which tiles a word was written, and by whom where it was one line of one core."""
    if not others:
        return ""
    who = {f"by {one.who} ({one.line})" if one.line else f"by {one.who}" for one in others.values()}
    by = f" {who.pop()}" if len(who) == 1 else ""
    return f"only to this word of {_some([*others])}{by}"


def _waiting(chip: Controls, going: Mapping[Tile, tuple[Loop, ...]]) -> Iterator[Waiter]:
    """All that wait on some tiles of a chip; `going`: the loops of their running cores."""
    every = {tile.xy: Agents(tile, going.get(tile, ())) for tile in chip.tiles_made()}
    senders, alone = Senders(chip, every), len(every) == 1
    for tile, waiter in ((each, one) for each in going for one in _waiters(every[each.xy])):
        of = "" if alone else f"{name_of(tile)} "
        own = tuple(replace(r, who=f"{of}{r.who}") for r in waiter.releasers)
        address = waiter.resource.get("address", -1)
        history, reason = waiter.history, _counter(tile, address) or waiter.reason
        others = dict[str, Releaser]()
        if waiter.kind == "l1" and 0 <= address < mm.L1_SIZE:
            if not alone:
                own += tuple(senders.of(tile, address, CORE_NAMES.index(str(waiter.where["core"]))))
            untouched = int(tile.state.noc_arrivals[0]) == 0
            by_noc = "" if alone and untouched else last_writer(chip, tile, address)
            others = senders.elsewhere(address) if by_noc == NEVER else others
            told = (
                f"this word of tile {one} was written by {by.who.partition(' ')[0]} {by.place}"
                for one, by in others.items()
            )
            history = "; ".join(part for part in (history, by_noc, next(told, "")) if part)
        who = f"{of}{waiter.who}"
        waiter = replace(waiter, who=who, releasers=own, reason=reason, history=history)
        yield replace(waiter, elsewhere=_only(others))


def wait_for_graph(tile: Tile, loops: tuple[Loop, ...] = ()) -> WaitGraph:
    """The graph of `tile` (a Tile) as it stands; `loops` are those of its running cores."""
    return graph_of([*_waiting(tile.machine, {tile: loops})])


def linked(chip: Controls) -> list[str]:
    """Every linked transaction of a chip that nothing has closed, a line for each."""
    lines = []
    for tile in chip.tiles_made():
        for noc, (is_open, given, core, pc) in enumerate(tile.state.niu_linked.tolist()):
            if is_open:
                by = "over the NoC" if core == HOST else tile.place(core, pc)
                lines.append(
                    f"NoC {noc} of tile {name_of(tile)} has a linked request to {shown(given)} that"
                    f" no further request has closed, sent by {by}"
                )
    return lines


def no_progress(chip: Controls, loops: Mapping[int, tuple[Loop, ...]]) -> NoProgress:
    """Deadlock (no loops: everything waits), or livelock: `loops` are those of the running cores by
    tile number. Of a chip with one tile in use it says what it says of a tile that is alone.
    """
    if not chip.loop.explains_hangs:
        return _error(f"{_NOTHING_MOVES} any more", None, "", live=bool(loops))
    going = {tile: loops.get(number_at(tile.xy), ()) for tile in chip.tiles_made()}
    waiters = [*_waiting(chip, going)]
    graph = graph_of(waiters)
    open_links = "; ".join(linked(chip))
    if len(going) == 1 and not open_links:
        ((only, own),) = going.items()
        how = advice(only, graph)
        if not own:
            text = f"{_NOTHING_MOVES} any more ({len(graph.waiters)} waiting)"
            return _error(text, graph, how, live=False)
        theirs = "the loops they are in" if len(own) > 1 else "the loop it is in"
        text = f"{' and '.join(CORE_NAMES[loop.core] for loop in own)} can never leave {theirs}"
        how = f"{how}; where the host is to answer, run with --livelock 0"
        return _error(f"{text}, whatever time passes", graph, how, live=True)
    hint = open_links or _astray(chip, waiters) or release(graph) or _look(graph)
    if not loops:
        text = f"{_NOTHING_MOVES} any more on the chip ({len(waiters)} waiting)"
        return _error(text, graph, hint, live=False)
    names = [
        f"{name_of(tile)} {CORE_NAMES[one.core]}" for tile, own in going.items() for one in own
    ]
    theirs = "their loops" if len(names) > 1 else "its loop"
    text = f"{_some(names)} can never leave {theirs}, and nothing is under way"
    return _error(text, graph, hint, live=True)


def standstill(chip: Controls, tile: Tile) -> NoProgress:
    """What the cores of one tile wait for, where every core of the chip that runs only polls."""
    graph = wait_for_graph(tile, livelock(tile, _BUDGET))
    text = f"tile {name_of(tile)} waits, every core that runs only polls, and nothing is under way"
    hint = "; ".join(linked(chip)) or "only the host can go on; what it waits for never comes"
    return NoProgress(text, graph=graph, category="Livelock", rule="LIVELOCK", hint=hint)
