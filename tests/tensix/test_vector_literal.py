"""Every vector instruction and mode against the second literal model, on named operand classes.

The model is an independent reading of the text; where it and the package differ, one misread.
"""

import zlib
from itertools import product

import numpy as np
import pytest
from fuzz.campaign import LONG
from matrix_reference import rule
from numpy.random import Generator
from unit_runner import run
from vector_literal import CONSTANTS
from vector_literal_runner import SINGLES, Bits, batches, differences, pick, snapshot, unit_of

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.state import State

BATCHES = 6 if LONG else 2  # of 32 lanes for each operand class, divided among a mode's field sets
IMMEDIATES = (0, 1, 2, 0x1F, 0x7F, 0x7FF, 0x800, 0x801, 0xF80, 0xFE1, 0xFFF)
D_C = ({"lreg_dest": 2, "lreg_c": 4}, {"lreg_dest": 5, "lreg_c": 5}, {"lreg_dest": 6, "lreg_c": 8})
D_SRC = tuple({"lreg_dest": f["lreg_dest"], "lreg_src_c": f["lreg_c"]} for f in D_C)
A_B = ({"lreg_src_a": 4, "lreg_src_b": 5}, {"lreg_src_a": 5, "lreg_src_b": 4})
Fields = dict[str, int]
ALL = tuple(range(16))


def _cross(modes: tuple[int, ...], *axes: tuple[Fields, ...]) -> dict[int, list[Fields]]:
    """All field sets of each mode."""
    return {
        mod: [{k: x for part in parts for k, x in part.items()} for parts in product(*axes)]
        for mod in modes
    }


def _each(name: str, values: tuple[int, ...]) -> tuple[Fields, ...]:
    return tuple({name: v} for v in values)


FLOATS16 = (0, 0x8000, 1, 0x3F80, 0xBF80, 0x3F81, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x0080, 0x4B00)
EXCHANGES = [[index | 0x100 * (i % 5 < 2) for i in range(32)] for index in (0, 4)]
CASES: dict[str, dict[int, list[Fields]]] = {
    "SFPMAD": _cross(ALL, A_B, _each("lreg_src_c", (6, 5)), _each("lreg_dest", (2, 6))),
    "SFPADD": _cross(
        (0, 1, 2, 3, 8, 9, 10, 11),
        ({"lreg_src_a": 10, "lreg_src_b": 7}, {"lreg_src_a": 4, "lreg_src_b": 10}),
        _each("lreg_src_c", (6,)),
        _each("lreg_dest", (2, 6)),
    )
    | _cross(
        (4, 5, 6, 7, 12, 13, 14, 15),
        ({"lreg_src_a": 4, "lreg_src_b": 10},),
        _each("lreg_src_c", (6,)),
        _each("lreg_dest", (2, 6)),
    ),
    "SFPMUL": _cross(
        ALL, A_B, ({"lreg_src_c": 9, "lreg_dest": 4}, {"lreg_src_c": 9, "lreg_dest": 0})
    ),
    "SFPMULI": _cross((0, 2, 8, 10), _each("imm16_math", FLOATS16), _each("lreg_dest", (4, 1))),
    "SFPADDI": _cross((0, 2, 8, 10), _each("imm16_math", FLOATS16), _each("lreg_dest", (4, 1))),
    "SFPMUL24": _cross((0, 1, 4, 5, 8, 9, 12, 13), A_B, ({"lreg_src_c": 9, "lreg_dest": 2},)),
    "SFPDIVP2": _cross((0, 1), _each("imm12_math", (0, 1, 2, 0x7F, 0xF80, 0xFFF)), D_C),
    "SFPEXEXP": _cross((0, 1, 2, 3, 8, 9, 10, 11), D_C),
    "SFPEXMAN": _cross((0, 1), D_C),
    "SFPIADD": _cross((0, 2, 4, 6, 8, 10, 12, 14), D_C)
    | _cross((1, 3, 5, 7, 9, 11, 13, 15), _each("imm12_math", IMMEDIATES), D_C),
    "SFPSHFT": _cross((0, 2), D_C) | _cross((1, 3, 5, 7), _each("imm12_math", IMMEDIATES), D_C),
    "SFPAND": _cross((0,), D_C) | _cross((1,), D_C, _each("imm12_math", (1, 5, 13))),
    "SFPOR": _cross((0,), D_C) | _cross((1,), D_C, _each("imm12_math", (1, 5, 13))),
    "SFPXOR": _cross((-1,), D_C),
    "SFPNOT": _cross((-1,), D_C),
    "SFPABS": _cross((0, 1), D_C),
    "SFPLZ": _cross((0, 2, 4, 6, 8, 10, 12, 14), D_C),
    "SFPSETEXP": _cross((0, 2), D_C)
    | _cross((1, 3), D_C, _each("imm12_math", (0, 1, 127, 254, 255))),
    "SFPSETMAN": _cross((0,), D_C) | _cross((1,), D_C, _each("imm12_math", IMMEDIATES)),
    "SFPSETSGN": _cross((0,), D_C) | _cross((1,), D_C, _each("imm12_math", (0, 1))),
    "SFPCAST": _cross((0, 3), D_SRC),
    "SFP_STOCH_RND": _cross((1, 2, 3, 6, 7), D_SRC),
    "SFPSETCC": _cross((0, 2, 4, 6, *range(8, 16)), _each("lreg_c", (4, 1, 8, 9)))
    | _cross((1, 3, 5, 7), _each("imm12_math", (0, 1))),
    "SFPGT": _cross(ALL, D_C) | _cross((1, 3, 7), D_C, _each("lreg_dest", (3, 9, 11))),
    "SFPLE": _cross(ALL, D_C) | _cross((1, 3, 7), D_C, _each("lreg_dest", (3, 8, 10))),
    "SFPENCC": _cross((0, 1), ({},))
    | _cross((2, 3, 8, 9, 10, 11), _each("imm12_math", (0, 1, 2, 3))),
    "SFPPUSHC": _cross(ALL, ({}, {})),
    "SFPPOPC": _cross(ALL, ({}, {})),
    "SFPCOMPC": _cross((-1,), ({}, {})),
    "SFPSWAP": {
        mod: [
            *({"lreg_dest": 1, "lreg_src_c": 2, "lane_config": x} for x in (0, 0x100, 4, 0x104)),
            *({"lreg_dest": 1, "lreg_src_c": 2, "lane_config": x} for x in EXCHANGES),
            {"lreg_dest": 3, "lreg_src_c": 0},
            {"lreg_dest": 4, "lreg_src_c": 10},
            {"lreg_dest": 5, "lreg_src_c": 2, "lane_config": 4},
            {"lreg_dest": 1, "lreg_src_c": 13, "lane_config": 0x104},
        ]
        for mod in range(10)
    },
    "SFPLUT": _cross((0, 4, 8, 12), _each("lreg_ind", (3, 5))),
    "SFPLUTFP32": _cross((0, 2, 3, 4, 6, 7, 8, 10, 12, 14), _each("lreg_dest", (3, 6))),
    "SFPARECIP": _cross((0, *range(2, 16)), D_C) | _cross((1,), D_C, _each("imm12_math", (1, 13))),
    "SFPLOADI": _cross(
        (0, 1, 2, 4, 8, 10),
        _each("imm16", (*FLOATS16, 0x7BFF, 0x7C00, 0xFFFF)),
        _each("lreg_ind", (2,)),
    ),
    "SFPMOV": _cross((0, 1, 2, 3), D_C)
    | _cross((8, 9, 10, 11), _each("lreg_dest", (3,)), _each("lreg_c", (0, 3, 4, 7, 8, 9, 10, 15))),
    "SFPSHFT2": _cross((0, 1, 2, 3, 4), D_SRC)
    | _cross((5,), D_SRC, _each("imm12_math", (1, 5, 7)))
    | _cross((6,), D_SRC, _each("imm12_math", IMMEDIATES)),
}


def _prepared(s: State, rng: Generator, name: str, registers: Bits) -> State:
    """Registers as given; a third of the time every lane, else random flags or flags not used."""
    s.lreg[:8] = registers
    s.lreg[8:15] = np.array(CONSTANTS, np.uint32)[:, None]
    s.lreg[15] = [2 * i for i in range(32)]
    s.prng[:] = rng.integers(0, 1 << 32, 32)
    s.cc_en[0] = rng.random() < 0.8
    s.cc[:] = 1 if rng.random() < 0.4 else rng.integers(0, 2, 32)
    least = 1 if name == "SFPPUSHC" or name == "SFPPOPC" else 0
    s.cc_depth[0] = rng.integers(least, 8)
    s.cc_stack[:], s.cc_stack_en[:] = rng.integers(0, 2, (8, 32)), rng.integers(0, 2, 8)
    for register in (s.macro_template, s.macro_sequence):
        register[:] = rng.integers(0, 1 << 32, 4)
    s.macro_misc[0] = rng.integers(0, 1 << 12)
    return s


def _class(name: str) -> type[Instruction]:
    return next(c for c in instructions().values() if c.name == name)


def _mod_field(name: str) -> str:
    return next(f.name for f in _class(name).fields if f.name.startswith("instr_mod"))


def _agree(s: State, name: str, fields: Fields, operands: str) -> None:
    fields = dict(fields)
    s.lane_config[:] = fields.pop("lane_config", 0)
    unit = unit_of(snapshot(s), 0)
    cls = _class(name)
    unit.execute(name, **cls.operands(cls.assemble(**fields)))
    status = run(s, name, **fields)
    assert status == 0, f"{name} {fields}: {rule(status)}"
    assert differences(unit, s) == [], (name, fields, operands)


@pytest.mark.parametrize(("name", "mod"), [(n, m) for n, modes in CASES.items() for m in modes])
def test_values_agree_with_an_independent_reading(name: str, mod: int) -> None:
    rng = np.random.default_rng(zlib.crc32(f"{name}{mod}".encode()))
    s, mode = State(), {} if mod < 0 else {_mod_field(name): mod}
    for fields in CASES[name][mod]:
        for operands, registers in batches(rng, max(1, BATCHES // len(CASES[name][mod]))):
            _agree(_prepared(s, rng, name, registers), name, fields | mode, operands)


def _with_dst(s: State, rng: Generator, registers: Bits, fp32: int, srcb: int) -> State:
    """Dst of single-operand patterns around a random address, a tenth of the rows invalid."""
    _prepared(s, rng, "", registers)
    words = pick(rng, [draw(rng, 512) for draw in SINGLES.values()], 512)
    s.dst[:] = rng.choice(words >> 16 * rng.integers(0, 2, 512) & 0xFFFF, s.dst.shape)
    s.dst_valid[:] = rng.random(1024) < 0.9
    s.rwc[0, 2] = 2 * rng.integers(0, 512)
    s.thread_cfg[0, tf.DEST_TARGET_REG_CFG_MATH_Offset.word] = 512 * rng.integers(0, 2)
    fmt, enabled = cf.ALU_FORMAT_SPEC_REG1_SrcB, cf.ALU_ACC_CTRL_SFPU_Fp32_enabled
    s.cfg[0, fmt.word] = srcb << fmt.shift | fp32 << enabled.shift
    return s


@pytest.mark.parametrize(("name", "mods"), [
    ("SFPLOAD", (0, 1, 2, 3, 4, 6, 12, 14, 15)),
    ("SFPSTORE", (0, 1, 2, 3, 4, 6, 7, 9, 12, 14, 15)),
])  # fmt: skip
@pytest.mark.parametrize(("fp32", "srcb"), [(1, 5), *((0, f) for f in (*range(12), 14, 15))])
def test_loads_and_stores_agree_with_an_independent_reading(
    name: str, mods: tuple[int, ...], fp32: int, srcb: int
) -> None:
    s, rng = State(), np.random.default_rng(zlib.crc32(f"{name}{fp32}{srcb}".encode()))
    for mod in mods:
        for operands, registers in batches(rng, 1):
            s = _with_dst(s, rng, registers, fp32, srcb)
            fields = {"dest_reg_addr": 2 * int(rng.integers(0, 512))}
            fields["lreg_ind"] = int(rng.integers(0, 12))
            _agree(s, name, fields | {"instr_mod0": mod}, operands)
