"""UNPACR of whole rows of 16- and 32-bit datums to Src, all of them in one piece."""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.formats import BF16, FP16, FP32, UINT16
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.status import DONE
from bhemu.tensix.units.adc import X
from bhemu.tensix.units.unpack import counters, input_address, output_address
from bhemu.tensix.units.unpack.datums import cells_of_16_or_32_bits
from bhemu.tensix.units.unpack.formats import TO_SRC
from bhemu.tensix.units.unpack.handover import hand_over, row_refused
from bhemu.tensix.units.unpack.modes import mode_of, per_context, zero_fields
from bhemu.tensix.units.unpack.output_address import FIRST_CELL

OTHER = -1  # status of an UNPACR of another kind, before any effect

_SRC_CELLS = SRC_ROWS * 16

# Bits of the word of THCON_SEC0_REG2_Out_data_format: anything but format, Throttle_mode,
# Context_count and Unpack_If_Sel.
_ODD = 0xFFFFF700

# Output formats (bit set) of each input format of 16 or 32 bits.
_OUT = np.array([TO_SRC[f] if f in (FP32, FP16, BF16, UINT16) else 0 for f in range(16)], np.int64)


@njit
def _suits(s: Any, m: Any) -> Any:
    """True when Mode `m` unpacks 16- or 32-bit datums one after another to Src, as text and LLK do.

    Nothing that `formats_refused` and `modes_refused` look for then applies.
    """
    odd = np.int64(
        s.cfg[m.bank, cf.THCON_SEC0_REG2_Out_data_format.word + SECTION_WORDS * m.unpacker]
    )
    if odd & _ODD or m.to_dst or m.context > 1 or (_OUT[m.fmt] >> m.out) & 1 == 0:
        return False
    f = cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0
    return per_context(s, m.bank, m.unpacker, m.context, f) != 0


@njit(forceinline=True)  # one caller
def unpack_whole_rows(s: Any, t: Any, u: Any, addr_mode: Any, set_dat_valid: Any) -> Any:
    """Status of an UNPACR of unpacker `u` configured per context, without any other option."""
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    k = config.thread(s, t, f1 if u else f0)
    if k > 1:
        return OTHER
    m = mode_of(s, t, u, 1, k, t)
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    if not _suits(s, m) or override == 0 or s.unpack_row[u, t] or row_refused(s, t, u):
        return OTHER
    first = output_address.first_cell(s, t, m)
    if u == 0:
        first -= FIRST_CELL
    count = s.adc[t, u, 1, X] - s.adc[t, u, 0, X] + 1
    src = input_address.source(s, t, m)
    # Rows from a multiple of 8 on never end a burst early.  What does not fit, or has a fault,
    # goes the other way and gets its error there.
    if first < 0 or first & 127 or count <= 0 or first + count > _SRC_CELLS:
        return OTHER
    if src.data + src.bits * count > 8 * L1_SIZE or zero_fields(s, m):
        return OTHER
    bank = s.unpack_bank[u] & 1
    banks.changed(s, u, bank)
    if u == 0 and banks.any_doubt(s, bank):
        banks.settle(s, bank, first >> 4, count >> 4)
    cells_of_16_or_32_bits(s, m, src, count, flat(s.src[u, bank])[first : first + count])
    counters.count_on(s, t, u, addr_mode)
    return hand_over(s, t, u, m.out) if set_dat_valid else DONE
