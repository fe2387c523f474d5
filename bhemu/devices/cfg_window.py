"""Backend configuration at 0xFFEF0000."""

from typing import Any

from bhemu.devices import rules
from bhemu.devices.bus.window import TENSIX_CORES, TRACKED_CONFIG, Window
from bhemu.jit.later import Later
from bhemu.jit.subset import njit
from bhemu.memmap import TENSIX_CFG_BASE, TENSIX_CFG_END
from bhemu.tensix import config
from bhemu.tensix.config import CONFIG_WORDS, THREAD_WORDS
from bhemu.tensix.rules import DONE

config_races = Later("bhemu.devices.bus.access_order")

# Backend configuration, 0xFFEF0000: Config[0], Config[1], dual write, ThreadConfig (read only).
#
# Source: BackendConfiguration, Blackhole ISA.

_DUAL = 2 * CONFIG_WORDS
_THREAD = 3 * CONFIG_WORDS
_END = _THREAD + 3 * THREAD_WORDS


@njit
def load_word(s: Any, index: Any) -> Any:
    """Load word `index` of the whole space; the dual-write part reads as Config[0]."""
    if index < _DUAL:
        s.loaded[0] = s.cfg[index // CONFIG_WORDS, index % CONFIG_WORDS]
    elif index < _THREAD:
        s.loaded[0] = s.cfg[0, index - _DUAL]
    elif index < _END:
        i = index - _THREAD
        s.loaded[0] = s.thread_cfg[i // THREAD_WORDS, i % THREAD_WORDS]
    else:
        return rules.UNMAPPED
    return DONE


@njit
def load(s: Any, offset: Any) -> Any:
    """Load the 32-bit word at `offset`."""
    return load_word(s, offset >> 2)


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store one word with its side effects; ThreadConfig is read only for the cores."""
    index = offset >> 2
    if not config.writable(index):
        return rules.READ_ONLY if index < _END else rules.UNMAPPED
    status = config_races.refused(s, c, index, value) if c > 0 else DONE
    if status == DONE:
        config.write_mapped(s, index, value, config.by_core(s, c))
    return status


WINDOW = Window(
    *("backend configuration", TENSIX_CFG_BASE, TENSIX_CFG_END, load, store),
    agents=TENSIX_CORES,
    order=TRACKED_CONFIG,
)
