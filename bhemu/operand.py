"""What the values of an operand stand for: the table that a bit field carries (bits.py).

A table is declared once, beside the field; the disassembler, traces, `bhemu isa` and `explain`, the
comments of the C header and the reference in the docs all read it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


class Operand:
    """What the values of a bit field stand for.

    `about`: what the field is for, where the table does not say it by itself.
    """

    about: str = ""

    def text(self, value: int) -> str:
        """What one value stands for; "" where the number itself says it, or nothing does."""
        raise NotImplementedError

    def rows(self) -> Iterator[tuple[str, str]]:
        """The table: a value or the bits of one, and what it stands for."""
        raise NotImplementedError

    def describes(self, value: int) -> bool:
        """Whether the table has this value."""
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Operand):
    """A number, an index or an address: there is nothing to enumerate."""

    about: str

    def text(self, value: int) -> str:
        """As Operand says."""
        return ""

    def rows(self) -> Iterator[tuple[str, str]]:
        """As Operand says."""
        return iter(())

    def describes(self, value: int) -> bool:
        """As Operand says."""
        return True


@dataclass(frozen=True)
class Choice(Operand):
    """One of several; `others` stands for the values that are not listed, "" = they are refused."""

    values: Mapping[int, str]
    about: str = ""
    others: str = ""

    def text(self, value: int) -> str:
        """As Operand says."""
        return self.values.get(value, self.others)

    def rows(self) -> Iterator[tuple[str, str]]:
        """As Operand says; values that stand for the same stand in one row."""
        alike: dict[str, list[int]] = {}
        for value, text in sorted(self.values.items()):
            alike.setdefault(text, []).append(value)
        yield from ((_listed(values), text) for text, values in alike.items() if text)
        if self.others:
            yield "other", self.others

    def describes(self, value: int) -> bool:
        """As Operand says."""
        return bool(self.others) or value in self.values


def _listed(values: list[int]) -> str:
    if len(values) > 2 and values == [*range(values[0], values[-1] + 1)]:
        return f"{values[0]}-{values[-1]}"
    return ", ".join(map(str, values))


@dataclass(frozen=True)
class Flags(Operand):
    """A set of bits, from bit 0 up; "" for a bit that has to be 0. `none`: no bit, `every`: all."""

    names: tuple[str, ...]
    about: str = ""
    none: str = ""
    every: str = ""

    def text(self, value: int) -> str:
        """As Operand says."""
        if self.every and value == (1 << len(self.names)) - 1:
            return self.every
        named = (name for i, name in enumerate(self.names) if value >> i & 1)
        return ", ".join(name for name in named if name) or self.none

    def rows(self) -> Iterator[tuple[str, str]]:
        """As Operand says."""
        yield from ((f"bit {i}", name) for i, name in enumerate(self.names) if name)
        yield from (
            (label, text) for label, text in (("none", self.none), ("all", self.every)) if text
        )

    def describes(self, value: int) -> bool:
        """As Operand says."""
        return all(i < len(self.names) and self.names[i] for i in range(32) if value >> i & 1)


@dataclass(frozen=True)
class Part:
    """Bits `hi` down to `lo` of a field, which mean something by themselves."""

    hi: int
    lo: int
    operand: Operand

    def of(self, value: int) -> int:
        """The value of these bits in the field's value."""
        return value >> self.lo & (2 << self.hi - self.lo) - 1


@dataclass(frozen=True)
class Parts(Operand):
    """Several tables in one field, each for some bits of it; the other bits have to be 0."""

    parts: tuple[Part, ...]
    about: str = ""
    used: int = field(init=False)

    def __post_init__(self) -> None:
        masks = ((2 << part.hi) - (1 << part.lo) for part in self.parts)
        object.__setattr__(self, "used", sum(masks))

    def text(self, value: int) -> str:
        """As Operand says."""
        texts = (part.operand.text(part.of(value)) for part in self.parts)
        return ", ".join(text for text in texts if text)

    def rows(self) -> Iterator[tuple[str, str]]:
        """As Operand says."""
        for part in self.parts:
            bits = f"[{part.hi}:{part.lo}]" if part.hi > part.lo else f"[{part.lo}]"
            yield from ((f"{bits} {value}", text) for value, text in part.operand.rows())

    def describes(self, value: int) -> bool:
        """As Operand says."""
        return not value & ~self.used and all(
            part.operand.describes(part.of(value)) for part in self.parts
        )


def number(about: str) -> Number:
    """A number: what it counts, or what it is the number of."""
    return Number(about)


def choice(values: Mapping[int, str], about: str = "", others: str = "") -> Choice:
    """One of `values`."""
    return Choice(values, about, others)


def flags(*names: str, about: str = "", none: str = "", every: str = "") -> Flags:
    """A set of bits, from bit 0 up."""
    return Flags(names, about, none, every)


def parts(*found: tuple[int, int, Operand], about: str = "") -> Parts:
    """Several tables, each for bits [hi:lo] of the field."""
    return Parts(tuple(Part(*one) for one in found), about)
