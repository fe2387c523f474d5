"""PACR: from Dst to L1; here four rows of bf16 or fp32 as they are, or fp32 rounded to bf16.

Everything else is in general.py, which is compiled when a program first needs it.
"""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.resources import OWN_REST, TDMA, Resources
from bhemu.tensix.second_entries import ACCUMULATE, PACK
from bhemu.tensix.status import DONE
from bhemu.tensix.units.pack import direct, edges, geometry, histogram, modes, output
from bhemu.tensix.units.pack.general import general
from bhemu.tensix.units.pack.word import PackWord

_DATUMS = 64
_ANY = (PackWord.last, PackWord.concat, PackWord.read_intf_sel, PackWord.addr_mode)
_MUST_BE_ZERO = sum(field.mask for field in PackWord.fields if field not in _ANY)


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


class PACR(
    PackWord,
    Instruction,
    opcode=0x41,
    unit="pack",
    stall="B0,B2",
    resources=Resources(TDMA | OWN_REST, TDMA),
    formats="pack",
    second_entries=(PACK, ACCUMULATE),
):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _MUST_BE_ZERO == 0 and (f.read_intf_sel == 0 or f.read_intf_sel == 15):
            if _plain(s, t, f.addr_mode, f.last):
                return DONE
        return general(s, t, f.word)


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
