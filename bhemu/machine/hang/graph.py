"""The wait-for graph of a hang, on one tile and over the NoC, and who could write over that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices.niu_request import at as shown
from bhemu.errors import NoProgress
from bhemu.machine.error_text import where_core
from bhemu.machine.hang import waits
from bhemu.machine.hang.explore import DECIMAL, Loop, Wanted, livelock
from bhemu.machine.hang.givers import NO_MORE, Agents, Releaser, arrivals, name_of
from bhemu.machine.hang.waits import GAVE, NEVER, Senders, Waiter, aims, initiators
from bhemu.noc.grid import number_at
from bhemu.tensix.state import BLOCKED, CORES, NOC_ARRIVED, THREADS
from bhemu.text import times

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
        low = high = 0
        if given and len(given) == len(able):
            low, high = min(given), max(one.given or 0 for one in root.releasers)
            few = f"has written there {times(low)}" if low else "has not written there"
            few += f" so far, others {times(high)}, and " if low < high else " and "
            able = {who: one for who, one in able.items() if one.given == low}
        if not able and (most := _no_maximum(root)):
            return f"{text}: {most}"
        if not able:
            if passed := _passed(root):
                return f"{text}: {passed}"
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
        few = few if low < high else ""  # what it is able by says how often
        return f"{text}, which {only.who} could give ({only.means}); {only.who} {few}{only.state}"

    def rival(self, root: Waiter) -> Waiter | None:
        """Another core that waits for a value of a word that has passed what both wait for."""
        word, past = (root.resource, root.where.get("tile")), filter(_is_past, self.waiters)
        others = (one for one in past if one.who != root.who and _is_past(root))
        return next((o for o in others if (o.resource, o.where.get("tile")) == word), None)

    def ring(self) -> str:
        """The cycle in words: what each member needs, and which other can give it."""
        parts = []
        for i, name in enumerate(self.cycle):
            other = self.cycle[(i + 1) % len(self.cycle)]
            own = [one for one in self.waiters if one.who == name]
            able = ((one, r) for one in own for r in one.releasers if r.able)
            waiter, by = next(pair for pair in able if pair[1].who == other)
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
                del by["given"], by["passed"]
        return {"waiters": waiters, "cycle": list(self.cycle), "text": str(self).splitlines()}


def _passed(waiter: Waiter) -> str:
    """Those that would end a wait by what they have passed, in words; "" for none."""
    by_means: dict[str, list[str]] = {}
    for one in (one for one in waiter.releasers if one.passed):
        does = one.how.partition(", last in ")[0]
        by_means.setdefault(", ".join(filter(None, (does, one.line))), []).append(one.who)
    told = []
    for means, names in by_means.items():
        none = f"none of {', '.join(names)} ({means}) comes there again from where it stands"
        told.append(none if len(names) > 1 else f"{names[0]} ({means}) {NO_MORE}")
    return "; ".join(told)


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
    if wanted is None or wanted.more or waiter.kind != "l1":
        return False
    return 0 < wanted.value < waiter.resource["value"]


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


def _waiters(agents: Agents) -> Iterator[Waiter]:
    """All that wait on a tile."""
    s = agents.s
    for t in range(THREADS):
        if s.gate_full[t]:
            pc = int(s.latch_pc[t] if s.latch[t] else s.gate_pc[t])
            wait = waits.thread(agents, t)
            yield _waiter(agents, f"thread T{t}", int(s.gate_core[t]), pc, wait)
    for c in range(CORES):
        if s.core_state[c] == BLOCKED:
            wait = waits.core(agents, c, int(s.core_wait[c]), int(s.core_address[c]))
            yield _waiter(agents, mm.CORE_NAMES[c], c, int(s.pc[c]), wait)
    for loop in agents.loops.values():
        for pc, wait in waits.loop(agents, loop):
            yield _waiter(agents, mm.CORE_NAMES[loop.core], loop.core, pc, wait)


def _error(text: str, graph: WaitGraph | None, hint: str, *, live: bool) -> NoProgress:
    """The error of a livelock or deadlock; without a graph, which takes longer than many runs."""
    kind = "Livelock" if live else "Deadlock"
    text = f"{kind.lower()}: {text}"
    return NoProgress(text, graph=graph, category=kind, rule=kind.upper(), hint=hint)


def release(graph: WaitGraph) -> str:
    """Which core is to be released, where a wait needs one that is in reset; "" for none."""
    able = (by for waiter in graph.waiters for by in waiter.releasers if by.able)
    held = next((by.who for by in able if "is in reset" in by.state), "")
    return f"release {held}: nothing has cleared its bit of SOFT_RESET_0" if held else ""


def advice(tile: Tile, graph: WaitGraph) -> str:
    """What to look at next: what is certain of the waits, or else their root."""
    s = tile.state
    if graph.cycle:
        return _CYCLE
    if text := next(filter(None, map(_no_maximum, graph.waiters)), "") or release(graph):
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
    counter = niu.place(root.resource.get("address", 0))
    if counter is not None and counter[1] in _ANSWERS:
        return "compare the count that is waited for with the requests and the receivers of each"
    by_noc = root.kind == "l1" and ("NoC" in root.history or any("NoC" in r.how for r in able))
    return _LOOK if by_noc or "NoC" in root.reason else f"{_FIND} {root.who}"


# The wait-for graph of a chip: what the tiles wait for, and what the NoC could still bring.

_BUDGET = 10_000  # steps of a look at what a core can still do
_LOOK = "look at the core that should have sent it, and at counts of destinations"
# What the number of answers is compared with: (answers, requests sent that are answered, in words)
_ANSWERS = {
    niu.ATOMIC_ANSWERS: (niu.ATOMICS_SENT, "atomic results", "answered atomics"),
    niu.ACKS: (niu.WRITES_SENT, "acknowledgements", "acknowledged writes"),
    niu.READ_ANSWERS: (niu.READS_SENT, "read answers", "reads"),
}


def _counter(tile: Tile, address: int, wanted: Wanted | None) -> str | None:
    """A counter that is polled, and what it is to be compared with; None for another address."""
    place = niu.place(address)
    if place is None:
        return None
    noc, n = place
    counts = [int(value) for value in tile.state.niu_counter[noc]]
    text = f"counter {niu.NAMES[n]} of NoC {noc} to {f'become {wanted}' if wanted else 'change'}"
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
        given = (registers[(first >> 2) + 2] for first in (mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO))
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
        history, reason = waiter.history, _counter(tile, address, waiter.wanted) or waiter.reason
        others, astray = dict[str, Releaser](), ""
        if waiter.kind == "l1" and 0 <= address < mm.L1_SIZE:
            if not alone:
                own += tuple(
                    senders.of(tile, address, mm.CORE_NAMES.index(str(waiter.where["core"])))
                )
            untouched = int(tile.state.noc_arrivals[0]) == 0
            by_noc = "" if alone and untouched else last_writer(chip, tile, address)
            others = senders.elsewhere(address) if by_noc == NEVER else others
            told = (
                f"this word of tile {one} was written by {by.who.partition(' ')[0]} {by.place}"
                for one, by in others.items()
            )
            history = "; ".join(part for part in (history, by_noc, next(told, "")) if part)
            if by_noc == NEVER and not others:
                astray = _laid_otherwise(chip, tile, str(waiter.where["core"]), address)
        who = f"{of}{waiter.who}"
        waiter = replace(waiter, who=who, releasers=own, reason=reason, history=history)
        yield replace(waiter, elsewhere=_only(others) or astray)


def _laid_otherwise(chip: Controls, tile: Tile, core: str, address: int) -> str:
    """Who has written to the address that an awaited semaphore has on its own tile; "" for none."""
    known = waits.semaphores(tile, mm.CORE_NAMES.index(core))
    came = arrivals(chip, tile) if address in known else ()
    senders = {(by.xy, c): by for by, c, _, _ in came if c < CORES}
    for (xy, c), sender in senders.items():
        number = known.index(address)
        at = next(iter(waits.semaphores(sender, c)[number : number + 1]), address)
        for by, by_core, pc, _ in arrivals(chip, tile, at) if at != address else ():
            if (by.xy, by_core) == (xy, c):
                who, line = f"{name_of(by)} {mm.CORE_NAMES[c]}", by.place(c, pc)
                return f"but to {at:#x}, where {who} has semaphores[{number}] itself: {line}"
    return ""


def wait_for_graph(tile: Tile, loops: tuple[Loop, ...] = ()) -> WaitGraph:
    """The graph of `tile` (a Tile) as it stands; `loops` are those of its running cores."""
    return graph_of([*_waiting(tile.machine, {tile: loops})])


def last_writer(chip: Controls, tile: Tile, address: int) -> str:
    """The last writer of an address over the NoC, as far as is remembered."""
    for sender, core, pc, when in arrivals(chip, tile, address):
        by = "over the NoC" if core == mm.HOST else sender.place(core, pc)
        return f"last written over the NoC in round {when} by tile {name_of(sender)}: {by}"
    return NEVER if int(tile.state.noc_arrivals[0]) <= NOC_ARRIVED else ""


def linked(chip: Controls) -> list[str]:
    """Every linked transaction of a chip that nothing has closed, a line for each."""
    lines = []
    for tile in chip.tiles_made():
        for noc, (is_open, given, core, pc) in enumerate(tile.state.niu_linked.tolist()):
            if is_open:
                by = "over the NoC" if core == mm.HOST else tile.place(core, pc)
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
        text = f"{' and '.join(mm.CORE_NAMES[loop.core] for loop in own)} can never leave {theirs}"
        how = f"{how}; where the host is to answer, run with --livelock 0"
        return _error(f"{text}, whatever time passes", graph, how, live=True)
    hint = open_links or _astray(chip, waiters) or release(graph) or _look(graph)
    if not loops:
        text = f"{_NOTHING_MOVES} any more on the chip ({len(waiters)} waiting)"
        return _error(text, graph, hint, live=False)
    cores = [(name_of(tile), one.core) for tile, own in going.items() for one in own]
    names = [f"{of} {mm.CORE_NAMES[core]}" for of, core in cores]
    theirs = "their loops" if len(names) > 1 else "its loop"
    text = f"{_some(names)} can never leave {theirs}, and nothing is under way"
    return _error(text, graph, hint, live=True)


def standstill(chip: Controls, tile: Tile) -> NoProgress:
    """What the cores of one tile wait for, where every core of the chip that runs only polls."""
    graph = wait_for_graph(tile, livelock(tile, _BUDGET))
    text = f"tile {name_of(tile)} waits, every core that runs only polls, and nothing is under way"
    hint = "; ".join(linked(chip)) or "only the host can go on; what it waits for never comes"
    return NoProgress(text, graph=graph, category="Livelock", rule="LIVELOCK", hint=hint)
