"""UNPACR's modes against the literal model: contexts, Dst, shifts, zeros, 5-bit exponents."""

import random

import numpy as np
import pytest
from test_unpack import agree, fresh
from unit_runner import run
from unpack_model import BFP_A, BITS, Unpack, put, put_thread

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.rules import UB_SILICON
from bhemu.tensix.state import State

DST_16 = [(0, 1), (0, 5), *((f, f) for f in (1, 5, 6, 7, 15, 2, 3, 11, 9, 10, 14))]


def with_exponents(case: Unpack, seed: int = 1) -> State:
    """Random L1 whose shared exponents leave room for the leading zeros of every datum."""
    s = fresh(seed)
    at = (case.base + case.offset + 1) * 16
    size = -(-case.x * case.y * case.z // 16)
    rng = np.random.default_rng(seed)
    s.l1[at : at + size] = rng.integers(7, 32, size, dtype=np.uint8)
    return s


@pytest.mark.parametrize("fmt", BFP_A)
@pytest.mark.parametrize("u", [0, 1])
def test_block_floats_with_5_bit_exponents(fmt: int, u: int) -> None:
    """BFP8aToFP16: magnitude normalised into fp16; the sign alone is -2**16."""
    case = Unpack(u=u, fmt=fmt, out=fmt)
    agree(with_exponents(case), case)
    agree(fresh(), Unpack(u=u, fmt=fmt, out=fmt, forced=31, count=100))
    agree(fresh(), Unpack(u=u, fmt=fmt, out=fmt, forced=6 if fmt == 2 else 2, count=256))
    if u == 0 and fmt == 2:
        case = Unpack(fmt=fmt, out=fmt, stride=0x40, count=256, z=8)
        agree(with_exponents(case), case)


@pytest.mark.parametrize("fmt", BFP_A)
def test_every_datum_under_the_smallest_exponents(fmt: int) -> None:
    """Exponent minus leading zeros from 0 on is right; below it is an error."""
    for shared in range(8):
        for v in range(1 << BITS[fmt]):
            zeros = 8 - (v << 9 - BITS[fmt] & 255).bit_length()
            s = fresh()
            at = (0x4000 + 1) * 16
            s.l1[at : at + 16] = v if BITS[fmt] == 8 else v << 4 | v if BITS[fmt] == 4 else v * 0x55
            case = Unpack(fmt=fmt, out=fmt, forced=shared, count=16)
            if zeros < 8 and zeros > shared:
                case.program(s)
                number = run(s, "UNPACR", **case.operands())
                assert sentences.RULES[number].rule == "UNPACR-BFP-EXPONENT"
            elif v % 7 < 3:
                agree(s, case)


@pytest.mark.parametrize(("fmt", "out"), [(7, 6), (15, 6), (3, 2), (11, 2)])
def test_wider_block_floats(fmt: int, out: int) -> None:
    """LLK's inference unpacks bfp4 as bfp8: the datum of bfp4, recorded as bfp8."""
    case = Unpack(fmt=fmt, out=out, set_dat_valid=1)
    agree(with_exponents(case), case)


@pytest.mark.parametrize(
    ("fmt", "out"), [(5, 4), (6, 5), (6, 4), (7, 4), (15, 5), (2, 1), (3, 1), (10, 1)]
)
def test_pairs_that_llk_admits_and_the_text_does_not(fmt: int, out: int) -> None:
    """Undefined; when tolerated, the input format alone decides."""
    case = Unpack(fmt=fmt, out=out, set_dat_valid=1)
    s = with_exponents(case)
    s.ub_mode[0] = UB_SILICON
    agree(s, case)
    assert s.rule_count.sum() == 1


@pytest.mark.parametrize(("fmt", "out"), DST_16)
@pytest.mark.parametrize("dest", [64, 64 + 16 * 5, 64 + 16 * 900])
def test_16_bit_datums_to_dst(fmt: int, out: int, dest: int) -> None:
    """WriteDstBF16, WriteDstFP16 and opaque 16 bits; rows become valid."""
    case = Unpack(fmt=fmt, out=out, to_dst=1, dest=dest)
    agree(with_exponents(case), case)
    case = Unpack(fmt=fmt, out=out, to_dst=1, dest=dest + 3, count=37, set_dat_valid=1)
    agree(with_exponents(case, 2), case)
    if BITS[fmt] >= 8:
        case = Unpack(fmt=fmt, out=out, to_dst=1, dest=dest, count=200, stride=0x90)
        agree(with_exponents(case, 3), case)


@pytest.mark.parametrize(("count", "zeros"), [(37, 0), (200, 0), (40, 1)])
def test_16_bit_datums_to_dst_as_high_halves(count: int, zeros: int) -> None:
    """Bit 11 of DBG_FEATURE_DISABLE: what goes to row r goes to 32-bit row r (Dst, ISA)."""
    case = Unpack(fmt=5, out=5, to_dst=1, dest=67, count=count, zeros=zeros)
    plain, halves = fresh(), fresh()
    halves.debug[0x068 >> 2] = 1 << 11
    before = halves.dst.copy()
    for s in (plain, halves):
        case.program(s)
        assert run(s, "UNPACR", **case.operands()) == 0
    for row in range(256):
        high = (row & 0x1F8) << 1 | row & 7
        changed = plain.dst[row] != before[row]
        assert np.array_equal(halves.dst[high][changed], plain.dst[row][changed])
        assert (halves.dst[high + 8][changed] == 0xBAD1).all()
        assert plain.dst_valid[row] == halves.dst_valid[high] or not changed.any()
    assert (halves.dst != before).any()


def test_tf32_to_dst_is_fp32() -> None:
    agree(fresh(), Unpack(fmt=4, out=4, to_dst=1))


@pytest.mark.parametrize("k", range(8))
def test_every_context_of_unpacker_0(k: int) -> None:
    """Base of 8 contexts; offset, x dimension and target of 4; the context wraps at 8."""
    for number in (0, 3, 7):
        case = Unpack(k=k, base=0x3000 + k, offset=5, dest=64 + 128, x=128, y=2)
        case.fields = {"cfg_context_id": number}
        case.counters, case.count = (0, 1, 1, 0), 100
        agree(fresh(k), case)
    agree(fresh(), Unpack(k=k, fmt=0, out=0, to_dst=1, fields={"cfg_context_id": 2}))


def test_formats_of_each_context() -> None:
    """Ovrd_data_format: the formats of the context replace the descriptor's."""
    for u, k, fmt, out in ((0, 0, 5, 5), (0, 2, 0, 4), (0, 5, 1, 1), (0, 7, 6, 6), (1, 1, 14, 14)):
        case = Unpack(u=u, k=k, fmt=fmt, out=out, count=256)
        case.fields = {"cfg_context_id": k}
        s = fresh()
        case.program(s)
        first = 92 + 48 * u + (k & 3)
        kept = int(s.cfg[0, first]) & 0xFFFF
        s.cfg[0, first] = kept | fmt << 16 + k // 4 * 8 | out << 20 + k // 4 * 8
        put(s, case.section("REG2_Ovrd_data_format"), 1)
        src = s.src.copy()
        case.expect(s.l1.tobytes(), src[u, 0], s.dst, s.dst_valid)
        put(s, cf.Field(64 + 48 * u, 0, 15), 9)
        put(s, case.section("REG2_Out_data_format"), 3)
        assert run(s, "UNPACR", **case.operands()) == rules.DONE
        assert np.array_equal(s.src, src), case


def test_context_counters() -> None:
    """auto_inc_context_id: the counter plus the offset, and one more afterwards, modulo."""
    for u, count, start, offset, want in ((0, 2, 1, 0, 2), (0, 2, 3, 0, 0), (0, 3, 2, 3, 6)):
        s = fresh()
        case = Unpack(u=u, k=start + offset, fields={"auto_inc_context_id": 1})
        case.program(s)
        put_thread(s, 0, tf.UNPACK_MISC_CFG_CfgContextOffset_0, offset)
        put(s, cf.THCON_SEC0_REG2_Context_count, count)
        s.unpack_context[u, 0] = start
        src = s.src.copy()
        case.expect(s.l1.tobytes(), src[u, 0], s.dst, s.dst_valid)
        assert run(s, "UNPACR", **case.operands()) == rules.DONE
        assert np.array_equal(s.src, src)
        assert s.unpack_context.tolist() == [[want, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("u", [0, 1])
def test_counting_a_context_without_unpacking(u: int) -> None:
    """UNPACR_IncrementContextCounter, also while the bank belongs to the matrix unit."""
    s = fresh()
    s.src_valid[:] = 1
    put(s, getattr(cf, f"THCON_SEC{u}_REG2_Context_count"), 1)
    src, adc = s.src.copy(), s.adc.copy()
    seen = []
    for _ in range(3):
        word = {"cfg_context_cnt_inc": 1, "unpack_block_selection": u, "addr_mode": 0xFF}
        assert run(s, "UNPACR", 2, **word) == rules.DONE
        seen.append(int(s.unpack_context[u, 2]))
    assert seen == [1, 0, 1]
    assert np.array_equal(s.src, src)
    assert np.array_equal(s.adc, adc)


def test_flushing_the_row_cache_has_no_effect() -> None:
    s = fresh()
    before = s.buffer.copy()
    assert run(s, "UNPACR", search_cache_flush=1) == rules.DONE
    assert np.array_equal(s.buffer, before)


@pytest.mark.parametrize("u", [0, 1])
def test_without_contexts(u: int) -> None:
    """OvrdThreadId 0: descriptor, base address and counters alone decide; `last` has no effect."""
    for last in (0, 1):
        case = Unpack(u=u, fields={"ovrd_thread_id": 0, "last": last}, count=256, z=2)
        case.strides, case.channel1 = (0, 2 * 16 * 8), (0, 2)
        case.add_dest, case.dest = 1, 64 if u == 0 else 0
        s = fresh()
        case.program(s)
        first = 64 + 48 * u
        s.cfg[0, first] = case.fmt | 1 << 4 | case.x << 16
        put(s, cf.THCON_SEC0_REG5_Dest_cntx0_address, 0x1234)
        put(s, cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, 3)
        case.dest = 0
        src = s.src.copy()
        case.expect(s.l1.tobytes(), src[u, 0], s.dst, s.dst_valid)
        assert run(s, "UNPACR", **case.operands()) == rules.DONE
        assert np.array_equal(s.src, src)


@pytest.mark.parametrize("to_dst", [0, 1])
def test_the_target_bit_without_contexts(to_dst: int) -> None:
    """Unpack_If_Sel decides, not Unpack_if_sel_cntx0."""
    case = Unpack(fmt=0, out=4, to_dst=to_dst, count=64, fields={"ovrd_thread_id": 0})
    case.strides, case.channel1, case.dest = (64, 0), (6, 0), 0
    s = fresh()
    case.program(s)
    s.cfg[0, 64] = 1 << 4 | case.x << 16
    put(s, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0, 1 - to_dst)
    put(s, cf.THCON_SEC0_REG2_Unpack_If_Sel, to_dst)
    put(s, cf.UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr, 1)
    case.add_dest = 1
    src, dst, valid = s.src.copy(), s.dst.copy(), s.dst_valid.copy()
    case.expect(s.l1.tobytes(), src[0, 0], dst, valid)
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert np.array_equal(s.src, src)
    assert np.array_equal(s.dst, dst)


@pytest.mark.parametrize("thread", [0, 1])
@pytest.mark.parametrize("xy", [1, 2])
def test_x_and_y_of_another_thread(thread: int, xy: int) -> None:
    """addr_cnt_context_id names the thread of X and Y; both threads' counters advance."""
    case = Unpack(thread=thread, counters=(16, 2, 1, 1), count=96, x=64, y=4, z=2)
    case.fields, case.addr_mode = {"addr_cnt_context_id": xy}, 0b11_10_01_11
    s = fresh()
    case.program(s)
    src, want = s.src.copy(), s.adc.copy()
    case.expect(s.l1.tobytes(), src[0, 0], s.dst, s.dst_valid)
    for t in {thread, xy}:
        want[t, 0] += np.array([[0, 1, 3, 0], [0, 3, 2, 0]])
    assert run(s, "UNPACR", thread, **case.operands()) == rules.DONE
    assert np.array_equal(s.src, src)
    assert np.array_equal(s.adc, want & np.array([0xFFFF, 0x1FFF, 0xFF, 0xFF]))


@pytest.mark.parametrize("shift", [1, 7, 15])
@pytest.mark.parametrize("haloize", [0, 1])
def test_column_shift(shift: int, haloize: int) -> None:
    """SrcA datums move left by Shift_amount columns; those of the first columns are dropped."""
    agree(fresh(), Unpack(shift=shift, haloize=haloize, count=256))
    agree(fresh(), Unpack(k=1, fmt=6, out=6, shift=shift, haloize=haloize))


def test_rows_before_the_first_of_srca_are_dropped() -> None:
    """Unpacker 0 counts its target from row 4: rows 0 to 3 go nowhere."""
    for dest in (0, 16, 63):
        agree(fresh(), Unpack(dest=dest, count=16))
    agree(fresh(), Unpack(dest=0, count=256, haloize=1))
    agree(fresh(), Unpack(dest=0, count=128, zeros=1))


@pytest.mark.parametrize("u", [0, 1])
def test_targets_inside_a_row(u: int) -> None:
    agree(fresh(), Unpack(u=u, dest=64 + 5, strides=(10, 0), channel1=(1, 0), count=16))
    agree(fresh(), Unpack(u=1, strides=(10, 0), channel1=(1, 0), count=300))


def test_channel_1_w() -> None:
    for u in (0, 1):
        agree(fresh(), Unpack(u=u, w=(2, 256), add_dest=1, count=256))


def test_tilized_srcb() -> None:
    agree(fresh(), Unpack(u=1, stride=0x80, count=512))
    agree(fresh(), Unpack(u=1, fmt=14, out=14, stride=0x40, count=300))


def test_srcb_is_not_transposed() -> None:
    """Undefined; the silicon ignores Haloize_mode of unpacker 1."""
    s = fresh()
    s.ub_mode[0] = UB_SILICON
    agree(s, Unpack(u=1, haloize=1, counters=(4, 0, 0, 0), count=200))
    assert s.rule_count.sum() == 1


@pytest.mark.parametrize(
    "case",
    [
        Unpack(zeros=1),
        Unpack(u=1, zeros=1, count=100, fmt=6, out=6, set_dat_valid=1),
        Unpack(zeros=1, haloize=1, count=200),
        Unpack(zeros=1, to_dst=1, fmt=0, out=0, dest=64 + 80, count=40),
        Unpack(zeros=1, to_dst=1, dest=64 + 80, count=40),
        Unpack(zeros=1, fmt=2, out=2, forced=200),
    ],
)
def test_zeros_instead_of_datums(case: Unpack) -> None:
    """zero_write2 writes zeros; counters and banks move as always."""
    agree(fresh(), case)


def test_16_rows_of_srca_without_the_override() -> None:
    """SRCA_SET_SetOvrdWithAddr 0: rows 0 to 15 as always; SrcB does not look at it."""
    agree(fresh(), Unpack(override=0, count=256))
    agree(fresh(), Unpack(u=1, override=0))


@pytest.mark.parametrize("seed", range(4))
def test_random_rare_cases(seed: int) -> None:
    """Contexts, Dst of all widths, formats of 5-bit exponents, shifts and zeros at random."""
    rng = random.Random(seed)
    for number in range(6):
        to_dst = rng.randrange(2)
        fmt, out = rng.choice([*DST_16, (0, 0), (8, 8)] if to_dst else [(0, 4), *DST_16])
        case = Unpack(fmt=fmt, out=out, to_dst=to_dst, k=rng.randrange(8), zeros=rng.randrange(2))
        case.fields = {"cfg_context_id": rng.randrange(8), "last": rng.randrange(2)}
        case.base, case.offset = rng.randrange(0x100, 0x4000), rng.choice([0, 7])
        case.count = rng.choice([16, 100, 1024])
        case.dest = 64 + 128 * rng.randrange(8)
        case.shift = 0 if to_dst else rng.choice([0, 3])
        case.haloize = 0 if to_dst else rng.randrange(2)
        case.addr_mode, case.set_dat_valid = rng.randrange(256), rng.randrange(2)
        agree(with_exponents(case, 100 * seed + number), case)
