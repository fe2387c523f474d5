"""Address counters of an unpacker after an UNPACR."""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix.units.adc import Y, Z

_Y_WRAP = 0x1FFF  # ADC Y counters have 13 bits, Z counters 8
_Z_WRAP = 0xFF


@njit
def count_on(s: Any, t: Any, u: Any, addr_mode: Any) -> None:
    """Add the four 2-bit increments of the word: channel 0 Z, Y, channel 1 Z, Y."""
    channels = s.adc[t, u]
    channels[0, Z] = (channels[0, Z] + (addr_mode & 3)) & _Z_WRAP
    channels[0, Y] = (channels[0, Y] + (addr_mode >> 2 & 3)) & _Y_WRAP
    channels[1, Z] = (channels[1, Z] + (addr_mode >> 4 & 3)) & _Z_WRAP
    channels[1, Y] = (channels[1, Y] + (addr_mode >> 6 & 3)) & _Y_WRAP
