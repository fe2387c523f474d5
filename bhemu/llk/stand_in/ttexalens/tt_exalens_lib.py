"""The functions of tt-exalens that tt-llk's tests call, with its names and parameters.

Those of version 0.3.11, which tt-llk's own checkout names, and of 0.4.1, which tt-metal's does.
They differ in `use_4B_mode`, a place among the positional ones that the later version lacks: how a
device is accessed means nothing here, so whatever follows `noc_id` is taken and not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.errors import InputError, NotModelled
from bhemu.llk.device import Device

from .context import Context, NocId
from .coordinate import OnChipCoordinate
from .elf import CallstackEntry, ElfFile
from .tt_exalens_init import active

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
) -> Device:
    if noc_id is not None and noc_id not in list(NocId):
        raise InputError(f"noc_id {noc_id!r}: a chip has the NoCs 0 and 1")
    coordinate = convert_coordinate(location, device_id, context)
    return coordinate.device.emulated(coordinate.at)


def read_word_from_device(
    location: Location,
    addr: int,
    device_id: int = 0,
    context: Context | None = None,
    noc_id: int | None = None,
    *modes: bool | None,
    safe_mode: bool | None = None,
) -> int:
    """One word of L1; the tile runs first (bhemu.llk.device)."""
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
    """Words of L1; the tile runs first (bhemu.llk.device)."""
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
    """Bytes of L1; the tile runs first where they are words of the harness (bhemu.llk.device)."""
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
    return TensixState(**{name: _lists(getattr(tensix, name)) for name in _STATE})


_STATE = tuple(TensixState.__dataclass_fields__)


def _lists(array: Any) -> Any:
    return array.tolist()
