"""The row counters as a generator follows them, so that it makes legal instructions only."""

from dataclasses import dataclass

from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config_fields import Field
from random_programs.dice import Dice

_SRC, _DST, _PHASES = 64, 1024, 4


@dataclass(frozen=True)
class AddrMod:
    """One ADDR_MOD section: per counter (increment, CR, clear), for Dst also C to CR; fidelity."""

    a: tuple[int, int, int]
    b: tuple[int, int, int]
    d: tuple[int, int, int]
    c_to_cr: int
    fidelity: int
    fidelity_clear: int

    def fields(self, section: int) -> dict[Field, int]:
        """The ThreadConfig fields of the section."""
        values = {
            "AB_{}_SrcAIncr": self.a[0],
            "AB_{}_SrcACR": self.a[1],
            "AB_{}_SrcAClear": self.a[2],
            "AB_{}_SrcBIncr": self.b[0],
            "AB_{}_SrcBCR": self.b[1],
            "AB_{}_SrcBClear": self.b[2],
            "DST_{}_DestIncr": self.d[0],
            "DST_{}_DestCR": self.d[1],
            "DST_{}_DestClear": self.d[2],
            "DST_{}_DestCToCR": self.c_to_cr,
            "DST_{}_FidelityIncr": self.fidelity,
            "DST_{}_FidelityClear": self.fidelity_clear,
        }
        return {
            getattr(tf, "ADDR_MOD_" + name.format(f"SEC{section}")): value
            for name, value in values.items()
        }


def random_addr_mods(dice: Dice) -> list[AddrMod]:
    """Eight sections; section 0 changes nothing, 4-7 change the fidelity phase as well."""
    mods = [AddrMod((0, 0, 0), (0, 0, 0), (0, 0, 0), 0, 0, 0)]
    for section in range(1, 8):
        a, b, d = (_counter(dice, steps) for steps in ((0, 16, 48), (0, 8, 56), (0, 8, 16, 1016)))
        c_to_cr = int(dice.chance(4))
        if c_to_cr:
            d = (d[0], 0, 0)
        phase = dice.between(1, 3) if section > 3 else 0
        mods.append(AddrMod(a, b, d, c_to_cr, phase, int(section == 7)))
    return mods


def _counter(dice: Dice, steps: tuple[int, ...]) -> tuple[int, int, int]:
    kind = dice.below(4)  # CR and clear exclude each other often enough
    return dice.pick(steps), int(kind == 1), int(kind == 2)


@dataclass
class Counters:
    """RWC and carriage-return values of SrcA, SrcB and Dst, and the fidelity phase."""

    a: int = 0
    b: int = 0
    d: int = 0
    a_cr: int = 0
    b_cr: int = 0
    d_cr: int = 0
    phase: int = 0

    def apply(self, mod: AddrMod) -> None:
        """What an instruction with this address mode does afterwards."""
        self.a, self.a_cr = _advance(self.a, self.a_cr, mod.a, _SRC)
        self.b, self.b_cr = _advance(self.b, self.b_cr, mod.b, _SRC)
        if mod.c_to_cr:
            self.d = self.d_cr = (self.d + mod.d[0]) % _DST
        else:
            self.d, self.d_cr = _advance(self.d, self.d_cr, mod.d, _DST)
        self.phase = 0 if mod.fidelity_clear else (self.phase + mod.fidelity) % _PHASES

    def set(self, mask: int, carriage: int, b: int, d: int) -> None:
        """SETRWC with rwc_a = 0."""
        if mask & 1:
            self.a = self.a_cr = self.a_cr if carriage & 1 else 0
        if mask & 2:
            self.b = self.b_cr = (self.b_cr + b) % _SRC if carriage & 2 else b
        if mask & 4:
            self.d = self.d_cr = (self.d_cr + d) % _DST if carriage & 4 else d
        if mask & 8:
            self.phase = 0

    def increment(self, carriage: int, b: int, d: int) -> None:
        """INCRWC with rwc_a = 0."""
        self.b = (self.b + b) % _SRC
        if carriage & 4:
            self.d = self.d_cr = (self.d_cr + d) % _DST
        else:
            self.d = (self.d + d) % _DST


def _advance(value: int, cr: int, mod: tuple[int, int, int], size: int) -> tuple[int, int]:
    increment, carriage, clear = mod
    if clear:
        return 0, 0
    if carriage:
        return (cr + increment) % size, (cr + increment) % size
    return (value + increment) % size, cr
