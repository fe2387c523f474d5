"""What an instruction or Tensix word reads and writes of what several agents can reach.

Places are numbers: bytes of L1, then bytes of the GPRs, then bits of Config, then rows of Dst.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.jit.record import plain
from bhemu.machine.word_text import Pack, Unpack, transfer_of
from bhemu.memmap import (
    DST_WINDOW_BASE,
    GPR_BASE,
    GPR_END,
    L1_SIZE,
    TENSIX_CFG_BASE,
    TENSIX_CFG_END,
)
from bhemu.tensix import config, config_fields, dest, issue, spaces
from bhemu.tensix.config import CONFIG_WORDS, SHARED
from bhemu.tensix.insn import Instruction, decode, instructions
from bhemu.tensix.state import State
from bhemu.tensix.units import counters
from bhemu.tensix.units.vector import loadstore, schedule
from bhemu.tensix.units.vector.sfpu import STORE
from bhemu.why.order import observe
from order_walk.steps import Access

GPRS = L1_SIZE
CONFIG = GPRS + 3 * 64 * 4
DST = CONFIG + 2 * CONFIG_WORDS * 32
END = DST + dest.ROWS
Range = tuple[int, int]  # first place, place behind the last
_WIDE = config_fields.ALU_ACC_CTRL_Fp32_enabled


class Touched(NamedTuple):
    """Places read and written; `stored`: rows of Dst that a macro of the vector unit has written,
    whatever word was executed then."""

    reads: list[Range]
    writes: list[Range]
    stored: list[Range] = []


NOTHING = Touched([], [])


class Before(NamedTuple):
    """What is kept of the state before a word."""

    reads: list[Range]
    writes: list[Range]
    gpr: npt.NDArray[np.uint8]
    cfg: npt.NDArray[np.uint32]
    dst: npt.NDArray[np.uint16]
    dst_valid: npt.NDArray[np.int64]
    l1: npt.NDArray[np.uint8] | None
    scheduled: list[Range]  # rows of Dst that macros of the vector unit have yet to store


def kind(place: int) -> str:
    """What a place belongs to."""
    if place < GPRS:
        return "L1"
    return "GPR" if place < CONFIG else "Config" if place < DST else "Dst"


def word_of(place: int) -> int:
    """The first place of the word that a place belongs to."""
    if CONFIG <= place < DST:
        return place - (place - CONFIG) % 32
    return place if place >= DST else place & ~3


def name(place: int) -> str:
    """A place in words."""
    if place < GPRS:
        return f"L1 {place:#x}"
    if place < CONFIG:
        thread, byte = divmod(place - GPRS, 256)
        return f"GPR {byte >> 2} of T{thread}"
    if place < DST:
        bank, bit = divmod(place - CONFIG, 32 * CONFIG_WORDS)
        return f"{field_name(place)} (Config word {bit >> 5} of bank {bank})"
    return f"Dst row {place - DST}"


def field_name(place: int) -> str:
    """The Config field that a place belongs to."""
    word, bit = divmod((place - CONFIG) % (32 * CONFIG_WORDS), 32)
    for title, field in vars(config_fields).items():
        if isinstance(field, config_fields.Field) and field.word == word:
            if field.mask << field.shift >> bit & 1:
                return title
    return f"bit {bit} of word {word}"


# Config that the words of a unit read, as they declare it


def config_of(word: int, context: int) -> list[Range]:
    """Bits of a Config bank that a word reads, of an unpacker in this context."""
    bits = np.array(observe.read_by(word, context), np.int64)
    early = np.array([is_early(word, int(bit)) for bit in bits], bool)
    parts = [_runs(bits[(bits >> 5 == at) & (early == how)], 0)
             for at in np.unique(bits >> 5) for how in (True, False)]  # fmt: skip
    return [one for found in parts for one in found]


def thread_of(place: int) -> int | None:
    """The thread whose unit alone reads a place of Config, None for any other."""
    return (
        observe.threads().get((place - CONFIG) % (32 * CONFIG_WORDS))
        if kind(place) == "Config"
        else None
    )


def is_early(word: int, bit: int) -> bool:
    """Whether a unit reads a bit of a bank of Config when the word is issued to it."""
    words = issue.AT_ISSUE.get(instructions()[word >> 24].unit, {})
    return bool(words.get(bit >> 5, 0) >> (bit & 31) & 1)


def _config_reads(s: State, t: int, word: int, unpacks: Unpack | None) -> list[Range]:
    if instructions()[word >> 24].formats not in observe.FOLLOWED:
        return []
    context = 0 if unpacks is None else int(unpacks.mode.context)
    bank = int(plain(config.bank)(s, t))
    found = []
    for low, high in config_of(word, context):
        base = CONFIG + (0 if low >= 32 * SHARED else bank * 32 * CONFIG_WORDS)
        found.append((base + low, base + high))
    return found


def _config_writes(old: npt.NDArray[np.uint32], new: npt.NDArray[np.uint32]) -> list[Range]:
    """The bits that have changed."""
    if old.tobytes() == new.tobytes():
        return []
    found = []
    changed = (old ^ new).reshape(-1)
    for index in np.flatnonzero(changed):
        if index >= CONFIG_WORDS + SHARED:
            continue  # such words stand in both banks
        bits = int(changed[index])
        found += [
            (CONFIG + 32 * int(index) + bit, CONFIG + 32 * int(index) + bit + 1)
            for bit in range(32)
            if bits >> bit & 1
        ]
    return found


# Tensix words


def _dst_rows(s: State, rows: list[int], wide: bool) -> list[Range]:
    """Rows of datums as ranges of storage rows."""
    found = set()
    for row in rows:
        if wide:
            high = int(plain(dest.adj32)(row & 0x3FF))
            found |= {high, high + dest.LOW_HALF}
        else:
            found.add(int(plain(dest.row16)(s, row)))
    return _runs(np.array(sorted(found)), DST)


def _is_wide(s: State, t: int) -> bool:
    return bool(plain(config.get)(s, int(plain(config.bank)(s, t)), _WIDE))


def _gpr_reads(t: int, cls: type[Instruction], word: int) -> list[Range]:
    given = np.array(sorted(cls.gives_gprs(cls.operands(word))), np.int64)
    return [(4 * low, 4 * high) for low, high in _runs(given, GPRS // 4 + 64 * t)]


def _storage(s: State, t: int, mod: int, row: int, *, stores: bool) -> list[int]:
    """The rows of storage that an SFPLOAD or SFPSTORE with this instr_mod0 reads or writes."""
    first = int(plain(loadstore.first_of_storage)(s, t, mod, row, int(stores)))
    halves = (0, dest.LOW_HALF) if first >= loadstore.WIDE else (0,)
    rows = (first % loadstore.WIDE + half + i for half in halves for i in range(4))
    return [] if first < 0 else [*rows]


def _loads(s: State, t: int, cls: type[Instruction], word: int) -> list[Range]:
    """Ranges of L1 that `word` of thread `t` would load to GPRs and does not store to."""
    if not cls.writes.may(spaces.GPR) or cls.writes.may(spaces.L1):
        return []
    found = cls.l1_read(s, t, word, awaited=False)
    return [(at, at + size) for at, size in found if at + size <= L1_SIZE]


def _dst_reads(s: State, t: int, cls: type[Instruction], word: int) -> list[Range]:
    values = cls.operands(word)
    count = cls.dst_rows_of(values)
    if not count:
        return []
    field = values.get("dst", values.get("dest_reg_addr", 0))
    row = int(plain(counters.dst_row)(s, t, field)) & -count
    if cls.unit == "vector":
        rows = _storage(s, t, values["instr_mod0"], row, stores=False)
        return _runs(np.array(rows), DST)
    return _dst_rows(s, list(range(row, row + count)), _is_wide(s, t))


def _scheduled(s: State) -> list[Range]:
    """The rows of the stores that SFPLOADMACRO has scheduled."""
    if not s.route[0]:
        return []
    found, t = set(), int(s.macro_thread[0])
    for slot in s.macro_slot[STORE]:
        if slot[schedule.KIND] != schedule.FREE:
            mod, row = int(slot[schedule.MODE]), int(slot[schedule.ROW])
            found.update(_storage(s, t, mod, row, stores=True))
    return [(DST + row, DST + row + 1) for row in sorted(found)]


def before_word(s: State, t: int, word: int) -> Before | None:
    """What a word that is about to execute reads, and what is needed to see what it writes."""
    cls = decode(word)
    if cls is None:
        return None
    reads, writes = _gpr_reads(t, cls, word), []
    moves = transfer_of(s, t, word)
    unpacks = moves if isinstance(moves, Unpack) else None
    if unpacks is not None:
        reads.append((unpacks.first, min(unpacks.end, L1_SIZE)))
    if cls.formats and (unpacks or cls.unit != "unpack"):
        reads += _config_reads(s, t, word, unpacks)
    if isinstance(moves, Pack):
        reads += _dst_rows(s, moves.rows, bool(moves.mode.wide))
        writes.append((moves.first, min(moves.end, L1_SIZE)))
    reads += _dst_reads(s, t, cls, word)
    reads += _loads(s, t, cls, word)
    l1 = s.l1.copy() if cls.stores() else None
    gpr = s.gpr.view(np.uint8).reshape(-1).copy()
    old = (s.cfg.copy(), s.dst.copy(), s.dst_valid.copy())
    return Before(reads, writes, gpr, *old, l1, _scheduled(s))


def _changed(old: npt.NDArray[Any], new: npt.NDArray[Any], base: int) -> list[Range]:
    """Runs of places that differ."""
    if old.tobytes() == new.tobytes():
        return []
    return _runs(np.flatnonzero(old != new), base)


def _runs(at: npt.NDArray[np.int64], base: int) -> list[Range]:
    """Neighbouring places, in rising order and counted from `base`, as ranges."""
    if not at.size:
        return []
    cuts = np.flatnonzero(np.diff(at) > 1) + 1
    return [(base + int(run[0]), base + int(run[-1]) + 1) for run in np.split(at, cuts)]


def after_word(s: State, before: Before) -> Touched:
    """What the word has read and written."""
    writes, stored = list(before.writes), []
    writes += _changed(before.gpr, s.gpr.view(np.uint8).reshape(-1), GPRS)
    writes += _config_writes(before.cfg, s.cfg)
    if (before.dst.tobytes(), before.dst_valid.tobytes()) != (
        s.dst.tobytes(),
        s.dst_valid.tobytes(),
    ):
        rows = (before.dst != s.dst).any(axis=1) | (before.dst_valid != s.dst_valid)
        stored = [one for one in before.scheduled if rows[one[0] - DST]]
        rows[[low - DST for low, _ in stored]] = False
        writes += _changed(np.zeros(dest.ROWS, bool), rows, DST)
    if before.l1 is not None:
        writes += _changed(before.l1, s.l1, 0)
    return Touched(before.reads, writes, stored)


# Instructions of cores


def of_access(core: int, access: Access, old_cfg: npt.NDArray[np.uint32], s: State) -> Touched:
    """What a load or store of a core reads and writes; nothing for devices that order it."""
    at, size = access.address, access.size
    found: list[Range] = []
    if at + size <= L1_SIZE:
        found = [(at, at + size)]
    elif GPR_BASE <= at < GPR_END:
        low = GPRS + (at - GPR_BASE & ~3) + (0 if core == 0 else 256 * (core - 1))
        found = [(low, low + 4)]
    elif TENSIX_CFG_BASE <= at < TENSIX_CFG_END and access.writes:
        found = _config_writes(old_cfg, s.cfg)
    elif DST_WINDOW_BASE <= at < DST_WINDOW_BASE + 0x8000:
        row = (at - DST_WINDOW_BASE) // 32
        found = [(DST + row, DST + row + 1)]
    return Touched(found if access.reads else [], found if access.writes else [])
