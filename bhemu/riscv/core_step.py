"""One instruction of the compiled engine, generated from the instructions' classes.

`step` does what stays within registers, L1 and local memory, and leaves the rest to core_loop.py;
`l1` is the end of L1, or 0 when loads and stores of L1 go through the L0 cache (there). Stores to
pages of `code`, a mask of cores, are left too: another engine has translated them.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import l1_word
from bhemu.jit.memory import LOAD, STORE
from bhemu.jit.subset import njit
from bhemu.memmap import LOCAL_BASE
from bhemu.riscv import semantics
from bhemu.riscv.formats import (
    Atomic,
    Branch,
    Fence,
    IndirectJump,
    Jump,
    Load,
    Store,
    Upper,
)
from bhemu.riscv.insn import MASK, REGISTRY, Instruction
from bhemu.riscv.isa import rv32i

JUMP_SELF = rv32i.JAL.assemble(0, 0)
LEAVE = 1 << 32  # added by `step` to the next pc: done, and the until words must be compared

# What `step` does for the class of a word: leaves set `value`, which the tail puts into rd, or
# return the next pc. NONE: nothing was done, the word is one for core_loop.py.
_ELSEWHERE = f"return np.int64({semantics.NONE})"
_PLACE = f"""
at = (a + OFFSET) & {MASK}
if at & (SIZE - 1):
    {_ELSEWHERE}
if at >= l1:
    at -= {LOCAL_BASE}
    if at < 0 or at >= room:
        {_ELSEWHERE}
    at += local
"""
_CODE = f"""
elif s.code_page[at >> 12] & code:
    {_ELSEWHERE}
"""
_JUMP = f"""
target = np.int64(EXECUTE(ARGUMENTS))
if target & 3:
    {_ELSEWHERE}
"""


def _offset(cls: Any) -> str:
    return f"({cls.imm.expression()})"


def _place(cls: type[Load] | type[Store]) -> str:
    return _PLACE.replace("OFFSET", _offset(cls)).replace("SIZE", str(cls.size))


def _leaf(cls: type[Instruction]) -> str:
    if issubclass(cls, Load):
        return f"{_place(cls)}value = np.int64(EXECUTE(load{cls.size}(s, at)))"
    if issubclass(cls, Store):
        return f"{_place(cls)}{_CODE.lstrip()}store{cls.size}(s, at, b)\nreturn stored(s, c, pc)"
    if issubclass(cls, Fence):
        return f"if l1 == 0:\n    {_ELSEWHERE}\nreturn pc + 4"
    jump = _JUMP.replace("ARGUMENTS", cls.arguments)
    if issubclass(cls, Branch):
        there = _JUMP.replace("EXECUTE(ARGUMENTS)", f"(pc + {cls.offset.expression()}) & {MASK}")
        taken = f"{there}return target".strip().replace("\n", "\n    ")
        return f"if EXECUTE({cls.arguments}):\n    {taken}\nreturn pc + 4"
    if issubclass(cls, Jump):
        return f"if word == {JUMP_SELF}:\n    {_ELSEWHERE}{jump}value = pc + 4"
    if issubclass(cls, IndirectJump):
        return f"{jump}value = pc + 4"
    return f"value = np.int64(EXECUTE({cls.arguments}))"


_TAIL = """
rd = word >> 7 & 31
if rd:
    s.regs[c, rd] = np.uint32(value)
return target
"""
_HEAD = """
a = np.int64(s.regs[c, word >> 15 & 31])
b = np.int64(s.regs[c, word >> 20 & 31])
target = pc + 4
"""


@njit
def _stored(s: Any, c: Any, pc: Any) -> Any:
    """The next pc behind a store; with LEAVE where it may have made the until words hold."""
    s.stored[c] = 1
    if s.until_count[0]:
        if l1_word(s, s.until_address[0]) == np.int64(s.until_value[0]):
            return pc + (4 + LEAVE)
    return pc + 4


_KINDS = (*semantics.COMPUTING, Upper, Jump, IndirectJump, Branch, Load)
step = semantics.function(
    "step",
    "s, c, pc, word, local, room, l1, code",
    [*semantics.of(*_KINDS), *(cls for cls in REGISTRY if issubclass(cls, Store | Fence))],
    _leaf,
    head=_HEAD,
    tail=_TAIL,
    scope={
        "stored": _stored,
        **{f"load{n}": load for n, load in LOAD.items()},
        **{f"store{n}": store for n, store in STORE.items()},
    },
    forceinline=True,
)

_MEMORY = [cls for cls in REGISTRY if issubclass(cls, Load | Store)]

# (word) -> bytes of a load or store, NONE for any other word
size = semantics.function(
    "size", "word", _MEMORY, lambda cls: f"return np.int64({getattr(cls, 'size', 0)})"
)
# (word, a) -> the address of a load or store; a is the value of rs1
address = semantics.function(
    "address", "word, a", _MEMORY, lambda cls: f"return (a + {_offset(cls)}) & {MASK}"
)
# (word) -> 1 for a jump or branch, NONE for any other word
jumps = semantics.function(
    "jumps", "word", semantics.of(Jump, IndirectJump, Branch), lambda cls: "return np.int64(1)"
)
# (word, value) -> rd of a load
loaded = semantics.function(
    "loaded", "word, value", semantics.of(Load), lambda cls: "return np.int64(EXECUTE(value))"
)
# (word, old, b) -> what an atomic writes over `old`, NONE for any other word
changed = semantics.function(
    "changed", "word, old, b", semantics.of(Atomic), lambda cls: "return np.int64(EXECUTE(old, b))"
)
