"""Format codes and shared conversions (FloatBitPatterns, Blackhole ISA)."""

import numpy as np
import pytest

from bhemu.tensix import formats
from bhemu.tensix.state import DTYPE, State, l1_halves, l1_words

BITS = {"fp32": 32, "tf32": 32, "int32": 32, "fp16": 16, "bf16": 16, "uint16": 16, "bfp8": 8}
BITS |= {"bfp8a": 8, "fp8": 8, "int8": 8, "bfp4": 4, "bfp2": 2, "bfp4a": 4, "bfp2a": 2}


def test_datum_bits_and_shared_exponents() -> None:
    """Element bits: code & 3 gives 32, 16, 8; of the rest bit 3 tells 2 bits from 4."""
    assert {name: int(formats.datum_bits(code)) for code, name in formats.NAMES.items()} == BITS
    shared = {name for code, name in formats.NAMES.items() if formats.is_bfp(code)}
    assert shared == {"bfp8", "bfp4", "bfp2", "bfp8a", "bfp4a", "bfp2a"}


def test_denormals_become_zero_of_their_sign() -> None:
    for v in (0, 1, 0x7FFFFF):
        assert formats.flush_32(v) == 0
        assert formats.flush_32(v | 1 << 31) == 1 << 31
    for v in (0x800000, 0x7F800001, 0xFFFFFFFF):
        assert formats.flush_32(v) == v


@pytest.mark.parametrize(
    ("fp32", "fp16"),
    [
        (0x3F800000, 0x3C00),  # 1.0
        (0xBF801FFF, 0xBC00),  # truncated
        (0x38000000, 0x0000),  # exponent 112: e5 = 0, mantissa kept
        (0x387FE000, 0x03FF),
        (0x37FFFFFF, 0x0000),  # below
        (0xB7FFFFFF, 0x8000),
        (0x47FFFFFF, 0x7FFF),  # e5 = 31 is an ordinary exponent
        (0x48000000, 0x7FFF),  # beyond
        (0xFF800000, 0xFFFF),
    ],
)
def test_fp32_to_fp16_truncates_and_saturates(fp32: int, fp16: int) -> None:
    assert formats.fp32_to_fp16(fp32) == fp16


def test_fp16_keeps_its_exponent_in_a_source_cell() -> None:
    """Bits 31 sign, 30-23 exponent (0-31, not rebiased), 22-13 mantissa."""
    for v in (0x0001, 0x3C00, 0x7FFF, 0x8000, 0xFBFF):
        cell = v >> 15 << 31 | (v >> 10 & 31) << 23 | (v & 0x3FF) << 13
        assert formats.fp16_cell(v) == cell


def test_l1_as_halves_and_words() -> None:
    """The typed views are L1 itself, little-endian."""

    from bhemu.jit.subset import JIT, njit

    s = State()
    s.l1[:] = np.arange(s.l1.size) % 251

    def ends(s, out):  # type: ignore[no-untyped-def]
        halves, words = l1_halves(s), l1_words(s)
        out[0], out[1] = halves[1], words[1]
        out[2], out[3] = halves[halves.size - 1], words[words.size - 1]
        words[2] = np.uint32(0x12345678)

    out = np.zeros(4, np.int64)
    if JIT:
        njit(ends)(s.buffer.view(DTYPE)[0], out)
    else:
        ends(s, out)
    l1 = s.l1.tobytes()
    want = [(2, 4), (4, 8), (len(l1) - 2, len(l1)), (len(l1) - 4, len(l1))]
    assert out.tolist() == [int.from_bytes(l1[a:b], "little") for a, b in want]
    assert l1[8:12] == bytes.fromhex("78563412")
