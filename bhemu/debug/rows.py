"""Rows of text: names, values and the table that a dump prints."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bhemu.machine.saved import TileState
from bhemu.tensix.insn import disassemble

# Rows of a dump: labelled cells, shown as text or JSON, chosen by range, compared with others.

Value = int | float | str
_MOST_CELLS = 4  # differing cells of a row that are shown one by one


@dataclass(frozen=True)
class Row:
    """One line of a dump: a label that is unique within its name, and cells by name.

    form: format of the cells (as of `format`); names: show the cell names; index: what a range
    selects by (register, row or address), with `span` indices to the row.
    """

    label: str
    cells: Mapping[str, Value]
    form: str = ""
    names: bool = True
    index: int | None = None
    span: int = 1

    @property
    def empty(self) -> bool:
        """Whether every cell is 0 (not -0) or has no text."""
        return not any(value or str(value) == "-0.0" for value in self.cells.values())

    def within(self, low: int, high: int) -> bool:
        """Whether the row holds something of `low` to `high`, both included."""
        return self.index is not None and self.index <= high and low < self.index + self.span

    def cell(self, name: str) -> str:
        """One cell as text."""
        value = self.cells[name]
        return value if isinstance(value, str) else format(value, self.form)

    @property
    def text(self) -> str:
        """`label  name value  name value`; without names `label  value value`."""
        texts = (
            f"{name} {self.cell(name)}" if self.names else self.cell(name)
            for name, value in self.cells.items()
            if value != ""
        )
        return f"{self.label}  {('  ' if self.names else ' ').join(texts)}".rstrip()


def values(numbers: Iterable[int | float], first: int = 0) -> dict[str, Value]:
    """Cells named by their position, counted from `first`."""
    return {str(first + i): n for i, n in enumerate(numbers)}


def differences(ours: Iterable[Row], theirs: Iterable[Row]) -> Iterator[str]:
    """What differs between rows of equal label, ours -> theirs; rows of one side alone too."""
    left, right = ({row.label: row for row in rows} for rows in (ours, theirs))
    for label in [*left, *(label for label in right if label not in left)]:
        if label not in right:
            yield f"- {left[label].text}"
        elif label not in left:
            yield f"+ {right[label].text}"
        else:
            yield from _cells(left[label], right[label])


def _cells(ours: Row, theirs: Row) -> Iterator[str]:
    names = [*ours.cells, *(name for name in theirs.cells if name not in ours.cells)]
    other = [n for n in names if _text(ours, n) != _text(theirs, n)]
    if len(other) > _MOST_CELLS:
        yield f"- {ours.text}"
        yield f"+ {theirs.text}"
        return
    for name in other:
        cell = name if ours.names else f"[{name}]"
        yield f"  {ours.label} {cell}: {_text(ours, name)} -> {_text(theirs, name)}"


def _text(row: Row, name: str) -> str:
    return (row.cell(name).strip() if name in row.cells else "") or "nothing"


# How named state is shown, and the rows that several kinds of state share.


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
