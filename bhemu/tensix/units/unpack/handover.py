"""The check before an unpacker hands a bank over, shared by UNPACR and UNPACR_NOP."""

from typing import Any

from bhemu.tensix import config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.status import UNIMPLEMENTED, error
from bhemu.tensix.subset import njit

_SRCA_BASE = error(
    "UNPACR-SRCA-BASE",
    UNIMPLEMENTED,
    "handing SrcA over while SRCA_SET_Base is {0} is not modelled",
    "leave SRCA_SET_Base 0",
)


@njit
def handover_refused(s: Any, t: Any, u: Any) -> Any:
    """0, or the error of handing over the bank of unpacker `u`."""
    base = config.thread(s, t, tf.SRCA_SET_Base)
    if base and not u:
        s.detail[0] = base
        return _SRCA_BASE
    return 0
