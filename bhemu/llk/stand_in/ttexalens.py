"""What tt-llk's tests import from tt-exalens, on an emulated tile; not tt-exalens itself.

A folder on PYTHONPATH (`bhemu llk --path`) makes the tests find this module (docs/llk.md).  It
stands for the whole package: each of tt-exalens' modules that the tests import is this one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

from bhemu.errors import InputError, NotModelled
from bhemu.llk import Device as Emulated
from bhemu.llk import FileLine as DwarfFileLine
from bhemu.llk import Frame as CallstackEntry
from bhemu.program import elf as elfs_of_bhemu
from bhemu.program.elf import Symbols

__all__ = ["CallstackEntry", "DwarfFileLine"]

for _name in (
    *("context", "coordinate", "debug_tensix", "elf", "hardware", "hardware.risc_debug"),
    *("tt_exalens_init", "tt_exalens_lib"),
):
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = sys.modules[__name__]


class Verbosity(IntEnum):
    """Levels of tt-exalens' messages, of which there are none here."""

    NONE = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    VERBOSE = 4
    DEBUG = 5
    TRACE = 6

    @staticmethod
    def set(level: int) -> None:
        """Nothing is printed at any level; the level is checked."""
        Verbosity(level)


# ttexalens.coordinate: coordinates of Tensix tiles, as the tests write them: "row,column".


class OnChipCoordinate:
    """A tile of a device."""

    def __init__(self, at: tuple[int, int], device: Device, context: Context | None = None) -> None:
        self.at, self.device, self.context = at, device, context

    @staticmethod
    def create(text: str, device: Device) -> OnChipCoordinate:
        """From "row,column"; InputError for other forms, which name other kinds of blocks."""
        row, comma, column = text.partition(",")
        if not comma or not row.strip().isdecimal() or not column.strip().isdecimal():
            raise InputError(f"location {text!r}: only Tensix tiles, as row,column")
        return OnChipCoordinate((int(row), int(column)), device)

    def to_str(self, output_type: str = "logical") -> str:
        """As `create` reads it; NotModelled for other coordinates than logical ones."""
        if output_type != "logical":
            raise NotModelled(f"{output_type} coordinates: only logical ones")
        return f"{self.at[0]},{self.at[1]}"


# ttexalens.context: device 0 with one emulated tile per coordinate.

COLUMNS, ROWS = 14, 10  # of the Tensix tiles of an unharvested Blackhole


class NocId(IntEnum):
    """The NoC that an access goes over; the tile answers on both in the same way."""

    NOC0 = 0
    NOC1 = 1


class Block(Emulated):
    """The Tensix block at one coordinate, and its own store of debug registers."""

    def get_register_store(self) -> Block:
        """Its debug registers: read_register, write_register."""
        return self

    def get_risc_debug(self, risc_name: str, neo_id: int | None = None) -> SimpleNamespace:
        """A core, its name in any case; NotModelled where the tile has no such neo."""
        if neo_id is not None:
            raise NotModelled(f"neo {neo_id}: a Blackhole tile has no neos")
        return SimpleNamespace(is_ebreak_hit=partial(self.is_ebreak_hit, risc_name.lower()))


class Device:
    """A Blackhole chip of which every Tensix tile exists when it is asked for."""

    _arch = "blackhole"

    def __init__(self) -> None:
        self._tiles: dict[tuple[int, int], Block] = {}
        self._description = SimpleNamespace(general_purpose_registers=[])

    def get_block_locations(self, block_type: str = "functional_workers") -> list[OnChipCoordinate]:
        """The coordinates of every Tensix tile; NotModelled for other kinds of blocks."""
        if block_type != "functional_workers":
            raise NotModelled(f"blocks of kind {block_type}: only Tensix tiles")
        at = [(x, y) for x in range(COLUMNS) for y in range(ROWS)]
        return [OnChipCoordinate(place, self) for place in at]

    def get_block(self, coordinate: OnChipCoordinate) -> Block:
        """The block at a coordinate."""
        if coordinate.at not in self._tiles:
            self._tiles[coordinate.at] = Block()
        return self._tiles[coordinate.at]

    def get_tensix_registers_description(self) -> SimpleNamespace:
        """The description whose list of GPRs the tests empty."""
        return self._description


class Context:
    """Everything the tests reach: one device."""

    def __init__(self) -> None:
        self.devices = {0: Device()}


# ttexalens.debug_tensix


class TensixDebug:
    """Refused: the tests skip the boot mode EXALENS on Blackhole."""

    def __init__(self, coordinate: OnChipCoordinate) -> None:
        self.device = coordinate.device
        raise NotModelled(
            "injecting Tensix instructions through the debug port", hint="use the boot mode BRISC"
        )


# ttexalens.elf: ELF files, under tt-exalens' names.


@dataclass(frozen=True)
class ElfSymbol:
    """A symbol and its address."""

    name: str
    value: int


@dataclass(frozen=True)
class ElfSection:
    """A section of the file, as it lies there."""

    name: str
    address: int
    size: int
    data: bytes


class ElfFile:
    """The symbols and sections of an ELF for a RISC-V core."""

    def __init__(self, path: str, load_address: int | None = None) -> None:
        if load_address is not None:
            raise NotModelled("an ELF at another address than it was linked for")
        with open(path, "rb") as file:
            self._data = file.read()
        self.elf_file_path = path

    @cached_property
    def _found(self) -> Symbols:
        return Symbols(self._data, self.elf_file_path)

    @cached_property
    def symbols(self) -> Mapping[str, ElfSymbol]:
        """Every symbol by its name."""
        found = self._found
        return {name: ElfSymbol(name, found.address(name)) for name in found.names}

    def find_symbol_by_name(self, name: str) -> ElfSymbol | None:
        """The symbol, or None; InputError when several of the name stand at different addresses."""
        return ElfSymbol(name, self._found.address(name)) if name in self._found.names else None

    def iter_sections(self) -> Iterator[ElfSection]:
        """The sections in the file's order."""
        try:
            for section in elfs_of_bhemu.sections(self._data, self.elf_file_path):
                data = section.bytes_of(self._data)
                yield ElfSection(section.name, section.address, section.size, data)
        except elfs_of_bhemu.DamagedError as problem:
            raise InputError(f"{self.elf_file_path}: {problem}") from None

    def get_section_by_name(self, name: str) -> ElfSection | None:
        """The first section of a name, or None."""
        return next((found for found in self.iter_sections() if found.name == name), None)

    def get_pointer_size(self) -> int:
        """Bytes of an address."""
        return 4


# ttexalens.tt_exalens_init: there is one context per process, made when first asked for.

_active: list[Context] = []


def active() -> Context:
    """The context of this process."""
    if not _active:
        _active.append(Context())
    return _active[0]


def init_ttexalens(**options: Any) -> Context:
    """A new context; tt-exalens' options choose how to reach hardware and mean nothing here."""
    cleanup_global_context()
    return active()


def init_ttexalens_remote(**options: Any) -> Context:
    """As init_ttexalens: there is no server to reach."""
    return init_ttexalens(**options)


def cleanup_global_context() -> None:
    """Forget the context and its tiles."""
    _active.clear()


# ttexalens.tt_exalens_lib: the functions that tt-llk's tests call, with tt-exalens' parameters.
#
# Those of version 0.3.11, which tt-llk's own checkout names, and of 0.4.1, which tt-metal's does.
# They differ in `use_4B_mode`, a place among the positional ones that the later version lacks: how
# a device is accessed means nothing here, so whatever follows `noc_id` is taken and not used.

Location = str | OnChipCoordinate
ParsedElfFile = ElfFile  # its name up to version 0.3.28


class TTException(Exception):  # noqa: N818 (tt-exalens' name)
    """The base of tt-exalens' errors."""


def check_context(context: Context | None = None) -> Context:
    """The context given, or the process's own."""
    return active() if context is None else context


def convert_coordinate(
    location: Location, device_id: int = 0, context: Context | None = None
) -> OnChipCoordinate:
    """A coordinate from "row,column"; only device 0 exists."""
    if isinstance(location, OnChipCoordinate):
        return location
    chosen = check_context(context)
    coordinate = OnChipCoordinate.create(location, chosen.devices[device_id])
    coordinate.context = chosen
    return coordinate


def _tile(
    location: Location, device_id: int, context: Context | None, noc_id: int | None = None
) -> Block:
    if noc_id is not None and noc_id not in list(NocId):
        raise InputError(f"noc_id {noc_id!r}: a chip has the NoCs 0 and 1")
    coordinate = convert_coordinate(location, device_id, context)
    return coordinate.device.get_block(coordinate)


def read_word_from_device(
    location: Location,
    addr: int,
    device_id: int = 0,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    safe_mode: bool | None = None,
) -> int:
    """One word of L1; the tile runs first (bhemu.llk)."""
    return _tile(location, device_id, context, noc_id).read_words(addr)[0]


def read_words_from_device(
    location: Location,
    addr: int,
    device_id: int = 0,
    word_count: int = 1,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    use_4B_mode: bool | None = None,
    safe_mode: bool | None = None,
) -> list[int]:
    """Words of L1; the tile runs first (bhemu.llk)."""
    return _tile(location, device_id, context, noc_id).read_words(addr, word_count)


def read_from_device(
    location: Location,
    addr: int,
    device_id: int = 0,
    num_bytes: int = 4,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    use_4B_mode: bool | None = None,
    safe_mode: bool | None = None,
) -> bytes:
    """Bytes of L1; the tile runs first where they are words of the harness (bhemu.llk)."""
    return _tile(location, device_id, context, noc_id).read(addr, num_bytes)


def write_words_to_device(
    location: Location,
    addr: int,
    data: int | Sequence[int],
    device_id: int = 0,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    use_4B_mode: bool | None = None,
    safe_mode: bool | None = None,
) -> int:
    """Words into L1; returns the number of bytes."""
    words = [data] if isinstance(data, int) else list(data)
    _tile(location, device_id, context, noc_id).write_words(addr, words)
    return 4 * len(words)


def write_to_device(
    location: Location,
    addr: int,
    data: bytes | Sequence[int],
    device_id: int = 0,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    use_4B_mode: bool | None = None,
    safe_mode: bool | None = None,
) -> int:
    """Bytes into L1; returns their number."""
    raw = bytes(data)
    _tile(location, device_id, context, noc_id).write(addr, raw)
    return len(raw)


def load_elf(
    elf_file: str | ElfFile,
    location: Location,
    risc_name: str,
    neo_id: int | None = None,
    device_id: int = 0,
    context: Context | None = None,
    return_start_address: bool = False,
    verify_write: bool = True,
) -> int | None:
    """Load an ELF for a core, over what was there; verify_write has nothing to verify."""
    if neo_id is not None:
        raise NotModelled(f"neo {neo_id}: a Blackhole tile has no neos")
    path = elf_file.elf_file_path if isinstance(elf_file, ElfFile) else elf_file
    start = _tile(location, device_id, context).load_elf(path, risc_name.lower())
    return start if return_start_address else None


def parse_elf(
    elf_path: str, context: Context | None = None, require_debug_symbols: bool = True
) -> ElfFile:
    """The symbols and sections of an ELF; it may have no debug information."""
    return ElfFile(elf_path)


def arc_msg(
    device_id: int,
    msg_code: int,
    wait_for_done: bool,
    args: Sequence[int],
    timeout: Any,
    context: Context | None = None,
    noc_id: int | None = None,
) -> list[int]:
    """Answer a message to the ARC processor: the tests ask it for the clock rate, nothing else."""
    if msg_code not in (0xAA52, 0xAA54):  # go busy, go idle
        raise NotModelled(f"message {msg_code:#x} to the ARC processor", category="Unsupported")
    return [0, 0]


def callstack(
    location: Location,
    elfs: Sequence[str | ElfFile],
    offsets: Any = None,
    risc_name: str = "brisc",
    neo_id: int | None = None,
    max_depth: int = 100,
    stop_on_main: bool = True,
    device_id: int = 0,
    context: Context | None = None,
) -> list[CallstackEntry]:
    """The frame in which a core stands; its callers are not unwound."""
    return [_tile(location, device_id, context).frame(risc_name.lower())]


@dataclass
class TensixState:
    """The coprocessor's registers by name, as lists of numbers."""

    gpr: list[list[int]]
    cfg: list[list[int]]
    thread_cfg: list[list[int]]
    sem: list[list[int]]
    rwc: list[list[int]]


def get_tensix_state(
    location: Location,
    l1_address: int | None = None,
    device_id: int = 0,
    context: Context | None = None,
) -> TensixState:
    """The registers of the coprocessor at this moment."""
    tensix = _tile(location, device_id, context).tile.tensix
    return TensixState(**{name: getattr(tensix, name).tolist() for name in _STATE})


_STATE = tuple(TensixState.__dataclass_fields__)
