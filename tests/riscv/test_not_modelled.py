"""F, Zfh and V: declared and disassembled as GNU objdump 2.40 does, refused by their own rules.

Blackhole ISA, "Baby RISCVs": the cores have parts of F and Zfh, TRISC2 has parts of V besides;
other instructions are undefined behaviour.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.errors import BhemuError, GuestFault, NotModelled, Undefined
from bhemu.machine.tile import Tile
from bhemu.riscv import formats
from bhemu.riscv.assembly import A0, PARK, ZERO, addi, code, disassemble
from bhemu.riscv.isa import decode
from bhemu.riscv.turn import illegal

START = 0x10000
FADD_S, FLH, VADD, VSETVLI, VLE32 = 0x00C5F553, 0x00459507, 0x022180D7, 0x0D05F557, 0x02056407

# Assembled by GNU as 2.40 for rv32imafv_zfh and read back by its objdump.
TEXTS = [
    (0x0085A507, "flw fa0,8(a1)"),
    (0xFEA5AE27, "fsw fa0,-4(a1)"),
    (FADD_S, "fadd.s fa0,fa1,fa2"),
    (0x00C59553, "fadd.s fa0,fa1,fa2,rtz"),
    (0x68C5F543, "fmadd.s fa0,fa1,fa2,fa3"),
    (0x20B58553, "fmv.s fa0,fa1"),
    (0x20B59553, "fneg.s fa0,fa1"),
    (0x20C5A553, "fsgnjx.s fa0,fa1,fa2"),
    (0xA0C5A553, "feq.s a0,fa1,fa2"),
    (0xC0159553, "fcvt.wu.s a0,fa1,rtz"),
    (0xD005F553, "fcvt.s.w fa0,a1"),
    (0xF0050553, "fmv.w.x fa0,a0"),
    (0xE0059553, "fclass.s a0,fa1"),
    (FLH, "flh fa0,4(a1)"),
    (0x04C5F553, "fadd.h fa0,fa1,fa2"),
    (0x40258553, "fcvt.s.h fa0,fa1"),
    (0x4405F553, "fcvt.h.s fa0,fa1"),
    (VSETVLI, "vsetvli a0,a1,e32,m1,ta,ma"),
    (0xC0847557, "vsetivli a0,8,e16,m1,tu,mu"),
    (0x80C5F557, "vsetvl a0,a1,a2"),
    (VLE32, "vle32.v v8,(a0)"),
    (0x00056407, "vle32.v v8,(a0),v0.t"),
    (0x0AC55427, "vsse16.v v8,(a0),a2"),
    (0x26256407, "vluxseg2ei32.v v8,(a0),v2"),
    (0x02B50407, "vlm.v v8,(a0)"),
    (0x02856407, "vl1re32.v v8,(a0)"),
    (VADD, "vadd.vv v1,v2,v3"),
    (0x0025B0D7, "vadd.vi v1,v2,11,v0.t"),
    (0x0220C0D7, "vadd.vx v1,v2,ra"),
    (0x0E2040D7, "vneg.v v1,v2"),
    (0x5C2180D7, "vmerge.vvm v1,v2,v3,v0"),
    (0x5E0180D7, "vmv.v.v v1,v3"),
    (0x422020D7, "vmv.x.s ra,v2"),
    (0xB62120D7, "vmacc.vv v1,v2,v2"),
    (0x662120D7, "vmmv.m v1,v2"),
    (0x6E1090D7, "vmflt.vv v1,v1,v1"),
    (0x4A2490D7, "vfwcvt.x.f.v v1,v2"),
    (0xA21150D7, "vfmadd.vf v1,ft2,v1"),
    (0x9E10B0D7, "vmv2r.v v1,v1"),
]
NONE = {  # D, Q, and what V reserves
    "fadd.d": 0x02C5F553,
    "fld": 0x0085B507,
    "vadd.vv with funct6 of none": 0x042180D7,
    "vsetvl with funct7 of none": 0x84C5F557,
    "vector load with mew": 0x12056407,
}


@pytest.mark.parametrize(("word", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_text(word: int, text: str) -> None:
    assert disassemble(word) == text
    cls = decode(word)
    assert cls is not None and issubclass(cls, formats.NotModelled) and cls.execute is None


@pytest.mark.parametrize("word", NONE.values(), ids=NONE.keys())
def test_no_instruction_of_any_core(word: int) -> None:
    assert disassemble(word) == f".word {word:#010x}"
    with pytest.raises(GuestFault, match="RV-ILLEGAL"):
        run("trisc2", word)


@given(word=st.integers(0, 2**30 - 1).map(lambda n: n << 2 | 3))
def test_what_has_no_text_is_no_instruction(word: int) -> None:
    assert (decode(word) is None) == disassemble(word).startswith(".word")


def run(core: str, word: int, engine: str = "unicorn") -> Tile:
    tile = Tile(engine=engine)
    start = 0 if core == "brisc" else START
    tile.write(start, code(addi(A0, ZERO, 5), word, PARK))
    tile.core[core].set_reset_pc(start)
    tile.core[core].release()
    tile.run(limit=1000)
    return tile


@pytest.mark.parametrize("engine", ["unicorn", "compiled"])
@pytest.mark.parametrize(
    ("core", "word", "kind", "rule"),
    [
        ("trisc0", FADD_S, NotModelled, "RV-EXTENSION"),
        ("brisc", FLH, NotModelled, "RV-EXTENSION"),
        ("trisc2", VADD, NotModelled, "RV-EXTENSION"),
        ("trisc2", VSETVLI, NotModelled, "RV-EXTENSION"),
        ("trisc2", VLE32, NotModelled, "RV-EXTENSION"),
        ("trisc1", VADD, Undefined, "RV-VECTOR"),
        ("ncrisc", VLE32, Undefined, "RV-VECTOR"),
    ],
)
def test_the_rule_names_the_word(
    engine: str, core: str, word: int, kind: type[BhemuError], rule: str
) -> None:
    with pytest.raises(kind) as caught:
        run(core, word, engine)
    error: Any = caught.value
    assert error.rule == rule
    assert error.where.decoded == disassemble(word) and f"{word:#010x}" in error.message
    assert error.where.pc == (4 if core == "brisc" else START + 4)


def test_only_v_depends_on_the_core() -> None:
    assert [illegal(c, FADD_S) for c in range(5)] == [illegal(3, VADD)] * 5
    assert len({illegal(c, VADD) for c in (0, 1, 2, 4)} - {illegal(3, VADD)}) == 1
