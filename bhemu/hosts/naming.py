"""Names and source lines for code that a host has written: its ELFs that lie in L1.

A host sends bytes, no symbols. tt-metal keeps the ELF of every kernel that it has compiled, and of
its firmware, as .../CORE/CORE.elf; the one whose code stands around the pc of a core names it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, InputError, NoProgress
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.graph import set_idle_apart
from bhemu.memmap import L1_SIZE
from bhemu.program import elf, files
from bhemu.program.elf import Symbols
from bhemu.riscv.assembly import RA

if TYPE_CHECKING:
    from bhemu.machine.core import Core
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

_HEAD = 4096  # bytes of an ELF that hold the table of its segments
_CODE = 24  # bytes around a pc that an ELF must hold to be compared as a whole
_EQUAL = 0.9  # of its code; the host patches some addresses
_PF_X = 1  # flag of a segment
_KERNELS = "kernels"  # the folder of the cache that holds no firmware
XY = tuple[int, int]


def folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Where tt-metal keeps the ELFs of kernels and firmware, as its environment says."""
    home = environment.get("HOME")
    cache = environment.get("TT_METAL_CACHE") or (f"{home}/.cache" if home else None)
    found = [] if cache is None else sorted(Path(cache).glob("tt-metal-cache*"))
    for name in ("TT_METAL_RUNTIME_ROOT", "TT_METAL_HOME"):
        if name in environment:
            found.append(Path(environment[name]) / "tt_metal" / "pre-compiled")
    return tuple(found)


_Code = tuple[Path, elf.Segment]  # a segment of an ELF that holds code


class _Read:
    """Code that was read: its bytes as linked; none where the file is gone."""

    def __init__(self, code: _Code) -> None:
        self._path, self._segment = code
        self.data = b""
        with contextlib.suppress(OSError), files.open_regular(self._path) as file:
            file.seek(self._segment.offset)
            self.data = file.read(self._segment.filesz)

    def match(self, l1: npt.NDArray[np.uint8], pc: int) -> tuple[float, int] | None:
        """How much of it stands in L1, a part of it at `pc`, and how far from where it is linked.

        None where that is too little.
        """
        sought, best = l1[pc : pc + _CODE].tobytes(), (0.0, 0)
        at = self.data.find(sought)
        while at >= 0:
            low, size = pc - at, len(self.data)
            if 0 <= low <= L1_SIZE - size:
                equal = float((l1[low : low + size] == np.frombuffer(self.data, np.uint8)).mean())
                best = max(best, (equal, low - self._segment.vaddr))
            at = self.data.find(sought, at + 4)
        return best if best[0] >= _EQUAL else None

    @functools.cached_property
    def symbols(self) -> Symbols:
        """Of the whole file, which is there."""
        path = self._path
        return Symbols(files.read_bytes(path, "ELF_BYTES"), str(Path(*path.parts[-5:])))


class Names:
    """Finds whose code stands in the L1 of a chip, in the ELFs below `folders`."""

    def __init__(self, chip: Machine, folders: Sequence[Path]) -> None:
        self._chip, self._folders = chip, tuple(folders)
        self._code: dict[str, list[_Code]] | None = None
        self._seen: dict[tuple[str, bytes], list[_Read]] = {}  # by what stands at a pc
        self._given: list[tuple[list[Symbols], Symbols]] = []  # images of a core, one of ours

    def look(self, xy: XY | None, error: BhemuError | None = None) -> None:
        """Name the code of the tile at `xy` and of all that run kernels; an error gets its line."""
        self._forget([images for images, _ in self._given])
        for tile in self._chip.tiles_made():
            found = [*self._of_tile(tile)]
            if tile.xy == xy or any(_is_kernel(symbols) for _, symbols in found):
                for core, symbols in found:
                    if symbols.path not in [one.path for one in core.images]:
                        self._give(core, symbols)
        if error is not None and error.where is not None:
            self._place(error)

    def _give(self, core: Core, symbols: Symbols) -> None:
        core.images.insert(0, symbols)
        self._given.append((core.images, symbols))

    def _forget(self, every: Iterable[list[Symbols]]) -> None:
        """Take back what was given to the images of some cores: the host may have written since."""
        of_cores = {id(images) for images in every}
        for images, symbols in self._given:
            if id(images) in of_cores and symbols in images:
                images.remove(symbols)
        self._given = [one for one in self._given if id(one[0]) not in of_cores]

    def ran(self, tile: Tile, places: Iterable[tuple[int, int]]) -> None:
        """Name the code of a tile at these cores and pcs, in place of what it had before."""
        cores = list(tile.core.values())
        self._forget(core.images for core in cores)
        for c, pc in sorted(places):
            if (found := self._lying(tile, cores[c], pc)) is not None:
                self._give(cores[c], found)

    def shorten(self, error: NoProgress) -> None:
        """Cores that wait in firmware come to the hint where others wait in kernels."""
        set_idle_apart(error, lambda waiter: not self._in_kernel(waiter.where))

    def _in_kernel(self, where: Mapping[str, object]) -> bool:
        """Whether a place is in the code of a kernel, or in nothing that is known."""
        tile = next((t for t in self._chip.tiles_made() if list(t.xy) == where.get("tile")), None)
        core, pc = where.get("core"), where.get("pc")
        if tile is None or not isinstance(core, str) or not isinstance(pc, int):
            return True
        images = tile.core[core].images
        return next((_is_kernel(one) for one in images if one.lookup(pc) is not None), True)

    def _of_tile(self, tile: Tile) -> Iterator[tuple[Core, Symbols]]:
        s = tile.state
        words = [(int(s.gate_core[t]), int(s.gate_pc[t])) for t in range(3) if s.gate_full[t]]
        for core in tile.core.values():
            if core.state == "reset":
                continue
            pushed = [pc for c, pc in words if c == core.index]
            for pc in (core.pc, int(core.regs[RA]) - 4, *pushed):
                if (found := self._lying(tile, core, pc)) is not None:
                    yield core, found

    def _lying(self, tile: Tile, core: Core, pc: int) -> Symbols | None:
        """The ELF whose code lies around `pc`, which has no name yet."""
        if not 0 <= pc < L1_SIZE - _CODE or core.locate(pc)[0] is not None:
            return None
        if self._code is None:
            # The code of each core's ELFs, the newest file first
            paths: list[tuple[float, Path]] = []
            for folder in self._folders:
                for at, _, names in os.walk(folder):
                    path = Path(at) / f"{Path(at).name}.elf"
                    if path.name in names:
                        with contextlib.suppress(OSError):
                            paths.append((path.stat().st_mtime, path))
            found: dict[str, list[_Code]] = {}
            for _, path in sorted(paths, reverse=True):
                with contextlib.suppress(OSError, InputError, elf.DamagedError):
                    with files.open_regular(path) as file:
                        table = elf.segments(file.read(_HEAD), path.name)
                    code = [
                        s for s in table if s.kind == "PT_LOAD" and s.flags & _PF_X and s.filesz
                    ]
                    found.setdefault(path.parent.name, []).extend((path, s) for s in code)
            self._code = found
        l1 = tile.state.l1
        key = core.name, l1[pc : pc + _CODE].tobytes()
        if key not in self._seen:
            read = map(_Read, self._code.get(core.name, ()))
            self._seen[key] = [one for one in read if key[1] in one.data]
        best, chosen = (0.0, 0), None
        for one in self._seen[key]:  # variants of one kernel differ in a few bytes
            if (match := one.match(l1, pc)) is not None and match[0] > best[0]:
                best, chosen = match, one
        return None if chosen is None else chosen.symbols.moved(best[1])

    def _place(self, error: BhemuError) -> None:
        """The place of an error, whose code has its name now."""
        where = error.where
        assert where is not None
        tile = next((tile for tile in self._chip.tiles_made() if tile.xy == where.tile), None)
        if tile is None or where.core is None or where.pc is None or where.symbol is not None:
            return
        named = where_core(tile, tile.core[where.core].index, where.pc)
        place = {n: getattr(named, n) for n in ("symbol", "file", "line", "function", "inlined")}
        error.where = dataclasses.replace(where, **place)


def of_environment(chip: Machine, more: Iterable[Path] = ()) -> Names:
    """Names from the ELFs in `more` and where this process's environment has those of tt-metal."""
    return Names(chip, [*more, *folders(os.environ)])


def _is_kernel(symbols: Symbols) -> bool:
    return _KERNELS in Path(symbols.path).parts
