"""RWC counters and ADDR_MOD sections (RWCs, Wormhole ISA; counters in ttsim)."""

import random
from typing import Any

import pytest
from unit_runner import numbers

from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.state import DTYPE, State
from bhemu.tensix.units import counters

AB, DST, BIAS = 12, 28, 47  # ThreadConfig indices of section 0 (SETC16 addresses)
A_INCR, A_CR, A_CLEAR, B_INCR, B_CR, B_CLEAR = 1, 1 << 6, 1 << 7, 1 << 8, 1 << 14, 1 << 15
D_INCR, D_CR, D_CLEAR, D_TO_CR, F_INCR, F_CLEAR = 1, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 15


def view(s: State) -> Any:
    return s.buffer.view(DTYPE)[0] if JIT else s


def section(s: State, t: int, k: int, ab: int, dst: int, bias: int = 0) -> None:
    s.thread_cfg[t, AB + k], s.thread_cfg[t, DST + k], s.thread_cfg[t, BIAS + k] = ab, dst, bias


def counts(s: State, t: int) -> tuple[list[int], list[int]]:
    return s.rwc[t].tolist(), s.rwc_cr[t].tolist()


def test_rows_are_field_plus_counter_plus_offset() -> None:
    s = State()
    s.rwc[1] = (60, 5, 1000, 0)
    s.thread_cfg[1, 1] = 0x208  # DEST_TARGET_REG_CFG_MATH_Offset, 12 bits
    assert counters.dst_row(view(s), 1, 20) == (20 + 1000 + 0x208) % 1024
    assert counters.src_row(view(s), 1, counters.SRCA, 8) == 4
    assert counters.src_row(view(s), 1, counters.SRCB, 8) == 13
    assert counters.dst_row(view(s), 0, 20) == 20


def test_fidelity_phase_adds_the_base() -> None:
    s = State()
    s.rwc[2, 3] = 3
    s.thread_cfg[2, 11] = 2
    assert counters.fidelity_phase(view(s), 2) == 1


@pytest.mark.parametrize(
    ("ab", "dst", "want", "want_cr"),
    [
        (0, 0, [10, 20, 30, 1], [4, 6, 8, 0]),
        (3 | B_INCR * 5, 7 | F_INCR, [13, 25, 37, 2], [4, 6, 8, 0]),
        (A_CR | 3 | B_CR | B_INCR * 5, D_CR | 7, [7, 11, 15, 1], [7, 11, 15, 0]),
        (A_CLEAR | 3 | A_CR | B_CLEAR, D_CLEAR | 9 | D_CR | F_CLEAR | F_INCR, [0] * 4, [0] * 4),
        (0, D_TO_CR | 9, [10, 20, 39, 1], [4, 6, 39, 0]),
        (63 | B_INCR * 63, 1023 | F_INCR * 3, [9, 19, 29, 0], [4, 6, 8, 0]),
    ],
)
def test_one_section(ab: int, dst: int, want: list[int], want_cr: list[int]) -> None:
    s = State()
    s.rwc[1], s.rwc_cr[1] = (10, 20, 30, 1), (4, 6, 8, 0)
    section(s, 1, 5, ab, dst)
    section(s, 0, 5, 0xFFFF, 0xFFFF)  # another thread's section
    assert counters.addr_mod_refused(view(s), 1, 5) == 0
    counters.apply_addr_mod(view(s), 1, 5)
    assert counts(s, 1) == (want, want_cr)
    assert not s.rwc[0].any()


def test_vector_unit_leaves_fidelity_alone() -> None:
    """SFPLOAD and SFPSTORE update the rows only (RWCs, ApplyPartialAddrMod)."""
    s = State()
    section(s, 0, 7, 1, 2 | F_INCR)
    counters.apply_addr_mod_sfpu(view(s), 0, 7)
    assert counts(s, 0) == ([1, 0, 2, 0], [0, 0, 0, 0])


def reference(rows: list[int], cr: list[int], ab: int, dst: int) -> tuple[list[int], list[int]]:
    """The rule as the chapter words it, one counter after the other."""
    rows, cr = list(rows), list(cr)
    for i, (word, wrap, width) in enumerate(((ab, 64, 6), (ab >> 8, 64, 6), (dst, 1024, 10))):
        incr, from_cr, clear = word % (1 << width), word >> width & 1, word >> width + 1 & 1
        if clear:
            rows[i] = cr[i] = 0
        elif from_cr:
            cr[i] = rows[i] = (cr[i] + incr) % wrap
        else:
            rows[i] = (rows[i] + incr) % wrap
    if dst >> 12 & 1:
        cr[2] = rows[2]
    rows[3] = 0 if dst >> 15 else (rows[3] + (dst >> 13 & 3)) % 4
    return rows, cr


def test_random_sections_in_sequence() -> None:
    rng = random.Random(7)
    s = State()
    want = counts(s, 2)
    for _ in range(400):
        k = rng.randrange(8)
        ab, dst = rng.getrandbits(16), rng.getrandbits(16)
        if dst >> 12 & 1:
            dst &= ~(D_CR | D_CLEAR)
        section(s, 2, k, ab, dst)
        counters.apply_addr_mod(view(s), 2, k)
        want = reference(*want, ab, dst)
        assert counts(s, 2) == want


@pytest.mark.parametrize(
    ("dst", "bias", "rule"),
    [
        (0, 1, "ADDR-MOD-BIAS"),
        (0, 16, "ADDR-MOD-BIAS"),
        (D_TO_CR | D_CR, 0, "ADDR-MOD-CTOCR"),
        (D_TO_CR | D_CLEAR, 0, "ADDR-MOD-CTOCR"),
    ],
)
def test_sections_that_ttsim_refuses(dst: int, bias: int, rule: str) -> None:
    s = State()
    section(s, 0, 3, 0, dst, bias)
    number = int(counters.addr_mod_refused(view(s), 0, 3))
    assert sentences.RULES[number].rule == rule
    assert sentences.RULES[number].category == rules.UNSUPPORTED
    assert numbers(s, rule) == [3, bias or dst]
    assert counters.addr_mod_refused(view(s), 0, 4) == 0
