"""State that an earlier launch has left: the program run again on the coprocessor as it left it."""

from bhemu.machine.watching import spans
from bhemu.tensix.state import MEMBERS
from bhemu.why.chain import Chain
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, in_words, place
from bhemu.why.perturb import Fill, Trials, field_names, member_of, of_record, place_name, together

_SEEN = 3  # findings of a run
_KEPT = (
    *("cfg", "thread_cfg", "gpr", "adc", "adc_cr", "unpack_row", "unpack_context", "rwc", "rwc_cr"),
    *("src", "src_valid", "src_fmt", "unpack_bank", "matrix_bank", "dst", "dst_valid", "lreg"),
    *("cc", "cc_en", "cc_stack", "cc_stack_en", "cc_depth", "lane_config", "macro_template"),
    *("macro_sequence", "macro_misc", "prng", "mop_cfg", "mop_zmask_hi", "replay", "pack_open"),
    *("pack_data", "pack_exp", "pack_datum", "pack_row", "pack_plane", "pack_histogram"),
)
"""What no reset of a core clears; semaphores, mutexes and streams belong to who counts them."""
_ITEM = {member.name: member.dtype().itemsize for member in MEMBERS}


def run(context: Context) -> list[Finding]:
    """What is left that makes the program's next launch another one."""
    program = context.program
    if context.is_chip or context.symptom.error is not None or program.kind not in ("elf", "image"):
        return []
    trials = Trials(context)
    left = of_record(*trials.ends(), _KEPT)
    found: list[Finding] = []
    while left and len(found) < _SEEN and trials.differs(together(left.values())):
        name = next((n for n in left if trials.differs(left[n])), None)
        fill = together(left.values()) if name is None else left[name]
        one = None if name is None else trials.deciding(fill, _ITEM[name])
        found.append(_finding(context, trials, one or fill))
        if name is None:
            break
        del left[name]
    return found


def _finding(context: Context, trials: Trials, fill: Fill) -> Finding:
    at = int(fill.at[0])
    name, member = place_name(at), member_of(at)[0]
    read = trials.reader(fill)
    who = {} if read is None else place(*read, trials.tile)
    changed = trials.result(fill)
    value = int.from_bytes(fill.values[: _ITEM[member]].tobytes(), "little")
    end = "an output changes"
    if changed.error is not None:
        end = f"it ends so: {str(changed.error).splitlines()[0]}"
    writer = _last_writer(context, trials, name)
    text = f"a launch leaves {value:#x} in {name}{field_names(at)}, which the next one uses"
    text += f" at {read[0]}" if read else ""
    return Finding(
        "leaks",
        "error",
        text,
        writer if writer.get("core") else who,
        who if writer.get("core") else writer,
        (f"run again on the coprocessor as this run leaves it, {end}",)
        + ((f"used by {in_words(who)}",) if writer.get("core") else ()),
        f"set {name} before it is used, or put it back at the end",
        80 if context.symptom.wrong else 70,
    )


def _last_writer(context: Context, trials: Trials, name: str) -> dict[str, object]:
    """Who left the value, from the history of the run that the user saw."""
    tile = context.tile
    if tile.machine.observer is None:
        return {"place": name}
    links = Chain(tile).why(name, spans(tile, "brisc", name))
    made = next((link for link in links if link.where is not None), None)
    return {"place": name} if made is None else place(made.where, made.clock, tile)


def applies(seen: Outcome) -> int:
    """To programs that come to their end."""
    return 0 if seen.error is not None else 70 if seen.wrong else 30


CHECK = Check(
    "leaks",
    proves="state of the coprocessor that a launch leaves and that makes a second launch of the"
    " same program end otherwise: Config, ThreadConfig, GPRs, counters, banks, Dst, LRegs, lane"
    " flags, MOP and replay slots, the packer's position",
    misses="what only another program leaves; semaphores, mutexes, streams, mailboxes; programs of"
    " a chip or under firmware",
    cost="3 runs, and some 40 for each finding",
    applies=applies,
    run=run,
)
