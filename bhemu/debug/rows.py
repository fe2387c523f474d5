"""Rows of a dump: labelled cells, shown as text or JSON, chosen by range, compared with others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

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
