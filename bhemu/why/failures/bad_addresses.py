"""An access to a wrong address, whose address comes from a word that somebody has overwritten."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from bhemu.errors import BhemuError
from bhemu.machine.watching import Change, spans
from bhemu.memmap import L1_SIZE
from bhemu.names import resolve
from bhemu.placing import data_of
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tile import Tile
from bhemu.why.causes.chain import Chain
from bhemu.why.causes.instructions import sources_of, window
from bhemu.why.check import Context
from bhemu.why.findings import Finding, in_words, place
from bhemu.why.likelihood import likely


def overwritten_address(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote what PROGRAM.toml sets there; the tile stands at the error, with a history."""
    where = None if error is None else error.where
    if where is None or context.is_chip or where.thread is not None or where.core is None:
        return
    tile = context.tile
    if where.core not in tile.core or tile.machine.observer is None:
        return
    given, end = list(_given(context, tile)), tile.clock
    found: list[Finding] = []
    with suppress(BhemuError):  # in which the run has ended
        for address in _loaded_from(tile, where.core):
            if not found and any(low <= address < high for low, high in given):
                tile.history.to(end)
                name = f"{address:#x}:4"
                change = Chain(tile).last_change(name, spans(tile, "brisc", name))
                if change is not None and change.where.core is not None:
                    found.append(_finding(tile, change, address, tile.clock, f"{where}"))
    with suppress(BhemuError), tile.history.replaying():
        tile.history.to(end)
    yield from found


def _given(context: Context, tile: Tile) -> Iterator[tuple[int, int]]:
    """L1 that [[set]] of PROGRAM.toml fills."""
    part = context.program.placed()[0]
    for spec in part.sets:
        at = resolve(tile, spec.at)
        yield at, at + len(data_of(spec, tile, part))


def _loaded_from(tile: Tile, name: str) -> Iterator[int]:
    """The words of L1 from which the address of the access comes at which a core stands."""
    executed = window(tile.history, tile.core[name])
    cls: Any = decode(executed[-1].word)
    if cls is None or not issubclass(cls, Load | Store | Atomic):
        return
    for one in sources_of(executed, cls.rs1.get(executed[-1].word)):
        if one.kind == "load" and one.address < L1_SIZE:
            yield one.address & ~3


def _finding(tile: Tile, change: Change, address: int, clock: int, reader: str) -> Finding:
    who = place(change.where, clock, tile)
    text = (
        f"{change.where.core} overwrites L1 {address:#x}, which PROGRAM.toml sets, with"
        f" {change.after:#x}: from there an address comes that cannot be accessed"
    )
    told = (f"the last change of it: {in_words(who)}", f"used by {reader}")
    return Finding(
        "error", "error", text, who, {"place": f"L1 {address:#x}"}, told,
        "leave the word to those who read it: look at the address of this store",
        likely("overwritten"),
    )  # fmt: skip
