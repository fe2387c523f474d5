"""A run one step at a time: every instruction of a core and every Tensix word, in their order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, Where
from bhemu.machine import error_text
from bhemu.machine.machine import Chip
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, LOCAL_BASE, LOCAL_SIZES
from bhemu.noc.rounds import CHIP_TILES
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.frontend import FROM_REPLAY
from bhemu.tensix.insn import disassemble
from bhemu.tensix.rules import DONE
from bhemu.tensix.stops import STOP_LIMIT, STOP_TIME

MOST = 150_000  # steps of a walk, some 6 s
_PAUSES = {STOP_LIMIT, STOP_TIME}
_LOOK = 64  # steps between looks at whether a chip is done


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

    `index`: how many words the thread had taken from its FIFO by then; `pushed` as `pc`, but of a
    word that a REPLAY gave that of the REPLAY.
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


def maker(step: Step) -> str:
    """The thread or core that makes a step: "T0", "brisc"."""
    return f"T{step.thread}" if isinstance(step, Word) else CORE_NAMES[step.core]


def where(tile: Tile, step: Step, *, pushed: bool = False) -> Where:
    """Place of a step, for messages; with `pushed` that of the REPLAY where it gave the word."""
    if isinstance(step, Instruction):
        return error_text.where_core(
            tile, step.core, step.pc, **error_text.instruction(tile, step.pc)
        )
    more = {"thread": step.thread, "word": step.word, "decoded": disassemble(step.word)}
    return error_text.where_core(tile, step.core, step.pushed if pushed else step.pc, **more)


class Walk:
    """Runs a launched tile (engine "compiled") to its end, step by step.

    before(word): called while the tile stands before a word, with what it would execute; the value
    goes to after(word, value) once it has executed. instruction(step): after an instruction of a
    core; without it only words are looked at, and the run is that much faster. A tile of a chip is
    walked by a ChipWalk.
    """

    def __init__(
        self,
        tile: Tile,
        *,
        instruction: Callable[[Instruction], None] | None = None,
        before: Callable[[Word], Any] | None = None,
        after: Callable[[Word, Any], None] | None = None,
    ) -> None:
        assert tile.engine == "compiled"
        self.tile, self._instruction = tile, instruction
        self.instructions = self.words = 0  # that were looked at
        self._before, self._after = before, after
        s = tile.state
        self._retired, self._pcs, self._regs = s.retired.copy(), s.pc.copy(), s.regs.copy()
        if before or after:
            tile.backend.table.observe(self._looks, self._executed)

    @property
    def stepwise(self) -> bool:
        """Whether every instruction is looked at."""
        return self._instruction is not None

    def _looks(self, t: int, word: int) -> tuple[Word, Any]:
        s = self.tile.state
        self.words += 1
        index = int(s.fifo_read[t])
        pc, core, origin = int(s.gate_pc[t]), int(s.gate_core[t]), int(s.gate_from[t])
        pushed = int(s.play_pc[t]) if origin >= FROM_REPLAY else pc
        step = Word(now(s), t, word, pc, core, origin, index, pushed)
        return step, self._before(step) if self._before else None

    def _executed(self, seen: tuple[Word, Any], status: int) -> None:
        if status == DONE and self._after:
            self._after(*seen)

    def run(self, most: int = MOST, until: str | None = None) -> bool:
        """To the end of the program or its error; False when that is more than `most` steps.

        until: "idle" goes on behind the program's own end.
        """
        try:
            if not self.stepwise:
                return self.tile.run(until, limit=16 * most).reason != "limit"
            for _ in range(most):
                reason = self.tile.run(until, limit=1).reason
                self.look()
                if reason != "limit":
                    return True
            return False
        except BhemuError:
            return True

    def look(self) -> None:
        """Tell of the instructions that cores have executed since the last look, one of each."""
        s = self.tile.state
        assert self._instruction is not None
        changed = np.flatnonzero(s.retired != self._retired)
        if not changed.size:
            return
        self.instructions += changed.size
        for c in changed:
            pc = int(self._pcs[c])
            word = int.from_bytes(s.l1[pc : pc + 4].tobytes(), "little")
            self._instruction(Instruction(now(s), int(c), pc, word, self._regs[c]))
        self._retired, self._pcs, self._regs = s.retired.copy(), s.pc.copy(), s.regs.copy()


def walk_all(machine: Any, walks: Sequence[Walk], most: int = MOST) -> bool:
    """Walk.run of some tiles of a machine; `most` steps of each."""
    if machine is walks[0].tile:
        return walks[0].run(most)
    return ChipWalk(machine, walks).run(most)


class ChipWalk:
    """Runs a launched chip to its end; `walks` see each step of their tiles."""

    def __init__(self, chip: Chip, walks: Sequence[Walk]) -> None:
        self._chip, self._walks = chip, walks
        self._numbers = [chip.number_of(walk.tile.xy) for walk in walks]

    def run(self, most: int = MOST) -> bool:
        """As Walk.run; `most` steps of each tile."""
        try:
            if not any(walk.stepwise for walk in self._walks):
                return self._chip.run(limit=16 * most).reason != "limit"
            return self._steps(most)
        except BhemuError:
            return True
        finally:
            self._chip.loop.rounds.tile_limits.clear()
            for walk in self._walks:
                walk.tile.state.limit[0] = -1

    def _steps(self, most: int) -> bool:
        ends, session = self._chip.loop.end.words, self._chip.loop.host is not None
        limits = self._chip.loop.rounds.tile_limits
        stepwise = [walk for walk in self._walks if walk.stepwise]
        for number in range(most):
            for walk in stepwise:
                walk.tile.state.limit[0] = now(walk.tile.state) + 1
                limits[walk.tile.number] = now(walk.tile.state) + 1
            if number and not session:
                reason = self._along()
            else:  # of a session the host goes on as well, and ends it
                reason = self._chip.run(None if session else "idle").reason
            for walk in stepwise:
                walk.look()
            if ends and number % _LOOK == 0:
                if self._chip.loop.holds(ends):
                    return True
            if reason != "limit":
                return True
        return False

    def _along(self) -> str:
        """As chip.run to the limits of the tiles, without what only other stops need."""
        chip = self._chip
        state = chip.network.state
        status = chip.network.call("run_rounds", 1)
        for walk in self._walks:
            walk.tile.backend.surface()
        stopped = state.stopped[state.stopped != 0]
        if status == CHIP_TILES and _PAUSES.issuperset(stopped.tolist()):
            state.stopped[:] = 0
            for number, walk in zip(self._numbers, self._walks, strict=True):
                s = walk.tile.state
                if walk.stepwise and s.agent[0] == 0 and s.turn_open[0] == 0:
                    state.due[number] = 0  # the limit was the end of its round
            return "limit"
        if status == 0:
            return "limit"
        reason = chip.run(
            "idle", rounds=1
        ).reason  # a page is made; what comes next is the next step
        return "limit" if reason == "rounds" else reason
