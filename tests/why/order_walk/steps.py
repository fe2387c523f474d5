"""A walk of one tile step by step: every instruction of a core as well."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.frontend import FROM_REPLAY
from bhemu.tensix.rules import DONE
from bhemu.why.steps import Instruction, Word

MOST = 150_000  # words of a walk


@dataclass(frozen=True)
class Access:
    """A load or store of a core: `value` is what a store writes, before its width cuts it."""

    address: int
    size: int
    reads: bool
    writes: bool
    value: int

    @property
    def private(self) -> bool:
        """Whether it goes to the core's own memory."""
        return LOCAL_BASE <= self.address < LOCAL_BASE + max(LOCAL_SIZES)


@dataclass(frozen=True)
class Executed(Instruction):
    """An instruction with x0-x31 before it."""

    regs: npt.NDArray[np.uint32]

    def access(self) -> Access | None:
        """Its load or store."""
        cls: Any = decode(self.word)
        if cls is None or not issubclass(cls, Load | Store | Atomic):
            return None
        offset = 0 if issubclass(cls, Atomic) else cls.imm.get(self.word)
        address = int(self.regs[cls.rs1.get(self.word)]) + offset & 0xFFFFFFFF
        writes = issubclass(cls, Store | Atomic)
        value = int(self.regs[cls.rs2.get(self.word)]) if writes else 0
        size = 4 if issubclass(cls, Atomic) else cls.size
        return Access(address, size, not issubclass(cls, Store), writes, value)


@dataclass(frozen=True)
class Taken(Word):
    """A word with its `origin` as `gate_from`, and how many words its thread has taken by then."""

    origin: int
    index: int


class Walk:
    """Sees the words of a launched tile (engine "compiled") that runs from now on.

    before(word): called while the tile stands before a word, with what it would execute; the value
    goes to after(word, value) once it has executed.
    """

    def __init__(
        self,
        tile: Tile,
        *,
        before: Callable[[Taken], Any] | None = None,
        after: Callable[[Taken, Any], None] | None = None,
    ) -> None:
        assert tile.engine == "compiled"
        self.tile, self.words = tile, 0  # that were looked at
        self._before, self._after = before, after
        tile.backend.table.observe(self._looks, self._executed)

    def _looks(self, t: int, word: int) -> tuple[Taken, Any]:
        s = self.tile.state
        self.words += 1
        index = int(s.fifo_read[t])
        pc, core, origin = int(s.gate_pc[t]), int(s.gate_core[t]), int(s.gate_from[t])
        pushed = int(s.play_pc[t]) if origin >= FROM_REPLAY else pc
        step = Taken(now(s), t, word, pc, core, pushed, origin, index)
        return step, self._before(step) if self._before else None

    def _executed(self, seen: tuple[Taken, Any], status: int) -> None:
        if status == DONE and self._after:
            self._after(*seen)


class StepWalk(Walk):
    """As Walk, which it runs; instruction(step): called behind an instruction of a core."""

    def __init__(
        self,
        tile: Tile,
        *,
        instruction: Callable[[Executed], None] | None = None,
        before: Callable[[Taken], Any] | None = None,
        after: Callable[[Taken, Any], None] | None = None,
    ) -> None:
        super().__init__(tile, before=before, after=after)
        self._instruction = instruction
        s = tile.state
        self._retired, self._pcs, self._regs = s.retired.copy(), s.pc.copy(), s.regs.copy()

    def run(self, most: int = MOST, until: str | None = None) -> bool:
        """To the end of the program or its error; False when that is more than `most` steps.

        until: "idle" goes on behind the program's own end.
        """
        try:
            if self._instruction is None:
                return self.tile.run(until, limit=16 * most).reason != "limit"
            for _ in range(most):
                reason = self.tile.run(until, limit=1).reason
                self._look(self._instruction)
                if reason != "limit":
                    return True
            return False
        except BhemuError:
            return True

    def _look(self, instruction: Callable[[Executed], None]) -> None:
        """Tell of the instructions that cores have executed since the last look, one of each."""
        s = self.tile.state
        for c in np.flatnonzero(s.retired != self._retired):
            pc = int(self._pcs[c])
            word = int.from_bytes(s.l1[pc : pc + 4].tobytes(), "little")
            instruction(Executed(now(s), int(c), pc, word, self._regs[c]))
        self._retired, self._pcs, self._regs = s.retired.copy(), s.pc.copy(), s.regs.copy()
