"""What is packed to a place where no output is, while an output is not written."""

from dataclasses import replace

from bhemu.machine.operands import transfer_of
from bhemu.tensix.insn import decode
from bhemu.tile import Tile
from bhemu.why.check import Context
from bhemu.why.checks.formats import Operands
from bhemu.why.findings import Finding, place
from bhemu.why.walk import Walk, Word, where


class _Packs(Operands):
    """The first PACR that writes to no output, and who set its address."""

    def __init__(self, context: Context, tile: Tile) -> None:
        super().__init__(context, tile)
        self.first: Finding | None = None

    def walk(self) -> Walk:
        """Every word."""
        return Walk(self.tile, before=self.before)

    def before(self, step: Word) -> None:
        """A word is about to execute."""
        cls = decode(step.word)
        name = "" if cls is None else cls.name
        self._follow(step, name)
        if name != "PACR" or self.first is not None:
            return
        does = transfer_of(self._tile.state, step.thread, step.word)
        if does is None or any(
            does.first < one.end and one.at < does.end for one in self._tensors[name]
        ):
            return
        word = where(self._tile, step)
        text = f"PACR writes to {does.first:#x}, where no output is"
        by = self._setter(step, "address") or word
        victim = place(word, step.clock)
        evidence = (f"the address was set by {by}",)
        culprit = place(by, None, self._tile)
        self.first = Finding("output", "error", text, culprit, victim, evidence, "")


def named(context: Context, found: Finding) -> Finding:
    """What is said of an output that nothing has written, with what is packed elsewhere."""
    if found.culprit or context.is_chip:
        return found
    _, looks = context.walked(lambda tile: _Packs(context, tile))
    other = looks[0].first
    if other is None:
        return found
    text = f"{found.text}; nothing has written it, and {other.text}"
    evidence = (*found.evidence, *other.evidence)
    return replace(found, text=text, culprit=other.culprit, evidence=evidence)
