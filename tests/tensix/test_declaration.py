"""What each instruction declares that it reads and writes (tensix/spaces.py) against what it does.

Every word runs on two states that differ wherever it declares no read. It has to end with the same
status, and to leave each bit either as it found it in both or the same in both; and it may change
nothing that it does not declare.
"""

import random
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from fuzz.campaign import LONG

from bhemu.tensix import compiled, config_fields, spaces, thread_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.spaces import Clause, Space, Values
from bhemu.tensix.state import DTYPE, MEMBERS, OFFSET, State
from bhemu.tensix.units import MODULES

assert MODULES
WORDS = 80 if LONG else 30
FIRST, LAST = OFFSET["cfg"], OFFSET["log"]  # of the record: what is compared
L1_USED = 0x20000
STATES = 24 if LONG else 9
IN_ORDER = sorted((member.name for member in MEMBERS), key=OFFSET.__getitem__)
STARTS = [OFFSET[name] for name in IN_ORDER]
SPACES = [one for one in vars(spaces).values() if isinstance(one, Space)]
SPACES += [one[0].space for one in vars(spaces).values() if isinstance(one, Clause) and one]
PLACED = {name: space for space in SPACES for name in space.members}
# Notes for messages, scratch and marks of unspecified values: nobody computes from them.
NOTES = (
    *("cfg_by", "thread_cfg_by", "sem_by", "sem_pc", "mutex_core", "mutex_pc", "src_doubt"),
    *("src_prepared", "src_exponent", "src_slice", "src_wide", "term_sum", "term_exponent"),
    *("term_magnitude", "doubt", "dst_doubt", "dst_doubt_pc", "doubt_row", "lane_tmp"),
    *("lane_doubt", "lane_doubt_new", "stage_doubt", "pack_tmp", "pack_cells", "unpack_tmp"),
    *("unpack_weight", "status", "status_thread", "detail", "rule_number", "rule_count", "loaded"),
)
# Those that only load and store registers beyond the coprocessor need the device bus of a tile.
EXECUTABLE = [
    cls
    for cls in instructions().values()
    if cls.execute is not None and cls.name not in ("STOREREG", "LOADREG")
]
# Fields whose other values are mostly refused, by class.
LEGACY = {"index_en": (0,), "pool_addr_mode": range(8), "addr_mode": range(8), "dst": (0, 16, 32)}
PLAIN = dict.fromkeys(
    ("concat", "ovrd_thread_id", "addr_cnt_context", "ctxt_ctrl", "cfg_context", "row_pad_zero"),
    (0,),
)
MOSTLY: dict[str, dict[str, Sequence[int]]] = {
    **dict.fromkeys(("CONV3S1", "CONV3S2", "MFCONV3S1"), LEGACY),
    **dict.fromkeys(("APOOL3S1", "APOOL3S2", "MPOOL3S1", "MPOOL3S2"), LEGACY),
    "PACR": PLAIN | {"read_intf_sel": (0, 15), "dst_access_mode": (0,)},
    "ATCAS": {"data_reg_index": (0,), "mem_hier_sel": (0,), "cmp_val": (0, 1, 2, 3)},
    "ATGETM": {"mutex_index": (0, 2, 3, 4)},
    "ATRELM": {"mutex_index": (0, 2, 3, 4)},
    "CLEARDVALID": {"reset": (0,)},
    "SFPADD": {"lreg_src_a": (10,)},
    "SFPMUL": {"lreg_src_c": (9,)},
    "SFPMUL24": {"lreg_src_c": (9,)},
    "STREAMWRCFG": {"stream_reg_addr": (4, 8, 10, 28, 29, 31)},
    "UNPACR_NOP": {"unpack_pop": (1, 1, 3), "clr_to1_fmt_ctrl": (0,), "stall_clr_cntrl": (1,)},
    "ZEROSRC": {"bank_mask": (0,), "write_mode": (1,), "zero_val": (0,)},
}
# Refused but for contents of banks that are rare; that both states give the same status remains.
SELDOM = ("APOOL3S1", "APOOL3S2", "MFCONV3S1", "MPOOL3S1", "MPOOL3S2")
Bytes = npt.NDArray[np.uint8]


def _region(s: State) -> Bytes:
    found: Bytes = s.buffer[FIRST:LAST]
    return found


def _mask(t: int, clause: Clause, values: Values) -> tuple[Bytes, bool]:
    """Bits of the record that a word touches, and whether it touches L1."""
    whole = np.zeros(DTYPE.itemsize, np.uint8)
    record = whole.view(DTYPE)[0]
    for term in clause.of(values):
        places = term.places(values) if term.space not in (spaces.DST, spaces.L1) else None
        for name in term.space.members:
            if name == "l1":
                continue
            array = record[name]
            if term.space in (spaces.CFG, spaces.THREAD_CFG) and places is not None:
                words = array if name == "cfg" else array[t]
                words |= _words(places, words.shape[-1], bool(term.fields) or name == "cfg")
                continue
            if name == "lreg16":
                continue
            if name in ("gpr", "rwc", "rwc_cr") or (name in ("adc", "adc_cr") and term.place):
                array = array[t]
            array = array.view(np.uint8).reshape(array.shape[0], -1)
            chosen = range(array.shape[0]) if places is None else places
            array[[i for i in chosen if i < array.shape[0]]] = 0xFF
    return whole[FIRST:LAST], any(term.space == spaces.L1 for term in clause.of(values))


@cache
def _words(places: frozenset[int], count: int, are_bits: bool) -> npt.NDArray[np.uint32]:
    """Words in which these bits are set, or that are these; those that do not exist left out."""
    words = np.zeros(count, np.uint32)
    for place in places:
        word, bits = (place // 32, 1 << place % 32) if are_bits else (place, 0xFFFFFFFF)
        if word < count:
            words[word] |= np.uint32(bits)
    return words


def _fields(rng: random.Random, known: dict[str, object], array: npt.NDArray[np.uint32]) -> None:
    fields = [one for one in known.values() if isinstance(one, Field)]
    for field in rng.sample(fields, rng.randrange(30)):
        value = rng.choice((rng.randrange(4), rng.randrange(64), rng.getrandbits(32))) & field.mask
        array[field.word] = int(array[field.word]) & ~(field.mask << field.shift) & 0xFFFFFFFF
        array[field.word] |= np.uint32(value << field.shift)


def _random_state(s: State, seed: int) -> None:
    """Contents that hardware could hold, mostly such as instructions accept."""
    rng, some = random.Random(seed), np.random.default_rng(seed)
    for bank in range(2):
        s.cfg[bank] = 0
        _fields(rng, vars(config_fields), s.cfg[bank])
    s.cfg[1, 180:] = s.cfg[0, 180:]
    s.thread_cfg[:] = 0
    for t in range(3):
        _fields(rng, vars(thread_fields), s.thread_cfg[t])
        for k in range(8):
            s.thread_cfg[t, thread_fields.ADDR_MOD_BIAS_SEC0_BiasIncr.word + k] = 0
        s.thread_cfg[t, thread_fields.CFG_STATE_ID_StateID.word] = rng.randrange(2)
        s.thread_cfg[t, thread_fields.DEST_TARGET_REG_CFG_MATH_Offset.word] = 64 * rng.randrange(3)
    s.thread_cfg[:] &= 0xFFFF
    s.gpr[:] = some.integers(0, L1_USED // 64, (3, 64))
    s.sem[:], s.sem_max[:] = some.integers(0, 16, 8), some.integers(0, 16, 8)
    s.mutex[:], s.mutex_next[:] = some.integers(0, 4, 8), 0
    s.adc[:], s.adc_cr[:] = some.integers(0, 40, s.adc.shape), some.integers(0, 40, s.adc.shape)
    s.unpack_row[:] = 16 * some.integers(0, 3, (2, 3))
    s.unpack_context[:] = some.integers(0, 2, (2, 3))
    s.rwc[:], s.rwc_cr[:] = 16 * some.integers(0, 4, (3, 4)), 16 * some.integers(0, 4, (3, 4))
    s.rwc[:, 3], s.rwc_cr[:, 3] = some.integers(0, 4, 3), 0
    s.src[:] = some.integers(0, 1 << 19, s.src.shape) << 13
    s.matrix_bank[:], s.unpack_bank[:] = some.integers(0, 2, 2), some.integers(0, 2, 2)
    s.src_valid[:] = 0
    for which in range(2):
        s.src_valid[which, s.matrix_bank[which]] = 1
        if rng.random() < 0.8:
            s.unpack_bank[which] = s.matrix_bank[which] ^ 1
    s.src_fmt[:] = rng.choice((5, 5, 1, 0, 4, 14))
    if rng.getrandbits(1):
        s.src_fmt[:] = some.choice((5, 5, 1, 0, 4, 14), (2, 2))
    s.srca_row[0] = 16 * rng.randrange(4)
    s.dst[:] = some.integers(0, 1 << 16, s.dst.shape)
    s.dst_valid[:] = some.choice((1, 1, 1, 0), 1024)
    s.lreg[:8] = some.choice((some.integers(0, 1 << 32, (8, 32)), some.integers(0, 40, (8, 32))))
    s.lreg[11:15] = some.integers(0, 1 << 32, (4, 32))
    s.cc[:], s.cc_en[0] = some.integers(0, 2, 32), rng.randrange(2)
    s.cc_stack[:], s.cc_stack_en[:] = some.integers(0, 2, (8, 32)), some.integers(0, 2, 8)
    s.cc_depth[0] = rng.randrange(8)
    s.lane_config[:] = rng.choice((0, 0, 4, 256))
    s.prng[:] = some.integers(1, 1 << 32, 32)
    s.macro_template[:], s.macro_sequence[:] = some.integers(0, 1 << 32, (2, 4))
    s.macro_misc[0] = rng.getrandbits(12)
    s.pack_open[0] = 0
    s.pack_row[0], s.pack_plane[0] = rng.randrange(16), rng.randrange(16)
    s.pack_histogram[:] = some.integers(0, 256, 32)
    s.pack_exponent[0] = rng.randrange(256)


def _word(rng: random.Random, cls: type[Instruction]) -> int:
    values, plain = {}, rng.getrandbits(1)
    for field in cls.fields:
        value = rng.getrandbits(field.width) & (rng.getrandbits(field.width) | field.mode)
        if field.operand is not None and field.mode and rng.random() < 0.5:
            numbers = [int(v) for v, _ in field.operand.rows() if v.isdigit()]
            value = rng.choice(numbers or [value]) & field.max
        if field.name in ("dst", "dest_reg_addr", "where", "src", "srca", "srcb"):
            value = 16 * rng.randrange(4) & field.max
        if field.name in ("imm12_math", "imm16_math", "imm8_math") and rng.getrandbits(1):
            value = 0
        if field.name in ("lreg_dest", "lreg_ind") and rng.random() < 0.8:
            value &= 7
        if field.name in ("cfg_reg", "cfg_reg_addr"):
            value %= 224
        if plain and field.name[:4] not in ("lreg", "sem_", "mute") and rng.random() < 0.8:
            value = 0
        if rng.random() < 0.9:
            value = rng.choice(MOSTLY.get(cls.name, {}).get(field.name, (value,)))
        values[field.name] = value
    return cls.assemble(**values)


class Tried:
    """Two states with the compiled entries of one process."""

    def __init__(self) -> None:
        self.states = (State(), State())
        self.tables = [compiled.Table(s, lambda name, seconds: None) for s in self.states]
        self.pool = []
        for seed in range(STATES):
            _random_state(self.states[0], seed)
            self.pool.append(_region(self.states[0]).copy())
        some = np.random.default_rng(7)
        small = some.integers(0, 2, L1_USED // 4, np.uint8).repeat(4)
        self.l1 = some.integers(0, 256, L1_USED, np.uint8)
        self.l1[small == 1] &= np.resize(np.array([3, 0, 0, 0], np.uint8), L1_USED)[small == 1]
        self.done: dict[str, int] = {}

    def run(self, cls: type[Instruction], seed: int) -> list[str]:
        """What one random word does beyond its declaration."""
        rng = random.Random(seed)
        word, t = _word(rng, cls), rng.randrange(3)
        values = cls.operands(word)
        if any(term.space == spaces.MMIO for term in cls.writes.of(values)):
            return []
        read, reads_l1 = _mask(t, cls.reads, values)
        written, writes_l1 = _mask(t, cls.writes, values)
        first, second = self.states
        reference = rng.choice((0, 1, 1, 2))
        for s, start in zip(self.states, rng.sample(self.pool, 2), strict=True):
            _region(s)[:] = start
            s.ub_mode[0], s.reference[0] = 2, reference
            s.src_prepared[:] = 0
            s.doubt[:] = s.src_doubt[:] = 0
            s.gate_word[t] = word
            s.thcon[0] = 0
            s.l1[:L1_USED] = self.l1
        one, two = _region(first), _region(second)
        two[:] = (one & read) | (two & ~read)
        for name, space in PLACED.items():  # neither random nor declared: as in the first
            if space.name in ("SCHEDULE", "LATCH", "OCCUPIED", "PACKER", "STOCHASTIC"):
                getattr(second, name)[...] = getattr(first, name)
        if not reads_l1:
            second.l1[:L1_USED] ^= 0x5A
        before = [s.buffer[FIRST:LAST].copy() for s in self.states]
        kept_l1 = [s.l1[:L1_USED].copy() for s in self.states]
        status = [compiled.execute(s, t, word) for s in self.states]
        found = []
        if status[0] != status[1]:
            found.append(f"status {status[0]} and {status[1]}")
        elif status[0] == 0:
            self.done[cls.name] = self.done.get(cls.name, 0) + 1
            same = (one ^ before[0]) | (two ^ before[1])
            found += _named("is computed from more than is declared", (one ^ two) & same & written)
            found += _named("is written", ((one ^ before[0]) | (two ^ before[1])) & ~written)
            changed = [s.l1[:L1_USED] ^ kept for s, kept in zip(self.states, kept_l1, strict=True)]
            if not writes_l1 and any(part.any() for part in changed):
                found.append("l1 is written")
            elif ((first.l1 ^ second.l1)[:L1_USED] & (changed[0] | changed[1])).any():
                found.append("l1 is computed from more than is declared")
        return [f"{cls.name} {word:#010x} {values} of thread {t}: {text}" for text in found]


def _named(text: str, wrong: Bytes) -> list[str]:
    """The members with bits in `wrong`."""
    if not wrong.any():
        return []
    numbers = np.searchsorted(STARTS, FIRST + np.flatnonzero(wrong), side="right") - 1
    names = {IN_ORDER[number] for number in np.unique(numbers)}
    return [f"{name} {text}" for name in sorted(names) if name not in NOTES]


@pytest.fixture(scope="module")
def tried() -> Tried:
    return Tried()


@pytest.mark.parametrize("cls", EXECUTABLE, ids=lambda cls: cls.name)
def test_nothing_undeclared_is_read_or_written(tried: Tried, cls: type[Instruction]) -> None:
    start = zlib.crc32(cls.name.encode()) & 0xFFFFF
    found: list[str] = []
    for i in range(WORDS):
        found += tried.run(cls, start + i)
    assert not found, "\n".join(found[:5])
    assert cls.name in SELDOM or tried.done.get(cls.name, 0) >= WORDS // 16
