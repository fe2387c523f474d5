"""Named state as rows: which name stands for what, chosen by range, and compared with another."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bhemu.arguments import did_you_mean
from bhemu.debug.decoded import ROWS, Row, Value, View, differences, values
from bhemu.devices.bus.address_map import fields_of
from bhemu.errors import InputError
from bhemu.machine.saved import SAVED, TileState
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.views import NAMED

_RANGE = re.compile(r"(0[xX][0-9a-fA-F]{1,16}|\d{1,20})(?:-(0[xX][0-9a-fA-F]{1,16}|\d{1,20}))?")
_PER_ROW = 8
_SURE = 0.8  # likeness of a part of a name
_MEMBERS = {member.name: member.doc for member in SAVED}
"""Every array of a saved state, with what it holds."""


@dataclass(frozen=True)
class Selection:
    """What one NAME of the command line asks for: a name, a range, or part of a field's name."""

    name: str
    low: int | None = None
    high: int | None = None
    part: str = ""

    @property
    def title(self) -> str:
        """The name with what it stands for."""
        about = _MEMBERS | {n.name: n.doc for n in NAMED}
        return f"{self.name}  {about[self.name]}"

    @property
    def members(self) -> tuple[str, ...]:
        """The members of the record that hold it."""
        return next((n.members for n in NAMED if n.name == self.name), (self.name,))

    def rows(self, s: TileState, view: View) -> Iterator[Row]:
        """The selected rows; those that hold only 0 unless a range, a part or `view` wants them.

        InputError for a range that ends after the last of them.
        """
        asked = view.every or self.low is not None or bool(self.part)
        every = ROWS.get(self.name)
        rows = _raw(s, self.name) if every is None else every(s, replace(view, every=asked))
        if self.low is not None and self.high is not None:
            rows = list(rows)
            ends = max((row.index + row.span for row in rows if row.index is not None), default=0)
            if 0 < ends <= self.high:
                noun = {"cfg": "words", "lreg": "LRegs", "l1": "bytes"}.get(self.name, "rows")
                text = f"{self.name} {self.high}: there are {noun} 0 to {ends - 1}"
                raise InputError(text, hint=f"{self.name}:0-{ends - 1}")
            rows = [row for row in rows if row.within(self.low, self.high)]
        for row in rows:
            if self.part and self.part not in row.label.lower():
                continue
            if asked or not row.empty:
                yield row


def select(names: Sequence[str], *, bulky: bool = False) -> list[Selection]:
    """The selections of NAME, NAME:RANGE and configuration fields; all names when there is none.

    InputError for a name that stands for nothing.
    """
    if not names:
        return [Selection(n.name) for n in NAMED if bulky or not n.bulky]
    return [selection for text in names for selection in _select(text)]


def _select(text: str) -> list[Selection]:
    name, colon, span = text.partition(":")
    if name.lower() in ROWS or name in _MEMBERS:
        name = name.lower() if name.lower() in ROWS else name
        return [Selection(name, *_range(text, span))] if colon else [Selection(name)]
    part = text.lower()
    found = [
        Selection(owner, part=part)
        for owner, module in (("cfg", config_fields), ("thread_cfg", thread_fields))
        if any(part in field.lower() for field in fields_of(module))
    ]
    if len(part) > 2 and found:
        return found
    hint = _near(text.partition(":")[0]) or f"names: {', '.join(ROWS)}"
    raise InputError(f"no state is called {text!r}", hint=hint)


def _near(text: str) -> str:
    """What may have been meant: a field by a part of its name, a name, a name by what it holds."""
    named = [*fields_of(config_fields), *fields_of(thread_fields)]
    parts = {part.lower(): field for field in named for part in field.split("_")}
    part = difflib.get_close_matches(text.lower(), parts, n=1, cutoff=_SURE)
    if part and not difflib.get_close_matches(text.lower(), ROWS, n=1, cutoff=_SURE):
        return f"did you mean {parts[part[0]]}?"
    holding = [n for n in NAMED if text.lower().rstrip("s") in n.doc.lower()]
    near = did_you_mean(text, [*ROWS, *_MEMBERS, *named])
    if holding and not near:
        return "; ".join(f"{n.name}: {n.doc}" for n in holding)
    return near


def _range(text: str, span: str) -> tuple[int, int]:
    if (found := _RANGE.fullmatch(span)) is None:
        hint = "dst:3, dst:0-7, l1:0x100-0x1ff"
        raise InputError(f"{text!r}: {span!r} is not a range", hint=hint)
    low, high = (int(part, 0) for part in (found[1], found[2] or found[1]))
    if high < low:
        raise InputError(f"{text!r}: {span} ends before it begins")
    return low, high


def _raw(s: TileState, name: str) -> Iterator[Row]:
    """A member of the record as it is, eight elements to a row; the range is the first index."""
    array = getattr(s, name)
    form = "d" if array.dtype.kind == "i" else f"0{2 * array.dtype.itemsize}x"
    for i, line in enumerate(array.reshape(-1, array.shape[-1])):
        place = np.unravel_index(i, array.shape[:-1]) if array.ndim > 1 else ()
        lead = "".join(f"[{int(n)}]" for n in place)
        for first in range(0, len(line), _PER_ROW):
            part = [int(v) for v in line[first : first + _PER_ROW]]
            label = f"{name}{lead}[{first}]"
            index, span = (int(place[0]), 1) if len(place) else (first, len(part))
            yield Row(label, values(part, first), form, names=False, index=index, span=span)


def text(s: TileState, chosen: Sequence[Selection], view: View) -> Iterator[str]:
    """Every selection under its title, indented."""
    for selection in chosen:
        yield selection.title
        shown = False
        for row in selection.rows(s, view):
            shown = True
            yield f"  {row.text}"
        if not shown:
            yield "  nothing there" if selection.low is not None else "  all 0"


def with_place(line: str) -> str:
    """A line of a configuration field, with its word and shift."""
    named = {**fields_of(config_fields), **fields_of(thread_fields)}
    field = named.get(line.strip().partition(" ")[0])
    return line if field is None else f"{line}  (word {field.word}, shift {field.shift})"


def diff(
    ours: TileState, theirs: TileState, chosen: Sequence[Selection], view: View
) -> Iterator[str]:
    """What differs, `ours -> theirs` by cell, or - and + rows, under the titles of what differs."""
    for selection in chosen:
        pairs = ((getattr(ours, m), getattr(theirs, m)) for m in selection.members)
        if all(np.array_equal(a, b) for a, b in pairs):
            continue
        rows = (
            selection.rows(a, replace(view, every=True, other=b))
            for a, b in ((ours, theirs), (theirs, ours))
        )
        if lines := list(differences(*rows)):
            yield selection.title
            yield from (f"  {line}" for line in lines)


def as_dict(
    s: TileState, chosen: Sequence[Selection], view: View
) -> dict[str, dict[str, dict[str, Value]]]:
    """Name -> label -> cell -> value, JSON-ready; a number that JSON cannot hold is a string."""
    report: dict[str, dict[str, dict[str, Value]]] = {}
    for selection in chosen:
        held = report.setdefault(selection.name, {})
        for row in selection.rows(s, view):
            held[row.label] = {
                name: value if isinstance(value, str) or np.isfinite(value) else str(value)
                for name, value in row.cells.items()
            }
    return report
