"""The check "stack": a stack that grows into the data of its core."""

import time
from collections.abc import Iterator, Sequence

from bhemu.core import Core
from bhemu.errors import BhemuError
from bhemu.machine.watching import Span
from bhemu.memmap import LOCAL_BASE, LOCAL_SIZES
from bhemu.program import elf
from bhemu.tensix.state import OFFSET
from bhemu.tile import Tile
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place

_SP = 2
_MOST, _SECONDS = 20_000, 6.0  # changes of sp that are looked at, and how long


def data_end(core: Core) -> int:
    """Where the data of a core's ELFs in its own memory end, as their segments say."""
    low, end = LOCAL_BASE, LOCAL_BASE
    for symbols in core.images:
        for one in elf.segments(symbols.data, symbols.path):
            if one.kind == "PT_LOAD" and low <= one.vaddr < low + LOCAL_SIZES[core.index]:
                end = max(end, one.vaddr + one.memsz)
    return end


def _pointer(core: Core) -> Span:
    """Where the record keeps a core's sp."""
    return Span(OFFSET["regs"] + 4 * (32 * core.index + _SP), 4)


def _overflow(tile: Tile, core: Core, end: int, until: float) -> Iterator[Finding]:
    top, low = LOCAL_BASE + LOCAL_SIZES[core.index], LOCAL_BASE
    start = 0
    with tile.machine.watched.alone(f"sp of {core.name}", (_pointer(core),)):
        for _ in range(_MOST):
            try:
                stop = tile.run()
            except BhemuError:
                return
            if stop.reason != "watchpoint" or stop.change is None or time.monotonic() > until:
                return
            now = stop.change.after
            if not start and low <= now <= top:
                start = now
                if start <= end:
                    return  # its ELF counts the stack among the data
            if start and now < end and (now >= low or start - now < 1 << 20):
                yield Finding(
                    "stack",
                    "error",
                    f"the stack of {core.name} grows to {now:#x}, {end - now} bytes into its data,"
                    f" which end at {end:#x}",
                    place(stop.change.where, stop.clock),
                    {"core": core.name},
                    (f"it began at {start:#x}: {start - end} bytes are free, {start - now} used",),
                    "use less of it: smaller arrays, no deep recursion; or move data to L1",
                    100,
                )
                return


def _applies(seen: Outcome) -> int:
    return 9


def _run(context: Context) -> Sequence[Finding]:
    if context.is_chip:
        return []
    found: list[Finding] = []
    until = time.monotonic() + _SECONDS
    for name in context.program.cores:
        tile = context.launch(engine="compiled")
        core = tile.core[name]
        if core.images:
            found += _overflow(tile, core, data_end(core), until)
    return found


CHECK = Check(
    name="stack",
    proves="that sp of a core went below the end of the data that its ELFs have in local memory;"
    " the culprit is the function whose frame did it",
    misses="stacks in L1, programs of a chip, frames that a function uses without moving sp",
    cost="one more run for each core, which stops at each change of sp (6 s at most)",
    applies=_applies,
    run=_run,
)
