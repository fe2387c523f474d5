"""UNPACR: from L1 to SrcA, SrcB and Dst.

Its own entry unpacks whole rows (whole_rows.py).  All other modes are in stages.py, which is
compiled when a program first needs it.
"""

from collections.abc import Iterable
from typing import Any

from bhemu.tensix import banks
from bhemu.tensix.effects import Effect, Kind, Values
from bhemu.tensix.insn import Instruction
from bhemu.tensix.resources import OWN, TDMA, Resources
from bhemu.tensix.second_entries import (
    UNPACK_DATUM_STREAM,
    UNPACK_DST_16,
    UNPACK_EXPONENTS,
    UNPACK_STAGES,
    UNPACK_ZEROS,
)
from bhemu.tensix.units.unpack.stages import stage_by_stage
from bhemu.tensix.units.unpack.whole_rows import OTHER, unpack_whole_rows
from bhemu.tensix.units.unpack.word import UnpackWord

_PER_CONTEXT = UnpackWord.last.mask | UnpackWord.ovrd_thread_id.mask
_ANY = (UnpackWord.set_dat_valid, UnpackWord.addr_mode, UnpackWord.unpack_block_selection)
_CHOSEN = sum(field.mask for field in UnpackWord.fields if field not in _ANY)


class UNPACR(
    UnpackWord,
    Instruction,
    opcode=0x42,
    unit="unpack",
    resources=Resources(TDMA | OWN, TDMA),
    formats="unpack",
    second_entries=(
        UNPACK_STAGES,
        UNPACK_ZEROS,
        UNPACK_EXPONENTS,
        UNPACK_DST_16,
        UNPACK_DATUM_STREAM,
    ),
):
    """Unpack datums from L1 to SrcA, SrcB or Dst (UNPACR_Regular, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _CHOSEN == _PER_CONTEXT:
            u = f.unpack_block_selection
            waits = banks.unpack_ready(s, u)
            if waits:
                return waits
            status = unpack_whole_rows(s, t, u, f.addr_mode, f.set_dat_valid)
            if status != OTHER:
                return status
        return stage_by_stage(s, t, f.word)

    @staticmethod
    def effects(values: Values) -> Iterable[Effect]:
        if values["set_dat_valid"]:
            yield Effect(Kind.HANDS_OVER, values["unpack_block_selection"])
