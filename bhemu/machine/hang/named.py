"""Names for what is waited for: circular buffers and semaphores of the launched program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS, STREAM_ROLES
from bhemu.errors import InputError
from bhemu.tensix import mmio

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

# Registers of streams count the pages of circular buffers.

_DOES = {
    mmio.REMOTE_DEST_BUF_START: "gives pages back",
    mmio.REMOTE_DEST_BUF_SIZE: "announces pages",
}
_OPERANDS = re.compile(r"\b\w+=\S+ ")
_ADDRESS = re.compile(r" to 0x\w+$")


def counts(register: int, how: str) -> str:
    """What one that stores to a count of a buffer does, from how it does that."""
    return f"{_DOES[register]} with its {_ADDRESS.sub('', _OPERANDS.sub('', how))}"


_COUNTED = {
    mmio.REMOTE_DEST_BUF_START: "given back",
    mmio.REMOTE_DEST_BUF_SIZE: "announced",
}
_PAGES = {
    mmio.REMOTE_DEST_BUF_START: "to be given back",
    mmio.REMOTE_DEST_BUF_SIZE: "to be announced",
}


def count_of(tile: Tile, stream: int, register: int) -> str:
    """What a register of a stream counts, if it is of a declared buffer; "" otherwise."""
    verb = _COUNTED.get(register)
    buffer = None if verb is None else buffer_of(tile, stream)
    return "" if buffer is None else f"pages {verb} of buffer {buffer}"


def counter(tile: Tile, stream: int, register: int) -> tuple[int | None, str, str]:
    """The circular buffer that a register of a stream counts, where it is known; what is waited
    for; what else is known of the register."""
    role, at = STREAM_ROLES.get(register), f"register {register} of stream {stream}"
    if role is None:
        return None, f"{at} to change", ""
    buffer = buffer_of(tile, stream)
    if buffer is not None:
        return buffer, f"pages of buffer {buffer} {_PAGES[register]}", f"{role}, {at}"
    then = stream - FIRST_BUFFER_STREAMS[1]
    older = f", in older builds {then}" if then >= 0 else ""
    return None, f"{at} ({role}; in tt-metal of circular buffer {stream}{older}) to change", ""


_SEMAPHORE_BASE = "sem_l1_base"  # the word in a core's local memory that says where they are
_APART = 16  # bytes from one semaphore of a program to the next


def semaphore(tile: Tile, c: int, address: int) -> str:
    """Which of the semaphores of PROGRAM.toml lies at an address, in words; "" for none."""
    program = tile.machine.loop.program
    parts = () if program is None else program.placed()
    count = max((len(part.semaphores) for part in parts if tile.xy in part.at), default=0)
    core = tile.core[mm.CORE_NAMES[c]]
    try:
        base = core.read32(_SEMAPHORE_BASE) if count else 0
    except InputError:  # no such name
        return ""
    number, rest = divmod(address - base, _APART)
    return f" (semaphores[{number}])" if not rest and 0 <= number < count else ""


def buffer_of(tile: Tile, stream: int) -> int | None:
    """The circular buffer of the launched program that a stream counts; None: it cannot be told.

    The builds of a program begin at one of FIRST_BUFFER_STREAMS: at the only one by which every
    stream that counts something, this one included, is that of a declared buffer.
    """
    program = tile.machine.loop.program
    parts = () if program is None else program.placed()
    declared = {b.index for part in parts if tile.xy in part.at for b in part.buffers}
    counts = tile.state.stream[:, list(_PAGES)]
    used = {stream, *(n for n in range(mmio.STREAMS) if counts[n].any())}
    fits = [first for first in FIRST_BUFFER_STREAMS if {n - first for n in used} <= declared]
    return stream - fits[0] if len(fits) == 1 else None
