"""PACR against a literal model, format by format and mode by mode."""

import random
from dataclasses import replace

import numpy as np
import pytest
from pack_model import ADD, BFP, BITS, PAIRS, RAW, ROUNDED, Pack, Packer
from pack_runner import execute, setup
from unit_runner import view
from unpack_model import put, put_thread

from bhemu.jit.subset import JIT
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.rules import UB_SILICON
from bhemu.tensix.state import State
from bhemu.tensix.units.pack import pacr


def step(
    s: State, model: Packer, p: Pack, select: int = 0, n: int = 16, strided: int = 0, last: int = 1
) -> None:
    """One PACR on both sides; all of L1 must agree."""
    t = p.thread
    s.adc[t, 2, 1, 0] = n - 1
    s.ub_mode[0] = UB_SILICON if not strided and model.crosses(p, s.adc[t, 2], select) else 0
    model.pacr(s, p, s.adc[t, 2].tolist(), select, n, strided, last)
    word = {"read_intf_sel": select, "dst_access_mode": strided, "last": last}
    assert execute(s, t, **word) == rules.DONE, p
    wrong = np.flatnonzero(s.l1 != np.frombuffer(model.l1, np.uint8))
    assert wrong.size == 0, (p, [hex(a) for a in wrong[:8]])


@pytest.mark.parametrize(("wide", "fmt", "out"), PAIRS)
def test_every_format_pair(wide: int, fmt: int, out: int) -> None:
    """All pairs, 256 datums each, with ReLU where it applies."""
    check_pair(Pack(wide=wide, fmt=fmt, out=out))
    if out == 10 and fmt in (1, 2):
        check_pair(Pack(wide=wide, fmt=fmt, out=out, e4m3=1))


@pytest.mark.parametrize(("wide", "fmt", "out"), ROUNDED)
def test_pairs_with_round_10b_mant(wide: int, fmt: int, out: int) -> None:
    """Rounded to tf32 first, then to fp16; fp8 with 4 or 5 bits of exponent."""
    for e4m3 in (0, 1) if out == 10 else (0,):
        check_pair(Pack(wide=wide, fmt=fmt, out=out, round_fp16=1, e4m3=e4m3))
        check_pair(Pack(wide=wide, fmt=fmt, out=out, round_fp16=1, e4m3=e4m3, dstacc=5))


@pytest.mark.parametrize(("wide", "fmt", "out"), RAW)
def test_pairs_with_read_int8(wide: int, fmt: int, out: int) -> None:
    """Denormals and NaN stay, nothing rounds."""
    check_pair(Pack(wide=wide, fmt=fmt, out=out, raw=1))
    if wide and fmt == 14:
        check_pair(Pack(wide=wide, fmt=fmt, out=out, raw=1, unsigned=1))


def check_pair(p: Pack) -> None:
    """Four packs of random Dst, plain and with each kind of ReLU."""
    for seed, offset in enumerate((0, 4, 16, 100)):
        q = replace(p, offset=offset)
        step(*setup(q, seed), q)
        for mode in (1, 2, 3) if p.fmt in (0, 1, 2, 4, 5, 6) else (1,) if p.fmt != 10 else ():
            q = replace(p, relu=mode, threshold=(0, 0x3C00, 0x3F80, 0x7FFF)[seed])
            step(*setup(q, seed), q)


def test_fp8_from_bf16_without_and_with_rounding() -> None:
    """Intermediate fp16 from a 16-bit Dst: fp16 cells, or bf16 cells with Round_10b_mant."""
    for rounds in (0, 1):
        for seed in range(4):
            p = Pack(fmt=1, out=10, round_fp16=rounds, relu=seed, e4m3=1)
            step(*setup(p, seed), p)


def test_every_16_bit_cell() -> None:
    """All 65536 cells of a 16-bit Dst: bf16, fp16, their roundings and conversions."""
    for fmt, out in ((5, 5), (6, 5), (1, 1), (1, 0), (1, 5), (1, 10), (2, 6), (5, 1), (4, 2)):
        p = Pack(fmt=fmt, out=out, e4m3=int(out == 10))
        s, model = setup(p)
        s.dst_valid[:] = 1
        s.adc[0, 2, 1, 0] = 15
        for part in range(4):
            s.dst[:] = (np.arange(16384) + 16384 * part).reshape(1024, 16)
            for row in range(0, 1024, 4 if JIT else 128):
                put(s, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset, row)
                p.offset = row
                model.pacr(s, p, s.adc[0, 2].tolist(), 0, 16, 0, 0)
                assert execute(s) == rules.DONE
        assert s.l1.tobytes() == bytes(model.l1)


def test_unsigned_int8_and_invalid_rows() -> None:
    for unsigned in (0, 1):
        p = Pack(wide=1, fmt=14, out=14, unsigned=unsigned)
        s, model = setup(p)
        s.dst[:16] &= 0x80FF
        s.dst[8:16] &= 0x1FF
        s.dst[::3, 5] = 0
        s.dst_valid[:4] = (1, 0, 1, 1)
        step(s, model, p)


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("select", [0, 1, 3, 5, 10])
def test_interfaces(wide: int, select: int) -> None:
    """read_intf_sel: rows 0-3; 0; 0, 1; 0, 2; 1, 3."""
    for offset in (0, 1, 6, 7, 1020, 509):
        for fmt in (5, 0) if wide else (5, 6):
            p = Pack(wide=wide, fmt=fmt, out=fmt, offset=offset)
            s, model = setup(p)
            step(s, model, p, select, last=0)
            s.dst_valid[:] = 1
            step(s, model, p, select)


def test_rows_wrap_and_all_starts_within_a_group_of_eight() -> None:
    """Row 1020 + 8 is row 4; 32-bit rows of a group of eight follow each other."""
    p = Pack(offset=1020)
    s, model = setup(p)
    s.adc[0, 2, 0, 1] = 8
    step(s, model, p)
    for fmt, out in ((0, 0), (5, 5)):
        for offset in range(8):
            p = Pack(wide=1, fmt=fmt, out=out, offset=offset)
            s, model = setup(p)
            s.dst_valid[:] = 1
            step(s, model, p)


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("select", [0, 1, 3])
def test_strided(wide: int, select: int) -> None:
    """dst_access_mode 1: rows 16 apart."""
    for fmt in (5, 0) if wide else (5, 6):
        p = Pack(wide=wide, fmt=fmt, out=fmt, offset=20)
        s, model = setup(p)
        put(s, cf.DEST_ACCESS_CFG_swizzle_32b, 1)
        put(s, cf.DEST_ACCESS_CFG_remap_addrs, 1)
        step(s, model, p, select, strided=1)


@pytest.mark.parametrize("out", [0, 5, 6, 7, 15])
def test_a_tile_in_several_steps_and_its_padding(out: int) -> None:
    """PACRs append; the last fills data and exponents with zeros to 16 bytes."""
    p = Pack(fmt=5, out=out, stride1=0x100)
    s, model = setup(p)
    s.adc[0, 2, 1, 1] = 3
    for select, last in ((0, 0), (1, 0), (3, 0), (1, 1), (1, 1), (3, 1)):
        step(s, model, p, select, last=last)
        assert s.pack_open[0] == 1 - last
        s.adc[0, 2, 0, 1] += 2


def test_8_datums_of_one_row() -> None:
    for out in (0, 5):
        p = Pack(fmt=5, out=out, masks=(0, 0xFFFF), sets=(0x44444444, 0), reads=5)
        s, model = setup(p)
        for n, last in ((8, 0), (8, 0), (8, 0), (16, 0), (8, 0), (16, 1), (8, 1)):
            step(s, model, p, 1, n, last=last)
            s.adc[0, 2, 0, 1] += 1


@pytest.mark.parametrize("masks", [(0xFFFF, 0), (0, 0xFFFF), (1, 0xFFFF), (1, 0), (0, 0)])
@pytest.mark.parametrize("select", [0, 1])
def test_edge_masks(masks: tuple[int, int], select: int) -> None:
    """Row y of the tile uses the mask that TILE_ROW_SET_MAPPING gives for y; y wraps at reads."""
    for reads in (1, 3, 16):
        for fmt, out in ((5, 5), (5, 6)):
            p = Pack(fmt=fmt, out=out, masks=masks, select=select, reads=reads)
            p.sets = (0x15005501, 0x00000110)
            s, model = setup(p)
            for k in (0, 3, 1, 0, 5):
                step(s, model, p, k, last=0)
                s.adc[0, 2, 0, 1] += 1
            step(s, model, p)
            step(s, model, p)


@pytest.mark.parametrize("fmt", [0, 1, 5, 8])
def test_l1_accumulation(fmt: int) -> None:
    """Output added to what L1 holds."""
    p = Pack(wide=int(fmt in (0, 8)), fmt=fmt, out=fmt, accumulate=1)
    for seed in range(3):
        s, model = setup(p, seed)
        for _ in range(3):
            step(s, model, p)


EDGE_32 = (0, 1, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x3F800000, 0x3F7FFFFF)
EDGE_32 += (0x7F7FFFFF, 0x7F000000, 0x7F800000, 0x7F800001, 0x7FFFFFFF, 0x33800000, 0x34000000)
EDGE_16 = (0, 1, 0x7F, 0x80, 0x81, 0xFF, 0x100, 0x3FF, 0x400, 0x401, 0x7FF, 0x800, 0x3F80, 0x3F7F)
EDGE_16 += (0x77FF, 0x7800, 0x7BFF, 0x7C00, 0x7F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x7FFF)


@pytest.mark.parametrize("fmt", [0, 1, 5])
def test_the_adder_of_l1_accumulation(fmt: int) -> None:
    """All pairs of edge patterns, neighbours, and random ones with all exponent gaps."""
    rng = random.Random(fmt)
    top = 31 if fmt == 0 else 15
    edges = [v | sign << top for v in (EDGE_32 if fmt == 0 else EDGE_16) for sign in (0, 1)]
    pairs = [(a, b) for a in edges for b in edges]
    for _ in range(20000 if JIT else 500):
        a = rng.getrandbits(top + 1)
        how = rng.random()
        if how < 0.3:
            b = a ^ 1 << top ^ rng.choice((0, 1, 2, 0x80, 0x400))
        else:
            b = rng.getrandbits(top + 1) if how < 0.6 else a + rng.randrange(-9, 9) * (1 << top - 8)
        pairs.append((a, b & (2 << top) - 1))
    add = pacr.add
    for old, new in pairs:
        assert int(add(fmt, old, new)) == ADD[fmt](old, new), (hex(old), hex(new))
    s = State()
    for i in range(0, len(pairs), 64):
        olds = np.array([old for old, _ in pairs[i : i + 64]], np.uint16 if fmt else np.uint32)
        out = np.array([new for _, new in pairs[i : i + 64]], np.uint32)
        pacr._sums(view(s), fmt, olds, out)
        assert out.tolist() == [ADD[fmt](old, new) for old, new in pairs[i : i + 64]]


def test_int32_is_added_in_l1_as_sign_and_magnitude() -> None:
    """With saturation (L1, Wormhole ISA)."""
    edges = (0, 1, 5, 0x7FFFFFFE, 0x7FFFFFFF, 0x40000000, 0x80000000, 0x80000005, 0xFFFFFFFF)
    for old in edges:
        for new in (*edges, 0xC0000000, 0x80000001):
            assert int(pacr.add(8, old, new)) == ADD[8](old, new), (hex(old), hex(new))


def test_counters_after_every_kind_of_address_mode() -> None:
    """Ysrc, Ydst: clear, CR or increment (13 bits); Zsrc, Zdst: clear or increment (8 bits)."""
    rng = random.Random(5)
    wrap = (0, 0x1FFF, 0xFF)
    for _ in range(60 if JIT else 10):
        p = Pack(strides=(0, 0, 0), thread=rng.randrange(3))
        s, _ = setup(p)
        t, mode = p.thread, rng.randrange(4)
        value, cr = s.adc[t, 2], s.adc_cr[t, 2]
        value[0, 1:3] = cr[0, 1:3] = (rng.randrange(0x1FF0, 0x2000), 0xFF)
        value[1, 1:3] = cr[1, 1:3] = (rng.randrange(0x1FF0, 0x2000), 0)
        cr[0, 1] = 0x1FFE
        value[1, 0] = 15
        bits = {n: rng.randrange(2) for n in ("ZsrcIncr", "ZdstIncr", "YsrcCR", "YdstCR")}
        bits |= {
            n: int(rng.random() < 0.3) for n in ("YsrcClear", "YdstClear", "ZsrcClear", "ZdstClear")
        }
        bits |= {"YsrcIncr": rng.randrange(16), "YdstIncr": rng.randrange(16)}
        for n, v in bits.items():
            put_thread(s, t, getattr(tf, f"ADDR_MOD_PACK_SEC{mode}_{n}"), v)
        want, want_cr = value.copy(), cr.copy()
        for channel, i, name in ((0, 1, "Ysrc"), (1, 1, "Ydst"), (0, 2, "Zsrc"), (1, 2, "Zdst")):
            if bits[name + "Clear"]:
                want[channel, i] = want_cr[channel, i] = 0
            elif i == 1 and bits[name + "CR"]:
                want_cr[channel, 1] = (want_cr[channel, 1] + bits[name + "Incr"]) & 0x1FFF
                want[channel, 1] = want_cr[channel, 1]
            else:
                want[channel, i] = (want[channel, i] + bits[name + "Incr"]) & wrap[i]
        assert execute(s, t, addr_mode=mode, last=1) == rules.DONE
        assert np.array_equal(value, want)
        assert np.array_equal(cr, want_cr)


@pytest.mark.parametrize("seed", range(6))
def test_random_tiles(seed: int) -> None:
    """Formats, ReLU, masks, interfaces, offsets, strides, threads and banks at random."""
    rng = random.Random(seed)
    for _ in range(12 if JIT else 3):
        wide, fmt, out = rng.choice([*PAIRS, (0, 1, 10), (1, 1, 10), (1, 1, 1)])
        p = Pack(wide=wide, fmt=fmt, out=out, thread=rng.randrange(3), bank=rng.randrange(2))
        p.round_fp16 = int(fmt == 1 and (wide == 1 or (out == 10 and rng.random() < 0.5)))
        p.e4m3 = int(fmt in (1, 2) and rng.random() < 0.5)
        size = max(BITS[fmt] // 8, 1)
        p.strides = (16 * size * rng.randrange(1, 4), 256 * size, 16 * size)
        p.offset, p.reads = rng.choice([0, 64, 512, 700]), rng.randrange(1, 17)
        if fmt in (0, 1, 2, 4, 5, 6):
            p.relu, p.threshold = rng.randrange(4), rng.choice([0, 0x3F80, 0x3C00, 0x4123])
        p.accumulate = int(out in (0, 1, 5) and rng.random() < 0.3)
        p.masks = rng.choice([(0xFFFF, 0), (0xFFFF, 0), (0xFFFF, 1), (0, 0xFFFF)])
        p.sets = (rng.choice([0, 0, 0x11111111]), 0)
        p.address = rng.randrange(0x1000, 0x10000) | rng.choice([0, 1 << 31])
        s, model = setup(p, seed)
        count = rng.randrange(1, 6)
        for i in range(count):
            s.adc[p.thread, 2, 0, 1:4] = rng.randrange(9), rng.randrange(2), rng.randrange(3)
            step(s, model, p, rng.choice([0, 0, 1, 3, 5, 10]), last=int(i == count - 1))


def test_the_last_datums_before_the_end_of_l1() -> None:
    for out in (5, *BFP):
        p = Pack(out=out, address=0x17FF7 - 8)
        p.exponents = 0x10 if out == 5 else 0x10 - BITS[out] // 2
        p.address = 0x18000 - (8 if out == 5 else p.exponents + BITS[out] // 2) - 1
        step(*setup(p), p)
