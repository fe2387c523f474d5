"""SWEEP.toml: programs and parameters, read into frozen records (docs/sweep.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.program import files, toml
from bhemu.program.options import given_in
from bhemu.program.toml import Table, suggestion
from bhemu.text import printable

SCHEMA = 1
CHOICES: Final = ("grid", "list", "random")
TEMPLATES: Final = {
    "core": "cores",
    "in": "inputs",
    "expect": "expects",
    "until": "until",
    "set": "sets",
}
"""Flags of `bhemu run` that may name parameters as {name}, and what they are called in Python."""
COUNTS: Final = ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2", "t0", "t1", "t2")
"""Columns of what cores and threads have executed."""
RESULTS: Final = (
    *("run", "program", "outcome", "exit_code", "stop", "clock"),
    *COUNTS,
    *("digest", "differing", "worst_ulp", "category", "rule", "message", "where"),
    *("tile", "core", "thread", "pc", "function", "file", "line"),
    *("tolerated", "seconds", "command", "key"),
)
"""Columns of the results, beside the parameters."""
Scalar = int | float | str | bool
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _check_names(name: str, value: Any) -> Any:
    from bhemu.why import checks  # much code that a sweep without them does not need

    return checks.named(value) if isinstance(value, str) else arguments.choice(name, value, {})


def options() -> dict[str, Callable[[str, Any], Any]]:
    """Parameters that mean something by themselves, with their checks: options of `bhemu run`."""
    flags = {o.flag or name: o.kind.check_written for name, o in given_in("flag").items()}
    return {**flags, "check": _check_names}


@dataclass(frozen=True)
class Part:
    """One program of a sweep; its parameters and templates are those of the sweep and its own."""

    program: str
    parameters: Mapping[str, Sequence[Scalar]]
    templates: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Sweep:
    """What to run: each of `parts` with the values of its parameters that `choose` says.

    "grid": all combinations; "list": the first values of all, the second ones, and so on;
    "random": `count` combinations of the grid, which `seed` decides. `folder` is what paths start
    from; with `inside` none may leave it. `allow_outside`: a program's files may lie outside of its
    own folder. Without `compare` outputs are read and not compared.
    """

    name: str
    folder: Path
    parts: tuple[Part, ...]
    choose: str = "grid"
    count: int | None = None
    seed: int = 0
    compare: bool = True
    inside: bool = False
    allow_outside: bool = False
    origin: str = "sweep"


def load_sweep(path: str | Path, *, allow_outside: bool = False) -> Sweep:
    """Read a SWEEP.toml, or the one in a folder; InputError for every mistake in it."""
    path = arguments.path(path)
    if files.is_folder(path):
        path /= "SWEEP.toml"
    data = toml.read(path, "docs/sweep.md shows one")
    top = Table(data, str(path), path.parent, inside=not allow_outside)
    toml.check_schema(top, "sweep", SCHEMA)
    sweep = Sweep(
        name=printable(top.text("name", path.stem)),
        folder=path.parent,
        choose=top.text("choose", "grid", choices=CHOICES),
        count=top.integer("count", None, lo=1),
        seed=top.integer("seed", 0),
        compare=top.flag("compare", True),
        inside=not allow_outside,
        allow_outside=allow_outside,
        origin=str(path),
        parts=_parts(top),
    )
    top.finish()
    check(sweep)
    return sweep


def _parts(top: Table) -> tuple[Part, ...]:
    shared, templates = _parameters(top), _templates(top)
    names = top.take("program", None, (str, list))
    if isinstance(names, str):
        names = [names]
    if not names:
        top.fail("missing key program: what runs?", hint='program = ["add1", "matmul"]')
    if all(isinstance(name, str) for name in names):
        return tuple(Part(name, shared, templates) for name in names)
    parts = []
    for table in top.tables("program"):
        own = _templates(table)
        both = {flag: (*templates[flag], *own[flag]) for flag in TEMPLATES}
        parts.append(Part(table.text("path"), {**shared, **_parameters(table)}, both))
        table.finish()
    return tuple(parts)


def _templates(table: Table) -> dict[str, tuple[str, ...]]:
    return {flag: _texts(table, flag) for flag in TEMPLATES}


def _texts(table: Table, key: str) -> tuple[str, ...]:
    values = table.take(key, [], (list, str))
    values = [values] if isinstance(values, str) else values
    if not all(isinstance(value, str) for value in values):
        table.fail(f"{key} is not an array of strings", hint=f"as --{key} of bhemu run")
    return tuple(values)


def _parameters(table: Table) -> dict[str, Sequence[Scalar]]:
    """[parameters]: each an array of values, one value, or { first, last, step }."""
    parameters = table.table("parameters")
    return {name: _values(parameters, name) for name in parameters}


def _values(table: Table, name: str) -> Sequence[Scalar]:
    value = table.take(name, None, (list, dict, str, int, float, bool))
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    span = table.table(name)
    first, last = span.integer("first", lo=-arguments.MOST), span.integer("last")
    step = span.integer("step", 1, lo=1)
    span.finish()
    return range(first, last + 1, step)


def check(sweep: Sweep) -> None:
    """InputError for parameters that mean nothing, have no values or are used nowhere."""
    if (sweep.choose == "random") != (sweep.count is not None):
        raise InputError(f'{sweep.origin}: count goes with choose = "random", and with no other')
    for part in sweep.parts:
        used = {name for texts in part.templates.values() for t in texts for name in names_in(t)}
        known = (*part.parameters, *options())
        for name in used - part.parameters.keys():
            raise InputError(
                f"{sweep.origin}: {{{name}}} stands for no parameter", hint=suggestion(name, known)
            )
        for name, values in part.parameters.items():
            _check_parameter(f"{sweep.origin}: {name}", name, values)
            if name not in used and name not in options():
                raise InputError(
                    f"{sweep.origin}: parameter {name} is neither an option of bhemu run nor used"
                    f" as {{{name}}} with {part.program}",
                    hint=suggestion(name, tuple(options())),
                )


def _check_parameter(origin: str, name: str, values: Sequence[Scalar]) -> None:
    if not _NAME.fullmatch(name) or name in RESULTS:
        what = "a column of the results" if name in RESULTS else "no name"
        raise InputError(f"{origin} is {what}", hint="letters, digits and _, as in n_tiles")
    if not values:
        raise InputError(f"{origin} has no values")
    if isinstance(values, range) and name not in options():
        return
    if isinstance(values, range):
        values = (values[0], values[-1])
    kinds = {type(value) for value in values}
    if not (kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool})):
        raise InputError(f"{origin}: values of one kind: numbers, strings, or true and false")
    if len(set(values)) < len(values):
        twice = next(value for value in values if list(values).count(value) > 1)
        raise InputError(f"{origin}: {twice!r} stands there twice")
    for value in values if name in options() else ():
        options()[name](origin, value)


def names_in(template: str) -> list[str]:
    """The parameters that a template names."""
    return _PLACEHOLDER.findall(template)


def filled(template: str, values: Mapping[str, Scalar]) -> str:
    """The template with values for its parameters."""
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)
