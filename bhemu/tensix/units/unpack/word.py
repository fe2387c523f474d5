"""What an UNPACR word selects: context, counters and so the Mode."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units.unpack.modes import mode_of


@njit
def _context(s: Any, t: Any, u: Any, word: Any) -> Any:
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    number = s.unpack_context[u, t] if (word >> 3) & 1 else (word >> 10) & 7
    return (number + config.thread(s, t, f1 if u else f0)) & 7


@njit
def _adc_context(word: Any) -> Any:
    # Thread of the X and Y counters, 0: that which issues UNPACR, as in ttsim.  The text takes
    # thread 0 for 0, which is the thread that unpacks in LLK.
    return (word >> 8) & 3 if (word >> 7) & 1 else np.int64(0)


@njit
def mode_of_word(s: Any, t: Any, word: Any) -> Any:
    """Mode of an UNPACR word of thread `t`."""
    u, multi, adc = (word >> 23) & 1, (word >> 7) & 1, _adc_context(word)
    k = _context(s, t, u, word) if multi else np.int64(0)
    return mode_of(s, t, u, multi, k, adc if adc else np.int64(t))
