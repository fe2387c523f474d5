"""Steps of an observed run: instructions of cores, and Tensix words."""

from dataclasses import dataclass

from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.insn import disassemble


@dataclass(frozen=True)
class Instruction:
    """An instruction that core 0-4 has executed."""

    clock: int
    core: int
    pc: int
    word: int


@dataclass(frozen=True)
class Word:
    """A Tensix word of thread 0-2 that `core` pushed at `pc`.

    `pushed`: the same as `pc`, but the REPLAY's pc for a word that a REPLAY plays.
    """

    clock: int
    thread: int
    word: int
    pc: int
    core: int
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
