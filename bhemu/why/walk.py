"""A run one step at a time: every instruction of a core and every Tensix word, in their order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import report
from bhemu.chip import Chip
from bhemu.errors import BhemuError, Where
from bhemu.machine.stop import now
from bhemu.memmap import LOCAL_BASE
from bhemu.noc.rounds import CHIP_TILES
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.insn import disassemble
from bhemu.tensix.state import FIFO_DEPTH
from bhemu.tensix.status import DONE
from bhemu.tensix.stops import STOP_LIMIT, STOP_TIME
from bhemu.tile import Tile

MOST = 150_000  # steps of a walk, some 6 s
_PAUSES = (STOP_LIMIT, STOP_TIME)
_LOOK = 64  # steps of a tile between looks at whether its chip is done


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
        return LOCAL_BASE <= self.address < LOCAL_BASE + 0x2000


@dataclass(frozen=True)
class Instruction:
    """An instruction that core 0-4 has executed; `regs`: x0-x31 before it."""

    clock: int
    core: int
    pc: int
    word: int
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
class Word:
    """A Tensix word of thread 0-2 that `core` pushed at `pc`; `origin` as `gate_from`.

    `index`: how many words the thread had taken from its FIFO by then, `pushed` the pc that pushed
    the last of them: where a MOP or REPLAY gave the word, that is its place.
    """

    clock: int
    thread: int
    word: int
    pc: int
    core: int
    origin: int
    index: int
    pushed: int


Step = Instruction | Word


def where(tile: Tile, step: Step, *, pushed: bool = False) -> Where:
    """Place of a step, for messages; with `pushed` that of the REPLAY where it gave the word."""
    if isinstance(step, Instruction):
        return report.where_core(tile, step.core, step.pc, **report.instruction(tile, step.pc))
    more = {"thread": step.thread, "word": step.word, "decoded": disassemble(step.word)}
    return report.where_core(tile, step.core, step.pushed if pushed else step.pc, **more)


class Walk:
    """Runs a launched tile (engine "compiled") to its end, step by step.

    before(word): called while the tile stands before a word, with what it would execute; the value
    goes to after(word, value) once it has executed. instruction(step): after an instruction of a
    core; without it only words are looked at, and the run is that much faster. chip: that of the
    tile, which runs along.
    """

    def __init__(
        self,
        tile: Tile,
        *,
        instruction: Callable[[Instruction], None] | None = None,
        before: Callable[[Word], Any] | None = None,
        after: Callable[[Word, Any], None] | None = None,
        chip: Chip | None = None,
    ) -> None:
        assert tile.engine == "compiled"
        self._tile, self._instruction, self._chip = tile, instruction, chip
        self._before, self._after = before, after
        self._number = 0 if chip is None else chip.number_of(tile.xy)
        if before or after:
            tile.backend.table.observe(self._looks, self._executed)

    def _looks(self, t: int, word: int) -> tuple[Word, Any]:
        s = self._tile.state
        index = int(s.fifo_read[t])
        pushed = int(s.fifo_pc[t, (index - 1) % FIFO_DEPTH])
        how = int(s.gate_pc[t]), int(s.gate_core[t]), int(s.gate_from[t])
        step = Word(now(s), t, word, *how, index, pushed)
        return step, self._before(step) if self._before else None

    def _executed(self, seen: tuple[Word, Any], status: int) -> None:
        if status == DONE and self._after:
            self._after(*seen)

    def run(self, most: int = MOST, until: str | None = None) -> bool:
        """To the end of the program or its error; False when that is more than `most` steps.

        until: "idle" goes on behind the program's own end.
        """
        tile = self._tile
        try:
            if self._instruction is None:
                return tile.run(until, limit=16 * most).reason != "limit"
            return self._steps(most, until)
        except BhemuError:
            return True

    def _steps(self, most: int, until: str | None) -> bool:
        s = self._tile.state
        assert self._instruction is not None
        retired, pcs, regs = s.retired.copy(), s.pc.copy(), s.regs.copy()
        for number in range(most):
            reason = self._step(until, number)
            for c in np.flatnonzero(s.retired != retired):
                pc = int(pcs[c])
                word = int.from_bytes(s.l1[pc : pc + 4].tobytes(), "little")
                self._instruction(Instruction(now(s), int(c), pc, word, regs[c]))
            retired, pcs, regs = s.retired.copy(), s.pc.copy(), s.regs.copy()
            if reason != "limit":
                return True
        return False

    def _step(self, until: str | None, number: int) -> str:
        """One instruction or word; why the run stopped."""
        if self._chip is None:
            return self._tile.run(until, limit=1).reason
        s = self._tile.state
        s.limit[0] = now(s) + 1
        try:
            reason = self._along(self._chip) if number else self._chip.run("idle").reason
        finally:
            s.limit[0] = -1
        ends = self._chip.end.words
        if until is None and ends and number % _LOOK == 0:
            if all(self._chip.read32(*xy, at) == want for xy, at, want in ends):
                return "until"
        return reason

    def _along(self, chip: Chip) -> str:
        """As chip.run to the limit of the tile, without what only other stops need."""
        state = chip.network.state
        status = chip.network.call("run_rounds", 1)
        self._tile.backend.surface()
        stopped = state.stopped[(state.due != 0) & (state.stopped != 0)]
        if status == CHIP_TILES and np.isin(stopped, _PAUSES).all():
            state.stopped[:] = 0
            s = self._tile.state
            if s.agent[0] == 0 and s.turn_open[0] == 0:  # the limit was the end of its round
                state.due[self._number] = 0
            return "limit"
        return "limit" if status == 0 else chip.run("idle").reason
