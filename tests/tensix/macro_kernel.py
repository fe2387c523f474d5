"""A kernel of the vector unit as data: macros, words of one face, and what it computes.

`macro` are the words with SFPLOADMACRO in the order of the production kernel, `plain` those that do
the same one instruction at a time.  Address section 6 moves Dst on by one load, 7 does not.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from macro_runner import Thread
from matrix_reference import rule
from sfpu_runner import CONSTANTS
from unit_runner import run

from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State

NOP = assemble("SFPNOP")
ROWS, FACE, TILE = 8, 16, 64  # loads of a face, and how far faces and tiles lie apart
ONE_LOAD, STEP, HOLD = 2, 6, 7
FP32, BF16, INT32, UINT16, LO16_ONLY, LO16 = 3, 2, 4, 6, 14, 9  # modes of loads and stores
NEXT_FACE = [assemble("SETRWC", rwc_cr=4, rwc_d=8, bit_mask=4)] * 2
LLK, SILICON = 1, 2

Rows = np.ndarray[tuple[int, ...], np.dtype[np.uint32]]


def load(reg: int, mode: int = 0, at: int = 0, *, step: bool = False, name: str = "SFPLOAD") -> int:
    fields = {"lreg_ind": reg, "instr_mod0": mode, "dest_reg_addr": at & 0x3FF}
    return assemble(name, sfpu_addr_mode=STEP if step else HOLD, **fields)


def store(reg: int, mode: int = 0, at: int = 0, *, step: bool = True) -> int:
    return load(reg, mode, at, step=step, name="SFPSTORE")


def macro(index: int, reg: int, mode: int = 0, at: int = 0, *, step: bool = False) -> int:
    ind, at = index << 2 | reg & 3, at & 0x3FF | reg >> 2
    return load(ind, mode, at, step=step, name="SFPLOADMACRO")


def mad(a: int, b: int, c: int, d: int, mod: int = 0) -> int:
    return assemble("SFPMAD", lreg_src_a=a, lreg_src_b=b, lreg_src_c=c, lreg_dest=d, instr_mod1=mod)


def unary(name: str, c: int, d: int, mod: int = 0, imm: int = 0) -> int:
    """Instructions with the fields lreg_c, lreg_dest, instr_mod1 and, if not 0, the immediate."""
    source = (
        "lreg_src_c" if name in ("SFPSWAP", "SFPCAST", "SFPSHFT2", "SFP_STOCH_RND") else "lreg_c"
    )
    more = {"imm12_math": imm & 0xFFF} if imm else {}
    return assemble(name, lreg_dest=d, instr_mod1=mod, **{source: c}, **more)


def constant(reg: int, value: int, mode: int) -> int:
    return assemble("SFPLOADI", lreg_ind=reg, imm16=value, instr_mod0=mode)


def sequence(simple: int = 0, mad: int = 0, rounding: int = 0, store: int = 0) -> int:
    """Bytes as the ISA text lays them out: 0x80 VB, 0x40 LReg[16], delay << 3, choice."""
    return simple | mad << 8 | rounding << 16 | store << 24


@dataclass(frozen=True)
class Kernel:
    """Templates 4 to 7, sequences, Misc; the words of face `i`, and the data.

    `inputs` are the kinds of values in each tile, `mode` how they are stored, `result` the mode
    and tile that are read.  `wide`: 32-bit Dst.  `want` computes the result from the inputs (None:
    only `plain` tells); where `close`, the relative error that it may have, is not 0, as numbers.
    `positive`: negative results stand for 0.
    """

    templates: list[int]
    sequences: list[int]
    misc: int
    macro: list[int]
    plain: list[int]
    inputs: tuple[str, ...]
    mode: int
    result: tuple[int, int]
    wide: bool
    want: Callable[..., np.ndarray] | None = None  # type: ignore[type-arg]
    close: float = 0.0
    lreg: dict[int, int] = field(default_factory=dict)
    reference: int = 0
    ub: int = 0
    positive: bool = False


def values(kind: str, n: int, seed: int) -> Rows:
    """`n` operands of a kind, its corners first."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, n) << 31
    if kind == "exp":
        x = rng.uniform(-88, 0.7, n).astype(np.float32)
        x[:8] = [-10000, -88.5, -89, -np.inf, 0, 0.7, -1, -3e38]
        return x.view(np.uint32)
    if kind == "uint16":
        x = rng.integers(0, 1 << 16, n)
        x[:4] = [0, 1, 0xFFFF, 0x8000]
    elif kind == "int32":
        x = rng.integers(0, 1 << 32, n) >> rng.integers(0, 32, n) | signs
        x[:6] = [0, 1, 1 << 31, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000001]
    elif kind == "flag":
        x = rng.integers(0, 2, n) * (signs | 0x3F800000)
    else:
        x = signs | rng.integers(*((120, 144) if kind == "count" else (100, 150)), n) << 23
        x |= rng.integers(0, 1 << 23, n)
        x[:4] = [0x3F800000, 0xC0000000, 0x3F808000, 0x3F818000]
    return x.astype(np.uint32)


def data(kernel: Kernel, faces: int) -> list[Rows]:
    """The operands, one array (faces, 8 loads, 32 lanes) per tile."""
    found = []
    for tile, kind in enumerate(kernel.inputs):
        x = values(kind, faces * ROWS * 32, 7 + tile).reshape(faces, ROWS, 32)
        found.append(x & np.uint32(0xFFFF0000) if kernel.mode == BF16 else x)
    return found


def prepared(kernel: Kernel, operands: list[Rows], reference: int = 0) -> State:
    s = State()
    for i, bits in enumerate(CONSTANTS):
        s.lreg[8 + i] = bits
    for reg, bits in kernel.lreg.items():
        s.lreg[reg] = bits
    s.dst_valid[:] = s.cc_en[:] = s.cc[:] = 1
    s.cfg[:, 1] = int(kernel.wide) << 30 | 5 << 21  # SFPU_Fp32_enabled, SrcB bf16
    s.thread_cfg[1, 28 + STEP] = ONE_LOAD
    s.macro_template[: len(kernel.templates)] = kernel.templates
    s.macro_sequence[: len(kernel.sequences)] = kernel.sequences
    s.macro_misc[0] = kernel.misc
    s.reference[0], s.ub_mode[0] = reference or kernel.reference, kernel.ub
    for tile, faces in enumerate(operands):
        for face, rows in enumerate(faces):
            for row, lanes in enumerate(rows):
                at = TILE * tile + FACE * face + ONE_LOAD * row
                move(s, "SFPSTORE", kernel.mode, at, lanes)
    return s


def move(s: State, name: str, mode: int, at: int, lanes: Rows | None = None) -> Rows:
    """Store the lanes, or load and return them, leaving the registers as they were."""
    kept = s.lreg[0].copy()
    if lanes is not None:
        s.lreg[0] = lanes
    at_row = {"dest_reg_addr": at, "sfpu_addr_mode": HOLD}
    assert run(s, name, 1, lreg_ind=0, instr_mod0=mode, **at_row) == 0
    found = s.lreg[0].copy()
    s.lreg[0] = kept
    return np.asarray(found, np.uint32)


def executed(s: State, words: list[int]) -> None:
    thread = Thread(s)
    status = thread.push(words) or thread.idle()
    assert status == 0, rule(status)
    assert s.route[0] == 0


def result(s: State, mode: int, tile: int, faces: int) -> Rows:
    """What tile `tile` holds, (faces, 8 loads, 32 lanes)."""
    s.rwc[:] = 0
    places = [[TILE * tile + FACE * f + ONE_LOAD * r for r in range(ROWS)] for f in range(faces)]
    return np.array([[move(s, "SFPLOAD", mode, at) for at in rows] for rows in places])


def computed(kernel: Kernel, words: list[int], operands: list[Rows], reference: int = 0) -> Rows:
    """Run the words once per face, and read the result."""
    faces = len(operands[0])
    s = prepared(kernel, operands, reference)
    executed(s, (words + NEXT_FACE) * faces)
    mode, tile = kernel.result
    return result(s, mode, tile, faces)
