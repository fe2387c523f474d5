"""What the packer has written to a place of L1, datum by datum."""

from typing import NamedTuple

import numpy as np

from bhemu.debug.shadow.numbers import TRUE, Floats, Ints


class _Range(NamedTuple):
    first: int  # bits
    end: int
    bits: int  # of a datum


class Packed:
    """Numbers of the datums of `size` bytes from `base` on, as Dst held them; NaN: not followed."""

    def __init__(self, base: int, size: int, bits: int) -> None:
        self._at = _Range(8 * base, 8 * (base + size), bits)
        self._parts = [np.full((self._at.end - self._at.first) // bits, np.nan)]

    def _inside(self, bit: Ints) -> tuple[Ints, Ints]:
        """Which of these bit addresses lie inside, and the numbers of their datums."""
        which = np.flatnonzero((bit >= self._at.first) & (bit < self._at.end))
        return which, (bit[which] - self._at.first) // self._at.bits

    def write(self, bit: Ints, bits: int, made: Floats, add: bool) -> None:
        """Datums of `bits` bits at these bit addresses, added to what is there where `add`."""
        which, at = self._inside(bit)
        if not len(which):
            return
        while len(self._parts) < len(made):
            self._parts.append(np.zeros_like(self._parts[TRUE]))
        fits = bits == self._at.bits
        for part, own in enumerate(self._parts):
            new = made[part, which] if part < len(made) else np.zeros(len(which))
            own[at] = (new + own[at] if add else new) if fits else np.nan

    def numbers(self, bit: Ints) -> Floats:
        """Numbers of the datums at these bit addresses."""
        at = (bit - self._at.first) // self._at.bits
        return np.stack([own[at] for own in self._parts])

    @property
    def seen(self) -> bool:
        """Whether anything was packed to it."""
        return bool(np.isfinite(self._parts[TRUE]).any())
