"""Places as a program writes them: tiles of a chip, and addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.program.toml import REQUIRED, Table, is_number

XY = tuple[int, int]
COLUMNS = (*range(1, 8), *range(10, 17))  # of Tensix tiles, NoC coordinates
ROWS = tuple(range(2, 12))
TILE_VALUES = {
    "index": "number of the tile among those of its [[tile]], from 0, row by row",
    "count": "number of tiles of its [[tile]]",
    "x": "its column on the NoC",
    "y": "its row on the NoC",
    "column": "number of its column among those of its [[tile]], from 0",
    "row": "number of its row, from 0",
    "columns": "number of columns of its [[tile]]",
    "rows": "number of rows",
    "first_x": "smallest column on the NoC of its [[tile]]",
    "first_y": "smallest row",
    "last_x": "largest column",
    "last_y": "largest row",
    "next_x": "column on the NoC of the tile with the next index, that of the first after the last",
    "next_y": "its row",
}
"""What "tile:NAME" may stand for in values and arguments, in the order of values_of()."""

_RANGE = re.compile(r"\s*(\d{1,2})(?:\s*-\s*(\d{1,2}))?\s*,\s*(\d{1,2})(?:\s*-\s*(\d{1,2}))?\s*")
_HINT = 'for example "1,2", "1-4,2-5" or a list of those'


def parse(texts: Sequence[object], origin: str) -> tuple[XY, ...]:
    """The tiles that "x,y" and "x-x,y-y" name, by row and column; InputError for any other.

    A range of columns holds the Tensix columns in it: 1-16 is all fourteen.
    """
    found: set[XY] = set()
    for text in texts:
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputError(f"{origin}: {text!r} is no coordinate of a tile", hint=_HINT)
        x, x_end, y, y_end = (None if part is None else int(part) for part in match.groups())
        columns = _axis("column", x, x_end, COLUMNS, f"{origin}: {text!r}")
        rows = _axis("row", y, y_end, ROWS, f"{origin}: {text!r}")
        for xy in [(x, y) for y in rows for x in columns]:
            if xy in found:
                raise InputError(f"{origin}: tile {xy[0]},{xy[1]} is named twice")
            found.add(xy)
    if not found:
        raise InputError(f"{origin}: no tile is named", hint=_HINT)
    return tuple(sorted(found, key=lambda xy: (xy[1], xy[0])))


def _axis(
    axis: str, first: int | None, last: int | None, allowed: Sequence[int], origin: str
) -> list[int]:
    assert first is not None
    last = first if last is None else last
    hint = "Tensix tiles have columns 1-7 and 10-16, rows 2-11"
    if first > last:
        raise InputError(f"{origin}: {axis}s {first}-{last} go backwards", hint=hint)
    if first < allowed[0] or last > allowed[-1] or (first == last and first not in allowed):
        wrong = first if first < allowed[0] or first == last else last
        raise InputError(f"{origin}: there is no Tensix tile in {axis} {wrong}", hint=hint)
    found = [n for n in allowed if first <= n <= last]
    if not found:
        raise InputError(f"{origin}: there is no Tensix tile in {axis}s {first}-{last}", hint=hint)
    return found


def values_of(xy: XY, tiles: Sequence[XY]) -> Mapping[str, int]:
    """What "tile:NAME" stands for on tile `xy` of `tiles`, by NAME."""
    index = list(tiles).index(xy)
    columns, rows = (sorted({at[axis] for at in tiles}) for axis in (0, 1))
    own = columns.index(xy[0]), rows.index(xy[1]), len(columns), len(rows)
    corners = columns[0], rows[0], columns[-1], rows[-1]
    values = (index, len(tiles), *xy, *own, *corners, *tiles[(index + 1) % len(tiles)])
    return dict(zip(TILE_VALUES, values, strict=True))


def text(tiles: Sequence[XY]) -> str:
    """A few coordinates as text: "1,2", or the first, the last and how many there are."""
    names = [f"{x},{y}" for x, y in tiles]
    return " ".join(names) if len(names) <= 4 else f"{names[0]} to {names[-1]} ({len(names)} tiles)"


def dram(bank: int, port: int) -> XY:
    """The NoC coordinate of a port (0-2) of a DRAM bank, as software writes it on either NoC."""
    return 17 + bank // 4, 12 + 3 * (bank % 4) + port


def tensix(harvested: int = 0) -> tuple[XY, ...]:
    """All Tensix tiles by row and column; harvested columns are missing at the right."""
    return tuple((x, y) for y in ROWS for x in COLUMNS[: len(COLUMNS) - harvested])


# Addresses as a program writes them: numbers, or names with an offset.

_ADDRESSES = '0x50000, "symbol" or "symbol+4"'
At = int | str
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


def resolve_at(at: At, resolve: Callable[[str], int]) -> int:
    """The address meant by `at`; `resolve` gives that of a symbol or register name."""
    if isinstance(at, int):
        return at
    if (match := _NAME_AND_OFFSET.fullmatch(at)) is None:
        raise InputError(f"{at!r} is not an address", hint="a number, a symbol or symbol+4")
    name, sign, offset = match.groups()
    return resolve(name) + int(f"{sign or ''}{offset or 0}", 0)


def check_l1(origin: str, address: int, size: int) -> None:
    """InputError when `size` bytes at `address` are not all inside L1."""
    if not 0 <= address <= L1_SIZE - size:
        raise InputError(
            f"{origin}: {size} bytes at 0x{address:X} are not inside L1 (0x0..0x{L1_SIZE:X})"
        )
