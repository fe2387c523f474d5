"""Runs of a program from states that differ in few bytes: which of them decide how it ends."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.noc.grid import BANKS
from bhemu.noc.record import MEMORY_SHIFT
from bhemu.tensix import config, config_fields, thread_fields
from bhemu.tensix.state import MEMBERS, OFFSET
from bhemu.why.check import Context, Outcome

Offsets = npt.NDArray[np.int64]
_THREAD_WORDS = next(member.shape[1] for member in MEMBERS if member.name == "thread_cfg")


STRIDE = 1 << 32  # between the tiles of a chip and the pages of its DRAM, as a Fill numbers bytes


@dataclass(frozen=True)
class Fill:
    """Bytes that are changed before a run: of the record of a tile, of the next, of pages.

    at: in rising order.
    """

    at: Offsets
    values: npt.NDArray[np.uint8]

    def some(self, low: int, high: int) -> "Fill":
        """Part of it."""
        return Fill(self.at[low:high], self.values[low:high])

    def parts(self) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
        """(tile or page, distances within, values) of each that has some."""
        low = 0
        while low < self.at.size:
            number = int(self.at[low]) // STRIDE
            high = int(np.searchsorted(self.at, (number + 1) * STRIDE))
            yield number, self.at[low:high] - number * STRIDE, self.values[low:high]
            low = high


def together(fills: Iterable[Fill]) -> Fill:
    """All of them as one."""
    parts = list(fills)
    at = np.concatenate([one.at for one in parts])
    order = np.argsort(at)
    return Fill(at[order], np.concatenate([one.values for one in parts])[order])


NOTHING = Fill(np.empty(0, np.int64), np.empty(0, np.uint8))


def member_of(at: int) -> tuple[str, int]:
    """The member of the record that a byte belongs to, and its distance within."""
    name = max((m.name for m in MEMBERS if OFFSET[m.name] <= at), key=lambda one: OFFSET[one])
    return name, at - OFFSET[name]


def place_name(at: int) -> str:
    """A byte of the record in words: `L1 0x20000`, `gpr:0:5`."""
    name, rest = member_of(at)
    if name == "l1":
        return f"L1 {rest:#x}"
    member = next(m for m in MEMBERS if m.name == name)
    index = np.unravel_index(rest // np.dtype(member.dtype).itemsize, member.shape)
    return ":".join([name, *(str(int(n)) for n in index)])


def field_names(at: int) -> str:
    """The first fields of a word of Config or ThreadConfig, in brackets; "" for another byte."""
    name, rest = member_of(at)
    fields = {"cfg": config_fields, "thread_cfg": thread_fields}.get(name)
    if fields is None:
        return ""
    word = rest // 4 % (config.CONFIG_WORDS if name == "cfg" else _THREAD_WORDS)
    known = [
        title
        for title, field in vars(fields).items()
        if isinstance(field, config_fields.Field) and field.word == word
    ]
    return f" ({', '.join(known[:2])})" if known else ""


class Trials:
    """A launched program that is run again and again from its beginning.

    `machine`: its tile or chip; `tiles`: all that it has; `pages`: those of DRAM that it touches;
    `ground`: bytes that every run begins with.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.machine: Any = context.launch(engine="compiled", **context.alone)
        self.tiles: Sequence[Tile] = [self.machine]
        self.pages: list[tuple[int, int]] = []
        self._start = self.machine.snapshot()
        if context.is_chip:
            self.tiles = self.machine.tiles_made()
            self._make_pages()
        self.ground = NOTHING
        self.begin(NOTHING)
        self._laid = context.outputs(self.machine)
        self.plain = self.result(NOTHING)

    def _make_pages(self) -> None:
        """Those that the program touches exist from its beginning on."""
        network = self.machine.network
        self.context.finish(self.machine, limit=self.context.most)
        self.pages = sorted(key for key in network.pages if key[0] < BANKS)
        self.machine.restore(self._start)
        for key in self.pages:
            if key not in network.pages:
                network.make_page(*key)
        self._start = self.machine.snapshot()

    def bytes(self, machine: Any = None) -> list[npt.NDArray[np.uint8]]:
        """The records and pages as they are, of the machine or of another one."""
        machine = machine or self.machine
        if not self.context.is_chip:
            return [machine.state.buffer]
        records = [machine.tile[tile.xy].state.buffer for tile in self.tiles]
        for key in self.pages:
            if key not in machine.network.pages:
                machine.network.make_page(*key)
        return records + [machine.network.pages[key] for key in self.pages]

    def name(self, at: int) -> str:
        """A byte in words."""
        number, rest = divmod(at, STRIDE)
        if number >= len(self.tiles):
            bank, page = self.pages[number - len(self.tiles)]
            return f"DRAM bank {bank} {(page << MEMORY_SHIFT) + rest:#x}"
        tile = self.tiles[number].xy
        return place_name(rest) + (
            f" of tile ({tile[0]},{tile[1]})" if self.context.is_chip else ""
        )

    def begin(self, fill: Fill) -> None:
        """To the launch, these bytes changed."""
        self.context.work.restored(len(self.tiles), fill.at.size + self.ground.at.size)
        self.machine.restore(self._start)
        held = self.bytes() if fill.at.size or self.ground.at.size else []
        for number, at, values in (*self.ground.parts(), *fill.parts()):
            held[number][at] = values

    def result(self, fill: Fill) -> Outcome:
        """How the program ends when these bytes are changed before it begins."""
        self.begin(fill)
        return self.context.finish(self.machine, limit=self.context.most)

    def differs(self, fill: Fill) -> bool:
        """Whether that is another end or another output; bytes that are left alone do not count."""
        self.begin(fill)
        laid = self.context.outputs(self.machine)
        seen = self.context.finish(self.machine, limit=self.context.most)
        if seen.same(self.plain):
            return False
        if seen.ending != self.plain.ending:
            return True
        rows = seen.outputs, self.plain.outputs, laid, self._laid
        for parts in zip(*rows, strict=True):
            got, was, held, first = (np.frombuffer(data, np.uint8) for data in parts)
            if ((got != was) & ((got != held) | (held == first))).any():
                return True
        return False

    def stand(self, ground: Fill) -> bool:
        """Let every further run begin with these bytes; whether the plain run is as before."""
        before, self.ground = self.plain, ground
        self.plain = self.result(NOTHING)
        return self.plain.same(before)

    def needed(self, parts: Sequence[Fill]) -> list[int]:
        """The numbers of those without which the others make no difference, the first ones."""
        found: list[int] = []
        high = len(parts)
        while high and not (found and self.differs(together(parts[n] for n in found))):
            low = 0
            while high - low > 1:
                middle = (low + high) // 2
                some = together(parts[n] for n in (*found, *range(middle)))
                low, high = (low, middle) if self.differs(some) else (middle, high)
            high -= 1
            found.append(high)
        return found

    def deciding(self, fill: Fill, size: int = 4) -> Fill | None:
        """As few bytes of `fill`, `size` together, as make the same difference alone."""
        if not self.differs(fill):
            return None
        low, high = 0, len(fill.at)
        while high - low > size:
            middle = low + (high - low) // 2 // size * size or low + size
            if self.differs(fill.some(low, middle)):
                high = middle
            elif self.differs(fill.some(middle, high)):
                low = middle
            else:
                break  # it takes some of both
        return fill.some(low, high)

    def tile_of(self, where: Where) -> Tile | None:
        """The tile that a place stands on."""
        return next((tile for tile in self.tiles if tile.xy == where.tile), None)
