"""The instructions that cores retire, as spike's --log-commits prints them.

The machine is interpreted, and its cores run in the loop of the compiled engine (core_loop.py),
whose `stop` is asked before every instruction while attention is called for. What this file sets
changes neither schedule nor counts.
"""

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import InputError
from bhemu.jit.intrinsics import l1_word
from bhemu.jit.subset import JIT
from bhemu.memmap import CORE_NAMES
from bhemu.riscv import core_loop, turn
from bhemu.riscv.formats import Atomic, Csr, Load, Store
from bhemu.tensix.rules import LOOK

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

_LOAD, _STORE, _CSR, _AMO = (kind.code() for kind in (Load, Store, Csr, Atomic))
_WRITE_RD = (0x13, 0x17, 0x33, 0x37, 0x67, 0x6F, _LOAD, _AMO)
_MACHINE_MODE = 3


class _Next(NamedTuple):
    """An instruction that a core is about to execute."""

    pc: int
    word: int
    base: int  # the value of rs1
    value: int  # that of rs2
    retired: int


def text(core: int, word: int, pc: int, base: int, value: int, rd: int, memory: int) -> str:
    """The line of one instruction: spike's commit_log_print_insn, for a hart of 32 bits.

    base, value: what rs1 and rs2 held before it; rd: what the register rd holds after it; memory:
    what the word at the address in rs1 holds after it, for an atomic.
    """
    parts = [f"core{core:4}: {_MACHINE_MODE} 0x{pc:08x} (0x{word:08x})"]
    low, size = word & 0x7F, 1 << (word >> 12 & 3)
    writes = low in _WRITE_RD or (low == _CSR and word >> 12 & 7 != 0)
    number = word >> 7 & 31
    if word & 3 != 3:  # a Tensix word that is pushed
        return parts[0]
    if writes and number:
        parts.append(f"x{number:<2} 0x{rd:08x}")
    immediate = (word >> 20) - (word >> 31 << 12)
    if low == _LOAD:
        parts.append(f"mem 0x{base + immediate & 0xFFFFFFFF:08x}")
    elif low == _STORE:
        at = base + (immediate & ~31 | number) & 0xFFFFFFFF
        parts.append(f"mem 0x{at:08x} 0x{value & (1 << 8 * size) - 1:0{2 * size}x}")
    elif low == _AMO:
        parts.append(f"mem 0x{base:08x} mem 0x{base:08x} 0x{memory:08x}")
    return " ".join(parts)


class CommitLog:
    """Writes a line to `out` for each instruction that a core of `tile` retires, from now on."""

    def __init__(self, tile: "Tile", out: IO[str]) -> None:
        """InputError where this process runs compiled code."""
        if JIT:
            raise InputError("a commit log is written by interpreted runs: NUMBA_DISABLE_JIT=1")
        self._out, self._state = out, tile.state
        self._next: list[_Next | None] = [None] * len(CORE_NAMES)
        tile.state.count_passes[0] = 0  # every pass of a polling loop is executed
        self._wrap(core_loop, "stop", self._before)
        self._wrap(core_loop, "end", self._ended)
        for module in (core_loop, turn):
            module.watchful = lambda s, c: LOOK  # type: ignore[attr-defined]

    def _wrap(self, module: Any, name: str, callback: Callable[..., None]) -> None:
        own = getattr(module, name)

        def wrapped(s: Any, c: Any, *more: Any) -> Any:
            result = own(s, c, *more)
            if s is self._state or s.pc.ctypes.data == self._state.pc.ctypes.data:
                callback(s, int(c), *more)
            return result

        setattr(module, name, wrapped)

    def _before(self, s: Any, c: int, pc: Any) -> None:
        """Before an instruction: the last one has been retired, or will be executed once more."""
        self._write(s, c, int(s.retired[c] + s.fuel_given[c] - s.fuel[c]))
        word = int(l1_word(s, pc))
        base, value = int(s.regs[c, word >> 15 & 31]), int(s.regs[c, word >> 20 & 31])
        retired = int(s.retired[c] + s.fuel_given[c] - s.fuel[c])
        self._next[c] = _Next(int(pc), word, base, value, retired)

    def _ended(self, s: Any, c: int, *_: Any) -> None:
        """At the end of a slice."""
        self._write(s, c, int(s.retired[c]))
        self._next[c] = None

    def _write(self, s: Any, c: int, retired: int) -> None:
        one, self._next[c] = self._next[c], None
        if one is None or retired == one.retired:
            return
        memory = int(l1_word(s, one.base & ~3)) if one.word & 0x7F == _AMO else 0
        rd = int(s.regs[c, one.word >> 7 & 31])
        line = text(c, one.word, one.pc, one.base, one.value, rd, memory)
        self._out.write(line + "\n")
