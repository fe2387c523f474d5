"""What a run that hangs waits for: lines that wait, words of L1 that are polled."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.hang.stores import code_stores
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.asm import li, sw
from bhemu.tile import Tile
from bhemu.why.repair.edits import Edit, moves
from bhemu.why.repair.sites import Code, Site

_NEAR = 64  # bytes: words that belong together


@dataclass(frozen=True)
class Waits:
    """Of a hang; nothing for any other end of a run.

    `lines`: (core, file, line) of who waits; `polled`: (core, address, values that the core holds).
    """

    lines: frozenset[tuple[Any, ...]] = frozenset()
    polled: tuple[tuple[int, int, tuple[int, ...]], ...] = ()


def waits_of(error: BhemuError | None, tile: Tile) -> Waits:
    """Who waits in the hang in which `tile` stands."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    lines, polled = set(), []
    for waiter in () if graph is None else graph.waiters:
        where = waiter.where
        lines.add((where.get("core"), where.get("file"), where.get("line")))
        for call in where.get("inlined", ()):
            lines.add((where.get("core"), call["file"], call["line"]))
        if waiter.kind == "l1" and waiter.who in CORE_NAMES:
            values = sorted({int(n) for n in tile.core[waiter.who].regs[1:]} - {0})
            number = CORE_NAMES.index(waiter.who)
            polled.append((number, waiter.resource["address"] & ~3, tuple(values)))
    return Waits(frozenset(lines), tuple(polled))


def flags(code: Code, sites: list[Site], tile: Tile, waits: Waits) -> Iterator[Edit]:
    """A polled word of L1 stored behind the last line of another core."""
    last: dict[int, Site] = {}
    for site in sites:
        if site.core not in last or site.last > last[site.core].last:
            last[site.core] = site
    for poller, address, values in waits.polled:
        for core, site in last.items():
            held, free = code.words[core], code.free_registers(core)
            if core == poller or len(free) < 2 or not moves(held[site.pc]):
                continue
            near = range(address - _NEAR, address + _NEAR)
            has_own = any(at in near for at in code_stores(tile, core).stores)
            for value in values:
                words = (*li(free[-1], address), *li(free[-2], value), sw(free[-2], free[-1]))
                text = f"a store of {value:#x} to {address:#x} is missing behind this"
                code_of = ((site.pc, (held[site.pc], *words)),)
                yield Edit(core, code_of, text, 1.4 if has_own else 1.2)
