"""Where a core stands, in source and machine code, and what its pushes became."""

from collections.abc import Iterator

from bhemu.debug.places import Sources
from bhemu.machine.core import Core
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.riscv.disasm import disassemble as riscv_text
from bhemu.tensix.insn import disassemble as tensix_text
from bhemu.tensix.state import FIFO_DEPTH


def name_of(core: Core, address: int) -> str | None:
    """The "function+0x10" of an address."""
    return core.locate(address)[0]


def instruction(tile: Tile, core: Core, pc: int) -> str:
    """`00010024:  a6a1000a  text` of the word at `pc`."""
    if not 0 <= pc <= L1_SIZE - 4:
        return f"{pc:08x}:  no code here (outside L1)"
    word = int.from_bytes(tile.read(pc, 4), "little")
    text = riscv_text(word, pc, lambda target: name_of(core, target), tensix_text)
    return f"{pc:08x}:  {word:08x}  {text}"


def position(tile: Tile, core: Core, sources: Sources) -> list[str]:
    """Core, pc, function and file:line; the source line; the next instruction."""
    symbol, file, line = core.locate(core.pc)
    place = core.source(core.pc)
    state = "" if core.state == "running" else f"[{core.state}]"
    parts = (core.name, f"pc 0x{core.pc:08X}", symbol or "", place, state)
    if core.state == "reset":
        return [f"{core.name}  [reset]"]
    lines = ["  ".join(part for part in parts if part)]
    if file and line:
        source = sources.line(core.name, file, line)
        if source is not None:
            lines.append(f"  {line:>4}  {source.rstrip()}")
    lines.append(f"  {instruction(tile, core, core.pc)}")
    return lines


def listing(tile: Tile, core: Core, start: int, count: int) -> Iterator[str]:
    """`count` instructions from `start`, with names and source positions where they change."""
    last = None
    for pc in range(start, min(start + 4 * count, L1_SIZE), 4):
        symbol, file, line = core.locate(pc)
        if symbol and "+" not in symbol:
            yield f"{symbol}:"
        if file and (file, line) != last:
            yield f"  ; {file}:{line}"
            last = (file, line)
        mark = "=>" if pc == core.pc else "  "
        yield f"{mark} {instruction(tile, core, pc)}"


class Pushes:
    """Tensix words that a core pushes from now on, as the FIFOs still show them."""

    def __init__(self, tile: Tile, core: int) -> None:
        self._s, self._core = tile.state, core
        self._before = tile.state.fifo_write.copy()

    def lines(self) -> list[str]:
        """One line per word, oldest first; a FIFO remembers the last 32."""
        s, lines = self._s, []
        for t in range(3):
            first, end = int(self._before[t]), int(s.fifo_write[t])
            if end - first > FIFO_DEPTH:
                lines.append(f"  -> T{t} {end - first - FIFO_DEPTH} words, then")
            for i in range(max(first, end - FIFO_DEPTH), end):
                if s.fifo_core[t, i % FIFO_DEPTH] == self._core:
                    lines.append(f"  -> T{t} {tensix_text(int(s.fifo[t, i % FIFO_DEPTH]))}")
        return lines
