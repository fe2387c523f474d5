"""Coordinates of Tensix tiles, as the tests write them: "row,column"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bhemu.errors import InputError, NotModelled

if TYPE_CHECKING:
    from .context import Context, Device


class OnChipCoordinate:
    """A tile of a device."""

    def __init__(self, at: tuple[int, int], device: Device, context: Context | None = None) -> None:
        self.at, self.device, self.context = at, device, context

    @staticmethod
    def create(text: str, device: Device) -> OnChipCoordinate:
        """From "row,column"; InputError for other forms, which name other kinds of blocks."""
        row, comma, column = text.partition(",")
        if not comma or not row.strip().isdecimal() or not column.strip().isdecimal():
            raise InputError(f"location {text!r}: only Tensix tiles, as row,column")
        return OnChipCoordinate((int(row), int(column)), device)

    def to_str(self, output_type: str = "logical") -> str:
        """As `create` reads it; NotModelled for other coordinates than logical ones."""
        if output_type != "logical":
            raise NotModelled(f"{output_type} coordinates: only logical ones")
        return f"{self.at[0]},{self.at[1]}"
