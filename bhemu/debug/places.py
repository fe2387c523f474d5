"""Addresses as a person writes them: numbers, symbols, file:line, registers of the core."""

import glob
import re
from functools import lru_cache
from pathlib import Path

from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.resolve import code_address
from bhemu.machine.tile import Tile
from bhemu.program import elf, files, symbols
from bhemu.program.schema import Program
from bhemu.riscv.disasm import ABI_NAMES
from bhemu.text import printable

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hh|hpp|inc|s|S)$")  # what a debugger shows
_MOST_DIGITS = 40
_FOLDERS_UP = 2  # how far above an ELF its sources are looked for


def number(text: str, what: str = "number") -> int:
    """A number in decimal or 0x notation; InputError for anything else."""
    if _NUMBER.fullmatch(text) is None:
        raise InputError(f"{text!r} is not a {what}", hint="decimal or 0x...")
    if len(text) > _MOST_DIGITS:
        raise InputError(f"a {what} of {len(text)} digits")
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
