"""SFPLOAD, SFPSTORE and SFPLOADI against a literal model (their pages, Blackhole ISA; ttsim).

The model computes one lane at a time on Python integers.
"""

import pytest
from matrix_reference import dec_bf16, enc_bf16, high_row
from sfpu_formats import LANES, M32, exponent
from sfpu_reference import Model
from sfpu_runner import EDGES, MASKS, fresh, refused, same
from unit_runner import run

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.dest import UNWRITTEN
from bhemu.tensix.state import State

MODES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15)  # 1, 5, 8, 11, 13: from the ISA text alone
WIDE_LOADS, WIDE_STORES = (3, 4, 12), (3, 4, 7, 9, 12)
FP32_ENABLED, FORMAT = 1 << 30, 21  # of config word 1
LLK = 1


class Dst:
    """Loads and stores of one lane, on the model's Dst."""

    def __init__(self, m: Model, high_half: bool) -> None:
        self.m, self.high_half = m, high_half

    def row(self, row: int, mode: int, wide: tuple[int, ...]) -> int:
        return high_row(row) if mode in wide or (self.high_half and mode == 2) else row

    def load(self, row: int, col: int, mode: int, old: int) -> int:
        r = self.row(row, mode, WIDE_LOADS)
        c = self.m.dst[r][col] if self.m.valid[r] else 0
        low = self.m.dst[r + 8][col] if mode in WIDE_LOADS and self.m.valid[r] else 0
        sign, e = (c >> 15) << 31, c & 31
        return {
            1: sign | (e + 112 if e else 0) << 23 | (c >> 5 & 0x3FF) << 13,
            2: dec_bf16(c) << 16,
            5: sign | c >> 5 & 0xFF,
            6: c,
            7: c << 16,
            8: sign | c & 0x7FFF,
            9: c,
            11: 0,
            13: sign | c >> 5 & 0x3FF,
            14: old & 0xFFFF0000 | c,
            15: c << 16 | old & 0xFFFF,
        }.get(mode, dec_bf16(c) << 16 | low)

    def cells(self, x: int, mode: int) -> tuple[int, int]:
        """Cells of both halves; the second is not used by 16-bit modes."""
        if mode in (1, 2, 3) and not exponent(x):
            x &= 1 << 31
        sign = (x >> 31) << 15
        if mode == 1:
            e, value = exponent(x) - 112, 0
            if e > 0:
                value = e << 10 | x >> 13 & 0x3FF if e <= 31 else 0x7FFF
            return sign | (value & 0x3FF) << 5 | value >> 10, 0
        if mode in (2, 3, 4, 12):
            return enc_bf16(x >> 16), x & 0xFFFF
        if mode in (7, 15):
            return x >> 16, x & 0xFFFF
        if mode in (5, 13):  # "integer 8": fp16 with exponent field 16
            return sign | (x & 0x3FF) << 5 | 16, 0
        return {8: sign | x & 0x7FFF, 11: 0}.get(mode, x & 0xFFFF), x >> 16

    def store(self, row: int, col: int, mode: int, x: int) -> None:
        r, (cell, low) = self.row(row, mode, WIDE_STORES), self.cells(x, mode)
        self.m.dst[r][col], self.m.valid[r] = cell, 1
        if mode in WIDE_STORES:
            self.m.dst[r + 8][col] = low


def expect(s: State, name: str, mode: int, reg: int, base: int) -> Model:
    """The model after the instruction; `mode` is concrete, `base` the sum of the address parts."""
    m = Model(s)
    dst = Dst(m, int(s.reference[0]) == LLK and bool(s.cfg[0, 1] & FP32_ENABLED))
    for lane in m.on():
        row, col = (base & 0x3FC) + lane // 8, 2 * (lane & 7) + (base >> 1 & 1)
        if name == "SFPSTORE":
            dst.store(row, col, mode, m.reg[reg][lane])
        elif reg < 8:
            m.reg[reg][lane] = dst.load(row, col, mode, m.reg[reg][lane])
    return m


def check(s: State, name: str, mode: int, reg: int, base: int, field: int, mod: int) -> None:
    model = expect(s, name, mode, reg, base)
    assert run(s, name, instr_mod0=mod, lreg_ind=reg, dest_reg_addr=field) == 0
    assert model.differences(s) == [], (name, mode, base)


BASES = (0, 2, 4, 6, 510, 514, 1000, 1022)


def prepared(seed: int, mask: str) -> State:
    """Random Dst and registers, edge cases in LReg 1, a third of the rows not valid."""
    s = fresh(seed, mask)
    s.lreg[1] = (EDGES * 2)[seed : seed + 32]
    s.dst_valid[:] = [(7 * r + seed) % 3 != 0 for r in range(1024)]
    return s


@pytest.mark.parametrize("mode", MODES)
def test_loads(mode: int) -> None:
    for mask in MASKS:
        for seed, base in enumerate(BASES):
            check(prepared(seed, mask), "SFPLOAD", mode, seed, base, base, mode)


@pytest.mark.parametrize("mode", MODES)
def test_stores(mode: int) -> None:
    for mask in MASKS:
        for seed, base in enumerate(BASES):
            for reg in (1, seed, 11):
                check(prepared(seed, mask), "SFPSTORE", mode, reg, base, base, mode)


@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
@pytest.mark.parametrize(
    ("fmt", "mode"),
    [
        *((fmt, 2) for fmt in (0, 4, 5, 6, 7, 8, 9, 15)),
        *((fmt, 1) for fmt in (1, 2, 3, 10, 11, 14)),
        (None, 3),
    ],
)
def test_mode_0_takes_the_format_of_srcb(name: str, fmt: int | None, mode: int) -> None:
    """Format None: ALU_ACC_CTRL_SFPU_Fp32_enabled, which wins over any format."""
    s = prepared(2, "some")
    s.cfg[0, 1] = FP32_ENABLED | 1 << FORMAT if fmt is None else fmt << FORMAT
    for base in (0, 6):
        for reg in (1, 2):
            check(s, name, mode, reg, base, base, 0)


@pytest.mark.parametrize("fmt", [12, 13])
def test_mode_0_refuses_what_is_no_format(fmt: int) -> None:
    for name in ("SFPLOAD", "SFPSTORE"):
        s = fresh(1)
        s.cfg[0, 1] = fmt << FORMAT
        assert refused(name, s) == "VECTOR-IMPLIED-FORMAT"


@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
@pytest.mark.parametrize(("override", "thread", "mode"), [(1, None, 1), (None, 1, 1), (1, 5, 2)])
def test_mode_0_follows_the_overrides(
    name: str, override: int | None, thread: int | None, mode: int
) -> None:
    """SFPLOAD: SFPU_DEST_FMT of the thread before SrcB_val before REG1_SrcB, here bf16."""
    s = prepared(2, "some")
    s.cfg[0, 1] = 5 << FORMAT
    if override is not None:
        s.cfg[0, cf.ALU_FORMAT_SPEC_REG_SrcB_val.word] = 0x200 | override << 5
    if thread is not None:
        s.thread_cfg[0, tf.SFPU_DEST_FMT_Base.word] = 1 | thread << 1
    for base in (0, 6):
        check(s, name, mode, 1, base, base, 0)


@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
@pytest.mark.parametrize(("fmt", "mode"), [(1, 1), (5, 2)])
def test_mode_0_reads_the_bank_of_the_thread(name: str, fmt: int, mode: int) -> None:
    s = prepared(2, "some")
    s.cfg[:, 1] = [(6 - fmt) << FORMAT, fmt << FORMAT]
    s.thread_cfg[0, tf.CFG_STATE_ID_StateID.word] = 1
    check(s, name, mode, 1, 0, 0, 0)


@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
def test_the_configured_base_is_added_to_the_row(name: str) -> None:
    """SFPLOAD: DstOffset = RWC.Dst + DEST_REGW_BASE, modulo 1024."""
    s = prepared(3, "some")
    s.cfg[0, cf.DEST_REGW_BASE_Base.word] = 1024 + 36
    check(s, name, 2, 1, 36, 0, 2)


def test_the_stack_base_is_refused() -> None:
    for base, status in ((4, ""), (2, "VECTOR-STACK-BASE")):
        s = fresh(1)
        s.cfg[0, cf.DEST_SP_BASE_Base.word] = base
        if status:
            assert refused("SFPLOAD", s, instr_mod0=2) == status
        else:
            assert run(s, "SFPLOAD", instr_mod0=2) == 0


def test_fp16_stores_saturate_and_truncate() -> None:
    s = fresh(1)
    s.cfg[0, 1] = 1 << FORMAT
    s.lreg[1, :6] = [0x3F801FFF, 0x38800000, 0x387FFFFF, 0x47800000, 0x48000000, 0xFF800000]
    check(s, "SFPSTORE", 1, 1, 0, 0, 0)
    cells = [int(c) for c in s.dst[0, 0:12:2]]
    assert cells == [0x000F, 0x0001, 0x0000, 0x001F, 0x7FFF, 0xFFFF]


@pytest.mark.parametrize("reference", [0, LLK])
@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
def test_bf16_of_a_wide_dst_depends_on_the_reference(name: str, reference: int) -> None:
    """tt-llk's golden tests take the high half of the 32-bit datum, ttsim a 16-bit datum."""
    s = prepared(3, "some")
    s.reference[0], s.cfg[0, 1] = reference, FP32_ENABLED
    for base in (0, 10, 0x42):
        check(s, name, 2, 1, base, base, 2)


def test_base_is_field_plus_counter_plus_offset() -> None:
    s = fresh(4)
    s.rwc[0, 2], s.thread_cfg[0, 1] = 16, 1000
    for name in ("SFPLOAD", "SFPSTORE"):
        check(s, name, 2, 1, (16 + 1000 + 38) % 1024, 38, 2)


def test_address_modifier_moves_dst_but_not_fidelity() -> None:
    s = fresh(4)
    s.thread_cfg[0, 28 + 3] = 6 | 1 << 13  # DestIncr 6, FidelityIncr 1 of section 3
    for name in ("SFPLOAD", "SFPSTORE"):
        assert run(s, name, instr_mod0=2, sfpu_addr_mode=3) == 0
    assert s.rwc[0].tolist() == [0, 0, 12, 0]


def test_constants_are_not_loaded_but_counters_move() -> None:
    s = fresh(4)
    s.thread_cfg[0, 28] = 4
    check(s, "SFPLOAD", 2, 9, 0, 0, 2)
    assert s.rwc[0, 2] == 4


def test_a_partial_store_exposes_old_data() -> None:
    """The row becomes valid with its first cell; the columns not written keep what they had."""
    s = fresh(4)
    s.dst_valid[:], s.cc[:] = 0, 0
    s.cc[9] = 1
    check(s, "SFPSTORE", 2, 1, 0, 0, 2)
    assert s.dst_valid[:8].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


IMMEDIATES = [
    (0, 0xBF80, 0, 0xBF800000),
    (1, 0x3C00, 0, 0x3F800000),
    (1, 0x8000, 0, 0xB8000000),
    (1, 0x7FFF, 0, 0x47FFE000),
    (2, 0xFFFE, 0, 0xFFFE),
    (4, 0x7FFE, 0, 0x7FFE),
    (4, 0xFFFE, 0, 0xFFFFFFFE),
    (8, 0xABCD, 0xFFFF, 0xABCD0000),
    (10, 0xABCD, 0xFFFF0000, 0xABCD),
]


@pytest.mark.parametrize(("mode", "imm", "keep", "new"), IMMEDIATES)
def test_immediates(mode: int, imm: int, keep: int, new: int) -> None:
    for mask in MASKS:
        s = fresh(4, mask)
        model = Model(s)
        model.put(5, [x & keep | new for x in model.reg[5]])
        assert run(s, "SFPLOADI", instr_mod0=mode, imm16=imm, lreg_ind=5) == 0
        assert model.differences(s) == []


def test_store_and_load_keep_all_lanes_apart() -> None:
    s = fresh(4)
    s.lreg[1] = [0x01020000 * i + 7 & M32 for i in LANES]
    for mode in (4, 7):
        assert run(s, "SFPSTORE", instr_mod0=mode, lreg_ind=1, dest_reg_addr=6) == 0
    assert run(s, "SFPSTORE", instr_mod0=4, lreg_ind=1, dest_reg_addr=6) == 0
    assert run(s, "SFPLOAD", instr_mod0=4, lreg_ind=2, dest_reg_addr=6) == 0
    assert (s.lreg[2] == s.lreg[1]).all()
    same(s, "SFPXOR", lreg_dest=2, lreg_c=1)


REFUSED = [
    ("SFPLOAD", "VECTOR-STACK", {"instr_mod0": 10}),
    ("SFPSTORE", "VECTOR-STACK", {"instr_mod0": 10}),
    ("SFPLOAD", "VECTOR-TEMPLATE-LOAD", {"instr_mod0": 2, "lreg_ind": 12}),
    ("SFPSTORE", "VECTOR-TEMPLATE-LOAD", {"instr_mod0": 2, "lreg_ind": 15}),
    ("SFPLOAD", "VECTOR-DST-ODD", {"instr_mod0": 2, "dest_reg_addr": 3}),
    ("SFPLOADI", "VECTOR-DEST", {"lreg_ind": 8}),
    ("SFPLOADI", "VECTOR-MODE-UNDEFINED", {"instr_mod0": 3}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", ["SFPLOAD", "SFPSTORE"])
def test_the_row_must_be_even(name: str) -> None:
    s = fresh(1)
    s.rwc[0, 2] = 1
    assert refused(name, s, instr_mod0=2) == "VECTOR-DST-ROW"


@pytest.mark.parametrize("mode", [2, 3, 4, 6])
def test_one_lane_makes_its_own_row_valid(mode: int) -> None:
    for lane in range(32):
        s = fresh(lane)
        s.dst_valid[:], s.cc[:] = 0, 0
        s.cc[lane] = 1
        assert run(s, "SFPSTORE", instr_mod0=mode, dest_reg_addr=16) == 0
        first = 32 if mode in (3, 4) else 16  # 32-bit rows 16 to 23 begin at 32
        assert [i for i in range(1024) if s.dst_valid[i]] == [first + lane // 8]


@pytest.mark.parametrize("mode", [3, 4])
@pytest.mark.parametrize("row", range(4))
def test_a_32_bit_store_writes_each_low_half(mode: int, row: int) -> None:
    """The row of the low half is written by its own lanes, whatever the high half was."""
    for lane in range(0, 32, 5):
        s = fresh(lane)
        s.dst_valid[40 + row] = UNWRITTEN  # rows 16 to 23 are at 32, their low halves at 40
        s.cc[:] = 0
        s.cc[lane] = 1
        assert run(s, "SFPSTORE", instr_mod0=mode, dest_reg_addr=16) == 0
        assert s.dst_valid[40 + row] == (1 if lane // 8 == row else UNWRITTEN)
        s.cc[:] = 1
        assert run(s, "SFPSTORE", instr_mod0=mode, dest_reg_addr=16) == 0
        assert s.dst_valid[32:48].tolist() == [1] * 16
