"""Where PROGRAM.toml gives the first value of a word of L1."""

from dataclasses import replace
from typing import Any

from bhemu.errors import Where
from bhemu.noc.grid import XY
from bhemu.program.schema import Program
from bhemu.why.check import Context
from bhemu.why.findings import place
from bhemu.why.toml_lines import TomlLines

_OTHER = 0x5A5A5A5A  # no program starts with it


def initial_value(context: Context, xy: XY, word: int) -> dict[str, Any] | None:
    """The line of the values or semaphores that give a word of tile `xy`; None: nothing does."""
    program = context.program
    if program.path is None or (found := _line(context, program, xy, word)) is None:
        return None
    return place(Where(file="PROGRAM.toml", line=found), None)


def _line(context: Context, program: Program, xy: XY, word: int) -> int | None:
    assert program.path is not None
    lines, sets = TomlLines(program.path), 0
    for number, part in enumerate(program.tiles):
        for one in part.sets:
            at = one.at if xy in part.at and isinstance(one.at, int) else word + 1
            if at <= word < at + len(one.data):
                return lines.written("tile.set", sets, "values", (word - at) // 4)[0]
            sets += 1
        if xy in part.at and _is_semaphore(context, number, xy, word):
            return lines.key("tile", number, "semaphores")
    return None


def _is_semaphore(context: Context, number: int, xy: XY, word: int) -> bool:
    """Whether the word is another one after a launch with other semaphores."""
    program = context.program
    part = program.tiles[number]
    if not part.semaphores:
        return False
    other = replace(part, semaphores=(_OTHER,) * len(part.semaphores))
    tiles = (*program.tiles[:number], other, *program.tiles[number + 1 :])
    changed = replace(context, program=replace(program, tiles=tiles), facts={})
    return bool(changed.launch().tile[xy].read32(word) == _OTHER)
