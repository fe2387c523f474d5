"""Executes one vector instruction on a state and on the literal model, and compares them."""

import random

import numpy as np
from matrix_reference import rule
from sfpu_formats import INF, LANES, M32, MAGNITUDE, NAN, SIGN
from sfpu_reference import Model
from unit_runner import run

from bhemu.tensix.insn import instructions
from bhemu.tensix.state import State

MASKS = ("all", "unused", "some", "none")  # lanes enabled by the condition codes
CONSTANTS = (0x3F56594B, 0, 0x3F800000, 0xBF800000, 0x3B000000, 0xBF2CC4C7, 0xBEB08FF9)
# Zeros, denormals, ties, exponent steps, infinities, NaN, integers at their ends
EDGES = (0, 1, 2, 31, 32, 0xFFF, 0x7FFFFF, 0x800000, 0x807FFFFF, SIGN, SIGN + 1, M32, MAGNITUDE)
EDGES += (INF, INF | SIGN, NAN, NAN | SIGN, INF + 1, 0x7F7FFFFF, 0xFF7FFFFF, 0x7E800000, 0x3F800000)
EDGES += (0xBF800000, 0x3F000000, 0x3EFFFFFF, 0x3FC00000, 0x40400000, 0x40000000, 0x437F8000)
EDGES += (0x3F808000, 0x3F818000, 0x3F807FFF, 0x46FFFF00, 0x477FFF80, 0x42FF0000, 0x01000000)
EDGES += (0x01000001, 0x01800001, 0x0100007F, 0x7FFFFFBF, 0x7FFFFFC0, 0xFFFFFFE0, 0xC2FF8000)


def operand(rng: random.Random) -> int:
    """An edge case, a value near 1.0, a small integer or 32 random bits."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.choice(EDGES)
    if kind == 1:
        return rng.getrandbits(1) << 31 | rng.randrange(118, 146) << 23 | rng.getrandbits(23)
    return rng.randrange(-70, 70) & M32 if kind == 2 else rng.getrandbits(32)


def fresh(seed: int, mask: str = "all") -> State:
    """Random registers, random states, Dst pattern and the lanes that `mask` names."""
    s, rng = State(), random.Random(seed)
    for i in range(8):
        s.lreg[i] = [operand(rng) for _ in LANES]
    for i, constant in enumerate(CONSTANTS):
        s.lreg[8 + i] = constant
    s.lreg[15] = [2 * i for i in LANES]
    s.prng[:] = [rng.getrandbits(32) for _ in LANES]
    s.dst[:] = np.random.default_rng(seed).integers(0, 1 << 16, s.dst.shape, dtype=np.uint16)
    s.dst_valid[:] = 1
    s.cc_en[0] = mask != "unused"
    s.cc[:] = {"all": 1, "none": 0}.get(mask, [rng.getrandbits(1) for _ in LANES])
    return s


def same(s: State, name: str, **fields: int) -> Model:
    """Execute one instruction on state and model; they must agree.  Returns the model."""
    model = Model(s)
    values = next(c for c in instructions().values() if c.name == name)
    getattr(model, name)(*values.operands(values.assemble(**fields)).values())
    assert run(s, name, **fields) == 0
    assert model.differences(s) == [], (name, fields)
    return model


def edged(seed: int, mask: str) -> State:
    """Random registers, edge cases in LReg 1 and 2, shift distances in LReg 3."""
    s = fresh(seed, mask)
    s.lreg[1], s.lreg[2] = (EDGES * 2)[7 * seed :][:32], (EDGES * 3)[13 * seed + 3 :][:32]
    s.lreg[3] = range(32)
    return s


def result(name: str, *values: int, **fields: int) -> list[int]:
    """LReg[2] for these values in LReg[1]."""
    s = fresh(1)
    s.lreg[1] = 0
    s.lreg[1, : len(values)] = values
    return same(s, name, lreg_dest=2, **fields).reg[2][: len(values)]


def refused(name: str, s: State | None = None, **fields: int) -> str:
    """Rule id of a refused instruction, which must have changed nothing but the detail words."""
    s = fresh(3, "all") if s is None else s
    model, templates = Model(s), s.macro_template.tolist()
    number = run(s, name, **fields)
    assert number < 0, f"{name} {fields} was executed"
    assert model.differences(s) == [] and s.macro_template.tolist() == templates
    return rule(number)
