"""Bits outside every field that tt-llk's kernels, proven on silicon, set: they have no effect.

SFPLOAD and SFPSTORE with negative addresses (ckernel_sfpu_reduce_custom.h: -128 & 0x3fff; the page
of the Blackhole ISA gives the address 10 bits), INCRWC with rwc_cr 8 (llk_math_eltwise_binary.h).
"""

import numpy as np
import pytest

from bhemu.errors import Undefined
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PARK, code, ttinsn
from bhemu.tensix.insn import assemble, disassemble, instructions

ALL_LANES = assemble("SFPENCC", imm12_math=3, instr_mod1=10)
FORWARD = assemble("SETRWC", rwc_d=4, bit_mask=4)


def after(*words: int) -> Tile:
    tile = Tile(poison="zero")
    tile.write(0x10000, code([ttinsn(word) for word in words], PARK))
    tile.core["trisc1"].set_reset_pc(0x10000)
    tile.core["trisc1"].release()
    tile.run("idle", timeout_s=120)
    return tile


@pytest.mark.parametrize("above", [0x400, 0x800, 0x1000, 0x1C00])
@pytest.mark.parametrize("address", [0x380, 0, 2])
def test_an_address_counts_modulo_1024(address: int, above: int) -> None:
    """A load that sees what a store wrote, both with bits above the address, and where it went."""
    load_one = assemble("SFPLOADI", lreg_ind=0, instr_mod0=0, imm16=0x3F80)
    store = assemble("SFPSTORE", lreg_ind=0, instr_mod0=2, dest_reg_addr=address)
    load = assemble("SFPLOAD", lreg_ind=1, instr_mod0=2, dest_reg_addr=address)
    valid = assemble("ZEROACC", clear_mode=3)
    plain = after(ALL_LANES, FORWARD, valid, load_one, store, load)
    shown = after(ALL_LANES, FORWARD, valid, load_one, store | above, load | above)
    assert np.array_equal(plain.state.dst, shown.state.dst)
    assert plain.state.dst.any()
    assert shown.state.lreg[1].tolist() == [0x3F800000] * 32
    assert f"unread bits {above:#x}" in disassemble(store | above)


def test_incrwc_does_not_read_bit_21() -> None:
    step = assemble("INCRWC", rwc_d=8, rwc_b=3)
    assert step | 1 << 21 == 0x38220C00
    assert np.array_equal(after(step | 1 << 21).state.rwc, after(step).state.rwc)
    assert after(step | 1 << 21).state.rwc[1].any()


def test_no_other_bits_are_free() -> None:
    free = {cls.name: cls.unread for cls in instructions().values() if cls.unread}
    assert free == {"SFPLOAD": 0x1C00, "SFPSTORE": 0x1C00, "INCRWC": 0x200000}
    with pytest.raises(Undefined, match="ENC-RESERVED"):
        after(assemble("INCRWC", rwc_d=8) | 1 << 22)
