"""PACR: from Dst to L1; here four rows of bf16 or fp32 as they are, or fp32 rounded to bf16.

Everything else is in general.py, which is compiled when a program first needs it.
"""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.status import DONE
from bhemu.tensix.units.pack import direct, edges, geometry, histogram, modes, output
from bhemu.tensix.units.pack.general import general

_DATUMS = 64


@njit(forceinline=True)  # one caller
def _plain(s: Any, t: Any, addr_mode: Any, last: Any) -> Any:
    # True when this was a plain PACR and is done; else nothing has happened.
    m = modes.mode_of(s, t)
    rows = geometry.rows_of(s, t, m, 15, 0)
    if not direct.suits(s, m, rows) or rows.column or geometry.counts_partly(s, t, m):
        return False
    if modes.zero_fields(s, m.bank) or modes.compresses(s, m.bank):
        return False
    if modes.intermediate(s, m.bank) != m.fmt:
        return False
    if edges.masked(s, m.bank) or histogram.enabled(s) or modes.staged(s, m.bank):
        return False
    place = geometry.place_of(s, t, m)
    if geometry.place_refused(s, m, _DATUMS, place):
        return False
    direct.pack(s, m, rows, place)
    s.pack_exponent[1] += 1
    edges.advance(s, m.bank, rows.number, rows.columns)
    output.advance(s, m, _DATUMS, place, last)
    output.count_on(s, t, t, addr_mode)
    return True


class PACR(Instruction, opcode=0x41, unit="pack", stall="B0,B2"):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    last = bits(0)
    flush = bits(1, mode=True)
    ctxt_ctrl = bits(3, 2)
    concat = bits(4, mode=True)
    ovrd_thread_id = bits(7)
    read_intf_sel = bits(11, 8, mode=True)
    zero_write = bits(12, mode=True)
    addr_cnt_context = bits(14, 13)
    addr_mode = bits(16, 15)
    dst_access_mode = bits(17, mode=True)
    row_pad_zero = bits(20, 18)
    cfg_context = bits(22, 21)

    def execute(
        s: Any,
        t: Any,
        last: Any,
        flush: Any,
        ctxt_ctrl: Any,
        concat: Any,
        ovrd_thread_id: Any,
        read_intf_sel: Any,
        zero_write: Any,
        addr_cnt_context: Any,
        addr_mode: Any,
        dst_access_mode: Any,
        row_pad_zero: Any,
        cfg_context: Any,
    ) -> Any:
        odd = flush << 1 | ctxt_ctrl << 2 | ovrd_thread_id << 7 | zero_write << 12
        odd |= addr_cnt_context << 13 | dst_access_mode << 17 | row_pad_zero << 18
        odd |= cfg_context << 21
        if odd == 0 and (read_intf_sel == 0 or read_intf_sel == 15):
            if _plain(s, t, addr_mode, last):
                return DONE
        return general(s, t, last | concat << 4 | read_intf_sel << 8 | addr_mode << 15 | odd)


class PACR_SETREG(
    Instruction,
    opcode=0x4A,
    unit="pack",
    stall="B0,B2",
    oracle=False,
    uncertain=True,
    refused="the only text is Wormhole's, whose fields are others: Blackhole's word has no value",
):
    """Write a register from the packer (PACR_SETREG, Wormhole ISA)."""

    last = bits(0)
    flush = bits(1, mode=True)
    stream_id = bits(7, 2)
    addr_sel = bits(9, 8)
    disable_stall = bits(11, 10)
    unused = bits(21, 12)
    mode_sel = bits(22)
    push = bits(23)
