"""Bytes of a structure in memory, filled member by member after its layout."""

from __future__ import annotations

from bhemu.errors import InputError
from bhemu.program.dwarf import Type


class Record:
    """A zeroed structure; set(value, "member", index, ...) fills one number of it."""

    def __init__(self, layout: Type) -> None:
        self.layout, self.data = layout, bytearray(layout.size)

    def set(self, value: int, *path: str | int) -> None:
        """Store a number into the member that `path` leads to; InputError where it does not fit."""
        offset, size = place(self.layout, *path)
        if not 0 <= value < 1 << 8 * size:
            name = ".".join(map(str, path))
            raise InputError(f"{value:#x} does not fit into the {size} bytes of {name}")
        self.data[offset : offset + size] = value.to_bytes(size, "little")

    def set_if_there(self, value: int, name: str, *path: str | int) -> None:
        """As set, where this build of the firmware has the member."""
        if name in self.layout:
            self.set(value, name, *path)


def place(layout: Type, *path: str | int) -> tuple[int, int]:
    """(offset, bytes) of the member that `path` of names and array indices leads to."""
    offset, here = 0, layout
    for step in path:
        if isinstance(step, int):
            if not 0 <= step < here.count:
                raise InputError(f"element {step} of {here.count}")
            offset += step * here.stride
            here = Type(here.stride, 1, here.members)
        else:
            member = here[step]
            offset, here = offset + member.offset, member.type
    return offset, here.size
