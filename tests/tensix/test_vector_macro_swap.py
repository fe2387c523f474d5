"""A scheduled SFPSWAP: its operands, what it writes, and a load of what it writes.

Sources: SFPLOADMACRO, SFPSWAP, Blackhole ISA; kernels of tt-llk (docs/models.md).
"""

import numpy as np
import pytest
from macro_kernel import (
    BF16,
    FP32,
    LLK,
    NOP,
    UINT16,
    Kernel,
    Rows,
    data,
    executed,
    load,
    result,
    store,
)
from macro_kernel import macro as macro_word
from macro_kernel import prepared as kernel_state
from macro_kernel import sequence as bytes_of
from macro_runner import Thread
from matrix_reference import rule
from test_vector_macro import byte, macro, prepared, refused, same, sequence

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State

LOADED, OTHER, THRESHOLD = 3, 5, 14  # LRegs
SWAP, MINIMUM, MAXIMUM = 0, 1, 9  # modes: what VD gets
MIN_LIMIT = 0xC2B10000  # -88.5


def swap(c: int, d: int, mod: int) -> int:
    return assemble("SFPSWAP", lreg_src_c=c, lreg_dest=d, instr_mod1=mod)


def key(x: Rows) -> list[int]:
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


@pytest.mark.parametrize("constant", [8, THRESHOLD])
@pytest.mark.parametrize("mod", [MINIMUM, MAXIMUM])
def test_without_bit_7_the_loaded_register_is_vc(mod: int, constant: int) -> None:
    """The template's VD, a constant, is the other operand: it is not compared with itself."""
    (loaded, _, after, _), s = swapped(swap(0, constant, mod), vb=False)
    limit = key(s.lreg[constant])
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


def meeting(second: int, *, llk: bool, mask: str = "all") -> tuple[State, int]:
    """SFPSWAP of LReg[LOADED] and LReg[OTHER]; `second` meets its second cycle."""
    s = prepared([swap(OTHER, 12, SWAP)], [sequence(byte(4, vb=True))], mask=mask)
    s.reference[0] = llk
    return s, Thread(s).push([macro(0, LOADED, 8), NOP, second, NOP])


@pytest.mark.parametrize("reg", [LOADED, OTHER])
def test_a_load_wins_over_an_sfpswap_where_tt_llk_decides(reg: int) -> None:
    for second in (load_word(reg), macro(1, reg, 16)):
        s, number = meeting(second, llk=True)
        assert number == 0
        expected, _ = meeting(NOP, llk=True)
        assert Thread(expected).push([load_word(reg)]) == 0
        assert s.lreg.tolist() == expected.lreg.tolist()
        names = {sentences.RULES[n].rule: times for n, times in rules.counted(s).items()}
        assert names == {"VECTOR-MACRO-LOAD-WINS": 1}


def test_by_default_a_load_of_what_an_sfpswap_writes_is_refused() -> None:
    for second in (load_word(LOADED), macro(1, LOADED, 16)):
        s, number = meeting(second, llk=False)
        assert rule(number) == "VECTOR-MACRO-SWAP-LOAD"
        assert int(s.detail[0]) == LOADED
        assert 'reference = "llk"' in sentences.RULES[number].hint
    s, number = meeting(load_word(1), llk=False)
    assert number == 0 and not rules.counted(s)


def test_only_the_load_sub_unit_s_loads_win() -> None:
    """SFPLOADI, and a load that meets another instruction of one cycle or two, stay refused."""
    immediate = assemble("SFPLOADI", imm16=1, instr_mod0=2, lreg_ind=LOADED)
    assert rule(meeting(immediate, llk=True)[1]) == "VECTOR-MACRO-PORT"
    mad = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=13)
    rotate = assemble("SFPSHFT2", lreg_src_c=1, lreg_dest=14, instr_mod1=3)
    invert = assemble("SFPNOT", lreg_c=1, lreg_dest=12)
    cases = [(sequence(byte(4)), []), (sequence(mad=byte(5)), [NOP])]
    for seq, between in [*cases, (sequence(rounding=byte(6)), [NOP])]:
        s = prepared([invert, mad, rotate], [seq])
        s.reference[0] = LLK
        words = [macro(0, LOADED, 8), *between, load_word(LOADED)]
        assert refused(s, words) == "VECTOR-MACRO-PORT"


def test_only_what_the_sfpswap_writes_gives_way() -> None:
    """Not what a round instruction writes that began with it: SFPSHFT2 mode 2, LReg[0] to [3]."""
    rotate = assemble("SFPSHFT2", lreg_src_c=1, lreg_dest=13, instr_mod1=2)
    seq = sequence(byte(4, vb=True), rounding=byte(5, bonus=True))
    s = prepared([swap(OTHER, 12, SWAP), rotate], [seq])
    s.reference[0] = LLK
    words = [macro(0, 6, 8), NOP, load_word(1)]
    assert refused(s, words) == "VECTOR-MACRO-PORT"


def test_a_load_of_a_constant_meets_nothing() -> None:
    """It writes no LReg; what staging held before does not count."""
    s = prepared([swap(OTHER, 12, SWAP)], [sequence(byte(4, vb=True))])
    s.stage_reg[:], s.stage_mask[:] = LOADED, 1
    assert Thread(s).push([macro(0, LOADED, 8), NOP, load_word(8), NOP]) == 0
    expected, _ = meeting(NOP, llk=False)
    assert s.lreg.tolist() == expected.lreg.tolist()


def test_lanes_that_are_not_loaded_keep_what_the_sfpswap_wrote() -> None:
    """Fewer lanes are enabled when the load takes place than when SFPSWAP began."""
    s = prepared([swap(OTHER, 12, SWAP)], [sequence(byte(4, vb=True))])
    s.reference[0] = LLK
    other = s.lreg[OTHER].tolist()
    assert Thread(s).push([macro(0, LOADED, 8)]) == 0
    first = s.lreg[LOADED].tolist()
    assert Thread(s).push([NOP]) == 0
    s.cc[16:] = 0
    assert Thread(s).push([load_word(LOADED)]) == 0
    alone = prepared([], [])
    assert Thread(alone).push([load_word(LOADED)]) == 0
    assert s.lreg[LOADED].tolist() == alone.lreg[LOADED].tolist()[:16] + other[16:]
    assert s.lreg[OTHER].tolist() == first


@pytest.mark.parametrize("llk", [False, True])
def test_a_load_of_other_lanes_meets_nothing(llk: bool) -> None:
    s = prepared([swap(OTHER, 12, SWAP)], [sequence(byte(4, vb=True))])
    s.reference[0] = llk
    other = s.lreg[OTHER].tolist()
    assert Thread(s).push([macro(0, LOADED, 8)]) == 0
    s.cc[:] = [1] * 16 + [0] * 16
    assert Thread(s).push([NOP]) == 0
    s.cc[:] = [0] * 16 + [1] * 16
    assert Thread(s).push([load_word(LOADED)]) == 0
    alone = prepared([], [])
    assert Thread(alone).push([load_word(LOADED)]) == 0
    assert s.lreg[LOADED].tolist() == other[:16] + alone.lreg[LOADED].tolist()[16:]
    assert not rules.counted(s)


# Maximum or minimum of each column of tiles on top of each other


def _step(mode: int, at_end: bool) -> list[int]:
    compare = [load(0, mode, 16), load(1, mode, 18), swap(7, 1, 1), NOP, swap(6, 0, 1), NOP]
    words = [assemble("INCRWC", rwc_d=4), macro_word(1, 1, mode, 2), *compare]
    return [*words, macro_word(0, 0, mode), *([load(8, mode, step=True)] if at_end else [])]


def column_words(mode: int, tiles: int) -> list[int]:
    """Best of rows 0 to 3 in LReg[4] to [7], then the four of each column."""
    words = [load(4 + i, mode, at) for i, at in enumerate((0, 2, 16, 18))]
    for face in range(2 * tiles):
        rows = 3 if face == 0 else 4
        words += _step(mode, False) * (rows - 1) + _step(mode, True)
    transpose = assemble("SFPTRANSP")
    words += [assemble("SETRWC", bit_mask=4), transpose, swap(6, 7, 1), swap(5, 6, 1)]
    words += [swap(4, 5, 1), transpose]
    return words + [store(4 + i, mode, at, step=False) for i, at in enumerate((0, 2, 16, 18))]


def columns(mode: int, tiles: int, minimum: bool) -> tuple[State, Rows]:
    kind = "uint16" if mode == UINT16 else "float"
    templates, sequences = [swap(4, 12, 1), swap(5, 13, 1)], [bytes_of(0x84), bytes_of(0x85)]
    kernel = Kernel(templates, sequences, 0, [], [], (kind,) * tiles, mode, (mode, 0), mode == FP32)
    operands = data(kernel, 4)
    s = kernel_state(kernel, operands)
    s.thread_cfg[1, 28 + 6] = 16
    s.lane_config[:] = 0x100 if minimum else 0  # EXCHANGE_SRCB_SRCC
    return s, np.array(operands)


@pytest.mark.parametrize("minimum", [False, True])
@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize("mode", [FP32, BF16, UINT16])
def test_the_best_of_each_column(mode: int, tiles: int, minimum: bool) -> None:
    """Each compared value is loaded in the cycle in which the last SFPSWAP writes its LReg."""
    s, operands = columns(mode, tiles, minimum)
    s.reference[0] = LLK
    executed(s, column_words(mode, tiles))
    got = result(s, mode, 0, 2)
    # tile, half, face, four rows, columns even or odd, row, column
    seen = np.array([key(x) for x in operands.reshape(-1, 256)])
    cells = seen.reshape(tiles, 2, 2, 4, 2, 4, 8)
    want = (cells.min if minimum else cells.max)(axis=(0, 1, 3, 5))
    first = np.array([key(x) for x in got[:, :2, :8].reshape(-1, 8)]).reshape(2, 2, 8)
    assert first.tolist() == want.tolist()
    assert len(rules.counted(s)) == 1


def test_the_best_of_each_column_is_refused_by_default() -> None:
    s, _ = columns(FP32, 1, minimum=False)
    assert rule(Thread(s).push(column_words(FP32, 1))) == "VECTOR-MACRO-SWAP-LOAD"
