"""A tensor's pages spread over DRAM banks: page i lies in bank i mod n of those named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bhemu.errors import InputError
from bhemu.program.specs import Dram

PAGE_ALIGNMENT = 64
"""Each page of a bank starts at a multiple of this many bytes: reads demand it of both ends."""


class Piece(NamedTuple):
    """`size` bytes at `offset` of the tensor lie at `address` of `bank`."""

    bank: int
    address: int
    offset: int
    size: int


def slot(place: Dram) -> int:
    """Bytes between two pages of one bank."""
    return -(-place.page // PAGE_ALIGNMENT) * PAGE_ALIGNMENT


def pieces(place: Dram, size: int) -> Iterator[Piece]:
    """Where the `size` bytes of a tensor lie, page by page."""
    for number, offset in enumerate(range(0, size, place.page)):
        row, column = divmod(number, len(place.banks))
        address = place.address + row * slot(place)
        yield Piece(place.banks[column], address, offset, min(place.page, size - offset))


def end(place: Dram, size: int) -> int:
    """First address behind the tensor in the bank that holds most of it."""
    pages = -(-size // place.page)
    return place.address + -(-pages // len(place.banks)) * slot(place)


def write(place: Dram, data: bytes, store: Callable[[int, int, bytes], None]) -> None:
    """Hand every page to store(bank, address, bytes)."""
    for piece in pieces(place, len(data)):
        store(piece.bank, piece.address, data[piece.offset : piece.offset + piece.size])


def read(place: Dram, size: int, load: Callable[[int, int, int], bytes]) -> bytes:
    """The tensor's bytes from load(bank, address, n)."""
    return b"".join(load(p.bank, p.address, p.size) for p in pieces(place, size))


def check_apart(tensors: list[tuple[str, Dram, int]]) -> None:
    """InputError when two tensors, as (name, place, size), share bytes of a bank."""
    for number, (name, place, size) in enumerate(tensors):
        for other, its, its_size in tensors[:number]:
            both = sorted(set(place.banks) & set(its.banks))
            low = max(place.address, its.address)
            if both and low < min(end(place, size), end(its, its_size)):
                raise InputError(f"{name} and {other} overlap in DRAM bank {both[0]} at {low:#x}")
