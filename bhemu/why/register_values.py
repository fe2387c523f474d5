"""Where the values of registers come from: who made each, from which loads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bhemu.errors import InputError
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE, LOCAL_BASE
from bhemu.noc.grid import XY
from bhemu.riscv.formats import Atomic, Branch, Csr, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.state import CORES
from bhemu.why.check import Context
from bhemu.why.walk import MOST, Access, ChipWalk, Instruction, Walk

_MOST = 8  # loads behind one value
_OPERANDS = {"a": "rs1", "b": "rs2"}


@dataclass(frozen=True)
class Made:
    """A value: the pc that computed it, and the pcs of the loads from L1 that it depends on.

    Copies between registers, and through a core's own memory, make no new value.
    """

    pc: int
    loads: frozenset[int] = frozenset()


_NOTHING = Made(0)


class Makers:
    """Who made the values that a tile's cores hold, and those that they store to devices.

    stop: asked before each instruction is followed; True ends the walk.
    """

    def __init__(
        self, tile: Tile, stop: Callable[[Instruction], bool] = lambda step: False
    ) -> None:
        self._tile, self._stop = tile, stop
        self.registers = [[_NOTHING] * 32 for _ in range(CORES)]
        self.stored: dict[tuple[int, int, int], tuple[Made, Made]] = {}  # by core, pc, address
        self.looked_up: dict[tuple[int, int], int] = {}  # by core and word of its own, who first
        self._memory: dict[tuple[int, int], Made] = {}

    def instruction(self, step: Instruction) -> None:
        """A core has executed an instruction."""
        if self._stop(step):
            raise InputError("what was looked for is found")
        cls: Any = decode(step.word)
        if cls is None or issubclass(cls, Branch):
            return
        registers, access = self.registers[step.core], step.access()
        if issubclass(cls, Store):
            assert access is not None
            value, base = registers[cls.rs2.get(step.word)], registers[cls.rs1.get(step.word)]
            self._store(step, access, value, base)
            return
        rd = cls.rd.get(step.word)
        if rd:
            registers[rd] = self._made(step, cls, access)

    def _store(self, step: Instruction, access: Access, value: Made, base: Made) -> None:
        if access.private:
            self._memory[step.core, access.address & ~3] = value
        elif access.address >= LOCAL_BASE:
            self.stored[step.core, step.pc, access.value & 0xFFFFFFFF] = value, base

    def _made(self, step: Instruction, cls: Any, access: Access | None) -> Made:
        if issubclass(cls, Load | Atomic) and access is not None:
            own = step.core, access.address & ~3
            held = self._memory.get(own) if access.private else None
            if access.private:
                self.looked_up.setdefault(own, int(step.pc))
            from_l1 = access.address < L1_SIZE
            loaded = Made(int(step.pc), frozenset((step.pc,) if from_l1 else ()))
            return loaded if held is None else held
        if issubclass(cls, Csr):
            return Made(step.pc)
        names = [_OPERANDS[one] for one in sorted(getattr(cls, "operands", ())) if one in _OPERANDS]
        numbers = [n for name in names if (n := getattr(cls, name).get(step.word))]
        inputs: list[Made] = [self.registers[step.core][n] for n in numbers]
        if cls.name == "addi" and inputs and cls.imm.get(step.word) == 0:
            return inputs[0]
        loads = sorted(frozenset().union(*(one.loads for one in inputs)))
        return Made(step.pc, frozenset(loads[:_MOST]))


def makers(context: Context, xy: XY, stop: Callable[[Instruction], bool]) -> Makers:
    """Follows one tile of the program from its launch until `stop`, or `MOST` steps."""
    machine = context.launch(engine="compiled", **context.alone)
    tile = machine.tile[xy] if context.is_chip else machine
    found = Makers(tile, stop)
    walk = Walk(tile, instruction=found.instruction)
    (ChipWalk(machine, [walk]) if context.is_chip else walk).run(MOST)
    return found
