"""Copies the vector unit's state between the package and the second literal model.

Also draws the operands: named classes of values and of triples for multiply-add.
"""

import random
from collections.abc import Callable, Iterator

import numpy as np
from vector_literal import Dst, fma
from vector_literal_lane import Lane
from vector_literal_unit import Unit

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State

Triple = tuple[int, int, int]
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


def _float(rng: random.Random, low: int, high: int) -> int:
    """A float with an exponent field in low..high."""
    e = min(max(rng.randint(low, high), 0), 255)
    fraction = rng.choice((0, 1, 0x400000, 0x7FFFFF, rng.getrandbits(23), rng.getrandbits(23)))
    return rng.getrandbits(1) << 31 | e << 23 | fraction


def _tie(rng: random.Random) -> int:
    """Halfway, or one step beside it, for an integer, a bf16 or a 24-bit mantissa."""
    step, kind = rng.choice((-1, 0, 1)), rng.randrange(3)
    if kind == 0:
        e = rng.randrange(-2, 17)
        v = (127 + e) << 23 | rng.getrandbits(23) >> (22 - e) << (22 - e) if e > -1 else 126 << 23
        v |= 1 << (22 - e) if 0 <= e < 17 else 0
    elif kind == 1:
        v = rng.randrange(1, 255) << 23 | rng.getrandbits(7) << 16 | 0x8000
    else:
        cut = rng.randrange(1, 8)
        v = (1 << 23 | rng.getrandbits(23)) << cut | 1 << (cut - 1)
    return rng.getrandbits(1) << 31 | (v + step) & 0x7FFFFFFF


SINGLES: dict[str, Callable[[random.Random], int]] = {
    "zeros": lambda r: r.choice((0, 0x80000000)),
    "denormals": lambda r: r.getrandbits(1) << 31 | 1 + r.randrange(0x7FFFFF) >> r.randrange(23),
    "ties": _tie,
    "infinity and NaN": lambda r: r.choice((0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001)),
    "exponent 255": lambda r: _float(r, 255, 255),
    "exponent ends": lambda r: _float(r, *r.choice(((0, 3), (251, 254)))),
    "fp16 exponent ends": lambda r: _float(r, *r.choice(((110, 115), (141, 146)))),
    "near one": lambda r: _float(r, 120, 145),
    "small integers": lambda r: r.randrange(-70, 70) & 0xFFFFFFFF,
    "integer ends": lambda r: (r.choice((0, 0x800000, 1 << 31)) + r.randrange(-2, 3)) & 0xFFFFFFFF,
    "random": lambda r: r.getrandbits(32),
}


def _gap(rng: random.Random) -> Triple:
    """Addend at a chosen distance of exponents from the product, mostly where the last bits go."""
    x, y = _float(rng, 60, 190), _float(rng, 60, 190)
    gap = rng.choice((rng.randint(-70, 70), rng.randint(22, 30), rng.randint(-30, -22)))
    e = (x >> 23 & 255) + (y >> 23 & 255) - 127 + gap
    return x, y, _float(rng, e, e)


def _cancelling(rng: random.Random) -> Triple:
    x, y = _float(rng, 70, 180), _float(rng, 70, 180)
    return x, y, (fma(x, y, 0) ^ 0x80000000) + rng.randint(-3, 3) & 0xFFFFFFFF


def _at_end(rng: random.Random) -> Triple:
    """Product exponent about 0 or 255, addend zero or of an exponent near it, often opposite."""
    x, total = _float(rng, 1, 254), rng.choice((127, 382)) + rng.randint(-3, 3)
    e = min(max(total - (x >> 23 & 255), 1), 254)
    y, near = _float(rng, e, e), min(max(total - 127, 0), 254)
    z = rng.choice((0, 1 << 31, _float(rng, near - 2, near), _float(rng, near, near + 2)))
    return x, y, (x ^ y ^ 1 << 31) & 1 << 31 | z & 0x7FFFFFFF if rng.random() < 0.6 else z


def _half(rng: random.Random) -> Triple:
    """Few mantissa bits, so that the sum lies halfway or close to it."""
    x = (127 << 23) | rng.getrandbits(12) << 11
    y = rng.getrandbits(1) << 31 | 127 << 23 | rng.getrandbits(13) << 10
    return x, y, rng.getrandbits(1) << 31 | rng.randint(100, 154) << 23 | rng.getrandbits(3) << 20


TRIPLES: dict[str, Callable[[random.Random], Triple]] = {
    "gaps": _gap,
    "cancelling": _cancelling,
    "ends": _at_end,
    "halves": _half,
}


def batches(rng: random.Random, count: int) -> Iterator[tuple[str, list[list[int]]]]:
    """`count` times for each class: eight registers of 32 lanes.

    A class fills most lanes of most registers, the rest comes from other classes.  A triple fills
    registers 4, 5, 6, and 7 with the product's addend once more.
    """
    names = list(SINGLES)
    for name, draw in SINGLES.items():
        for _ in range(count):
            yield (
                name,
                [
                    [
                        draw(rng) if rng.random() < 0.7 else SINGLES[rng.choice(names)](rng)
                        for _ in range(32)
                    ]
                    for _ in range(8)
                ],
            )
    for name, triple in TRIPLES.items():
        for _ in range(count):
            rows = [[SINGLES["near one"](rng) for _ in range(32)] for _ in range(4)]
            drawn = [triple(rng) for _ in range(32)]
            yield name, rows + [[d[i] for d in drawn] for i in (0, 1, 2, 2)]
