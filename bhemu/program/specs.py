"""What a PROGRAM.toml says, as frozen records: cores, values, tensors, tiles, how to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import InputError
from bhemu.program import comparison, tensor
from bhemu.program.coordinates import At
from bhemu.program.input_files import read_array
from bhemu.program.loader import Local
from bhemu.program.options import BANKS, END_OPTIONS

XY = tuple[int, int]
PAGE_ALIGNMENT = 64  # bytes, of a page in a bank
Values = tuple[str, ...]


class Piece(NamedTuple):
    """`size` bytes at `offset` of the tensor lie at `address` of `bank`."""

    bank: int
    address: int
    offset: int
    size: int


@dataclass(frozen=True)
class Dram:
    """Pages of a tensor over DRAM banks: page i in bank banks[i mod n], at address + i div n pages.

    Each page starts at a multiple of PAGE_ALIGNMENT bytes: reads demand it of both ends.
    """

    address: int
    page: int
    banks: tuple[int, ...]

    @property
    def slot(self) -> int:
        """Bytes between two pages of one bank."""
        return -(-self.page // PAGE_ALIGNMENT) * PAGE_ALIGNMENT

    def pieces(self, size: int) -> Iterator[Piece]:
        """Where the `size` bytes of a tensor lie, page by page."""
        for number, offset in enumerate(range(0, size, self.page)):
            row, column = divmod(number, len(self.banks))
            address = self.address + row * self.slot
            yield Piece(self.banks[column], address, offset, min(self.page, size - offset))

    def end(self, size: int) -> int:
        """First address after the tensor in the bank that holds most of it."""
        pages = -(-size // self.page)
        return self.address + -(-pages // len(self.banks)) * self.slot

    def write(self, data: bytes, store: Callable[[int, int, bytes], None]) -> None:
        """Hand every page to store(bank, address, bytes)."""
        for piece in self.pieces(len(data)):
            store(piece.bank, piece.address, data[piece.offset : piece.offset + piece.size])

    def read(self, size: int, load: Callable[[int, int, int], bytes]) -> bytes:
        """The tensor's bytes from load(bank, address, n)."""
        return b"".join(load(p.bank, p.address, p.size) for p in self.pieces(size))


@dataclass(frozen=True)
class CoreSpec:
    """One core to start: the ELF it loads, where its local RAM segments go, its start address.

    `pc` None means the ELF's entry. With `release` False another core releases it. `args` and
    `common` are the runtime arguments of a kernel (kind "tt-metal"), as written.
    """

    name: str
    elf: Path | None = None
    local: Local = "direct"
    release: bool = True
    pc: int | None = None
    args: Values = ()
    common: Values = ()


@dataclass(frozen=True)
class SetSpec:
    """Bytes written before the run; `core` names the ELF whose symbol `at` is, and the writer.

    `values`: as written, where some differ from tile to tile; `data` is then their size in zeros.
    """

    at: At
    data: bytes
    core: str | None = None
    origin: str = field(default="set", compare=False)
    values: Values = ()


@dataclass(frozen=True)
class InputSpec:
    """A tensor placed before the run: in L1 at `at` (of each of `tiles`), or in DRAM."""

    at: At
    file: Path
    dtype: str
    layout: str
    shape: tuple[int, ...]
    convert: str = "exact"
    origin: str = field(default="input", compare=False)
    tiles: tuple[XY, ...] = ()
    dram: Dram | None = None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return tensor.encoded_size(self.shape, self.dtype, self.layout)

    def data(self) -> bytes:
        """The bytes in memory; InputError naming the first value that `convert` refuses."""
        array = read_array(self.file, self.dtype, self.origin)
        try:
            return tensor.encode(array, self.dtype, self.layout, self.convert)
        except InputError as error:
            raise InputError(f"{self.origin}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class OutputSpec:
    """A tensor read after the run, from L1 (of `tile`) or DRAM: saved, compared, or both."""

    name: str
    at: At
    dtype: str
    layout: str
    shape: tuple[int, ...]
    save: Path | None = None
    expect: Path | None = None
    compare: str = "bits"
    max_ulp: int = 1
    rtol: float = 0.05
    atol: float = 0.05
    origin: str = field(default="output", compare=False)
    tile: XY | None = None
    dram: Dram | None = None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return tensor.encoded_size(self.shape, self.dtype, self.layout)

    def check(self, data: bytes) -> comparison.Report | None:
        """Compare the bytes in memory with the expected file; None when the program names none."""
        found: comparison.Report | None = self._compared(comparison.compare, data)
        return found

    def differing(self, data: bytes) -> NDArray[np.bool_] | None:
        """Which elements differ from the expected file; None when the program names none."""
        found: NDArray[np.bool_] | None = self._compared(comparison.differing, data)
        return found

    def _compared(self, by: Callable[..., Any], data: bytes) -> Any:
        if self.expect is None:
            return None
        expected = read_array(self.expect, self.dtype, self.origin)
        allowed = {"max_ulp": self.max_ulp, "rtol": self.rtol, "atol": self.atol}
        form = {"layout": self.layout, "name": self.name}
        return by(expected, data, self.dtype, self.compare, **form, **allowed)


@dataclass(frozen=True)
class BufferSpec:
    """Circular buffer `index`: `pages` of `page` bytes from `at` in L1."""

    index: int
    at: int
    pages: int
    page: int

    @property
    def size(self) -> int:
        """Bytes in L1."""
        return self.pages * self.page


@dataclass(frozen=True)
class TileSpec:
    """What is the same on each tile of `at`; arguments and values may name the tile."""

    at: tuple[XY, ...]
    cores: Mapping[str, CoreSpec]
    image: Path | None = None
    sets: tuple[SetSpec, ...] = ()
    buffers: tuple[BufferSpec, ...] = ()
    semaphores: tuple[int, ...] = ()
    origin: str = field(default="tile", compare=False)


@dataclass(frozen=True)
class FirmwareSpec:
    """The ELFs that boot a tile and run its kernels; `base`: where kernels go, None to find out."""

    elfs: Mapping[str, Path]
    base: int | None = None


@dataclass(frozen=True)
class ChipSpec:
    """What the chip is like; `options`: those of a run that [chip] gives.

    place: which chip it is, of how many that are linked.
    """

    harvest: tuple[int, ...] = ()
    dram_banks: int = BANKS
    options: Mapping[str, Any] = field(default_factory=dict)
    place: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Until:
    """The run ends when the 32-bit word of L1 at `word` equals `equals` (on each of `tiles`)."""

    word: At
    equals: int
    tiles: tuple[XY, ...] = ()


@dataclass(frozen=True)
class RunSpec:
    """How to run. `until` empty: until idle; `limit` is in clock units.

    `options`: what [run] or a flag gives of those in program/options.py.
    """

    until: tuple[Until, ...] = ()
    limit: int | None = None
    timeout_s: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_options(self, values: Mapping[str, Any]) -> RunSpec:
        """With these values of options, which go before its own."""
        end = {name: value for name, value in values.items() if name in END_OPTIONS}
        machine = {name: value for name, value in values.items() if name not in END_OPTIONS}
        return replace(self, **end, options={**self.options, **machine})


@dataclass(frozen=True)
class Program:
    """A whole program; `path` is the file it came from, None when made from flags alone.

    `inside`: the files that the file names lie in its folder.

    `tiles` is empty for a program of one tile, whose parts stand in `cores`, `image`, `sets`,
    `buffers` and `semaphores`; on a chip these are empty and each of `tiles` has its own.

    kind "elf": every core names its ELF. kind "image": `image` is a picture of L1 and cores name
    the address they start at. kind "llk": brisc and the TRISCs, run as tt-llk does (docs/llk.md).
    kind "tt-metal": cores name kernels, run by the ELFs of `firmware`, if any (docs/programs.md).
    """

    name: str
    kind: str
    cores: Mapping[str, CoreSpec]
    path: Path | None = None
    inside: bool = True
    image: Path | None = None
    sets: tuple[SetSpec, ...] = ()
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    run: RunSpec = field(default_factory=RunSpec)
    buffers: tuple[BufferSpec, ...] = ()
    semaphores: tuple[int, ...] = ()
    tiles: tuple[TileSpec, ...] = ()
    firmware: FirmwareSpec | None = None
    chip: ChipSpec | None = None
    xy: XY = (1, 2)  # of the tile of a program of one tile

    @property
    def is_alone(self) -> bool:
        """Whether it runs on one tile without NoCs: no [[tile]], [chip] or tensor in DRAM."""
        dram = [spec.dram for spec in self.inputs] + [spec.dram for spec in self.outputs]
        return not (self.tiles or self.chip or any(dram))

    @property
    def options(self) -> dict[str, Any]:
        """What the program gives of the options of a tile or chip; [run] goes before [chip]."""
        chip = self.chip or ChipSpec()
        of_chip = {"harvest": chip.harvest, "dram_banks": chip.dram_banks, **chip.options}
        return {**({} if self.is_alone else of_chip), **self.run.options}

    @property
    def l0(self) -> str:
        """The data caches of the cores, "off" or "model"."""
        return str(self.options.get("l0", "off"))

    def placed(self) -> tuple[TileSpec, ...]:
        """What stands on which tiles; a program of one tile is one entry, at `xy`."""
        own = TileSpec(
            (self.xy,), self.cores, self.image, self.sets, self.buffers, self.semaphores, self.name
        )
        return self.tiles or (own,)

    @property
    def home(self) -> Path | None:
        """The folder that the program must not leave, None when it may."""
        return self.path.parent if self.inside and self.path is not None else None

    def files(self) -> Iterator[Path]:
        """Every file the program is made of or reads."""
        named: list[Path | None] = [self.path]
        for part in self.placed():
            named += [part.image, *(core.elf for core in part.cores.values())]
        if self.firmware is not None:
            named += self.firmware.elfs.values()
        named += [source.file for source in self.inputs]
        named += [output.expect for output in self.outputs]
        return (path for path in named if path is not None)
