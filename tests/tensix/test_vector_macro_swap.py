"""A scheduled SFPSWAP: its operands, and what it writes.

Sources: SFPLOADMACRO, SFPSWAP, Blackhole ISA; kernels of tt-llk (docs/models.md).
"""

from typing import Any

import pytest
from macro_runner import Thread
from test_vector_macro import NOP, byte, macro, prepared, refused, same, sequence

from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State

LOADED, OTHER, THRESHOLD = 3, 5, 14  # LRegs
SWAP, MINIMUM, MAXIMUM = 0, 1, 9  # modes: what VD gets
MIN_LIMIT = 0xC2B10000  # -88.5


def swap(c: int, d: int, mod: int) -> int:
    return assemble("SFPSWAP", lreg_src_c=c, lreg_dest=d, instr_mod1=mod)


def key(x: Any) -> list[int]:
    """Sign and magnitude as integers of one order, -0 below +0."""
    return [-(v & 0x7FFFFFFF) - 1 if v >> 31 else v for v in x.tolist()]


def load_word(reg: int, address: int = 16) -> int:
    return assemble("SFPLOAD", instr_mod0=4, lreg_ind=reg, dest_reg_addr=address)


def swapped(template: int, *, vb: bool) -> tuple[list[list[int]], State]:
    """The loaded value, LReg[OTHER] before; LReg[LOADED] and LReg[OTHER] after, as ordered ints."""
    s = prepared([template], [sequence(byte(4, vb=vb))])
    s.lreg[THRESHOLD] = MIN_LIMIT
    other, alone = key(s.lreg[OTHER]), prepared([], [])
    same(s, [macro(0, LOADED, 8), NOP, NOP])
    assert Thread(alone).push([load_word(LOADED, 8)]) == 0
    return [key(alone.lreg[LOADED]), other, key(s.lreg[LOADED]), key(s.lreg[OTHER])], s


@pytest.mark.parametrize("mod", [MINIMUM, MAXIMUM])
def test_bit_7_makes_the_loaded_register_vd(mod: int) -> None:
    """VC is the template's: the loaded LReg gets what VD gets, LReg[VC] the other."""
    (loaded, other, vd, vc), _ = swapped(swap(OTHER, 12, mod), vb=True)
    low, high = list(map(min, loaded, other)), list(map(max, loaded, other))
    assert [vd, vc] == ([low, high] if mod == MINIMUM else [high, low])
    assert low != loaded != high


@pytest.mark.parametrize("mod", [MINIMUM, MAXIMUM])
def test_without_bit_7_the_loaded_register_is_vc(mod: int) -> None:
    """The template's VD, a constant, is the other operand: it is not compared with itself."""
    (loaded, _, after, _), s = swapped(swap(0, THRESHOLD, mod), vb=False)
    limit = key(s.lreg[THRESHOLD])
    assert s.lreg[THRESHOLD].tolist() == [MIN_LIMIT] * 32
    assert after == list(map(max if mod == MINIMUM else min, loaded, limit))
    assert after != loaded


@pytest.mark.parametrize("vb", [False, True])
def test_an_unconditional_swap_with_a_constant_loads_it(vb: bool) -> None:
    template = swap(THRESHOLD, 12, SWAP) if vb else swap(0, THRESHOLD, SWAP)
    _, s = swapped(template, vb=vb)
    assert s.lreg[LOADED].tolist() == [MIN_LIMIT] * 32


def test_an_open_second_operand_is_refused() -> None:
    """Whether LReg[VD of the template] is written too: no text, no kernel."""
    s = prepared([swap(0, OTHER, MINIMUM)], [sequence(byte(4))])
    assert refused(s, [macro(0, LOADED, 8), NOP]) == "VECTOR-MACRO-SWAP-OTHER"
    assert int(s.detail[0]) == OTHER
    s = prepared([swap(0, LOADED, MINIMUM)], [sequence(byte(4))])
    assert Thread(s).push([macro(0, LOADED, 8), NOP, NOP]) == 0
    s = prepared([swap(0, THRESHOLD, MINIMUM)], [sequence(byte(4))])
    s.lane_config[:] = 4  # ENABLE_DEST_INDEX
    assert refused(s, [macro(0, LOADED, 8), NOP]) == "VECTOR-MACRO-SWAP-OTHER"
    s = prepared([swap(2, 12, MINIMUM)], [sequence(byte(4, vb=True))])
    s.lane_config[:] = 4
    assert Thread(s).push([macro(0, LOADED, 8), NOP, NOP]) == 0
