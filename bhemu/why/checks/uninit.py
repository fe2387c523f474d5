"""Values that nothing has written: runs with other contents of all such memory and registers."""

import zlib

import numpy as np
import numpy.typing as npt

from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_SIZES
from bhemu.program import loader
from bhemu.tensix.state import DTYPE, LOCAL_SIZE, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place
from bhemu.why.perturb import Fill, Trials, member_of, place_name

_SEEN = 3  # findings of a run
_STORES = ("gpr", "dst", "src", "mop_cfg", "replay")
_LREGS = 8  # those that a program writes
_SIZE = {"dst": 2}  # bytes of a cell; 4 where not named
_FILLS = 2
_GAP = 16  # bytes between two areas of L1


def run(context: Context) -> list[Finding]:
    """What decides an output or the end although nothing in the program has written it."""
    if context.is_chip:
        return []
    trials = Trials(context)
    unwritten = _unwritten(context, trials)
    found: list[Finding] = []
    for number in range(1, _FILLS + 1):
        fill = _filled(unwritten, number)
        while len(found) < _SEEN and (one := _deciding(trials, fill)) is not None:
            found.append(_finding(context, trials, one, fill))
            fill = _without(fill, int(one.at[0]))
        if found:
            break
    return found


def _unwritten(context: Context, trials: Trials) -> npt.NDArray[np.int64]:
    """Bytes of the record that hold nothing yet when the program begins."""
    l1 = [context.launch(engine="compiled", poison=how).state.l1 for how in ("zero", "ff")]
    at = [np.flatnonzero(l1[0] != l1[1]).astype(np.int64)]
    state = trials.tile.state
    for name in _STORES:
        at.append(OFFSET[name] + np.arange(getattr(state, name).nbytes, dtype=np.int64))
    at.append(OFFSET["lreg"] + np.arange(_LREGS * 32 * 4, dtype=np.int64))
    if context.program.kind == "elf":
        at += [_local(context, c) for c in range(len(CORE_NAMES))]
    return np.concatenate(at)


def _local(context: Context, c: int) -> npt.NDArray[np.int64]:
    """What no ELF has filled of a core's local memory."""
    free = np.zeros(LOCAL_SIZE, bool)
    free[: LOCAL_SIZES[c]] = True
    spec = context.program.cores.get(CORE_NAMES[c])
    if spec is not None and spec.elf is not None:
        image = loader.read_elf(spec.elf)
        for one in loader.place(image, local=spec.local, core=spec.name, offset=0):
            if one.space != "l1":
                free[one.address : one.address + len(one.data)] = False
    if any(one.core == CORE_NAMES[c] for one in context.program.sets):
        free[:] = False  # some of it may be the host's
    return OFFSET["local"] + c * LOCAL_SIZE + np.flatnonzero(free).astype(np.int64)


def _filled(at: npt.NDArray[np.int64], number: int) -> Fill:
    random = np.random.default_rng(zlib.crc32(b"uninit") + number)
    return Fill(at, random.integers(0, 256, at.size, dtype=np.uint8))


def _deciding(trials: Trials, fill: Fill) -> Fill | None:
    return trials.deciding(fill) if fill.at.size else None


def _without(fill: Fill, at: int) -> Fill:
    """Without what stands in one piece around a byte: in L1 an area, else the whole member."""
    index = int(np.searchsorted(fill.at, at))
    name = member_of(at)[0]
    gaps = np.flatnonzero(np.diff(fill.at) > _GAP) + 1
    low = int(gaps[gaps <= index][-1]) if (gaps <= index).any() else 0
    high = int(gaps[gaps > index][0]) if (gaps > index).any() else len(fill.at)
    keep = np.ones(len(fill.at), bool)
    if name in ("l1", "local"):
        keep[low:high] = False
    else:
        keep = (fill.at < OFFSET[name]) | (fill.at >= OFFSET[name] + DTYPE[name].itemsize)
    return Fill(fill.at[keep], fill.values[keep])


def _finding(context: Context, trials: Trials, fill: Fill, whole: Fill) -> Finding:
    at = int(fill.at[0])
    name = place_name(at)
    read = trials.reader(fill)
    who = {} if read is None else place(*read, trials.tile)
    near = trials.neighbour(whole, at) if at < L1_SIZE else None
    changed = trials.result(fill)
    what = "the program ends otherwise" if changed.error else "an output changes"
    where = "" if read is None else f", read by {read[0]}"
    text = f"{name} decides the result, and nothing has written it{where}"
    evidence = [f"with {_values(fill)} there instead of what power-up leaves, {what}"]
    if changed.error is not None:
        evidence.append(str(changed.error).splitlines()[0])
    victim: dict[str, object] = {"place": name}
    if near is not None:
        evidence.append(f"what lies next to it is written by {near[0]}")
        who, victim = place(*near, trials.tile), who
    return Finding(
        "uninit",
        "error",
        text,
        who,
        victim,
        tuple(evidence),
        f"write {name} before it is read, or read what was meant",
        85 if context.symptom.wrong else 75,
    )


def _values(fill: Fill) -> str:
    return " ".join(f"{value:02x}" for value in fill.values[:8])


def applies(seen: Outcome) -> int:
    """To every run: zeros of an emulator hide what is missing."""
    return 80 if not seen.refused else 40


CHECK = Check(
    "uninit",
    proves="bytes of L1, local memory, GPRs, LRegs, Dst, Src, MOP or replay slots that nothing has"
    " written and that decide an output or how the program ends",
    misses="Config, ThreadConfig and counters, which power-up leaves at 0; values that are read and"
    " decide nothing; programs of a chip",
    cost="3 runs, and some 40 for each finding",
    applies=applies,
    run=run,
)
