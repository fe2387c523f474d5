"""Bits of instruction words: fields, and what the values of operands mean."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, overload

# What the values of an operand stand for: the table that a bit field carries (bits.py).
#
# A table is declared once, beside the field; the disassembler, traces, `bhemu isa` and `explain`,
# the comments of the C header and the reference in the docs all read it there.


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


_ROW = re.compile(r"(?:\[([\d:]+)\] )?([\d, -]+): (.*)")


def number(about: str) -> Number:
    """A number: what it counts, or what it is the number of."""
    return Number(about)


def choice(*texts: str | Mapping[int, str], about: str = "", others: str = "") -> Choice:
    """What each value stands for: texts from 0 up, or a mapping."""
    values: dict[int, str] = {}
    for text in texts:
        values |= {len(values): text} if isinstance(text, str) else text
    return Choice(values, about, others)


def table(text: str) -> Operand:
    """A line what the field is for, then values, `0: text` or `1, 4-7: text` a line, if any.

    `[1:0] 0: text` is a value of some bits of the field.
    """
    about, *lines = (line.strip() for line in text.split("\n"))
    found: dict[str, dict[int, str]] = {}
    for line in lines:
        place, numbers, meant = _ROW.fullmatch(line).groups("")  # type: ignore[union-attr]
        for first, _, last in (number.partition("-") for number in numbers.split(", ")):
            values = dict.fromkeys(range(int(first), int(last or first) + 1), meant)
            found.setdefault(place, {}).update(values)
    if set(found) <= {""}:
        return Choice(found[""], about) if found else Number(about)
    ends = [(place.partition(":")[0], place.rpartition(":")[2]) for place in found]
    tables = zip(ends, found.values(), strict=True)
    return Parts(tuple(Part(int(hi), int(lo), Choice(one)) for (hi, lo), one in tables), about)


def flags(*names: str, about: str = "", none: str = "", every: str = "") -> Flags:
    """A set of bits, from bit 0 up."""
    return Flags(names, about, none, every)


def parts(*found: tuple[int, int, Operand], about: str = "") -> Parts:
    """Several tables, each for bits [hi:lo] of the field."""
    return Parts(tuple(Part(*one) for one in found), about)


# The one bit-field descriptor, for instruction words and configuration registers alike.


class HasWord(Protocol):
    """What a class must offer so that its instances read and write fields by attribute."""

    word: int


class Bits:
    """Bits `hi` down to `lo` of a word, both inclusive, as hardware texts write them: `[hi:lo]`.

    Used as a class attribute, it takes the attribute's name. On the class the attribute is the
    descriptor itself; on an instance that has an integer `word` it is the field's value, and
    assigning to it rewrites that part of the word. `mode`: its value selects behaviour; `operand`:
    what its values stand for.
    """

    __slots__ = ("hi", "lo", "mode", "name", "operand")

    def __init__(
        self, hi: int, lo: int, mode: bool = False, operand: Operand | None = None
    ) -> None:
        if not 0 <= lo <= hi:
            raise ValueError(f"bits({hi}, {lo}): want hi >= lo >= 0")
        self.hi = hi
        self.lo = lo
        self.mode = mode
        self.operand = operand
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name not in ("", name):
            # Two names for one descriptor would make every message about it name the wrong field.
            raise TypeError(f"{owner.__name__}.{name}: this field is already named {self.name}")
        self.name = name

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.hi - self.lo + 1

    @property
    def mask(self) -> int:
        """The field's bits in place, as in `word & mask`."""
        return ((1 << self.width) - 1) << self.lo

    @property
    def max(self) -> int:
        """The largest value the field holds."""
        return (1 << self.width) - 1

    def about(self) -> Iterator[str]:
        """Lines for readers: bits, name and what the field is for, then the table of its values."""
        about = "" if self.operand is None else self.operand.about
        yield f"[{self.hi:>2}:{self.lo:>2}]  {self.name}" + (f"  {about}" if about else "")
        rows = [] if self.operand is None else [*self.operand.rows()]
        width = max((len(value) for value, _ in rows), default=0)
        yield from (f"           {value:>{width}}  {text}" for value, text in rows)

    def as_dict(self) -> dict[str, object]:
        """The same, JSON-ready: `values` by number, or by "bit N" for sets of bits."""
        found: dict[str, object] = {"name": self.name, "hi": self.hi, "lo": self.lo}
        if self.operand is not None:
            found["about"], found["values"] = self.operand.about, dict(self.operand.rows())
        return found

    def meaning(self, operand: Operand | str) -> Bits:
        """The same field with a meaning, or for a class in which it has one of its own: `table`."""
        operand = table(operand) if isinstance(operand, str) else operand
        return Bits(self.hi, self.lo, self.mode, operand)

    def get(self, word: int) -> int:
        """The field's value in `word`, shifted down, unsigned."""
        return (word >> self.lo) & self.max

    def put(self, word: int, value: int) -> int:
        """`word` with the field set to `value`; ValueError when the value does not fit."""
        if not 0 <= value <= self.max:
            raise ValueError(
                f"{self.name or 'field'} [{self.hi}:{self.lo}] takes 0..{self.max}, not {value}"
            )
        return (word & ~self.mask) | (value << self.lo)

    @overload
    def __get__(self, instance: None, owner: type) -> Bits: ...
    @overload
    def __get__(self, instance: HasWord, owner: type) -> int: ...
    def __get__(self, instance: HasWord | None, owner: type) -> Bits | int:
        return self if instance is None else self.get(instance.word)

    def __set__(self, instance: HasWord, value: int) -> None:
        instance.word = self.put(instance.word, value)

    def __repr__(self) -> str:
        label = f"{self.name} = " if self.name else ""
        return f"<{label}bits({self.hi}, {self.lo})>"


def bits(
    hi: int, lo: int | None = None, operand: Operand | None = None, *, mode: bool = False
) -> Bits:
    """Declare the field [hi:lo], or the single bit `hi` when `lo` is left out; see Bits."""
    return Bits(hi, hi if lo is None else lo, mode, operand)


def _place(field: Bits) -> tuple[str, int, int]:
    return field.name, field.hi, field.lo


class _ValuesOf:
    """The named tuple of a Word's values, made when first asked for; subclasses share it."""

    def __init__(self, owner: type[Word]) -> None:
        self._owner = owner
        self._made: Any = None

    def __get__(self, instance: None, owner: type[Word]) -> Any:
        if self._made is None:
            names = [*(field.name for field in self._owner.fields), "word"]
            made: Any = namedtuple(self._owner.__name__, names)  # type: ignore[misc]
            made.__module__ = self._owner.__module__
            made.__qualname__ = f"{self._owner.__qualname__}.Fields"
            self._made = made
        return self._made


class Word:
    """A word whose bit fields are attributes of the class, inherited ones included.

    `fields`: them, from bit 0 up. `Fields`: a tuple of their values by name, and of the whole
    `word`; compiled code takes it apart.
    """

    fields: ClassVar[tuple[Bits, ...]] = ()
    Fields: ClassVar[Any]
    _own: ClassVar[tuple[Bits, ...]]  # those that the class itself declares

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._own = tuple(v for v in vars(cls).values() if isinstance(v, Bits))
        bases = reversed(cls.__mro__)
        found = {v.name: v for base in bases for v in vars(base).get("_own", ())}
        cls.fields = tuple(sorted(found.values(), key=lambda field: field.lo))
        inherited = getattr(cls.__mro__[1], "fields", ())
        if [_place(f) for f in cls.fields] != [_place(f) for f in inherited]:
            cls.Fields = _ValuesOf(cls)

    @classmethod
    def decoded(cls, word: int) -> Any:
        """The `Fields` of a word."""
        return cls.Fields(*(field.get(word) for field in cls.fields), word)

    @classmethod
    def source(cls, word: str) -> str:
        """Python text that makes the `Fields` of the number called `word`."""
        parts = (f"{f.name}=({word} >> {f.lo}) & {f.max:#x}" for f in cls.fields)
        return f"_Fields({', '.join([*parts, f'word={word}'])})"


Word.Fields = _ValuesOf(Word)
