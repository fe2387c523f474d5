"""Lanes of the vector unit: enable mask, masked writes, random bits, unspecified values."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.bits import Word
from bhemu.jit.subset import JIT, Compiled, njit
from bhemu.tensix import spaces, unspecified
from bhemu.tensix.rules import DONE, MISSING, NCB, UB, UNSUPPORTED, error, note_rule, refuse
from bhemu.tensix.spaces import Clause, Term

if TYPE_CHECKING:
    from bhemu.tensix.insn import Instruction

# Writes to LRegs that become visible only at the end of a cycle of the vector unit.
#
# Outside macros an instruction writes its register at once.  While SFPLOADMACRO has instructions
# scheduled, up to five sub-units work in one cycle: all of them read what the cycle began with,
# and what they write waits here, one cycle longer for instructions that take two.  Source:
# SFPLOADMACRO, VectorUnit, Blackhole ISA.

LANES = 32
ENTRIES = 32  # 8 registers of SFPTRANSP, 8 of an indirect SFPMAD, SFPSWAP, the last cycle's rest
BONUS = 16  # LReg[16], which only scheduled instructions reach

_STAGING_ZERO = np.uint32(0)

_PORT = error("VECTOR-MACRO-PORT", UNSUPPORTED, "two instructions write LReg[{reg}] in the same cycle, and the ISA text gives no order", "change a delay in the sequence, or let one of them write LReg[16]")  # fmt: skip


@njit
def _stage(s: Any, reg: Any, new: Any, flags: Any, on: Any) -> None:
    """Stage the row `new` for LReg[reg], in the lanes whose flag is not 0, or in all (`on` 1)."""
    k = s.stage_used[0] & (ENTRIES - 1)
    value, mask = s.stage_value[k], s.stage_mask[k]
    for lane in range(LANES):
        value[lane] = new[lane]
        mask[lane] = np.uint32(flags[lane] | on)
    s.stage_reg[k] = reg
    s.stage_left[k] = s.stage_latency[0]
    unspecified.staged(s, k, reg)
    s.stage_used[0] += 1


@njit
def overlap(s: Any, i: Any, j: Any) -> Any:
    """True when two entries write, or may write, the same lane of the same register."""
    if s.stage_reg[i] != s.stage_reg[j]:
        return False
    if s.doubt[2]:
        return unspecified.staged_lanes(s, i) & unspecified.staged_lanes(s, j) != 0
    both, x, y = _STAGING_ZERO, s.stage_mask[i], s.stage_mask[j]
    for lane in range(LANES):
        both |= np.uint32(x[lane] & y[lane])
    return both != _STAGING_ZERO


@njit
def yield_to(s: Any, k: Any, winner: Any) -> None:
    """Entry `k` leaves the lanes that `winner` writes to it."""
    for lane in range(LANES):
        s.stage_mask[k, lane] &= ~s.stage_mask[winner, lane]
    if s.doubt[2]:
        unspecified.yield_to(s, k, winner)


@njit
def end_cycle(s: Any) -> Any:
    """Write what is complete; DONE, or the error of two writes to one register."""
    used, kept = s.stage_used[0], np.int64(0)
    for k in range(used):
        s.stage_left[k] -= 1
    for k in range(used):
        for j in range(k):
            if s.stage_left[k] == 0 and s.stage_left[j] == 0 and overlap(s, j, k):
                return refuse(s, _PORT, reg=s.stage_reg[k])
    for k in range(used):
        if s.stage_left[k] == 0:
            reg = s.stage_reg[k]
            out = s.lreg16[0] if reg == BONUS else s.lreg[reg & 15]
            value, mask = s.stage_value[k], s.stage_mask[k]
            for lane in range(LANES):
                out[lane] = value[lane] if mask[lane] != _STAGING_ZERO else out[lane]
            if s.doubt[2]:
                unspecified.apply(s, k, reg)
    for k in range(used):
        if s.stage_left[k] > 0:
            if k != kept:
                s.stage_reg[kept], s.stage_left[kept] = s.stage_reg[k], s.stage_left[k]
                s.stage_doubt[kept] = s.stage_doubt[k]
                for lane in range(LANES):
                    s.stage_value[kept, lane] = s.stage_value[k, lane]
                    s.stage_mask[kept, lane] = s.stage_mask[k, lane]
            kept += 1
    s.stage_used[0] = kept
    if s.doubt[2]:
        unspecified.look(s)
    return DONE


# Lanes of the vector unit: enable mask, masked register and flag writes, LOADMACRO templates.
#
# An instruction computes into scratch rows of the state, `s.lane_tmp[VALUE]` and
# `s.lane_tmp[FLAG]`, and then writes them under the mask: a loop whose output may be one of its
# inputs is not vectorised.  All of this is (32,) uint32, lane by lane.  Source: VectorUnit,
# Blackhole ISA; vector instructions in ttsim's Tensix model.

VALUE, FLAG = 0, 1  # scratch rows that `write` and `write_flags` take
GO = 1 << 30  # from `claim`: no status, the instruction executes

WRITABLE = 8  # LReg 0-7
TEMPLATES = 12  # VD 12-15 names LOADMACRO template 0-3
ENABLE_DEST_INDEX = 1 << 2  # LaneConfig
EXCHANGE_SRCB_SRCC = 1 << 8

NOT_WRITABLE = error("VECTOR-DEST", UNSUPPORTED, "LReg[{dest}] is a constant: this instruction writes only LReg[0] to LReg[7]", "constants 11 to 14 are set by SFPCONFIG")  # fmt: skip
DEST_NOT_ZERO = error("VECTOR-DEST-ZERO", UNSUPPORTED, "lreg_dest is {dest}, but this instruction has no destination", "leave lreg_dest 0")  # fmt: skip
TEMPLATE_LANES = error("VECTOR-TEMPLATE-LANES", UNSUPPORTED, "VD {dest} stores the instruction as a LOADMACRO template while some lanes are disabled", "enable all lanes first (SFPENCC)")  # fmt: skip
TEMPLATE_LOAD = error("VECTOR-TEMPLATE-LOAD", UNSUPPORTED, "VD {dest} stores a load or store as a LOADMACRO template, which has no model", "name LReg[0] to LReg[11]")  # fmt: skip
DEST_INDEX = error("TEN-2932", UNSUPPORTED, "LReg[{dest}] is corrupted when written with LaneConfig.ENABLE_DEST_INDEX set", "clear bit 2 of LaneConfig with SFPCONFIG first, or write LReg[0] to LReg[3]")  # fmt: skip
MODE_RESERVED = error("VECTOR-MODE-RESERVED", NCB, "mode {mode} ({mode:#x}) sets a bit this instruction reserves")  # fmt: skip
MODE_UNDEFINED = error("VECTOR-MODE-UNDEFINED", UB, "mode {mode} ({mode:#x}) is undefined for this instruction")  # fmt: skip
MODE_UNNAMED = error("VECTOR-MODE", MISSING, "mode {mode} ({mode:#x}) sets a bit to which the ISA text gives no meaning for this instruction")  # fmt: skip
IMMEDIATE = error("VECTOR-IMMEDIATE", UNSUPPORTED, "immediate {immediate:#x} has no meaning in mode {mode}", "leave the immediate 0")  # fmt: skip

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)


@njit(inline="always")
def unmasked(s: Any) -> Any:
    """uint32 1 when condition codes are not in use, so that every lane is enabled; else 0."""
    return _ZERO if s.cc_en[0] else _ONE


@njit(inline="always")
def order(x: Any) -> Any:
    """int32 that orders fp32 patterns from -NaN over -Inf, -0, +0 and +Inf to +NaN."""
    return np.int32(_U(x ^ _U(0x7FFFFFFF))) if _U(x >> _U(31)) != _ZERO else np.int32(x)


@njit(inline="always")
def leading_zeros(x: Any) -> Any:
    """Zeros above the highest set bit, 32 for 0, from the exponent of a float32."""
    half = _U(x >> _ONE)
    # With the bit below the leading one cleared the conversion cannot round up.
    leading = np.float32(_I(half & _U(~_U(half >> _ONE))))
    length = max(_I(_I(leading.view(np.int32) >> _I(23)) - _I(126)), _I(0))
    return _U(_I(_I(31) - length)) if x != _ZERO else _U(32)


@njit(inline="always")
def enabled(s: Any, lane: Any) -> Any:
    """True when the lane is enabled (IsLaneEnabled)."""
    return s.cc_en[0] == 0 or s.cc[lane] != _ZERO


@njit(inline="always")
def chosen(flag: Any, value: Any, old: Any) -> Any:
    """`value` where `flag` is 1, `old` where it is 0.

    With bit masks: a branch would compile to a masked store, and the next load would wait for it.
    """
    mask = _U(-np.int32(flag))  # without the overflow of unsigned numbers
    return _U(_U(value & mask) | _U(old & _U(~mask)))


@njit
def write(s: Any, dest: Any) -> Any:
    """LReg[dest] = s.lane_tmp[VALUE] in the enabled lanes; `dest` 0-15."""
    if s.stage_latency[0]:
        _stage(s, target(s, dest), s.lane_tmp[VALUE], s.cc, unmasked(s))
        return DONE
    out, new, flags, on = s.lreg[dest & 15], s.lane_tmp[VALUE], s.cc, unmasked(s)
    for lane in range(LANES):
        out[lane] = chosen(_U(flags[lane] | on), new[lane], out[lane])
    return DONE


@njit
def write_where(s: Any, dest: Any, row: Any) -> None:
    """LReg[dest] = scratch row `row` where s.lane_tmp[FLAG] is not 0, whatever is enabled."""
    new, flag = s.lane_tmp[row], s.lane_tmp[FLAG]
    if s.stage_latency[0]:
        _stage(s, dest, new, flag, _ZERO)
        return
    out = s.lreg[dest & 15]
    for lane in range(LANES):
        out[lane] = chosen(flag[lane], new[lane], out[lane])


@njit(inline="always")
def target(s: Any, dest: Any) -> Any:
    """LReg that a word with the destination field `dest` writes: SFPLOADMACRO may replace it."""
    return s.macro_dest[0] - 1 if s.macro_dest[0] else dest


@njit
def write_flags(s: Any) -> None:
    """Condition codes = s.lane_tmp[FLAG] (0 or 1) in the enabled lanes."""
    flags, new, on = s.cc, s.lane_tmp[FLAG], unmasked(s)
    for lane in range(LANES):
        old = flags[lane]
        flags[lane] = chosen(_U(old | on), new[lane], old)


@njit
def write_result_flags(s: Any, dest: Any) -> None:
    """As `write_flags`, unless the result goes to LReg[16], which leaves the flags alone."""
    if target(s, dest) != BONUS:
        write_flags(s)


@njit
def complement_flags(s: Any) -> None:
    """s.lane_tmp[FLAG] = the complement of the condition codes."""
    flag, flags = s.lane_tmp[FLAG], s.cc
    for lane in range(LANES):
        flag[lane] = flags[lane] ^ _ONE


@njit
def set_flags(s: Any, value: Any) -> None:
    """Condition codes = `value` (0 or 1) in all lanes, enabled or not."""
    s.cc[:] = _U(value)


@njit
def _template(s: Any, t: Any, dest: Any) -> Any:
    flags = unmasked(s)
    if flags == _ZERO:
        flags = _ONE
        for lane in range(LANES):
            flags &= s.cc[lane]
    if flags == _ZERO:
        return refuse(s, TEMPLATE_LANES, dest=dest)
    s.macro_template[dest - TEMPLATES] = s.gate_word[t]
    return DONE


@njit
def claim(s: Any, t: Any, dest: Any) -> Any:
    """GO when LReg[dest] may be written, else the status of the instruction.

    VD 12-15 stores the word at the gate as a LOADMACRO template instead of executing it; that is
    complete and returns DONE.  8-11 are constants.
    """
    dest = target(s, dest)
    if dest < 4 or dest == BONUS:
        return GO
    if dest >= TEMPLATES:
        return _template(s, t, dest)
    if dest >= WRITABLE:
        return refuse(s, NOT_WRITABLE, dest=dest)
    if s.lane_config[0] & _U(ENABLE_DEST_INDEX):
        return refuse(s, DEST_INDEX, dest=dest)
    return GO


@njit
def claim_mode(s: Any, t: Any, f: Any, reserved: Any, unnamed: Any) -> Any:
    """As `claim`, of lreg_dest; also refuses modes with a bit of `reserved` or `unnamed`."""
    status = claim(s, t, f.lreg_dest)
    if status != GO:
        return status
    if f.instr_mod1 & reserved:
        return refuse(s, MODE_RESERVED, mode=f.instr_mod1)
    return refuse(s, MODE_UNNAMED, mode=f.instr_mod1) if f.instr_mod1 & unnamed else GO


@njit
def claim_none(s: Any, t: Any, dest: Any) -> Any:
    """As `claim`, for instructions whose lreg_dest field must be 0 unless it names a template."""
    if dest == 0 or s.macro_dest[0]:
        return GO
    if dest >= TEMPLATES:
        return _template(s, t, dest)
    return refuse(s, DEST_NOT_ZERO, dest=dest)


# The pseudo-random generator of the vector unit's lanes (SFPMOV, Blackhole ISA).


@njit
def next_random(state: Any) -> Any:
    """Next state of one lane's 32-bit shift register; `state` and result are int64."""
    taps = state & 0x80200003
    taps ^= taps >> 16
    taps ^= taps >> 8
    taps ^= taps >> 4
    taps ^= taps >> 2
    taps ^= taps >> 1
    return (state >> 1) | ((1 - (taps & 1)) << 31)


@njit
def seed_random(s: Any, value: Any) -> None:
    """Reseed all lanes: 32 steps, then two steps per lane, lane 31 first."""
    state = np.int64(value)
    for _ in range(32):
        state = next_random(state)
    if s.doubt[2]:
        unspecified.put(s, np.int64(unspecified.RANDOM), np.int64(0))
    for i in range(32):
        state = next_random(next_random(state))
        s.prng[31 - i] = np.uint32(state)


# Stochastic rounding of the matrix unit and the packer, whose random bits no source describes.
#
# It is refused unless `Tile(stochastic=...)` chooses a model: rounding up wherever a bit is lost,
# down everywhere (both for the tests of kernels), or by a shift register of each unit.  That is
# the register of a lane of the vector unit and steps once for each result; the comparison is the
# vector unit's too: up when the lost bits, as a fraction of 23 bits, reach 23 random ones, so that
# an exact result grows now and then.  Power-up starts the registers from the given seed, a write
# of PRNG_SEED from what is written.  Such code notes the rule: none of this is bit-exact.
# Source: SFPSTOCHRND_FloatFloat and FormatConversion, ISA, for what they say of vector unit and
# packer.

REFUSED, UP, DOWN, RANDOM = range(4)  # s.stochastic
FPU, EARLY, LATE, STARTED = range(4)  # generators: sums, early conversion, bfp; a flag
_BITS = 23

_MODELLED = error("STOCHASTIC-MODELLED", UNSUPPORTED, "stochastic rounding was modelled, not bit-exact (Tile(stochastic=...))", "no source says which random bits the matrix unit and the packer take")  # fmt: skip


@njit
def start_rounding(s: Any, value: Any) -> None:
    """Start the generators from a seed, as those of the vector unit are started."""
    state = np.int64(value) & 0xFFFFFFFF
    for _ in range(32):
        state = next_random(state)
    s.stochastic_state[STARTED] = 1
    for unit in range(STARTED):
        state = next_random(next_random(state))
        s.stochastic_state[unit] = np.uint32(state)


@njit
def rounding_modelled(s: Any) -> Any:
    """True, and noted, when stochastic rounding goes by a model."""
    if s.stochastic[0] == REFUSED:
        return False
    if s.stochastic_state[STARTED] == 0:
        start_rounding(s, s.stochastic_seed[0])
    note_rule(s, _MODELLED)
    return True


@njit
def rounds_up(s: Any, unit: Any, low: Any, bits: Any) -> Any:
    """1 when a magnitude that loses its `bits` (up to 23) lowest bits, `low`, is rounded up."""
    mode = s.stochastic[0]
    if mode != RANDOM:
        return np.int64(1 if mode == UP and low else 0)
    state = np.int64(s.stochastic_state[unit])
    s.stochastic_state[unit] = np.uint32(next_random(state))
    random = state & ((1 << _BITS) - 1)
    return np.int64(1 if low << (_BITS - bits) >= random else 0)


# Marks of unspecified lanes: a word writes those of all that it is declared to read.
#
# Each class of the vector unit declares what it reads and writes (spaces.py).  From that `declared`
# makes the `doubts` of the class: the cells of unspecified.py that a word reads and those that it
# writes, as bits of two numbers, and `move` with both, which is compiled once and where it is
# needed.

# Bits besides those of cells: the LRegs that LReg[7] names lane by lane; that only enabled lanes
# take part; the depth of the stack.
NAMED, ENABLED, DEPTH = 27, 28, 29
_INDEX, _NAMED_BITS = 7, 15  # LReg[7], and its bits that name a register

_OF_SPACE = {
    spaces.CC: 1 << unspecified.FLAGS,
    spaces.STACK: 1 << unspecified.STACK,
    spaces.RANDOM: 1 << unspecified.RANDOM,
    spaces.LANES: 1 << ENABLED,
    spaces.DEPTH: 1 << DEPTH,
}


def _bits(term: Term, destinations: tuple[str, ...]) -> str:
    """An expression of the bits of a term; its variables are the fields of the word."""
    if term.own:
        return ""
    if term.space == spaces.LREG and term.place:
        place = f"target(s, {term.place})" if term.place in destinations else term.place
        found = f"({(1 << int(term.length)) - 1} << ({place}))"
    elif term.space == spaces.LREG:
        found = str(1 << NAMED)
    else:
        found = str(_OF_SPACE.get(Clause((term._replace(when=""),)), ""))
    return f"({found} if {term.when} else 0)" if found and term.when else found


class Cells(Word):
    """The cells that a word writes, as bits."""


def declared(cls: type["Instruction"], move: Any) -> Any:
    """`doubts(s, t, f)` of a class: as its declaration says, or its `moves`; `move`: as below."""
    fields, moves = tuple(f.name for f in cls.fields), cls.moves
    kept = (term._replace(when=term.keeps, keeps="") for term in cls.writes if term.keeps)
    read = [_bits(term, ()) for term in (*cls.reads, *kept)]
    written = [_bits(term, fields) for term in cls.writes]
    lines = [f"{name} = f.{name}" for name in fields]
    if "lreg_dest" in fields:  # a word that is stored instead of executed
        lines.append(f"if {TEMPLATES} <= target(s, lreg_dest) < {BONUS}: return open_refused(s)")
    parts = (f"int64({' | '.join(filter(None, one)) or 0})" for one in (read, written))
    lines.append("return moves(s, t, f)" if moves else f"return move(s, {', '.join(parts)})")
    names = {"target": target, "move": move, "moves": njit(moves) if moves else None}
    names |= {"open_refused": unspecified.open_refused, "int64": np.int64}
    text = f"def {cls.name}_doubts(s, t, f):\n    " + "\n    ".join(lines)

    def generate() -> Any:
        exec(compile(text, __file__, "exec"), names)
        return names[f"{cls.name}_doubts"]

    return Compiled.generated(generate, {}) if JIT else generate()


@njit
def merged(old: Any, marks: Any, here: Any, perhaps: Any) -> Any:
    """Marks of a cell after `marks` were written to the lanes `here` and maybe to `perhaps`."""
    return (old & ~here) | (marks & (here | perhaps))


@njit
def write_marks(s: Any, reg: Any, marks: Any, here: Any, perhaps: Any) -> None:
    """LReg[reg] takes `marks` in the lanes `here`, and maybe in `perhaps`; constants stay."""
    if reg < WRITABLE or reg == BONUS:
        old = unspecified.of(s, unspecified.of_lreg(reg))
        unspecified.write(s, reg, here | perhaps, merged(old, marks, here, perhaps))


@njit
def mark(s: Any, reg: Any, marks: Any) -> None:
    """Something with `marks` is written to LReg[reg] in the enabled lanes."""
    causes = unspecified.of_flags(s)
    perhaps = unspecified.spread(causes)
    write_marks(s, reg, marks | causes, unspecified.enabled(s) & ~perhaps, perhaps)


@njit
def _lanes_named(s: Any, reg: Any) -> Any:
    """Marks of both causes in the lanes whose LReg[7] names `reg` for certain."""
    found = np.int64(0)
    for lane in range(unspecified.LANES):
        named = s.lreg[_INDEX, lane] & np.uint32(_NAMED_BITS) == reg
        found |= np.int64(1 if named else 0) << lane
    return unspecified.both(found & ~unspecified.either(unspecified.of(s, _INDEX)))


def move(s: Any, reads: Any, f: Any) -> Any:
    """What a word writes (`f`: Cells) takes the marks of all that it reads, lane by lane.

    The random state steps in the enabled lanes by itself.  DONE, or the error of what a mark would
    decide.
    """
    writes = f.word
    causes = unspecified.of_flags(s) if reads >> ENABLED & 1 else np.int64(0)
    perhaps = unspecified.spread(causes)
    on = unspecified.enabled(s) if reads >> ENABLED & 1 else np.int64(unspecified.EVERY)
    here = on & ~perhaps
    named = (reads | writes) >> NAMED & 1
    marks, depth = np.int64(0), s.cc_depth[0]
    for reg in range(unspecified.LREG16):
        if reads >> reg & 1:
            marks |= unspecified.of(s, reg)
        elif reads >> NAMED & 1:
            marks |= unspecified.of(s, reg) & _lanes_named(s, reg)
    if reads >> unspecified.FLAGS & 1:
        marks |= unspecified.of(s, unspecified.FLAGS)
    if reads >> unspecified.STACK & 1 and depth:
        marks |= unspecified.of(s, unspecified.STACK + ((depth - 1) & 7))
    if reads >> unspecified.RANDOM & 1:
        marks |= unspecified.of(s, unspecified.RANDOM)
    marks |= causes | (unspecified.of(s, _INDEX) if named else 0)
    bonus = writes >> BONUS & 1
    if writes >> NAMED & 1 and not bonus:
        # To what LReg[7] names lane by lane; a mark there may mean any register.
        anywhere = unspecified.spread(unspecified.of(s, _INDEX)) & (here | perhaps)
        if s.stage_latency[0] and anywhere:
            return unspecified.lane_doubt_refused(s, np.int64(_INDEX), anywhere)
        for reg in range(WRITABLE):
            lanes = _lanes_named(s, reg)
            write_marks(s, np.int64(reg), marks, lanes & here, anywhere | (lanes & perhaps))
    else:
        for reg in range(BONUS + 1):
            if writes >> reg & 1:
                write_marks(s, np.int64(reg), marks, here, perhaps)
    if (writes >> unspecified.STACK | writes >> DEPTH) & 1:
        # The stack of condition codes: an entry is pushed, is popped, or changes
        depth = s.cc_depth[0]
        top = np.int64(unspecified.STACK) + ((depth - 1) & 7)
        if writes >> unspecified.STACK & writes >> DEPTH & 1:
            unspecified.put(s, np.int64(unspecified.STACK) + (depth & 7), marks)
        elif depth:
            old = unspecified.of(s, top) | marks
            unspecified.put(s, top, old if writes >> unspecified.STACK & 1 else 0)
    if writes >> unspecified.RANDOM & 1:
        old = unspecified.of(s, unspecified.RANDOM)
        unspecified.put(s, np.int64(unspecified.RANDOM), old | causes)
    if writes >> unspecified.FLAGS & 1 == 0:
        return np.int64(DONE)
    old = unspecified.of(s, unspecified.FLAGS)
    flags = merged(old, marks, here, perhaps) | (old if bonus else 0)  # LReg[16] may leave them
    # Of none while instructions are scheduled.
    unspecified.put(s, np.int64(unspecified.FLAGS), flags)
    return unspecified.refused_by_flags(s, flags) if s.stage_latency[0] else np.int64(DONE)
