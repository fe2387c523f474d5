"""The RISC-V instruction base class: one class declares encoding, operands, text and meaning.

Sources: RISC-V unprivileged ISA, chapter "RV32I", base instruction formats.
"""

import functools
import re
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from bhemu.bits import Bits, bits

MASK = 0xFFFFFFFF
SIGN = 0x80000000

REGISTRY: list[type["Instruction"]] = []
_OPCODES: dict[int | None, list[type["Instruction"]]] = {None: []}
_OPCODE = 0x7F


@dataclass(frozen=True)
class Immediate:
    """An immediate spread over the word: (hi, lo, at) puts word[hi:lo] at bit `at` of the value.

    It has a sign, that of the first part's upper bit, unless `unsigned`.
    """

    name: str
    parts: tuple[tuple[int, int, int], ...]
    unsigned: bool = False

    @property
    def mask(self) -> int:
        """Its bits in the word."""
        return sum(bits(hi, lo).mask for hi, lo, _ in self.parts)

    @property
    def sign(self) -> int:
        """Weight of the upper bit of the value."""
        hi, lo, at = self.parts[0]
        return 1 << (hi - lo + at)

    @functools.cached_property
    def get(self) -> Callable[[int], int]:
        """get(word): the value, with its sign."""
        value: Callable[[int], int] = eval(f"lambda word: {self.expression()}")
        return value

    def put(self, word: int, value: int) -> int:
        """`word` with this immediate; bits that have no place in the word are dropped."""
        for hi, lo, at in self.parts:
            part = bits(hi, lo)
            word = part.put(word, value >> at & part.max)
        return word

    def expression(self) -> str:
        """The value as text of the compiled subset, over an int64 named `word`."""
        terms = [f"(word >> {lo} & {bits(hi, lo).max}) << {at}" for hi, lo, at in self.parts]
        value = " | ".join(terms)
        return value if self.unsigned else f"(({value}) ^ {self.sign}) - {self.sign}"


@dataclass(frozen=True)
class Form:
    """One way to print a word: `text` where the bits under `mask` are `match`."""

    text: str
    fixed: tuple[tuple[str, int], ...] = ()
    mask: int = 0
    match: int = 0

    def placed(self, cls: type["Instruction"]) -> "Form":
        """With mask and match from the values of its fixed fields."""
        mask = match = 0
        for name, value in self.fixed:
            field = getattr(cls, name)
            mask |= field.mask
            match = field.put(match, value)
        return Form(self.text, self.fixed, mask, match)


def form(text: str, **fixed: int) -> Form:
    """A form, "mnemonic operands", for words whose named fields have these values."""
    return Form(text, tuple(fixed.items()))


def _values(assignments: Sequence[str]) -> dict[str, int]:
    """{"rd": 0} of ["rd=0"]."""
    return {name: int(value, 0) for name, value in (one.split("=") for one in assignments)}


class Instruction:
    """One instruction, or word, of the baby RISC-V cores.

    A subclass of a format states its funct fields and `execute` (`listed`: many of them); the class
    name is the mnemonic, with `_` for a dot.  What `execute` takes and gives is the format's.  All
    values are integers of 0 to 2**32-1, in the compiled subset (int64) as in Python.
    `forms`: how words are printed, the first that fits; `text`: the operands as all others print
    them, None = `.word`; `note`: a comment after them.
    """

    opcode = bits(6, 0)
    rd = bits(11, 7)
    funct3 = bits(14, 12)
    rs1 = bits(19, 15)
    rs2 = bits(24, 20)
    funct7 = bits(31, 25)

    name: ClassVar[str]
    extension: ClassVar[str]
    mask: ClassVar[int]
    match: ClassVar[int]
    forms: ClassVar[tuple[Form, ...]] = ()
    text: ClassVar[str | None] = None
    note: ClassVar[str] = ""
    execute: ClassVar[Callable[..., Any] | None] = None
    order: ClassVar[str] = ""  # fields that `assemble` takes
    encoding: ClassVar[str] = ""  # fields whose values a line of `listed` gives
    parameters: ClassVar[str] = "a, b"  # of execute, by which a line of `listed` says what it gives
    arguments: ClassVar[str] = ""  # of execute, over word, pc and the values a of rs1, b of rs2
    operands: ClassVar[frozenset[str]] = frozenset()  # "a", "b": the registers it computes from
    compute: ClassVar[Callable[[int, int, int, int], int]]  # (word, pc, a, b), as plain Python

    def __init_subclass__(cls, *, abstract: bool = False, **fixed: int) -> None:
        super().__init_subclass__()
        if abstract:
            cls._fixed = {**getattr(cls, "_fixed", {}), **fixed}
            return
        cls.name = cls.__name__.lower().replace("_", ".")
        cls.extension = cls.__module__.rpartition(".")[2]
        cls.mask = cls.match = 0
        for name, value in {**cls._fixed, **fixed}.items():
            field: Bits | Immediate = getattr(cls, name)
            assert not cls.mask & field.mask, f"{cls.name}: {name} overlaps"
            cls.mask |= field.mask
            cls.match = field.put(cls.match, value)
        last = () if cls.text is None else (form(f"{cls.name} {cls.text}"),)
        cls.forms = tuple(f.placed(cls) for f in (*cls.forms, *last))
        opcode = cls.match & _OPCODE if cls.mask & _OPCODE == _OPCODE else None  # not all fixed
        alike = REGISTRY if opcode is None else [*_OPCODES.get(opcode, ()), *_OPCODES[None]]
        for other in alike:
            both = cls.mask & other.mask
            assert not both or (cls.match ^ other.match) & both, f"{cls.name} is {other.name}"
        if cls.arguments and cls.execute:
            text = f"lambda word, pc, a, b: execute({cls.arguments})"
            cls.compute = eval(text, {"execute": cls.execute})
            cls.operands = frozenset(re.findall(r"\b[ab]\b", cls.arguments))
        REGISTRY.append(cls)
        _OPCODES.setdefault(opcode, []).append(cls)

    _fixed: ClassVar[dict[str, int]] = {}

    @classmethod
    def declare(cls, name: str, meaning: str, **own: Any) -> type[Self]:
        """A class of this format; `own`: values of its fixed fields, and members."""
        fields = [key for key in own if isinstance(getattr(cls, key, None), Bits | Immediate)]
        fixed = {key: own.pop(key) for key in fields}
        own = {"__module__": sys._getframe(1).f_globals["__name__"], "__doc__": meaning, **own}
        made: Any = types.new_class(name, (cls,), fixed, lambda space: space.update(own))
        return made

    @classmethod
    def listed(cls, text: str) -> dict[str, type[Self]]:
        """Classes of this format by title, a line each: NAME VALUES MEMBER=N; GIVES; MEANING.

        VALUES: those of `encoding`; GIVES: an expression of `parameters`, what `execute` gives, or
        the name of an instruction that gives the same. A line that begins with - is a form of the
        instruction above it: - SPELLING: FIELD=N FIELD=N.
        """
        found, module = {}, sys._getframe(1).f_globals["__name__"]
        for line in re.sub(r"\n *- ", " -- ", text).strip().splitlines():
            head, gives, rest = (part.strip() for part in line.split(";", 2))
            (name, *values), (meaning, *spelled) = head.split(), rest.split(" -- ")
            fields = cls.encoding.split()
            own: dict[str, Any] = _values(
                [f"{f}={v}" for f, v in zip(fields, values, strict=False)]
            )
            own |= _values(values[len(fields) :])
            forms = (one.split(": ") for one in spelled)
            own["forms"] = tuple(form(one, **_values(fixed.split())) for one, fixed in forms)
            same = [other.execute for other in REGISTRY if other.name == gives]
            if gives:
                code, scope = f"lambda {cls.parameters}: {gives}", {"MASK": MASK, "SIGN": SIGN}
                own["execute"] = same[0] if same else eval(code, scope)
            title = name.upper().replace(".", "_")
            found[title] = cls.declare(title, meaning, __module__=module, **own)
        return found

    @classmethod
    def assemble(cls, *operands: int) -> int:
        """The word; operands that are left out are 0, bits without a place in it are dropped."""
        word = cls.match
        for name, value in zip(cls.order.split(), operands, strict=False):
            word = getattr(cls, name).put(word, value)
        return word

    @classmethod
    def code(cls) -> int:
        """The opcode of a format or an instruction."""
        return cls._fixed["opcode"]

    @classmethod
    def computed(cls, word: int, pc: int, registers: Sequence[int | None]) -> int | None:
        """What it computes where some registers are not known; None when it needs one of them."""
        a, b = registers[cls.rs1.get(word)], registers[cls.rs2.get(word)]
        known = {"a": a, "b": b}
        if any(known[name] is None for name in cls.operands):
            return None
        return cls.compute(word, pc, a or 0, b or 0)

    @classmethod
    def exists(cls, word: int) -> bool:
        """Whether a word with the fixed bits of this class is an instruction."""
        return True

    @classmethod
    def spelled(cls, word: int) -> str | None:
        """Mnemonic and operands that `word` is printed with; None: as `.word`."""
        fits = (form.text for form in cls.forms if word & form.mask == form.match)
        return next(fits, None)

    @classmethod
    def summary(cls) -> str:
        """First line of the class docstring: what the instruction does."""
        return (cls.__doc__ or "").strip().splitlines()[0]
