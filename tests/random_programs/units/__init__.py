"""Generators of random programs, one file per unit."""

import importlib

from bhemu.errors import InputError
from random_programs.plan import Plan

UNITS = (
    *("front", "scalar", "config", "sync", "adc"),
    *("matrix", "vector", "unpack", "pack", "copy", "accept"),
)


def generate(unit: str, seed: int, index: int) -> Plan:
    """The program of (unit, seed, index), always the same one."""
    if unit not in UNITS:
        raise InputError(f"there are no programs for {unit!r}", hint=f"one of {', '.join(UNITS)}")
    made: Plan = importlib.import_module(f"random_programs.units.{unit}").generate(seed, index)
    return made
