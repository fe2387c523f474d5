"""State that an earlier launch has left: the program run again on the coprocessor as it left it."""

import numpy as np

from bhemu.machine.watchpoints import spans
from bhemu.memmap import L1_SIZE
from bhemu.tensix.state import MEMBERS, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, in_words, place
from bhemu.why.origin.chain import Chain
from bhemu.why.unwritten.trials import (
    NOTHING,
    STRIDE,
    Fill,
    Trials,
    field_names,
    member_of,
    place_name,
    together,
)
from bhemu.why.unwritten.users import Users

_SEEN = 3  # findings of a run
_KEPT = (
    *("cfg", "thread_cfg", "gpr", "adc", "adc_cr", "unpack_row", "unpack_context", "rwc", "rwc_cr"),
    *("src", "src_valid", "src_fmt", "unpack_bank", "matrix_bank", "dst", "dst_valid", "lreg"),
    *("cc", "cc_en", "cc_stack", "cc_stack_en", "cc_depth", "lane_config", "macro_template"),
    *("macro_sequence", "macro_misc", "prng", "mop_cfg", "mop_zmask_hi", "replay", "pack_open"),
    *("pack_data", "pack_exp", "pack_datum", "pack_row", "pack_plane", "pack_histogram"),
    *("sem", "sem_max", "mutex", "stream", "mailbox", "mailbox_read", "mailbox_write"),
)
"""What no reset of a core clears; of streams what is left when firmware has put counters back."""
_MAIL = ("mailbox_write", "mailbox_read", "mailbox")
_ITEM = {member.name: member.dtype().itemsize for member in MEMBERS}


def run(context: Context) -> list[Finding]:
    """What is left that makes the program's next launch another one."""
    kind = context.program.kind
    if context.symptom.error is not None or kind not in ("elf", "image", "tt-metal"):
        return []
    trials = Trials(context)
    left = _left(trials)
    found = _leaks(context, trials, left)
    if not found and left and not context.is_chip and trials.stand(_results(context)):
        found = _leaks(context, trials, left)
    return found


def _leaks(context: Context, trials: Trials, left: dict[tuple[int, str], Fill]) -> list[Finding]:
    """What of `left` another launch uses, the likeliest decided alone."""
    found: list[Finding] = []
    users: Users | None = None
    while left and len(found) < _SEEN and trials.differs(together(left.values())):
        name = next((n for n in left if trials.differs(left[n])), None)
        fill = together(left.values()) if name is None else left[name]
        mail = name is not None and name[1] == _MAIL[0]
        one = None if name is None or mail else trials.deciding(fill, _ITEM[name[1]])
        one = _unread(context, fill) if mail else one
        users = users or Users(context, trials)
        found.append(_finding(context, trials, users, one or fill))
        if name is None:
            break
        left = {n: part for n, part in left.items() if n[1] != name[1]}
    return found


def _results(context: Context) -> Fill:
    """The outputs as a launch leaves them in L1, where the host writes nothing before the next."""
    zeros, ones = (context.launch(poison=kind).state.l1 for kind in ("zero", "ff"))
    places, values = [NOTHING.at], [NOTHING.values]
    for at, data in zip(context.symptom.addresses, context.symptom.outputs, strict=True):
        where = np.arange(at, min(at + len(data), L1_SIZE), dtype=np.int64)
        free = zeros[where] != ones[where]
        places.append(OFFSET["l1"] + where[free])
        values.append(np.frombuffer(data, np.uint8)[: len(where)][free])
    return Fill(np.concatenate(places), np.concatenate(values))


def _left(trials: Trials) -> dict[tuple[int, str], Fill]:
    """By tile and member, what the program leaves otherwise than it was."""
    left = {
        (n, name): Fill(n * STRIDE + fill.at, fill.values)
        for n, fills in enumerate(trials.left(_KEPT))
        for name, fill in fills.items()
    }
    for n in {n for n, _ in left}:  # counts of mailboxes mean something together only
        mail = [left.pop((n, name)) for name in _MAIL if (n, name) in left]
        if mail:
            left[n, _MAIL[0]] = together(mail)
    return left


def _unread(context: Context, fill: Fill) -> Fill:
    """Of what is left in mailboxes the count of one in which a message lies."""
    number = int(fill.at[0]) // STRIDE
    tile = context.tiles(context.symptom.machine)[number]
    counts = np.flatnonzero((tile.state.mailbox_write != tile.state.mailbox_read).reshape(-1))
    width = _ITEM[_MAIL[0]]
    for one in (at for at in fill.at if _item(int(at)) in counts):
        chosen = (fill.at >= one) & (fill.at < one + width)
        return Fill(fill.at[chosen], fill.values[chosen])
    return fill


def _item(at: int) -> int:
    """The number of the mailbox that a byte of the record counts the messages of, -1: of none."""
    name = place_name(at % STRIDE)
    if not name.startswith(_MAIL[0] + ":"):
        return -1
    writer, reader = map(int, name.split(":")[1:3])
    return 4 * writer + reader


def _finding(context: Context, trials: Trials, users: Users, fill: Fill) -> Finding:
    number, at = divmod(int(fill.at[0]), STRIDE)
    name, member, tile = place_name(at), member_of(at)[0], trials.tiles[number]
    read, who = users.reader(fill), {}
    if read is not None:
        who = place(read.where, read.clock, trials.tile_of(read.where))
    changed = trials.result(fill)
    value = int.from_bytes(fill.values[: _ITEM[member]].tobytes(), "little")
    end = "an output changes"
    if changed.error is not None:
        end = f"it ends so: {str(changed.error).splitlines()[0]}"
    made = users.maker(int(fill.at[0]))
    writer = _last_writer(context, name) if made is None else place(*made, tile)
    shown = trials.name(int(fill.at[0]))
    text = f"a launch leaves {value:#x} in {shown}{field_names(at)}, which the next one uses"
    text += f" at {read.where}" if read else ""
    return Finding(
        "leaks",
        "error",
        text,
        writer if writer.get("core") else who,
        who if writer.get("core") else writer,
        (f"run again on the coprocessor as this run leaves it, {end}",)
        + ((f"used by {in_words(who)}",) if writer.get("core") else ()),
        f"set {name} before it is used, or put it back at the end",
    )


def _last_writer(context: Context, name: str) -> dict[str, object]:
    """Who left the value, from the history of the run that the user saw."""
    if context.is_chip or context.tile.loop.observer is None:
        return {"place": name}
    links = Chain(context.tile).why(name, spans(context.tile, "brisc", name))
    made = next((link for link in links if link.where is not None), None)
    return {"place": name} if made is None else place(made.where, made.clock, context.tile)


def applies(seen: Outcome) -> int:
    """To programs that come to their end."""
    return 0 if seen.error is not None else 70 if seen.wrong else 30


CHECK = Check(
    "leaks",
    proves="state of the coprocessor that a launch leaves and that makes a second launch of the"
    " same program end otherwise: Config, ThreadConfig, GPRs, counters, banks, Dst, LRegs, lane"
    " flags, MOP and replay slots, the packer's position, semaphores, mutexes, mailboxes, credits"
    " of circular buffers; on a chip of every tile",
    misses="what only another program leaves; words of L1 but for the outputs (see uninit);"
    " requests that are under way at the end (see barriers)",
    cost="5 runs, and some 40 for each finding",
    applies=applies,
    run=run,
)
