"""What DWARF says of an ELF: its source lines; its functions, inlined copies and blocks.

Nothing is relocated: linked ELFs hold final values, and relocations that the linker kept
(--emit-relocs) would be applied a second time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bhemu.errors import Call, InputError
from bhemu.program import elf
from bhemu.program.files import check_limit, limit
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.debug_info import Info


# Line numbers of an ELF, of DWARF 2 to 5, read by pyelftools under a budget.
#
# Line programs stand for themselves: neither .debug_info nor a relocation is needed to read them,
# so an ELF linked with --emit-relocs is read like any other.

_LONGEST_FILE = 255
_ADDRESSES = 0xFFFF_FFFF
_ASSEMBLER, _WORD = (".S", ".s"), 4  # files, bytes of an instruction


class Row(NamedTuple):
    """Addresses `lo` to `hi` (exclusive) come from `file`:`line`."""

    lo: int
    hi: int
    file: str
    line: int


class File(NamedTuple):
    """A file of source, by its name without folders; `folder` as the compiler was given it."""

    name: str
    folder: str


_UNKNOWN = File("?", "")


_name = attrgetter("name")


def whole_path(file: File) -> str:
    """A file with its folder, as the compiler was given it."""
    return f"{file.folder}/{file.name}" if file.folder else file.name


def rows(
    data: bytes, table: list[elf.Section], shown: Callable[[File], str] = _name
) -> list[Row] | None:
    """The rows in address order, None without a line table; DamagedError when it cannot be read.

    shown: how a file is named. InputError beyond a limit.
    """
    if (programs := _programs(data, table)) is None:
        return None
    ordered = sorted(row for _, named, program in programs for row in _rows(program, named, shown))
    return list(_words_of_assembler(ordered, lambda at: _is_tensix(data, table, at)))


def _is_tensix(data: bytes, table: list[elf.Section], address: int) -> bool:
    """Whether a word of the text is none of RISC-V, but one that is pushed to the coprocessor."""
    for one in table:
        at = address - one.address
        if one.flags & elf.SHF_ALLOC and 0 <= at <= one.size - _WORD:
            return one.kind != "SHT_NOBITS" and data[one.offset + at] & 3 != 3
    return False


def _words_of_assembler(rows: list[Row], is_word: Callable[[int], bool]) -> Iterator[Row]:
    """The rows; of an assembler's `.word`, for which it writes none, a row of its own each.

    Such words seem to be of the instruction before them. Where there are as many of them as lines
    up to the next instruction, each is of one of these lines. is_word: whether there is one.
    """
    for row, after in pairwise((*rows, None)):
        assert row is not None
        more = (row.hi - row.lo) // _WORD - 1
        between = 0 if after is None or after.file != row.file else after.line - row.line - 1
        places = range(row.lo + _WORD, row.hi, _WORD)
        if not (
            row.file.endswith(_ASSEMBLER) and 0 < more == between and all(map(is_word, places))
        ):
            yield row
            continue
        for n in range(more + 1):
            low = row.lo + _WORD * n
            yield Row(low, row.hi if n == more else low + _WORD, row.file, row.line + n)


def files(data: bytes, table: list[elf.Section]) -> frozenset[File]:
    """The files that the line programs name, those without code too; errors as of `rows`."""
    return frozenset(file for _, named, _ in _programs(data, table) or () for file in named)


def names(
    data: bytes, table: list[elf.Section], shown: Callable[[File], str] = _name
) -> dict[int, list[str]]:
    """By the offset of a line program its files as DW_AT_call_file counts them.

    shown: how a file is named, without its folder where nothing else is said. Errors as of `rows`.
    """
    found = _programs(data, table) or ()
    return {offset: [shown(file) for file in named] for offset, named, _ in found}


def _programs(
    data: bytes, table: list[elf.Section]
) -> Iterator[tuple[int, list[File], Any]] | None:
    """Of each line program its offset, its files by the file register, and pyelftools' reader."""
    if (line := elf.debug_section(data, table, "line", "LINE_BYTES")) is None:
        return None
    strings = {
        "DW_FORM_line_strp": elf.debug_section(data, table, "line_str", "LINE_BYTES") or b"",
        "DW_FORM_strp": elf.debug_section(data, table, "str", "LINE_BYTES") or b"",
    }
    return _headers(line, strings)


def _headers(line: bytes, strings: dict[str, bytes]) -> Iterator[tuple[int, list[File], Any]]:
    from elftools.common.utils import struct_parse
    from elftools.dwarf.lineprogram import LineProgram

    spent, most = 0, limit("LINE_STEPS")

    def take(count: int) -> None:
        nonlocal spent
        spent += count
        if spent > most:
            check_limit("LINE_STEPS", spent, "line numbers")

    at = 0
    while at + 4 <= len(line):
        wide = line[at : at + 4] == b"\xff\xff\xff\xff"
        size = 8 if wide else 4  # bytes of a length
        first = at + (12 if wide else 4)
        end = first + int.from_bytes(line[first - size : first], "little")
        if end > len(line):
            raise elf.DamagedError("a line program ends beyond its section")
        version = int.from_bytes(line[first : first + 2], "little")
        if not 2 <= version <= 5:
            raise elf.DamagedError(f"a line program of DWARF version {version}")
        stream, structs = elf.CountedBytes(line[at:end], take), _structs(64 if wide else 32)
        with _reading():
            header = struct_parse(structs.Dwarf_lineprog_header, stream, 0)
            named = _files_5(header, strings) if version == 5 else _files_2(header)
        begin = first - at + (4 if version == 5 else 2) + size + header.header_length
        if begin > end - at:
            raise elf.DamagedError("the header of a line program ends beyond it")
        yield at, named, LineProgram(header, stream, structs, begin, end - at)
        at = end


@contextmanager
def _reading() -> Iterator[None]:
    """DamagedError for whatever pyelftools raises of a damaged line program."""
    try:
        yield
    except Exception as problem:
        inner: BaseException | None = problem
        while inner is not None:  # pyelftools wraps what its streams raise
            if isinstance(inner, InputError | elf.DamagedError):
                raise inner from None
            inner = inner.__context__
        raise elf.DamagedError(printable(str(problem) or repr(problem))) from problem


@cache
def _structs(bits: int) -> Any:
    """pyelftools' layouts; a count of entries is as many steps, which may be of no bytes each."""
    from elftools.common.construct_utils import ULEB128
    from elftools.dwarf.structs import DWARFStructs

    class Number(ULEB128):
        def _parse(self, stream: Any, context: Any) -> int:
            value = super()._parse(stream, context)
            if str(self.name).endswith("_count"):
                stream.take(value)
            return value

    class Structs(DWARFStructs):
        _structs_cache: ClassVar[dict[Any, Any]] = {}

        def _create_leb128(self) -> None:
            super()._create_leb128()
            self.Dwarf_uleb128 = Number

    structs = Structs(True, bits, 4)
    assert structs.Dwarf_uleb128 is Number
    return structs


def _file(folder: bytes, raw: bytes) -> File:
    path = raw if raw.startswith(b"/") else folder + b"/" + raw
    above, _, name = path[-elf.LONGEST_NAME :].rpartition(b"/")
    shown = printable(name[:_LONGEST_FILE].decode(errors="replace")) or "?"
    return File(shown, above.decode(errors="replace"))


def _files_2(header: Any) -> list[File]:
    """Files of DWARF 2 to 4, which count from 1, as folders do; 0 is that of the compiler."""
    folders = [b"", *header.include_directory]
    held = ((f.name, f.dir_index) for f in header.file_entry)
    return [_UNKNOWN, *(_file(folders[k] if k < len(folders) else b"", name) for name, k in held)]


def _files_5(header: Any, strings: dict[str, bytes]) -> list[File]:
    """Files of DWARF 5, which count from 0; a name may lie in another section."""

    def texts(kind: str, held: list[Any]) -> list[bytes]:
        forms = {one.content_type: one.form for one in header[f"{kind}_entry_format"]}
        if (form := forms.get("DW_LNCT_path")) is None:
            return [b""] * len(held)
        if form not in strings:
            return [bytes(one.DW_LNCT_path) for one in held]
        section = strings[form]
        return [elf.text_at(section, min(one.DW_LNCT_path, len(section))) for one in held]

    folders = texts("directory", header.directories)
    folder = [one.get("DW_LNCT_directory_index", 0) for one in header.file_names]
    return [
        _file(folders[k] if isinstance(k, int) and k < len(folders) else b"", name)
        for k, name in zip(folder, texts("file_name", header.file_names), strict=True)
    ]


def _rows(program: Any, named: list[File], shown: Callable[[File], str]) -> list[Row]:
    """The rows of a line program: each reaches to the next one of its sequence."""
    with _reading():
        entries = program.get_entries()
    found: list[Row] = []
    last = None
    for state in (entry.state for entry in entries if entry.state is not None):
        address = state.address & _ADDRESSES
        if last is not None and address > last.address & _ADDRESSES:
            held = named[last.file] if last.file < len(named) else _UNKNOWN
            found.append(Row(last.address & _ADDRESSES, address, shown(held), last.line))
        last = None if state.end_sequence else state
    return found


# Functions, inlined copies and blocks, from .debug_info.

_DEEPEST = 64  # entries inside each other
_FARTHEST = 16  # steps to an origin
_LONGEST = 255
_INLINED, _FUNCTION, _BLOCK = (
    "DW_TAG_inlined_subroutine",
    "DW_TAG_subprogram",
    "DW_TAG_lexical_block",
)


class Gone(ValueError):  # noqa: N818 - an answer, not an error
    """A variable has no value here; the message says why."""


class Inlined(NamedTuple):
    """The function of a source position; the calls that were inlined there, the inner first."""

    function: str | None
    calls: tuple[Call, ...]


class Range(NamedTuple):
    """Addresses `lo` to `hi` (exclusive)."""

    lo: int
    hi: int


@dataclass(eq=False, slots=True)
class Block:
    """A function, one inlined copy of one, or a block with variables of its own.

    `call`: (file, line) of the call that was inlined; `outer`: the block around it; `variables`:
    the entries (pyelftools' DIEs) of variables and parameters.
    """

    kind: str
    name: str
    ranges: tuple[Range, ...]
    call: tuple[str, int] | None
    outer: Block | None
    entry: Any
    variables: list[Any] = field(default_factory=list)

    @property
    def depth(self) -> int:
        """How many blocks are around it."""
        return 0 if self.outer is None else self.outer.depth + 1

    @property
    def inlined(self) -> bool:
        """Whether it is a copy inside another function."""
        return self.kind == _INLINED

    @property
    def function(self) -> Block | None:
        """The innermost function or inlined copy that it is, or belongs to."""
        block: Block | None = self
        while block is not None and block.kind == _BLOCK:
            block = block.outer
        return block

    def holds(self, address: int) -> bool:
        """Whether code at `address` belongs to it."""
        return any(part.lo <= address < part.hi for part in self.ranges)


class Debug:
    """What .debug_info says of code; addresses are those of linking.

    `problem`: why there is nothing, "" when there is.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self.blocks: list[Block] = []
        self.globals: dict[str, Any] = {}
        self.problem = ""
        self.info: Info | None = None
        self._calls: dict[int, Inlined] = {}
        self._left = limit("DWARF_ENTRIES")
        try:
            table = elf.sections(data, path)
            self._code = _Code(table)
            self.info = reader(data, table, path)
            if self.info is None:
                self.problem = f"{path}: no .debug_info; compile with -g"
                return
            for unit in self.info.units():
                self._walk(unit.get_top_DIE(), None, self.info, 0)
            self.info.renew()
        except RecursionError:
            self._fail(f"{path}: .debug_info is nested too deep")
        except InputError as error:
            self._fail(f"{path}: no .debug_info: {error.message}; {error.hint}")
        except Exception as error:  # pyelftools raises anything for a damaged file
            self._fail(f"{path}: damaged .debug_info: {printable(str(error))}")

    def _fail(self, problem: str) -> None:
        self.blocks, self.globals, self.problem, self.info = [], {}, problem, None

    def renew(self) -> None:
        """A new question about variables begins."""
        if self.info is not None:
            self.info.renew()

    def at(self, address: int) -> list[Block]:
        """The blocks around `address`, the innermost first."""
        found = [block for block in self.blocks if block.holds(address)]
        return sorted(found, key=attrgetter("depth"), reverse=True)

    def calls(self, address: int) -> Inlined:
        """The innermost function, and the calls that were inlined around `address`."""
        if (found := self._calls.get(address)) is None:
            chain = [block for block in self.at(address) if block.kind != _BLOCK]
            calls = tuple(
                Call(outer.name, *(block.call or ("?", 0)))
                for block, outer in pairwise(chain)
                if block.inlined
            )
            found = self._calls[address] = Inlined(chain[0].name if chain else None, calls)
        return found

    def entries(self, name: str) -> list[int]:
        """Where the code of function `name` begins: itself, and each inlined copy."""
        found = {
            min(part.lo for part in block.ranges)
            for block in self.blocks
            if block.name == name and block.kind != _BLOCK and block.ranges
        }
        return sorted(found)

    def owner(self, address: int) -> Block | None:
        """The function or inlined copy that the code at `address` belongs to."""
        return next((block for block in self.at(address) if block.kind != _BLOCK), None)

    # Reading

    def _walk(self, die: Any, outer: Block | None, info: Info, depth: int) -> None:
        for child in info.children(die):
            self._left -= 1
            if self._left < 0:
                check_limit("DWARF_ENTRIES", limit("DWARF_ENTRIES") + 1, "DWARF entries")
            if depth > _DEEPEST:
                raise elf.DamagedError("entries are nested too deep")
            inner = outer
            if child.tag in (_FUNCTION, _INLINED, _BLOCK):
                inner = self._block(child, outer, info)
                if inner is None and child.tag == _BLOCK:
                    inner = outer
            elif child.tag in ("DW_TAG_variable", "DW_TAG_formal_parameter"):
                if outer is not None:
                    outer.variables.append(child)
                elif name_of(child):
                    if "DW_AT_location" in child.attributes:
                        self.globals[name_of(child)] = child
                    else:
                        self.globals.setdefault(name_of(child), child)
            if child.has_children and (inner is not None or child.tag == "DW_TAG_namespace"):
                self._walk(child, inner, info, depth + 1)

    def _block(self, die: Any, outer: Block | None, info: Info) -> Block | None:
        parts = tuple(part for part in _ranges(die) if self._code.holds(part))
        if not parts:
            return None  # a declaration, the abstract form, or what the linker has dropped
        call = None
        if die.tag == _INLINED:
            file = named_file(die, "DW_AT_call_file", info.file_names, 0)
            call = file or "?", number(die, "DW_AT_call_line")
        block = Block(die.tag, name_of(die), parts, call, outer, die)
        self.blocks.append(block)
        return block


class _Code:
    """The sections with code, of which a file may have thousands."""

    def __init__(self, table: list[elf.Section]) -> None:
        wanted = elf.SHF_ALLOC | elf.SHF_EXECINSTR
        found = sorted(
            (s.address, s.address + s.size) for s in table if s.flags & wanted == wanted and s.size
        )
        self._starts = [start for start, _ in found]
        self._ends = list(accumulate((end for _, end in found), max))  # of all that begin before

    def holds(self, part: Range) -> bool:
        """Whether the addresses, at least one, lie in them."""
        before = bisect_right(self._starts, part.lo)
        return before > 0 and part.lo < part.hi <= self._ends[before - 1]


def reader(data: bytes, table: list[elf.Section], path: str) -> Info | None:
    """The reader of .debug_info, None without one; InputError beyond a limit."""
    from bhemu.program.debug_info import Info  # imported late: bhemu must start fast

    total = 0
    for section in table:
        if section.name.startswith((".debug_", ".zdebug_")):
            raw = section.bytes_of(data)
            size = len(raw)
            if section.flags & elf.SHF_COMPRESSED:
                size = int.from_bytes(raw[4:8], "little")
            elif section.name.startswith(".z"):
                size = int.from_bytes(raw[4:12], "big")
            total += size
    check_limit("DWARF_BYTES", total, f"{path}: bytes of debug sections")
    info = Info(data, table, path)
    return info if info.present else None


def named_file(
    die: Any, attribute: str, file_names: Mapping[int, list[str]], default: int = -1
) -> str:
    """A file that an entry names by its number, else `default`; "" where there is none.

    file_names: as of `names`.
    """
    index = number(die, attribute, default)
    place = die.cu.get_top_DIE().attributes.get("DW_AT_stmt_list")
    held = file_names.get(place.value, []) if place is not None else []
    return held[index] if 0 <= index < len(held) else ""


def number(die: Any, attribute: str, default: int = 0) -> int:
    """An attribute that is a number."""
    found = die.attributes.get(attribute)
    return found.value if found is not None and isinstance(found.value, int) else default


def origin(die: Any) -> Iterator[Any]:
    """The entry, and those that it completes: its abstract form, its declaration."""
    for _ in range(_FARTHEST):
        yield die
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in die.attributes:
                die = die.dwarfinfo.referred(die, link)
                break
        else:
            return


def name_of(die: Any) -> str:
    """Its name, "" where it has none."""
    for one in origin(die):
        if (found := one.attributes.get("DW_AT_name")) is not None:
            raw = found.value
            text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
            return printable(text[:_LONGEST])
    return ""


def _ranges(die: Any) -> Iterator[Range]:
    """The addresses of its code."""
    attributes = die.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = number(die, "DW_AT_low_pc"), attributes["DW_AT_high_pc"]
        if isinstance(high.value, int):
            yield Range(low, high.value if high.form == "DW_FORM_addr" else low + high.value)
    elif "DW_AT_ranges" in attributes:
        lists = die.dwarfinfo.range_lists()
        base = number(die.cu.get_top_DIE(), "DW_AT_low_pc")
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, die.cu):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if entry.is_absolute else base
                yield Range(start + entry.begin_offset, start + entry.end_offset)
