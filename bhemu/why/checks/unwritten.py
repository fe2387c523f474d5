"""Values that nothing has written, or only an earlier launch: runs with others in their place."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.insn import decode
from bhemu.tensix.state import MEMBERS, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, in_words, merged, outside_headers, place
from bhemu.why.unwritten import fills
from bhemu.why.unwritten.skipped import branch_past
from bhemu.why.unwritten.trials import (
    STRIDE,
    Fill,
    Offsets,
    Trials,
    field_names,
    member_of,
    place_name,
    together,
)
from bhemu.why.unwritten.users import Reader, Users

_SEEN, _SEEN_ON_CHIP = 3, 1  # findings of a run
_FILLS = 2
_LOOP = 24  # lines of one
_WORD = 4
_NEAR = 64  # bytes: what belongs together
_ROW = 32  # bytes of a row of a face in bf16: where a loop ends early
_ITEM = {member.name: member.dtype().itemsize for member in MEMBERS}
_KINDS = ("elf", "image", "tt-metal")  # of programs that can be launched again
Ask = Callable[[], Users]


def run(context: Context) -> list[Finding]:
    """What decides an output or the end although nothing, or the launch before, has written it."""
    trials = Trials(context)
    known: list[Users] = []

    def users() -> Users:
        if not known:
            known.append(Users(context, trials))
        return known[0]

    unwritten = fills.unwritten(context, trials)
    found = _never(context, trials, users, unwritten)
    if context.symptom.error is None and context.program.kind in _KINDS:
        found += _left(context, trials, users, unwritten)
    if JIT and not context.symptom.fine:
        found += merged([_empty(trials, *one)] for one in users().empty())
    return found


def _empty(trials: Trials, where: Where, clock: int, row: int) -> Finding:
    """A PACR that reads Dst as it was cleared."""
    text = f"{where.core} packs Dst row {row} and those behind it, which nobody has written since"
    text += " they were cleared"
    advice = "pack the half that math has filled: its row offset, and what it waits for"
    who = place(where, clock, trials.tile_of(where))
    return Finding("unwritten", "warning", text, who, {}, (), advice)


def _never(context: Context, trials: Trials, users: Ask, unwritten: Offsets) -> list[Finding]:
    """Of what nothing has written."""
    found: list[Finding] = []
    most = _SEEN_ON_CHIP if context.is_chip else _SEEN
    for number in range(1, _FILLS + 1):
        fill = fills.filled(unwritten, number)
        while len(found) < most and not context.late and fill.at.size and trials.differs(fill):
            one = trials.deciding(users().used(fill)) or trials.deciding(fill)
            if one is None:
                break
            found.append(_finding(context, trials, users(), one, fill))
            fill = fills.without(trials, fill, int(one.at[0]))
        if found:
            break
    return found


def _left(context: Context, trials: Trials, users: Ask, unwritten: Offsets) -> list[Finding]:
    """Of what a launch leaves and the next one of the same program uses."""
    left = fills.left(trials)
    found = _leaks(context, trials, users, left)
    if (
        not found
        and left
        and not context.is_chip
        and trials.stand(fills.results(context, unwritten))
    ):
        found = _leaks(context, trials, users, left)
    return found


def _leaks(
    context: Context, trials: Trials, users: Ask, left: dict[tuple[int, str], Fill]
) -> list[Finding]:
    """What of `left` another launch uses."""
    found: list[Finding] = []
    while left and len(found) < _SEEN and trials.differs(together(left.values())):
        names = [[*left][n] for n in trials.needed([*left.values()])]
        fill = left[names[0]]
        if names[0][1] == fills.MAIL[0]:
            fill = _unread(context, fill)
        elif len(names) == 1:
            fill = trials.deciding(fill, _ITEM[names[0][1]]) or fill
        with_it = [left[name] for name in names[1:]]
        found.append(_leak(trials, users(), fill, with_it))
        left = {n: part for n, part in left.items() if n[1] not in [one for _, one in names]}
    return found


def _unread(context: Context, fill: Fill) -> Fill:
    """Of what is left in mailboxes the count of one in which a message lies."""
    number, name = int(fill.at[0]) // STRIDE, fills.MAIL[0]
    s = context.tiles(context.symptom.machine)[number].state
    for n in np.flatnonzero(s.mailbox_write != s.mailbox_read):
        low = number * STRIDE + OFFSET[name] + int(n) * _ITEM[name]
        chosen = (fill.at >= low) & (fill.at < low + _ITEM[name])
        if chosen.any():
            return Fill(fill.at[chosen], fill.values[chosen])
    return fill


def _leak(trials: Trials, users: Users, fill: Fill, others: list[Fill]) -> Finding:
    """Of what decides together with `others`."""
    number, at = divmod(int(fill.at[0]), STRIDE)
    name, member, tile = place_name(at), member_of(at)[0], trials.tiles[number]
    read, made = users.reader(fill), users.maker(int(fill.at[0]))
    who = {} if read is None else place(read.where, read.clock, trials.tile_of(read.where))
    changed = trials.result(together([fill, *others]))
    value = int.from_bytes(fill.values[: _ITEM[member]].tobytes(), "little")
    end = "an output changes"
    if changed.error is not None:
        end = f"it ends so: {str(changed.error).splitlines()[0]}"
    text = f"a launch leaves {value:#x} in {trials.name(int(fill.at[0]))}{field_names(at)}"
    text += ", which the next one uses" + (f" at {read.where}" if read else "")
    evidence = [f"run again on the coprocessor as this run leaves it, {end}"]
    culprit, victim = who, {"place": name}
    if made is not None:
        culprit, victim = place(*made, tile), who
        evidence.append(f"used by {in_words(who)}")
    if others:
        shown = ", ".join(trials.name(int(one.at[0])) for one in others[:_SEEN])
        evidence.append(f"together with what it leaves in {shown}")
    advice = f"set {name} before it is used, or put it back at the end"
    return Finding("unwritten", "error", text, culprit, victim, tuple(evidence), advice)


def _finding(context: Context, trials: Trials, users: Users, fill: Fill, whole: Fill) -> Finding:
    name = trials.name(int(fill.at[0]))
    read, near = users.reader(fill), _neighbour(trials, users, whole, int(fill.at[0]))
    tile = None if read is None else trials.tile_of(read.where)
    who = {} if read is None else place(read.where, read.clock, tile)
    changed = trials.result(fill)
    what = "the program ends otherwise" if changed.error else "an output changes"
    where = "" if read is None else f", read by {read.where}"
    text = f"{name} decides the result, and nothing has written it{where}"
    evidence = [f"with {_values(fill)} there instead of what power-up leaves, {what}"]
    if changed.error is not None:
        evidence.append(str(changed.error).splitlines()[0])
    if read is not None:
        evidence += [f"brought over the NoC by {one}" for one in read.carriers]
    victim: dict[str, object] = {"place": name}
    aligned = int(fill.at[0]) % _ROW == 0
    if aligned and near is not None and not _goes_on(trials, whole, int(fill.at[0])):
        evidence.append(f"only this of what lies behind what is written by {near[0]}")
        near = None  # who reads goes one too far
    if near is not None:
        evidence.append(f"what lies next to it is written by {near[0]}")
        who, victim = place(*near, trials.tile_of(near[0])), who
        if near[0].thread is None and aligned and not context.is_chip:
            who = place(_loop_of(context, near[0]), near[1])
        if past := branch_past(context, near[0], int(fill.at[0]) % STRIDE - OFFSET["l1"]):
            evidence.append(f"a branch leads past that store: {past}")
            who = place(outside_headers(past), near[1])
    if (
        read is not None
        and (by := _adds(context, users, read, int(fill.at[0]) // STRIDE)) is not None
    ):
        evidence.append("PACR reads L1 because what it packs is added to what is there")
        who, victim = place(*by, tile), place(read.where, read.clock, tile)
    return Finding(
        "unwritten",
        "error",
        text,
        who,
        victim,
        tuple(evidence),
        f"write {name} before this reads it; if another place was meant, correct what is read",
    )


def _goes_on(trials: Trials, whole: Fill, at: int) -> bool:
    """Whether what is behind an unwritten word decides something as well."""
    behind = (whole.at >= at + _WORD) & (whole.at < at + _NEAR)
    return bool(behind.any()) and trials.differs(Fill(whole.at[behind], whole.values[behind]))


def _neighbour(trials: Trials, users: Users, whole: Fill, at: int) -> tuple[Where, int] | None:
    """Who fills the bytes of L1 next to an unwritten one, of a chip a core alone."""
    number, rest = divmod(at, STRIDE)
    if number >= len(trials.tiles) or rest >= L1_SIZE:
        return None
    laid = (whole.at // STRIDE == number) & (whole.at % STRIDE < L1_SIZE)
    places = whole.at[laid] % STRIDE
    changed = places[users.made(places, number)]
    after = changed[(changed > rest) & (changed < rest + _NEAR)]
    before = changed[(changed < rest) & (changed > rest - _NEAR)]
    full = len(before) >= _NEAR - _WORD
    if rest % _NEAR == 0 and not full:  # what is written before it seems to be complete
        before = before[:0]
    near = [*after[:1], *before[-1:]]
    found = users.maker(number * STRIDE + int(near[0])) if near else None
    ends = rest % _NEAR == 0 and not len(after)  # what is written up to here
    if found is not None and found[0].thread is not None and (ends or len(trials.tiles) > 1):
        return None
    return found


def _loop_of(context: Context, where: Where) -> Where:
    """The outermost loop around a store, as the source is indented; the store where there is none.

    Compilers unroll such loops, so that the code has no branch of theirs.
    """
    at = outside_headers(where)
    sources, found = Sources(context.program), at
    if at.core is None or at.file is None or not at.line:
        return where
    deep = _indent(sources.line(at.core, at.file, at.line) or "")
    for number in range(at.line - 1, max(at.line - _LOOP, 0), -1):
        text = sources.line(at.core, at.file, number)
        if text is None or not deep:
            break
        if text.strip() and _indent(text) < deep:
            deep = _indent(text)
            if re.match(r"\s+(for|while)\b", text):
                found = replace(at, line=number)
    return found


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _adds(context: Context, users: Users, read: Reader, number: int) -> tuple[Where, int] | None:
    """Who has told the packer to add to what is in L1, where it reads that."""
    cls = None if read.where.word is None else decode(read.where.word)
    if context.is_chip or cls is None or cls.name != "PACR":
        return None
    low = number * STRIDE + OFFSET["cfg"] + 4 * config_fields.THCON_SEC0_REG1_Pack_L1_Acc.word
    made = [users.maker(low + 4 * CONFIG_WORDS * bank) for bank in range(2)]
    return next((one for one in made if one is not None), None)


def _values(fill: Fill) -> str:
    return " ".join(f"{value:02x}" for value in fill.values[:8])


def applies(seen: Outcome) -> int:
    """To every run: zeros of an emulator hide what is missing."""
    return 80 if not seen.refused else 40


CHECK = Check(
    "unwritten",
    proves="bytes of L1, DRAM, local memory, GPRs, LRegs, Dst, Src, MOP or replay slots that"
    " nothing has written and that decide an output or how the program ends; named is who uses"
    " them, wherever the NoC has carried them. State of the coprocessor that a launch leaves and"
    " that makes a second launch of the same program end otherwise: Config, ThreadConfig, GPRs,"
    " counters, banks, Dst, LRegs, lane flags, MOP and replay slots, the packer's position,"
    " semaphores, mutexes, mailboxes, credits of circular buffers; on a chip of every tile. Where a"
    " run went wrong, a PACR that reads tiles of Dst in which no row is written since they were"
    " cleared: a warning",
    misses="Config and ThreadConfig that no launch has set, which power-up leaves at 0; counters"
    " and lanes, for which there is `powerup`; values that are read and decide nothing; what only"
    " another program leaves; low L1 where firmware boots only with zeros there; requests that are"
    " under way at the end (see barriers); of a chip all tiles but some ten, the first of each part"
    " among them",
    cost="7 runs; where something decides, the observed run of `races`, some 20 for each finding",
    applies=applies,
    run=run,
)
