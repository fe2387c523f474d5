"""Steps of a run: instructions of cores, Tensix words, which a walk looks at as they execute."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.frontend import FROM_REPLAY
from bhemu.tensix.insn import disassemble
from bhemu.tensix.rules import DONE

MOST = 150_000  # words of a walk, some 6 s


@dataclass(frozen=True)
class Instruction:
    """An instruction that core 0-4 has executed."""

    clock: int
    core: int
    pc: int
    word: int


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
    """Sees the words of a launched tile (engine "compiled") that runs from now on.

    before(word): called while the tile stands before a word, with what it would execute; the value
    goes to after(word, value) once it has executed.
    """

    def __init__(
        self,
        tile: Tile,
        *,
        before: Callable[[Word], Any] | None = None,
        after: Callable[[Word, Any], None] | None = None,
    ) -> None:
        assert tile.engine == "compiled"
        self.tile, self.words = tile, 0  # that were looked at
        self._before, self._after = before, after
        tile.backend.table.observe(self._looks, self._executed)

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
