"""What a core leaves: its stack the memory that is free, its pc the code of its ELFs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, Where
from bhemu.jit.subset import JIT
from bhemu.machine.core import Core
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.memmap import CORE_NAMES, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import elf
from bhemu.riscv.assembly import SP
from bhemu.tensix.state import OFFSET
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, merged, place
from bhemu.why.order.conflicts import observed
from bhemu.why.order.observe import is_own
from bhemu.why.walk import Instruction, where

_MOST = 20_000  # changes of sp that are looked at: 0.5 s, of a chip of 140 tiles 10 s


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
    return Span(OFFSET["regs"] + 4 * (32 * core.index + SP), 4)


@dataclass
class _Stack:
    """The stack of a core while it runs."""

    tile: Tile
    core: Core
    end: int  # of the data
    start: int = 0  # where it began, the highest that sp has been; 0 = not known yet
    told: bool = False

    def moved(self, to: int) -> bool:
        """sp is now `to`: whether that is, for the first time, within the data."""
        low = LOCAL_BASE
        if low <= to <= low + LOCAL_SIZES[self.core.index]:
            self.start = max(self.start, to)  # two instructions may set it up
        if self.told or self.start <= self.end:  # its ELF may count the stack among the data
            return False
        self.told = to < self.end and (to >= low or self.start - to < 1 << 20)
        return self.told

    def finding(self, now: int, where: Where, clock: int) -> Finding:
        """That sp went to `now`."""
        free, used = self.start - self.end, self.start - now
        return Finding(
            "stack",
            "error",
            f"the stack of {self.core.name} grows to {now:#x}, {self.end - now} bytes into its"
            f" data, which end at {self.end:#x}",
            place(where, clock, self.tile),
            {"core": self.core.name},
            (f"it began at {self.start:#x}: {free} bytes are free, {used} used",),
            "use less of it: smaller arrays, no deep recursion; or move data to L1",
        )


def _stacks(context: Context, tile: Tile) -> dict[str, _Stack]:
    """Those of the cores that the program uses, by what their watchpoints are called."""
    names = context.part(tile).cores
    cores = [tile.core[name] for name in names if tile.core[name].images]
    return {f"sp of {core.name}": _Stack(tile, core, data_end(core), _held(core)) for core in cores}


def _held(core: Core) -> int:
    """sp as a core has it that firmware has started; 0 before it has one."""
    sp = int(core.regs[SP])
    return sp if LOCAL_BASE < sp <= LOCAL_BASE + LOCAL_SIZES[core.index] else 0


def _run(context: Context) -> Sequence[Finding]:
    machine = context.launch(engine="compiled")
    tiles = {tile.xy: _stacks(context, tile) for tile in context.tiles(machine)}
    for tile in context.tiles(machine):
        for name, stack in tiles[tile.xy].items():
            tile.stepping.watched.add(name, (_pointer(stack.core),))
    return merged([_overflows(machine, tiles, int(machine.clock) + context.most)])


def _overflows(machine: Any, tiles: dict[Any, dict[str, _Stack]], end: int) -> Iterator[Finding]:
    """Runs on from each change of an sp to the next, at most to the clock `end`."""
    for _ in range(_MOST):
        try:
            stop = machine.run(limit=max(end - int(machine.clock), 1))
        except BhemuError:
            return
        change = stop.change
        if stop.reason != "watchpoint" or change is None:
            return
        stack = tiles[change.where.tile][change.watchpoint.text]
        if stack.moved(change.after):
            yield stack.finding(change.after, change.where, stop.clock)


CHECK = Check(
    name="stack",
    proves="that sp of a core went below the end of the data that its ELFs have in local memory;"
    " the culprit is the function whose frame did it",
    misses="stacks in L1, frames that a function uses without moving sp; what comes after 20,000"
    " changes of an sp",
    cost="one more run, which stops at each change of an sp (0.03 ms each, 0.1 ms on 16 tiles)",
    applies=lambda seen: 9,
    run=_run,
)


# A core that executes what is not its own code.


_KINDS = ("elf", "llk")  # of these every core has its own ELF


def _astray(tile: Tile) -> list[int]:
    """Cores that stand in what none of their ELFs holds."""
    cores = [tile.core[name] for name in CORE_NAMES]
    return [c for c, core in enumerate(cores)
            if core.images and core.retired and not is_own(tile, c, core.pc)]  # fmt: skip


def _jumps(context: Context) -> Sequence[Finding]:
    tiles = context.tiles(context.symptom.machine)
    if context.program.kind not in _KINDS or not any(map(_astray, tiles)):
        return []
    return merged([_left(seen.tile, *one) for one in seen.left] for seen in observed(context))


def _left(tile: Tile, step: Instruction, target: int) -> Finding:
    at: Where = where(tile, step)
    text = f"{at.core} leaves its own code: it goes on at {target:#x}, which no ELF of it holds"
    return Finding(
        "jumps", "error", text, place(at, step.clock, tile), {"place": f"L1 {target:#x}"},
        (f"the jump: {at}",), "look at the function pointer, or who overwrote the return address",
    )  # fmt: skip


JUMPS = Check(
    "jumps",
    proves="that a core went on outside all of its ELFs: a wrong function pointer, a return address"
    " that was overwritten",
    misses="code that another core has written; kernels under firmware; of a chip of more than 64"
    " tiles all but 32",
    cost="the observed run of `races`, where a core stands outside its ELFs",
    applies=lambda seen: 0 if seen.fine or not JIT else 85,
    run=_jumps,
)
