"""Steps of an observed run: instructions of cores, and Tensix words."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import NOP, SP
from bhemu.riscv.formats import Atomic, Branch, Fence, IndirectJump, Jump, Load, Pushed, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix.insn import decode, disassemble
from bhemu.why.findings import place, with_role


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


def made_step(pc: int, pushed: int, word: int, core: int, thread: int, time: int) -> Step:
    """The step of a core, or of a thread, at `pc`; as `step` of record.py has it."""
    if thread >= 0:
        return Word(time, thread, word, pc, core, pushed)
    return Instruction(time, core, pc, word)


def maker(step: Step) -> str:
    """The thread or core that makes a step: "T0", "brisc"."""
    return f"T{step.thread}" if isinstance(step, Word) else CORE_NAMES[step.core]


def where(tile: Tile, step: Step, *, pushed: bool = False) -> Where:
    """Place of a step, for messages; with `pushed` that of the REPLAY where it gave the word."""
    if isinstance(step, Instruction):
        return error_text.where_instruction(tile, step.core, step.pc)
    more = {"thread": step.thread, "word": step.word, "decoded": disassemble(step.word)}
    return error_text.where_core(tile, step.core, step.pushed if pushed else step.pc, **more)


# Code before an access that only lets time pass: a loop that counts, nops.

_CLOSE = 32  # instructions before an access
_NOPS = 4  # that follow one another let time pass


def delay_before(tile: Tile, step: Step) -> int | None:
    """The last pc of a loop that only counts, or of nops, shortly before a core's access."""
    if isinstance(step, Word) or step.core >= len(CORE_NAMES):
        return None
    core = tile.core[CORE_NAMES[step.core]]
    low = core.function(step.pc)[1] if core.locate(step.pc)[0] is not None else 0
    for pc in range(step.pc - 4, max(low + 4 * _NOPS, step.pc - 4 * _CLOSE) - 1, -4):
        if all(word == NOP for word in _words(tile, pc - 4 * _NOPS, pc)):
            return pc - 4
    for pc in range(step.pc - 4, max(low, step.pc - 4 * _CLOSE), -4):
        cls: Any = decode_riscv(word := tile.read32(pc)) or object
        if issubclass(cls, Branch) and (away := cls.offset.get(word)) < 0:
            return pc if all(map(_counts, _words(tile, pc + away, pc))) else None
    return None


def _words(tile: Tile, low: int, high: int) -> list[int]:
    return [tile.read32(pc) for pc in range(low, high, 4)]


def _counts(word: int) -> bool:
    """Whether an instruction only computes, or accesses the stack."""
    cls = decode_riscv(word)
    if cls is None or issubclass(cls, Jump | IndirectJump | Pushed | Fence | Atomic):
        return False
    return not issubclass(cls, Load | Store) or word >> 15 & 31 == SP


class Act(NamedTuple):
    """A step of a tile: an access, or an act that lets others go on."""

    tile: Tile
    step: Step

    def __str__(self) -> str:
        return f"at clock {self.step.clock}: {where(self.tile, self.step)}"

    @property
    def where(self) -> Where:
        """Its place; for a word that a REPLAY plays the place of the REPLAY."""
        return where(self.tile, self.step, pushed=True)

    def placed(self) -> dict[str, Any]:
        """Its place and clock, as a culprit or victim."""
        return place(self.where, self.step.clock, self.tile)

    @property
    def name(self) -> str:
        """The word, or "a load", "a store"."""
        if isinstance(self.step, Word):
            cls = decode(self.step.word)
            return "a word" if cls is None else cls.name
        word = self.step.word or self.tile.read32(self.step.pc)  # 0: only its place was kept
        return "a store" if issubclass(decode_riscv(word) or object, Store | Atomic) else "a load"


NOTHING = "nothing makes it"
"""The beginning of a reason: what the act does not do."""
OLD = "what an earlier wait has waited for"
"""The end of a reason: what a polled word still holds."""
SET_BACK = "set the word back before it may be changed again, or count"


class Blame(NamedTuple):
    """An act that is wrong, the reason, and the advice; `either`: it, or the one on the other side.

    The reason follows "..., " and is "for ..." or "because ...", or a sentence that has no subject
    but NOTHING; of `either` it stands alone.
    """

    act: Act
    text: str
    advice: str
    either: bool = False

    def placed(self) -> tuple[Where, str]:
        """Its place and the text; or those of a loop before it that only lets time pass."""
        (tile, step), text = self.act, self.text
        if (loop := delay_before(tile, step)) is None:
            return self.act.where, text
        at = error_text.where_core(tile, step.core, loop)
        return at, f"{text}, but a loop that lets some time pass"

    def culprit(self, tile: Tile | None = None) -> dict[str, Any]:
        """Its place and clock; tile: as in `place`."""
        found = place(self.placed()[0], self.act.step.clock, tile)
        return with_role(found, "one of both") if self.either else found

    def told(self, who: str) -> str:
        """What is wrong with `who`, in words."""
        text = self.placed()[1]
        if text.startswith(NOTHING):
            return text.replace(NOTHING, f"nothing makes {who}")
        return text if self.either else f"{who} is wrong, {text}"
