"""The bytes with which a program is run again: what nothing has written, what a launch leaves."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.metal.kernels import AFTER_DONE
from bhemu.program import loader
from bhemu.tensix.state import DTYPE, LOCAL_SIZE, OFFSET
from bhemu.why.check import Context
from bhemu.why.checks.stack import data_end
from bhemu.why.unwritten.trials import NOTHING, STRIDE, Fill, Trials, member_of, together

_STORES = ("gpr", "dst", "src", "mop_cfg", "replay")
_LREGS = 8  # those that a program writes
_GAP = 16  # bytes between two areas of memory
_TILES = 12  # of a chip
_FROM = (0, 0x10000, 0x20000, 0x40000)  # L1 below: production firmware relies on zeros there
_KEPT = (
    *("cfg", "thread_cfg", "gpr", "adc", "adc_cr", "unpack_row", "unpack_context", "rwc", "rwc_cr"),
    *("src", "src_valid", "src_fmt", "unpack_bank", "matrix_bank", "dst", "dst_valid", "lreg"),
    *("cc", "cc_en", "cc_stack", "cc_stack_en", "cc_depth", "lane_config", "macro_template"),
    *("macro_sequence", "macro_misc", "prng", "mop_cfg", "mop_zmask_hi", "replay", "pack_open"),
    *("pack_data", "pack_exp", "pack_datum", "pack_row", "pack_plane", "pack_histogram"),
    *("sem", "sem_max", "mutex", "stream", "mailbox", "mailbox_read", "mailbox_write"),
)
"""What no reset of a core clears; of streams what is left when firmware has put counters back."""
MAIL = ("mailbox_write", "mailbox_read", "mailbox")


def unwritten(context: Context, trials: Trials) -> npt.NDArray[np.int64]:
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


def filled(at: npt.NDArray[np.int64], number: int) -> Fill:
    """Bytes with other values, those of `number`."""
    random = np.random.default_rng(zlib.crc32(b"uninit") + number)
    return Fill(at, random.integers(0, 256, at.size, dtype=np.uint8))


def without(trials: Trials, fill: Fill, at: int) -> Fill:
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


def results(context: Context, unwritten: npt.NDArray[np.int64]) -> Fill:
    """The outputs as a launch leaves them in L1, where the host writes nothing before the next."""
    places, values = [NOTHING.at], [NOTHING.values]
    for at, data in zip(context.symptom.addresses, context.symptom.outputs, strict=True):
        end = min(at + len(data), L1_SIZE)
        places.append(unwritten[(unwritten >= at) & (unwritten < end)])
        values.append(np.frombuffer(data, np.uint8)[places[-1] - at])
    return Fill(np.concatenate(places), np.concatenate(values))


def left(trials: Trials) -> dict[tuple[int, str], Fill]:
    """By tile and member of its record, what the program leaves otherwise than it was."""
    trials.begin(NOTHING)
    before = [{name: getattr(tile.state, name).copy() for name in _KEPT} for tile in trials.tiles]
    trials.result(NOTHING)
    if trials.context.is_chip:
        with suppress(BhemuError):  # its firmware puts its counters back
            trials.machine.run("polling", limit=AFTER_DONE)
    found: dict[tuple[int, str], Fill] = {}
    for n, (tile, old) in enumerate(zip(trials.tiles, before, strict=True)):
        for name, was in old.items():
            differ = np.flatnonzero(was != getattr(tile.state, name)).astype(np.int64)
            at = OFFSET[name] + differ[:, None] * was.itemsize + np.arange(was.itemsize)
            if at.size:
                at = at.reshape(-1)
                found[n, name] = Fill(n * STRIDE + at, tile.state.buffer[at].copy())
        # counts of mailboxes mean something together only
        mail = [found.pop((n, name)) for name in MAIL if (n, name) in found]
        if mail:
            found[n, MAIL[0]] = together(mail)
    return found
