"""What is known of a hang besides its waits: who has ended, sent too little or never took."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bhemu.devices import noc_map
from bhemu.errors import BhemuError, Call, NoProgress, Where
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.explore import code_stores
from bhemu.machine.hang.waits import BELOW_MAXIMUM, Releaser
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc.grid import XY
from bhemu.riscv.formats import Branch, Jump
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import BGE, BGEU, BLT, BLTU
from bhemu.tensix.state import PARKED
from bhemu.why.buffers import COUNT_REGISTERS, Event, Recorder
from bhemu.why.check import Context
from bhemu.why.findings import Finding, of_one_hang, outside_headers, place, who_waits
from bhemu.why.firmware import firmware_of, in_firmware
from bhemu.why.order.sites import comparison
from bhemu.why.register_values import makers
from bhemu.why.requests import Request, requests
from bhemu.why.walk import Instruction

# A wait for a core that has come to its end: where that one gives.


def ended_early(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line of a core that has ended, from which the first wait of a hang waits for more."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or context.is_chip or graph.cycle:
        return
    tile = context.tile
    for waiter in graph.waiters:
        able = [one for one in waiter.releasers if one.able]
        ended = [one for one in able if _is_parked(tile, one)]
        if not ended or len(able) != len(ended):
            continue
        for one in ended:
            yield _given_by(context, waiter, one)
        return


def unread(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Where a core ends that has left a message unread whose sender waits for its answer."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or context.is_chip:
        return
    tile, s = context.tile, context.tile.state
    for waiter in graph.waiters:
        if waiter.kind != "mailbox" or "reader" not in waiter.resource:
            continue
        sender, core = waiter.resource["reader"], waiter.resource["writer"]
        left = int(s.mailbox_write[sender, core]) - int(s.mailbox_read[sender, core])
        if int(s.core_state[core]) != PARKED or not left:
            continue
        name = CORE_NAMES[core]
        text = f"{name} has ended with {left} unread in its mailbox from {waiter.who}, which waits"
        where = where_core(tile, core, _says_done(tile, core))
        yield Finding(
            "hang", "error", f"{text} for its answer", place(where, None, tile),
            who_waits(waiter), (), "",
        )  # fmt: skip


def _says_done(tile: Tile, core: int) -> int:
    """The store by which a core says that it is done; where it stands, if there is none."""
    ends = {at & ~3 for _, at, _ in tile.loop.end.words}
    stores = code_stores(tile, core).stores
    told = [one.pc for at, known in stores.items() if at & ~3 in ends for one in known]
    return int(told[-1] if told else tile.state.pc[core])


def _is_parked(tile: Tile, one: Releaser) -> bool:
    return one.core is not None and int(tile.state.core_state[one.core]) == PARKED


def _given_by(context: Context, waiter: Any, one: Releaser) -> Finding:
    assert one.core is not None
    where = where_core(context.tile, one.core, one.pc or 0)
    name = CORE_NAMES[one.core]
    text = f"{waiter.who} waits for {waiter.reason}; {name} gives that here, and has ended"
    who = place(where, None, context.tile)
    return Finding("hang", "error", text, who, who_waits(waiter), (), "")


# A core waits for a count that is not reached: who made the number.

_FOLLOWED = 2  # waits that are followed


@dataclass(frozen=True)
class _Wait:
    """A core polls a word that holds `have`, by a branch that compares it with `register`."""

    xy: XY
    core: int
    pc: int
    address: int
    have: int
    branch: int
    register: int
    want: int


def unreached(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Of a hang: counts that others have begun and do not go on with."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None:
        return
    machine, said = context.symptom.machine, set[tuple[int, int]]()
    for waiter in graph.waiters:
        where = waiter.where
        if waiter.kind != "l1":
            continue
        if context.is_chip and "last written over the NoC" not in waiter.history:
            continue
        tile = machine.tile[tuple(where["tile"])] if context.is_chip else machine
        core = CORE_NAMES.index(str(where["core"]))
        wait = _wait(tile, core, int(where["pc"]), int(waiter.resource["address"]))
        if wait is not None and not context.is_chip and not _is_ordered(tile, wait.branch):
            continue  # it may wait for a number that stands for something
        if wait is None or len(said) >= _FOLLOWED or (core, wait.pc) in said:
            continue
        said.add((core, wait.pc))
        yield from _maker_of(context, tile, wait)


def _wait(tile: Tile, core: int, pc: int, address: int) -> _Wait | None:
    """What a core waits for at the load of a poll, if it is more than there is."""
    compared = comparison(tile.state.l1, pc)
    if compared is None or address & 3 or address >= L1_SIZE:
        return None
    branch, register = compared
    have = int(tile.state.l1.view("<u4")[address >> 2])
    want = int(tile.core[CORE_NAMES[core]].regs[register])
    more = register != 0 and 0 < have < want
    return _Wait(tile.xy, core, pc, address, have, branch, register, want) if more else None


def _is_ordered(tile: Tile, branch: int) -> bool:
    """Whether a branch asks which of two numbers is greater."""
    cls = decode(int(tile.state.l1.view("<u4")[branch >> 2]))
    return cls is not None and issubclass(cls, BLT | BGE | BLTU | BGEU)


def _maker_of(context: Context, tile: Tile, wait: _Wait) -> Iterator[Finding]:
    def arrived(step: Instruction) -> bool:
        here = (step.core, step.pc) == (wait.core, wait.branch)
        return here and int(step.regs[wait.register]) == wait.want

    made = makers(context, wait.xy, arrived).registers[wait.core][wait.register]
    if not made.pc:
        return
    who = where_core(tile, wait.core, made.pc)
    at = where_core(tile, wait.core, wait.pc)
    text = (
        f"{CORE_NAMES[wait.core]} waits until L1 {wait.address:#x} is {wait.want:#x}; others have"
        f" counted to {wait.have:#x}, and nobody goes on; the number was made here"
    )
    yield Finding("hang", "error", text, place(who, None, tile), place(at, None, tile), (), "")


# On a chip: a core waits for a word that nobody sends: who sent its data last.

_NOTHING = "nothing was ever written there over the NoC"


@dataclass(frozen=True)
class _Sent:
    """The last write of data to a tile, by the store of `where` at `clock` on `tile`."""

    where: Where
    clock: int
    tile: Any


def unsent(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The line behind which a word is not sent: the last that brings a waiting tile its data."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or not context.is_chip:
        return
    waiters = [one for one in graph.waiters if one.kind == "l1" and _NOTHING in one.history]
    sent = _last_data(context, {tuple(one.where["tile"]) for one in waiters})
    for waiter in waiters:
        xy = tuple(waiter.where["tile"])
        if xy in sent:
            yield _no_word(context, waiter, sent[xy])
            return


def _no_word(context: Context, waiter: Any, sent: _Sent) -> Finding:
    xy, core, address = waiter.where["tile"], str(waiter.where["core"]), waiter.resource["address"]
    text = (
        f"tile ({xy[0]},{xy[1]}) {core} waits for L1 {address:#x}, which nobody has written over"
        f" the NoC; {sent.where.core} of tile ({sent.tile.xy[0]},{sent.tile.xy[1]}) sends it data,"
        " and no word behind them"
    )
    tile = context.symptom.machine.tile[tuple(xy)]
    victim = where_core(tile, CORE_NAMES.index(core), int(waiter.where["pc"]))
    return Finding(
        "hang", "error", text, place(sent.where, sent.clock, sent.tile), place(victim, None), (), ""
    )  # fmt: skip


def _last_data(context: Context, wanted: set[XY]) -> dict[XY, _Sent]:
    """By tile, of those `wanted`, the last write of data of another tile to it."""
    if not wanted:
        return {}
    machine, sent = requests(context)
    found: dict[XY, _Sent] = {}
    for tile, one, clock in sent:
        for xy in wanted - {tile.xy}:
            old = found.get(xy)
            if _goes_to(machine, one, xy) and (old is None or clock >= old.clock):
                found[xy] = _Sent(where_core(tile, one.core, one.pc), clock, tile)
    return found


def _goes_to(machine: Any, one: Request, xy: XY) -> bool:
    """Whether a request writes to a tile."""
    if one.reads:
        return False
    left, top, right, bottom = one.box()
    if one.multicast:
        return one.noc == 0 and left <= xy[0] <= right and top <= xy[1] <= bottom
    word = machine.network.endpoint(one.noc, (left, top))
    return bool(word & 15 == noc_map.TENSIX and word >> 4 & 0xFF == machine.number_of(xy))


# On a chip: a core waits for pages or room, and who counts them has ended.

_GIVES = {"acked": "gives pages back", "received": "announces pages"}


def left_pages(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """The loop of a core that has ended, in which it counted pages that another core waits for.

    Where the outputs are as expected, it is the one that waits which does more than there is to do.
    On one of several tiles it may do the work of another one, too.
    """
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None or not context.is_chip or not context.symptom.wrong:
        return
    seen: dict[Any, list[Event]] = {}
    said: set[tuple[int, int]] = set()
    for waiter in graph.waiters:
        kind = COUNT_REGISTERS.get(waiter.resource.get("register"))
        if waiter.kind != "stream" or kind is None:
            continue
        xy, stream = tuple(waiter.where["tile"]), waiter.resource["stream"]
        if xy not in seen:
            seen[xy] = _events(context, xy)
        counted = [one for one in seen[xy] if (one.kind, one.high) == (kind, stream)]
        tile = context.symptom.machine.tile[xy]
        if not counted or not _is_in_firmware(context, tile, counted[-1].core):
            continue
        last = counted[-1]
        if (last.core, last.pc) not in said:  # of several tiles the first
            said.add((last.core, last.pc))
            yield _counted_in(tile, waiter, counted)


def _events(context: Context, xy: Any) -> list[Event]:
    """What one more run of a tile does to its buffers."""
    machine = context.launch(engine="compiled", **context.alone)
    tile = machine.tile[xy]
    recorder = Recorder(tile)
    with suppress(BhemuError):
        machine.run(limit=context.most)
    return list(recorder.events())


def _is_in_firmware(context: Context, tile: Tile, core: int) -> bool:
    """Whether a core is back in the firmware that has called its kernel."""
    own = tile.core[CORE_NAMES[core]]
    return in_firmware(firmware_of(context.program), own, own.pc)


def _counted_in(tile: Tile, waiter: Any, counted: list[Event]) -> Finding:
    last = counted[-1]
    calls = where_core(tile, last.core, last.pc).inlined
    around = [(head, end) for head, end in _loops(tile, last) if head <= last.pc <= end]
    # What the compiler has put behind the loop jumps back into it as well, from within other calls.
    around = [one for one in around if _encloses(where_core(tile, last.core, one[1]), calls)]
    _, end = min(around, key=lambda one: one[1] - one[0], default=(0, last.pc))
    pc = end if where_core(tile, last.core, end).line else last.pc
    where = outside_headers(where_core(tile, last.core, pc))
    text = (
        f"{waiter.who} waits for {waiter.reason}; {last.who} {_GIVES[last.kind]} in this loop,"
        f" {len(counted)} times, and has ended"
    )
    return Finding("hang", "error", text, place(where, last.clock), who_waits(waiter), (), "")


def _loops(tile: Tile, event: Event) -> Iterable[tuple[int, int]]:
    """The loops of the function of an event: where each begins, the last branch back to there."""
    _, low, high = tile.core[CORE_NAMES[event.core]].function(event.pc)
    ends: dict[int, int] = {}
    for pc in range(low, high, 4):
        word = tile.read32(pc)
        cls: Any = decode(word)
        calls = cls is not None and issubclass(cls, Jump) and word >> 7 & 31
        if cls is None or calls or not issubclass(cls, Branch | Jump):
            continue
        if low <= (head := pc + cls.offset.get(word)) < pc:
            ends[head] = pc
    return ends.items()


def _encloses(end: Where, calls: tuple[Call, ...]) -> bool:
    """Whether a loop that ends there is around what the inlined `calls` lead to."""
    return end.inlined == calls[len(calls) - len(end.inlined) :]


# A semaphore that hands over Dst: what else is known of that hand-over belongs to the hang.


def with_hand_over(hang: Finding, error: NoProgress, found: Iterable[Finding]) -> Finding:
    """The hang with what the findings say of the hand-over that its root waits for.

    Where nothing was found that could take from the semaphore, who has waited for it and does not
    take from it is the culprit.
    """
    of_it = [one for one in found if _is_of_hang(error, one)]
    told = of_one_hang(hang, of_it)
    if keeper := next((one for one in of_it if _keeps(error, one)), None):
        text = f"{hang.text}: {keeper.culprit['core']} has waited for it and takes nothing"
        told = replace(told, text=text, advice=keeper.advice)
        return replace(told, culprit=keeper.culprit, victim=hang.culprit)
    return told


def apart(error: NoProgress, found: Iterable[Finding]) -> list[Finding]:
    """The findings that say something else."""
    return [one for one in found if not _is_of_hang(error, one)]


def _is_of_hang(error: NoProgress, one: Finding) -> bool:
    """Whether a finding is about the hand-over that the root of a hang waits for."""
    waiters = getattr(error.graph, "waiters", ())
    if one.hand_over is None or not waiters or waiters[0].kind != "semaphore":
        return False
    where, semaphores = waiters[0].where, one.hand_over.semaphores
    if where.get("tile") != one.culprit.get("tile"):
        return False
    is_same = not semaphores or waiters[0].resource["index"] in semaphores
    return is_same and where.get("thread") in one.hand_over.threads


def _keeps(error: NoProgress, one: Finding) -> bool:
    """Whether the culprit leaves out to take what the root of a hang waits for."""
    graph: Any = error.graph
    root, told = graph.waiters[0], one.hand_over
    is_same = told is not None and told.kept == root.resource["index"]
    is_lost = not any(releaser.able for releaser in root.releasers)
    return is_same and is_lost and root.reason.endswith(BELOW_MAXIMUM)
