"""Values that nothing has written, or only an earlier launch, found by runs with other values."""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import numpy as np

from bhemu.errors import Where
from bhemu.machine.hang.waits import count_of
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.insn import decode
from bhemu.tensix.state import MEMBERS, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import (
    Finding,
    in_words,
    line_of,
    outside_headers,
    place,
    with_evidence,
)
from bhemu.why.unwritten.trials import (
    MAIL,
    NOTHING,
    STRIDE,
    Fill,
    Offsets,
    Trials,
    field_names,
    filled,
    left_bytes,
    member_of,
    place_name,
    together,
    unwritten_bytes,
    without,
)
from bhemu.why.unwritten.users import Reader, Users

_SEEN, _FILLS = 3, 2  # findings of a run, of a chip one
_MORE = "other places that nothing has written decide the result, too: they are not shown"
_WORD = 4
_REGISTERS = 1024  # of a stream
_NEAR = 64  # bytes: what belongs together
_AREA, _WIDER = 1024, 16  # bytes around a place; by how much it grows
_DATUM = "it"  # what is filled as a whole, where nothing larger is
_ITEM = {member.name: member.dtype().itemsize for member in MEMBERS}
_KINDS = ("elf", "image", "tt-metal")  # of programs that can be launched again
Ask = Callable[[], Users]


def run(context: Context) -> list[Finding]:
    """Bytes that decide an output or the end, and that nothing or an earlier launch has written."""
    trials = Trials(context)
    users = cache(lambda: Users(context, trials))
    unwritten = unwritten_bytes(context, trials)
    found = _never(context, trials, users, unwritten)
    if context.symptom.fine and context.program.kind in _KINDS:
        if not found:  # then memory of the next launch may hold anything
            trials.stand_on(filled(unwritten, 1))
        found += _leaks(context, trials, users)
    return found


def _never(context: Context, trials: Trials, users: Ask, unwritten: Offsets) -> list[Finding]:
    """Findings of bytes that nothing has written, one for each line.

    What lies near a place belongs to it; the wider, the more of it the same line reads.
    """
    found: dict[Hashable, Finding] = {}
    most = _SEEN if context.program.is_alone else 1
    for number in range(1, _FILLS + 1):
        fill, near = filled(unwritten, number), _AREA
        while not context.late and fill.at.size and trials.differs(fill):
            if len(found) == most:
                last = [*found][-1]
                found[last] = with_evidence(found[last], [_MORE])
                break
            one = trials.deciding(fill)
            told = _finding(context, trials, users(), one)
            near = _WIDER * near if line_of(told) in found else _AREA
            found.setdefault(line_of(told), told)
            fill = without(trials, fill, int(one.at[0]), near)
        if found:
            break
    return [*found.values()]


def _leaks(context: Context, trials: Trials, users: Ask) -> list[Finding]:
    """Findings of state that a launch leaves and the next one of the same program uses."""
    found: list[Finding] = []
    left = left_bytes(trials)
    while left and len(found) < _SEEN and trials.differs(together(left.values())):
        names = [[*left][n] for n in trials.needed([*left.values()])]
        fill = left[names[0]]
        if names[0][1] == MAIL[0]:
            fill = _unread(context, fill)
        elif len(names) == 1:
            fill = trials.deciding(fill, _ITEM[names[0][1]])
        with_it = [left[name] for name in names[1:]]
        found.append(_leak(trials, users(), fill, with_it))
        left = {n: part for n, part in left.items() if n[1] not in [one for _, one in names]}
    return found


def _unread(context: Context, fill: Fill) -> Fill:
    """Of the state left in mailboxes the count of a mailbox that holds a message."""
    number = int(fill.at[0]) // STRIDE
    s = context.tiles(context.symptom.machine)[number].state
    for n in np.flatnonzero(s.mailbox_write != s.mailbox_read):
        low = number * STRIDE + OFFSET[MAIL[0]] + int(n) * _ITEM[MAIL[0]]
        chosen = (fill.at >= low) & (fill.at < low + _ITEM[MAIL[0]])
        if chosen.any():
            return Fill(fill.at[chosen], fill.values[chosen])
    return fill


def _counted(tile: Tile, at: int) -> str:
    """Of a byte of the record: which pages of a buffer it counts, in brackets; "" for another."""
    name, rest = member_of(at)
    counted = count_of(tile, *divmod(rest // _WORD, _REGISTERS)) if name == "stream" else ""
    return f" ({counted})" if counted else ""


def _leak(trials: Trials, users: Users, fill: Fill, others: list[Fill]) -> Finding:
    """The finding of state that decides together with `others`."""
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
    text += _counted(tile, at)
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


def _finding(context: Context, trials: Trials, users: Users, fill: Fill) -> Finding:
    name = trials.name(int(fill.at[0]))
    read, near = users.reader(fill), _neighbour(trials, users, int(fill.at[0]))
    tile = None if read is None else trials.tile_of(read.where)
    who = {} if read is None else place(read.where, read.clock, tile)
    changed = trials.result(fill)
    what = "the program ends differently" if changed.error else "an output changes"
    where = "" if read is None else f", read by {read.where}"
    text = f"{name} decides the result, and nothing has written it{where}"
    values = " ".join(f"{value:02x}" for value in fill.values[:8])
    evidence = [f"with {values} there instead of what power-up leaves, {what}"]
    if changed.error is not None:
        evidence.append(str(changed.error).splitlines()[0])
    victim: dict[str, object] = {"place": name}
    if read is not None and read.by_noc:  # the request that fetches it, or sends it on
        who = place(outside_headers(read.where), read.clock, tile)
    if near is None and read is not None and read.where.thread is not None:
        near = users.brought_up_to(int(fill.at[0]), _NEAR)
    near_it = "what lies next to it"
    if near is None and (part := _whole(context, trials, int(fill.at[0]))) is not None:
        near_it, near = f"the rest of {part[0]}", _in_part(trials, users, int(fill.at[0]), part[1])
        near = near if near is None or read is None or near[1] <= read.clock else None
        if near is not None and part[0] == _DATUM:
            text = text.replace("has written it", "has written it in full", 1)
    if near is not None:
        evidence.append(f"{near_it} is written by {near[0]}")
        who, victim = place(*near, trials.tile_of(near[0])), who
    if read is not None and (by := _adds(users, read, int(fill.at[0]) // STRIDE)) is not None:
        evidence.append("PACR reads L1 because what it packs is added to what is there")
        who, victim = place(*by, tile), place(read.where, read.clock, tile)
    advice = f"write {name} before this reads it; if another place was meant, correct what is read"
    return Finding("unwritten", "error", text, who, victim, tuple(evidence), advice)


def _neighbour(trials: Trials, users: Users, at: int) -> tuple[Where, int] | None:
    """The step that writes L1 next to an unwritten byte; on a chip only a core's."""
    number, rest = divmod(at, STRIDE)
    if number >= len(trials.tiles) or rest >= L1_SIZE:
        return None
    around = np.arange(max(rest - _NEAR + 1, 0), min(rest + _NEAR, L1_SIZE))
    changed = users.made(around, number)
    after, before = changed[changed > rest], changed[changed < rest]
    full = len(before) >= _NEAR - _WORD
    if rest % _NEAR == 0 and not full:  # what is written before it seems to be complete
        before = before[:0]
    near = [*after[:1], *before[-1:]]
    found = users.maker(number * STRIDE + int(near[0])) if near else None
    ends = rest % _NEAR == 0 and not len(after)  # what is written up to here
    if found is not None and found[0].thread is not None and (ends or len(trials.tiles) > 1):
        return None
    return found


def _whole(context: Context, trials: Trials, at: int) -> tuple[str, range] | None:
    """What is filled as a whole and holds a byte, and its bytes: a page of a declared buffer, a
    row of Src, a datum of another member."""
    number, rest = divmod(at, STRIDE)
    if number >= len(trials.tiles):
        return None
    name, offset = member_of(rest)
    if name != "l1":
        size = _ITEM[name] * (COLUMNS if name == "src" else 1)
        low = rest - offset % size
        return ("its row" if name == "src" else _DATUM), range(low, low + size)
    xy = trials.tiles[number].xy
    for part in context.program.placed():
        for one in part.buffers if xy in part.at else ():
            if one.at <= rest < one.at + one.pages * one.page:
                low = rest - (rest - one.at) % one.page
                return f"its page of buffer {one.index}", range(low, low + one.page)
    return None


def _in_part(trials: Trials, users: Users, at: int, whole: range) -> tuple[Where, int] | None:
    """The step that writes other bytes of what is filled as a whole, the nearest to a byte."""
    number, rest = divmod(at, STRIDE)
    changed = users.made(np.arange(whole.start, whole.stop), number)
    if not changed.size:
        return None
    return users.maker(number * STRIDE + int(changed[np.argmin(np.abs(changed - rest))]))


def _adds(users: Users, read: Reader, number: int) -> tuple[Where, int] | None:
    """The step that made the packer add to L1, if the reader is a PACR."""
    cls = None if read.where.word is None else decode(read.where.word)
    if cls is None or cls.name != "PACR":
        return None
    low = number * STRIDE + OFFSET["cfg"] + 4 * config_fields.THCON_SEC0_REG1_Pack_L1_Acc.word
    made = [users.maker(low + 4 * CONFIG_WORDS * bank, read.clock) for bank in range(2)]
    return next((one for one in made if one is not None), None)


def applies(seen: Outcome) -> int:
    """To every run: zeros of an emulator hide what is missing."""
    return 80 if not seen.refused else 40


CHECK = Check(
    "unwritten",
    proves="bytes of L1, DRAM, local memory, GPRs, LRegs, Dst, Src, MOP or replay slots that"
    " nothing has written and that decide an output or how the program ends; named is who writes"
    " what lies next to them or the rest of their page, row of Src or datum, else who uses them or"
    " sends them on. State of the coprocessor that a launch leaves and"
    " that makes a second launch of the same program end differently: Config, ThreadConfig, GPRs,"
    " counters, banks, Dst, LRegs, lane flags, MOP and replay slots, the packer's position,"
    " semaphores, mutexes, mailboxes, credits of circular buffers; on a chip of every tile. Where a"
    " run went wrong, nothing is said of the next launch",
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


def _kept(members: dict[str, Any], launched: Any) -> Fill:
    """The counters and lanes that a launch keeps, on every tile."""
    at, values = [NOTHING.at], [NOTHING.values]
    for number, tile in enumerate(launched.tiles_made()):
        for name, value in members.items():
            member = getattr(tile.state, name)
            other = np.broadcast_to(value, member.shape).reshape(-1)
            held = np.flatnonzero(member.reshape(-1) == other)
            at.append(number * STRIDE + OFFSET[name] + held * _ITEM[name])
            values.append(other[held].astype(np.uint8))
    return Fill(np.concatenate(at), np.concatenate(values))


def _of_power_up(context: Context) -> list[Finding]:
    """Counters and lanes of power-up that decide the end, and the step that uses them first."""
    trials, found = Trials(context), []
    launched = context.launch(engine="compiled", prepare=_put, **context.alone)
    for name, setters, members in _TAKEN_OVER:
        fill = _kept(members, launched)
        if fill.at.size and trials.differs(fill):
            by = Users(context, trials).reader(fill)
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
