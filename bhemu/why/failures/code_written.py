"""Code that the program has written over: a null pointer, an address that is another one's."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, spans
from bhemu.memmap import L1_SIZE
from bhemu.program.loader import Segment, read_elf
from bhemu.program.specs import Program
from bhemu.why.causes.chain import Chain
from bhemu.why.findings import Finding, in_words, likely, place

_KINDS = ("elf", "llk")  # of these the host leaves every ELF where it was linked to


def code_written(tile: Tile, program: Program) -> Iterator[Finding]:
    """Who has done so first in memory; `tile` stands at the end of a run, with its history."""
    if program.kind not in _KINDS or tile.loop.observer is None:
        return
    end = tile.clock
    for core, segment in _code(program):
        address = _changed(tile, core, segment)
        if address is None:
            continue
        last, clock = _last_change(tile, f"{address:#x}:4")
        with suppress(BhemuError), tile.history.replaying():
            tile.history.to(end)  # where the run may have ended in an error
        if last is None or last.where is None:
            continue
        symbol, file, line = tile.core[core].locate(address)
        what = f"{symbol} ({file}:{line})" if line else str(symbol)
        text = (
            f"{last.where.core} writes {last.after:#x} over code of {core} at {address:#x}, {what}"
        )
        who = place(last.where, clock, tile)
        yield Finding(
            "error", "error", text, who, {"place": f"L1 {address:#x}"},
            (f"the last change of it: {in_words(who)}",),
            "look at the address: a null pointer, an index beyond its array, another core's memory",
            likely("code written"),
        )  # fmt: skip
        return


def _last_change(tile: Tile, name: str) -> tuple[Change | None, int]:
    """The last change of a place, and when it was."""
    try:
        return Chain(tile).last_change(name, spans(tile, "brisc", name)), tile.clock
    except BhemuError:
        return None, 0


def _code(program: Program) -> Iterator[tuple[str, Segment]]:
    """Segments with code in L1, and whose they are."""
    for core, spec in program.cores.items():
        if spec.elf is None:
            continue
        for segment in read_elf(spec.elf).segments:
            if segment.executable and segment.vaddr + len(segment.data) <= L1_SIZE:
                if segment.vaddr == segment.paddr:
                    yield core, segment


def _changed(tile: Tile, core: str, segment: Segment) -> int | None:
    """The first instruction that is another one now; data beside the code may be."""
    size = len(segment.data) & ~3
    held = tile.state.l1[segment.vaddr : segment.vaddr + size].view("<u4")
    linked = np.frombuffer(segment.data[:size], "<u4")
    for n in np.flatnonzero(held != linked):
        address = segment.vaddr + 4 * int(n)
        if tile.core[core].locate(address)[2]:
            return address
    return None
