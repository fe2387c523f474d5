"""Scheduled instructions in modes that read or write more than the fields of their words say.

Source: SFPLOADMACRO, SFPIADD, SFPEXEXP, SFPLZ, SFPSHFT2, SFPMAD, Blackhole ISA.
"""

import pytest
from macro_runner import Thread
from test_vector_macro import NOP, byte, macro, prepared, same, sequence

from bhemu.tensix.insn import assemble

LANES = range(32)
M32 = 0xFFFFFFFF


@pytest.mark.parametrize("bonus", [False, True])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("SFPIADD", {"instr_mod1": 1, "imm12_math": 0x800}),
        ("SFPIADD", {"instr_mod1": 9, "imm12_math": 1}),
        ("SFPEXEXP", {"instr_mod1": 2}),
        ("SFPLZ", {"instr_mod1": 10}),
    ],
)
def test_a_result_in_lreg_16_leaves_the_flags_alone(
    name: str, fields: dict[str, int], bonus: bool
) -> None:
    """The pages set LaneFlags only if VD < 8."""
    s = prepared([assemble(name, lreg_dest=12, **fields)], [sequence(byte(4, 0, bonus=bonus))])
    s.cc[:] = 1
    same(s, [macro(0, 2, 8), NOP, NOP])
    assert bool(s.cc.all()) == bonus


@pytest.mark.parametrize("bonus", [False, True])
@pytest.mark.parametrize("vb", [False, True])
@pytest.mark.parametrize(("imm", "amount"), [(0xFE3, -29), (0x013, 19), (0x003, 3), (0xFF3, -13)])
def test_a_shift_by_an_immediate_takes_the_loaded_register(
    imm: int, amount: int, vb: bool, bonus: bool
) -> None:
    """With VB overridden `VB = Imm12 & 15` is skipped; the amount stays the immediate."""
    word = assemble("SFPSHFT2", instr_mod1=6, lreg_dest=12, imm12_math=imm)
    s = prepared([word], [sequence(rounding=byte(4, 0, vb=vb, bonus=bonus))])
    other = s.lreg[3].tolist()
    assert Thread(s).push([macro(0, 5, 8)]) == 0
    source = s.lreg[5].tolist() if vb else other
    assert Thread(s).push([NOP, NOP]) == 0
    want = [x << amount & M32 if amount >= 0 else x >> -amount for x in source]
    assert (s.lreg16[0] if bonus else s.lreg[5]).tolist() == want


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_scheduled_copies_move_the_lower_registers(mode: int) -> None:
    """SFPSHFT2 modes 0 to 2 write LReg[0] to LReg[3], not VD; mode 2 a cycle later."""
    s = prepared(
        [assemble("SFPSHFT2", instr_mod1=mode, lreg_dest=12)], [sequence(rounding=byte(4))]
    )
    old = s.lreg.tolist()
    assert Thread(s).push([macro(0, 6, 8), NOP, NOP, NOP]) == 0
    loaded = s.lreg[6].tolist()
    last = {
        0: [0] * 32,
        1: [*old[0][8:], *[0] * 8],
        2: [loaded[i - 1 if i & 7 else i + 7] for i in LANES],
    }[mode]
    assert s.lreg[:4].tolist() == [old[1], old[2], old[3], last]
    assert s.lreg[[4, 5, 7]].tolist() == [old[4], old[5], old[7]]


@pytest.mark.parametrize("name", ["SFPMUL", "SFPADDI", "SFPMULI", "SFPLUT", "SFPMUL24"])
def test_the_destination_of_a_scheduled_mad_may_be_named_by_lreg_7(name: str) -> None:
    """INDIRECT_VD counts unless VD is 16: the low bits of LReg[7], lane by lane."""
    mode = {"instr_mod0": 12} if name == "SFPLUT" else {"instr_mod1": 8}
    more = {"lreg_src_c": 9, "lreg_src_a": 4, "lreg_src_b": 2} if "MUL" in name else {}
    more = {} if name == "SFPMULI" else more
    more |= {"imm16_math": 0x3FC0} if name.endswith("I") else {}
    dest = "lreg_ind" if name == "SFPLUT" else "lreg_dest"
    word = assemble(name, **mode, **more, **{dest: 4})
    for bonus in (False, True):
        s = prepared([word], [sequence(mad=byte(4, 0, vb=name != "SFPLUT", bonus=bonus))])
        s.lreg[7] = [i & 7 | 0x40 for i in LANES]
        before = s.lreg.copy()
        assert Thread(s).push([macro(0, 2, 8)]) == 0
        before[2] = s.lreg[2]
        assert Thread(s).push([NOP, NOP, NOP]) == 0
        changed = {(r, i) for r in range(8) for i in LANES if s.lreg[r, i] != before[r, i]}
        assert changed <= (set() if bonus else {(i & 7, i) for i in LANES})
        assert bool(changed) != bonus and bool(s.lreg16[0].any()) == bonus
