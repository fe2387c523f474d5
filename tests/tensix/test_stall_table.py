"""STALLWAIT: 13 conditions by 9 block bits by all instructions (STALLWAIT, Blackhole ISA)."""

import pytest
from unit_runner import run, view

from bhemu.tensix import rules, thread, units
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import State

assert units.MODULES

# The table of the page; instructions without text stand with the unit that executes them.
SCALAR = """ADDDMAREG ATCAS ATINCGET ATINCGETPTR ATSWAP BITWOPDMAREG CMPDMAREG DMANOP FLUSHDMA
LOADIND LOADREG MULDMAREG REG2FLOP SETDMAREG SHIFTDMAREG STOREIND STOREREG SUBDMAREG"""
COUNTERS = """ADDRCRXY ADDRCRZW INCADCXY INCADCZW RSTDMA SETADC SETADCXX SETADCXY SETADCZW
SETDVALID"""
MATRIX = """APOOL3S1 APOOL3S2 CLEARDVALID CLREXPHIST CONV3S1 CONV3S2 DOTPV ELWADD ELWMUL ELWSUB
GAPOOL GATESRCRST GMPOOL INCRWC MFCONV3S1 MOVA2D MOVB2A MOVB2D MOVD2A MOVD2B MOVDBGA2D MOVDBGB2D
MPOOL3S1 MPOOL3S2 MVMUL RAREB SETASHRMH SETASHRMH0 SETASHRMH1 SETASHRMV SETIBRWC SETPKEDGOF SETRWC
SHIFTXA SHIFTXB TBUFCMD TRNSPSRCA TRNSPSRCB ZEROACC ZEROSRC"""
CONFIG = "CFGSHIFTMASK RDCFG RMWCIB0 RMWCIB1 RMWCIB2 RMWCIB3 SETC16 STREAMWRCFG WRCFG"
WAITS = "STALLWAIT SEMWAIT STREAMWAIT"
NEVER = "MOP MOP_CFG REPLAY RESOURCEDECL"

TABLE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(SCALAR.split(), (0, 5)),
    **dict.fromkeys(COUNTERS.split(), (0,)),
    **dict.fromkeys("PACR PACR_SETREG".split(), (0, 2)),
    **dict.fromkeys("UNPACR UNPACR_NOP".split(), (0, 3)),
    "XMOV": (0, 4),
    **dict.fromkeys("ATGETM ATRELM SEMGET SEMINIT SEMPOST".split(), (1,)),
    **dict.fromkeys(MATRIX.split(), (6,)),
    **dict.fromkeys(CONFIG.split(), (7,)),
    **{c.name: (8,) for c in instructions().values() if c.name.startswith("SFP")},
    **dict.fromkeys(WAITS.split(), tuple(range(9))),
    **dict.fromkeys(NEVER.split(), ()),
    "NOP": (),
}
NUMBERS = {
    5: thread.WAIT_SRCA_FREE,
    6: thread.WAIT_SRCB_FREE,
    7: thread.WAIT_SRCA_VALID,
    8: thread.WAIT_SRCB_VALID,
}


def test_the_table_is_complete() -> None:
    assert TABLE.keys() == {cls.name for cls in instructions().values()}


@pytest.mark.parametrize("condition", range(13))
def test_one_condition_and_one_block_bit(condition: int) -> None:
    """C5-C8 hold the instructions of the bit; C0-C4 and C9-C12 ask for work that never is."""
    for bit in range(9):
        s = State()
        for cls in instructions().values():
            s.stall[cls.opcode] = cls.stall_mask
        s.src_valid[:] = int(condition in (5, 6))
        done = run(s, "STALLWAIT", 1, wait_res=1 << condition, stall_res=1 << bit)
        assert done == rules.DONE
        for cls in instructions().values():
            held = condition in NUMBERS and bit in TABLE[cls.name]
            want = NUMBERS[condition] if held else 0
            assert int(thread.hold(view(s), 1, cls.opcode)) == want, cls.name
        assert bool(s.latch[1]) == (condition in NUMBERS)


@pytest.mark.parametrize("condition", range(13))
def test_all_nine_bits_hold_nop_too(condition: int) -> None:
    s = State()
    for cls in instructions().values():
        s.stall[cls.opcode] = cls.stall_mask
    s.src_valid[:] = int(condition in (5, 6))
    run(s, "STALLWAIT", wait_res=1 << condition, stall_res=0x1FF)
    for cls in instructions().values():
        held = condition in NUMBERS and cls.name not in NEVER.split()
        assert bool(thread.hold(view(s), 0, cls.opcode)) == held, cls.name
