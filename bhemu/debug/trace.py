"""What was executed: words and retired instructions, one by one, and which modes and formats."""

from __future__ import annotations

import atexit
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from bhemu.errors import BhemuError, InputError
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import JIT
from bhemu.machine.sentences import RULES
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile, of_new_tiles
from bhemu.machine.word_text import Entry, Places, TracedStore, TracedWord, effective, set_by
from bhemu.memmap import CORE_NAMES
from bhemu.program import files
from bhemu.program.schema import Program
from bhemu.riscv import core_loop, turn
from bhemu.riscv.formats import Atomic, Csr, Load, Store
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.formats import NAMES
from bhemu.tensix.insn import Instruction, decode
from bhemu.tensix.observe import FIRST_CORE, WORDS, WORDS_AND_STORES
from bhemu.tensix.rules import DONE, LOOK

# The executed Tensix words of a run, one after the other, as the trace ring hands them over.


class _Sink(list[Entry]):
    """Stands in for `Tile.log`: hands every word on and keeps none."""

    def __init__(self, take: Callable[[Entry], None]) -> None:
        super().__init__()
        self.taken = 0
        self._take = take

    def append(self, entry: Entry) -> None:
        """One word from the ring."""
        self.taken += 1
        self._take(entry)


class Tracer:
    """Runs a launched program and gives each executed word to `show` as soon as a round is over.

    thread: only the words of that thread; most: end after that many words. All
    tiles of the machine run; the schedule is that of a run without trace. stores: gets the stores
    of cores to devices, in their places between the words; the words then tell their meaning too.
    """

    def __init__(
        self,
        tile: Tile,
        program: Program,
        show: Callable[[TracedWord], None],
        *,
        thread: int | None = None,
        most: int | None = None,
        stores: Callable[[TracedStore], None] | None = None,
    ) -> None:
        self._tile, self._program, self._show = tile, program, show
        self._thread, self._most = thread, most
        self._places = Places(tile)
        self._sink = _Sink(self._take)
        self._stores = stores
        self._seen: deque[tuple[str, str]] = deque()  # of words that are not shown yet
        if stores is not None:
            tile.backend.table.observe(self._look, self._looked)
        self._words = 0
        self._first = int(tile.state.log_write[0])
        self.shown = 0

    @property
    def full(self) -> bool:
        """Whether `most` words were shown."""
        return self._most is not None and self.shown >= self._most

    def run(self) -> Stop:
        """To the program's end condition, limit, time-out, or the last word that was asked for.

        Raises what the program's errors are, after the words before them were shown.
        """
        tile, spec = self._tile, self._program.run
        kept, tile.log = tile.log, self._sink
        tile.state.trace[0] = WORDS if self._stores is None else WORDS_AND_STORES
        try:
            stop: Stop = tile.machine.run(self._ask, limit=spec.limit, timeout_s=spec.timeout_s)
            self._drain()
        except BhemuError as error:
            self._drain()
            if not self.full:
                self._show_refused(error)
                raise
            return Stop("until", None, tile.clock)
        finally:
            tile.state.trace[0] = 0
            tile.log = kept
        # A declared end condition counts before the limit of the same round.
        return replace(stop, reason="until") if stop.reason == "limit" and self._over() else stop

    def _show_refused(self, error: BhemuError) -> None:
        """The word at its gate that the error is about, as the last one."""
        tile, where = self._tile, error.where
        if where is None or (t := where.thread) is None or where.tile != tile.xy:
            return
        if self._thread not in (None, t):
            return
        s = tile.state
        entry = t, int(s.gate_word[t]), int(s.gate_pc[t]), int(s.gate_from[t]), tile.clock
        word = self._places.word(self._words, entry, error.rule or "error")
        if self._stores is not None:  # with what it would do
            told, by = self._look(t, word.word)
            word = replace(word, meaning=told, set_by=by)
        self._show(word)

    def _look(self, t: int, word: int) -> tuple[str, str]:
        """What a word is about to do, and what set the configuration that it uses."""
        return effective(self._tile.state, t, word), set_by(self._tile, t, word)

    def _looked(self, before: tuple[str, str], status: int) -> None:
        if status == DONE:
            self._seen.append(before)

    def _ask(self, _: Any) -> bool:
        self._drain()
        return self.full or self._over()

    def _over(self) -> bool:
        words = self._tile.loop.end.words
        return bool(words) and self._tile.loop.holds(words)

    def _drain(self) -> None:
        # An interrupt may have come in the middle of a drain: what was shown is not shown again.
        self._tile.state.log_read[0] = self._first + self._sink.taken
        self._tile.drain_log()

    def _take(self, entry: Entry) -> None:
        if entry[0] >= FIRST_CORE:
            assert self._stores is not None
            store = self._places.store(entry)
            own = self._thread is None or store.core == f"trisc{self._thread}"
            if own and not self.full:
                self._stores(store)
            return
        self._words += 1
        word = self._places.word(self._words - 1, entry)
        if self._stores is not None:
            told, by = self._seen.popleft()
            word = replace(word, meaning=told, set_by=by)
        if self.full or self._thread not in (None, entry[0]):
            return
        self.shown += 1
        self._show(word)


# The instructions that cores retire, as spike's --log-commits prints them.
#
# The machine is interpreted, and its cores run in the loop of the compiled engine (core_loop.py),
# whose `stop` is asked before every instruction while attention is called for. What this file sets
# changes neither schedule nor counts.

_LOAD, _STORE, _CSR, _AMO = (kind.code() for kind in (Load, Store, Csr, Atomic))
_WRITE_RD = (0x13, 0x17, 0x33, 0x37, 0x67, 0x6F, _LOAD, _AMO)
_MACHINE_MODE = 3


class _Next(NamedTuple):
    """An instruction that a core is about to execute."""

    pc: int
    word: int
    base: int  # the value of rs1
    value: int  # that of rs2
    retired: int


def text(core: int, word: int, pc: int, base: int, value: int, rd: int, memory: int) -> str:
    """The line of one instruction: spike's commit_log_print_insn, for a hart of 32 bits.

    base, value: what rs1 and rs2 held before it; rd: what the register rd holds after it; memory:
    what the word at the address in rs1 holds after it, for an atomic.
    """
    parts = [f"core{core:4}: {_MACHINE_MODE} 0x{pc:08x} (0x{word:08x})"]
    low, size = word & 0x7F, 1 << (word >> 12 & 3)
    writes = low in _WRITE_RD or (low == _CSR and word >> 12 & 7 != 0)
    number = word >> 7 & 31
    if word & 3 != 3:  # a Tensix word that is pushed
        return parts[0]
    if writes and number:
        parts.append(f"x{number:<2} 0x{rd:08x}")
    immediate = (word >> 20) - (word >> 31 << 12)
    if low == _LOAD:
        parts.append(f"mem 0x{base + immediate & 0xFFFFFFFF:08x}")
    elif low == _STORE:
        at = base + (immediate & ~31 | number) & 0xFFFFFFFF
        parts.append(f"mem 0x{at:08x} 0x{value & (1 << 8 * size) - 1:0{2 * size}x}")
    elif low == _AMO:
        parts.append(f"mem 0x{base:08x} mem 0x{base:08x} 0x{memory:08x}")
    return " ".join(parts)


class CommitLog:
    """Writes a line to `out` for each instruction that a core of `tile` retires, from now on."""

    def __init__(self, tile: Tile, out: IO[str]) -> None:
        """InputError where this process runs compiled code."""
        if JIT:
            raise InputError("a commit log is written by interpreted runs: NUMBA_DISABLE_JIT=1")
        self._out, self._state = out, tile.state
        self._next: list[_Next | None] = [None] * len(CORE_NAMES)
        tile.state.count_passes[0] = 0  # every pass of a polling loop is executed
        self._wrap(core_loop, "stop", self._before)
        self._wrap(turn, "end", self._ended)
        turn.watchful = lambda s, c: LOOK

    def _wrap(self, module: Any, name: str, callback: Callable[..., None]) -> None:
        own = getattr(module, name)

        def wrapped(s: Any, c: Any, *more: Any) -> Any:
            result = own(s, c, *more)
            if s is self._state or s.pc.ctypes.data == self._state.pc.ctypes.data:
                callback(s, int(c), *more)
            return result

        setattr(module, name, wrapped)

    def _before(self, s: Any, c: int, pc: Any) -> None:
        """Before an instruction: the last one has been retired, or will be executed once more."""
        self._write(s, c, int(s.retired[c] + s.fuel_given[c] - s.fuel[c]))
        word = int(l1_word(s, pc))
        base, value = int(s.regs[c, word >> 15 & 31]), int(s.regs[c, word >> 20 & 31])
        retired = int(s.retired[c] + s.fuel_given[c] - s.fuel[c])
        self._next[c] = _Next(int(pc), word, base, value, retired)

    def _ended(self, s: Any, c: int, *_: Any) -> None:
        """At the end of a slice."""
        self._write(s, c, int(s.retired[c]))
        self._next[c] = None

    def _write(self, s: Any, c: int, retired: int) -> None:
        one, self._next[c] = self._next[c], None
        if one is None or retired == one.retired:
            return
        memory = int(l1_word(s, one.base & ~3)) if one.word & 0x7F == _AMO else 0
        rd = int(s.regs[c, one.word >> 7 & 31])
        self._out.write(text(c, one.word, one.pc, one.base, one.value, rd, memory) + "\n")


# Which instructions a run exercises, in which modes and with which data formats.
#
# A mode is the value of every field declared `mode=True`, and for the matrix unit, the vector
# unit's loads and stores, packer and unpackers the formats in force when the word executes.

VARIABLE: Final = "BHEMU_COVERAGE"  # a file to which every process adds what its tiles executed


class Mode(NamedTuple):
    """One way in which an instruction was used: its mode fields and the formats in force."""

    mnemonic: str
    fields: tuple[tuple[str, int], ...]
    formats: str


@dataclass
class Notes:
    """How often each mode was executed, and which rule refused a mode; knows no tile."""

    executed: Counter[Mode] = field(default_factory=Counter)
    refused: dict[Mode, str] = field(default_factory=dict)


class Coverage:
    """Notes every Tensix word of a tile from now on; the tile runs slower."""

    def __init__(self, tile: Tile) -> None:
        self._s, self._table = tile.state, tile.backend.table
        self.notes = Notes()
        self._table.observe(self._before, self._after)

    def stop(self) -> None:
        """Note no more."""
        self._table.forget(self._before)

    def _before(self, t: int, word: int) -> Mode | None:
        cls = decode(word)
        return None if cls is None or t < 0 else mode_of(self._s, t, cls, word)

    def _after(self, mode: Mode | None, status: int) -> None:
        if mode is None:
            return
        if status == DONE:
            self.notes.executed[mode] += 1
        elif status in RULES:
            self.notes.refused[mode] = RULES[status].rule


def mode_of(s: Any, t: int, cls: type[Instruction], word: int) -> Mode:
    """The mode of a word that thread `t` is about to execute."""
    fields = tuple((f.name, f.get(word)) for f in cls.fields if f.mode)
    return Mode(cls.name, fields, _formats(s, t, cls, word))


def _formats(s: Any, t: int, cls: type[Instruction], word: int) -> str:
    """The formats in force, of the kind that the class names."""
    if cls.formats == "unpack":
        unpacker = cls.operands(word)["unpack_block_selection"]
        source = _get(s, t, cf.Field(cf.THCON_SEC0_REG0_TileDescriptor.word, 0, 0xF), unpacker)
        target = _get(s, t, cf.THCON_SEC0_REG2_Out_data_format, unpacker)
        parts = [f"{_name(source)} -> {_name(target)}"]
        if _get(s, t, cf.THCON_SEC0_REG2_Tileize_mode, unpacker):
            parts.append("tilized")
        if _get(s, t, cf.THCON_SEC0_REG2_Haloize_mode, unpacker):
            parts.append("transposed")
        if unpacker == 0 and _get(s, t, cf.THCON_SEC0_REG2_Unpack_if_sel_cntx0):
            parts.append("to Dst")
        return " ".join(parts)
    formats = _IN_FORCE[cls.formats](s, t) if cls.formats else ""
    if any(_get(s, t, field) for field in cls.by_chance):
        formats += " stochastic (modelled)"
    return formats


def _get(s: Any, t: int, field: cf.Field, section: int = 0) -> int:
    bank = int(s.thread_cfg[t, tf.CFG_STATE_ID_StateID.word]) & 1
    return int(s.cfg[bank, field.word + SECTION_WORDS * section]) >> field.shift & field.mask


def _name(code: int) -> str:
    return NAMES.get(code, f"format {code}")


def _pack(s: Any, t: int) -> str:
    source, target = (
        _get(s, t, field)
        for field in (cf.THCON_SEC0_REG1_In_data_format, cf.THCON_SEC0_REG1_Out_data_format)
    )
    parts = [f"{_name(source)} -> {_name(target)}", _wide(s, t, cf.PCK_DEST_RD_CTRL_Read_32b_data)]
    if relu := _get(s, t, cf.STACC_RELU_ApplyRelu):
        parts.append(f"relu {relu}")
    if _get(s, t, cf.THCON_SEC0_REG1_Pack_L1_Acc):
        parts.append("accumulating")
    return " ".join(parts)


def _matrix(s: Any, t: int) -> str:
    a, b = (_name(int(s.src_fmt[which, int(s.matrix_bank[which]) & 1])) for which in (SRCA, SRCB))
    integer = " int8" if _get(s, t, cf.ALU_ACC_CTRL_INT8_math_enabled) else ""
    return f"{a} x {b} {_wide(s, t, cf.ALU_ACC_CTRL_Fp32_enabled)}{integer}"


def _wide(s: Any, t: int, field: cf.Field) -> str:
    return "Dst32" if _get(s, t, field) else "Dst16"


_IN_FORCE: Mapping[str, Callable[[Any, int], str]] = {
    "pack": _pack,
    "src": _matrix,
    "dst": lambda s, t: _wide(s, t, cf.ALU_ACC_CTRL_Fp32_enabled),
    "sfpu": lambda s, t: _wide(s, t, cf.ALU_ACC_CTRL_SFPU_Fp32_enabled),
}


def rows(covers: Iterable[Notes]) -> Iterator[dict[str, Any]]:
    """One JSON-ready row for each mode: mnemonic, fields, formats, count, rule that refused it."""
    executed: Counter[Mode] = Counter()
    refused: dict[Mode, str] = {}
    for cover in covers:
        executed.update(cover.executed)
        refused.update(cover.refused)
    for mode in sorted({*executed, *refused}):
        yield {
            "mnemonic": mode.mnemonic,
            "fields": dict(mode.fields),
            "formats": mode.formats,
            "count": executed[mode],
            "rule": refused.get(mode, ""),
        }


def from_environment() -> None:
    """Note what every later tile executes when $BHEMU_COVERAGE names a file; written at exit."""
    if (path := os.environ.get(VARIABLE)) and not _whole_process:
        _whole_process.append(noting())
        atexit.register(_append, Path(path), _whole_process[0].__enter__())


_whole_process: list[AbstractContextManager[list[Notes]]] = []


def noting() -> AbstractContextManager[list[Notes]]:
    """Note what every tile executes that is made within the context."""
    return of_new_tiles(lambda tile: Coverage(tile).notes)


def _append(path: Path, noted: list[Notes]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(list(rows(noted))) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that processes added to, those of one mode added up."""
    text = files.read_bytes(path, "COVERAGE_BYTES").decode("utf-8")
    return merged(row for line in text.splitlines() for row in json.loads(line))


def merged(several: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of several runs, those of one mode added up."""
    found: dict[str, dict[str, Any]] = {}
    for row in several:
        key = json.dumps([row["mnemonic"], row["fields"], row["formats"]])
        known = found.setdefault(key, {**row, "count": 0})
        known["count"] += row["count"]
        known["rule"] = known["rule"] or row["rule"]
    return sorted(found.values(), key=lambda row: (row["mnemonic"], json.dumps(row["fields"])))
