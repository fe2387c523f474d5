"""PACR's modes against the literal model: rows, columns, masks, thresholds, statistics."""

import random
from dataclasses import replace

import numpy as np
import pytest
from pack_model import BITS, Pack, Packer
from pack_runner import execute, setup
from test_pack import step
from unit_runner import count, run
from unpack_model import put, put_thread

from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("select", range(16))
def test_every_set_of_interfaces(wide: int, select: int) -> None:
    """Interface i reads row i of the aligned group, from the first row on (PACR, Blackhole)."""
    for first in range(4):
        if (select or 15) << first <= 15:
            p = Pack(wide=wide, fmt=6 if wide else 5, out=6, offset=20 + first)
            s, model = setup(p)
            step(s, model, p, select, last=0)
            step(s, model, p, select)


@pytest.mark.parametrize("n", range(1, 17))
def test_columns(n: int) -> None:
    """X selects columns; each interface gives as many."""
    for fmt, out, wide in ((5, 5, 0), (5, 0, 0), (0, 0, 1), (1, 10, 0), (14, 14, 1)):
        size = max(BITS[fmt] // 8, 1)
        for x0 in (0, 3, 8):
            if x0 + n > 16:
                continue
            p = Pack(fmt=fmt, out=out, wide=wide, xstride=size, strides=(64, 64, 0))
            s, model = setup(p)
            s.adc[0, 2, 0, 0] = x0
            s.adc[0, 2, 0, 1] = 4
            for select, last in ((1, 0), (0, 0), (7, 0), (1, 1)):
                s.adc[0, 2, 1, 0] = x0 + n - 1
                model.pacr(s, p, s.adc[0, 2].tolist(), select, n, 0, last)
                assert execute(s, read_intf_sel=select, last=last) == rules.DONE
            assert s.l1.tobytes() == bytes(model.l1)


@pytest.mark.parametrize("mask", [0x0001, 0x8000, 0x5555, 0x0FF0, 0xFFFE])
def test_downsampling(mask: int) -> None:
    """Of each row the columns of the mask, one behind the other (Downsampling, Wormhole ISA)."""
    for out in (0, 5, 1, 10):
        p = Pack(fmt=5, out=out, downsample=mask)
        s, model = setup(p)
        for select, last in ((0, 0), (3, 0), (1, 1)):
            step(s, model, p, select, last=last)
    p = Pack(downsample=mask)
    s, model = setup(p)
    step(s, model, p, 1, n=9)


@pytest.mark.parametrize("select", range(4))
def test_masks_and_row_sets(select: int) -> None:
    """Four masks, four row sets, any bits (EdgeMasking, Wormhole ISA)."""
    rng = random.Random(select)
    for fmt, out, wide in ((5, 5, 0), (6, 6, 0), (1, 0, 0), (0, 0, 1), (4, 1, 1), (8, 8, 1)):
        masks = tuple(rng.randrange(0x10000) for _ in range(4))
        sets = (rng.randrange(1 << 32), rng.randrange(1 << 32))
        p = Pack(fmt=fmt, out=out, wide=wide, masks=masks, sets=sets, select=select)
        p.mapping2 = rng.randrange(1 << 32)
        s, model = setup(p)
        for number in range(4):
            step(s, model, p, last=int(number == 3))
            s.adc[0, 2, 0, 1] += 4
        step(s, model, p)


@pytest.mark.parametrize(("n", "cleared"), [(10, 0x03C0), (12, 0x0FF0), (9, 0x0180)])
def test_a_row_of_the_tile_that_begins_within_a_dst_row(n: int, cleared: int) -> None:
    """Datums are counted 16 to a row: the second Dst row begins in row 0 and goes on in row 1."""
    masks = (0xFFFF, 0xFFFF ^ cleared, 0xFFFF, 0xFFFF)
    p = Pack(masks=masks, sets=(0b0100, 0), n=n)
    s, model = setup(p)
    step(s, model, p, 3, n=n, last=1)


@pytest.mark.parametrize(("wide", "fmt"), [(0, 5), (0, 6), (0, 4), (1, 0), (1, 4), (1, 5), (1, 6)])
def test_minus_infinity_in_place_of_masked_datums(wide: int, fmt: int) -> None:
    """PCK_EDGE_MODE_mode 1; ReLU takes it to zero."""
    for out in (0, 1, 5, 6, 2):
        for relu in (0, 1):
            p = Pack(wide=wide, fmt=fmt, out=out, masks=(0x0F0F, 0), minus_infinity=1, relu=relu)
            step(*setup(p), p)


@pytest.mark.parametrize("reads", [0, 3, 17, 255])
def test_the_row_counter_meets_the_plane_exactly_or_not_at_all(reads: int) -> None:
    """Planes that ttsim does not count: an 8-bit counter, its low four bits are the row."""
    p = Pack(masks=(0xFFFF, 0x00F0), sets=(0x40004000, 0), reads=reads)
    s, _ = setup(p)
    s.dst_valid[:] = 1
    s.adc[0, 2, 1, 0] = 15
    row = 0
    for number in range(70 if reads != 3 else 1):
        at = (p.address + 1) * 16
        assert execute(s, last=1) == rules.DONE
        packed = s.l1[at : at + 128].view(np.uint16).reshape(4, 16)
        for k in range(4):
            cleared = (row + k) % 16 in (7, 15)
            assert packed[k, ::8].any() == (not cleared), (number, k)
        row = (row + 4) % 256
        if row == reads:
            row = 0
        assert s.pack_plane[0] == row


def test_planes_of_incomplete_pacrs_count_on() -> None:
    """Three rows a plane, four interfaces: the counter steps over 3."""
    p = Pack(reads=3)
    s, _ = setup(p)
    s.adc[0, 2, 1, 0] = 15
    seen = []
    for _ in range(3):
        assert execute(s, last=1) == rules.DONE
        seen.append(int(s.pack_plane[0]))
    assert seen == [4, 8, 12]
    put(s, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16)
    assert execute(s) == rules.DONE
    assert s.pack_plane[0] == 0


@pytest.mark.parametrize("out", [0, 5, 6, 7, 10, 2])
def test_zero_write(out: int) -> None:
    """zero_write packs zeros whatever Dst holds, past masks; L1 accumulation adds them."""
    for accumulate in (0, 1) if out in (0, 5) else (0,):
        p = Pack(out=out, accumulate=accumulate, masks=(0, 0), relu=3, threshold=0x3F80)
        s, model = setup(p)
        s.adc[0, 2, 1, 0] = 15
        for select, last in ((0, 0), (3, 1), (1, 1)):
            model.zeros(p, s.adc[0, 2].tolist(), 16 * {0: 4, 3: 2, 1: 1}[select], last)
            word = {"zero_write": 1, "read_intf_sel": select, "last": last}
            assert execute(s, **word) == rules.DONE
        assert s.l1.tobytes() == bytes(model.l1)


@pytest.mark.parametrize("out", [5, 6, 10])
def test_flush(out: int) -> None:
    """No datum, but the tile ends: padding, a fresh address, and the counters move."""
    p = Pack(out=out)
    s, model = setup(p)
    put_thread(s, 0, tf.ADDR_MOD_PACK_SEC1_YsrcIncr, 3)
    step(s, model, p, 1, last=0)
    assert execute(s, flush=1, addr_mode=1) == rules.DONE
    model.end(p, 1)
    assert s.l1.tobytes() == bytes(model.l1)
    assert (s.pack_open[0], s.adc[0, 2, 0, 1]) == (0, 3)
    before = s.l1.copy()
    assert execute(s, flush=1, last=1) == rules.DONE
    assert np.array_equal(s.l1, before)
    step(s, model, p)


@pytest.mark.parametrize(
    ("wide", "fmt", "out"), [(1, 0, 2), (1, 0, 3), (1, 4, 11), (0, 5, 5), (0, 6, 1), (1, 0, 0)]
)
def test_exponent_threshold(wide: int, fmt: int, out: int) -> None:
    """Smaller exponents become zero; LLK sets 113 to pack fp32 as bfp8a."""
    for least in (0, 1, 100, 113, 127, 200, 255):
        p = Pack(wide=wide, fmt=fmt, out=out, least=least)
        for seed in range(3):
            step(*setup(p, seed), p)


@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize(("wide", "fmt"), [(1, 0), (1, 4), (0, 5), (0, 1), (0, 6)])
def test_relu_at_its_threshold(mode: int, wide: int, fmt: int) -> None:
    """Data of a few units, of each bit of the patterns, above and below T; fp32 is cut to 19."""
    offsets = [sign * (1 << bit) for bit in range(17) for sign in (1, -1)]
    offsets += [0, 0x1FFF, 0x2001, 0x3FFF, 0x4001, 0x5FFF, 0x6000, 0xFFFF]
    for threshold in (0x3F81, 0x3C03, 1, 0x7F7F):
        p = Pack(wide=wide, fmt=fmt, out=fmt, relu=mode, threshold=threshold)
        s, model = setup(p)
        s.dst_valid[:] = 1
        for i in range(64):
            v = max((threshold << 16) + offsets[i % len(offsets)], 0)
            row, high = i // 16, v >> 16
            cell = (high & 0x7F) << 8 | high >> 7 & 0xFF
            if not wide and fmt == 1:
                cell = (high & 0x3FF) << 5 | high >> 10 & 0x1F
            s.dst[row, i % 16] = cell
            if wide:
                s.dst[row + 8, i % 16] = v & 0xFFFF
        step(s, model, p)


@pytest.mark.parametrize("least", [0, 1, 15, 31, 32])
def test_exponent_threshold_of_5_bits(least: int) -> None:
    for wide, fmt, out, rounds in ((0, 1, 0, 0), (0, 2, 6, 0), (1, 1, 1, 1)):
        p = Pack(wide=wide, fmt=fmt, out=out, round_fp16=rounds, least=least, relu=1)
        step(*setup(p), p)


def test_the_whole_output_address() -> None:
    """Base and channel 1 Y, Z, W with their strides, in bytes, whole 16 of them."""
    for out in (5, 6):
        p = Pack(out=out, stride1=0x30, strides1=(0x101, 0x1000), base1=0x2F)
        s, model = setup(p)
        s.adc[0, 2, 1, 1:4] = 2, 3, 1
        step(s, model, p)


@pytest.mark.parametrize("out", [5, 6])
@pytest.mark.parametrize("header", [0, 1])
def test_a_tile_without_header(out: int, header: int) -> None:
    """Sub_l1_tile_header_size: the tile begins at L1_Dest_addr itself."""
    p = Pack(out=out, header=header)
    s, model = setup(p)
    place = slice(16 * p.address, 16 * p.address + 16)
    before = s.l1[place].copy()
    step(s, model, p)
    assert np.array_equal(s.l1[place], before) == bool(header)


@pytest.mark.parametrize("out", [5, 6, 0])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 2, 40])
def test_the_output_wraps_behind_its_limit(out: int, beyond: int) -> None:
    """From behind Pack_limit_address Pack_fifo_size is subtracted, once, where a tile begins."""
    p = Pack(out=out, limit=0x2800, fifo=0x100)
    p.address = 2 * p.limit + beyond
    s, model = setup(p)
    step(s, model, p, 1, last=0)
    assert (model.data < 32 * p.limit) == (beyond >= 1)
    step(s, model, p, 1)  # goes on behind the first


@pytest.mark.parametrize(("wide", "fmt"), [(0, 5), (1, 0), (1, 14)])
def test_the_base_of_the_input(wide: int, fmt: int) -> None:
    """PCK0_ADDR_BASE_REG_0_Base counts bytes, beside the counters."""
    size = max(BITS[fmt] // 8, 1)
    for rows in (0, 4, 24):
        p = Pack(wide=wide, fmt=fmt, out=fmt, base0=16 * size * rows, strides=(16 * size, 0, 0))
        s, model = setup(p)
        s.adc[0, 2, 0, 1] = 4
        step(s, model, p, 1)


@pytest.mark.parametrize("thread", range(3))
@pytest.mark.parametrize("other", range(3))
def test_counters_of_another_thread(thread: int, other: int) -> None:
    """ovrd_thread_id: the counters of thread addr_cnt_context count, by the own ADDR_MOD_PACK."""
    p = Pack(thread=thread, stride1=256)
    s, model = setup(p)
    put_thread(s, thread, tf.ADDR_MOD_PACK_SEC1_YsrcIncr, 3)
    s.adc[:, 2, 0, 1] = 4, 8, 12
    s.adc[:, 2, 1, :2] = (15, 1), (14, 2), (13, 3)
    before = s.adc.copy()
    model.pacr(s, p, s.adc[other, 2].tolist(), 1, 16 - other, 0, 1)
    word = {"ovrd_thread_id": 1, "addr_cnt_context": other, "read_intf_sel": 1}
    assert execute(s, thread, last=1, addr_mode=1, **word) == rules.DONE
    assert s.l1.tobytes() == bytes(model.l1)
    before[other, 2, 0, 1] += 3
    assert np.array_equal(s.adc, before)


@pytest.mark.parametrize("out", [5, 6])
def test_what_silicon_would_compress_is_noted(out: int) -> None:
    """Packed plain, as the golden model does, and counted, whatever undefined behaviour may do."""
    p = Pack(out=out)
    s, model = setup(p)
    rule = next(n for n, r in sentences.RULES.items() if r.rule == "PACR-COMPRESSION")
    step(s, model, p)
    assert count(s, rule) == 0
    put(s, cf.THCON_SEC0_REG1_Disable_zero_compress, 0)
    step(s, model, p, 1)
    step(s, model, p)
    assert count(s, rule) == 2


def test_dstacc_override() -> None:
    """ALU_FORMAT_SPEC_REG_Dstacc_override puts its own format in place of REG2_Dstacc."""
    p = Pack(fmt=6, out=6, dstacc=5)
    s, model = setup(p)
    put(s, cf.ALU_FORMAT_SPEC_REG_Dstacc_override, 1)
    put(s, cf.ALU_FORMAT_SPEC_REG_Dstacc_val, 6)
    step(s, model, p)


def test_a_negative_threshold_without_use() -> None:
    """Mode 1 clears negative datums and does not look at the threshold."""
    p = Pack(relu=1, threshold=0xBF80)
    step(*setup(p), p)


def test_a_tile_in_two_formats_stays_aligned() -> None:
    """What continues a tile must start at a whole datum."""
    p = Pack(fmt=1, out=10, e4m3=1)
    s, model = setup(p)
    step(s, model, p, 1, n=3, last=0)
    replace(p, out=1).program(s)
    number = execute(s)
    assert sentences.RULES[number].rule == "PACR-L1-ALIGN"


@pytest.mark.parametrize(
    ("wide", "fmt", "out"),
    [(0, 5, 5), (0, 1, 1), (0, 6, 6), (0, 9, 9), (1, 0, 0), (1, 8, 8), (1, 4, 1), (0, 2, 6)],
)
def test_exponent_histogram(wide: int, fmt: int, out: int) -> None:
    """Low five bits of each exponent, saturating at 255; the largest of all (ExponentHistogram)."""
    p = Pack(wide=wide, fmt=fmt, out=out, relu=int(fmt == 5), masks=(0x7FFF, 0))
    s, model = setup(p)
    put_thread(s, 1, tf.ENABLE_ACC_STATS_Enable, 1)
    for _ in range(8):
        step(s, model, p)
        s.adc[0, 2, 0, 1] = (s.adc[0, 2, 0, 1] + 4) % 32
    assert s.pack_histogram.tolist() == model.histogram
    assert s.pack_exponent.tolist() == [model.largest, 0, 0]
    assert run(s, "CLREXPHIST") == rules.DONE
    assert not s.pack_histogram.any()
    assert s.pack_exponent.tolist() == [0, 0, 0]


def test_pacrs_that_no_statistics_saw_are_counted() -> None:
    """Without ENABLE_ACC_STATS, so that nobody takes an old maximum for the answer."""
    for fmt, out in ((5, 5), (6, 6)):
        p = Pack(fmt=fmt, out=out)
        s, model = setup(p)
        step(s, model, p)
        step(s, model, p)
        assert s.pack_exponent.tolist() == [0, 2, 0]
        assert not s.pack_histogram.any()


def test_int8_has_no_bins() -> None:
    p = Pack(wide=1, fmt=14, out=14)
    s, model = setup(p)
    put_thread(s, 0, tf.ENABLE_ACC_STATS_Enable, 1)
    step(s, model, p)
    assert s.pack_exponent.tolist() == [0, 1, 1]


@pytest.mark.parametrize("seed", range(4))
def test_random_modes(seed: int) -> None:
    """Formats, interfaces, columns, thresholds, downsampling and masks at random."""
    rng = random.Random(seed)
    for number in range(12 if JIT else 5):
        wide, fmt, out = rng.choice(
            [(0, 5, 1), (0, 4, 5), (1, 5, 2), (1, 6, 15), (0, 2, 10), (1, 0, 5)]
        )
        p = Pack(wide=wide, fmt=fmt, out=out, thread=rng.randrange(3), bank=rng.randrange(2))
        p.relu, p.threshold = rng.randrange(4), rng.choice([0, 0x3F80, 0x4123])
        p.least = rng.choice([-1, 120, 130])
        p.offset = 4 * rng.randrange(64)
        if rng.random() < 0.5:
            p.masks = tuple(rng.randrange(0x10000) for _ in range(4))
            p.sets = (0x55555555 * rng.randrange(4), 0)
        block = out in (2, 15)
        p.downsample = 0 if block else rng.choice([0, 0, 0x3333])
        s, model = setup(p, 10 * seed + number)
        count = rng.randrange(1, 5)
        for i in range(count):
            select = rng.choice([1, 2, 4, 5, 7, 11, 15])
            n = 16 if block or p.downsample else rng.choice([16, 16, 5])
            step(s, model, p, select, n, last=int(i == count - 1))


def test_the_model_starts_a_tile_anew() -> None:
    """The literal model itself: exponents and datums of two tiles at the same place."""
    p = Pack(out=6)
    s, model = setup(p)
    assert isinstance(model, Packer)
    step(s, model, p)
    first = s.l1.copy()
    step(s, model, p)
    assert np.array_equal(s.l1, first)
