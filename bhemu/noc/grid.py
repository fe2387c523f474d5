"""Where the tiles of a Blackhole chip are: physical and translated coordinates, harvesting.

Physical coordinates are those of NoC 0, 17 columns by 12 rows; NoC 1 counts both backwards.
Translated ones are what software uses, the same numbers on both NoCs. Source: tt-umd's coordinate
manager and architecture constants for Blackhole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.devices import noc_map
from bhemu.program.options import BANKS as BANKS
from bhemu.program.options import CHIPS

XY = tuple[int, int]

TILES = noc_map.TILES
PORTS = 3
_DRAM_ROWS = ((0, 1, 11), (2, 10, 3), (9, 4, 8), (5, 7, 6))  # of the ports of banks 0-3 and 4-7
_DRAM_COLUMNS = (0, 9)
_DRAM_TRANSLATED = (17, 18)
_DRAM_FIRST_ROW = 12
# By channel, and by bit of a harvesting mask
ETHERNET_COLUMNS = (1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10)
ALL_TILES = TILES + len(ETHERNET_COLUMNS)
"""Tiles with cores: those of Tensix, then the Ethernet tiles by channel."""
_ETHERNET_ROW, _ETHERNET_FIRST = 25, 20
CHIPS_A_BOARD = 2
_ON_BOARD = ((2, 9), (3, 8))  # channels of a board's first and of its second chip
_BETWEEN = ((4, 4), (5, 5))  # of the same chip of two boards: four chips are a ring
_PAIRS = {
    2: ((0, 1, _ON_BOARD),),
    4: ((0, 1, _ON_BOARD), (2, 3, _ON_BOARD), (0, 2, _BETWEEN), (1, 3, _BETWEEN)),
}
assert (1, *_PAIRS) == CHIPS
End = tuple[int, int]  # a chip and its channel


def links(chips: int) -> dict[End, End]:
    """Where the links of so many chips lead, from each end."""
    cables = [((a, own), (b, other)) for a, b, pair in _PAIRS.get(chips, ()) for own, other in pair]
    return dict(sorted([*cables, *((b, a) for a, b in cables)]))


PCIE_AT = ((2, 0), (11, 0))
PCIE_TRANSLATED = (19, 24)
ARC_AT, _SECURITY_AT = (8, 0), (8, 2)
_L2CPU = ((8, 3), (8, 5), (8, 7), (8, 9))
_MIRROR = (39, 35)  # NoC 1 coordinates of DRAM that a host computes from a grid of 40 x 36


def tile_at(t: int) -> XY:
    """The translated coordinate of tile `t`."""
    if t >= TILES:
        return _ETHERNET_FIRST + t - TILES, _ETHERNET_ROW
    return noc_map.COLUMNS[t % len(noc_map.COLUMNS)], noc_map.ROWS[0] + t // len(noc_map.COLUMNS)


_NUMBERS = {tile_at(t): t for t in range(ALL_TILES)}


def number_at(xy: XY) -> int:
    """The number of the tile at a translated coordinate; LookupError where none is."""
    return _NUMBERS[xy]


@dataclass(frozen=True)
class Place:
    """An endpoint: its kind and index (noc_map.py), the physical and the translated coordinate."""

    kind: int
    index: int
    physical: XY
    translated: XY


@dataclass(frozen=True)
class Grid:
    """A chip's tiles. harvested: physical columns of fused-off Tensix tiles; banks: 7 or 8.

    number: which of `chips` linked ones it is; their Ethernet tiles run, those of one chip alone
    do not.
    """

    harvested: tuple[int, ...] = ()
    banks: int = BANKS
    number: int = 0
    chips: int = 1

    def __str__(self) -> str:
        columns = list(self.harvested) or "no"
        linked = f", chip {self.number} of {self.chips}" if self.chips > 1 else ""
        return f"a chip with {columns} harvested columns and {self.banks} banks of DRAM{linked}"

    @property
    def links(self) -> dict[int, End]:
        """Where the links of its channels lead."""
        return {own: to for (chip, own), to in links(self.chips).items() if chip == self.number}

    @property
    def tiles(self) -> int:
        """Tiles with cores that run, or may."""
        return ALL_TILES if self.chips > 1 else TILES

    def physical(self, t: int) -> XY | None:
        """Where tile `t` is on the die, None where it is fused off."""
        if t >= TILES:
            return ETHERNET_COLUMNS[t - TILES], 1
        k, row = t % len(noc_map.COLUMNS), noc_map.ROWS[0] + t // len(noc_map.COLUMNS)
        return (self.columns()[k], row) if k < self.working() else None

    def columns(self) -> tuple[int, ...]:
        """The physical column of each translated one, in the order of COLUMNS."""
        working = [x for x in noc_map.COLUMNS if x not in self.harvested]
        return (*working, *(x for x in noc_map.COLUMNS if x in self.harvested))

    def working(self) -> int:
        """How many columns of Tensix tiles work."""
        return len(noc_map.COLUMNS) - len(self.harvested)

    def places(self) -> list[Place]:
        """Every endpoint, router-only tiles last."""
        found = []
        for k, x in enumerate(self.columns()):
            kind = noc_map.TENSIX if k < self.working() else noc_map.HARVESTED
            for y in noc_map.ROWS:
                seen = noc_map.COLUMNS[k], y
                found.append(Place(kind, number_at(seen), (x, y), seen))
        # Without a bank, the others keep their order; its mirror image comes last of its column.
        # That bank is the last of the physical order here: bank 7.
        for bank in range(self.banks):
            half, row = divmod(bank, BANKS // 2)
            for port in range(PORTS):
                physical = _DRAM_COLUMNS[half], _DRAM_ROWS[row][port]
                y = _DRAM_FIRST_ROW + PORTS * row + port
                found.append(Place(noc_map.DRAM, bank, physical, (_DRAM_TRANSLATED[half], y)))
        for n, x in enumerate(ETHERNET_COLUMNS):
            what = (noc_map.TENSIX, TILES + n) if self.chips > 1 else (noc_map.ETHERNET, n)
            found.append(Place(*what, (x, 1), tile_at(TILES + n)))
        found.append(Place(noc_map.PCIE, 0, PCIE_AT[0], PCIE_TRANSLATED))
        found.append(Place(noc_map.ARC, 0, ARC_AT, ARC_AT))
        found.append(Place(noc_map.SECURITY, 0, _SECURITY_AT, _SECURITY_AT))
        found += [Place(noc_map.L2CPU, n, xy, xy) for n, xy in enumerate(_L2CPU)]
        taken = {place.physical for place in found}
        for y in range(noc_map.HEIGHT):
            for x in range(noc_map.WIDTH):
                if (x, y) not in taken:
                    found.append(Place(noc_map.ROUTER, 0, (x, y), (x, y)))
        return found

    def fill(self, table: npt.NDArray[np.uint32]) -> None:
        """Write the table of coordinates (noc_map.py)."""
        assert table.shape == (2, 2, noc_map.COORDINATES)
        table[:] = noc_map.NOTHING
        for place in reversed(self.places()):
            for noc in (0, 1):
                own = noc_map.on_noc(noc, place.physical)
                word = noc_map.endpoint(place.kind, place.index, *own)
                for physical, xy in self._names(place, noc):
                    table[physical, noc, xy[1] << 6 | xy[0]] = word

    def _names(self, place: Place, noc: int) -> Iterator[tuple[int, XY]]:
        """(0 with translation, 1 without; coordinate) by which software reaches an endpoint."""
        yield 1, noc_map.on_noc(noc, place.physical)
        yield 0, place.translated
        if place.physical[1] not in noc_map.ROWS or place.physical[0] not in noc_map.COLUMNS:
            yield 0, place.physical  # these rows and columns are not translated
        if place.kind == noc_map.DRAM and noc == 1:
            for x, y in (place.translated, place.physical):
                yield 0, (_MIRROR[0] - x, _MIRROR[1] - y)
