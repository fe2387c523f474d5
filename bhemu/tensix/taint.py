"""Marks of unspecified lanes: a word writes those of all that it is declared to read.

Each class of the vector unit declares what it reads and writes (spaces.py).  From that `declared`
makes the `doubts` of the class: the cells of unspecified.py that a word reads and those that it
writes, as bits of two numbers, and `move` with both, which is compiled once and where it is needed.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.bits import Word
from bhemu.jit.subset import JIT, Compiled, njit
from bhemu.tensix import spaces, unspecified
from bhemu.tensix.lanes import BONUS, TEMPLATES, WRITABLE, target
from bhemu.tensix.rules import DONE
from bhemu.tensix.spaces import Clause, Term
from bhemu.tensix.unspecified import FLAGS, RANDOM, STACK

if TYPE_CHECKING:
    from bhemu.tensix.insn import Instruction

# Bits besides those of cells: the LRegs that LReg[7] names lane by lane; that only enabled lanes
# take part; the depth of the stack.
NAMED, ENABLED, DEPTH = 27, 28, 29
_INDEX, _NAMED_BITS = 7, 15  # LReg[7], and its bits that name a register

_BITS = {
    spaces.CC: 1 << FLAGS,
    spaces.STACK: 1 << STACK,
    spaces.RANDOM: 1 << RANDOM,
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
        found = str(_BITS.get(Clause((term._replace(when=""),)), ""))
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
def write(s: Any, reg: Any, marks: Any, here: Any, perhaps: Any) -> None:
    """LReg[reg] takes `marks` in the lanes `here`, and maybe in `perhaps`; constants stay."""
    if reg < WRITABLE or reg == BONUS:
        old = unspecified.of(s, unspecified.of_lreg(reg))
        unspecified.write(s, reg, here | perhaps, merged(old, marks, here, perhaps))


@njit
def to(s: Any, reg: Any, marks: Any) -> None:
    """Something with `marks` is written to LReg[reg] in the enabled lanes."""
    causes = unspecified.of_flags(s)
    perhaps = unspecified.spread(causes)
    write(s, reg, marks | causes, unspecified.enabled(s) & ~perhaps, perhaps)


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
    if reads >> FLAGS & 1:
        marks |= unspecified.of(s, FLAGS)
    if reads >> STACK & 1 and depth:
        marks |= unspecified.of(s, STACK + ((depth - 1) & 7))
    if reads >> RANDOM & 1:
        marks |= unspecified.of(s, RANDOM)
    marks |= causes | (unspecified.of(s, _INDEX) if named else 0)
    bonus = writes >> BONUS & 1
    if writes >> NAMED & 1 and not bonus:
        # To what LReg[7] names lane by lane; a mark there may mean any register.
        anywhere = unspecified.spread(unspecified.of(s, _INDEX)) & (here | perhaps)
        if s.stage_latency[0] and anywhere:
            return unspecified.lane_doubt_refused(s, np.int64(_INDEX), anywhere)
        for reg in range(WRITABLE):
            lanes = _lanes_named(s, reg)
            write(s, np.int64(reg), marks, lanes & here, anywhere | (lanes & perhaps))
    else:
        for reg in range(BONUS + 1):
            if writes >> reg & 1:
                write(s, np.int64(reg), marks, here, perhaps)
    if (writes >> STACK | writes >> DEPTH) & 1:
        # The stack of condition codes: an entry is pushed, is popped, or changes
        depth = s.cc_depth[0]
        top = np.int64(STACK) + ((depth - 1) & 7)
        if writes >> STACK & writes >> DEPTH & 1:
            unspecified.put(s, np.int64(STACK) + (depth & 7), marks)
        elif depth:
            unspecified.put(s, top, unspecified.of(s, top) | marks if writes >> STACK & 1 else 0)
    if writes >> RANDOM & 1:
        unspecified.put(s, np.int64(RANDOM), unspecified.of(s, RANDOM) | causes)
    if writes >> FLAGS & 1 == 0:
        return np.int64(DONE)
    old = unspecified.of(s, FLAGS)
    flags = merged(old, marks, here, perhaps) | (old if bonus else 0)  # LReg[16] may leave them
    unspecified.put(s, np.int64(FLAGS), flags)  # of none while instructions are scheduled
    return unspecified.refused_by_flags(s, flags) if s.stage_latency[0] else np.int64(DONE)
