"""Unordered accesses: a missing wait, a release that is too early, a missing STALLWAIT, a load from
a data cache that does not see what others have written; and a right run again, late."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bhemu.machine.error_text import where_core
from bhemu.memmap import CORE_NAMES
from bhemu.program.options import NOC, Acts
from bhemu.program.schema import SESSION
from bhemu.riscv.formats import Atomic, Fence, Load
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix.insn import BLOCKS, decode
from bhemu.text import joined
from bhemu.why import order as r
from bhemu.why import witness
from bhemu.why.check import Check, Context, Outcome, end_of
from bhemu.why.checks.buffers import bytes_at, in_used_page, uncounted
from bhemu.why.checks.contract import in_shared_bytes
from bhemu.why.findings import (
    Ends,
    Finding,
    in_words,
    line_of,
    place,
    together,
    with_evidence,
    with_rest,
    with_role,
)
from bhemu.why.order.conflicts import Conflict, Event, Observed, first_clock, observed, requests
from bhemu.why.order.observe import Observer, is_polled, kind, l1_address, name, spin, unit_of
from bhemu.why.order.shadow import ACCESSED, DROPPED, STALE
from bhemu.why.steps import NOTHING, OLD, SET_BACK, Act, Blame, Instruction, Step, Word, maker
from bhemu.why.steps import where as where_of

_CODE = 3  # ELFs that are named
_CHANGES = "and changes"
_TEMPLATE = "MOP template"
_BOTH = "count posts and gets, and look whether both sides mean this place"
_EITHER = "each has waited, not for the other's access: one of both has the wrong place or count"
_WAIT = "wait for the other side before this access: SEMWAIT, TTSync, a word of L1 that it sets"
_EARLY = "for it lets the other side go on too early"
_RELEASE = "post, or set the word, after the last access and a STALLWAIT for the unit that makes it"
_END = "wait for every core before the word that ends the program"  # of who stores it
_LEAVE = "leave it to the thread whose unit reads it"
_SYNC = "load TTSync (tensix_sync) before it"
_MOP_SYNC = "wait for the MOP first: mop_sync (PC_BUF 0xFFE80008), or tensix_sync"
_GET = "SEMGET when what was waited for is used"
_STALL = {
    "scalar": "THCON (0x1)", "unpack0": "UNPACK0 (0x2)", "unpack1": "UNPACK1 (0x4)",
    "pack": "PACK (0x8)", "matrix": "MATH (0x10)", "mover": "XMOV (0x200)",
    "vector": "SFPU (0x800)",
}  # fmt: skip


def run(context: Context) -> list[Finding]:
    """Conflicts of the plain order; if there are none, those of units.

    One finding for each line, with its tiles and the late run that shows it. The host of a session
    loads many kernels with the same words: these are one finding, too.
    """
    seen, session = observed(context), context.program.kind == SESSION
    keyed: dict[Hashable, list[witness.PairFinding]] = {}
    for units in (False, True):
        for one in (one for each in seen for one in _pairs(context, each, units)):
            keyed.setdefault(_words(one) if session else line_of(one.finding), []).append(one)
        if keyed:
            break
    lines = []
    for key, same in keyed.items():
        by_elf = {line.rpartition(" ")[2]: line for one in reversed(same) for line in one.code}
        code = [*reversed(by_elf.values())]
        found = with_evidence(together([one.finding for one in same]), code[:_CODE])
        if (left := len(code) - _CODE) > 0:
            found = with_evidence(found, [f"and {left} more like this"])
        meant = together([one.meant or one.finding for one in same])
        lines.append((key, witness.PairFinding(found, same[0].pair, meant=meant)))
    return witness.with_late_runs(context, lines)


def _words(one: witness.PairFinding) -> Hashable:
    """What the finding says of which word, wherever that lies; its line, if it is of no word."""
    word, line = one.pair.second, line_of(one.finding)
    return (*line[:2], one.finding.text, word.word) if isinstance(word, Word) else line


def _pairs(context: Context, races: Observed, units: bool) -> list[witness.PairFinding]:
    """Of a tile; of those of one line the one that a late run can show."""
    found: dict[tuple[str, int], witness.PairFinding] = {}
    for conflict in sorted(races.conflicts(units=units), key=_is_never_late):
        if units and conflict.first.sent is not None:
            continue  # a barrier is missing: transfers.py
        told = races.stand_at(conflict)
        if conflict.units:
            finding = meant = _stalled(races, conflict)
        else:
            finding = meant = _raced(context, races, conflict, meant=False)
            if context.symptom.fine:
                meant = _raced(context, races, conflict, meant=True)
        finding, meant = (_in_buffers(context, races, conflict, one) for one in (finding, meant))
        xy, first, second = races.tile.xy, conflict.first.step, conflict.second.step
        if kind(conflict.place) == _TEMPLATE and isinstance(second, Word):
            first, second = second, first  # the MOP that was pushed before has begun late
        key = str(finding.culprit.get("core")), int(finding.culprit.get("pc", 0))
        if conflict.units and not isinstance(conflict.first.step, Word):
            key = "stores of", conflict.first.agent  # one wait is missing for all of them
        elif kind(conflict.place) == _TEMPLATE:  # all words of it are one
            key = _TEMPLATE, first.core
        elif finding.advice == _BOTH:  # and one place is wrong for all rows or words
            key = "both", 1 << conflict.first.owner | 1 << conflict.second.owner
        pair = witness.Pair(xy, first, second, waits=conflict.units)
        found.setdefault(key, witness.PairFinding(finding, pair, told, meant))
    return list(found.values())


def _is_never_late(conflict: Conflict) -> bool:
    """Whether a word of the scalar unit comes first, which is complete when its thread goes on."""
    step = conflict.first.step if conflict.units else None
    return isinstance(step, Word) and unit_of(step.word) == "scalar"


def _in_buffers(context: Context, races: Observed, conflict: Conflict, found: Finding) -> Finding:
    """The finding, with the buffer of PROGRAM.toml whose bytes both access; if two buffers share
    the place, their line is the culprit."""
    if (at := l1_address(conflict.place)) is None:
        return found
    if at and (ends := bytes_at(context, races.tile, at)) is not None:
        found = replace(found, ends=ends)
    both = f"{maker(conflict.first.step)} and {maker(conflict.second.step)}"
    both = f"only their speed decides in which order {both} reach {name(conflict.place)}"
    return in_shared_bytes(context, races.tile.xy, at, found, both)


def _of_both(races: Observed, conflict: Conflict, told: str) -> tuple[str, ...]:
    """What each side does, and when; then `told`."""
    sides = (conflict.first, conflict.second)
    does = [("writes" if one.write else "reads", Act(races.tile, one.step)) for one in sides]
    return (*(f"one {verb} {act}" for verb, act in does), told)


def _blamed(context: Context, races: Observed, conflict: Conflict, *, meant: bool) -> Blame:
    """The step that is wrong, what is wrong with it, what to do.

    meant: the first access is meant to be the first.
    """
    first, second, what = conflict.first, conflict.second, kind(conflict.place)

    def blame(step: Step, text: str, advice: str, *, either: bool = False) -> Blame:
        return Blame(Act(races.tile, step), text, advice, either)

    if conflict.foreign:
        text = f"{_CHANGES} what {maker(first.step)} has set for its own thread"
        return blame(second.step, text, _LEAVE)
    unit = conflict.thread
    if unit is not None and unit in (first.thread, second.thread):
        others = [e for e in (first, second) if e.write and e.thread not in (None, unit)]
        if others:
            text = f"{_CHANGES} what the unit of another thread reads"
            return blame(others[0].step, text, _LEAVE)
    if conflict.clears is not None:
        text = f"{_CHANGES} fields of that word that the other core sets"
        return blame(conflict.clears.step, text, "change the own fields alone: RMWCIB")
    if (pushed := _early_for_words(races, conflict)) is not None:
        return blame(*pushed)
    if (wrong := in_used_page(context, races, conflict)) is not None:
        return wrong
    for event in (first, second):
        if event.owner == r.HOST:
            text = "for it ends the program while an output is still to be written"
            return blame(event.step, text, _END)
    if what == "L1" and races.ignores(first, second):
        text = "for it never looks at the pages that the other side counts"
        advice = "wait for pages or room (cb_wait_front, cb_reserve_back) before"
        return blame(second.step, text, advice)
    if (wrong := uncounted(context, races, conflict)) is not None:
        return wrong
    for event in (one for one in (first, second) if not one.write):
        if (begun := races.begun(event)) is not None:
            text = f"for semaphore {event.taken}, for which {maker(event.step)} waits, is"
            advice = "begin at 0 what the others post"
            return blame(begun[0], f"{text} {begun[1]} before a post", advice)
    for event, other in ((second, first), (first, second)):
        if (old := races.old_look(event, other)) is not None:
            text = f"for L1 {4 * old.word:#x} still holds {OLD}"
            return blame(old.step, text, SET_BACK)
    for event, other in ((second, first),) if meant else ((second, first), (first, second)):
        # its core has waited before it pushed the word
        counted = isinstance(event.step, Word) and event.step.core != other.step.core
        counted = counted and races.poll_for(event, other)[1] > 1
        if not races.has_waited(event) and not counted:
            return blame(*_without_wait(context, races, event, other, meant=meant))
        if meant and (early := _released_early(context, races, other, event)) is not None:
            return blame(early, _EARLY, _RELEASE)
    if second.before is not None and races.is_kept(second):
        text = "after which nothing takes from the semaphore that it has waited for"
        return blame(second.before, text, _GET)
    poll, given = races.poll_for(second, first)
    wait = poll if given and not isinstance(second.step, Word) else None
    return blame(wait or second.step, _EITHER, _BOTH, either=True)


def _early_for_words(races: Observed, conflict: Conflict) -> tuple[Step, str, str] | None:
    """The act of a core that comes too early for words that the core has pushed."""
    first, second, what = conflict.first, conflict.second, kind(conflict.place)
    word, own = (first, second) if isinstance(first.step, Word) else (second, first)
    pushed = isinstance(word.step, Word) and not isinstance(own.step, Word)
    if pushed and own.step.core == word.step.core:  # which its core has pushed
        used = what == "Config" and own.owner_clock >= word.push_clock
        if used or what in ("GPR", _TEMPLATE):
            text = "for a word that its core has pushed before may still need what is there"
            return own.step, text, _MOP_SYNC if what == _TEMPLATE else _SYNC
    # a core lets others go on before the word has executed
    for event, other in ((first, second), (second, first)):
        core = event.step.core
        for clock, step in races.releases(core) if isinstance(event.step, Word) else ():
            if core != other.owner and event.push_clock <= clock <= other.vector[core]:
                text = "for it lets others go on while words that its core has pushed are still to"
                return step, f"{text} come", _SYNC
    return None


def _without_wait(
    context: Context, races: Observed, event: Event, other: Event, *, meant: bool
) -> tuple[Step, str, str]:
    """What is wrong with an event whose owner has not waited for the other side."""
    if event.wait is not None:
        text = "for its block bits leave out the word that should wait"
        return event.wait, text, "name the unit of the words that must wait in stall_res"
    early = _released_early(context, races, *((other, event) if meant else (event, other)))
    if early is not None:
        return early, _EARLY, _RELEASE
    return event.step, f"{NOTHING} wait for the other side", _WAIT


def _released_early(context: Context, races: Observed, event: Event, other: Event) -> Step | None:
    """The act of an event's owner before it that let the other side go on, if that is too early.

    If the owner had made such an access before it let others go on from there for the first time,
    that act belongs to the earlier access.
    """
    known = min(int(other.vector[event.owner]), event.owner_clock)
    released = [
        (clock, step)
        for clock, step in races.releases(event.owner)
        if clock <= known and not context.in_firmware(races.tile, step.core, step.pc)
    ]
    if not released or event.again:
        return None
    last = released[-1][1]
    begun = next(clock for clock, step in released if step.pc == last.pc)
    sent = races.together.sent[event.home] if races.together else ()
    return None if first_clock(races.record, event, sent) < begun else last


def _raced(context: Context, races: Observed, conflict: Conflict, *, meant: bool) -> Finding:
    tile, first, second = races.tile, conflict.first, conflict.second
    blame = _blamed(context, races, conflict, meant=meant)
    blamed = blame.act.step
    victim = first if blamed is second.step or blamed.core == second.step.core else second
    one, place_of = f"{blame.act.name} of {maker(blamed)}", name(conflict.place)
    if blame.text.startswith(_CHANGES):
        text = f"{one} writes {place_of}, {blame.placed()[1]}"
    elif r.HOST in (first.owner, second.owner):
        text = f"{one} is too early, {blame.placed()[1]}: {place_of}"
    else:
        both = f"{maker(first.step)} and {maker(second.step)}"
        text = f"only their speed decides in which order {both} reach {place_of}: {blame.told(one)}"
    no_order = "no semaphore, hand-over, TTSync, mutex, mailbox or polled word of this run orders"
    no_order += f" {maker(first.step)} at clock {first.step.clock} before {maker(second.step)}"
    no_order += f" at clock {second.step.clock}"
    ends = None
    if kind(conflict.place) == "Dst":  # the semaphores that both sides have waited for
        taken = [one.taken for one in (first, second) if one.taken is not None]
        lost = f"{CORE_NAMES[blamed.core]} has waited for it and takes nothing"
        things = frozenset(("semaphore", index) for index in taken)
        ends = Ends(tile.xy, things, lost if blame.advice == _GET else "")
    who, other = blame.culprit(tile), Act(tile, victim.step).placed()
    told = _of_both(races, conflict, no_order)
    return Finding("races", "error", text, who, other, told, blame.advice, ends)


# Units that are still at work


def _stalled(races: Observed, conflict: Conflict) -> Finding:
    tile, first, blamed = races.tile, conflict.first, conflict.second.step
    unit = unit_of(first.step.word) if isinstance(first.step, Word) else None
    if first.owner != conflict.second.owner and unit is not None:
        blamed = races.release_after(first) or blamed
    place_of, earlier, act = name(conflict.place), Act(tile, first.step), Act(tile, blamed)
    if unit is None:
        condition = "TRISC_CFG (0x400)"
        text = f"until a store of {maker(first.step)} to {place_of} has taken place"
    else:
        condition = _STALL[unit]
        text = f"for the {unit} unit, which may still be at work on {place_of} for {earlier.name}"
    held = f"no STALLWAIT for {condition} holds back {act.name} in between"
    advice = f"before it STALLWAIT with wait_res = {condition}"
    cls = decode(blamed.word) if isinstance(blamed, Word) else None
    if cls is not None and cls.stall.startswith("B"):  # the narrowest class that holds it back
        bit = cls.stall_mask.bit_length() - 1
        advice += f", stall_res = {BLOCKS.names[bit]} ({1 << bit:#x})"
    text, told = f"{act.name} does not wait {text}", _of_both(races, conflict, held)
    return Finding("races", "error", text, act.placed(), earlier.placed(), told, advice)


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


# Loads that get old bytes of L1, in runs with modelled data caches of the cores.

_SEEDS = 3
_LINES = 4  # of a data cache
_FENCE_IT = "fence (invalidate_l1_cache) before the load: a cache does not see what others write"


def _stale(context: Context) -> list[Finding]:
    """The loads of stale bytes in a run that ends differently from one without caches."""
    if context.program.l0 == "model":  # then every stale load is the user's business
        seed = context.program.options.get("seed", 0)
        found = _in_caches(context, context.again(l0="model", seed=seed), seed)
        unfenced = [] if found else list(_unfenced(context))
        return found or with_rest(unfenced[: witness.SEEN], len(unfenced[witness.SEEN :]))
    if not context.symptom.fine:  # it is wrong without caches
        return []
    for seed in range(1, _SEEDS + 1):
        seen = context.again(l0="model", seed=seed)
        if not seen.same(context.symptom):
            return _in_caches(context, seen, seed)
    return []


def _unfenced(context: Context) -> Iterator[Finding]:
    """Loops that wait for a word of another core and never drop their data cache."""
    for seen in observed(context):
        tile = seen.tile
        for core, pc, address in seen.polls:
            loop, writer = spin(tile.state.l1, pc), seen.writer(core, address)
            if loop is None or writer is None:
                continue
            words = tile.state.l1[loop[0] : loop[1]].view(np.uint32).tolist()
            kinds = [cls for word in words if (cls := decode_riscv(word)) is not None]
            fences = any(issubclass(cls, Fence | Atomic) for cls in kinds)
            if fences or sum(issubclass(cls, Load) for cls in kinds) > _LINES:
                continue  # more loads than lines replace each other's
            at, told = where_core(tile, core, pc), "here the word was there in time, by chance"
            text = f"{at.core} waits for L1 {address:#x} in a loop without a fence, with a data"
            text += f" cache: what others write is not seen there: {at}"
            who, other = place(at, None, tile), Act(tile, writer).placed()
            yield Finding("stale", "warning", text, who, other, (told,), _FENCE_IT)


@dataclass
class _Load:
    """A load of stale bytes, and the step that wrote newer ones.

    repeated: the load got them twice, and the core did not drop its cache in between.
    """

    step: Instruction
    address: int
    writer: Step | None
    polled: bool = False
    repeated: bool = False


def _in_caches(context: Context, seen: Outcome, seed: int) -> list[Finding]:
    """The loads of the first tile that got stale bytes in a run that was `seen`."""
    stale = (one for one in context.tiles(seen.machine) if one.state.l0_stale[:, 0].any())
    if (where := next(stale, None)) is None:
        return []
    machine = context.launch(engine="compiled", l0="model", seed=seed, **context.alone)
    observer = Observer(machine.tile[where.xy])
    context.finish(machine, limit=context.most)
    observer.rows()  # raises what has gone wrong
    again = Observed(observer)
    loads = list(_stale_loads(again).values())
    chosen = [one for one in loads if not one.polled] or loads
    how = "otherwise" if not seen.fine or context.program.l0 != "model" else "as without, by chance"
    end = "; ".join(joined(str(result)) for result in seen.wrong)
    end = end_of(seen.error) if seen.error else end
    shown = []
    for load in chosen[: witness.SEEN]:
        act, place_of = Act(again.tile, load.step), f"L1 {load.address:#x}"
        victim: dict[str, Any] = {"place": place_of}
        by = "by the coprocessor, the host or over the NoC"
        if load.writer is not None:
            writer = Act(again.tile, load.writer)
            victim, by = writer.placed(), f"by {writer.where}"
        evidence = (
            f"{place_of} was written {by}, after the core had loaded its line",
            f"with data caches the program ends {how}" + (f": {end}" if end else ""),
            f"as in bhemu run {context.program.path or 'PROGRAM'} --l0 model --seed {seed}",
        )
        text = f"a load of {maker(load.step)} gets an old {place_of} from its data cache"
        text = f"{text}: {act.where}"
        shown.append(Finding("stale", "error", text, act.placed(), victim, evidence, _FENCE_IT))
    return with_rest(shown, len(chosen[witness.SEEN :]))


def _stale_loads(seen: Observed) -> dict[tuple[int, int], _Load]:
    """All loads of stale bytes of a tile, by core and pc."""
    found: dict[tuple[int, int], _Load] = {}
    since = set[tuple[int, int]]()  # loads of stale bytes since their core dropped its cache
    dropped = set[tuple[int, int]]()  # whose core has dropped it since
    notes = seen.notes[np.isin(seen.notes[:, r.N_WHAT], (STALE, DROPPED, ACCESSED))]
    for what, _, _, pc, core, time, address in notes[:, : r.N_LOW + 1].tolist():
        key = core, pc
        if what == DROPPED:
            dropped |= {other for other in found if other[0] == core}
            since = {other for other in since if other[0] != core}
        if key in dropped and found[key].polled and not found[key].repeated:
            dropped.discard(key)  # a turn of a poll that dropped the cache and looked again
            del found[key]
        if what == STALE:
            step = Instruction(time, core, pc, seen.tile.read32(pc))
            load = found.setdefault(key, _Load(step, address, seen.writer(core, address, time)))
            load.repeated |= key in since
            since.add(key)
            load.polled = load.step is not step or is_polled(seen.tile.state.l1, pc)
    return found


STALE_CHECK = Check(
    "stale",
    proves="a load that gets older bytes than L1 holds, because another agent wrote them and the"
    ' core did not drop its cache, in a run that ends otherwise for it; with l0 = "model" also a'
    " loop that waits for a word of another core without a fence",
    misses="stale bytes that change nothing; which line is replaced and when hardware drops all of"
    " them is a model",
    cost="3 runs, and an observed one where they differ",
    applies=lambda seen: 0 if seen.refused else 65,
    run=_stale,
)


# A last look at a run that is right: the same with all agents late, as they may be on hardware.
_ADVICE = (
    "look for what must have happened before this, or must wait for it, and nothing orders it;"
    " unless the program reads a clock"
)


def _when_late(context: Context) -> Sequence[Finding]:
    if not context.symptom.fine or context.program.kind == SESSION:
        return []
    seen = witness.of_run(context)
    if seen is None:
        return []
    acts = seen.late.acts
    who = _placed(context, acts[0]) if len(acts) == 1 else {}
    late, at = "words, cores and transfers are late, as they may be on hardware", in_words(who)
    if acts and acts[0].agent == NOC:
        late = f"the requests of {at} are late" if who else "requests to the NoC are late"
    elif acts:
        core, _, stores = acts[0].agent.partition("_")
        late = f"the stores of {core} are" if stores == "stores" else f"{acts[0].agent} is"
        of = "" if acts[0].tile is None else " on tile ({},{})".format(*acts[0].tile)
        late += f" late at {at}" if who else f" late{of}"
    ending, _, _ = witness.ending(seen).partition(";")
    text = f"the result depends on time: it is wrong if {late}: {ending}"
    return [Finding("late", "error", text, who, {}, (witness.shown(context, seen),), _ADVICE)]


def with_pairs(late: Sequence[Finding], told: Sequence[Finding]) -> list[Finding]:
    """The findings, of which notes tell pairs that nothing orders and no late run of theirs shows.

    A late run of everything that goes wrong shows the pair that the delayed line is of; if no line
    was found, or PROGRAM.toml is wrong, the only pair.
    """
    pairs = [one for one in told if one.check == "order"]
    if not late or not pairs:
        return [*told, *late]
    (seen,) = late
    at = seen.culprit.get("core"), seen.culprit.get("pc")
    only = len(pairs) == 1 and (at[1] is None or "pc" not in pairs[0].culprit)

    def is_shown(one: Finding) -> bool:
        sides = ((side.get("core"), side.get("pc")) for side in (one.culprit, one.victim))
        return only or (at[1] is not None and at in sides)

    if (chosen := next(filter(is_shown, pairs), None)) is None:
        unshown = [f"{one.text}: {in_words(one.culprit)}" for one in pairs]
        return [*told, with_evidence(seen, unshown)]
    evidence = [line for line in chosen.evidence if line != witness.NOT_SHOWN]
    shown = replace(chosen, severity="error", evidence=(*evidence, seen.text, *seen.evidence))
    return [shown if one is chosen else one for one in told]


def _placed(context: Context, acts: Acts) -> dict[str, Any]:
    """The place of the delayed acts, in the code of the core that makes or pushes them."""
    if acts.pc is None:
        return {}
    every, seen = context.tiles(context.symptom.machine), observed(context)
    tile = next(t for t in every if acts.tile in (None, t.xy))
    own = acts.agent.partition("_")[0]
    if acts.agent == NOC and seen[0].together is not None:  # whose code sends at that pc
        sent = [one for one in requests(context) if one.step.pc == acts.pc]
        by = [where_of(seen[one.tile].tile, one.step) for one in sent]
        if len({(one.core, one.file, one.line) for one in by}) != 1:
            return {}
        return with_role(place(by[0], None, seen[sent[0].tile].tile), "late")
    names = [own] if own in CORE_NAMES else CORE_NAMES
    for core in map(CORE_NAMES.index, names):
        if tile.core[CORE_NAMES[core]].images and tile.locate(core, acts.pc)[0] is not None:
            return with_role(place(where_core(tile, core, acts.pc), None, tile), "late")
    return {}


LATE_CHECK = Check(
    "late",
    proves="that the run goes wrong where words, cores and transfers are late, as they may be on"
    " hardware, although no check has found what is not ordered; named is the agent, and its line,"
    " whose delay is enough",
    misses="what is wrong only with other delays than those of eight seeds; the other side of the"
    " access that is not ordered",
    cost="only where a run is right and nothing else was found: eight late runs, one of each"
    " agent alone, of a chip two of each of 16 cores, and up to 36 that look for the line",
    applies=lambda seen: 1 if seen.fine else 0,
    run=_when_late,
)
