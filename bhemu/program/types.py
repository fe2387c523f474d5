"""Layouts of C structures as an ELF's debug information states them (.debug_info of DWARF 4, 5).

Only what a host needs to talk to firmware: sizes, offsets and array lengths of named structures.
Members of anonymous structures and unions count as members of what holds them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from bhemu import limits
from bhemu.errors import InputError
from bhemu.program import files
from bhemu.text import printable

_DEEPEST = 16  # structures inside each other
_TRANSPARENT = {
    *("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"),
    *("DW_TAG_atomic_type", "DW_TAG_restrict_type"),
}
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
    from elftools.elf.elffile import ELFFile  # imported late: bhemu must start fast

    data = files.read_bytes(path, "ELF_BYTES")
    try:
        elf = ELFFile(io.BytesIO(data))
        if not elf.has_dwarf_info():
            return None
        size = sum(s["sh_size"] for s in elf.iter_sections() if s.name.startswith(".debug"))
        limits.check("LINE_BYTES", size, f"{path}: bytes of debug information")
        for unit in elf.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            die = next(_named(unit, name), None)
            if die is not None:
                return _type(die, 0)
    except InputError:
        raise
    except Exception as problem:  # the library raises whatever damaged data leads it to
        text = printable(f"{type(problem).__name__}: {problem}")
        raise InputError(
            f"{path}: damaged debug information: {text}", hint="rebuild the file"
        ) from problem
    return None


def _named(unit: Any, name: str) -> Iterator[Any]:
    """The structures called `name`, directly or by a typedef, that a unit defines."""
    wanted = name.encode()
    for die in unit.iter_DIEs():
        if die.tag not in _STRUCTURES and die.tag != "DW_TAG_typedef":
            continue
        called = die.attributes.get("DW_AT_name")
        if called is not None and called.value == wanted:
            target = _resolved(die)
            if target is not None and "DW_AT_byte_size" in target.attributes:
                yield target


def _resolved(die: Any) -> Any:
    """What a chain of typedefs and qualifiers stands for; None for void."""
    for _ in range(_DEEPEST):
        if die.tag not in _TRANSPARENT:
            return die
        if "DW_AT_type" not in die.attributes:
            return None
        die = die.get_DIE_from_attribute("DW_AT_type")
    raise ValueError("typedefs without end")


def _type(die: Any, depth: int) -> Type:
    if depth > _DEEPEST:
        raise ValueError("structures without end")
    die = _resolved(die)
    if die is None:
        raise ValueError("a member of type void")
    if die.tag == "DW_TAG_array_type":
        element = _type(die.get_DIE_from_attribute("DW_AT_type"), depth + 1)
        count = prod(_length(c) for c in die.iter_children() if c.tag == "DW_TAG_subrange_type")
        return Type(element.size * count, max(count, 1), element.members)
    if die.tag in _STRUCTURES:
        return Type(die.attributes["DW_AT_byte_size"].value, 1, dict(_members(die, depth)))
    if die.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type"):
        return Type(4)
    return Type(die.attributes["DW_AT_byte_size"].value)


def _length(subrange: Any) -> int:
    count, last = (subrange.attributes.get(f"DW_AT_{n}") for n in ("count", "upper_bound"))
    if count is not None:
        return int(count.value)
    return 0 if last is None else (int(last.value) + 1) & 0xFFFFFFFF  # -1: of no length


def _members(die: Any, depth: int) -> Iterator[tuple[str, Member]]:
    for child in die.iter_children():
        if child.tag != "DW_TAG_member" or "DW_AT_type" not in child.attributes:
            continue
        at = child.attributes.get("DW_AT_data_member_location")
        offset = 0 if at is None else int(at.value)
        kind = _type(child.get_DIE_from_attribute("DW_AT_type"), depth + 1)
        name = child.attributes.get("DW_AT_name")
        if name is not None:
            yield name.value.decode(errors="replace"), Member(offset, kind)
            continue
        for inner, member in kind.members.items():
            yield inner, Member(offset + member.offset, member.type)
