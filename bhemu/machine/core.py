"""One baby RISC-V core as a user sees it: registers, state, memory, loading an ELF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bhemu import arguments, memmap
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError, Where, source_text
from bhemu.jit import Later
from bhemu.machine.resolve import code_address, core_name

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.tile import Tile
    from bhemu.program import dwarf, loader
    from bhemu.program.elf import Symbols
else:
    error_text = Later("bhemu.machine.error_text")
    dwarf, loader = Later("bhemu.program.dwarf"), Later("bhemu.program.loader")


Source = tuple[str | None, str | None, int | None]  # ("function+0x10", file, line)
STATES = ("reset", "running", "blocked", "parked", "assert", "held", "halted")


@dataclass
class Loaded:
    """What a tile keeps about a core's ELFs; `first`: the next one is the core's first."""

    images: list[Symbols] = field(default_factory=list)
    first: bool = True

    def forget(self) -> None:
        """Nothing is loaded (Tile.reset)."""
        self.images.clear()
        self.first = True


class Core:
    """brisc, trisc0, trisc1, trisc2 or ncrisc of a tile: a view, which keeps the tile alive."""

    def __init__(self, tile: Tile, index: int, name: str) -> None:
        self._tile, self._s = tile, tile.state
        self.index, self.name = index, name
        self._loaded: Loaded = tile.loaded[index]

    @property
    def images(self) -> list[Symbols]:
        """Symbols of the ELFs loaded for this core."""
        return self._loaded.images

    @property
    def pc(self) -> int:
        """Address of the next instruction."""
        return int(self._s.pc[self.index])

    @property
    def state(self) -> str:
        """ "reset", "running", "blocked", "parked", "assert", "held" or "halted" (debug port)."""
        return STATES[int(self._s.core_state[self.index])]

    @property
    def retired(self) -> int:
        """Instructions retired since power-up (minstret)."""
        return int(self._s.retired[self.index])

    @property
    def regs(self) -> npt.NDArray[np.uint32]:
        """x0-x31, uint32 (32,), a copy."""
        self._tile.check_thread()
        engine = self._tile.backend.engine
        return np.array([engine.read_register(self.index, i) for i in range(32)], np.uint32)

    def _found(self, pc: int) -> tuple[Symbols, str, int] | None:
        """The ELF that knows `pc`, the symbol there and how far after it that is."""
        return next(((one, *found) for one in self.images if (found := one.lookup(pc))), None)

    def locate(self, pc: int) -> Source:
        """("function+0x10", file, line) of `pc`, None where unknown."""
        found = self._found(pc)
        if found is None:
            return None, None, None
        symbols, name, offset = found
        file, number = symbols.line(pc) or (None, None)
        return (f"{name}+{offset:#x}" if offset else name), file, number

    def inlined(self, pc: int) -> dwarf.Inlined:
        """The function of the source line of `pc`, and the inlined calls that led there."""
        found = self._found(pc)
        return dwarf.Inlined(None, ()) if found is None else found[0].inlined(pc)

    def source(self, pc: int) -> str:
        """The source line of `pc` with inlined calls: "k.h:9 helper, inlined at k.c:41"."""
        _, file, line = self.locate(pc)
        return source_text(file, line, *self.inlined(pc)) if file else ""

    def function(self, pc: int) -> tuple[str, int, int]:
        """(name, first address, address after the last) of the function that holds `pc`."""
        found = self._found(pc)
        if found is None:
            raise InputError(f"{self.name} pc {pc:#x} lies in no known function")
        (symbols, name, offset), end = found, pc
        while end < memmap.L1_SIZE and (symbols.lookup(end) or ("",))[0] == name:
            end += 4
        return name, pc - offset, end

    def address(self, place: int | str) -> int:
        """The address of a symbol (this core's first), FILE:LINE or register."""
        return code_address(self._tile, self, place)

    def where(self) -> Where:
        """Where the core stands."""
        return error_text.where_core(self._tile, self.index)

    def _local(self, address: int) -> int | None:
        offset = address - memmap.LOCAL_BASE
        return offset if 0 <= offset <= memmap.LOCAL_SIZES[self.index] - 4 else None

    def _word(self, at: int | str) -> int:
        """The address of a 32-bit word."""
        self._tile.check_thread()
        address = arguments.word("address", self.address(at))
        if address & 3:
            raise InputError(f"{address:#x} is not aligned to 4 bytes")
        return address

    def read32(self, at: int | str) -> int:
        """One aligned word as this core sees it; InputError where it may not read."""
        address = self._word(at)
        local = self._local(address)
        if local is not None:
            return int(self._s.local[self.index].view(np.uint32)[local >> 2])
        if 0 <= address < memmap.L1_SIZE:
            return int(self._tile.read32(address))
        status, value = self._tile.backend.read(address, 4, self.index)
        self._tile._check_access(status, "read", address, self.name)
        return int(value)

    def write32(self, at: int | str, value: int) -> None:
        """Store one aligned word as this core; InputError where it may not write."""
        address, value = self._word(at), arguments.word("value", value)
        local = self._local(address)
        if local is not None:
            self._s.local[self.index].view(np.uint32)[local >> 2] = value
        elif 0 <= address < memmap.L1_SIZE:
            self._tile.write32(address, value)
        else:
            status = self._tile.backend.write(address, value, 4, self.index)
            self._tile._check_access(status, "write", address, self.name)

    def store_local(self, address: int, data: bytes) -> None:
        """Bytes into this core's local RAM, which it writes in words."""
        low, high = address & ~3, (address + len(data) + 3) & ~3
        old = b"".join(self.read32(at).to_bytes(4, "little") for at in range(low, high, 4))
        new = old[: address - low] + data + old[address - low + len(data) :]
        for i in range(0, len(new), 4):
            self.write32(low + i, int.from_bytes(new[i : i + 4], "little"))

    def load_elf(
        self,
        path: str | Path,
        *,
        local: loader.Local = "direct",
        offset: int = 0,
        symbols: bool = True,
    ) -> loader.Image:
        """Load a checked ELF; the core's first one also sets its reset PC to the entry.

        local: "direct", "lma", "loader_init" or a staging base (see loader.place). brisc always
        starts at L1 address 0, where its ELF or a jump must lie. InputError for anything wrong;
        then nothing was written.
        """
        return self.load_image(loader.read_elf(path), local, offset, symbols)

    def load_image(
        self,
        image: loader.Image,
        local: loader.Local = "direct",
        offset: int = 0,
        symbols: bool = True,
    ) -> loader.Image:
        """As load_elf, with an ELF that has been read and checked."""
        self._tile.check_thread()
        self._tile.add_image(self.index, image, local, arguments.integer("offset", offset))
        start = image.entry + offset
        if self.index != 0 and self._loaded.first and 0 <= start < memmap.L1_SIZE:
            self.set_reset_pc(start)
        self._loaded.first = False
        if symbols:
            self.images.append(image.symbols.moved(offset))
        return image

    def set_reset_pc(self, pc: int) -> None:
        """Start address through the reset-PC registers; brisc always starts at 0."""
        tile, c = self._tile, self.index
        pc = arguments.word("pc", pc)
        if c == 0:
            if pc != 0:
                raise InputError(
                    f"brisc starts at address 0, not {pc:#x}", hint="put a jump at L1 address 0"
                )
            return
        trisc = 1 <= c <= 3
        register = REGISTERS[f"TRISC{c - 1}_RESET_PC" if trisc else "NCRISC_RESET_PC"]
        enable = REGISTERS["TRISC_RESET_PC_OVERRIDE" if trisc else "NCRISC_RESET_PC_OVERRIDE"]
        tile.write32(register, pc)
        tile.write32(enable, tile.read32(enable) | (1 << (c - 1) if trisc else 1))

    def __repr__(self) -> str:
        at = "" if self.state == "reset" else f", {self.where()}"
        return f"<Core {self.name}: {self.state}, {self.retired} retired{at}>"

    def _soft_reset(self, held: bool) -> None:
        address = REGISTERS["SOFT_RESET_0"]
        bit = 1 << memmap.SOFT_RESET_BITS[self.index]
        value = self._tile.read32(address)
        self._tile.write32(address, value | bit if held else value & ~bit)

    def release(self) -> None:
        """Let the core run from its reset PC at the next run."""
        self._soft_reset(False)

    def hold(self) -> None:
        """Put the core into reset."""
        self._soft_reset(True)


class Cores(Mapping[str, Core]):
    """The five cores by name; made for each look, so that a tile is no reference cycle."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile

    def __getitem__(self, name: str) -> Core:
        return Core(self._tile, memmap.CORE_NAMES.index(core_name(name)), name)

    def __contains__(self, name: object) -> bool:
        return name in memmap.CORE_NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(memmap.CORE_NAMES)

    def __len__(self) -> int:
        return len(memmap.CORE_NAMES)

    def __repr__(self) -> str:
        return f"<Cores {' '.join(f'{core.name}:{core.state}' for core in self.values())}>"
