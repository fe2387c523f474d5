"""Copies the vector unit's state between the package and the second literal model.

Also draws the operands: named classes of values and of triples for multiply-add.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from vector_literal import Dst, fma
from vector_literal_lane import Lane
from vector_literal_unit import Unit

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State

Bits = npt.NDArray[np.int64]
Triple = tuple[Bits, Bits, Bits]
MEMBERS = ("lreg", "cc", "cc_en", "cc_stack", "cc_stack_en", "cc_depth", "lane_config", "prng")
MEMBERS += ("macro_template", "macro_sequence", "macro_misc")
MEMBERS += ("dst", "dst_valid", "rwc", "cfg", "thread_cfg")


def snapshot(s: State) -> dict[str, np.ndarray]:
    return {name: getattr(s, name).copy() for name in MEMBERS}


def unit_of(p: dict[str, np.ndarray], t: int) -> Unit:
    """The model in the state of a snapshot, as thread `t` addresses Dst."""
    lreg = p["lreg"].T.tolist()
    state = zip(p["cc"].tolist(), p["prng"].tolist(), p["lane_config"].tolist(), strict=True)
    special = dict(enumerate([*p["macro_template"], *p["macro_sequence"], *p["macro_misc"]]))
    special = {number: int(value) for number, value in special.items()}
    lanes = [Lane(lreg[i], *lane, special=special | {15: lane[2]}) for i, lane in enumerate(state)]
    word = int(p["cfg"][p["thread_cfg"][t, 0] & 1, cf.ALU_FORMAT_SPEC_REG1_SrcB.word])
    offset = int(p["thread_cfg"][t, tf.DEST_TARGET_REG_CFG_MATH_Offset.word]) & 0xFFF
    depth = int(p["cc_depth"][0])
    stacked = zip(p["cc_stack_en"].tolist()[:depth], p["cc_stack"].tolist()[:depth], strict=True)
    return Unit(
        lanes,
        Dst(p["dst"], p["dst_valid"]),
        cc_en=int(p["cc_en"][0]),
        stack=[(int(enabled), flags) for enabled, flags in stacked],
        base=int(p["rwc"][t, 2]) + offset,
        fp32=word >> cf.ALU_ACC_CTRL_SFPU_Fp32_enabled.shift & 1,
        srcb=word >> cf.ALU_FORMAT_SPEC_REG1_SrcB.shift & 15,
    )


def differences(unit: Unit, s: State) -> list[str]:
    """Registers, flags, generators and cells in which the package's state is another."""
    lines, registers = [], s.lreg.T.tolist()
    special = [*s.macro_template.tolist(), *s.macro_sequence.tolist(), *s.macro_misc.tolist()]
    for i, lane in enumerate(unit.lanes):
        if [lane.special[number] for number in range(9)] != special:
            lines.append(f"macro registers of lane {i}")
    others = zip(s.cc.tolist(), s.prng.tolist(), s.lane_config.tolist(), strict=True)
    for i, (lane, got, other) in enumerate(zip(unit.lanes, registers, others, strict=True)):
        for r in range(16) if lane.lreg != got else ():
            if lane.lreg[r] != got[r]:
                lines.append(f"LReg{r} lane {i}: {lane.lreg[r]:08x}, bhemu {got[r]:08x}")
        if (lane.cc, lane.prng, lane.config) != other:
            lines.append(f"lane {i}: {(lane.cc, lane.prng, lane.config)}, bhemu {other}")
    if not np.array_equal(unit.dst.cell, s.dst):
        lines.append(f"Dst cells {np.argwhere(unit.dst.cell != s.dst).tolist()[:8]}")
    if not np.array_equal(unit.dst.valid & 1, s.dst_valid & 1):  # bit 1: never written
        lines.append("row flags")
    depth = int(s.cc_depth[0])
    if (unit.cc_en, len(unit.stack)) != (int(s.cc_en[0]), depth):
        lines.append("cc_en or depth of the stack")
    if [flags for _, flags in unit.stack] != s.cc_stack.tolist()[:depth]:
        lines.append("flags on the stack")
    if [enabled for enabled, _ in unit.stack] != s.cc_stack_en.tolist()[:depth]:
        lines.append("enables on the stack")
    return lines


# Operands


def pick(rng: Generator, values: Sequence[int | Bits], n: int) -> Bits:
    """One of several values, or the elements of one of several arrays, for each of `n` lanes."""
    rows = np.empty((len(values), n), np.int64)
    for i, value in enumerate(values):
        rows[i] = value
    chosen: Bits = rows[rng.integers(0, len(values), n), np.arange(n)]
    return chosen


def _sign(rng: Generator, n: int) -> Bits:
    return rng.integers(0, 2, n) << 31


def _float(rng: Generator, low: int | Bits, high: int | Bits, n: int) -> Bits:
    """Floats with an exponent field in low..high."""
    e = np.clip(rng.integers(low, np.asarray(high) + 1, n), 0, 255)
    some = rng.integers(0, 1 << 23, (2, n))
    return _sign(rng, n) | e << 23 | pick(rng, (0, 1, 0x400000, 0x7FFFFF, *some), n)


def _tie(rng: Generator, n: int) -> Bits:
    """Halfway, or one step beside it, for an integer, a bf16 or a 24-bit mantissa."""
    e, bits = rng.integers(-2, 17, n), rng.integers(0, 1 << 23, n)
    down = np.minimum(22 - e, 22)
    integer = (127 + e) << 23 | (bits >> down << down) | 1 << down
    integer = np.where(e < 0, 126 << 23, integer)
    bf16 = rng.integers(1, 255, n) << 23 | rng.integers(0, 128, n) << 16 | 0x8000
    cut = rng.integers(1, 8, n)
    long = (1 << 23 | bits) << cut | 1 << (cut - 1)
    step = rng.integers(-1, 2, n)
    return _sign(rng, n) | (pick(rng, (integer, bf16, long), n) + step) & 0x7FFFFFFF


def _of_two(rng: Generator, one: tuple[int, int], two: tuple[int, int], n: int) -> Bits:
    return pick(rng, (_float(rng, *one, n), _float(rng, *two, n)), n)


SINGLES: dict[str, Callable[[Generator, int], Bits]] = {
    "zeros": _sign,
    "denormals": lambda r, n: _sign(r, n) | 1 + r.integers(0, 0x7FFFFF, n) >> r.integers(0, 23, n),
    "ties": _tie,
    "infinity and NaN": lambda r, n: pick(r, (0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001), n),
    "exponent 255": lambda r, n: _float(r, 255, 255, n),
    "exponent ends": lambda r, n: _of_two(r, (0, 3), (251, 254), n),
    "fp16 exponent ends": lambda r, n: _of_two(r, (110, 115), (141, 146), n),
    "near one": lambda r, n: _float(r, 120, 145, n),
    "small integers": lambda r, n: r.integers(-70, 70, n) & 0xFFFFFFFF,
    "integer ends": lambda r, n: (
        pick(r, (0, 0x800000, 1 << 31), n) + r.integers(-2, 3, n) & 0xFFFFFFFF
    ),
    "random": lambda r, n: r.integers(0, 1 << 32, n),
}


def _gap(rng: Generator, n: int) -> Triple:
    """Addend at a chosen distance of exponents from the product, mostly where the last bits go."""
    x, y = _float(rng, 60, 190, n), _float(rng, 60, 190, n)
    ranges = ((-70, 71), (22, 31), (-30, -21))
    gap = pick(rng, [rng.integers(low, high, n) for low, high in ranges], n)
    e = (x >> 23 & 255) + (y >> 23 & 255) - 127 + gap
    return x, y, _float(rng, e, e, n)


def _cancelling(rng: Generator, n: int) -> Triple:
    x, y = _float(rng, 70, 180, n), _float(rng, 70, 180, n)
    products = [fma(one, two, 0) for one, two in zip(x.tolist(), y.tolist(), strict=True)]
    opposite = np.array(products) ^ 0x80000000
    return x, y, opposite + rng.integers(-3, 4, n) & 0xFFFFFFFF


def _at_end(rng: Generator, n: int) -> Triple:
    """Product exponent about 0 or 255, addend zero or of an exponent near it, often opposite."""
    x, total = _float(rng, 1, 254, n), pick(rng, (127, 382), n) + rng.integers(-3, 4, n)
    e = np.clip(total - (x >> 23 & 255), 1, 254)
    y, near = _float(rng, e, e, n), np.clip(total - 127, 0, 254)
    below, above = _float(rng, near - 2, near, n), _float(rng, near, near + 2, n)
    z = pick(rng, (0, 1 << 31, below, above), n)
    opposite = (x ^ y ^ 1 << 31) & 1 << 31 | z & 0x7FFFFFFF
    return x, y, np.where(rng.random(n) < 0.6, opposite, z)


def _half(rng: Generator, n: int) -> Triple:
    """Few mantissa bits, so that the sum lies halfway or close to it."""
    x = 127 << 23 | rng.integers(0, 1 << 12, n) << 11
    y = _sign(rng, n) | 127 << 23 | rng.integers(0, 1 << 13, n) << 10
    return x, y, _sign(rng, n) | rng.integers(100, 155, n) << 23 | rng.integers(0, 8, n) << 20


TRIPLES: dict[str, Callable[[Generator, int], Triple]] = {
    "gaps": _gap,
    "cancelling": _cancelling,
    "ends": _at_end,
    "halves": _half,
}


def batches(rng: Generator, count: int) -> Iterator[tuple[str, Bits]]:
    """`count` times for each class: eight registers of 32 lanes.

    A class fills most lanes of most registers, the rest comes from other classes.  A triple fills
    registers 4, 5, 6, and 7 with the product's addend once more.
    """
    for name, draw in SINGLES.items():
        for _ in range(count):
            others = pick(rng, [other(rng, 256) for other in SINGLES.values()], 256)
            mixed = np.where(rng.random(256) < 0.7, draw(rng, 256), others)
            yield name, mixed.reshape(8, 32)
    for name, triple in TRIPLES.items():
        for _ in range(count):
            x, y, z = triple(rng, 32)
            yield name, np.concatenate((SINGLES["near one"](rng, 128).reshape(4, 32), [x, y, z, z]))
