"""What stepper commands name: addresses, registers, expressions of C, where each core stands."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError, UnknownName
from bhemu.machine.core import Core
from bhemu.machine.resolve import LINE, code_address, core_name
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program import dwarf, elf, files, variables
from bhemu.program.coordinates import At
from bhemu.program.schema import Program
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.riscv.assembly import disassemble as riscv_text
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
    """Source files by the names DWARF gives; of a chip those of the first of its tiles.

    They are looked for in `folders`, where the compiler had them if that is an absolute path, and
    near the ELFs; with `named_only` none that a core's ELF does not name.
    """

    def __init__(
        self,
        program: Program,
        folders: tuple[Path, ...] = (),
        *,
        named_only: bool = False,
    ) -> None:
        self._cores, self._folders = program.placed()[0].cores, folders
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
        if (spec := self._cores.get(core)) is None or spec.elf is None:
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
        found = dwarf.files(data, elf.sections(data, elf_file.name))
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


def instruction(tile: Tile, core: Core, pc: int) -> str:
    """`00010024:  a6a1000a  text` of the word at `pc`."""
    if not 0 <= pc <= L1_SIZE - 4:
        return f"{pc:08x}:  no code here (outside L1)"
    word = int.from_bytes(tile.read(pc, 4), "little")
    text = riscv_text(word, pc, lambda target: core.locate(target)[0], tensix_text)
    return f"{pc:08x}:  {word:08x}  {text}"


def position(tile: Tile, core: Core, sources: Sources) -> list[str]:
    """Core, pc, function and file:line; the source line; the next instruction."""
    symbol, file, line = core.locate(core.pc)
    state = "" if core.state == "running" else f"[{core.state}]"
    parts = (core.name, f"pc 0x{core.pc:08X}", symbol or "", core.source(core.pc), state)
    if core.state == "reset":
        return [f"{core.name}  [reset]"]
    lines = ["  ".join(part for part in parts if part)]
    if file and line:
        if (source := sources.line(core.name, file, line)) is not None:
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

    def _at_least_one(self, n: int) -> int:
        if n < 1:
            raise InputError("the count must be 1 or more")
        return n

    def _count_and_core(self, args: list[str], default: int = 1) -> tuple[int, Core]:
        n, core = default, self.core
        for arg in args:
            if arg in CORE_NAMES:
                core = self.tile.core[arg]
            else:
                n = number(arg, "count or core")
        return self._at_least_one(n), core

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


# Expressions of C over variables: names, members, elements, pointers, operators.

Read = Callable[[int, int], bytes]
_LONGEST = 1000  # characters of a number or name
Lookup = Callable[[str], "Value"]
_TOKEN = re.compile(
    r"\s*(\$?[A-Za-z_]\w*(?:(?::\w+)+)?|0[xX][0-9a-fA-F]+|\d+"
    r"|->|&&|\|\||[=!<>]=|<<|>>|[.\[\]*&()|^<>+\-/%!~])"
)
_OPERATORS: tuple[dict[str, Callable[[int, int], int]], ...] = (  # from the weakest
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(_equal(a, b)), "!=": lambda a, b: int(not _equal(a, b))},
    {
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": lambda a, b: a << (b & 31), ">>": lambda a, b: a >> (b & 31)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {
        "*": lambda a, b: a * b,
        "/": lambda a, b: _divided(a, b)[0],
        "%": lambda a, b: _divided(a, b)[1],
    },
)
_UNARY: dict[str, Callable[[int], int]] = {
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
    "-": lambda a: -a,
}


def _divided(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        raise InputError("division by 0")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - b * quotient


def _equal(a: int, b: int) -> bool:
    """As in C: a negative number of 32 bits equals the unsigned one with its bits."""
    low, high = sorted((a, b))
    return low == high or (-(1 << 31) <= low < 0 and low + (1 << 32) == high)


@dataclass(frozen=True)
class Value:
    """A value with its type (None: a plain word) and its address (None: it is in no memory)."""

    raw: bytes
    type: variables.CType | None
    address: int | None
    read: Read
    exact: int | None = None  # of a number, which may be negative

    @classmethod
    def number(cls, value: int) -> Value:
        """A number without a type."""
        raw = (value & 0xFFFFFFFF).to_bytes(4, "little")
        return cls(raw, None, None, lambda a, n: bytes(n), value)

    @classmethod
    def lane(cls, value: int) -> Value:
        """A lane of an LReg: the sign of its bits is that of a float and of an integer."""
        return replace(cls.number(value), exact=value - ((value & 1 << 31) << 1))

    @classmethod
    def word(cls, address: int, read: Read) -> Value:
        """The word at an address, of unknown type."""
        return cls(read(address & ~3, 4), None, address, read)

    @classmethod
    def at(cls, kind: variables.CType, where: variables.Location, frame: variables.Frame) -> Value:
        """A variable of that type at a location."""
        size = variables.readable(kind) or 4
        if where.address is not None:
            return cls(frame.read(where.address, size), kind, where.address, frame.read)
        value = frame.registers[where.register] if where.register is not None else where.value or 0
        raw = (value & (1 << 64) - 1).to_bytes(8, "little")[:size]
        return cls(raw, kind, None, frame.read)

    @classmethod
    def variable(cls, frame: variables.Frame, name: str, depth: int) -> Value | None:
        """The variable of that name in scope, None without one; InputError if it is gone."""
        if (found := variables.find(frame.debug, frame.pc, name, depth)) is None:
            return None
        try:
            return cls.at(variables.type_of(found[0]), variables.locate(frame, *found), frame)
        except variables.Gone as reason:
            raise InputError(f"{name}: {reason}", hint="regs and dis show the machine") from None

    def text(self, form: str) -> str:
        """The value in words; `form` as in values.as_text."""
        if self.type is not None:
            return variables.as_text(self.type, self.raw, self.read, form)
        value = int.from_bytes(self.raw, "little")
        signed = str(value - ((value & 1 << 31) << 1))
        shown = {"x": f"{value:#x}", "t": f"{value:#b}", "c": repr(chr(value & 0xFF)), "d": signed}
        return shown.get(form, str(value)) if form else f"{value} ({value:#x})"

    @property
    def integer(self) -> int:
        """As an unsigned number."""
        return int.from_bytes(self.raw, "little")

    @property
    def signed(self) -> int:
        """As a number of its type, for operators; without a type unsigned."""
        if self.exact is not None:
            return self.exact
        if self.type is not None and self.type.kind in ("float", "record", "array"):
            raise InputError(f"operators take integers, not {self.type}")
        value = self.integer
        negative = self.type is not None and self.type.signed and value >> 8 * len(self.raw) - 1
        return value - (1 << 8 * len(self.raw)) if negative else value

    def member(self, name: str) -> Value:
        """A member of a structure."""
        if self.type is None or self.type.kind != "record":
            text = "its type is not known" if self.type is None else f"{self.type} has no members"
            raise InputError(f".{name}: {text}", hint=self._untyped())
        members = {member.name: member for member in self.type.members}
        if name not in members:
            hint = f"{did_you_mean(name, members)} members: {', '.join(members)}".strip()
            raise UnknownName(f"{self.type} has no member {name}", hint=hint)
        one = members[name]
        address = None if self.address is None else self.address + one.offset
        if address is not None and one.bits is None:
            return Value(
                self.read(address, variables.readable(one.type) or 4), one.type, address, self.read
            )
        return Value(variables.slice_of(one, self.raw), one.type, address, self.read)

    def _untyped(self) -> str:
        """How to look at what has no type."""
        if self.type is not None or self.address is None:
            return "info source says what DWARF there is"
        return (
            f"x/4x {self.address:#x} shows its words; compilers write no type for a variable that"
            " is only declared (extern)"
        )

    def element(self, index: int) -> Value:
        """An element of an array, or of what a pointer points to."""
        if self.type is not None and self.type.kind == "array" and self.address is not None:
            return self._pointed(self.address, self.type.target, index)
        if self.type is not None and self.type.kind == "pointer":
            return self._pointed(self.integer, self.type.target, index)
        text = "its type is not known" if self.type is None else f"{self.type} has no elements"
        raise InputError(text, hint=self._untyped())

    def pointed(self) -> Value:
        """What it points to; a number points to a word."""
        return Value.word(self.integer, self.read) if self.type is None else self.element(0)

    def _pointed(self, address: int, kind: variables.CType, index: int) -> Value:
        size = kind.size or 1
        at = (address + index * size) & 0xFFFFFFFF
        return Value(self.read(at, variables.readable(kind) or 4), kind, at, self.read)


class _Parser:
    def __init__(self, text: str, lookup: Lookup, read: Read) -> None:
        self._text, self._lookup, self._read = text, lookup, read
        tokens, at = [], 0
        while at < len(text.rstrip()):
            if (found := _TOKEN.match(text, at)) is None:
                raise InputError(f"print cannot read {text[at:]!r}", hint="v, p->m, a[2], *p, &v")
            tokens.append(found[1])
            at = found.end()
        self._tokens = tokens

    def whole(self) -> Value:
        value = self._binary(0)
        if self._tokens:
            raise InputError(f"print does not know {self._tokens[0]!r} in {self._text!r}")
        return value

    def _binary(self, level: int) -> Value:
        if level == len(_OPERATORS):
            return self._prefixed()
        value = self._binary(level + 1)
        while self._tokens[:1] and self._tokens[0] in _OPERATORS[level]:
            apply = _OPERATORS[level][self._take()]
            value = Value.number(apply(value.signed, self._binary(level + 1).signed))
        return value

    def _take(self, wanted: str = "") -> str:
        if not self._tokens or (wanted and self._tokens[0] != wanted):
            raise InputError(f"{self._text!r} ends too early, or wants {wanted or 'a name'}")
        return self._tokens.pop(0)

    def _prefixed(self) -> Value:
        if self._tokens[:1] and self._tokens[0] in _UNARY:
            return Value.number(_UNARY[self._take()](self._prefixed().signed))
        if self._tokens[:1] == ["*"]:
            self._take()
            inner = self._prefixed()
            untyped = inner.type is None
            return Value.word(inner.integer, self._read) if untyped else inner.pointed()
        if self._tokens[:1] == ["&"]:
            self._take()
            inner = self._prefixed()
            if inner.address is None:
                raise InputError(f"{self._text!r}: that is in no memory")
            return Value.number(inner.address)
        value = self._primary()
        while self._tokens[:1] and self._tokens[0] in (".", "->", "["):
            kind = self._take()
            if kind == "[":
                value = value.element(self._binary(0).integer)
                self._take("]")
            else:
                value = (value.pointed() if kind == "->" else value).member(self._take())
        return value

    def _primary(self) -> Value:
        token = self._take()
        if token == "(":
            value = self._binary(0)
            self._take(")")
            return value
        if len(token) > _LONGEST:
            raise InputError(f"a number or name of {len(token)} characters")
        if token[0].isdigit():
            return Value.number(int(token, 0) if token[:2] in ("0x", "0X") else int(token))
        return self._lookup(token)


def evaluate(text: str, lookup: Lookup, read: Read) -> Value:
    """The value of an expression; InputError for what cannot be read or is not there."""
    try:
        return _Parser(text, lookup, read).whole()
    except RecursionError:
        raise InputError("the expression is nested too deep", hint="print a part of it") from None
