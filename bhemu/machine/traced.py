"""Executed Tensix words as a user reads them: what, by which thread, pushed from where."""

from dataclasses import dataclass

from bhemu.parts import Source, TilePart
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.insn import decode, disassemble

_TEXT_WIDTH = 72
Entry = tuple[int, int, int, int]


@dataclass(frozen=True, repr=False)
class TracedWord:
    """One executed word: its number in the run, thread 0-2, pc that pushed it, and its origin.

    `origin` is "push", "mop" or "replay" (then `slot` is the slot of the replay buffer); for a
    recorded word `pc` is where the recorded one came from. `function`, `file` and `line` belong to
    `pc` and are None where no ELF knows them.
    """

    number: int
    thread: int
    word: int
    pc: int
    origin: str
    slot: int | None
    function: str | None
    file: str | None
    line: int | None

    @property
    def text(self) -> str:
        """Mnemonic and non-zero fields."""
        return disassemble(self.word)

    @property
    def place(self) -> str:
        """For example "main+0x4 math.c:22", "" where unknown."""
        source = f"{self.file}:{self.line}" if self.file else ""
        return " ".join(part for part in (self.function or "", source) if part)

    def as_text(self, bits: bool = False) -> str:
        """One line of text; with `bits` the word itself as well."""
        origin = {"push": "", "mop": "MOP"}.get(self.origin, f"REPLAY {self.slot}")
        shown = f"{self.word:08x}  " if bits else ""
        text = f"{self.number:>7}  T{self.thread}  0x{self.pc:08X}  {origin:<9}  {shown}{self.text}"
        return f"{text:<{_TEXT_WIDTH + len(shown)}}  {self.place}" if self.place else text

    def __repr__(self) -> str:
        return f"<TracedWord {' '.join(self.as_text().split())}>"

    __str__ = as_text

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; what is unknown is left out."""
        cls = decode(self.word)
        known = {**vars(self), "mnemonic": None if cls is None else cls.name, "text": self.text}
        return {name: value for name, value in known.items() if value is not None}


class Places:
    """Function and source line of a pc, from the ELFs of all cores (they share L1)."""

    def __init__(self, tile: TilePart) -> None:
        self._cores = tuple(tile.core.values())
        self._known: dict[int, Source] = {}

    def __call__(self, pc: int) -> Source:
        """(function+offset, file, line)."""
        if pc not in self._known:
            found = (core.locate(pc) for core in self._cores)
            nowhere: Source = (None, None, None)
            self._known[pc] = next((place for place in found if place[0]), nowhere)
        return self._known[pc]

    def word(self, number: int, entry: Entry) -> TracedWord:
        """The word that stands `number`-th in the run, from its entry in the trace ring."""
        thread, bits, pc, origin = entry
        kind = {FROM_PUSH: "push", FROM_MOP: "mop"}.get(origin, "replay")
        slot = origin - FROM_REPLAY if kind == "replay" else None
        return TracedWord(number, thread, bits, pc, kind, slot, *self(pc))
