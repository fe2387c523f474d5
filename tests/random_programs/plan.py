"""A generated program: blocks of steps, how they become a case, and where results land."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bhemu.oracle.libttsim import Case
from bhemu.tensix import units
from bhemu.tensix.insn import Instruction, decode, disassemble, instructions

assert units, "importing the units fills the registry"
INSTRUCTIONS: dict[str, type[Instruction]] = {cls.name: cls for cls in instructions().values()}


@dataclass(frozen=True)
class Step:
    """Tensix words that belong together and what they exercise, for coverage.

    `key` is (mnemonic, mode, format); `words` are pushed in order.
    """

    words: tuple[int, ...]
    key: tuple[str, str, str]

    def __str__(self) -> str:
        return "; ".join(disassemble(word) for word in self.words)


def step(mnemonic: str, mode: str = "", form: str = "", /, **fields: int) -> Step:
    """A step of one instruction."""
    return Step((INSTRUCTIONS[mnemonic].assemble(**fields),), (mnemonic, mode, form))


def steps_of(words: Sequence[int], key: tuple[str, str, str] | None = None) -> Step:
    """A step of several words, named after the last one unless `key` says otherwise."""
    last = decode(words[-1])
    assert last is not None
    return Step(tuple(words), key or (last.name, "", ""))


Blocks = Sequence[Sequence[Step]]


@dataclass(frozen=True)
class Plan:
    """A program of (unit, seed, index): `emit` turns blocks, whole or cut short, into a case.

    `results` is how many values a comparison of the case compares; `explain` names the value at an
    L1 address.
    """

    unit: str
    seed: int
    index: int
    blocks: Blocks
    emit: Callable[[Blocks], Case]
    results: int
    explain: Callable[[int], str] = lambda address: f"L1 {address:#x}"

    @property
    def name(self) -> str:
        """How `bhemu diff --random` makes it again."""
        return f"{self.unit} --seed {self.seed} index {self.index}"

    @property
    def length(self) -> int:
        """Steps in all blocks."""
        return sum(len(block) for block in self.blocks)

    def case(self) -> Case:
        """The whole program."""
        return self.emit(self.blocks)

    def cut(self, length: int) -> Blocks:
        """The first `length` steps; later blocks are empty."""
        out, left = [], length
        for block in self.blocks:
            out.append(tuple(block[:left]))
            left = max(left - len(block), 0)
        return out

    def step_at(self, position: int) -> tuple[int, Step]:
        """Block number and step of a position among all steps."""
        for number, block in enumerate(self.blocks):
            if position < len(block):
                return number, block[position]
            position -= len(block)
        raise IndexError(position)
