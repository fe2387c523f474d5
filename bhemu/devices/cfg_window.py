"""Backend configuration, 0xFFEF0000: Config[0], Config[1], dual write, ThreadConfig (read only).

Source: BackendConfiguration, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.devices import config_race, rules
from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix.config import CONFIG_WORDS, THREAD_WORDS

_DUAL = 2 * CONFIG_WORDS
_THREAD = 3 * CONFIG_WORDS
_END = _THREAD + 3 * THREAD_WORDS


@njit
def read_word(s: Any, index: Any) -> Any:
    """Word `index` of the whole space; the dual-write part reads as Config[0]."""
    if index < _DUAL:
        return np.int64(s.cfg[index // CONFIG_WORDS, index % CONFIG_WORDS])
    if index < _THREAD:
        return np.int64(s.cfg[0, index - _DUAL])
    if index < _END:
        i = index - _THREAD
        return np.int64(s.thread_cfg[i // THREAD_WORDS, i % THREAD_WORDS])
    s.access[0] = rules.UNMAPPED
    return np.int64(0)


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """The 32-bit word that holds `offset`."""
    if c > 3:
        s.access[0] = rules.WRONG_CORE
        return np.int64(0)
    return read_word(s, offset >> 2)


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """Store one word with its side effects; ThreadConfig is read only for the cores."""
    index = offset >> 2
    if c > 3:
        s.access[0] = rules.WRONG_CORE
    elif config.writable(index):
        s.access[0] = config_race.refused(s, c, index, value) if c > 0 else 0
        if s.access[0] == 0:
            config.write_mapped(s, index, value)
    elif index < _END:
        s.access[0] = rules.READ_ONLY
    else:
        s.access[0] = rules.UNMAPPED
