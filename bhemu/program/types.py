"""Layouts of C structures as an ELF's debug information states them (.debug_info of DWARF 4, 5).

Only what a host needs to talk to firmware: sizes, offsets and array lengths of named structures.
Members of anonymous structures and unions count as members of what holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bhemu.errors import InputError
from bhemu.program import dwarf, elf, files, limits
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.debug_info import Info

_DEEPEST = 16  # structures inside each other
_KEPT = 8  # ELFs: a program that is launched again and again has the same firmware
_TRANSPARENT = {
    *("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"),
    *("DW_TAG_atomic_type", "DW_TAG_restrict_type"),
}
_SUBRANGE = "DW_TAG_subrange_type"
_POINTER = 4  # bytes of what states no size: pointers
_STRUCTURES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")


@dataclass(frozen=True)
class Type:
    """A type: `size` bytes in all, `count` elements of an array (1 otherwise), its members."""

    size: int
    count: int = 1
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def stride(self) -> int:
        """Bytes between two elements of an array."""
        return self.size // self.count

    def __getitem__(self, name: str) -> Member:
        if name not in self.members:
            raise InputError(f"no member {name}", hint=f"there are {', '.join(self.members)}")
        return self.members[name]

    def __contains__(self, name: str) -> bool:
        return name in self.members


@dataclass(frozen=True)
class Member:
    """A member of a structure: its offset in it, and its type."""

    offset: int
    type: Type


def structure(path: Path, name: str) -> Type | None:
    """The structure called `name` in the debug information of the ELF at `path`, None without one.

    InputError when the debug information contradicts itself or is larger than a limit.
    """
    return _structure(files.read_bytes(path, "ELF_BYTES"), str(path), name)


@lru_cache(maxsize=_KEPT)
def _structure(data: bytes, path: str, name: str) -> Type | None:
    try:
        info = dwarf.reader(data, elf.sections(data, path), path)
        return None if info is None else _Layouts(path).find(info, name)
    except InputError:
        raise
    except Exception as problem:  # pyelftools raises anything for a damaged file
        text = printable(f"{type(problem).__name__}: {problem}")
        raise InputError(
            f"{path}: damaged debug information: {text}", hint="rebuild the file"
        ) from problem


class _Layouts:
    """Entries of .debug_info as types; looks at so many entries at most."""

    def __init__(self, path: str) -> None:
        self._path, self._left = path, limits.limit("DWARF_ENTRIES")

    def _take(self, entries: Iterator[Any]) -> Iterator[Any]:
        for die in entries:
            self._left -= 1
            if self._left < 0:
                most = limits.limit("DWARF_ENTRIES")
                limits.check("DWARF_ENTRIES", most + 1, f"{self._path}: entries of .debug_info")
            yield die

    def find(self, info: Info, name: str) -> Type | None:
        """The structure called `name`, directly or by a typedef, that some unit defines."""
        for unit in info.units():
            for die in self._take(info.entries(unit)):
                if die.tag not in (*_STRUCTURES, "DW_TAG_typedef") or not _is_named(die, name):
                    continue
                target = self._resolved(die)
                if target is not None and "DW_AT_byte_size" in target.attributes:
                    return self._type(target, 0)
        return None

    @staticmethod
    def _resolved(die: Any) -> Any:
        """What a chain of typedefs and qualifiers stands for; None for void."""
        for _ in range(_DEEPEST):
            if die.tag not in _TRANSPARENT:
                return die
            if "DW_AT_type" not in die.attributes:
                return None
            die = dwarf.referred(die, "DW_AT_type")
        raise ValueError("typedefs without end")

    def _type(self, die: Any, depth: int) -> Type:
        if depth > _DEEPEST:
            raise ValueError("structures without end")
        die = self._resolved(die)
        if die is None:
            raise ValueError("a member of type void")
        if die.tag == "DW_TAG_array_type":
            element = self._type(dwarf.referred(die, "DW_AT_type"), depth + 1)
            ranges = (c for c in self._take(dwarf.children(die)) if c.tag == _SUBRANGE)
            count = prod(_length(each) for each in ranges)
            return Type(element.size * count, max(count, 1), element.members)
        if die.tag in _STRUCTURES:
            return Type(dwarf.number(die, "DW_AT_byte_size"), 1, dict(self._members(die, depth)))
        return Type(dwarf.number(die, "DW_AT_byte_size", _POINTER))

    def _members(self, die: Any, depth: int) -> Iterator[tuple[str, Member]]:
        for child in self._take(dwarf.children(die)):
            if child.tag != "DW_TAG_member" or "DW_AT_type" not in child.attributes:
                continue
            offset = dwarf.number(child, "DW_AT_data_member_location")
            kind = self._type(dwarf.referred(child, "DW_AT_type"), depth + 1)
            name = dwarf.name_of(child)
            if name:
                yield name, Member(offset, kind)
                continue
            for inner, member in kind.members.items():
                yield inner, Member(offset + member.offset, member.type)


def _is_named(die: Any, name: str) -> bool:
    called = die.attributes.get("DW_AT_name")
    return called is not None and called.value == name.encode()


def _length(subrange: Any) -> int:
    """Elements of one dimension; 0 where none is stated."""
    if "DW_AT_count" in subrange.attributes:
        return dwarf.number(subrange, "DW_AT_count")
    return (dwarf.number(subrange, "DW_AT_upper_bound", -1) + 1) & 0xFFFFFFFF
