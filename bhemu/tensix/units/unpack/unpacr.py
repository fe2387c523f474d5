"""UNPACR: from L1 to SrcA, SrcB and Dst; here whole rows of 16- and 32-bit datums to Src.

Everything else is in general.py, which is compiled when a program first needs it.
"""

from collections.abc import Iterable
from typing import Any

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.effects import Effect, Kind, Values
from bhemu.tensix.insn import Instruction
from bhemu.tensix.resources import OWN, TDMA, Resources
from bhemu.tensix.second_entries import UNPACK, UNPACK_LITERAL, UNPACK_RARE
from bhemu.tensix.status import DONE
from bhemu.tensix.units.unpack import counters, geometry
from bhemu.tensix.units.unpack.convert import plain_cells
from bhemu.tensix.units.unpack.general import general
from bhemu.tensix.units.unpack.geometry import FIRST_CELL, X
from bhemu.tensix.units.unpack.handover import hand_over, row_refused
from bhemu.tensix.units.unpack.modes import mode_of, plain, zero_fields
from bhemu.tensix.units.unpack.word import UnpackWord

_SRC_CELLS = geometry.SRC_ROWS * 16
_PLAIN_BITS = UnpackWord.last.mask | UnpackWord.ovrd_thread_id.mask
_ANY = (UnpackWord.set_dat_valid, UnpackWord.addr_mode, UnpackWord.unpack_block_selection)
_CHOSEN = sum(field.mask for field in UnpackWord.fields if field not in _ANY)

_OTHER = -1  # not a plain UNPACR


@njit(forceinline=True)  # one caller
def _plain(s: Any, t: Any, u: Any, addr_mode: Any, set_dat_valid: Any) -> Any:
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    k = config.thread(s, t, f1 if u else f0)
    if k > 1:
        return _OTHER
    m = mode_of(s, t, u, 1, k, t)
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    if not plain(s, m) or override == 0 or s.unpack_row[u, t] or row_refused(s, t, u):
        return _OTHER
    first = geometry.first_cell(s, t, m)
    if u == 0:
        first -= FIRST_CELL
    count = s.adc[t, u, 1, X] - s.adc[t, u, 0, X] + 1
    src = geometry.source(s, t, m)
    # Rows from a multiple of 8 on never end a burst early.  What does not fit, or has a fault,
    # goes the other way and gets its error there.
    if first < 0 or first & 127 or count <= 0 or first + count > _SRC_CELLS:
        return _OTHER
    if src.data + src.bits * count > 8 * L1_SIZE or zero_fields(s, m):
        return _OTHER
    bank = s.unpack_bank[u] & 1
    banks.changed(s, u, bank)
    if u == 0 and banks.any_doubt(s, bank):
        banks.settle(s, bank, first >> 4, count >> 4)
    plain_cells(s, m, src, count, flat(s.src[u, bank])[first : first + count])
    counters.count_on(s, t, u, addr_mode)
    return hand_over(s, t, u, m.out) if set_dat_valid else DONE


class UNPACR(
    UnpackWord,
    Instruction,
    opcode=0x42,
    unit="unpack",
    stall="B0,B3",
    resources=Resources(TDMA | OWN, TDMA),
    formats="unpack",
    second_entries=(UNPACK, UNPACK_RARE, UNPACK_LITERAL),
):
    """Unpack datums from L1 to SrcA, SrcB or Dst (UNPACR_Regular, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _CHOSEN == _PLAIN_BITS:
            waits = banks.unpack_ready(s, f.unpack_block_selection)
            if waits:
                return waits
            status = _plain(s, t, f.unpack_block_selection, f.addr_mode, f.set_dat_valid)
            if status != _OTHER:
                return status
        return general(s, t, f.word)

    @staticmethod
    def effects(values: Values) -> Iterable[Effect]:
        if values["set_dat_valid"]:
            yield Effect(Kind.HANDS_OVER, values["unpack_block_selection"])
