"""What stepper commands name: registers, addresses, symbols, and the position of each core."""

import difflib
import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus.address_map import fields_of
from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.resolve import LINE, code_address, core_name
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import elf, files, symbols
from bhemu.program.coordinates import At
from bhemu.program.schema import Program
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config_fields import Field
from bhemu.tensix.dest import UNWRITTEN
from bhemu.tensix.insn import disassemble as tensix_text
from bhemu.tensix.state import FIFO_DEPTH
from bhemu.text import printable

# Addresses as a person writes them: numbers, symbols, file:line, registers of the core.

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hh|hpp|inc|s|S)$")  # what a debugger shows
_MOST_DIGITS = 40
_UNLIMITED = 1 << 30
_FOLDERS_UP = 2  # how far above an ELF its sources are looked for


def number(text: str, name: str = "number") -> int:
    """A number in decimal or 0x notation; InputError for anything else."""
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f"{text!r} is not a {name}", hint="decimal or 0x...")
    if len(text) > _MOST_DIGITS:
        raise InputError(f"a {name} of {len(text)} digits")
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def address(tile: Tile, core: Core, text: str) -> int:
    """The address `text` stands for on `core`.

    A number, `pc`, `$ra` (an ABI register name), `file.c:41`, or a symbol with an optional offset;
    a symbol that `core` does not have is looked for in the ELFs of the others.
    """
    if _NUMBER.fullmatch(text):
        value = number(text, "address")
        if value >= 1 << 32:
            raise InputError(f"{text} is not a 32-bit address")
        return value
    if text in ("pc", "$pc"):
        return core.pc
    if text.startswith("$"):
        return int(core.regs[register(text[1:])])
    return code_address(tile, core, text)


def register(name: str) -> int:
    """Number of a register by ABI name or x0-x31."""
    if name in ABI_NAMES:
        return ABI_NAMES.index(name)
    if re.fullmatch(r"x([12]?\d|3[01])", name):
        return int(name[1:])
    if name == "fp":
        return 8
    raise InputError(f"no register {name!r}", hint=", ".join(ABI_NAMES))


class Sources:
    """Source files by the names DWARF gives; of a chip those of the `part`-th of its tiles.

    They are looked for in `folders`, where the compiler had them if that is an absolute path, and
    near the ELFs; with `named_only` none that a core's ELF does not name.
    """

    def __init__(
        self,
        program: Program,
        folders: tuple[Path, ...] = (),
        part: int = 0,
        *,
        named_only: bool = False,
    ) -> None:
        self._cores, self._folders = program.placed()[part].cores, folders
        self._named_only = named_only
        self._files: dict[tuple[str, str], list[str]] = {}

    def line(self, core: str, file: str, number: int) -> str | None:
        """Text of one line, None where the file is not found or found twice."""
        key = (core, file)
        if key not in self._files:
            path = self._find(core, file)
            self._files[key] = [] if path is None else _source(path)
        lines = self._files[key]
        return lines[number - 1] if 0 < number <= len(lines) else None

    def _find(self, core: str, file: str) -> Path | None:
        for folder in self._folders:
            if files.is_file(folder / file):
                return folder / file
        spec = self._cores.get(core)
        if spec is None or spec.elf is None:
            return None
        built = [Path(folder) for folder in _folders(spec.elf, file)]
        if Path(file).is_absolute() or (self._named_only and not built):
            return None
        for folder in built:
            if folder.is_absolute() and _SOURCE.search(file) and files.is_file(folder / file):
                return folder / file
        home = spec.elf.resolve().parent
        for folder in (home, *home.parents[:_FOLDERS_UP]):
            if folder == folder.parent or folder == Path.home():
                break
            depths = ("", "*/", "*/*/")
            named = [p for depth in depths for p in folder.glob(depth + glob.escape(file))]
            found = [p for p in named if files.is_file(p) and files.is_inside(p, folder)]
            for names in ({folder.name for folder in built}, {home.name}):
                named = [p for p in found if p.parent.name in names]
                if len(named) == 1:
                    return named[0]
            if len(found) == 1:
                return found[0]
        return None


@lru_cache(maxsize=64)
def _folders(elf_file: Path, name: str) -> tuple[str, ...]:
    """The folders of the files of this name that an ELF is made from, as the compiler had them."""
    try:
        data = files.read_bytes(elf_file, "ELF_BYTES")
        found = symbols.files(data, elf.sections(data, elf_file.name))
    except (InputError, elf.DamagedError):
        return ()
    return tuple(sorted({one.folder for one in found if one.name == name}))


def _source(path: Path) -> list[str]:
    """The lines of a source file, printable; none where it cannot be read."""
    try:
        data = files.read_bytes(path, "SOURCE_BYTES")
    except InputError:
        return []
    text = data.decode("utf-8", errors="replace")
    return ["\t".join(map(printable, line.split("\t"))) for line in text.splitlines()]


# Where a core stands, in source and machine code, and what its pushes became.


def name_of(core: Core, address: int) -> str | None:
    """The "function+0x10" of an address."""
    return core.locate(address)[0]


def instruction(tile: Tile, core: Core, pc: int) -> str:
    """`00010024:  a6a1000a  text` of the word at `pc`."""
    if not 0 <= pc <= L1_SIZE - 4:
        return f"{pc:08x}:  no code here (outside L1)"
    word = int.from_bytes(tile.read(pc, 4), "little")
    text = riscv_text(word, pc, lambda target: name_of(core, target), tensix_text)
    return f"{pc:08x}:  {word:08x}  {text}"


def position(tile: Tile, core: Core, sources: Sources) -> list[str]:
    """Core, pc, function and file:line; the source line; the next instruction."""
    symbol, file, line = core.locate(core.pc)
    place = core.source(core.pc)
    state = "" if core.state == "running" else f"[{core.state}]"
    parts = (core.name, f"pc 0x{core.pc:08X}", symbol or "", place, state)
    if core.state == "reset":
        return [f"{core.name}  [reset]"]
    lines = ["  ".join(part for part in parts if part)]
    if file and line:
        source = sources.line(core.name, file, line)
        if source is not None:
            lines.append(f"  {line:>4}  {source.rstrip()}")
    lines.append(f"  {instruction(tile, core, core.pc)}")
    return lines


def listing(tile: Tile, core: Core, start: int, count: int) -> Iterator[str]:
    """`count` instructions from `start`, with names and source positions where they change."""
    last = None
    for pc in range(start, min(start + 4 * count, L1_SIZE), 4):
        symbol, file, line = core.locate(pc)
        if symbol and "+" not in symbol:
            yield f"{symbol}:"
        if file and (file, line) != last:
            yield f"  ; {file}:{line}"
            last = (file, line)
        mark = "=>" if pc == core.pc else "  "
        yield f"{mark} {instruction(tile, core, pc)}"


class Pushes:
    """Tensix words that a core pushes from now on, as the FIFOs still show them."""

    def __init__(self, tile: Tile, core: int) -> None:
        self._s, self._core = tile.state, core
        self._before = tile.state.fifo_write.copy()

    def lines(self) -> list[str]:
        """One line per word, oldest first; a FIFO remembers the last 32."""
        s, lines = self._s, []
        for t in range(3):
            first, end = int(self._before[t]), int(s.fifo_write[t])
            if end - first > FIFO_DEPTH:
                lines.append(f"  -> T{t} {end - first - FIFO_DEPTH} words, then")
            for i in range(max(first, end - FIFO_DEPTH), end):
                if s.fifo_core[t, i % FIFO_DEPTH] == self._core:
                    lines.append(f"  -> T{t} {tensix_text(int(s.fifo[t, i % FIFO_DEPTH]))}")
        return lines


# What the stepper's commands share: the tile, the selected core, printing, arguments.


class Command(NamedTuple):
    """A command of the stepper: how it is written, what it does, how many arguments it takes."""

    usage: str
    help: str
    least: int
    most: int
    run: Callable[[Any, list[str]], None]

    @classmethod
    def of(cls, run: Callable[[Any, list[str]], None]) -> Self:
        """By the docstring of `run`, "usage: help": the words of the usage are its arguments.

        Brackets stand around what may be left out; an expression, or ..., is any number of words.
        """
        usage, _, text = (run.__doc__ or "").strip().partition(": ")
        if re.search(r"EXPRESSION|\.\.\.|^x/", usage):
            return cls(usage, text, 0, _UNLIMITED, run)
        least = depth = 0
        words = usage.split()[1:]
        for word in words:
            depth += word.count("[")
            least += depth == 0
            depth -= word.count("]")
        return cls(usage, text, least, len(words), run)


class Commands:
    """A part of the stepper (stepper.py): `do_NAME` is a command; `_out` takes each line."""

    tile: Tile
    core: Core
    _out: Callable[[str], None]

    def _written(self, core: Core, text: str) -> At:
        """A place as code_places takes it: a name, FILE:LINE or a number."""
        if re.fullmatch(r"[A-Za-z_]\w*", text) and text != "pc":
            return text
        return text if LINE.fullmatch(text) else address(self.tile, core, text)

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._out(line)

    def _count_and_core(self, args: list[str], default: int = 1) -> tuple[int, Core]:
        n, core = default, self.core
        for arg in args:
            if arg in CORE_NAMES:
                core = self.tile.core[arg]
            else:
                n = number(arg, "count or core")
        if n < 1:
            raise InputError("the count must be 1 or more")
        return n, core

    def _one_count(self, args: list[str]) -> int:
        n = number(args[0]) if args else 1
        if n < 1:
            raise InputError("the count must be 1 or more")
        return n

    def _one_core(self, args: list[str]) -> Core:
        return self.tile.core[core_name(args[0])] if args else self.core

    def _thread(self, args: list[str]) -> int:
        """The named thread, or the one of the selected core (brisc, ncrisc: 0)."""
        if not args:
            return self.core.index - 1 if 1 <= self.core.index <= 3 else 0
        text = args[0].upper().removeprefix("T")
        if text not in ("0", "1", "2"):
            raise InputError(f"no Tensix thread {args[0]!r}", hint="0, 1 or 2")
        return int(text)


# Register dumps of cores and coprocessor as text, under tt-exalens' names.

UNPACKERS = ("unpacker 0", "unpacker 1", "packer")
_MOST_FIELDS = 40


def regs(core: Core, before: npt.NDArray[np.uint32] | None) -> Iterator[str]:
    """x0-x31 and pc, four to a line; * marks what changed since `before`."""
    values = core.regs
    for row in range(0, 32, 4):
        cells = []
        for i in range(row, row + 4):
            mark = "*" if before is not None and before[i] != values[i] else " "
            cells.append(f"{ABI_NAMES[i]:>5} {int(values[i]):08x}{mark}")
        yield " ".join(cells)
    yield f"   pc {core.pc:08x}   retired {core.retired}   state {core.state}"


def gpr(tile: Tile, thread: int) -> Iterator[str]:
    """The 64 Tensix GPRs of a thread, eight to a line."""
    values = tile.tensix.gpr[thread]
    yield f"T{thread} GPRs"
    for row in range(0, 64, 8):
        yield f"  {row:>2}  " + " ".join(f"{int(v):08x}" for v in values[row : row + 8])


def cfg(tile: Tile, wanted: str | None) -> list[str]:
    """Configuration: all words that are not 0, a word by index, or fields by (part of) a name."""
    config, threads = tile.tensix.cfg, tile.tensix.thread_cfg
    if wanted is None:
        return [*_words("bank ", config), *_words("thread T", threads)]
    named, of_threads = fields_of(config_fields), fields_of(thread_fields)
    if wanted.isdecimal() or wanted.startswith("0x"):
        index = int(wanted, 0)
        if not 0 <= index < config.shape[1]:
            raise InputError(f"no configuration word {index}", hint=f"0 to {config.shape[1] - 1}")
        banks = "  ".join(f"bank {b} {int(words[index]):#010x}" for b, words in enumerate(config))
        there = {name: field for name, field in named.items() if field.word == index}
        return [f"word {index}: {banks}", *_values("word", "bank ", config, there)]
    shown = [
        *_values("word", "bank ", config, _matching(named, wanted)),
        *_values("thread word", "T", threads, _matching(of_threads, wanted)),
    ]
    if not shown:
        near = difflib.get_close_matches(wanted, [*named, *of_threads], n=3, cutoff=0.4)
        raise InputError(f"no configuration field {wanted!r}", hint=f"near: {', '.join(near)}")
    if len(shown) > _MOST_FIELDS:
        shown[_MOST_FIELDS:] = [f"and {len(shown) - _MOST_FIELDS} more: give more of the name"]
    return shown


def _matching(known: Mapping[str, Field], text: str) -> dict[str, Field]:
    wanted = text.lower()
    exact = {name: field for name, field in known.items() if name.lower() == wanted}
    return exact or {name: field for name, field in known.items() if wanted in name.lower()}


def _values(kind: str, label: str, rows: Any, fields: Mapping[str, Field]) -> Iterator[str]:
    """The values of fields in each bank, or of each thread."""
    for name, f in fields.items():
        held = (int(words[f.word]) >> f.shift & f.mask for words in rows)
        values = "  ".join(f"{label}{i} {value:#x}" for i, value in enumerate(held))
        yield f"{name} ({kind} {f.word}, shift {f.shift}): {values}"


def _words(label: str, rows: Any) -> Iterator[str]:
    for i, words in enumerate(rows):
        shown = [f"{k}: {int(words[k]):#x}" for k in np.flatnonzero(words)]
        yield f"{label}{i}: {', '.join(shown) or 'all 0'}"


def rwc(tile: Tile) -> Iterator[str]:
    """Row counters of each thread, and what a carriage return restores."""
    s = tile.state
    yield "      SrcA SrcB  Dst  fidelity   carriage return: SrcA SrcB  Dst"
    for t in range(3):
        a, b, d, phase = (int(v) for v in s.rwc[t])
        ra, rb, rd = (int(v) for v in s.rwc_cr[t, :3])
        yield f"  T{t}  {a:>4} {b:>4} {d:>4}  {phase:>8}   {ra:>21} {rb:>4} {rd:>4}"


def adc(tile: Tile) -> Iterator[str]:
    """Address counters: X Y Z W of both channels of each unpacker and the packer."""
    s = tile.state
    for t in range(3):
        for u, unit in enumerate(UNPACKERS):
            parts = []
            for channel in range(2):
                now = " ".join(str(int(v)) for v in s.adc[t, u, channel])
                back = " ".join(str(int(v)) for v in s.adc_cr[t, u, channel])
                parts.append(f"channel {channel}: X Y Z W {now} (cr {back})")
            yield f"  T{t} {unit:<10}  {'  '.join(parts)}"


def sem(tile: Tile) -> Iterator[str]:
    """Semaphores with their maxima, and the holder of each mutex."""
    s = tile.state
    yield "  ".join(f"sem{i} {int(s.sem[i])}/{int(s.sem_max[i])}" for i in range(8))
    held = [f"mutex {i}: T{int(owner) - 1}" for i, owner in enumerate(s.mutex) if owner]
    yield f"mutexes: {', '.join(held) or 'all free'}"


def lreg(tile: Tile, index: int | None) -> Iterator[str]:
    """LRegs: lane 0-7 of all, or the 32 lanes of one as bits and as float."""
    values = tile.tensix.lreg
    if index is None:
        for i in range(16):
            yield f"  LReg{i:<2} " + " ".join(f"{int(v):08x}" for v in values[i, :8]) + " ..."
        return
    if not 0 <= index < 16:
        raise InputError(f"no LReg {index}", hint="0 to 15")
    floats = values[index].view(np.float32)
    for row in range(0, 32, 8):
        yield f"  {row:>2}  " + " ".join(f"{int(v):08x}" for v in values[index, row : row + 8])
        yield "      " + _numbers(floats[row : row + 8])


def _numbers(values: Iterable[Any]) -> str:
    return " ".join(f"{v:>8.5g}" if isinstance(v, np.floating) else f"{v:>8}" for v in values)


def row_range(text: str | None, rows: int) -> range:
    """`3` or `0-7` as a range of rows."""
    if text is None:
        return range(0)
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise InputError(f"{text!r} is not a row", hint="3 or 0-7")
    low, high = int(first), int(last or first)
    if not low <= high < rows:
        raise InputError(f"rows {text}: there are rows 0 to {rows - 1}")
    return range(low, high + 1)


def dst(tile: Tile, rows: str | None, fmt: str | None) -> list[str]:
    """Dst: which rows hold something, or some rows decoded as bf16, fp16, fp32 or int32."""
    if rows is None:
        cells = tile.tensix.dst16
        used = np.flatnonzero((tile.state.dst_valid != 0) & cells.any(axis=1))
        cleared = int((tile.state.dst_valid == 0).sum())
        written = int((tile.state.dst_valid != UNWRITTEN).sum())
        return [
            f"Dst rows that are not 0: {_spans(used)}",
            f"cleared by ZEROACC: {cleared} of 1024; written or cleared since power-up: {written}",
        ]
    values = tile.tensix.dst(fmt or "bf16")
    return [f"  {r:>4}  {_numbers(values[r])}" for r in row_range(rows, len(values))]


def src(tile: Tile, which: str | None, rows: str | None) -> list[str]:
    """SrcA and SrcB: the state of both banks, or rows of both banks of one as float."""
    s = tile.state
    if which is None:
        return [_bank(s, i, b) for i in range(2) for b in range(2)]
    if which.lower() not in ("a", "b"):
        raise InputError(f"no source register {which!r}", hint="a or b")
    index = "ab".index(which.lower())
    lines = []
    for b in range(2):
        lines.append(_bank(s, index, b))
        for r in row_range(rows or "0-63", 64):
            lines.append(f"  {r:>2}  {_numbers(s.src[index, b, r].view(np.float32))}")
    return lines


def _bank(s: Any, index: int, b: int) -> str:
    owner = "the matrix unit" if s.src_valid[index, b] else "the unpacker"
    used = np.flatnonzero(s.src[index, b].any(axis=1))
    roles = [
        role
        for role, banks in (("unpacked next", s.unpack_bank), ("read next", s.matrix_bank))
        if banks[index] == b
    ]
    state = f"belongs to {owner}" + (f", {' and '.join(roles)}" if roles else "")
    return f"Src{'AB'[index]} bank {b}: {state}; rows that are not 0: {_spans(used)}"


def _spans(numbers: Sequence[int] | npt.NDArray[Any]) -> str:
    """`0-7, 12` for sorted numbers."""
    spans: list[list[int]] = []
    for n in (int(n) for n in numbers):
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in spans) or "none"
