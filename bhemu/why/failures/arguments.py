"""Words that PROGRAM.toml sets and a core writes over, which would make the run right."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from bhemu.errors import BhemuError
from bhemu.launch.session import data_of
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, spans
from bhemu.riscv.assembly import NOP
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.why.causes.chain import Chain
from bhemu.why.check import Context
from bhemu.why.findings import Finding, in_words, likely, place

_MOST = 4  # stores that are left out


def overwritten_arguments(context: Context) -> Iterator[Finding]:
    """Who has written over a word of [[set]], where without that store all outputs are right.

    `context.tile` stands at the end of a run that went wrong, with its history.
    """
    if context.symptom.fine or context.is_chip or not context.program.outputs:
        return
    tile = context.tile
    if tile.loop.observer is None:
        return
    tried = set[int]()
    for address in _changed(context, tile):
        change, clock = _last_change(tile, address)
        where = None if change is None else change.where
        if change is None or where is None or where.thread is not None or where.pc is None:
            continue
        cls = decode(tile.read32(where.pc))
        if where.pc in tried or len(tried) == _MOST or cls is None or not issubclass(cls, Store):
            continue
        tried.add(where.pc)
        if context.again(_without(where.pc)).fine:
            yield _finding(tile, change, address, clock)
            return


def _changed(context: Context, tile: Tile) -> Iterator[int]:
    """Words of [[set]] that hold something else now."""
    part = context.program.placed()[0]
    for spec in part.sets:
        at, data = resolve(tile, spec.at), data_of(spec, tile, part)
        if at % 4 == 0 and at + len(data) <= len(tile.state.l1):
            given = np.frombuffer(data[: len(data) & ~3], "<u4")
            held = tile.state.l1.view("<u4")[at // 4 :][: len(given)]
            yield from (at + 4 * int(n) for n in np.flatnonzero(given != held))


def _last_change(tile: Tile, address: int) -> tuple[Change | None, int]:
    """The last change of a word, and when it was; the tile goes back to where it stood."""
    end, name, change, clock = tile.clock, f"{address:#x}:4", None, 0
    with suppress(BhemuError):  # in which the run may have ended
        change = Chain(tile).last_change(name, spans(tile, "brisc", name))
        clock = tile.clock
    with suppress(BhemuError), tile.history.replaying():
        tile.history.to(end)
    return change, clock


def _without(pc: int) -> Callable[[Tile], None]:
    return lambda tile: tile.write(pc, NOP.to_bytes(4, "little"))


def _finding(tile: Tile, change: Change, address: int, clock: int) -> Finding:
    who = place(change.where, clock, tile)
    text = f"{change.where.core} overwrites L1 {address:#x}, which PROGRAM.toml sets to"
    text += f" {change.before:#x}, with {change.after:#x}"
    told = (f"the last change of it: {in_words(who)}", "without this store all outputs are right")
    return Finding(
        "program", "error", text, who, {"place": f"L1 {address:#x}"}, told,
        "leave the word to those who read it: look at the address of this store",
        likely("overwritten"),
    )  # fmt: skip
