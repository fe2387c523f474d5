"""What a user holds of a machine: its tiles by coordinate, its memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_SOFT_RESET_0, SOFT_RESET_ALL
from bhemu.noc.grid import TILES, XY, tile_at
from bhemu.noc.record import MEMORY_PAGE, MEMORY_SHIFT
from bhemu.program.tensor_memory import Tensors

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

_DRAM_RESET = DEBUG_BASE + RISCV_DEBUG_REG_SOFT_RESET_0


def plain_bytes(data: Any) -> npt.NDArray[np.uint8]:
    """Data that is written, as bytes."""
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, AttributeError, BufferError):
        raise InputError(f"write takes bytes, not {type(data).__name__}") from None


class Bank(Tensors):
    """One memory: a bank of DRAM, or what lies behind PCIe, ARC or Ethernet; sparse."""

    def __init__(self, chip: Machine, which: int, size: int, name: str) -> None:
        self._chip, self._which, self.size, self.name = chip, which, size, name

    def _check(self, address: int, n: int) -> None:
        self._chip.check_thread()
        if address < 0 or address + n > self.size:
            raise InputError(
                f"{address:#x}..{address + n:#x} is outside {self.name} (0..{self.size:#x})"
            )

    def read(self, address: int, n: int) -> bytes:
        """`n` bytes; what nothing has written holds what `poison` says."""
        address, n = arguments.integer("address", address), arguments.integer("n", n)
        self._check(address, n)
        return self._chip.network.read(self._which, address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store bytes."""
        plain, address = plain_bytes(data), arguments.integer("address", address)
        self._check(address, len(plain))
        self._chip.network.write(self._which, address, plain)

    @property
    def pages(self) -> list[int]:
        """The addresses of the pages that exist, each of 256 KiB."""
        made = self._chip.network.pages
        return sorted(page << MEMORY_SHIFT for which, page in made if which == self._which)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.pages)} pages of {MEMORY_PAGE >> 10} KiB>"


class DramBank(Bank):
    """A bank of DRAM; of its tile's registers a host finds the soft reset, which stays held."""

    def read(self, address: int, n: int) -> bytes:
        """As of every memory."""
        if (address, n) == (_DRAM_RESET, 4):
            return SOFT_RESET_ALL.to_bytes(4, "little")
        return super().read(address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """As to every memory."""
        if address != _DRAM_RESET:
            super().write(address, data)
        elif bytes(data) != SOFT_RESET_ALL.to_bytes(4, "little"):
            hint = f"soft reset takes {SOFT_RESET_ALL:#x} only"
            raise InputError(f"the RISC-V core of {self.name} is not modelled", hint=hint)


class Tiles(Mapping[XY, "Tile"]):
    """The Tensix tiles by coordinate; one that was never touched is made when it is asked for."""

    def __init__(self, chip: Machine) -> None:
        self._chip = chip

    def __getitem__(self, xy: XY) -> Tile:
        return self._chip.expose(self._chip.number_of(xy))

    def __contains__(self, xy: object) -> bool:
        try:
            self._chip.number_of(xy)
        except InputError:
            return False
        return True

    def __iter__(self) -> Iterator[XY]:
        return (tile_at(t) for t in range(TILES) if self._chip.network.state.column[t] >= 0)

    def __len__(self) -> int:
        return int((self._chip.network.state.column >= 0).sum())

    def __repr__(self) -> str:
        return f"<{len(self)} Tensix tiles, {len(self._chip.tiles_made())} of them touched>"
