"""The context of tt-exalens: device 0 with one emulated tile per coordinate."""

from enum import IntEnum
from typing import Any

from bhemu.errors import NotModelled
from bhemu.llk.device import Device as Emulated

from .coordinate import OnChipCoordinate

__all__ = ["Block", "Context", "Device", "NocId", "RegisterStore", "RiscDebug"]

COLUMNS, ROWS = 14, 10  # of the Tensix tiles of an unharvested Blackhole


class NocId(IntEnum):
    """The NoC that an access goes over; the tile answers on both in the same way."""

    NOC0 = 0
    NOC1 = 1


class RegisterStore:
    """Debug registers by name."""

    def __init__(self, emulated: Emulated) -> None:
        self._emulated = emulated

    def read_register(self, name: str) -> int:
        """The value of a 32-bit register."""
        return self._emulated.read_register(name)

    def write_register(self, name: str, value: int) -> None:
        """Store to a 32-bit register."""
        self._emulated.write_register(name, value)


class RiscDebug:
    """One core as the tests look at it."""

    def __init__(self, emulated: Emulated, core: str) -> None:
        self._emulated, self._core = emulated, core

    def is_ebreak_hit(self) -> bool:
        """Whether the core stands on `ebreak`, an LLK_ASSERT."""
        return self._emulated.is_ebreak_hit(self._core)


class Block:
    """The Tensix block at one coordinate."""

    def __init__(self, emulated: Emulated) -> None:
        self._emulated = emulated

    def get_register_store(self) -> RegisterStore:
        """Its debug registers."""
        return RegisterStore(self._emulated)

    def get_risc_debug(self, risc_name: str, neo_id: int | None = None) -> RiscDebug:
        """A core, its name in any case; NotModelled where the tile has no such neo."""
        if neo_id is not None:
            raise NotModelled(f"neo {neo_id}: a Blackhole tile has no neos")
        return RiscDebug(self._emulated, risc_name.lower())


class _RegistersDescription:
    """What the tests change before they ask for the Tensix state."""

    general_purpose_registers: list[Any]

    def __init__(self) -> None:
        self.general_purpose_registers = []


class Device:
    """A Blackhole chip of which every Tensix tile exists when it is asked for."""

    _arch = "blackhole"

    def __init__(self) -> None:
        self._tiles: dict[tuple[int, int], Emulated] = {}
        self._description = _RegistersDescription()

    def emulated(self, at: tuple[int, int]) -> Emulated:
        """The tile at a logical (row, column)."""
        if at not in self._tiles:
            self._tiles[at] = Emulated()
        return self._tiles[at]

    def get_block_locations(self, block_type: str = "functional_workers") -> list[OnChipCoordinate]:
        """The coordinates of every Tensix tile; NotModelled for other kinds of blocks."""
        if block_type != "functional_workers":
            raise NotModelled(f"blocks of kind {block_type}: only Tensix tiles")
        at = [(x, y) for x in range(COLUMNS) for y in range(ROWS)]
        return [OnChipCoordinate(place, self) for place in at]

    def get_block(self, coordinate: OnChipCoordinate) -> Block:
        """The block at a coordinate."""
        return Block(self.emulated(coordinate.at))

    def get_tensix_registers_description(self) -> _RegistersDescription:
        """The description whose list of GPRs the tests empty."""
        return self._description


class Context:
    """Everything the tests reach: one device."""

    def __init__(self) -> None:
        self.devices = {0: Device()}
