"""Options of a tile and a chip as their records hold them, and the call that takes them."""

import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.program.options import ENGINES, REFERENCES, Lateness, declared, lateness
from bhemu.tensix import rules
from bhemu.tensix.lanes import DOWN, RANDOM, REFUSED, UP

UB = {"error": rules.UB_ERROR, "warn": rules.UB_WARN, "silicon": rules.UB_SILICON}
REFERENCE = dict(
    zip(REFERENCES, (rules.REFERENCE_TTSIM, rules.REFERENCE_LLK, rules.REFERENCE_ISA), strict=True)
)
STOCHASTIC = {"off": REFUSED, "up": UP, "down": DOWN, "seed": RANDOM}
L0 = {"off": 0, "model": 1}
POISON = {None: 0, "off": 0, "zero": 0, "ff": 0xFF, "random": 0}
_NOC_SIDE = 63  # largest coordinate
_T = TypeVar("_T")


def takes(table: Any) -> Callable[[type[_T]], type[_T]]:
    """For a class whose constructor takes the options of `table`: its signature and help say so."""

    def described(cls: type[_T]) -> type[_T]:
        init: Any = cls.__init__
        first = [
            each
            for each in inspect.signature(init).parameters.values()
            if each.kind is not each.VAR_KEYWORD
        ]
        known = declared(table)
        own = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=table.__annotations__[name].__origin__,
            )
            for name, option in known.items()
        ]
        init.__signature__ = inspect.Signature([*first, *own])
        lines = [f"    {name}: {option.help.replace('--', '')}" for name, option in known.items()]
        cls.__doc__ = "\n".join([(cls.__doc__ or "").rstrip(), "", *lines, "    "])
        return cls

    return described


def late_of(value: int | str) -> Lateness | None:
    """What is late, by the value of the option; None where nothing is."""
    return None if value == "off" else lateness("late", value)


def engine_name(name: str | None, default: str, timed: bool = False) -> str:
    """The engine's name: as given, else what BHEMU_ENGINE says, else `default`.

    Timed runs ask the cores for single instructions, which the compiled engine alone can do.
    """
    if timed:
        return ENGINES[1]
    if name is not None:
        return name
    chosen = os.environ.get("BHEMU_ENGINE") or default
    return arguments.choice("BHEMU_ENGINE", chosen, {engine: engine for engine in ENGINES})


def coordinate(xy: Any) -> tuple[int, int]:
    """`xy` as a coordinate of the NoC."""
    try:
        x, y = (arguments.integer("coordinate", n, 0, _NOC_SIDE) for n in xy)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"xy = {xy!r} must be a NoC coordinate: two integers of 0 to {_NOC_SIDE}",
            hint="for example (1, 2)",
        ) from None
    return x, y
