"""Mailboxes between brisc and the TRISCs, 0xFFEC0000 + 0x1000 n (Mailboxes, ISA)."""

from typing import Any

import numpy as np

from bhemu.devices.bus.window import TENSIX_CORES, Effect, Window
from bhemu.jit.subset import njit
from bhemu.memmap import MAILBOX_BASE, MAILBOX_END
from bhemu.tensix.rules import DONE, condition

EMPTY = condition("a mailbox message")
FULL = condition("room in the mailboxes it writes (4 words in all)")
_DEPTH = 4


@njit
def load(s: Any, c: Any, offset: Any) -> Any:
    """Pop the mailbox n -> c (waits while empty); with address bit 2 set: 1 when data waits."""
    n = offset >> 12
    waiting = s.mailbox_write[n, c] - s.mailbox_read[n, c]
    if offset & 4:
        s.loaded[0] = 1 if waiting else 0
        return DONE
    if waiting == 0:
        return EMPTY
    s.load_acted[0] = 1
    s.loaded[0] = s.mailbox[n, c, s.mailbox_read[n, c] % _DEPTH]
    s.mailbox_read[n, c] += 1
    return DONE


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Push on the mailbox c -> n; the four mailboxes of a writer hold four words together."""
    n = offset >> 12
    held = np.int64(0)
    for i in range(4):
        held += s.mailbox_write[c, i] - s.mailbox_read[c, i]
    if held >= _DEPTH:
        return FULL
    s.mailbox[c, n, s.mailbox_write[c, n] % _DEPTH] = np.uint32(value)
    s.mailbox_write[c, n] += 1
    return DONE


def _load_effect(s: Any, core: int, offset: int) -> Effect:
    """A load takes an entry where there is one."""
    n = offset >> 12
    takes = not offset & 4 and s.mailbox_write[n, core] != s.mailbox_read[n, core]
    return Effect.CHANGES if takes else Effect.NONE


WINDOW = Window(
    *("mailboxes", MAILBOX_BASE, MAILBOX_END, load, store),
    agents=TENSIX_CORES,
    load_effect=_load_effect,
)
