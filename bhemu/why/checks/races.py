"""Unordered accesses: a missing wait, a release that is too early, a missing STALLWAIT."""

from collections.abc import Iterator
from dataclasses import replace

from bhemu.memmap import CORE_NAMES
from bhemu.noc.grid import XY
from bhemu.program.options import Acts
from bhemu.tensix.insn import BLOCKS, decode
from bhemu.why.check import Check, Context
from bhemu.why.checks.buffers import shared_bytes
from bhemu.why.findings import Ends, Finding, line_of, merged, order, place, with_evidence
from bhemu.why.order.conflicts import Conflict, Event, Observed, observed
from bhemu.why.order.describe import unit_of
from bhemu.why.order.observe import kind, l1_address, name
from bhemu.why.order.record import HOST, NOC
from bhemu.why.steps import Act, Blame, Step, Word, maker
from bhemu.why.witness import SEEN, Pair, PairFinding, with_late_runs

_CHANGES = "and changes"
_BOTH = "count posts and gets, and look whether both sides mean this place"
_EITHER = "each has waited, not for the other's access: one of both has the wrong place or count"
_WAIT = "wait for the other side before this access: SEMWAIT, TTSync, a word of L1 that it sets"
_RELEASE = "post, or set the word, after the last access and a STALLWAIT for the unit that makes it"
_END = "wait for every core before the word that ends the program"  # of who stores it
_GET = "SEMGET when what was waited for is used"
_STALL = {
    "scalar": "THCON (0x1)", "unpack0": "UNPACK0 (0x2)", "unpack1": "UNPACK1 (0x4)",
    "pack": "PACK (0x8)", "matrix": "MATH (0x10)", "mover": "XMOV (0x200)",
    "vector": "SFPU (0x800)",
}  # fmt: skip


def run(context: Context) -> list[Finding]:
    """Conflicts of the plain order; if there are none, those of units."""
    seen = observed(context)
    for units in (False, True):
        found = _lines(context, [one for each in seen for one in _pairs(context, each, units)])
        if found:
            break
    found += _lines(context, [one for each in seen for one in _templates(each)])
    return sorted(found, key=order)[:SEEN]


def _lines(context: Context, pairs: list[PairFinding]) -> list[Finding]:
    """One finding for each line, with its tiles and the late run that shows it."""
    lines = {line_of(one): one for one in merged([[one.finding for one in pairs]])}
    keys = [line_of(one.finding) for one in pairs]
    return with_late_runs(
        context,
        ((key, one._replace(finding=lines[key])) for key, one in zip(keys, pairs, strict=True)),
    )


def _pairs(context: Context, races: Observed, units: bool) -> list[PairFinding]:
    """Of a tile."""
    found: dict[tuple[str, int], PairFinding] = {}
    for conflict in races.conflicts(units=units):
        if conflict.first.agent >= NOC:
            continue  # a barrier is missing: barriers.py
        told = races.stand_at(context, conflict)
        finding = _stalled(races, conflict) if conflict.units else _raced(races, conflict)
        finding = _of_shared(context, races, conflict, finding)
        key = str(finding.culprit.get("core")), int(finding.culprit.get("pc", 0))
        if conflict.units and not isinstance(conflict.first.step, Word):
            key = "stores of", conflict.first.agent  # one wait is missing for all of them
        elif finding.advice == _BOTH:  # and one place is wrong for all rows or words
            key = "both", 1 << conflict.first.owner | 1 << conflict.second.owner
        pair = Pair(races.tile.xy, conflict.first.step, conflict.second.step)
        found.setdefault(key, PairFinding(with_evidence(finding, told), pair))
    return list(found.values())[:SEEN]


def _of_shared(context: Context, races: Observed, conflict: Conflict, found: Finding) -> Finding:
    """The finding; if two buffers of PROGRAM.toml share the place, their line is the culprit."""
    at = l1_address(conflict.place)
    for one in shared_bytes(context) if at is not None else ():
        if races.tile.xy in one.at and at is not None and one.low <= at < one.high:
            both = f"{maker(conflict.first.step)} and {maker(conflict.second.step)}"
            text = f"{one.finding.text}; only their speed decides in which order {both} reach"
            return replace(
                found,
                text=f"{text} {name(conflict.place)}",
                culprit=one.finding.culprit,
                victim=found.culprit,
                advice=one.finding.advice,
            )
    return found


def _templates(races: Observed) -> Iterator[PairFinding]:
    """MOP templates that a core changes while a MOP that it has pushed may still use them.

    Any order since then that tells the core how far its thread is counts as enough.
    """
    tile = races.tile
    for store, pushed in races.templates:
        thread = store.core - 1
        text = f"a store of trisc{thread} changes the MOP template of T{thread}, which a MOP pushed"
        finding = Finding(
            "races", "error", f"{text} before may still use",
            place(Act(tile, store).where, store.clock, tile),
            place(Act(tile, pushed).where, pushed.clock, tile),
            ("neither mop_sync, TTSync nor a semaphore tells the core in between that it is done",),
            "wait for the MOP first: mop_sync (PC_BUF 0xFFE80008), or tensix_sync",
        )  # fmt: skip
        yield PairFinding(finding, Pair(tile.xy, Acts(f"T{thread}"), store))


def _of_both(races: Observed, conflict: Conflict) -> tuple[str, str]:
    """What each side does, and when."""
    one, other = (
        f"one {'writes' if event.write else 'reads'} {Act(races.tile, event.step)}"
        for event in (conflict.first, conflict.second)
    )
    return one, other


def _blamed(races: Observed, conflict: Conflict) -> tuple[Step, str, str]:
    """The step that is wrong, what is wrong with it, what to do."""
    first, second = conflict.first, conflict.second
    if conflict.foreign:
        text = f"{_CHANGES} what {maker(first.step)} has set for its own thread"
        return second.step, text, "leave it to the thread whose unit reads it"
    foreign = _foreign(conflict)
    if foreign is not None:
        text = f"{_CHANGES} what the unit of another thread reads"
        return foreign, text, "leave it to the thread whose unit reads it"
    if conflict.clears is not None:
        text = f"{_CHANGES} fields of that word that the other core sets"
        return conflict.clears.step, text, "change the own fields alone: RMWCIB"
    if (own := _before_own_word(conflict)) is not None:
        text = "for a word that its core has pushed before may still need what is there"
        return own, text, "load TTSync (tensix_sync) before it"
    if (early := _done_early(races, first, second)) is not None:
        text = "for it lets others go on while words that its core has pushed are still to come"
        return early, text, "load TTSync (tensix_sync) before it"
    for event in (first, second):
        if event.owner == HOST:
            text = "for it ends the program while an output is still to be written"
            return event.step, text, _END
    if kind(conflict.place) == "L1" and races.ignores(first, second):
        text = "for it never looks at the pages that the other side counts"
        return second.step, text, "wait for pages or room (cb_wait_front, cb_reserve_back) before"
    for event in (one for one in (first, second) if not one.write):
        if (begun := races.begun(event)) is not None:
            text = (
                f"for semaphore {event.taken}, for which {maker(event.step)} waits, is {begun[1]}"
            )
            return begun[0], f"{text} before anything is posted", "begin at 0 what the others post"
    for event, other in ((second, first), (first, second)):
        pushed = isinstance(event.step, Word) and races.counts_for(event, other)
        if not races.has_waited(event) and not pushed:  # nor has its core, before it pushed
            return _without_wait(races, event, other)
    if second.before is not None and races.is_kept(second):
        text = "after which nothing takes from the semaphore that it has waited for"
        return second.before, text, _GET
    poll = None if isinstance(second.step, Word) else races.poll_for(second, first)
    return poll or second.step, _EITHER, _BOTH


def _without_wait(races: Observed, event: Event, other: Event) -> tuple[Step, str, str]:
    """What is wrong with an event whose owner has not waited for the other side."""
    if event.wait is not None:
        text = "for its block bits leave out the word that should wait"
        return event.wait, text, "name the unit of the words that must wait in stall_res"
    release = _release_before(races, event, other)
    if release is not None and not event.again:
        return release, "for it lets the other side go on too early", _RELEASE
    return event.step, "for nothing makes it wait for the other side", _WAIT


def _before_own_word(conflict: Conflict) -> Step | None:
    """The access of a core to a GPR or Config word that a word it has pushed has yet to use."""
    sides = (conflict.first, conflict.second)
    words = [event for event in sides if isinstance(event.step, Word)]
    others = [event for event in sides if not isinstance(event.step, Word)]
    if len(words) != 1 or others[0].step.core != words[0].step.core:
        return None
    what, after = kind(conflict.place), others[0].owner_clock >= words[0].push_clock
    return others[0].step if what == "GPR" or (what == "Config" and after) else None


def _foreign(conflict: Conflict) -> Step | None:
    """The access to Config that changes what only another thread's unit reads."""
    owner = conflict.thread
    sides = [(event, event.thread) for event in (conflict.first, conflict.second)]
    if owner is None or owner not in [thread for _, thread in sides]:
        return None
    others = [e.step for e, t in sides if e.write and t is not None and t != owner]
    return others[0] if others else None


def _done_early(races: Observed, first: Event, second: Event) -> Step | None:
    """The release of a core after it pushed a word that had not executed by then."""
    for event, other in ((first, second), (second, first)):
        if isinstance(event.step, Word):
            core = event.step.core
            for clock, step in races.releases(core):
                if event.push_clock <= clock <= other.vector[core] and core != other.owner:
                    return step
    return None


def _release_before(races: Observed, event: Event, other: Event) -> Step | None:
    """The release by which `event`'s owner let the other side go on, before the access."""
    known = int(other.vector[event.owner])
    steps = [
        step
        for clock, step in races.releases(event.owner)
        if clock <= min(known, event.owner_clock)
    ]
    return steps[-1] if steps else None


def _raced(races: Observed, conflict: Conflict) -> Finding:
    tile, (first, second) = races.tile, (conflict.first, conflict.second)
    blamed, wrong, advice = _blamed(races, conflict)
    victim = first if blamed is second.step or blamed.core == second.step.core else second
    act, other = Act(tile, blamed), Act(tile, victim.step)
    at, wrong = Blame(act, wrong, advice).placed()
    one, place_of = f"{act.name} of {maker(blamed)}", name(conflict.place)
    if wrong.startswith(_CHANGES):
        text = f"{one} writes {place_of}, {wrong}"
    elif HOST in (first.owner, second.owner):
        text = f"{one} is too early, {wrong}: {place_of}"
    else:
        both = f"{maker(first.step)} and {maker(second.step)}"
        text = f"only their speed decides in which order {both} reach {place_of}: "
        text += wrong if wrong.startswith(_EITHER) else f"{one} is wrong, {wrong}"
    no_order = (
        "no semaphore, hand-over, TTSync, mutex, mailbox or polled word of this run orders"
        f" {maker(first.step)} at clock {first.step.clock} before {maker(second.step)}"
        f" at clock {second.step.clock}"
    )
    return Finding(
        "races", "error", text, place(at, blamed.clock, tile),
        place(other.where, other.step.clock, tile), (*_of_both(races, conflict), no_order),
        advice, _ends(tile.xy, conflict, blamed, advice),
    )  # fmt: skip


def _ends(tile: XY, conflict: Conflict, blamed: Step, advice: str) -> Ends | None:
    """Of accesses to a row of Dst the semaphores that both sides have waited for."""
    sides = (conflict.first, conflict.second)
    if kind(conflict.place) != "Dst":
        return None
    taken = frozenset(("semaphore", side.taken) for side in sides if side.taken is not None)
    text = f"{CORE_NAMES[blamed.core]} has waited for it and takes nothing"
    return Ends(tile, taken, text if advice == _GET else "")


# Units that are still at work


def _stalled(races: Observed, conflict: Conflict) -> Finding:
    tile, (first, second) = races.tile, (conflict.first, conflict.second)
    unit = unit_of(first.step.word) if isinstance(first.step, Word) else None
    condition = "TRISC_CFG (0x400)" if unit is None else _STALL[unit]
    blamed = second.step
    if first.owner != second.owner and unit is not None:
        blamed = races.release_after(first) or blamed
    place_of, earlier, act = name(conflict.place), Act(tile, first.step), Act(tile, blamed)
    text = f"{act.name} does not wait for the {unit} unit, which may still be at work on"
    text += f" {place_of} for {earlier.name}"
    if unit is None:
        text = f"{act.name} does not wait until a store of {maker(first.step)} to {place_of}"
        text += " has taken place"
    held = f"no STALLWAIT for {condition} holds back {act.name} in between"
    return Finding(
        "races", "error", text, place(act.where, blamed.clock, tile),
        place(earlier.where, first.step.clock, tile), (*_of_both(races, conflict), held),
        f"before it STALLWAIT with wait_res = {condition}{_stall_res(blamed)}",
    )  # fmt: skip


def _stall_res(step: Step) -> str:
    """The narrowest class of words, as stall_res names it, that holds a step's word back."""
    cls = decode(step.word) if isinstance(step, Word) else None
    if cls is None or not cls.stall.startswith("B"):
        return ""
    bit = cls.stall_mask.bit_length() - 1
    return f", stall_res = {BLOCKS.names[bit]} ({1 << bit:#x})"


CHECK = Check(
    "races",
    proves="two accesses to one place of L1, GPRs, Config or Dst, one of them a write, that no"
    " semaphore, hand-over of a bank, STALLWAIT, mutex, mailbox, PCBuf, TTSync or polled word"
    " orders; or a unit whose work nothing waits for",
    misses="code that this run does not reach; writes that change nothing; Src, LRegs and counters;"
    " of a chip all"
    " tiles but 32, one of each kind among them; an order from tile to tile (see transfers)",
    cost="one run that takes 2 to 20 times as long as the plain one; late runs for each"
    " finding, 40 at most",
    applies=lambda seen: 90 if seen.wrong else 60,  # to every run: some are right by luck
    run=run,
)
