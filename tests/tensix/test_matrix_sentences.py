"""The numbers in the sentences of the matrix unit's arithmetic: fields, rows and formats.

Blocks of rows and formats: MVMUL, ELWADD, GMPOOL and GAPOOL, Wormhole ISA.
"""

import pytest
from matrix_reference import BF16, BFP2, FP8, FP16, INT8, INT32, UINT16, A, B, filled, rule
from unit_runner import numbers, run

from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.state import State

ELEMENT = ("ELWADD", "ELWSUB", "ELWMUL")
PRODUCT = ("MVMUL", "DOTPV")
POOL = ("GMPOOL", "GAPOOL")
DST_BLOCK = dict.fromkeys(ELEMENT + PRODUCT, 8) | dict.fromkeys(POOL, 4)


def refused(s: State, name: str, **fields: int) -> tuple[str, list[int]]:
    """Rule of a refused instruction, and the numbers of its sentence in order."""
    s.detail[:] = 77
    modes = {"instr_mod19": 1} if name in POOL else {}
    number = run(s, name, clear_dvalid=3, **{**modes, **fields})
    return rule(number), numbers(s, number)


@pytest.mark.parametrize(("name", "block"), DST_BLOCK.items())
def test_the_dst_field(name: str, block: int) -> None:
    for dst in (1, block // 2, 3 * block + 2, 1023):
        s = filled(0, BF16, False)
        assert refused(s, name, dst=dst) == ("FPU-DST-FIELD", [dst, block])


@pytest.mark.parametrize("name", DST_BLOCK)
def test_the_src_rows(name: str) -> None:
    block = 8 if name in ELEMENT else 16
    for row in (1, block // 2, block + 1, 64 - block // 2):
        s = filled(0, BF16, False)
        s.rwc[0] = (row, 0, 0, 0)
        assert refused(s, name) == ("FPU-SRC-ROW", [row, block])
    for row in (1, 4, 12, 57):
        s = filled(0, BF16, False)
        s.rwc[0] = (0, row, 0, 0)
        assert refused(s, name) == ("FPU-SRC-ROW", [row, 8])


@pytest.mark.parametrize("name", [*ELEMENT, "GMPOOL"])
def test_the_dst_row(name: str) -> None:
    """The sum of field and counter, which does not wrap at 1024."""
    block = DST_BLOCK[name]
    for counter, dst in ((1, 0), (block // 2, 2 * block), (block, 1024 - block)):
        s = filled(0, BF16, False)
        s.rwc[0] = (0, 0, counter, 0)
        assert refused(s, name, dst=dst) == ("FPU-DST-ROW", [counter + dst, block])


@pytest.mark.parametrize("name", ELEMENT + PRODUCT)
@pytest.mark.parametrize(
    ("pair", "want"),
    [
        ((UINT16, BF16), "FPU-FORMATS"),
        ((BF16, FP16), "FPU-FORMATS"),
        ((INT32, BFP2), "FPU-FORMATS"),
        ((FP16, FP8), "FPU-FIVE-BIT"),
        ((FP8, BF16), "FPU-FIVE-BIT"),
    ],
)
def test_the_formats(name: str, pair: tuple[int, int], want: str) -> None:
    s = filled(0, BF16, False)
    s.src_fmt[A], s.src_fmt[B] = pair
    assert refused(s, name) == (want, list(pair))


@pytest.mark.parametrize("name", ELEMENT)
def test_the_formats_of_integers(name: str) -> None:
    for pair in ((INT8, BF16), (BF16, INT8)):
        s = filled(0, INT8, False)
        s.src_fmt[A], s.src_fmt[B] = pair
        assert refused(s, name) == ("FPU-INT8-FORMATS", list(pair))


@pytest.mark.parametrize("fmt", [BF16, FP16])
@pytest.mark.parametrize("name", [*ELEMENT, *PRODUCT, "GAPOOL", "CONV3S1", "APOOL3S1"])
def test_stochastic_rounding_of_sums(name: str, fmt: int) -> None:
    """What the matrix unit would round; ttsim refuses to write the bit."""
    s = filled(0, fmt, False)
    s.cfg[0, cf.ALU_ROUNDING_MODE_Fpu_srnd_en.word] = 1
    before = s.dst.copy()
    assert refused(s, name) == ("FPU-STOCHASTIC", [])
    assert (s.dst == before).all()


@pytest.mark.parametrize("name", [*ELEMENT, *PRODUCT])
def test_integers_do_not_round(name: str) -> None:
    results = []
    for stochastic in (0, 1):
        s = filled(1, INT8, True)
        s.cfg[0, cf.ALU_ACC_CTRL_INT8_math_enabled.word] = (
            1 << cf.ALU_ACC_CTRL_INT8_math_enabled.shift
        )
        s.cfg[0, cf.ALU_ROUNDING_MODE_Fpu_srnd_en.word] |= stochastic
        assert run(s, name) == rules.DONE
        results.append(s.dst.copy())
    assert (results[0] == results[1]).all()


def test_gmpool_does_not_round() -> None:
    s = filled(0, BF16, False)
    s.src[B] = 0x3F800000
    s.cfg[0, cf.ALU_ROUNDING_MODE_Fpu_srnd_en.word] = 1
    assert run(s, "GMPOOL", instr_mod19=1) == rules.DONE


@pytest.mark.parametrize("name", POOL)
@pytest.mark.parametrize(("mode", "index"), [(0, 0), (0, 1), (1, 1)])
def test_modes_of_pools(name: str, mode: int, index: int) -> None:
    s = filled(0, BF16, False)
    fields = {"instr_mod19": mode, "max_pool_index_en": index, "pool_addr_mode": 6, "dst": 20}
    assert refused(s, name, **fields) == ("POOL-MODE", [mode, index])
