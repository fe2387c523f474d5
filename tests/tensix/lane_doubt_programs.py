"""Random programs of the vector unit on two states that differ in doubtful lanes and cells only."""

import random
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from macro_runner import Thread
from sfpu_runner import fresh, operand

from bhemu.memmap import RISCV_DEBUG_REG_DBG_FEATURE_DISABLE
from bhemu.tensix import dest, unspecified
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.state import OFFSET, State

LANES, ROWS = 32, 96
_VECTOR = [
    cls
    for _, cls in sorted(instructions().items())
    if cls.unit == "vector" and cls.execute is not None
]
_FLAGS = ("SFPSETCC", "SFPENCC", "SFPPUSHC", "SFPPOPC", "SFPCOMPC", "SFPLE", "SFPGT")
_SAME = ("cc_en", "cc_depth", "cc_stack_en", "lane_config", "macro_template", "macro_sequence")
_SAME += ("macro_misc", "macro_slot", "route", "stage_used", "rwc", "doubt", "lane_doubt")
_FROM = OFFSET["cfg"]  # behind L1 and the cores' memories
Array = npt.NDArray[np.generic]


def marked(cell: int) -> npt.NDArray[np.bool_]:
    """Lanes with a mark, of a cell of `s.lane_doubt`."""
    return np.array([(cell | cell >> 32) >> lane & 1 for lane in range(LANES)], bool)


def columns(s: State) -> npt.NDArray[np.bool_]:
    """(1024, 16): datums of Dst in doubt."""
    mask = np.where(s.dst_valid & unspecified.DOUBT, s.dst_doubt, 0).astype(np.int64)
    return ((mask | mask >> 16)[:, None] >> np.arange(16) & 1).astype(bool)


def _marks(rng: random.Random, density: float) -> int:
    bits = sum(1 << i for i in range(64) if rng.random() < density)
    return bits - (bits >> 63 << 64)


def _unit(rng: random.Random, macro: bool) -> State:
    """A vector unit with marks in places, its flags and settings random."""
    s = fresh(rng.getrandbits(16), rng.choice(("all", "unused", "some", "some")))
    s.reference[0] = rng.getrandbits(1)
    s.debug[RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2] = rng.choice((0, 0, dest.HALVES))
    s.lreg[7] = [rng.randrange(16) for _ in range(LANES)]
    s.lane_config[:] = rng.choice((0, 0, 4, 256, 260))
    s.cc_depth[0] = rng.randrange(4)
    s.cc_stack_en[:] = [rng.getrandbits(1) for _ in range(8)]
    s.cc_stack[:] = [[rng.getrandbits(1) for _ in range(LANES)] for _ in range(8)]
    density = rng.choice((0.0, 0.02, 0.1))
    cells = [*range(8), 11, 12, *(() if macro else (unspecified.RANDOM,))]
    if not macro and rng.random() < 0.5:
        depth = int(s.cc_depth[0])
        cells += [unspecified.FLAGS, *range(unspecified.STACK, unspecified.STACK + depth)]
    for cell in cells:
        s.lane_doubt[cell] = _marks(rng, density)
    s.doubt[:] = 1, 0, 1 if s.lane_doubt.any() else 0
    if macro:
        s.macro_misc[0] = rng.getrandbits(12) & (0xFFF if rng.getrandbits(1) else 0xF0)
        s.macro_template[:] = [_template(rng) for _ in range(4)]
        s.macro_sequence[:] = [_sequence(rng) for _ in range(4)]
    return s


def _sequence(rng: random.Random) -> int:
    parts = []
    for unit in range(4):
        select = rng.choice((0, 0, 3) if unit == 3 else (0, 2, 4, 5, 6, 7))
        parts.append(select | rng.randrange(4) << 3 | rng.randrange(4) << 6)
    return int.from_bytes(bytes(parts), "little")


def _template(rng: random.Random) -> int:
    cls = rng.choice([one for one in _VECTOR if one.name not in (*_FLAGS, "SFPLOADMACRO")])
    return word_of(rng, cls)


def _rows(s: State, rng: random.Random) -> None:
    for row in range(ROWS):
        s.dst_valid[row] = rng.choice((1, 1, 1, 1, 1, 1, 0, dest.UNWRITTEN, 1 | dest.REORDERED))
        if rng.random() < 0.3 and (s.dst_valid[row] or not row & dest.LOW_HALF):
            s.dst_doubt[row] = rng.getrandbits(32) & rng.getrandbits(32)
            s.dst_valid[row] |= unspecified.DOUBT if s.dst_valid[row] else 0


def _differ(s: State, rng: random.Random) -> None:
    """Other contents wherever there is a mark."""
    for cell in range(17):
        row = s.lreg16[0] if cell == 16 else s.lreg[cell]
        for lane in np.flatnonzero(marked(int(s.lane_doubt[cell]))):
            row[lane] = rng.randrange(16) if cell == 7 and rng.random() < 0.5 else operand(rng)
    cells = [s.cc, *s.cc_stack]
    for i, flags in enumerate(cells):
        for lane in np.flatnonzero(marked(int(s.lane_doubt[unspecified.FLAGS + i]))):
            flags[lane] = rng.getrandbits(1)
    for lane in np.flatnonzero(marked(int(s.lane_doubt[unspecified.RANDOM]))):
        s.prng[lane] = rng.getrandbits(32)
    for row in range(ROWS):
        mask = int(s.dst_doubt[row])
        for column in range(16):
            if (mask | mask >> 16) >> column & 1:
                s.dst[row, column] = rng.getrandbits(16)


def pair(seed: int, macro: bool) -> tuple[State, State]:
    """Two states: the same but for what is in doubt."""
    rng = random.Random(seed)
    s = _unit(rng, macro)
    _rows(s, rng)
    other = State()
    other.buffer[:] = s.buffer
    other.host[0] = other.base
    _differ(other, rng)
    return s, other


def word_of(rng: random.Random, cls: type[Instruction]) -> int:
    """A word whose fields are mostly in their bounds."""
    values = {}
    for field in cls.fields:
        value = rng.randrange(field.max + 1)
        if field.name.startswith("lreg"):
            value = rng.randrange(8 if rng.random() < 0.85 else 16) & field.max
        elif field.name == "dest_reg_addr":
            value = 2 * rng.randrange(24)
        elif field.name == "sfpu_addr_mode" or (field.name[:3] == "imm" and rng.getrandbits(1)):
            value = 0
        elif field.name == "imm12_math" and rng.getrandbits(1):
            value = rng.randrange(8) & field.max
        values[field.name] = value
    if cls.name == "SFPADD":
        values["lreg_src_a"] = 10
    if cls.name in ("SFPMUL", "SFPMUL24"):
        values["lreg_src_c"] = 9
    if cls.name == "SFP_STOCH_RND":
        values["rnd_mode"] = rng.randrange(3)
        values["imm8_math"] = 0 if rng.getrandbits(1) else values["imm8_math"]
    if cls.name in (*_FLAGS[:5], "SFPTRANSP"):
        values["lreg_dest"] = 0
    return cls.assemble(**values)


def words(seed: int, macro: bool) -> Iterator[int]:
    """Random words of the vector unit, without an end."""
    rng = random.Random(seed)
    by_name = {cls.name: cls for cls in _VECTOR}
    often = ["SFPLOAD", "SFPSTORE", "SFPSWAP", "SFPMOV"] + (["SFPLOADMACRO"] * 12 if macro else [])
    while True:
        if rng.random() < 0.25:
            cls = by_name[rng.choice(often)]
        else:
            cls = rng.choice(_VECTOR)
        if macro or cls.name != "SFPLOADMACRO":
            yield word_of(rng, cls)


def differences(a: State, b: State) -> list[str]:
    """What two such states may not differ in, and do."""
    found = [name for name in _SAME if not np.array_equal(getattr(a, name), getattr(b, name))]
    for reg in range(17):
        x, y = (s.lreg16[0] if reg == 16 else s.lreg[reg] for s in (a, b))
        if ((x != y) & ~marked(int(a.lane_doubt[reg]))).any():
            found.append(f"lreg {reg}")
    flags = [(a.cc, b.cc), *zip(a.cc_stack, b.cc_stack, strict=True)][: 1 + int(a.cc_depth[0])]
    for i, (x, y) in enumerate([*flags]):
        if ((x != y) & ~marked(int(a.lane_doubt[unspecified.FLAGS + i]))).any():
            found.append(f"flags {i}")
    if ((a.prng != b.prng) & ~marked(int(a.lane_doubt[unspecified.RANDOM]))).any():
        found.append("prng")
    if not np.array_equal(a.dst_valid, b.dst_valid):
        found.append("dst_valid")
    if not np.array_equal(columns(a), columns(b)):
        found.append("doubt of Dst")
    shown = (a.dst_valid & 1).astype(bool)[:, None]
    if ((a.dst != b.dst) & shown & ~columns(a)).any():
        found.append("dst")
    return found


class Pair:
    """Both states, each with a thread."""

    def __init__(self, seed: int, macro: bool = False) -> None:
        self.states = pair(seed, macro)
        self._threads = [Thread(s) for s in self.states]

    def run(self, word: int) -> tuple[int, ...]:
        """Status of the word on each; a refused one leaves nothing."""
        before = [s.buffer[_FROM:].copy() for s in self.states]
        status = tuple(thread.push([word]) for thread in self._threads)
        if any(status):
            for s, kept in zip(self.states, before, strict=True):
                s.buffer[_FROM:] = kept
        return status

    def forget(self) -> None:
        """Nothing is scheduled and no write under way any more."""
        for s in self.states:
            s.macro_slot[:] = s.stage_used[:] = s.route[:] = s.stage_doubt[:] = 0
            s.macro_last[:] = 0
            s.doubt[2] = 1 if s.lane_doubt.any() else 0

    def idle(self) -> tuple[int, ...]:
        """Time passes."""
        return tuple(int(thread.idle()) for thread in self._threads)
