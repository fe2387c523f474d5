"""What a PROGRAM.toml says, as frozen records: cores, values, tensors, tiles, how to run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import naming
from bhemu.program import files, outputs, tensor
from bhemu.program.coordinates import At
from bhemu.program.input_files import read_array
from bhemu.program.loader import Local
from bhemu.program.options import BANKS, END_OPTIONS
from bhemu.program.toml import Table

XY = tuple[int, int]
T = TypeVar("T")
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
        with naming(self.origin):
            return tensor.encode(array, self.dtype, self.layout, self.convert)


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

    def check(self, data: bytes) -> outputs.Report | None:
        """Compare the bytes in memory with the expected file; None when the program names none."""
        return self._compared(outputs.compare, data)

    def differing(self, data: bytes) -> NDArray[np.bool_] | None:
        """Which elements differ from the expected file; None when the program names none."""
        return self._compared(outputs.differing, data)

    def _compared(self, by: Callable[..., T], data: bytes) -> T | None:
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
    origin: str = field(default="[run] until", compare=False)


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


# What a PROGRAM.toml says about its sources: the ELF x.elf is made from x.c, as [build] says.


STATE = "build"
"""The folder of objects, of the generated header and of what was built from what."""
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".S")


@dataclass(frozen=True)
class BuildSpec:
    """As written: `include` are folders of headers, in which $NAME is an environment variable."""

    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def build_from(top: Table) -> BuildSpec:
    """The table [build] of a whole file; InputError for what is no array of strings."""
    table = top.table("build")
    spec = BuildSpec(_strings(table, "include"), _strings(table, "flags"))
    table.finish()
    return spec


def _strings(table: Table, key: str) -> tuple[str, ...]:
    values = table.take(key, [], (list,))
    if any(type(value) is not str or not value or "\0" in value for value in values):
        table.fail(f"{key} must be an array of strings", hint=f'{key} = ["..."]')
    return tuple(values)


def source_of(elf: Path, folder: Path) -> Path | None:
    """The source of the ELF's name, beside it or in the folder of its program; None without one."""
    named = (where / f"{elf.stem}{end}" for where in (elf.parent, folder) for end in SOURCES)
    return next((path for path in named if files.is_file(path)), None)


def elf_file(table: Table) -> Path | None:
    """The path under `elf`, None when absent; InputError for an ELF that is not there (yet)."""
    name = table.text("elf", None)
    elf = None if name is None or "\0" in name else table.folder / name
    if elf is not None and files.is_missing(elf) and source_of(elf, table.folder) is not None:
        table.fail(f"elf: {elf} is not built yet", hint=f"bhemu build {table.folder}")
    return table.file("elf")


def outdated(program: Program) -> list[str]:
    """Each file of a program that is older than its source, and the command that makes it anew.

    Sources of x.elf are what `bhemu build` made it from, or x.c where it was built by other means;
    the source of a .npy file is a script *_data.py of the program's folder.
    """
    folder = program.path.parent if program.path is not None else Path()
    scripts = sorted(folder.glob("*_data.py"))
    found: dict[str, None] = {}
    firmware = () if program.firmware is None else program.firmware.elfs.values()
    for path in dict.fromkeys(program.files()):
        if path in firmware:  # which `bhemu build` does not build
            continue
        if path.suffix == ".elf":
            sources, command = _sources(path, folder), f"bhemu build {folder}"
        else:
            sources = scripts if path.suffix == ".npy" and len(scripts) == 1 else []
            command = f"python {sources[0]}" if sources else ""
        for source in sources if files.is_file(path) else ():
            if files.is_file(source) and source.stat().st_mtime > path.stat().st_mtime:
                found[f"{source} is newer than {path}: {command}"] = None
                break
    return list(found)


def stamp(elf: Path) -> str:
    """The file, below the folder of a program, in which `bhemu build` notes what an ELF was made
    from; `elf` is relative to that folder."""
    return f"{STATE}/{'_'.join(elf.with_suffix('').parts).removeprefix(f'{STATE}_')}.json"


def _sources(elf: Path, folder: Path) -> list[Path]:
    """The files of the program's folder that an ELF was made from, its own source first."""
    if (source := source_of(elf, folder)) is None or not files.is_inside(elf, folder):
        return [] if source is None else [source]
    try:
        noted = json.loads((folder / stamp(Path(os.path.relpath(elf, folder)))).read_text())
        written = [str(path) for path in noted["inputs"]]
    except (OSError, ValueError, LookupError, TypeError):
        written = []
    made = (folder / path for path in written if not path.startswith((STATE, os.sep)))
    return [source, *(path for path in made if path not in (elf, source))]
