"""Breakpoints of a tile, kept in the record where the compiled loop looks for them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix.state import State

MOST = 16  # per core, as the record has room for


@dataclass(frozen=True, repr=False)
class Breakpoint:
    """One breakpoint: its number, the core and address, and what the user wrote."""

    number: int
    core: int
    address: int
    text: str

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"breakpoint {self.number}: {self.place}"

    @property
    def place(self) -> str:
        """For example "trisc1 0x0001403C main"."""
        return f"{CORE_NAMES[self.core]} 0x{self.address:08X} {self.text}"


class Breakpoints:
    """The numbered breakpoints and the temporary ones of a command that runs."""

    def __init__(self, s: State, numbers: Iterator[int]) -> None:
        self._s, self._numbers = s, numbers
        self.points: dict[int, Breakpoint] = {}

    def add(self, core: int, address: int, text: str) -> Breakpoint:
        """Set one; InputError when the address is no code address or all places are taken."""
        if address % 4 or not 0 <= address < L1_SIZE:
            raise InputError(f"{address:#x} is no code address (a multiple of 4 in L1)")
        old = self.at(core, address)
        if old is not None:
            raise InputError(f"{old} is set there already")
        self._write(core, [*self._addresses(core), address])
        point = Breakpoint(next(self._numbers), core, address, text)
        self.points[point.number] = point
        return point

    def delete(self, number: int | None) -> None:
        """Remove one, or all."""
        if number is not None and number not in self.points:
            known = ", ".join(str(n) for n in self.points) or "there are none"
            raise InputError(f"no breakpoint {number}", hint=known)
        for n in list(self.points) if number is None else [number]:
            core = self.points.pop(n).core
            self._write(core, self._addresses(core))

    def at(self, core: int, address: int) -> Breakpoint | None:
        """The breakpoint there."""
        found = (p for p in self.points.values() if (p.core, p.address) == (core, address))
        return next(found, None)

    @contextmanager
    def temporary(self, core: int, addresses: Sequence[int]) -> Iterator[None]:
        """More addresses for as long as the context lasts."""
        self._write(core, [*dict.fromkeys([*self._addresses(core), *addresses])])
        try:
            yield
        finally:
            self._write(core, self._addresses(core))

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """No breakpoint stops anything for as long as the context lasts."""
        counts = self._s.breakpoint_count.copy()
        self._s.breakpoint_count[:] = 0
        try:
            yield
        finally:
            self._s.breakpoint_count[:] = counts

    def skip(self, core: int) -> None:
        """Let `core` leave the address where it stands, if that holds a breakpoint."""
        s = self._s
        here = s.breakpoint[core, : s.breakpoint_count[core]]
        s.breakpoint_skip[core] = int(s.pc[core] in here)

    def _addresses(self, core: int) -> list[int]:
        return [p.address for p in self.points.values() if p.core == core]

    def _write(self, core: int, addresses: list[int]) -> None:
        if len(addresses) > MOST:
            raise InputError(
                f"{CORE_NAMES[core]} has room for {MOST} breakpoints", hint="delete one first"
            )
        self._s.breakpoint[core, : len(addresses)] = addresses
        self._s.breakpoint_count[core] = len(addresses)
        self._s.breakpoint_skip[core] = 0
