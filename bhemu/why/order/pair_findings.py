"""Findings of unordered accesses: their lines, and the late runs that show them."""

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import NamedTuple

from bhemu.errors import Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.riscv.formats import Atomic, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix.insn import decode
from bhemu.why.check import Context
from bhemu.why.findings import Finding
from bhemu.why.order.delays import delay_before
from bhemu.why.steps import Step, Word, where
from bhemu.why.witness import Pair, witnessed

SEEN = 3
"""Findings of a check at most: later ones are mostly consequences."""


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

    @property
    def name(self) -> str:
        """The word, or "a load", "a store"."""
        if isinstance(self.step, Word):
            cls = decode(self.step.word)
            return "a word" if cls is None else cls.name
        stores = issubclass(decode_riscv(self.step.word) or object, Store | Atomic)
        return "a store" if stores else "a load"


class Blame(NamedTuple):
    """An act that is wrong, the reason, and the advice."""

    act: Act
    text: str
    advice: str

    def placed(self) -> tuple[Where, str]:
        """Its place and the text; or those of a loop before it that only lets time pass."""
        (tile, step), text = self.act, self.text
        if (loop := delay_before(tile, step)) is None:
            return self.act.where, text
        at = where_core(tile, step.core, loop)
        return at, f"{text}, but a loop that lets some time pass"


class PairFinding(NamedTuple):
    """A finding, and the pair whose order a late run may show to matter."""

    finding: Finding
    pair: Pair


def with_late_runs(
    context: Context, pairs: Iterable[tuple[Hashable, PairFinding]]
) -> list[Finding]:
    """The first of each key, at most SEEN of them, each with the late run that shows it."""
    first: dict[Hashable, PairFinding] = {}
    for key, one in pairs:
        first.setdefault(key, one)
    return [witnessed(context, *one) for one in islice(first.values(), SEEN)]
