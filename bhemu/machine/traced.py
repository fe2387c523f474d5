"""Executed Tensix words as a user reads them: what, by which thread, pushed from where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bhemu.devices.bus.naming import device_name
from bhemu.errors import Call, source_text
from bhemu.memmap import CORE_NAMES
from bhemu.program.dwarf import Inlined
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.insn import decode, disassemble
from bhemu.tensix.recording import FIRST_CORE

if TYPE_CHECKING:
    from bhemu.machine.core import Source
    from bhemu.machine.tile import Tile


_TEXT_WIDTH = 72
Entry = tuple[int, int, int, int, int]  # of the trace ring, and the clock behind it


class _Traced:
    """Something executed, which shows as one line, and the place in the code that did it."""

    function: str | None
    file: str | None
    line: int | None
    inlined_function: str | None
    inlined: tuple[Call, ...]

    @property
    def place(self) -> str:
        """For example "main+0x4 math.c:22", "" where unknown."""
        source = source_text(self.file, self.line, self.inlined_function, self.inlined)
        return " ".join(part for part in (self.function or "", source) if part)

    def as_text(self, bits: bool = False) -> str:
        """One line of text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.as_text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {' '.join(self.as_text().split())}>"


@dataclass(frozen=True, repr=False)
class TracedWord(_Traced):
    """One executed word: its number in the run, thread 0-2, pc that pushed it, and its origin.

    `origin` is "push", "mop" or "replay" (then `slot` is the slot of the replay buffer); for a
    recorded word `pc` is where the recorded one came from. `function`, `file` and `line` belong to
    `pc` and are None where no ELF knows them. Where the compiler has inlined, `inlined` holds the
    calls that led to that source line, which is in `inlined_function`. `refused` is the rule that
    refused the word: it stands at its gate, not executed. `clock` is the clock behind it. `meaning`
    says what the operands stand for, with addresses, rows and formats, and `set_by` who set the
    formats and addresses; only `bhemu trace` looks at that.
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
    inlined_function: str | None = None
    inlined: tuple[Call, ...] = ()
    refused: str | None = None
    clock: int | None = None
    meaning: str = ""
    set_by: str = ""

    @property
    def text(self) -> str:
        """Mnemonic and non-zero fields."""
        return disassemble(self.word)

    def as_text(self, bits: bool = False) -> str:
        """One line of text; with `bits` the word itself as well."""
        origin = {"push": "", "mop": "MOP"}.get(self.origin, f"REPLAY {self.slot}")
        shown = f"{self.word:08x}  " if bits else ""
        text = f"{self.number:>7}  T{self.thread}  0x{self.pc:08X}  {origin:<9}  {shown}{self.text}"
        text += f"  refused: [{self.refused}]" if self.refused else ""
        text = f"{text:<{_TEXT_WIDTH + len(shown)}}  {self.place}" if self.place else text
        told = "; ".join(part for part in (self.meaning, self.set_by) if part)
        return f"{text}  ; {told}" if told else text

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; what is unknown is left out."""
        cls = decode(self.word)
        known = {**vars(self), "mnemonic": None if cls is None else cls.name, "text": self.text}
        known["meaning"], known["set_by"] = self.meaning or None, self.set_by or None
        known["inlined"] = [call._asdict() for call in self.inlined] or None
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, repr=False)
class TracedStore(_Traced):
    """A store of a core to a device: value, address, what stands there, and where from."""

    core: str
    pc: int
    address: int
    value: int
    name: str
    function: str | None
    file: str | None
    line: int | None
    inlined_function: str | None = None
    inlined: tuple[Call, ...] = ()
    clock: int | None = None

    def as_text(self, bits: bool = False) -> str:
        """One line of text, in the columns of a word."""
        what = f"[0x{self.address:08X}] = {self.value:#x}"
        text = f"{self.core:>7}  st  0x{self.pc:08X}  {'store':<9}  {what}"
        text = f"{text:<{_TEXT_WIDTH}}  {self.place}" if self.place else text
        return f"{text}  ; {self.name}"

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; what is unknown is left out."""
        known: dict[str, object] = {**vars(self), "origin": "store"}
        known["inlined"] = [call._asdict() for call in self.inlined] or None
        return {name: value for name, value in known.items() if value is not None}


class Places:
    """Function, source line and inlined calls of a pc, from the ELFs of all cores."""

    def __init__(self, tile: Tile) -> None:
        self._cores = tuple(tile.core.values())
        self._known: dict[int, tuple[Source, Inlined]] = {}

    def __call__(self, pc: int) -> Source:
        """(function+offset, file, line)."""
        return self._at(pc)[0]

    def _at(self, pc: int) -> tuple[Source, Inlined]:
        if pc not in self._known:
            core = next((core for core in self._cores if core.locate(pc)[0]), None)
            nowhere: Source = (None, None, None)
            found = (nowhere, Inlined(None, ()))
            self._known[pc] = found if core is None else (core.locate(pc), core.inlined(pc))
        return self._known[pc]

    def word(self, number: int, entry: Entry, refused: str | None = None) -> TracedWord:
        """The word that stands `number`-th in the run, from its entry in the trace ring."""
        thread, bits, pc, origin, clock = entry
        kind = {FROM_PUSH: "push", FROM_MOP: "mop"}.get(origin, "replay")
        slot = origin - FROM_REPLAY if kind == "replay" else None
        source, (function, calls) = self._at(pc)
        function = function if calls else None
        return TracedWord(
            number,
            thread,
            bits,
            pc,
            kind,
            slot,
            *source,
            function,
            calls,
            refused=refused,
            clock=clock,
        )

    def store(self, entry: Entry) -> TracedStore:
        """The store of a core behind an entry of the trace ring (tensix/recording.py)."""
        core, value, pc, address, clock = entry[0] - FIRST_CORE, *entry[1:]
        source, (function, calls) = self._at(pc)
        name = device_name(address, core)
        function = function if calls else None
        place = *source, function, calls, clock
        return TracedStore(CORE_NAMES[core], pc, address, value, name, *place)
