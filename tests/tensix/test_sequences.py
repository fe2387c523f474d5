"""Sequences that the chapter on GPRs and the configuration unit quotes, run as programs.

Chapter: gpr-and-dma-instructions; where it pushes to 0xFFE60000, a TRISC pushes to 0xFFE40000.
"""

import pytest
from unit_runner import WORD

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, PARK, PUSH, ZERO, addi, bne, code, li, lui, lw, sw, tt
from bhemu.tensix.insn import assemble

START = 0x10000
GPR = 0xFFE00000


def run(core: str, *parts: int | list[int], tile: Tile | None = None) -> Tile:
    tile = tile or Tile()
    tile.write(START, code(*parts, PARK))
    tile.core[core].set_reset_pc(START)
    tile.core[core].release()
    assert tile.run(timeout_s=20).reason == "idle"
    return tile


def test_zero_gprs_at_boot() -> None:
    """ "sw zero, 0(a5); addi a5, a5, 4; bne a5, a4": trisc2 clears its own 64 registers."""
    tile = Tile()
    tile.state.gpr[:] = 0x5A5A5A5A
    loop = [sw(ZERO, A1), addi(A1, A1, 4), bne(A1, A2, -8)]
    run("trisc2", lui(A1, GPR), addi(A2, A1, 256), loop, tile=tile)
    assert not tile.state.gpr[2].any()
    assert (tile.state.gpr[:2] == 0x5A5A5A5A).all()


def pushed(mnemonic: str, **fields: int) -> list[int]:
    """A word built with lui and addi and pushed by a store."""
    return [*li(A0, assemble(mnemonic, **fields)), *li(A1, PUSH), sw(A0, A1)]


@pytest.mark.parametrize("barrier", ["STALLWAIT", "DMANOP"])
def test_setdmareg_then_wrcfg(barrier: str) -> None:
    """GPRs 28 and 29 in halves, STALLWAIT(STALL_CFG, THCON), then WRCFG to words 12 and 13.

    DMANOP is the bubble where the scalar unit is known to be idle.
    """
    values = {28: 0x00020000, 29: 0x00800020}
    halves = [
        pushed("SETDMAREG", reg_index_16b=2 * register + high, payload_sig_sel=part & 0x3FFF)
        for register, value in values.items()
        for high, part in ((0, value & 0xFFFF), (1, value >> 16))
    ]
    wait = {"stall_res": 0x80, "wait_res": 1} if barrier == "STALLWAIT" else {}
    writes = [tt("WRCFG", gpr_address=r, cfg_reg=r - 16) for r in values]
    words = [tt(barrier, **wait), *writes, tt("NOP"), tt("NOP")]
    tile = run("trisc2", *halves, words)
    assert tile.tensix.cfg[0, 12:14].tolist() == list(values.values())
    assert tile.tensix.cfg.any(axis=0).sum() == 2


def test_load_back_fence() -> None:
    """Stores to the GPR window, a load of the last one, then a word that reads the registers."""
    stores = [lui(A1, GPR), *li(A0, 0x800), sw(A0, A1, 64)]
    stores += [sw(ZERO, A1, offset) for offset in (68, 72, 76)]
    fence = [lw(A0, A1, 76), sw(A0, A1, 76)]
    tile = Tile()
    tile.state.gpr[2, 16:20] = WORD
    tile.state.cfg[0, 12:16] = WORD
    run("trisc2", stores, fence, tt("WRCFG", gpr_address=16, wr128b=1, cfg_reg=12), tile=tile)
    assert tile.tensix.cfg[0, 12:16].tolist() == [0x800, 0, 0, 0]


def test_switch_of_the_configuration_bank() -> None:
    """SETC16 of CFG_STATE_ID between two WRCFG: each bank has its own value (double buffering)."""
    write = tt("WRCFG", gpr_address=4, cfg_reg=70)
    words = [write, tt("SETC16", setc16_reg=0, setc16_value=1), write]
    other = [tt("SETDMAREG", reg_index_16b=8, payload_sig_sel=9)]
    tile = Tile()
    tile.state.gpr[1, 4] = 7
    run("trisc1", words[:2], other, words[2], tile=tile)
    assert tile.tensix.cfg[:, 70].tolist() == [7, 9]


@pytest.mark.parametrize("mask", [0x0000FF00, 0xFFFFFFFF, 0x8001, 0xFF000000, 0x00FFF0])
def test_cfg_reg_rmw_tensix(mask: int) -> None:
    """One RMWCIB per byte lane whose mask is not 0 (cfg_reg_rmw_tensix of LLK)."""
    old, new = 0x12345678, 0xA5C3F00F
    words = [
        tt(
            f"RMWCIB{i}",
            mask=mask >> 8 * i & 0xFF,
            data=new >> 8 * i & 0xFF,
            cfg_reg_addr=76,
        )
        for i in range(4)
        if mask >> 8 * i & 0xFF
    ]
    tile = Tile()
    tile.state.cfg[0, 76] = old
    run("trisc0", words, tile=tile)
    assert tile.tensix.cfg[0, 76] == (new & mask) | (old & ~mask & WORD)


def test_rdcfg_before_its_consumer() -> None:
    """RDCFG, STALLWAIT(STALL_THCON, CFGEXU), ADDDMAREG, WRCFG: read, add, write back."""
    words = [
        tt("RDCFG", cfg_reg=84, gpr_address=6),
        tt("STALLWAIT", stall_res=0x20, wait_res=1 << 12),
        tt("ADDDMAREG", op_b_is_const=1, op_b_reg_index=63, op_a_reg_index=6, result_reg_index=7),
        tt("STALLWAIT", stall_res=0x80, wait_res=1),
        tt("WRCFG", cfg_reg=84, gpr_address=7),
    ]
    tile = Tile()
    tile.state.cfg[0, 84] = WORD
    run("trisc1", words, tile=tile)
    assert tile.tensix.cfg[0, 84] == 62


def test_loadreg_then_wrcfg_instead_of_streamwrcfg() -> None:
    """Both ways give the same word (STREAMWRCFG recommends the first)."""
    stream = 0xFFB40000 + 0x1000 * 24 + 4 * 10
    words = [
        tt("LOADREG", reg_addr=(stream - 0xFFB00000) >> 2, tdma_data_reg_index=12),
        tt("STALLWAIT", stall_res=0x80, wait_res=1),
        tt("WRCFG", cfg_reg=90, gpr_address=12),
        tt("SETC16", setc16_reg=60, setc16_value=24),
        tt("STREAMWRCFG", stream_id_sel=1, stream_reg_addr=10, cfg_reg=91),
    ]
    store = [*li(A1, stream), *li(A0, 0x1ABCD), sw(A0, A1)]
    tile = run("trisc0", store, words)
    assert tile.tensix.cfg[0, 90:92].tolist() == [0x1ABCD, 0x1ABCD]
