"""How much a file may ask for: checked before anything is allocated, settable by the environment.

`BHEMU_LIMIT_ELF_BYTES=256M` sets the limit `ELF_BYTES`; K, M and G are 2^10, 2^20 and 2^30.
"""

import os
import re
from typing import NamedTuple

from bhemu.errors import InputError

_PREFIX = "BHEMU_LIMIT_"
_VALUE = re.compile(r"([0-9]{1,15})([KMG]?)")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


class Limit(NamedTuple):
    """One limit: its default and what it bounds."""

    default: int
    doc: str


LIMITS = {
    "PROGRAM_BYTES": Limit(256 << 10, "size of a PROGRAM.toml, of a SWEEP.toml"),
    "PROGRAM_DEPTH": Limit(16, "nested brackets, and parts of a dotted key, in a PROGRAM.toml"),
    "ELF_BYTES": Limit(64 << 20, "size of an ELF"),
    "ELF_SEGMENTS": Limit(256, "program headers of an ELF"),
    "ELF_SECTIONS": Limit(8192, "section headers of an ELF"),
    "ELF_SYMBOLS": Limit(100_000, "symbols of an ELF"),
    "ELF_NAMES": Limit(16 << 20, "bytes of all symbol names of an ELF"),
    "LINE_BYTES": Limit(16 << 20, "size of a DWARF section with line numbers, unpacked"),
    "LINE_STEPS": Limit(400_000, "steps through .debug_line of an ELF"),
    "DWARF_BYTES": Limit(64 << 20, "size of all debug sections of an ELF, unpacked"),
    "DWARF_ENTRIES": Limit(400_000, "entries of .debug_info of an ELF"),
    "DWARF_STEPS": Limit(8_000_000, "steps through .debug_info of an ELF"),
    "ARRAY_BYTES": Limit(64 << 20, "size of an input or expected array, and of a picture of L1"),
    "ARCHIVE_BYTES": Limit(64 << 20, "size of an .npz: a saved state, a picture of L1"),
    "SESSION_BYTES": Limit(2 << 30, "size of a recorded session, packed and unpacked"),
    "COVERAGE_BYTES": Limit(256 << 20, "size of a file of `bhemu explain --coverage`"),
    "MESSAGE_BYTES": Limit(1 << 30, "data of one message between a host and `bhemu serve`"),
    "SWEEP_RUNS": Limit(1_000_000, "runs of a SWEEP.toml"),
    "SOURCE_BYTES": Limit(4 << 20, "size of a source file whose lines are shown"),
}


def limit(name: str) -> int:
    """The value of a limit; InputError when the environment holds no number for it."""
    text = os.environ.get(_PREFIX + name)
    if text is None:
        return LIMITS[name].default
    found = _VALUE.fullmatch(text)
    if found is None:
        hint = "a number of bytes or things, as in 64M"
        raise InputError(f"{_PREFIX}{name} = {text!r} is no limit", hint=hint)
    return int(found[1]) << _UNITS[found[2]]


def check(name: str, value: int, subject: str) -> None:
    """InputError when `value`, of `subject`, is more than the limit called `name`."""
    most = limit(name)
    if value > most:
        raise InputError(
            f"{subject}: {value}, the limit is {most} ({LIMITS[name].doc})",
            hint=f"{_PREFIX}{name} sets the limit",
        )
