"""PACR: from Dst to L1.

Its own entry packs four whole rows (whole_rows.py).  All other modes are in stages.py, which is
compiled when a program first needs it.
"""

from typing import Any

from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.resources import OWN_REST, TDMA, Resources
from bhemu.tensix.second_entries import PACK_ACCUMULATE, PACK_STAGES
from bhemu.tensix.status import DONE
from bhemu.tensix.units.pack.stages import stage_by_stage
from bhemu.tensix.units.pack.whole_rows import pack_whole_rows
from bhemu.tensix.units.pack.word import PackWord

_ANY = (PackWord.last, PackWord.concat, PackWord.read_intf_sel, PackWord.addr_mode)
_MUST_BE_ZERO = sum(field.mask for field in PackWord.fields if field not in _ANY)


class PACR(
    PackWord,
    Instruction,
    opcode=0x41,
    unit="pack",
    resources=Resources(TDMA | OWN_REST, TDMA),
    formats="pack",
    by_chance=(cf.ALU_ROUNDING_MODE_Gasket_srnd_en, cf.ALU_ROUNDING_MODE_Packer_srnd_en),
    second_entries=(PACK_STAGES, PACK_ACCUMULATE),
):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _MUST_BE_ZERO == 0 and (f.read_intf_sel == 0 or f.read_intf_sel == 15):
            if pack_whole_rows(s, t, f.addr_mode, f.last):
                return DONE
        return stage_by_stage(s, t, f.word)


class PACR_SETREG(
    Instruction,
    opcode=0x4A,
    unit="pack",
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
