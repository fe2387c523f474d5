"""Where a breakpoint goes: addresses, functions with inlined copies, source lines; whose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bhemu.errors import InputError
from bhemu.machine.resolve import LINE, code_address, line_address
from bhemu.program.address import At

if TYPE_CHECKING:
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile


class CodePlace(NamedTuple):
    """Code of a core; `note`: what else must be said of it, "" for nothing."""

    core: Core
    address: int
    note: str = ""


def code_places(tile: Tile, core: Core, at: At, own: bool = False) -> list[CodePlace]:
    """Where to stop for `at`: an address, a symbol, a function or FILE:LINE; never empty.

    `core` is preferred, and with `own` the only one; otherwise it may be the code of another. A
    function has several places where the compiler has inlined it, a line too; a line without code
    stands for the next one that has some.
    """
    others = [] if own else [one for one in tile.core.values() if one.index != core.index]
    line = LINE.fullmatch(at) if isinstance(at, str) else None
    if line:
        return _lines(core, others, Path(line[1]).name, int(line[2]))
    if isinstance(at, str) and re.fullmatch(r"[A-Za-z_]\w*", at):
        for group in ([core], others):
            found = [one for one in group if _entries(one, at)]
            if len(found) > 1:
                names = ", ".join(one.name for one in found)
                raise InputError(f"{at} is a function of several cores: {names}", hint="name one")
            if found:
                return [CodePlace(found[0], address) for address in _entries(found[0], at)]
    address = code_address(tile, core, at)
    holders = [one for one in (core, *others) if _holds(tile, one, address)]
    if not holders or holders[0].index == core.index:
        return [CodePlace(core, address)]
    if len(holders) > 1:
        names = ", ".join(one.name for one in holders)
        raise InputError(f"the code at {address:#x} is that of {names}", hint="name the core")
    return [CodePlace(holders[0], address, f"that is code of {holders[0].name}")]


def _entries(core: Core, name: str) -> list[int]:
    """Where function `name` of a core begins, its inlined copies included."""
    found = set()
    for symbols in core.images:
        if name in symbols.names:
            found.add(symbols.address(name))
        found.update(symbols.entries(name))
    return sorted(found)


def _holds(tile: Tile, core: Core, address: int) -> bool:
    """Whether an ELF of the core brought what lies at an address of L1."""
    mine = {symbols.path for symbols in core.images}
    return any(low <= address < high and Path(n).name in mine for low, high, n in tile.ranges)


def _lines(core: Core, others: Iterable[Core], file: str, line: int) -> list[CodePlace]:
    for one in (core, *others):
        found = [found for symbols in one.images if (found := symbols.line_places(file, line))]
        if found:
            number, addresses = min(found)
            note = "" if one.index == core.index else f"that is code of {one.name}"
            if number != line:
                note = f"{file}:{line} has no code, the next line that has some is {file}:{number}"
            return [CodePlace(one, address, note) for address in addresses]
    return [CodePlace(core, line_address(core, file, line))]  # which says that there is none
