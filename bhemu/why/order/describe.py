"""Answers of Python to the compiled observer: what a word touches, what follows a load."""

from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.tensix import spaces, thread
from bhemu.tensix.config import CONFIG_WORDS, SHARED, bits_read
from bhemu.tensix.insn import Instruction, decode, instructions
from bhemu.tensix.issue import AT_ISSUE
from bhemu.tensix.spaces import fields_named
from bhemu.tensix.units.unpack.unpacr import UNPACR
from bhemu.why.order import polls, words
from bhemu.why.order.record import LISTS, UNIT_NAMES, OrderRecord

_KINDS = {
    "STALLWAIT": words.WAITS, "SEMWAIT": words.WAITS, "STREAMWAIT": words.WAITS,
    "SEMINIT": words.SEMINIT, "SEMPOST": words.SEMPOST, "SEMGET": words.SEMGET,
    "ATGETM": words.ATGETM, "ATRELM": words.ATRELM, "STOREREG": words.STOREREG,
    "SFPLOADMACRO": words.MACRO, "WRCFG": words.WRCFG,
}  # fmt: skip
_UNKNOWN = -2  # AGENT_UNIT of a word that no opcode knows
_BANKS = {"unpack": 1, "matrix": 2}
# Columns that are a field of the word: the first that it has
_FIELDS = {
    words.BLOCKS: ("stall_res",), words.SEMAPHORES: ("sem_sel",),
    words.SEM_CONDITION: ("wait_sem_cond",), words.MOST: ("max_value",),
    words.VALUE: ("init_value", "mutex_index", "reg_addr"),
    words.DATA_GPR: ("tdma_data_reg_index",), words.DST_FIELD: ("dst", "dest_reg_addr"),
    words.MODE: ("instr_mod0",), words.ADDRESS_GPR: ("addr_reg_index",),
    words.OFFSET_HALF: ("offset_half_reg",),
}  # fmt: skip
_DATA = "payload_sig_sel", "payload_sig_sel_size"  # fields that say no place


def unit_of(word: int) -> str | None:
    """The unit that executes a word some time after its issue; None: it is complete at once."""
    cls = decode(word)
    if cls is None:
        return None
    if cls.unit == "unpack":
        return f"unpack{cls.operands(word).get('unpack_block_selection', 0)}"
    return cls.unit if cls.unit in UNIT_NAMES else None


def begin(o: OrderRecord) -> None:
    """Fill the parts of a record that do not depend on the program."""
    o.bit_thread[:] = -1
    for bit, t in threads().items():
        o.bit_thread[bit] = t
    o.key_mask[:] = 0xFF000000
    for cls in instructions().values():
        o.key_mask[cls.opcode] |= sum(f.mask for f in cls.fields if f.name not in _DATA)


def text(o: OrderRecord, row: int, word: int) -> None:
    """Describe a word in a row of `text`."""
    o.text[row], o.text_list[row] = _text(word), 0


@lru_cache(1 << 14)
def _text(word: int) -> npt.NDArray[np.int64]:
    found = np.zeros(words.COLUMNS, np.int64)
    cls = decode(word)
    if cls is None:
        found[words.AGENT_UNIT] = _UNKNOWN
        return found
    values, unit = cls.operands(word), unit_of(word)
    found[words.AGENT_UNIT] = -1 if unit is None else UNIT_NAMES.index(unit)
    found[words.BANKS] = _BANKS.get(cls.unit, 0)
    found[words.STALL] = cls.stall_mask
    found[words.KIND] = _KINDS.get(cls.name, 0)
    for column, names in _FIELDS.items():
        found[column] = next((values[name] for name in names if name in values), 0)
    found[words.BLOCKS] = found[words.BLOCKS] or thread.DEFAULT_BLOCKS
    if "wait_res" in values:
        found[words.CONDITIONS] = values["wait_res"] or thread.DEFAULT_CONDITIONS
    gprs = np.array(sum(1 << n for n in cls.gives_gprs(values)), np.uint64)
    found[words.GPR_READ] = gprs.astype(np.int64)
    found[words.GPR_WRITE] = cls.writes.may(spaces.GPR)
    found[words.CONFIG_WRITE] = cls.writes.may(spaces.CFG)
    found[words.MOVES] = {"unpack": words.UNPACKS, "pack": words.PACKS}.get(cls.formats, 0)
    found[words.CONFIG_READ] = cls.formats in FOLLOWED
    if cls.unit != "unpack":  # unpack.modes says whether to Dst
        _dst(found, cls, values)
    _l1(found, cls, values)
    return found


def _dst(found: Any, cls: type[Instruction], values: dict[str, int]) -> None:
    """Describe the rows of Dst that a word reads or fills: some that a field gives, or any."""
    vector, count = cls.unit == "vector", cls.dst_rows_of(values)
    written = [one for one in cls.writes.of(values) if one.space == spaces.DST]
    if count:
        found[words.DST_COUNT] = count
        found[words.DST_HOW] = words.VECTOR_ROWS if vector else words.MATRIX_ROWS
    if written and vector and "dest_reg_addr" in values:  # as loadstore has it
        found[words.DST_COUNT], found[words.DST_HOW] = 4, words.STORED_ROWS
    elif any(not one.place for one in written) and not (count and vector):
        found[words.DST_HOW] |= words.ANY_ROW


def _l1(found: Any, cls: type[Instruction], values: dict[str, int]) -> None:
    """Describe the L1 that a word of the scalar unit or the mover touches."""
    stores = cls.stores()
    if stores == "atomic":
        found[words.L1_WRITE], found[words.IS_ATOMIC] = words.ATOMIC_LINE, 1
    elif stores and cls.unit == "mover":
        found[words.L1_WRITE] = words.MOVER
    elif stores and any(one.space == spaces.L1 for one in cls.writes.of(values)):
        found[words.L1_WRITE] = words.INDIRECT
    if cls.writes.may(spaces.GPR) and not cls.writes.may(spaces.L1):
        for one in cls.reads.of(values):
            if one.space == spaces.L1 and one.place and not one.awaited:
                found[words.L1_READ] = spaces.value(one.length, values)


def lists(o: OrderRecord, row: int, bank: int, context: int) -> None:
    """Describe the bits of Config that a word reads at issue and later, in a bank and context."""
    word = int(o.text_word[row]) - 1
    o.text_list[row, bank, context] = [_list(o, bits) for bits in _bits(word, bank, context)]


@lru_cache(1 << 10)
def _bits(word: int, bank: int, context: int) -> npt.NDArray[np.uint32]:
    """[at issue, later][word of both banks]: the bits that a word reads."""
    found = np.zeros((2, 2, CONFIG_WORDS), np.uint32)
    early = AT_ISSUE.get(instructions()[word >> 24].unit, {})
    for bit in read_by(word, context):
        at = bit // 32
        later = int(early.get(at, 0) >> bit % 32 & 1 == 0)
        found[later, 0 if at >= SHARED else bank, at] |= np.uint32(1 << bit % 32)
    return found.reshape(2, -1)


def _list(o: OrderRecord, bits: npt.NDArray[np.uint32]) -> int:
    """1 + the number of the list of these bits; too many lists share the last one."""
    count = int(o.lists[0])
    same = np.flatnonzero((o.list_bits[:count] == bits).all(axis=1))
    if same.size:
        return int(same[0]) + 1
    if count == LISTS:
        o.list_bits[count - 1] |= bits
        return count
    o.list_bits[count] = bits
    o.lists[0] += 1
    return count + 1


def site(o: OrderRecord, l1: Any, pc: int) -> None:
    """Describe what the code after a load does with the loaded value."""
    first = max(pc - polls.REACH, 0)
    o.site[pc >> 2] = _site(l1[first : pc + polls.REACH].tobytes(), pc - first)


@lru_cache(1 << 14)
def _site(code: bytes, at: int) -> int:
    l1, kind = np.frombuffer(code, np.uint8), polls.KNOWN
    kind |= polls.POLLS if polls.is_polled(l1, at) else 0
    kind |= polls.ONE_OF_TWO if polls.is_one_of_two(l1, at) else 0
    return kind | (polls.SPINS if polls.spin(l1, at) is not None else 0)


FOLLOWED = ("unpack", "pack", "src")
"""Kinds of words whose reads of Config are followed (`formats` of their classes). Kernels set the
modes of ZEROACC and of the vector unit once, at their start, and nothing orders that."""


@lru_cache(4096)
def read_by(word: int, context: int) -> tuple[int, ...]:
    """The bits of a Config bank that a word reads, in order; context: of an unpacker."""
    cls = instructions()[word >> 24]
    read = bits_read(cls.reads, cls.operands(word), context)
    bits = np.unpackbits(read.view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(bits).tolist())


@cache
def threads() -> dict[int, int]:
    """By bit of Config: the only thread whose unit reads it, 0 (unpackers) or 2 (packer)."""
    read: dict[int, set[int]] = {}
    for cls in instructions().values():
        thread = {"unpack": 0, "pack": 2}.get(cls.unit, 1)
        for unpacker, context in product((0, 1), range(8)) if cls.formats else ():
            word = cls.opcode << 24 | unpacker << UNPACR.unpack_block_selection.lo
            for bit in read_by(word, context):
                read.setdefault(bit, set()).add(thread)
    for field in fields_named("CFG", ("ALU_*",)).values():
        for bit in range(field.mask.bit_length()):
            read.setdefault(32 * field.word + field.shift + bit, set()).add(1)
    return {bit: next(iter(by)) for bit, by in read.items() if len(by) == 1 and 1 not in by}
