"""What the parts above a record ask of a tile, its cores and what runs it: Protocols."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bhemu.program.dwarf import Inlined
from bhemu.program.loader import Image, Local
from bhemu.program.symbols import Symbols
from bhemu.riscv.engine import Engine
from bhemu.tensix.state import State

Source = tuple[str | None, str | None, int | None]  # ("function+0x10", file, line)


@dataclass
class Loaded:
    """What the tile keeps about a core's ELFs; `first`: the next one is the core's first."""

    images: list[Symbols] = field(default_factory=list)
    first: bool = True

    def forget(self) -> None:
        """Nothing is loaded (Tile.reset)."""
        self.images.clear()
        self.first = True


Look = Callable[[int, Any, bool, Callable[[], int]], int]  # (core, window, store, access)


class Compiling(Protocol):
    """The table of entries."""

    seconds: float  # spent on compiling so far

    def observe(self, before: Callable[[int, int], Any], after: Callable[[Any, int], None]) -> None:
        """Call `before(thread, word)` and `after(its result, status)` around every word."""

    def forget(self, before: Callable[[int, int], Any]) -> None:
        """That observer no more."""

    def unobserved(self, t: int, word: int) -> int:
        """Status of one word, whoever observes words."""


class Running(Protocol):
    """What runs a record."""

    @property
    def engine(self) -> Engine:
        """The cores."""

    @property
    def table(self) -> Compiling:
        """The entries of Tensix words."""

    def rounds(self, n: int) -> int:
        """Run up to `n` rounds; 0 or why it stopped."""

    def observe(self, look: Look | None) -> None:
        """Call `look(core, window, store, access)` for every access of a device window."""

    def surface(self) -> None:
        """Raise what a callback of compiled code has raised."""

    def read(self, address: int, size: int = ..., core: int = ...) -> tuple[int, int]:
        """Device load: (status, value)."""

    def write(self, address: int, value: int, size: int = ..., core: int = ...) -> int:
        """Device store: its status."""


class CorePart(Protocol):
    """One core."""

    index: int
    name: str

    @property
    def images(self) -> list[Symbols]:
        """Symbols of the ELFs loaded for this core."""

    @property
    def pc(self) -> int:
        """Address of the next instruction."""

    @property
    def state(self) -> str:
        """ "reset", "running", "blocked", "parked", "assert", "held" or "halted"."""

    @property
    def retired(self) -> int:
        """Instructions retired since power-up."""

    @property
    def regs(self) -> npt.NDArray[np.uint32]:
        """x0-x31."""

    def locate(self, pc: int) -> Source:
        """Function and source line of `pc`."""

    def inlined(self, pc: int) -> Inlined:
        """The function of the source line of `pc`, and the inlined calls that led there."""

    def source(self, pc: int) -> str:
        """The source line of `pc` with inlined calls."""

    def function(self, pc: int) -> tuple[str, int, int]:
        """(name, first address, address behind the last) of the function that holds `pc`."""


class TilePart(Protocol):
    """One tile."""

    xy: tuple[int, int]
    state: State
    ranges: list[tuple[int, int, str]]  # of L1 that ELFs fill: [low, high) and whose
    log: list[tuple[int, int, int, int, int]]
    loaded: list[Loaded]  # of each core
    placed: list[tuple[int, bytes]]  # values that the program sets in L1 before the run

    @property
    def backend(self) -> Running:
        """What runs the record."""

    @property
    def core(self) -> Mapping[str, CorePart]:
        """The cores by name."""

    @property
    def clock(self) -> int:
        """Instructions retired so far."""

    def locate(self, core: int, pc: int) -> Source:
        """Function and source line of a pc of core 0-4."""

    def place(self, core: int, pc: int) -> str:
        """One line: core, pc, function, file:line."""

    def read32(self, at: int | str) -> int:
        """One word as the host."""

    def before_run(self) -> None:
        """Host writes take effect."""

    def drain_log(self) -> None:
        """Move executed words from the trace ring to `log`."""


class MachinePart(Protocol):
    """The tiles that run together."""

    def tiles_made(self) -> Sequence[TilePart]:
        """Those that exist, in the order of their numbers."""

    def numbered(self, t: int) -> TilePart:
        """Tile `t`, made when it is not there yet."""


class Board(TilePart, Protocol):
    """What a core asks of its tile."""

    def check_thread(self) -> None:
        """InputError in another thread than the one that made the tile."""

    def add_image(self, core: int, image: Image, local: Local, offset: int) -> None:
        """Place a checked ELF for `core`."""

    def read32(self, at: int | str) -> int:
        """One word as the host."""

    def write32(self, at: int | str, value: int) -> None:
        """Store one word as the host."""

    def _check_access(self, status: int, verb: str, address: int, who: str) -> None:
        """InputError when the last device access was refused."""
