"""Expressions of C over variables: names, members, elements, pointers, operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError, UnknownName
from bhemu.program import variables

Read = Callable[[int, int], bytes]
_LONGEST = 1000  # characters of a number or name
Lookup = Callable[[str], "Value"]
_TOKEN = re.compile(
    r"\s*(\$?[A-Za-z_]\w*(?:(?::\w+)+)?|0[xX][0-9a-fA-F]+|\d+"
    r"|->|&&|\|\||[=!<>]=|<<|>>|[.\[\]*&()|^<>+\-/%!~])"
)
_OPERATORS: tuple[dict[str, Callable[[int, int], int]], ...] = (  # from the weakest
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(_equal(a, b)), "!=": lambda a, b: int(not _equal(a, b))},
    {
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": lambda a, b: a << (b & 31), ">>": lambda a, b: a >> (b & 31)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {
        "*": lambda a, b: a * b,
        "/": lambda a, b: _divided(a, b)[0],
        "%": lambda a, b: _divided(a, b)[1],
    },
)
_UNARY: dict[str, Callable[[int], int]] = {
    "!": lambda a: int(not a),
    "~": lambda a: ~a,
    "-": lambda a: -a,
}


def _divided(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        raise InputError("division by 0")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - b * quotient


def _equal(a: int, b: int) -> bool:
    """As in C: a negative number of 32 bits equals the unsigned one with its bits."""
    low, high = sorted((a, b))
    return low == high or (-(1 << 31) <= low < 0 and low + (1 << 32) == high)


@dataclass(frozen=True)
class Value:
    """A value with its type (None: a plain word) and its address (None: it is in no memory)."""

    raw: bytes
    type: variables.CType | None
    address: int | None
    read: Read
    exact: int | None = None  # of a number, which may be negative

    @classmethod
    def number(cls, value: int) -> Value:
        """A number without a type."""
        raw = (value & 0xFFFFFFFF).to_bytes(4, "little")
        return cls(raw, None, None, lambda a, n: bytes(n), value)

    @classmethod
    def lane(cls, value: int) -> Value:
        """A lane of an LReg: the sign of its bits is that of a float and of an integer."""
        return replace(cls.number(value), exact=value - ((value & 1 << 31) << 1))

    @classmethod
    def word(cls, address: int, read: Read) -> Value:
        """The word at an address, of unknown type."""
        return cls(read(address & ~3, 4), None, address, read)

    @classmethod
    def at(cls, kind: variables.CType, where: variables.Location, frame: variables.Frame) -> Value:
        """A variable of that type at a location."""
        size = variables.readable(kind) or 4
        if where.address is not None:
            return cls(frame.read(where.address, size), kind, where.address, frame.read)
        value = frame.registers[where.register] if where.register is not None else where.value or 0
        raw = (value & (1 << 64) - 1).to_bytes(8, "little")[:size]
        return cls(raw, kind, None, frame.read)

    @classmethod
    def variable(cls, frame: variables.Frame, name: str, depth: int) -> Value | None:
        """The variable of that name in scope, None without one; InputError if it is gone."""
        found = variables.find(frame.debug, frame.pc, name, depth)
        if found is None:
            return None
        try:
            return cls.at(variables.type_of(found[0]), variables.locate(frame, *found), frame)
        except variables.Gone as reason:
            raise InputError(f"{name}: {reason}", hint="regs and dis show the machine") from None

    def text(self, form: str) -> str:
        """The value in words; `form` as in values.as_text."""
        if self.type is not None:
            return variables.as_text(self.type, self.raw, self.read, form)
        value = int.from_bytes(self.raw, "little")
        return f"{value} ({value:#x})" if not form else _plain(value, form)

    @property
    def integer(self) -> int:
        """As an unsigned number."""
        return int.from_bytes(self.raw, "little")

    @property
    def signed(self) -> int:
        """As a number of its type, for operators; without a type unsigned."""
        if self.exact is not None:
            return self.exact
        if self.type is not None and self.type.kind in ("float", "record", "array"):
            raise InputError(f"operators take integers, not {self.type}")
        value = self.integer
        negative = self.type is not None and self.type.signed and value >> 8 * len(self.raw) - 1
        return value - (1 << 8 * len(self.raw)) if negative else value

    def member(self, name: str) -> Value:
        """A member of a structure."""
        if self.type is None or self.type.kind != "record":
            text = "its type is not known" if self.type is None else f"{self.type} has no members"
            raise InputError(f".{name}: {text}", hint=self._untyped())
        members = {member.name: member for member in self.type.members}
        if name not in members:
            near = did_you_mean(name, members)
            hint = f"{near} members: {', '.join(members)}".strip()
            raise UnknownName(f"{self.type} has no member {name}", hint=hint)
        one = members[name]
        address = None if self.address is None else self.address + one.offset
        if address is not None and one.bits is None:
            return Value(
                self.read(address, variables.readable(one.type) or 4), one.type, address, self.read
            )
        return Value(variables.slice_of(one, self.raw), one.type, address, self.read)

    def _untyped(self) -> str:
        """How to look at what has no type."""
        if self.type is not None or self.address is None:
            return "info source says what DWARF there is"
        return (
            f"x/4x {self.address:#x} shows its words; compilers write no type for a variable that"
            " is only declared (extern)"
        )

    def element(self, index: int) -> Value:
        """An element of an array, or of what a pointer points to."""
        if self.type is not None and self.type.kind == "array" and self.address is not None:
            return self._pointed(self.address, self.type.target, index)
        if self.type is not None and self.type.kind == "pointer":
            return self._pointed(self.integer, self.type.target, index)
        text = "its type is not known" if self.type is None else f"{self.type} has no elements"
        raise InputError(text, hint=self._untyped())

    def pointed(self) -> Value:
        """What it points to; a number points to a word."""
        if self.type is None:
            return Value.word(self.integer, self.read)
        return self.element(0)

    def _pointed(self, address: int, kind: variables.CType, index: int) -> Value:
        size = kind.size or 1
        at = (address + index * size) & 0xFFFFFFFF
        return Value(self.read(at, variables.readable(kind) or 4), kind, at, self.read)


def _plain(value: int, form: str) -> str:
    shown = {"x": f"{value:#x}", "t": f"{value:#b}", "c": repr(chr(value & 0xFF))}
    return shown.get(form, str(value - ((value & 1 << 31) << 1) if form == "d" else value))


class _Parser:
    def __init__(self, text: str, lookup: Lookup, read: Read) -> None:
        self._text, self._lookup, self._read = text, lookup, read
        self._tokens = self._split(text)

    def _split(self, text: str) -> list[str]:
        tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise InputError(f"print cannot read {text[at:]!r}", hint="v, p->m, a[2], *p, &v")
            tokens.append(found[1])
            at = found.end()
        return tokens

    def whole(self) -> Value:
        value = self._binary(0)
        if self._tokens:
            raise InputError(f"print does not know {self._tokens[0]!r} in {self._text!r}")
        return value

    def _binary(self, level: int) -> Value:
        if level == len(_OPERATORS):
            return self._prefixed()
        value = self._binary(level + 1)
        while self._tokens[:1] and self._tokens[0] in _OPERATORS[level]:
            apply = _OPERATORS[level][self._take()]
            value = Value.number(apply(value.signed, self._binary(level + 1).signed))
        return value

    def _take(self, wanted: str = "") -> str:
        if not self._tokens or (wanted and self._tokens[0] != wanted):
            raise InputError(f"{self._text!r} ends too early, or wants {wanted or 'a name'}")
        return self._tokens.pop(0)

    def _prefixed(self) -> Value:
        if self._tokens[:1] and self._tokens[0] in _UNARY:
            return Value.number(_UNARY[self._take()](self._prefixed().signed))
        if self._tokens[:1] == ["*"]:
            self._take()
            inner = self._prefixed()
            if inner.type is None:
                return Value.word(inner.integer, self._read)
            return inner.pointed()
        if self._tokens[:1] == ["&"]:
            self._take()
            inner = self._prefixed()
            if inner.address is None:
                raise InputError(f"{self._text!r}: that is in no memory")
            return Value.number(inner.address)
        value = self._primary()
        while self._tokens[:1] and self._tokens[0] in (".", "->", "["):
            kind = self._take()
            if kind == "[":
                value = value.element(self._binary(0).integer)
                self._take("]")
            else:
                value = (value.pointed() if kind == "->" else value).member(self._take())
        return value

    def _primary(self) -> Value:
        token = self._take()
        if token == "(":
            value = self._binary(0)
            self._take(")")
            return value
        if len(token) > _LONGEST:
            raise InputError(f"a number or name of {len(token)} characters")
        if token[0].isdigit():
            return Value.number(int(token, 0) if token[:2] in ("0x", "0X") else int(token))
        return self._lookup(token)


def evaluate(text: str, lookup: Lookup, read: Read) -> Value:
    """The value of an expression; InputError for what cannot be read or is not there."""
    try:
        return _Parser(text, lookup, read).whole()
    except RecursionError:
        raise InputError("the expression is nested too deep", hint="print a part of it") from None
