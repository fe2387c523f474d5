"""ELF files and call stack entries, under tt-exalens' names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from bhemu.errors import InputError, NotModelled
from bhemu.llk.device import FileLine as DwarfFileLine
from bhemu.llk.device import Frame as CallstackEntry
from bhemu.program import elf
from bhemu.program.symbols import Symbols

__all__ = ["CallstackEntry", "DwarfFileLine", "ElfFile", "ElfSection", "ElfSymbol"]


@dataclass(frozen=True)
class ElfSymbol:
    """A symbol and its address."""

    name: str
    value: int


@dataclass(frozen=True)
class ElfSection:
    """A section of the file, as it lies there."""

    name: str
    address: int
    size: int
    data: bytes


class ElfFile:
    """The symbols and sections of an ELF for a RISC-V core."""

    def __init__(self, path: str, load_address: int | None = None) -> None:
        if load_address is not None:
            raise NotModelled("an ELF at another address than it was linked for")
        with open(path, "rb") as file:
            self._data = file.read()
        self.elf_file_path = path

    @cached_property
    def _found(self) -> Symbols:
        return Symbols(self._data, self.elf_file_path)

    @cached_property
    def symbols(self) -> Mapping[str, ElfSymbol]:
        """Every symbol by its name."""
        found = self._found
        return {name: ElfSymbol(name, found.address(name)) for name in found.names}

    def find_symbol_by_name(self, name: str) -> ElfSymbol | None:
        """The symbol, or None; InputError when several of the name stand at different addresses."""
        return ElfSymbol(name, self._found.address(name)) if name in self._found.names else None

    def iter_sections(self) -> Iterator[ElfSection]:
        """The sections in the file's order."""
        try:
            for section in elf.sections(self._data, self.elf_file_path):
                data = section.bytes_of(self._data)
                yield ElfSection(section.name, section.address, section.size, data)
        except elf.DamagedError as problem:
            raise InputError(f"{self.elf_file_path}: {problem}") from None

    def get_section_by_name(self, name: str) -> ElfSection | None:
        """The first section of a name, or None."""
        return next((found for found in self.iter_sections() if found.name == name), None)

    def get_pointer_size(self) -> int:
        """Bytes of an address."""
        return 4
