"""Infinity or NaN that PROGRAM.toml gives: a value of [[set]] of another type than is read."""

import numpy as np

from bhemu.program.schema import Program
from bhemu.program.specs import SetSpec
from bhemu.why.toml_lines import TomlLines

_EXPONENT = 0x7F800000  # all ones: infinity or NaN


def given(program: Program, value: int) -> tuple[int, str] | None:
    """The line and text of a value of [[set]] that is no float and these 32 bits of infinity or
    NaN, of a program of one tile."""
    if program.path is None or not program.is_alone or value & _EXPONENT != _EXPONENT:
        return None
    lines = TomlLines(program.path)
    for number, spec in enumerate(program.sets):
        for index, word in enumerate(_words(spec)):
            line, written = lines.written("set", number, "values", index)
            if word == value and not written.startswith("f"):
                return line, written
    return None


def _words(spec: SetSpec) -> list[int]:
    return [] if len(spec.data) % 4 else [int(one) for one in np.frombuffer(spec.data, "<u4")]
