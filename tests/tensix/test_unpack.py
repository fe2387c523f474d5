"""UNPACR and UNPACR_NOP against a literal model, mode by mode and rule by rule."""

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from unit_runner import run
from unpack_model import BFP, BITS, WIDTH, Unpack, put, put_thread

from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State

TO_SRC = [(0, 1), (0, 4), (0, 5), *((f, f) for f in (1, 5, 6, 7, 9, 10, 14, 15))]
TO_DST = [(0, 0), (0, 4), (8, 8)]
SPECIAL_32 = (0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF)
SPECIAL_32 += (0x37FFFFFF, 0x38000000, 0x47FFE000, 0x48000000, 0xC7FFFFFF)  # fp16 boundaries


def fresh(seed: int = 1) -> State:
    """A state whose L1, Src and Dst hold random bits, special fp32 patterns among them."""
    s = State()
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, s.l1.size // 4, dtype=np.uint32)
    special = rng.integers(0, words.size, words.size // 4)
    words[special] = np.array(SPECIAL_32, np.uint32)[rng.integers(0, len(SPECIAL_32), special.size)]
    s.l1[:] = words.view(np.uint8)
    s.src[:] = rng.integers(0, 1 << 32, s.src.shape, dtype=np.uint32)
    s.dst[:] = rng.integers(0, 1 << 16, s.dst.shape, dtype=np.uint16)
    s.dst_valid[:] = rng.integers(0, 2, 1024)
    return s


def agree(s: State, case: Unpack) -> None:
    """Run the case and compare all of Src, Dst, the counters and the bank with the model."""
    case.program(s)
    t, u = case.thread, case.u
    src, dst, valid = s.src.copy(), s.dst.copy(), s.dst_valid.copy()
    bank = int(s.unpack_bank[u])
    case.expect(s.l1.tobytes(), src[u, bank], dst, valid)
    counters = s.adc[t, u].copy()
    for shift, (channel, i, wrap) in enumerate(
        ((0, 2, 256), (0, 1, 8192), (1, 2, 256), (1, 1, 8192))
    ):
        counters[channel, i] = (counters[channel, i] + (case.addr_mode >> 2 * shift & 3)) % wrap
    assert run(s, "UNPACR", t, **case.operands()) == rules.DONE, case
    assert np.array_equal(s.src, src), case
    assert np.array_equal(s.dst, dst), case
    assert np.array_equal(s.dst_valid, valid), case
    assert np.array_equal(s.adc[t, u], counters)
    assert s.src_valid[u, bank] == case.set_dat_valid
    assert s.unpack_bank[u] == bank ^ case.set_dat_valid
    if case.set_dat_valid:
        assert s.src_fmt[u, bank] == case.out


@pytest.mark.parametrize("u", [0, 1])
@pytest.mark.parametrize(("fmt", "out"), TO_SRC)
def test_every_format_into_a_source_register(u: int, fmt: int, out: int) -> None:
    """Conversion table: 1024 datums, with forced and with shared exponents."""
    agree(fresh(fmt), Unpack(u=u, fmt=fmt, out=out))
    if fmt in BFP:
        agree(fresh(fmt + 16), Unpack(u=u, fmt=fmt, out=out, forced=3))


@pytest.mark.parametrize("u", [0, 1])
def test_every_8_bit_datum_in_every_variant(u: int) -> None:
    """fp8 as e5m2 and e4m3, int8 as signed and unsigned, bfp8 under small exponents (wrap)."""
    variants = [{"fmt": 10, "e4m3": 0}, {"fmt": 10, "e4m3": 1}]
    variants += [{"fmt": 14, "unsigned": 0}, {"fmt": 14, "unsigned": 1}]
    variants += [{"fmt": 6, "forced": e} for e in (0, 1, 5, 6, 7, 127, 255)]
    for kind in variants:
        s = fresh()
        at = (0x4000 + 1) * 16
        s.l1[at : at + 256] = np.arange(256)
        agree(s, Unpack(u=u, out=kind["fmt"], count=256, **kind))


@pytest.mark.parametrize(("fmt", "out"), TO_DST)
@pytest.mark.parametrize("dest", [64, 64 + 16 * 5, 64 + 16 * 448, 64 + 16 * 900])
def test_to_dst(fmt: int, out: int, dest: int) -> None:
    """32-bit rows: high and low halves eight rows apart; the flag of the high half's row."""
    agree(fresh(), Unpack(fmt=fmt, out=out, to_dst=1, dest=dest))
    agree(fresh(2), Unpack(fmt=fmt, out=out, to_dst=1, dest=dest, count=37, set_dat_valid=1))
    agree(fresh(3), Unpack(fmt=fmt, out=out, to_dst=1, dest=dest, count=200, stride=0x90))


@pytest.mark.parametrize(("fmt", "out"), [(5, 5), (0, 4), (1, 1), (6, 6), (15, 15), (14, 14)])
def test_transposed(fmt: int, out: int) -> None:
    """Haloize_mode exchanges the low four row bits with the column."""
    agree(fresh(), Unpack(fmt=fmt, out=out, haloize=1))
    agree(fresh(2), Unpack(fmt=fmt, out=out, haloize=1, count=256, dest=64 + 512))


@pytest.mark.parametrize(("fmt", "out"), [(5, 5), (0, 5), (1, 1), (6, 6), (14, 14)])
@pytest.mark.parametrize("stride", [0x10, 0x40, 0x100, 0x1230])
def test_tilized(fmt: int, out: int, stride: int) -> None:
    """Tileize_mode: rows of 32 (16 for 8 bits) datums, Shift_amount bytes apart."""
    agree(fresh(), Unpack(fmt=fmt, out=out, stride=stride, count=512))
    agree(fresh(2), Unpack(fmt=fmt, out=out, stride=stride, count=100, haloize=1))


def random_case(rng: random.Random) -> Unpack:
    u = rng.randrange(2)
    to_dst = 1 if u == 0 and rng.random() < 0.2 else 0
    fmt, out = rng.choice(TO_DST if to_dst else TO_SRC)
    case = Unpack(u=u, fmt=fmt, out=out, to_dst=to_dst, k=rng.randrange(2))
    case.thread, case.bank = rng.randrange(3), rng.randrange(2)
    case.x, case.y, case.z = rng.choice([(256, 1, 4), (16, 16, 4), (32, 32, 1), (48, 3, 2)])
    case.base, case.offset = rng.randrange(0x10, 0x4000), rng.choice([0, 3, 0xFFFF])
    aligned = 128 // BITS[fmt]
    x0 = rng.choice([0, 0, aligned, 2 * aligned, rng.randrange(64)])
    case.counters = (x0, rng.randrange(3), rng.randrange(3), rng.randrange(2))
    case.count = rng.choice([16, 64, 256, 1024, rng.randrange(1, 900)])
    width = WIDTH[out]
    case.strides = (16 * width * rng.randrange(3), 16 * width * 16)
    case.channel1 = (rng.randrange(3), rng.randrange(2))
    case.dest = 64 + 128 * rng.randrange(8)
    case.add_dest = rng.randrange(2) if case.strides[0] % (128 * width) == 0 else 0
    case.forced = rng.choice([-1, -1, rng.randrange(256)])
    case.e4m3, case.unsigned = rng.randrange(2), rng.randrange(2)
    case.addr_mode = rng.randrange(256)
    case.set_dat_valid = rng.randrange(2)
    if u == 1:
        case.count = min(case.count, 1024 - case.first_cell())
    if u == 0 and case.counters == (x0, 0, 0, 0) and x0 % aligned == 0:
        case.haloize = 0 if to_dst else rng.randrange(2)
        case.stride = rng.choice([0, 0x80, 0x400]) if BITS[fmt] >= 8 else 0
    return case


@pytest.mark.parametrize("seed", range(8))
def test_random_cases(seed: int) -> None:
    """Contexts, banks, threads, counters, strides and formats at random."""
    rng = random.Random(seed)
    s = fresh(seed)
    for _ in range(10 if JIT else 2):
        for member in (s.cfg, s.thread_cfg, s.src_valid, s.unpack_bank):
            member[...] = 0
        s.unpack_bank[:] = rng.randrange(2)
        agree(s, random_case(rng))


def test_the_base_wraps_in_32_bits_and_srca_rows_modulo_64() -> None:
    agree(fresh(), Unpack(base=0xF0004000, count=64))
    agree(fresh(), Unpack(dest=64 + 62 * 16, count=16))
    agree(fresh(), Unpack(dest=64 + 60 * 16, count=1024))


@pytest.mark.parametrize(("row", "count"), [(64, 256), (56, 256), (112, 128), (72, 1024)])
def test_srcb_rows_wrap_modulo_64(row: int, count: int) -> None:
    """UNPACR_Regular, ISA: row & 0x3F; tt-llk's custom matmul comes back to row 0 that way."""
    case = Unpack(u=1, strides=(16 * 16, 0), channel1=(row // 8, 0), count=count)
    agree(fresh(), case)
    agree(fresh(), replace(case, stride=64))
    agree(fresh(), replace(case, fmt=6, out=6, strides=(8 * 16, 0)))


@pytest.mark.parametrize("fmt", [6, 7, 15])
def test_exponents_follow_the_datum_not_the_row(fmt: int) -> None:
    """A first datum inside a group of 16; tilized rows keep counting exponents through."""
    agree(fresh(), Unpack(fmt=fmt, out=fmt, counters=(5, 0, 0, 0), count=100))
    agree(fresh(), Unpack(u=1, fmt=fmt, out=fmt, counters=(21, 1, 1, 0), count=40))
    if fmt == 6:
        agree(fresh(), Unpack(fmt=6, out=6, stride=0x80, counters=(16, 0, 0, 0), count=100))


def test_counters_wrap_at_13_and_8_bits() -> None:
    agree(
        fresh(), Unpack(x=0, counters=(0, 0x1FFF, 0xFF, 0), channel1=(0x1FFF, 0xFF), addr_mode=0xFF)
    )
    agree(
        fresh(), Unpack(x=0, counters=(0, 0x1000, 0x80, 0), channel1=(0x1000, 0x80), addr_mode=0x55)
    )


def test_unpacker_1_has_no_way_to_dst() -> None:
    """Unpack_if_sel of unpacker 1 has no effect."""
    s = fresh()
    put(s, cf.THCON_SEC1_REG2_Unpack_if_sel_cntx0, 1)
    agree(s, Unpack(u=1))


@pytest.mark.parametrize("u", [0, 1])
def test_it_waits_for_the_bank_before_any_effect(u: int) -> None:
    """An UNPACR whose bank still belongs to the matrix unit is retried."""
    s = fresh()
    case = Unpack(u=u, set_dat_valid=1, addr_mode=0x55)
    case.program(s)
    s.unpack_bank[u] = 1
    s.src_valid[u, 1] = 1
    before = s.buffer.copy()
    waits = run(s, "UNPACR", **case.operands())
    assert sentences.CONDITIONS[waits].text.startswith(f"Src{'AB'[u]} bank 1")
    assert np.array_equal(s.buffer, before)
    s.src_valid[u, 1] = 0
    assert run(s, "UNPACR", **case.operands()) == rules.DONE
    assert (s.src_valid[u, 1], s.unpack_bank[u], s.src_fmt[u, 1]) == (1, 0, 5)


def field(name: str, value: int) -> Callable[[State], None]:
    return lambda s: put(s, getattr(cf, name), value)


def counter(channel: int, i: int, value: int, u: int = 0) -> Callable[[State], None]:
    return lambda s: s.adc[0, u, channel].__setitem__(i, value)


def thread_field(name: str, value: int) -> Callable[[State], None]:
    return lambda s: put_thread(s, 0, getattr(tf, name), value)


def nothing(s: State) -> None:
    del s


DST = Unpack(fmt=0, out=0, to_dst=1)
SRCB = Unpack(u=1)
ZERO = "REG2_Context_count_non_log2_en", "REG2_Unpack_fifo_size"
REFUSED = [
    ("UNPACR-FIELDS", Unpack(fields={"srcb_bcast": 1}), nothing),
    ("UNPACR-ADC-CONTEXT", Unpack(fields={"addr_cnt_context_id": 3}), nothing),
    ("UNPACR-CONTEXT", Unpack(u=1), thread_field("UNPACK_MISC_CFG_CfgContextOffset_1", 2)),
    ("UNPACR-FORMATS", Unpack(fmt=5, out=1), nothing),
    ("UNPACR-FORMATS", Unpack(fmt=0, out=6), nothing),
    ("UNPACR-FORMATS", Unpack(fmt=5, out=4), nothing),
    ("UNPACR-FORMATS", Unpack(fmt=6, out=5), nothing),
    ("UNPACR-FORMATS", Unpack(fmt=6, out=7), nothing),
    ("UNPACR-FORMATS", Unpack(fmt=5, out=4, to_dst=1), nothing),
    *(("UNPACR-CONVERSION", Unpack(fmt=f, out=f), nothing) for f in (4, 12, 13)),
    ("UNPACR-CONVERSION", Unpack(fmt=12, out=12, to_dst=1), nothing),
    ("UNPACR-SRC-FORMAT", Unpack(fmt=0, out=0), nothing),
    ("UNPACR-SRC-FORMAT", Unpack(u=1, fmt=8, out=8), nothing),
    *(
        (f"UNPACR-THCON_SEC{u}_{name}", Unpack(u=u), field(f"THCON_SEC{u}_{name}", 1))
        for u in (0, 1)
        for name in ZERO
    ),
    *(
        (
            f"UNPACR-UNP{u}_ADDR_BASE_REG_1_Base",
            Unpack(u=u),
            field(f"UNP{u}_ADDR_BASE_REG_1_Base", 1),
        )
        for u in (0, 1)
    ),
    ("UNPACR-COLUMN-SHIFT", DST, field("THCON_SEC0_REG2_Shift_amount_cntx0", 1)),
    ("UNPACR-HALOIZE-SRCB", Unpack(u=1, haloize=1), nothing),
    ("UNPACR-HALOIZE-DST", Unpack(fmt=0, out=0, to_dst=1, haloize=1), nothing),
    ("UNPACR-TILEIZE-FORMAT", Unpack(fmt=7, out=7, stride=64), nothing),
    ("UNPACR-ALIGN", Unpack(stride=64, counters=(4, 0, 0, 0)), nothing),
    ("UNPACR-ALIGN", Unpack(haloize=1, counters=(4, 0, 0, 0)), nothing),
    ("UNPACR-NO-EXPONENTS", Unpack(fmt=7, out=7), field("THCON_SEC0_REG0_TileDescriptor", 0x27)),
    ("UNPACR-BFP-EXPONENT", Unpack(fmt=2, out=2, forced=32), nothing),
    ("UNPACR-BFP-EXPONENT", Unpack(fmt=3, out=3, forced=0), nothing),
    ("UNPACR-L1", Unpack(base=0x17FFF), nothing),
    ("UNPACR-L1", Unpack(base=0xFFFFFFFE, count=64), nothing),
    ("UNPACR-L1", Unpack(base=0x17F7F + 1, count=1024), nothing),
    ("UNPACR-L1", Unpack(stride=0xFFF0, base=0x17000, count=512), nothing),
    ("UNPACR-L1", Unpack(fmt=6, out=6, x=0xFFFF, y=255, z=255), nothing),
    ("UNPACR-STRIDE", Unpack(strides=(1, 0)), nothing),
    ("UNPACR-STRIDE", Unpack(fmt=0, out=4, strides=(0, 2)), nothing),
    ("UNPACR-STRIDE", SRCB, field("UNP1_ADDR_CTRL_ZW_REG_1_Wstride", 1)),
    ("UNPACR-DEST-LOW", Unpack(fmt=0, out=0, to_dst=1, dest=48), nothing),
    ("UNPACR-X", Unpack(counters=(9, 0, 0, 0)), counter(1, 0, 8)),
    ("UNPACR-SRCB-ROWS", Unpack(u=1, count=1025), nothing),
    ("UNPACR-DST-ROWS", Unpack(fmt=8, out=8, to_dst=1, dest=64 + 1023 * 16, count=17), nothing),
    ("UNPACR-DST-SRCA-SET", DST, thread_field("SRCA_SET_SetOvrdWithAddr", 1)),
    ("UNPACR-SRCA-SET", Unpack(count=257), thread_field("SRCA_SET_SetOvrdWithAddr", 0)),
    ("UNPACR-SRCB-BASE", Unpack(u=1, set_dat_valid=1), thread_field("SRCB_SET_Base", 1)),
    ("UNPACR-BURST-MODE", Unpack(dest=72, count=32), nothing),
]


@pytest.mark.parametrize(("rule", "case", "change"), REFUSED)
def test_refused(rule: str, case: Unpack, change: Callable[[State], None]) -> None:
    """Every check is an error by name, before any effect."""
    s = fresh()
    case.program(s)
    change(s)
    scratch = ("detail", "unpack_tmp", "unpack_weight")
    before = [(m.name, a.copy()) for m, a in s.members() if m.name not in scratch]
    number = run(s, "UNPACR", **case.operands())
    assert sentences.RULES[number].rule == rule
    assert sentences.RULES[number].sentence(s.detail)
    for name, was in before:
        assert np.array_equal(getattr(s, name), was), name
