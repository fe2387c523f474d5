"""The word of UNPACR: its fields, and the context, counters and so the Mode that they select."""

from typing import Any

import numpy as np

from bhemu.bits import Word, bits
from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units.unpack.modes import mode_of


class UnpackWord(Word):
    """Fields of UNPACR, for its own entry and for its second entries."""

    last = bits(0)
    search_cache_flush = bits(1)
    row_search = bits(2, mode=True)
    auto_inc_context_id = bits(3)
    zero_write2 = bits(4, mode=True)
    srcb_bcast = bits(5, mode=True)
    set_dat_valid = bits(6, mode=True)
    ovrd_thread_id = bits(7)
    addr_cnt_context_id = bits(9, 8)
    cfg_context_id = bits(12, 10)
    cfg_context_cnt_inc = bits(13)
    addr_mode = bits(22, 15)
    unpack_block_selection = bits(23, mode=True)


@njit
def _context(s: Any, t: Any, f: Any) -> Any:
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    u = f.unpack_block_selection
    number = s.unpack_context[u, t] if f.auto_inc_context_id else f.cfg_context_id
    return (number + config.thread(s, t, f1 if u else f0)) & 7


@njit
def mode_of_word(s: Any, t: Any, f: Any) -> Any:
    """Mode of an UNPACR of thread `t`."""
    multi = f.ovrd_thread_id
    # Thread of the X and Y counters, 0: that which issues UNPACR, as in ttsim.  The text takes
    # thread 0 for 0, which is the thread that unpacks in LLK.
    adc = f.addr_cnt_context_id if multi else np.int64(0)
    k = _context(s, t, f) if multi else np.int64(0)
    return mode_of(s, t, f.unpack_block_selection, multi, k, adc if adc else np.int64(t))
