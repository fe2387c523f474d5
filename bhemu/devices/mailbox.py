"""Mailboxes between brisc and the TRISCs, 0xFFEC0000 + 0x1000 n (Mailboxes, ISA)."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit
from bhemu.tensix.status import condition

EMPTY = condition("a mailbox message")
FULL = condition("room in the mailboxes it writes (4 words in all)")
_DEPTH = 4


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """Pop the mailbox n -> c (waits while empty); with address bit 2 set: 1 when data waits."""
    n = offset >> 12
    if c > 3:
        s.access[0] = rules.WRONG_CORE
        return np.int64(0)
    waiting = s.mailbox_write[n, c] - s.mailbox_read[n, c]
    if offset & 4:
        return np.int64(1 if waiting else 0)
    if waiting == 0:
        s.access[0] = EMPTY
        return np.int64(0)
    value = np.int64(s.mailbox[n, c, s.mailbox_read[n, c] % _DEPTH])
    s.mailbox_read[n, c] += 1
    return value


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """Push on the mailbox c -> n; the four mailboxes of a writer hold four words together."""
    n = offset >> 12
    if c > 3:
        s.access[0] = rules.WRONG_CORE
        return
    held = np.int64(0)
    for i in range(4):
        held += s.mailbox_write[c, i] - s.mailbox_read[c, i]
    if held >= _DEPTH:
        s.access[0] = FULL
        return
    s.mailbox[c, n, s.mailbox_write[c, n] % _DEPTH] = np.uint32(value)
    s.mailbox_write[c, n] += 1
