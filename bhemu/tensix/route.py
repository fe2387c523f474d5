"""An opcode that has claimed every word: `s.route` names it, its entry takes the words of all.

SFPLOADMACRO does so while instructions are scheduled, because time then matters to them.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import call_entry
from bhemu.jit.subset import njit


@njit(forceinline=True)
def taker(s: Any, opcode: Any) -> Any:
    """Opcode whose entry takes a word: its own, unless one has claimed every word."""
    return s.route[0] if s.route[0] else opcode


@njit
def waits(s: Any, t: Any, status: Any) -> Any:
    """Tell the opcode that has claimed every word that thread `t` waits; `status` or an error.

    The thread is passed as -1 - t: no word is like that.
    """
    told = call_entry(s.table[s.route[0]], s, np.int64(-1 - t), np.uint32(0))
    return status if told == 0 else told


@njit
def time_passes(s: Any, t: Any) -> None:
    """As `waits`, for a thread that has no word at the gate; an error stops everything."""
    told = waits(s, np.int64(t), np.int64(0)) if s.route[0] else np.int64(0)
    if told != 0:
        s.status[0] = told
        s.status_thread[0] = t
        s.status_core[0] = -1
        s.attention[0] |= 1
