"""An unpacker hands a bank over, and the row it goes on from: UNPACR and UNPACR_NOP.

`unpack_row` (SrcRow) is added to the rows of SrcA unless SRCA_SET_SetOvrdWithAddr is set, and to
those of SrcB.  Source: UNPACR_Regular, UNPACR_NOP_SETDVALID, ISA.
"""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, spaces
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.rules import MISSING, error, refuse

_SRCB_BASE = error("UNPACR-SRCB-BASE", MISSING, "unpacker 1 goes on to the next set of rows while SRCB_SET_Base is {base}", "leave SRCB_SET_Base 0: the ISA text adds it to the rows of SrcB, ttsim says that Blackhole does not have it")  # fmt: skip

HANDING_OVER = spaces.UNPACKER | spaces.thread_cfg("SRCA_SET_*", "SRCB_SET_*")


@njit
def row_refused(s: Any, t: Any, u: Any) -> Any:
    """0, or the error of a new row for unpacker `u`."""
    base = config.thread(s, t, tf.SRCB_SET_Base)
    if base and u:
        return refuse(s, _SRCB_BASE, base=base)
    return 0


@njit
def _base(s: Any, t: Any, u: Any) -> Any:
    return 0 if u else config.thread(s, t, tf.SRCA_SET_Base) << 4


@njit
def hand_over(s: Any, t: Any, u: Any, fmt: Any) -> Any:
    """Give the bank of unpacker `u` to the matrix unit; DONE, or the error before any effect."""
    status = banks.hand_over(s, u, fmt)
    if status == 0:
        set_first_row(s, t, u)
    return status


@njit
def set_first_row(s: Any, t: Any, u: Any) -> None:
    """The row from which unpacker `u` fills a new bank."""
    s.unpack_row[u, t] = _base(s, t, u)


@njit
def next_set(s: Any, t: Any, u: Any) -> None:
    """Go on to the next 16 rows of the same bank (Unpack_Src_Reg_Set_Upd)."""
    s.unpack_row[u, t] = (s.unpack_row[u, t] + 16 + _base(s, t, u)) & 63
