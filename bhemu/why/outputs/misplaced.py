"""Who packs an element of an output that nothing has changed, or packs where no output is."""

from dataclasses import replace

from bhemu.errors import Where
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import transfer_of
from bhemu.program.outputs import OutputResult
from bhemu.program.tensor import bit_offset
from bhemu.tensix.insn import decode
from bhemu.why.check import Context
from bhemu.why.checks.formats import Operands
from bhemu.why.findings import Finding, place
from bhemu.why.walk import Walk, Word, where


class _Packs(Operands):
    """The first PACR that writes to no output, who set its address; the last one to `at`."""

    def __init__(self, context: Context, tile: Tile, at: int) -> None:
        super().__init__(context, tile)
        self._at = at
        self.first: Finding | None = None
        self.last: tuple[Where, int | None] | None = None

    def walk(self) -> Walk:
        """Every word."""
        return Walk(self.tile, before=self.before)

    def before(self, step: Word) -> None:
        """A word is about to execute."""
        cls = decode(step.word)
        name = "" if cls is None else cls.name
        self._follow(step, name)
        if name != "PACR":
            return
        does = transfer_of(self._tile.state, step.thread, step.word)
        if does is not None and does.first <= self._at < does.end:
            self.last = where(self._tile, step), step.clock
        if (
            does is None
            or self.first is not None
            or any(does.first < one.end and one.at < does.end for one in self._tensors[name])
        ):
            return
        word = where(self._tile, step)
        text = f"PACR writes to {does.first:#x}, where no output is"
        by = self._setter(step, "address") or word
        victim = place(word, step.clock)
        evidence = (f"the address was set by {by}",)
        culprit = place(by, None, self._tile)
        self.first = Finding("output", "error", text, culprit, victim, evidence, "")


def named(context: Context, result: OutputResult, found: Finding) -> Finding:
    """An output that nothing has changed, with what is packed there or elsewhere."""
    spec, report = result.spec, result.report
    if found.culprit or context.is_chip or report is None or report.first is None:
        return found
    at = resolve(context.tile, spec.at)
    at += bit_offset(report.first.index, spec.shape, spec.dtype, spec.layout) // 8
    _, looks = context.walked(lambda tile: _Packs(context, tile, at))
    other, last = looks[0].first, looks[0].last
    if last is not None:
        text = f"{found.text}; it was packed as what was there already"
        return replace(found, text=text, culprit=place(*last, context.tile))
    if other is None:
        return found
    text = f"{found.text}; nothing has written it, and {other.text}"
    evidence = (*found.evidence, *other.evidence)
    return replace(found, text=text, culprit=other.culprit, evidence=evidence)
