"""Addresses as a program writes them: numbers, or names with an offset."""

from __future__ import annotations

import re
from collections.abc import Callable

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.program.table import REQUIRED, Table, is_number

_ADDRESSES = '0x50000, "symbol" or "symbol+4"'
At = int | str
Resolve = Callable[[str], int]
_NAME_AND_OFFSET = re.compile(
    r"\s*([A-Za-z_.$][\w.$]*)\s*(?:([+-])\s*(0[xX][0-9a-fA-F]{1,32}|[0-9]{1,32}))?\s*"
)


def read_at(table: Table, key: str) -> At:
    """An address: an integer, or a symbol or register name with an optional offset."""
    at = table.take(key, REQUIRED, (int, str))
    if isinstance(at, int) and not 0 <= at <= 0xFFFF_FFFF:
        table.fail(f"{key} = {at} is not a 32-bit address")
    if isinstance(at, str) and _NAME_AND_OFFSET.fullmatch(at) is None:
        hint = f"drop the quotes: {key} = {at.strip()}" if is_number(at) else _ADDRESSES
        table.fail(f'{key} = "{at}" is not an address', hint=hint)
    return at if isinstance(at, int) else at.strip()


def resolve_at(at: At, resolve: Resolve) -> int:
    """The address meant by `at`; `resolve` gives that of a symbol or register name."""
    if isinstance(at, int):
        return at
    match = _NAME_AND_OFFSET.fullmatch(at)
    if match is None:
        raise InputError(f"{at!r} is not an address", hint="a number, a symbol or symbol+4")
    name, sign, offset = match.groups()
    return resolve(name) + int(f"{sign or ''}{offset or 0}", 0)


def check_l1(origin: str, address: int, size: int) -> None:
    """InputError when `size` bytes at `address` are not all inside L1."""
    if not 0 <= address <= L1_SIZE - size:
        raise InputError(
            f"{origin}: {size} bytes at 0x{address:X} are not inside L1 (0x0..0x{L1_SIZE:X})"
        )
