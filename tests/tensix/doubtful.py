"""Records with doubtful cells, for tests."""

import numpy as np
import numpy.typing as npt
from matrix_reference import filled, high_row

from bhemu.machine import sentences
from bhemu.tensix import unspecified
from bhemu.tensix.state import State

FP16, BF16, INT8, TF32 = 1, 5, 14, 4
WIDE = 0x10000000
KEEPS = 1  # Zero_Flag_disabled_src, in Config word 2
EXPONENTS, DENORMALS = unspecified._EXPONENT, unspecified._DENORMAL


def storage(wide: int, row: int) -> int:
    return high_row(row) if wide else row


def in_doubt(s: State, at: int) -> set[int]:
    mask = int(s.dst_doubt[at]) if s.dst_valid[at] & unspecified.DOUBT else 0
    return {j for j in range(16) if (mask | mask >> 16) >> j & 1}


def note(s: State, at: int, columns: int) -> None:
    """Put columns of a row of Dst in doubt."""
    s.doubt[0] = 1
    s.dst_doubt[at], s.dst_doubt_pc[at] = columns, s.gate_pc[0]
    s.dst_valid[at] |= unspecified.DOUBT if columns else 0


def datums(s: State, wide: int, rows: range) -> npt.NDArray[np.int64]:
    """(rows, 16) datums, the rows' validity among them."""
    at = [storage(wide, row) for row in rows]
    low = s.dst[[r + 8 for r in at]] if wide else 0
    values = (s.dst[at].astype(np.int64) << 16 | low) * (s.dst_valid[at] & 1)[:, None]
    return values


def rule(number: int) -> str:
    return sentences.RULES[number].rule if number < 0 else ""


def doubtful(wide: int = 0, row: int = 40, columns: int = 0x0020, fmt: int = BF16) -> State:
    """A row of Dst of which some columns are in doubt."""
    s = filled(3, fmt, bool(wide))
    s.dst_valid[:] = 1
    s.gate_pc[0] = 0x7C4
    note(s, storage(wide, row), columns)
    return s
