"""What a name stands for: registers, symbols of loaded ELFs, source lines; and the nearest name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bhemu import arguments, memmap
from bhemu.devices.bus.address_map import INERT, REGISTERS
from bhemu.errors import InputError, UnknownName
from bhemu.program.coordinates import At, resolve_at

if TYPE_CHECKING:
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile


_PREFIX = "RISCV_DEBUG_REG_"
LINE = re.compile(r"([^:\s]+\.\w+):(\d+)")
# The ISA's and tt-exalens' other names of the same registers.
_ALIASES = {"WALL_CLOCK_L": "WALL_CLOCK_0", "WALL_CLOCK_H": "WALL_CLOCK_1"}


@cache
def registers() -> Mapping[str, int]:
    """Every register by its short and its full name."""
    aliases = {
        prefix + alias: REGISTERS[name]
        for alias, name in _ALIASES.items()
        for prefix in ("", _PREFIX)
    }
    inert = {register.name: address for address, register in INERT.items()}
    return {**inert, **REGISTERS, **aliases}


def core_name(name: object) -> str:
    """`name`, which must be a core's; UnknownName for anything else."""
    if isinstance(name, str) and name in memmap.CORE_NAMES:
        return name
    near = arguments.did_you_mean(name, memmap.CORE_NAMES)
    cores = ", ".join(memmap.CORE_NAMES)
    raise UnknownName(f"no core {name!r}", hint=f"{near} cores: {cores}" if near else cores)


def resolve(tile: Tile, at: At, core: str | None = None) -> int:
    """The address of `at`: a number, a symbol of `core` (or of any core), or a register name."""

    def address(name: str) -> int:
        if core is not None and name not in registers():
            images = tile.core[core].images
            if not images:
                raise InputError(f"{core} has no ELF, so no symbol {name}")
            return next((one for one in images if name in one.names), images[-1]).address(name)
        found = {
            symbols.address(name)
            for one in tile.core.values()
            if core in (None, one.name)
            for symbols in one.images
            if name in symbols.names
        }
        if len(found) > 1:
            places = ", ".join(f"{value:#x}" for value in sorted(found))
            raise InputError(f"{name} stands for several addresses: {places}", hint="name the core")
        if found:
            return found.pop()
        if name in registers():
            return registers()[name]
        known = [name for one in tile.core.values() for s in one.images for name in s.names]
        near = arguments.did_you_mean(name, [*known, *registers()])
        hint = near or "is the ELF stripped? readelf -s"
        raise UnknownName(f"no symbol or register {name}", hint=hint)

    if not isinstance(at, str):
        return arguments.integer("address", at, -arguments.MOST, arguments.MOST)
    return resolve_at(at, address)


def code_address(tile: Tile, core: Core, at: At) -> int:
    """The address of `at` in the code of `core`: a number, FILE:LINE, or a symbol.

    A symbol that `core` does not have is looked for in the ELFs of the others.
    """
    found = LINE.fullmatch(at) if isinstance(at, str) else None
    if found:
        return line_address(core, found[1], int(found[2]))
    name = re.split(r"[+-]", at)[0].strip() if isinstance(at, str) else ""
    own = any(name in symbols.names for symbols in core.images)
    return resolve(tile, at, core.name if own else None)


def line_address(core: Core, file: str, line: int) -> int:
    """First address of `core`'s code that comes from `file`:`line`, or the next line with code."""
    name = Path(file).name
    found = [found for symbols in core.images if (found := symbols.line_places(name, line))]
    if found:
        return min(found)[1][0]
    rows = [row for symbols in core.images for row in symbols.rows]
    numbers = [row.line for row in rows if row.file == name]
    if numbers:
        near = f"nearest: {name}:{max(numbers)}"
        raise InputError(f"{file}:{line} has no code on {core.name}", hint=near)
    reason = next((s.line_problem for s in core.images if s.line_problem), "")
    known = ", ".join(sorted({row.file for row in rows}))
    hint = reason or (f"its code comes from {known}" if known else "")
    raise InputError(f"{core.name} has no code from {file}", hint=hint)
