"""Values that nothing has written, or only an earlier launch, found by runs with other values;
replay slots that are played and were not recorded so."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bhemu.errors import Where
from bhemu.jit.record import plain
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import outside_headers, where_core
from bhemu.machine.hang.waits import PAGES, buffer_of
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.program.schema import SESSION
from bhemu.tensix import config_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.frontend import MOP, MOP_CFG, REPLAY, issued
from bhemu.tensix.insn import decode
from bhemu.tensix.state import OFFSET
from bhemu.tensix.units import sync
from bhemu.why import order as r
from bhemu.why import trials as launches
from bhemu.why.check import Check, Context, Outcome, end_of
from bhemu.why.checks.buffers import Event, declared, events, fills, page_at
from bhemu.why.findings import Finding, in_words, line_of, merged, place, with_evidence, with_role
from bhemu.why.order.conflicts import Observed, observed, seen_at
from bhemu.why.order.shadow import PUSHED
from bhemu.why.steps import Act, Instruction, maker
from bhemu.why.trials import ITEM, MAIL, STRIDE, Fill, Offsets, Trials, member_of, together

_SEEN, _FILLS = 3, 2  # findings of a run, of a chip one
_MORE = "other places that nothing has written decide the result, too: they are not shown"
_WORD = 4
_REGISTERS = 1024  # of a stream
_NEAR = 64  # bytes: what belongs together
_AREA, _WIDER = 1024, 16  # bytes around a place; by how much it grows
_BESIDE = "what lies next to it"
_DATUM = "it"  # what is filled as a whole, where nothing larger is
_KINDS = ("elf", "image", "tt-metal")  # of programs that can be launched again


def run(context: Context) -> list[Finding]:
    """Bytes that decide an output or the end, and that nothing or an earlier launch has written."""
    trials = Trials(context)
    unwritten = launches.unwritten_bytes(trials)
    found = _never(trials, unwritten)
    if context.symptom.fine and context.program.kind in _KINDS:
        if not found:  # then memory of the next launch may hold anything
            trials.stand_on(launches.filled(unwritten, 1))
        left, leaks = launches.left_bytes(trials), list[Finding]()
        while left and len(leaks) < _SEEN and trials.differs(together(left.values())):
            names = [[*left][n] for n in trials.needed([*left.values()])]
            leaks.append(_leak(trials, [left[name] for name in names]))
            gone = [member for _, member in names]
            left = {n: part for n, part in left.items() if n[1] not in gone}
        found += leaks
    return found


def _leak(trials: Trials, parts: list[Fill]) -> Finding:
    """The finding of state that a launch leaves and the next one of the same program uses.

    parts: of members of the record, which decide together.
    """
    fill, *others = parts
    number, at = divmod(int(fill.at[0]), STRIDE)
    tile, member = trials.tiles[number], member_of(at)[0]
    if member in MAIL:  # the count of a mailbox that holds a message
        s = trials.context.tiles(trials.context.symptom.machine)[number].state
        for n in np.flatnonzero(s.mailbox_write != s.mailbox_read):
            low = number * STRIDE + OFFSET[MAIL[0]] + int(n) * ITEM[MAIL[0]]
            chosen = (fill.at >= low) & (fill.at < low + ITEM[MAIL[0]])
            if chosen.any():
                fill = Fill(fill.at[chosen], fill.values[chosen])
                break
    elif not others:
        fill = trials.deciding(fill, ITEM[member])
    at = int(fill.at[0]) - number * STRIDE
    name, (member, rest) = launches.place_name(at), member_of(at)
    read, made = trials.reader(fill), trials.maker(int(fill.at[0]))
    who = {} if read is None else place(read.where, read.clock, trials.tile_of(read.where))
    changed = trials.result(together([fill, *others]))
    value = int.from_bytes(fill.values[: ITEM[member]].tobytes(), "little")
    end = f"it ends so: {end_of(changed.error)}" if changed.error else "an output changes"
    text = f"a launch leaves {value:#x} in {trials.name(int(fill.at[0]))}{launches.field_names(at)}"
    stream, register = divmod(rest // _WORD, _REGISTERS)
    buffer = buffer_of(tile, stream) if member == "stream" else None
    if buffer is not None and register in PAGES:
        text += f" (pages {PAGES[register][1]} of buffer {buffer})"
    text += ", which the next one uses" + (f" at {read.where}" if read else "")
    evidence = [f"run again on the coprocessor as this run leaves it, {end}"]
    if trials.ground.at.size:
        evidence = [f"{evidence[0]}; what nothing has written holds other bytes there"]
    culprit, victim = who, {"place": name}
    if made is not None:
        culprit, victim = place(*made, tile), who
        evidence += [f"used by {in_words(who)}"] if who else []
    if others:
        shown = ", ".join(trials.name(int(one.at[0])) for one in others[:_SEEN])
        evidence.append(f"together with what it leaves in {shown}")
    advice = f"set {name} before it is used, or put it back at the end"
    return Finding("unwritten", "error", text, culprit, victim, tuple(evidence), advice)


def _never(trials: Trials, unwritten: Offsets) -> list[Finding]:
    """Findings of bytes that nothing has written, one for each line.

    What lies near a place belongs to it; the wider, the more of it the same line reads.
    """
    found: dict[Hashable, Finding] = {}
    most = _SEEN if trials.context.program.is_alone else 1
    for number in range(1, _FILLS + 1):
        fill, near = launches.filled(unwritten, number), _AREA
        while not trials.context.late and fill.at.size and trials.differs(fill):
            if len(found) == most:
                last = [*found][-1]
                found[last] = with_evidence(found[last], [_MORE])
                break
            one = trials.deciding(fill)
            told = _finding(trials, one, unwritten)
            near = _WIDER * near if line_of(told) in found else _AREA
            found.setdefault(line_of(told), told)
            fill = launches.without(trials, fill, int(one.at[0]), near)
        if found:
            break
    return [*found.values()]


def _finding(trials: Trials, fill: Fill, unwritten: Offsets) -> Finding:
    at, read = int(fill.at[0]), trials.reader(fill)
    name = trials.name(at)
    tile = None if read is None else trials.tile_of(read.where)
    # where it is to be written is not known
    who = with_role({} if read is None else place(read.where, read.clock, tile), "read by")
    changed = trials.result(fill)
    what = "the program ends differently" if changed.error else "an output changes"
    where = "" if read is None else f", read by {read.where}"
    text = f"{name} decides the result, and nothing has written it{where}"
    values = " ".join(f"{value:02x}" for value in fill.values[:8])
    evidence = [f"with {values} there instead of what power-up leaves, {what}"]
    if changed.error is not None:
        evidence.append(end_of(changed.error))
    victim: dict[str, object] = {"place": name}
    if read is not None and read.by_noc:  # the request that fetches it, or sends it on
        who = with_role(place(outside_headers(read.where), read.clock, tile), "read by")
    announced = None if read is None else _announced(trials, read, at, unwritten)
    if announced is not None:
        return replace(announced, victim=who, evidence=(*evidence, *announced.evidence))
    evidence += [] if read is None else _with_it(trials, read, at)
    near = _neighbour(trials, at)
    if near is None and read is not None and read.where.thread is not None:
        near = trials.brought_up_to(at, _NEAR)
    near_it = _BESIDE
    if near is None and (part := _whole(trials, at)) is not None:
        near_it, (number, rest) = f"the rest of {part[0]}", divmod(at, STRIDE)
        changed_there = trials.made(np.arange(part[1].start, part[1].stop), number)
        if changed_there.size:  # the nearest to the byte
            nearest = int(changed_there[np.argmin(np.abs(changed_there - rest))])
            near = trials.maker(number * STRIDE + nearest, None if read is None else read.clock)
        near = near if near is None or read is None or near[1] <= read.clock else None
        if near is not None and part[0] == _DATUM:
            text = text.replace("has written it", "has written it in full", 1)
    if near is not None:
        its = _moved(_here(trials, near[0], at), *near, "writes")
        filled = f": L1 {its.start:#x} to {its.stop:#x}" if its else ""
        evidence.append(f"{near_it} is written by {near[0]}{filled}")
        role = "writes beside it" if near_it == _BESIDE else "writes the rest"
        who, victim = with_role(place(*near, trials.tile_of(near[0])), role), who
    cls = decode(read.where.word) if read is not None and read.where.word is not None else None
    if read is not None and cls is not None and cls.name == "PACR":  # who made the packer add
        low = at // STRIDE * STRIDE + OFFSET["cfg"]
        low += 4 * config_fields.THCON_SEC0_REG1_Pack_L1_Acc.word
        made = [trials.maker(low + 4 * CONFIG_WORDS * bank, read.clock) for bank in range(2)]
        if (by := next((one for one in made if one is not None), None)) is not None:
            evidence.append("PACR reads L1 because what it packs is added to what is there")
            who, victim = place(*by, tile), place(read.where, read.clock, tile)
    advice = f"write {name} before this reads it; if another place was meant, correct what is read"
    return Finding("unwritten", "error", text, who, victim, tuple(evidence), advice)


def _here(trials: Trials, where: Where, at: int) -> Observed | None:
    """The observed run of the tile that holds a byte, if a place is on it."""
    number = at // STRIDE
    own = number < len(trials.tiles) and trials.tiles[number].xy == where.tile
    seen = seen_at(trials.context, where.tile)
    return seen if own else None


def _moved(seen: Observed | None, where: Where, clock: int, kind: str) -> range:
    """The bytes of L1 that the last UNPACR, PACR or request of a place up to a clock moves."""
    by, every = (where.core, where.pc, kind), [] if seen is None else events(seen)
    its = [one for one in every if (one.who, one.pc, one.kind) == by and (one.clock or 0) <= clock]
    return range(its[-1].low, its[-1].high) if its else range(0)


def _with_it(trials: Trials, read: launches.Reader, at: int) -> Iterator[str]:
    """What is read with an unwritten byte, and what PROGRAM.toml declares that ends before it."""
    context, seen, rest = trials.context, _here(trials, read.where, at), at % STRIDE
    its = _moved(seen, read.where, read.clock, "reads")
    if seen is not None and rest in its:
        ends = [(end, name) for _, end, name in declared(context, context.part(seen.tile))]
        near = [one for one in ends if its.start - len(its) <= one[0] <= rest]
        ended = "".join(f"; {name} ends at {end:#x}" for end, name in sorted(near)[-1:])
        yield f"it reads L1 {its.start:#x} to {its.stop:#x}{ended}"


def _announced(
    trials: Trials, read: launches.Reader, at: int, unwritten: Offsets
) -> Finding | None:
    """The finding of an unwritten byte of a page of a circular buffer that another core than its
    reader has announced; its victim is left out."""
    context, (number, rest) = trials.context, divmod(at, STRIDE)
    seen = _here(trials, read.where, at)
    page = None if seen is None else page_at(context, seen, rest, read.clock)
    told = None if page is None else page.told
    if seen is None or page is None or told is None or not page.held or told.who == read.where.core:
        return None

    def by(event: Event) -> dict[str, Any]:
        where = where_core(seen.tile, event.core, event.pc, thread=event.thread)
        return place(where, event.clock, seen.tile)

    its = np.arange(page.bytes.start, page.bytes.stop)
    low, high = np.searchsorted(unwritten, number * STRIDE + its[[0, -1]] + (0, 1))
    never = np.setdiff1d(unwritten[low:high] - number * STRIDE, trials.made(its, number))
    trials.begin(launches.NOTHING)
    other = Fill(never + number * STRIDE, ~trials.bytes()[number][never])
    trials.result(other)  # what writes the values of power-up is seen with others there
    never = never[trials.bytes()[number][never] == other.values]
    inside, outside = fills(context, seen, page)
    text = f"{trials.name(at)} decides the result, and nothing has written it when {told.who}"
    text, advice = f"{text} announces {page}", f"fill {page} before it is announced"
    who, role, evidence = by(told), "announces it", list[str]()
    some = np.setdiff1d(its, np.append(never, rest))  # written at some time
    if rest in never and len(never) > 1:
        others = f"{len(never) - 1} others" if some.size else "any"
        text += f", nor {others} of its {len(its)} bytes"
    if some.size:
        nearest = int(some[np.argmin(np.abs(some - rest))])
        near = trials.maker(number * STRIDE + nearest, read.clock)
        filler = {} if inside is None else by(inside)
        if near is not None and near[1] <= read.clock:
            filler = place(*near, seen.tile)
        if filler:
            rest_of = f"the rest of its page of buffer {page.spec.index}"
            evidence = [f"{rest_of} is written by {in_words(filler)}"]
            evidence, role = [*evidence, f"announced by {in_words(who)}"], "writes the rest"
            who, advice = filler, f"fill all of {page} before it is announced, or read less of it"
    elif outside is not None:
        advice += ", or correct the address that it fills"
        evidence = [f"before that it fills L1 from {outside.low:#x} on: {in_words(by(outside))}"]
    return Finding("unwritten", "error", text, with_role(who, role), {}, tuple(evidence), advice)


def _neighbour(trials: Trials, at: int) -> tuple[Where, int] | None:
    """The step that writes L1 next to an unwritten byte; on a chip only a core's."""
    number, rest = divmod(at, STRIDE)
    if number >= len(trials.tiles) or rest >= L1_SIZE:
        return None
    around = np.arange(max(rest - _NEAR + 1, 0), min(rest + _NEAR, L1_SIZE))
    changed = trials.made(around, number)
    after, before = changed[changed > rest], changed[changed < rest]
    full = len(before) >= _NEAR - _WORD
    if rest % _NEAR == 0 and not full:  # what is written before it seems to be complete
        before = before[:0]
    near = [*after[:1], *before[-1:]]
    found = trials.maker(number * STRIDE + int(near[0])) if near else None
    ends = rest % _NEAR == 0 and not len(after)  # what is written up to here
    if found is not None and found[0].thread is not None and (ends or len(trials.tiles) > 1):
        return None
    return found


def _whole(trials: Trials, at: int) -> tuple[str, range] | None:
    """What is filled as a whole and holds a byte, and its bytes: a page of a declared buffer, a
    row of Src, a datum of another member."""
    number, rest = divmod(at, STRIDE)
    if number >= len(trials.tiles):
        return None
    name, offset = member_of(rest)
    if name != "l1":
        size = ITEM[name] * (COLUMNS if name == "src" else 1)
        low = rest - offset % size
        return ("its row" if name == "src" else _DATUM), range(low, low + size)
    parts = (part for part in trials.context.program.placed() if trials.tiles[number].xy in part.at)
    for one in (one for part in parts for one in part.buffers):
        if one.at <= rest < one.at + one.size:
            low = rest - (rest - one.at) % one.page
            return f"its page of buffer {one.index}", range(low, low + one.page)
    return None


def applies(seen: Outcome) -> int:
    """To every run: zeros of an emulator hide what is missing."""
    return 80 if not seen.refused else 40


CHECK = Check(
    "unwritten",
    proves="bytes of L1, DRAM, local memory, GPRs, LRegs, Dst, Src, MOP or replay slots that"
    " nothing has written and that decide an output or how the program ends; named is who writes"
    " what lies next to them or the rest of their page, row of Src or datum, else who announces"
    " their page of a circular buffer, uses them or sends them on. State of the coprocessor that a"
    " launch leaves and that makes a second launch of the same program end differently: Config,"
    " ThreadConfig, GPRs, counters, banks, Dst, LRegs, lane flags, MOP and replay slots, the"
    " packer's position, semaphores, mutexes, mailboxes, credits of circular buffers; on a chip of"
    " every tile. Where a run went wrong, nothing is said of the next launch",
    misses="which places decide besides the first three, of a chip the first one;"
    " Config and ThreadConfig that no launch has set, which power-up leaves at 0; counters"
    " and lanes, for which there is `powerup`; values that are read and decide nothing; what only"
    " another program leaves; low L1 where firmware boots only with zeros there; requests that are"
    " under way at the end (see barriers); of a chip all tiles but some ten, the first of each part"
    " among them; rows of Dst that were cleared and not written since",
    cost="6 runs; where something decides, the observed run of `races`, some 20 for each finding",
    applies=applies,
    run=run,
)


# Counters and lanes that a program takes over as power-up leaves them.


_RWC = (8, 8, 8, 1)  # rows of SrcA, SrcB and Dst, fidelity phase
_OTHERS = "with others than those of power-up, as another kernel may leave them, it is another"


_TAKEN_OVER = (  # of power-up: what sets it, members and what they hold instead
    ("the lanes that are on", "SFPENCC", {"cc": 0, "cc_en": 1}),
    ("the ADC counters", "SETADC, SETADCXY, SETADCXX, SETADCZW", {"adc": 1, "adc_cr": 1}),
    ("the RWC counters", "SETRWC", {"rwc": _RWC, "rwc_cr": _RWC}),
)


def _put(tile: Tile) -> None:
    """Set counters and lanes that differ from those of power-up."""
    for *_, members in _TAKEN_OVER:
        for name, value in members.items():
            getattr(tile.state, name)[...] = value


def _of_power_up(context: Context) -> list[Finding]:
    """Counters and lanes of power-up that decide the end, and the step that uses them first."""
    trials, found = Trials(context), []
    launched = context.launch(engine="compiled", prepare=_put, **context.alone)
    for name, setters, members in _TAKEN_OVER:
        parts = []  # what a launch keeps, on every tile
        for number, tile in enumerate(launched.tiles_made()):
            for title, value in members.items():
                member = getattr(tile.state, title)
                other = np.broadcast_to(value, member.shape).reshape(-1)
                held = np.flatnonzero(member.reshape(-1) == other)
                at = number * STRIDE + OFFSET[title] + held * ITEM[title]
                parts.append(Fill(at, other[held].astype(np.uint8)))
        fill = together(parts)
        if fill.at.size and trials.differs(fill):
            by = trials.reader(fill)
            text = f"{name} decide the result, and nothing has set them"
            text += "" if by is None else f": {by.where}"
            who = {} if by is None else place(outside_headers(by.where), by.clock)
            advice = f"{setters} before this"
            found.append(Finding("powerup", "warning", text, who, {}, (_OTHERS,), advice))
    return found


POWER_UP = Check(
    "powerup",
    proves="lanes of the vector unit, ADC or RWC counters that nothing has set and that decide an"
    " output or how the program ends; named is the word that uses them first. `why` does not ask"
    " this: a first kernel may rely on power-up, which a later one may not",
    misses="Config and ThreadConfig; what decides nothing with the one other value that is tried",
    cost="5 runs, and the observed run of `races` where something decides",
    applies=lambda seen: 0,
    run=_of_power_up,
)


# Replay slots that nothing has recorded, or that another line has replaced.


_SLOTS = 32


@dataclass
class _Thread:
    """The replay buffer of a thread: by slot the push that began its recording."""

    slots: dict[int, Instruction] = field(default_factory=dict)
    under: dict[int, Instruction] = field(default_factory=dict)  # what a recording replaced
    recording: Instruction | None = None
    at: int = 0
    left: int = 0


class Slots:
    """Follows the pushes of a tile's cores."""

    def __init__(self, seen: Observed) -> None:
        self._seen, self._template = seen, seen.template.copy()
        self._zmask = [0] * 3
        self._threads = [_Thread() for _ in range(3)]
        self.found: dict[tuple[int, int], Finding] = {}

    def follow(self) -> "Slots":
        """Follow all notes of the observed run (shadow.py)."""
        for what, t, value, pc, core, time in self._seen.notes[:, : r.N_TIME + 1].tolist():
            if what == PUSHED:
                self._pushed(t, value, Instruction(time, core, pc, 0))
            elif what < PUSHED:
                self._template[t, what] = value
        return self

    def _pushed(self, t: int, word: int, step: Instruction) -> None:
        thread, opcode = self._threads[t], word >> 24
        if opcode == MOP_CFG:
            self._zmask[t] = sync.MOP_CFG.zmask_hi16.get(word)
        if opcode == MOP:
            for held in self._issued(t, word):
                if held >> 24 == REPLAY:
                    self._replay(t, held, step)
        elif thread.left:
            if thread.slots.get(thread.at) not in (None, thread.recording):
                thread.under[thread.at] = thread.slots[thread.at]
            assert thread.recording is not None
            thread.slots[thread.at] = thread.recording
            thread.at, thread.left = (thread.at + 1) % _SLOTS, thread.left - 1
        elif opcode == REPLAY:
            self._replay(t, word, step)

    def _issued(self, t: int, word: int) -> Iterator[int]:
        """The words of its configuration that a MOP issues."""
        template, low = self._template[t], sync.MOP.zmask_lo16_or_loop_count.get(word)
        mask = np.int64(low | self._zmask[t] << 16)
        steps = sync.MOP.loop_count.get(word) + 1
        given = int(plain(issued)(template, sync.MOP.mop_type.get(word), mask, steps))
        return (int(held) for k, held in enumerate(template) if given >> k & 1)

    def _replay(self, t: int, word: int, step: Instruction) -> None:
        cls = decode(word)
        assert cls is not None
        f, thread = cls.operands(word), self._threads[t]
        first, count = f["start_idx"], f["len"] or 64
        if f["load_mode"]:
            thread.recording, thread.at, thread.left = step, first % _SLOTS, min(count, _SLOTS)
            return
        slots = [(first + k) % _SLOTS for k in range(min(count, _SLOTS))]
        held = {k: thread.slots[k] for k in slots if k in thread.slots}
        missing = [k for k in slots if k not in held]
        if missing and held:
            text = f"records too few replay slots: slot {', '.join(map(str, missing[:4]))} of T{t}"
            text += " is played and was never recorded"
            advice = "record what is played: the same first slot and number of words"
            self._report(next(iter(held.values())), step, text, advice)
        for k, new in held.items():
            old = thread.under.get(k)
            if old is not None and old.pc != new.pc and old in held.values():
                text = f"records over replay slot {k} of T{t}, which is played as a part of"
                advice = "record to other slots, or record all of it again"
                self._report(new, step, f"{text} what was recorded before", advice)
                return

    def _report(self, by: Instruction, victim: Instruction, text: str, advice: str) -> None:
        who, other = (Act(self._seen.tile, step).placed() for step in (by, victim))
        found = Finding("slots", "error", f"{maker(by)} {text}", who, other, (), advice)
        self.found.setdefault((by.core, by.pc), found)


def _slots(context: Context) -> Sequence[Finding]:
    if context.program.kind == SESSION:  # a kernel sets anew what one before it has set
        return []
    return merged(Slots(seen).follow().found.values() for seen in observed(context))


SLOTS = Check(
    name="slots",
    proves="that a replay slot is played that nothing has recorded, or that was recorded over by"
    " another line while the rest of what was recorded with it is still played",
    misses="recorded sessions; what a MOP records; what comes after 262,144 acts of a tile; of a"
    " chip of more than 64 tiles all but 32",
    cost="the observed run of `races`, where the run went wrong",
    applies=lambda seen: 7 if JIT and not seen.fine else 0,
    run=_slots,
)
