"""Values that nothing has written: runs with other contents of all such memory and registers."""

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.debug.places import Sources
from bhemu.errors import BhemuError, Where
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, spans
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import loader
from bhemu.tensix.insn import decode
from bhemu.tensix.state import DTYPE, LOCAL_SIZE, OFFSET
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.checks.stack import data_end
from bhemu.why.findings import Finding, outside_headers, place
from bhemu.why.origin.chain import Chain
from bhemu.why.unwritten.skipped import branch_past
from bhemu.why.unwritten.trials import STRIDE, Fill, Trials, member_of
from bhemu.why.unwritten.users import Reader, Users

_SEEN, _SEEN_ON_CHIP = 3, 1  # findings of a run
_STORES = ("gpr", "dst", "src", "mop_cfg", "replay")
_LREGS = 8  # those that a program writes
_SIZE = {"dst": 2}  # bytes of a cell; 4 where not named
_FILLS = 2
_LOOP = 24  # lines of one
_WORD = 4
_NEAR = 64  # bytes: what belongs together
_GAP = 16  # bytes between two areas of memory
_ADDS = "THCON_SEC0_REG1_Pack_L1_Acc"
_TILES = 12  # of a chip
_ROW = 32  # bytes of a row of a face in bf16: where a loop ends early
_FROM = (0, 0x10000, 0x20000, 0x40000)  # L1 below: production firmware relies on zeros there


def run(context: Context) -> list[Finding]:
    """What decides an output or the end although nothing in the program has written it."""
    trials = Trials(context)
    unwritten = _unwritten(context, trials)
    found: list[Finding] = []
    users: Users | None = None
    most = _SEEN_ON_CHIP if context.is_chip else _SEEN
    for number in range(1, _FILLS + 1):
        fill = _filled(unwritten, number)
        while len(found) < most and not context.late and fill.at.size and trials.differs(fill):
            users = users or Users(context, trials)
            one = trials.deciding(users.used(fill)) or trials.deciding(fill)
            if one is None:
                break
            found.append(_finding(context, trials, users, one, fill))
            fill = _without(trials, fill, int(one.at[0]))
        if found:
            break
    return found


def _unwritten(context: Context, trials: Trials) -> npt.NDArray[np.int64]:
    """Bytes of records and pages that hold nothing yet when the program begins."""
    chosen = {tile.xy for tile in context.first(trials.machine, _TILES)}
    pages = range(len(trials.tiles), len(trials.tiles) + len(trials.pages))
    looked = [n for n, tile in enumerate(trials.tiles) if tile.xy in chosen] + [*pages]

    def bytes_of(machine: Any) -> list[npt.NDArray[np.uint8]]:
        held = trials.bytes(machine)  # a chip of 140 tiles takes 400 MB
        return [held[n].copy() for n in looked]

    plain = bytes_of(context.launch(engine="compiled", poison="zero", **context.alone))
    other = bytes_of(_filled_launch(context))
    at = []
    for n, one, two in zip(looked, plain, other, strict=True):
        if n in pages:
            at.append(n * STRIDE + np.flatnonzero(one != two))
        else:
            tile = trials.tiles[n]
            held = np.zeros(len(one), bool)
            for low, high in _places():
                held[low:high] = one[low:high] != two[low:high]
            for c in range(len(CORE_NAMES)):
                held[_local(context, tile, c)] = True
            at.append(n * STRIDE + np.flatnonzero(held))
    return np.concatenate(at).astype(np.int64)


def _filled_launch(context: Context) -> Any:
    """A launch with other contents of all that is unwritten, as far as firmware boots with that."""
    for low in _FROM:
        with suppress(BhemuError):
            fill = partial(_fill_stores, low)
            return context.launch(engine="compiled", poison="ff", prepare=fill, **context.alone)
    return context.launch(engine="compiled", poison="zero", **context.alone)


def _places() -> Iterator[tuple[int, int]]:
    """What of a record is looked at."""
    yield OFFSET["l1"], OFFSET["l1"] + L1_SIZE
    for name in _STORES:
        yield OFFSET[name], OFFSET[name] + DTYPE[name].itemsize
    yield OFFSET["lreg"], OFFSET["lreg"] + _LREGS * 32 * 4


def _fill_stores(low: int, tile: Tile) -> None:
    """Another content of what a program may leave unwritten, of L1 from `low` on."""
    tile.state.l1[:low] = 0
    for low, high in list(_places())[1:]:
        tile.state.buffer[low:high] = 0xFF


def _local(context: Context, tile: Tile, c: int) -> npt.NDArray[np.int64]:
    """What no ELF has filled of a core's local memory, behind firmware what its stack may use."""
    program, name = context.program, CORE_NAMES[c]
    first = OFFSET["local"] + c * LOCAL_SIZE
    free = np.zeros(LOCAL_SIZE, bool)
    if program.kind == "tt-metal" and program.firmware is not None:
        core = tile.core[name]
        low, sp = data_end(core) - LOCAL_BASE, int(core.regs[2]) - LOCAL_BASE
        if core.images and low < sp <= LOCAL_SIZES[c]:
            free[low:sp] = True
    if program.kind != "elf":
        return first + np.flatnonzero(free)
    part = next(one for one in program.placed() if not context.is_chip or tile.xy in one.at)
    free[: LOCAL_SIZES[c]] = True
    spec = part.cores.get(name)
    if spec is not None and spec.elf is not None:
        image = loader.read_elf(spec.elf)
        for one in loader.place(image, local=spec.local, core=spec.name, offset=0):
            if one.space != "l1":
                free[one.address : one.address + len(one.data)] = False
    if any(one.core == name for one in part.sets):
        free[:] = False  # some of it may be the host's
    return first + np.flatnonzero(free)


def _filled(at: npt.NDArray[np.int64], number: int) -> Fill:
    random = np.random.default_rng(zlib.crc32(b"uninit") + number)
    return Fill(at, random.integers(0, 256, at.size, dtype=np.uint8))


def _without(trials: Trials, fill: Fill, at: int) -> Fill:
    """Without what stands in one piece around a byte: in memory an area, else the whole member."""
    index = int(np.searchsorted(fill.at, at))
    number, rest = divmod(at, STRIDE)
    name = "page" if number >= len(trials.tiles) else member_of(rest)[0]
    gaps = np.flatnonzero(np.diff(fill.at) > _GAP) + 1
    low = int(gaps[gaps <= index][-1]) if (gaps <= index).any() else 0
    high = int(gaps[gaps > index][0]) if (gaps > index).any() else len(fill.at)
    keep = np.ones(len(fill.at), bool)
    if name in ("l1", "local", "page"):
        keep[low:high] = False
    else:
        first = number * STRIDE + OFFSET[name]
        keep = (fill.at < first) | (fill.at >= first + DTYPE[name].itemsize)
    return Fill(fill.at[keep], fill.values[keep])


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
    if read is not None and (by := _adds(context, read)) is not None:
        evidence.append("PACR reads L1 because what it packs is added to what is there")
        who, victim = place(by.where, None, tile), place(read.where, read.clock, tile)
    return Finding(
        "uninit",
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


def _adds(context: Context, read: Reader) -> Change | None:
    """Who has told the packer to add to what is in L1, where it reads that."""
    cls = None if read.where.word is None else decode(read.where.word)
    if context.is_chip or cls is None or cls.name != "PACR":
        return None
    tile = context.tile
    if tile.loop.observer is None:
        return None
    end, found = tile.clock, None
    with suppress(BhemuError):  # in which the run may have ended
        tile.history.to(min(read.clock, end))
        found = Chain(tile).last_change(_ADDS, spans(tile, "brisc", _ADDS))
    with suppress(BhemuError), tile.history.replaying():
        tile.history.to(end)
    return found


def _values(fill: Fill) -> str:
    return " ".join(f"{value:02x}" for value in fill.values[:8])


def applies(seen: Outcome) -> int:
    """To every run: zeros of an emulator hide what is missing."""
    return 80 if not seen.refused else 40


CHECK = Check(
    "uninit",
    proves="bytes of L1, DRAM, local memory, GPRs, LRegs, Dst, Src, MOP or replay slots that"
    " nothing has written and that decide an output or how the program ends; named is who uses"
    " them, wherever the NoC has carried them",
    misses="Config and ThreadConfig, which power-up leaves at 0; counters and lanes, for which"
    " there is `powerup`; values that are read and decide nothing; low L1 where firmware boots only"
    " with zeros there; of a chip all tiles but some ten, the first of each part among them",
    cost="3 runs, and some 40 for each finding",
    applies=applies,
    run=run,
)
