"""What a tile and a chip are made with: the options, checked."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.program import schema
from bhemu.program.schema import ENGINES
from bhemu.program.specs import RunSpec
from bhemu.tensix.prng import DOWN, RANDOM, REFUSED, UP
from bhemu.tensix.rules import (
    REFERENCE_ISA,
    REFERENCE_LLK,
    REFERENCE_TTSIM,
    UB_ERROR,
    UB_SILICON,
    UB_WARN,
)

UB = dict(zip(schema.UB, (UB_ERROR, UB_WARN, UB_SILICON), strict=True))
_REFERENCES = (REFERENCE_TTSIM, REFERENCE_LLK, REFERENCE_ISA)
REFERENCE = dict(zip(schema.REFERENCES, _REFERENCES, strict=True))
STOCHASTIC = {"off": REFUSED, "up": UP, "down": DOWN, "seed": RANDOM}
L0 = {name: number for number, name in enumerate(schema.L0)}
POISON = {None: 0, "off": 0, "zero": 0, "ff": 0xFF, "random": 0}
Progress = Callable[[str, float], None]
_NOC_SIDE = 63  # largest coordinate


def silent(name: str, seconds: float) -> None:
    """Default of `progress`: say nothing."""


class Options(TypedDict, total=False):
    """The keyword arguments that Tile and Chip share."""

    seed: int
    quantum: int
    ub: str
    poison: str | None
    reference: str
    stochastic: int | str | None
    engine: str | None
    l0: str
    livelock: int
    progress: Callable[[str, float], None]


class TileOptions(Options, total=False):
    """The keyword arguments of Tile."""

    xy: tuple[int, int]


class ChipOptions(Options, total=False):
    """The keyword arguments of Chip."""

    harvest: Sequence[int]
    dram_banks: int
    delivery: str
    threads: int


class LaunchOptions(TileOptions, ChipOptions, total=False):
    """The keyword arguments of Tile and of Chip."""


def of_run(run: RunSpec) -> Options:
    """What the [run] table of a program says of its tile or chip."""
    return {
        "seed": run.seed,
        "ub": run.ub,
        "poison": run.poison,
        "reference": run.reference,
        "stochastic": run.stochastic,
        "engine": run.engine,
        "l0": run.l0 or "off",
        "livelock": run.livelock,
    }


def engine_name(name: str | None, otherwise: str) -> str:
    """The engine's name: as given, else what BHEMU_ENGINE says, else `otherwise`."""
    chosen = os.environ.get("BHEMU_ENGINE") or otherwise if name is None else name
    arguments.choice(
        "engine" if name is not None else "BHEMU_ENGINE", chosen, dict.fromkeys(ENGINES, 0)
    )
    return chosen


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
