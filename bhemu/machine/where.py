"""Where cores and threads stand and what they wait for, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bhemu.machine import word_text
from bhemu.machine.sentences import CONDITIONS
from bhemu.machine.word_text import meaning
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.insn import disassemble

if TYPE_CHECKING:
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile


class WhereReport(tuple[str, ...]):
    """One line for every core and thread; prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(self)

    __str__ = __repr__


def lines(tile: Tile) -> Iterator[str]:
    """Every core, then every thread."""
    for core in tile.core.values():
        yield core_line(tile, core)
    for t in range(3):
        yield thread(tile, t)


def core_line(tile: Tile, core: Core) -> str:
    """State, place, retired instructions; what a blocked core waits for."""
    if core.state == "reset":
        return f"{core.name:<7} reset"
    symbol, source = core.locate(core.pc)[0], core.source(core.pc)
    place = f"pc 0x{core.pc:08X}" + (f" {symbol}" if symbol else "")
    place += f" {source}" if source else ""
    text = f"{core.name:<7} {core.state:<8} {place}, {core.retired} retired"
    condition = CONDITIONS.get(int(tile.state.core_wait[core.index]))
    if core.state == "blocked" and condition is not None:
        address = int(tile.state.core_address[core.index])
        text += f", waits for {condition.text} (address {address:#010x})"
    return text


def thread(tile: Tile, t: int) -> str:
    """Executed and queued words, the word at the gate and what holds it."""
    s = tile.state
    queued = int(s.fifo_write[t] - s.fifo_read[t])
    text = f"T{t}      {int(s.executed[t])} words executed, {queued} queued"
    if not s.gate_full[t]:
        return text
    core, pc = int(s.gate_core[t]), int(s.gate_pc[t])
    symbol = tile.core[CORE_NAMES[core]].locate(pc)[0]
    text += f", at the gate: {disassemble(int(s.gate_word[t]))}{origin(int(s.gate_from[t]))}"
    text += f" from {CORE_NAMES[core]} pc {pc:#x}" + (f" {symbol}" if symbol else "")
    told = word_text.describe(tile, t, int(s.gate_word[t]))
    text += f" ({told})" if told else ""
    condition = CONDITIONS.get(int(s.gate_blocked[t]))
    if condition is not None:
        text += f", waits for {condition.text}"
    if s.latch[t]:
        text += f", held by {disassemble(int(s.latch_word[t]))}"
        held = meaning(int(s.latch_word[t]), t)
        text += f" ({held})" if held else ""
    return text


def origin(code: int) -> str:
    """How a word came to the gate: pushed says nothing."""
    if code == FROM_PUSH:
        return ""
    return " (MOP)" if code == FROM_MOP else f" (REPLAY slot {code - FROM_REPLAY})"


def backtrace(core: Core) -> Iterator[str]:
    """The pc with its inlined calls, and the return address as far as ra can be trusted."""
    yield from (f"#{n}  {frame}" for n, frame in enumerate(frames(core)))


def frames(core: Core) -> Iterator[str]:
    """The frames of a core in words, the innermost first."""
    yield from _frames(core, core.pc, "")
    ra = int(core.regs[1])
    if ra:
        # No frame records exist (-fomit-frame-pointer): ra is the caller until it is reused.
        same = _function(core, ra - 4) == _function(core, core.pc)
        doubt = "; this function may have called another since: then ra is stale" if same else ""
        yield from _frames(core, ra - 4, f"  (call before ra {ra:#x}{doubt})")


def _function(core: Core, pc: int) -> str | None:
    symbol = core.locate(pc)[0]
    return None if symbol is None else symbol.split("+")[0]


def _frames(core: Core, pc: int, note: str) -> Iterator[str]:
    symbol, file, line = core.locate(pc)
    function, calls = core.inlined(pc)
    place = f" ({file}:{line})" if file else ""
    if not calls:
        yield f"0x{pc:08X} {symbol or '?'}{place}{note}"
        return
    yield f"0x{pc:08X} {function or '?'}{place}, inlined"
    for call in calls[:-1]:
        yield f"0x{pc:08X} {call.function} ({call.file}:{call.line}), inlined"
    last = calls[-1]
    yield f"0x{pc:08X} {symbol or last.function} ({last.file}:{last.line}){note}"
