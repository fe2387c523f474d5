"""What a caller gave: whole numbers, switches, names; an InputError says what is wanted instead."""

import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from bhemu.errors import InputError

MOST = (1 << 63) - 1  # what a counter of the record holds
_MOST_COMPARED = 10_000  # names: more would take long
_T = TypeVar("_T")


def integer(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """`value` as an integer of `least` to `most`; NumPy's integers are integers, bools are not."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        wanted = f"of {least} or more" if most is None else f"of {least} to {most}"
        raise InputError(f"{name} = {value!r} must be an integer {wanted}")
    return number


def thread(value: Any) -> int:
    """`value` as the number of a Tensix thread."""
    try:
        return integer("thread", value, 0, 2)
    except InputError:
        raise InputError(f"there is no Tensix thread {value!r} (0, 1, 2)") from None


def word(name: str, value: Any) -> int:
    """`value` as an unsigned 32-bit integer."""
    number = integer(name, value, -MOST)
    if not 0 <= number < 1 << 32:
        raise InputError(f"{name} {number:#x} does not fit 32 bits")
    return number


def seconds(name: str, value: Any) -> float:
    """`value` as a finite number of 0 or more."""
    try:
        number = float(value) if not isinstance(value, str | bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InputError(f"{name} = {value!r} must be a finite number of 0 or more")
    return number


def flag(name: str, value: Any) -> bool:
    """`value`, which must be True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} = {value!r} must be True or False")
    return value


def path(value: Any) -> Path:
    """`value` as the path of a file."""
    try:
        return Path(value)
    except TypeError:
        raise InputError(f"{value!r} is no path") from None


def choice(what: str, value: Any, known: Mapping[Any, _T]) -> _T:
    """What stands under `value` in `known`."""
    try:
        return known[value]
    except (KeyError, TypeError):
        names = ", ".join(repr(name) for name in known)
        near = did_you_mean(value, (name for name in known if isinstance(name, str)))
        hint = f"{near} one of {names}" if near else f"one of {names}"
        raise InputError(f"{what} = {value!r} is not known", hint=hint) from None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """ "did you mean X?" with the nearest of the known names, or nothing."""
    if not isinstance(name, str):
        return ""
    exact = {one.lower(): one for one in known}
    if len(exact) > _MOST_COMPARED:
        return ""
    import difflib  # takes milliseconds, which few runs need

    near = difflib.get_close_matches(name.lower(), exact, n=1)
    return f"did you mean {exact[near[0]]}?" if near else ""


def shape_of(shape: Any) -> tuple[int, ...]:
    """`shape` as a tuple of integers."""
    try:
        return tuple(integer("shape", n, 1) for n in shape)
    except (TypeError, InputError):
        raise InputError(f"shape = {shape!r} is no shape", hint="for example (32, 32)") from None
