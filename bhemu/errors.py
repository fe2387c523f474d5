"""The one family of errors: what went wrong, where on the tile, and what to do about it."""

# ruff: noqa: N818 - the contract's names carry no suffix

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, Self

from bhemu.text import one_line

EXIT_OK = 0
EXIT_DIFFERS = 1
EXIT_INPUT = 2
EXIT_NO_PROGRESS = 3
EXIT_NOT_MODELLED = 4
EXIT_GUEST = 5
EXIT_ASSERT = 6
EXIT_LIMIT = 7
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class Call(NamedTuple):
    """The place of a call that the compiler inlined: in `function`, at `file`:`line`."""

    function: str
    file: str
    line: int


def source_text(
    file: str | None, line: int | None, function: str | None, inlined: Sequence[Call]
) -> str:
    """ "k.h:9", or "k.h:9 helper, inlined at k.c:41" with every inlined call, the inner first."""
    if file is None:
        return "" if line is None else f"line {line}"
    text = _source(file, line)
    for call in inlined:
        text += f" {function or '?'}, inlined at {_source(call.file, call.line)}"
        function = call.function
    return text


def _source(file: str, line: int | None) -> str:
    """A file and its line; compilers give line 0 to what they have made of several."""
    return f"{file}:{line}" if line else file


@dataclass(frozen=True, repr=False)
class Where:
    """A place in a run; every field is optional and only the known ones are shown.

    `tile` is an (x, y) coordinate or a name, `core` a core name (brisc ... trisc2), `thread` a
    Tensix thread 0-2, `pc` a byte address, `symbol` a text such as "main+0x24", `file` and `line`
    a source position, `word` a 32-bit instruction word and `decoded` its disassembly. Where the
    compiler has inlined, `function` is the function of that source position and `inlined` the
    calls that led to it, the inner ones first. `operands` says what the operands of a Tensix word
    stand for: addresses, formats, rows, names.
    """

    tile: tuple[int, int] | str | None = None
    core: str | None = None
    thread: int | None = None
    pc: int | None = None
    symbol: str | None = None
    file: str | None = None
    line: int | None = None
    word: int | None = None
    decoded: str | None = None
    function: str | None = None
    inlined: tuple[Call, ...] = ()
    operands: str | None = None

    def __repr__(self) -> str:
        return f"<Where {self}>"

    def __str__(self) -> str:
        """For example `trisc1 (thread T1) pc 0x00010024 in main+0x24 (k.c:41), word 0x... NAME`."""
        tile = self.tile if isinstance(self.tile, str | None) else "({},{})".format(*self.tile)
        thread = "" if self.thread is None else f"thread T{self.thread}"
        source = source_text(self.file, self.line, self.function, self.inlined)
        place = (
            "" if tile is None else f"tile {tile}",
            f"{self.core} ({thread})" if self.core and thread else self.core or thread,
            "" if self.pc is None else f"pc 0x{self.pc:08X}",
            "" if self.symbol is None else f"in {self.symbol}",
            f"({source})" if source else "",
        )
        word = "" if self.word is None else f"word 0x{self.word:08X}"
        instruction = " ".join(filter(None, (word, self.decoded)))
        if self.operands:
            instruction = f"{instruction} ({self.operands})"
        return ", ".join(filter(None, (" ".join(filter(None, place)), instruction)))

    def as_dict(self) -> dict[str, object]:
        """The known fields only, as JSON-ready values (`tile` as a list when a coordinate)."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        known = {name: value for name, value in known.items() if value not in (None, ())}
        if self.inlined:
            known["inlined"] = [call._asdict() for call in self.inlined]
        if isinstance(self.tile, tuple):
            known["tile"] = list(self.tile)
        return known


class BhemuError(Exception):
    """Base of every error bhemu raises on purpose.

    `message` is one clear line; `category` and `exit_code` follow the class; `rule` is the stable
    id of the rule that was broken ("" when there is none); `where` is the place; `hint` says what
    to do next. `str()` gives the message with its place, and the hint on a line of its own.
    A class has a fixed exit code and a closed set of categories, the first one the usual.
    """

    EXIT_CODE: ClassVar[int]
    CATEGORIES: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str,
        *,
        category: str = "",
        rule: str = "",
        where: Where | None = None,
        hint: str = "",
        exit_code: int | None = None,
    ) -> None:
        category = category or self.CATEGORIES[0]
        if self.CATEGORIES and category not in self.CATEGORIES:
            allowed = ", ".join(self.CATEGORIES)
            raise ValueError(f"{type(self).__name__} has no category {category!r}: {allowed}")
        # Texts taken from files and libraries may hold anything; an error is one line by contract.
        self.message = one_line(message)
        super().__init__(self.message)
        self.category = category
        self.rule = rule
        self.where = where
        self.hint = one_line(hint)
        self.exit_code = self.EXIT_CODE if exit_code is None else exit_code

    def __copy__(self) -> Self:
        """The error without its traceback, which copies that other packages register keep."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        return other

    def __str__(self) -> str:
        line = self.message if not self.rule else f"[{self.rule}] {self.message}"
        place = "" if self.where is None else str(self.where)
        if place:
            line = f"{line}, at {place}"
        return line if not self.hint else f"{line}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...], dict[str, object]]:
        # Keyword-only constructors do not survive the default pickling; tiles run in processes.
        return copyreg.__newobj__, (type(self), self.message), dict(self.__dict__)  # type: ignore[attr-defined]

    def as_dict(self) -> dict[str, object]:
        """The error as JSON-ready values, for `--json`."""
        return {
            "error": type(self).__name__,
            "category": self.category,
            "rule": self.rule,
            "message": self.message,
            "where": {} if self.where is None else self.where.as_dict(),
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


class InputError(BhemuError):
    """Usage or bad input: a file, a flag, an address or a value the user gave. Exit code 2."""

    EXIT_CODE = EXIT_INPUT
    CATEGORIES = ("InputError",)


@contextmanager
def naming(origin: str) -> Iterator[None]:
    """An InputError within begins with the entry of a program that it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{origin}: {error.message}", hint=error.hint) from error


class UnknownName(InputError, KeyError):
    """There is no core, register, symbol or field of that name; the hint has the nearest one."""


class NoProgress(BhemuError):
    """Nothing can move any more (deadlock) or nothing does (livelock). Exit code 3.

    `graph` is the wait-for graph: an object with `as_dict()`, or anything JSON can hold.
    """

    EXIT_CODE = EXIT_NO_PROGRESS
    CATEGORIES = ("NoProgress", "Deadlock", "Livelock")

    def __init__(
        self,
        message: str,
        *,
        graph: object = None,
        category: str = "",
        rule: str = "",
        where: Where | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, category=category, rule=rule, where=where, hint=hint)
        self.graph = graph

    @property
    def waits(self) -> list[str]:
        """The waits, one line each; also of a graph that came as data."""
        shown = self.graph.get("text", ()) if isinstance(self.graph, dict) else self.graph
        lines = str(shown or "").splitlines() if not isinstance(shown, list | tuple) else shown
        return [str(line) for line in lines if str(line).strip()]

    def __str__(self) -> str:
        """As every error, with the waits between the message and the hint."""
        first, *hint = super().__str__().split("\n")
        return "\n".join([first, *self.waits, *hint])

    def as_dict(self) -> dict[str, object]:
        """The error as JSON-ready values, with the wait-for graph under `graph`."""
        as_dict = getattr(self.graph, "as_dict", None)
        return {**super().as_dict(), "graph": self.graph if as_dict is None else as_dict()}


class NotModelled(BhemuError):
    """The emulator does not do this: it says so by name instead of guessing. Exit code 4."""

    EXIT_CODE = EXIT_NOT_MODELLED
    CATEGORIES = ("Unsupported", "Unimplemented", "MissingSpecification")


class GuestFault(BhemuError):
    """The program did what faults on a core: illegal word, unmapped, alignment. Exit code 5."""

    EXIT_CODE = EXIT_GUEST
    CATEGORIES = ("GuestFault", "IllegalWord", "Unmapped", "Alignment")


class Undefined(BhemuError):
    """The program relies on behaviour the hardware does not define or promise. Exit code 5."""

    EXIT_CODE = EXIT_GUEST
    CATEGORIES = ("UndefinedBehavior", "NonContractualBehavior")


class Assert(BhemuError):
    """A core stands on `ebreak`, the device assert. Exit code 6."""

    EXIT_CODE = EXIT_ASSERT
    CATEGORIES = ("Assert",)


class Limit(BhemuError):
    """The clock limit or the time-out was reached. Exit code 7."""

    EXIT_CODE = EXIT_LIMIT
    CATEGORIES = ("Limit", "Timeout")


class Internal(BhemuError):
    """A defect of bhemu itself; it should be reported. Exit code 70."""

    EXIT_CODE = EXIT_INTERNAL
    CATEGORIES = ("Internal",)


def from_dict(known: dict[str, object]) -> BhemuError:
    """The error that `as_dict` described."""
    kinds = {kind.__name__: kind for kind in BhemuError.__subclasses__()}
    kind = kinds.get(str(known["error"]), InputError)
    place = known["where"]
    assert isinstance(place, dict)
    if isinstance(place.get("tile"), list):
        place = {**place, "tile": tuple(place["tile"])}
    if "inlined" in place:
        place = {**place, "inlined": tuple(Call(**call) for call in place["inlined"])}
    error = kind(
        str(known["message"]),
        category=str(known["category"]),
        rule=str(known["rule"]),
        where=Where(**place) if place else None,
        hint=str(known["hint"]),
    )
    if isinstance(error, NoProgress):
        error.graph = known.get("graph")
    return error
