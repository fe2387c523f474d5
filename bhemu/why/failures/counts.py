"""A hang in which a core waits for a count that is not reached: who made the number."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.machine import error_text
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc.grid import XY
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import BGE, BGEU, BLT, BLTU
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.order.sites import comparison
from bhemu.why.register_values import makers
from bhemu.why.walk import Instruction

_SEEN = 2  # waits that are followed


@dataclass(frozen=True)
class _Wait:
    """A core polls a word that holds `have`, by a branch that compares it with `register`."""

    xy: XY
    core: int
    pc: int
    address: int
    have: int
    branch: int
    register: int
    want: int


def unreached(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Of a hang: counts that others have begun and do not go on with."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    if graph is None:
        return
    machine, said = context.symptom.machine, set[tuple[int, int]]()
    for waiter in graph.waiters:
        where = waiter.where
        if waiter.kind != "l1":
            continue
        if context.is_chip and "last written over the NoC" not in waiter.history:
            continue
        tile = machine.tile[tuple(where["tile"])] if context.is_chip else machine
        core = CORE_NAMES.index(str(where["core"]))
        wait = _wait(tile, core, int(where["pc"]), int(waiter.resource["address"]))
        if wait is not None and not context.is_chip and not _is_ordered(tile, wait.branch):
            continue  # it may wait for a number that stands for something
        if wait is None or len(said) >= _SEEN or (core, wait.pc) in said:
            continue
        said.add((core, wait.pc))
        yield from _followed(context, tile, wait)


def _wait(tile: Tile, core: int, pc: int, address: int) -> _Wait | None:
    """What a core waits for at the load of a poll, if it is more than there is."""
    compared = comparison(tile.state.l1, pc)
    if compared is None or address & 3 or address >= L1_SIZE:
        return None
    branch, register = compared
    have = int(tile.state.l1.view("<u4")[address >> 2])
    want = int(tile.core[CORE_NAMES[core]].regs[register])
    more = register != 0 and 0 < have < want
    return _Wait(tile.xy, core, pc, address, have, branch, register, want) if more else None


def _is_ordered(tile: Tile, branch: int) -> bool:
    """Whether a branch asks which of two numbers is greater."""
    cls = decode(int(tile.state.l1.view("<u4")[branch >> 2]))
    return cls is not None and issubclass(cls, BLT | BGE | BLTU | BGEU)


def _followed(context: Context, tile: Tile, wait: _Wait) -> Iterator[Finding]:
    def arrived(step: Instruction) -> bool:
        here = (step.core, step.pc) == (wait.core, wait.branch)
        return here and int(step.regs[wait.register]) == wait.want

    made = makers(context, wait.xy, arrived).registers[wait.core][wait.register]
    if not made.pc:
        return
    who = error_text.where_core(tile, wait.core, made.pc)
    at = error_text.where_core(tile, wait.core, wait.pc)
    text = (
        f"{CORE_NAMES[wait.core]} waits until L1 {wait.address:#x} is {wait.want:#x}; others have"
        f" counted to {wait.have:#x}, and nobody goes on; the number was made here"
    )
    yield Finding("hang", "error", text, place(who, None, tile), place(at, None, tile), (), "")
