"""The one bit-field descriptor, for instruction words and configuration registers alike."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol, overload

from bhemu.operand import Operand


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

    def meaning(self, operand: Operand) -> Bits:
        """The same field for a class in which its values stand for something of its own."""
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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        found = {
            v.name: v
            for base in reversed(cls.__mro__)
            for v in vars(base).values()
            if isinstance(v, Bits)
        }
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
