"""The word of UNPACR: its fields, and the context, counters and so the Mode that they select."""

from typing import Any

import numpy as np

from bhemu.bits import Word, bits
from bhemu.jit.subset import njit
from bhemu.operand import choice, number
from bhemu.tensix import config, tables
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units.unpack.modes import mode_of


class UnpackWord(Word):
    """Fields of UNPACR, for its own entry and for its second entries."""

    last = bits(0, 0, tables.IGNORED)
    search_cache_flush = bits(
        1, 1, choice({0: "unpacks", 1: "flushes the cache of the unpacker, unpacks nothing"})
    )
    row_search = bits(
        2,
        2,
        choice({0: "rows in order", 1: "from the row that the table of the compressed tile gives"}),
        mode=True,
    )
    auto_inc_context_id = bits(
        3,
        3,
        choice(
            {0: "context cfg_context_id", 1: "the context that the counter of the unpacker names"}
        ),
    )
    zero_write2 = bits(4, 4, choice({0: "datums from L1", 1: "zeros"}), mode=True)
    srcb_bcast = bits(5, 5, choice({0: "no broadcast"}), mode=True)
    set_dat_valid = bits(
        6, 6, choice({0: "keeps the bank", 1: "hands the bank to the matrix unit"}), mode=True
    )
    ovrd_thread_id = bits(
        7,
        7,
        choice(
            {
                0: "one context, counters of the issuing thread",
                1: "contexts and addr_cnt_context_id count",
            }
        ),
    )
    addr_cnt_context_id = bits(9, 8, tables.THREAD)
    cfg_context_id = bits(12, 10, number("context, to which CfgContextOffset is added"))
    cfg_context_cnt_inc = bits(
        13, 13, choice({0: "unpacks", 1: "counts the context on, unpacks nothing"})
    )
    addr_mode = bits(
        22,
        15,
        number(
            "increments of counters afterwards: channel 0 Z [1:0] and Y [3:2], channel 1 Z [5:4] "
            "and Y [7:6]"
        ),
    )
    unpack_block_selection = bits(
        23, 23, choice({0: "unpacker 0: SrcA or Dst", 1: "unpacker 1: SrcB"}), mode=True
    )


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
