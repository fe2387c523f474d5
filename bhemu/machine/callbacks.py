"""Functions of a user that a run calls for Tensix words, instructions and accesses of cores."""

from __future__ import annotations

import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bhemu import arguments
from bhemu.errors import BhemuError, InputError
from bhemu.jit.record import plain
from bhemu.machine import error_text, plugin, word_text
from bhemu.machine.breakpoints import word_pattern
from bhemu.machine.resolve import core_name
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.riscv.core_loop import FAILED_RULE, PC, RANGES, READS, WRITES
from bhemu.tensix.compiled import RULES
from bhemu.tensix.insn import decode, disassemble, instructions
from bhemu.tensix.rules import DONE, clock_reached

if TYPE_CHECKING:
    from bhemu.machine.rounds import Rounds
    from bhemu.machine.tile import Tile

ACCESSES = {"r": READS, "w": WRITES, "rw": READS | WRITES}
_PACKAGE = str(Path(__file__).parents[1])
_ALL_CORES = (1 << len(CORE_NAMES)) - 1
_clock: Callable[[Any], Any] = plain(clock_reached)


class Event:
    """What a function is called with. It holds while the function runs: keep values of it.

    tile: where it happens; core: the core that does it, or has pushed the word; pc: from where.
    """

    numbers: Callable[[], tuple[Any, ...]]  # what a compiled function gets of it (plugin.py)

    def __init__(self, tile: Tile, core: int, pc: int) -> None:
        self.tile, self.core, self.pc, self._core = tile, CORE_NAMES[core], pc, core

    @property
    def clock(self) -> int:
        """The clock of the tile before it."""
        return int(_clock(self.tile.state))

    @property
    def place(self) -> str:
        """For example "tile (1,2) trisc1 pc 0x0001403C in main (math.c:82)"."""
        return str(error_text.where_core(self.tile, self._core, self.pc))

    @property
    def text(self) -> str:
        """What happens, in words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}, {self.place}>"


class WordEvent(Event):
    """A Tensix word that thread `thread` is about to execute: `word`, its mnemonic `name`."""

    def __init__(self, tile: Tile, thread: int, word: int) -> None:
        s = tile.state
        super().__init__(tile, int(s.gate_core[thread]), int(s.gate_pc[thread]))
        self.thread, self.word = thread, word
        cls = decode(word)
        self.name = "" if cls is None else cls.name

    @property
    def fields(self) -> dict[str, int]:
        """Its fields by name."""
        cls = decode(self.word)
        return {} if cls is None else {field.name: field.get(self.word) for field in cls.fields}

    @property
    def text(self) -> str:
        """As `bhemu trace` shows it."""
        return disassemble(self.word)

    @property
    def effect(self) -> str:
        """What it will do, with addresses, rows and formats, as `bhemu trace` says."""
        return word_text.effective(self.tile.state, self.thread, self.word)

    @property
    def transfer(self) -> word_text.Pack | word_text.Unpack | None:
        """Of PACR and UNPACR: `first` and `end` of the bytes in L1, `datums`, `l1_format`.

        None of another word, and of one that moves nothing.
        """
        return word_text.transfer_of(self.tile.state, self.thread, self.word)

    def numbers(self) -> tuple[Any, ...]:
        """As of every event; of any word without `fields`, see Rule."""
        cls = decode(self.word)
        fields = () if cls is None else cls.decoded(self.word)
        some = plugin.Word(
            self.thread, self.word, self._core, self.pc, self.clock, *self.tile.xy, fields
        )
        if cls is None or cls.formats not in plugin.TRANSFERS:
            return some
        does = self.transfer
        if does is None:
            return plugin.TransferWord(*some, 0, 0, 0, 0)
        kind = does.mode.fmt if isinstance(does, word_text.Unpack) else does.mode.out
        return plugin.TransferWord(*some, does.first, does.end, does.datums, int(kind))


class InstructionEvent(Event):
    """An instruction that a core is about to execute: `word`."""

    def __init__(self, tile: Tile, core: int, pc: int, word: int) -> None:
        super().__init__(tile, core, pc)
        self.word = word

    @property
    def clock(self) -> int:
        """The clock of the tile before it, which a core that executes one has counted."""
        return super().clock + 1

    @property
    def text(self) -> str:
        """The instruction, disassembled."""
        return riscv_text(self.word, self.pc)

    def numbers(self) -> tuple[Any, ...]:
        """As of every event."""
        return plugin.Step(self._core, self.pc, self.word, self.clock, *self.tile.xy)


class AccessEvent(Event):
    """A core has loaded `value`, `size` bytes at `address`, or stored it where `stores`."""

    def __init__(self, tile: Tile, core: int, stores: bool, at: tuple[int, int, int]) -> None:
        super().__init__(tile, core, int(tile.state.pc[core]))
        self.stores = stores
        self.address, self.size, self.value = at

    @property
    def text(self) -> str:
        """For example "stores 0x1 to 0x20000, 4 bytes"."""
        way = f"stores {self.value:#x} to" if self.stores else f"loads {self.value:#x} from"
        return f"{way} {self.address:#x}, {self.size} bytes"

    def numbers(self) -> tuple[Any, ...]:
        """As of every event."""
        does = self.address, self.size, self.value, int(self.stores)
        return plugin.Access(self._core, self.pc, *does, self.clock, *self.tile.xy)


@dataclass(frozen=True)
class Rule:
    """What one function is called for; words and instructions, or the accesses of kinds.

    tiles: their coordinates, None for all; low, high: addresses, high exclusive; mask, value: the
    bits of a word, of the threads; entry: address of the function's compiled form, 0 = Python's.
    """

    number: int
    function: Callable[[Any], object]
    tiles: frozenset[tuple[int, int]] | None
    kinds: int = 0  # of riscv/core_loop.py; 0: Tensix words
    cores: int = _ALL_CORES
    low: int = 0
    high: int = 0
    mask: int = 0
    value: int = 0
    threads: frozenset[int] = frozenset((0, 1, 2))
    entry: int = 0

    def compiled(self) -> Rule:
        """The same with the entry of a function that is marked as compiled."""
        if not isinstance(self.function, plugin.CompiledFunction):
            return self
        name = instructions()[self.value >> 24].name if self.mask else None
        return replace(self, entry=self.function.entry(self.kinds, name))

    def call(self, event: Event) -> None:
        """Call the function in Python."""
        if not isinstance(self.function, plugin.CompiledFunction):
            self.function(event)
            return
        numbers = event.numbers()
        if isinstance(event, WordEvent) and not self.mask:
            numbers = plugin.Word._make((*numbers[:7], ()))
        self.function(numbers)

    def opcodes(self) -> Iterator[int]:
        """Opcodes of the words it is called for."""
        for opcode in instructions() if not self.kinds else ():
            if (opcode << 24 ^ self.value) & self.mask >> 24 << 24 == 0:
                yield opcode


def word_rule(name: str | None, fields: dict[str, int]) -> dict[str, int]:
    """Mask and value of a mnemonic with values of its fields, None: of every word."""
    if name is None and fields:
        raise InputError("fields are those of an instruction: name it")
    mask, value = (0, 0) if name is None else word_pattern(name, fields)
    if name is not None and instructions()[value >> 24].execute is None:
        hint = "the words that MOP and REPLAY expand to have functions of their own"
        raise InputError(f"no word {name} executes", hint=hint)
    return {"mask": mask, "value": value}


def cores(name: str | None) -> int:
    """The mask of a core, None: of all."""
    return _ALL_CORES if name is None else 1 << CORE_NAMES.index(core_name(name))


def span(place: object, tile: Tile | None, address: Callable[[Tile, str], int]) -> dict[str, int]:
    """Addresses of a place: a word, or from the first byte to the one after the last.

    address: of a name, on a tile; InputError where there is none yet.
    """

    def number(at: object) -> int:
        if not isinstance(at, str):
            return arguments.word("address", at)
        if tile is None:
            raise InputError(f"{at}: no tile is in use yet", hint="launch the program before")
        return address(tile, at)

    if not isinstance(place, tuple):
        low = number(place)
        return {"low": low, "high": low + 4}
    if len(place) != 2:
        raise InputError(f"place = {place!r}: want (first, after the last)")
    low, high = map(number, place)
    if low >= high:
        raise InputError(f"place = {low:#x}..{high:#x}: there is nothing between")
    return {"low": low, "high": high}


class _OfTile:
    """The rules of one tile, and what its record needs to be told."""

    def __init__(self, tile: Tile, lock: threading.Lock) -> None:
        self._tile, self._lock = weakref.ref(tile), lock
        self._rules: list[Rule] = []
        self._waits: dict[int, int] = {}  # by thread, a word that was told and has not executed
        self._on_words: frozenset[int] = frozenset()
        self._hooked: list[Rule] = []  # as the record of words numbers them
        self._ranges: list[Rule] = []  # as that of the cores does
        self._tables: list[Any] = []  # what compiled functions get, kept while they may be called

    @property
    def tile(self) -> Tile:
        """The tile, which is there as long as something runs."""
        tile = self._tile()
        assert tile is not None
        return tile

    def replace(self, rules: list[Rule]) -> None:
        """These rules hold from now on."""
        words = [r for r in rules if not r.kinds]
        self._hooked = [r for r in words if r.entry][:RULES]
        self._ranges = [r for r in rules if r.kinds]
        few = len(self._ranges) <= RANGES
        told = {id(r) for r in (*self._hooked, *(self._ranges if few else ())) if r.entry}
        self._rules, self._tables = [r for r in rules if id(r) not in told], []
        if rules and self.tile.state.timed[0]:  # no core may sleep where a function looks at it
            self.tile.state.count_passes[0] = 0
        self._hook()
        self._observe(frozenset(o for r in self._rules for o in r.opcodes()))
        if self._ranges or self.tile.backend.observed is not None:
            # What cores do is told; not few: Python looks again at all that happens
            record = self.tile.observe_cores(self._core)
            ranges = [(r.cores, r.kinds, r.low, r.high) for r in self._ranges]
            if not few:
                ranges = [(_ALL_CORES, PC | READS | WRITES, 0, 1 << 32)]
            record.ranges[0], record.kinds[0], record.call[:] = len(ranges), 0, 0
            for i, row in enumerate(ranges):
                record.range[i] = row
                record.kinds[0] |= row[1]
            for i, rule in enumerate(self._ranges if few else ()):
                if rule.entry:
                    record.call[i], record.at[i] = rule.entry, self._table(rule)

    def _hook(self) -> None:
        """Words are told to compiled functions."""
        table = self.tile.backend.table
        if not self._hooked and table.hook is None:
            return
        opcodes = frozenset(opcode for rule in self._hooked for opcode in rule.opcodes())
        record = table.tell(opcodes, self._word_failed)
        record.rules[0] = len(self._hooked)
        for i, rule in enumerate(self._hooked):
            threads = sum(1 << t for t in rule.threads)
            record.rule[i] = rule.mask, rule.value, threads, self._table(rule)
            record.call[i] = rule.entry

    def _observe(self, opcodes: frozenset[int]) -> None:
        """Words are told to functions of Python."""
        table = self.tile.backend.table
        if opcodes == self._on_words:
            return
        if self._on_words:
            table.forget(self._word)
        if opcodes:
            table.observe(self._word, self._executed, opcodes)
        self._on_words = opcodes

    def _table(self, rule: Rule) -> int:
        """The address of what a compiled function gets."""
        assert isinstance(rule.function, plugin.CompiledFunction)
        self._tables.append(rule.function.table(self.tile.xy))
        return int(self._tables[-1].ctypes.data)

    def _word_failed(self, t: int, word: int) -> None:
        record = self.tile.backend.table.hook
        assert record is not None
        self._failed(self._hooked[int(record.failing[0])], WordEvent(self.tile, t, word))

    def _failed(self, rule: Rule, event: Event) -> None:
        """A compiled function has failed: in Python it says why."""
        self._call(rule, event)
        raise failure(ArithmeticError("fails compiled, not in Python"), rule.function)

    def _word(self, t: int, word: int) -> int:
        if t >= 0 and self._waits.get(t) != word:  # else it had to wait, and is tried again
            self._waits[t] = word
            for rule in self._rules:
                if not rule.kinds and t in rule.threads and (word ^ rule.value) & rule.mask == 0:
                    self._call(rule, WordEvent(self.tile, t, word))
        return t

    def _executed(self, t: int, status: int) -> None:
        if status == DONE:
            self._waits.pop(t, None)

    def _core(self, core: int, kind: int, address: int, size: int, value: int) -> None:
        kind, failed = kind & FAILED_RULE - 1, kind >> 8 if kind & FAILED_RULE else None
        event = (
            InstructionEvent(self.tile, core, address, value)
            if kind == PC
            else AccessEvent(self.tile, core, kind == WRITES, (address, size, value))
        )
        if failed is not None:
            self._failed(self._ranges[failed], event)
        for rule in self._rules:
            if not rule.kinds & kind or not rule.cores >> core & 1:
                continue
            if rule.low < address + size and address < rule.high:
                self._call(rule, event)

    def _call(self, rule: Rule, event: Event) -> None:
        with self._lock:
            try:
                rule.call(event)
            except Exception as problem:
                raise failure(problem, rule.function) from None


def failure(problem: BaseException, function: Callable[..., object]) -> InputError:
    """The error of a user's function, with the file and line where it was raised."""
    told, hint = f"{type(problem).__name__}: {problem}".rstrip(": "), "correct it"
    if isinstance(problem, BhemuError):
        told, hint = problem.message, problem.hint or hint
    code = getattr(getattr(function, "function", function), "__code__", None)
    file, line, name = getattr(code, "co_filename", "?"), getattr(code, "co_firstlineno", 0), ""
    for frame in traceback.extract_tb(problem.__traceback__):
        if not frame.filename.startswith((_PACKAGE, "<frozen ")):
            file, line, name = frame.filename, frame.lineno or 0, frame.name
    return InputError(f"{file}:{line}: {f'{name}: ' if name else ''}{told}", hint=hint)


class Callbacks:
    """The rules of a machine, on the tiles that it has and those that it will have."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds, self._lock = rounds, threading.Lock()
        self._rules: list[Rule] = []
        self._own: weakref.WeakKeyDictionary[Tile, _OfTile] = weakref.WeakKeyDictionary()

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the rules."""
        return frozenset(rule.number for rule in self._rules)

    def add(self, rules: Iterable[Rule]) -> None:
        """These too. Tiles of several threads would change an array at once: they call Python."""
        one = self._rounds.threads == 1
        self._rules += [rule.compiled() if one else rule for rule in rules]
        for tile in self._rounds.tiles:
            self.joined(tile)

    def delete(self, number: int | None) -> None:
        """Forget those of a number, or all."""
        self._rules = [r for r in self._rules if number is not None and r.number != number]
        for tile in self._rounds.tiles:
            self.joined(tile)

    def joined(self, tile: Tile) -> None:
        """The rules of a tile, which may be new."""
        rules = [r for r in self._rules if r.tiles is None or tile.xy in r.tiles]
        if tile not in self._own and rules:
            self._own[tile] = _OfTile(tile, self._lock)
        if tile in self._own:
            self._own[tile].replace(rules)
