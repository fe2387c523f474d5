"""How named state is shown, and the rows that several kinds of state share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bhemu.debug.rows import Row, Value, values
from bhemu.machine.saved_tile import TileState
from bhemu.tensix.insn import disassemble


@dataclass(frozen=True)
class View:
    """How to show: format of Dst and LReg; empty rows too; of memory what differs from `other`."""

    fmt: str = ""
    every: bool = False
    other: TileState | None = None

    def whole(self, every: bool) -> "View":
        """With or without empty rows."""
        return replace(self, every=every)

    def against(self, other: TileState) -> "View":
        """Memory only where it differs from that of `other`."""
        return replace(self, other=other)


def word_cells(word: int) -> dict[str, Value]:
    """A Tensix word and its assembly; 0 is nothing."""
    return {"word": f"0x{word:08X}", "text": disassemble(word)} if word else {}


def ints(array: Any) -> list[int]:
    """The elements as Python's integers."""
    return [int(v) for v in array]


def eights(label: str, array: Any, form: str = "08x", index: int | None = None) -> Iterator[Row]:
    """A flat array, eight cells to a row."""
    for i in range(0, len(array), 8):
        part = values(ints(array[i : i + 8]), i)
        place = i if index is None else index
        yield Row(f"{label} {i:>2}", part, form, names=False, index=place, span=8)
