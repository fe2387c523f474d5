"""Code before an access that only lets time pass: a loop that counts, nops."""

from bhemu.errors import Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import NOP, SP
from bhemu.riscv.formats import Atomic, Branch, Fence, IndirectJump, Jump, Load, Pushed, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.why.findings import outside_headers
from bhemu.why.steps import Step, Word

_CLOSE = 32  # instructions before an access
_NOPS = 4  # that follow one another let time pass


def delay_before(tile: Tile, step: Step) -> int | None:
    """The last pc of a loop that only counts, or of nops, shortly before a core's access."""
    if isinstance(step, Word) or step.core >= len(CORE_NAMES):
        return None
    core = tile.core[CORE_NAMES[step.core]]
    known = core.locate(step.pc)[0] is not None
    low = core.function(step.pc)[1] if known else 0
    for pc in range(step.pc - 4, max(low + 4 * _NOPS, step.pc - 4 * _CLOSE) - 1, -4):
        if all(word == NOP for word in _words(tile, pc - 4 * _NOPS, pc)):
            return pc - 4
    for pc in range(step.pc - 4, max(low, step.pc - 4 * _CLOSE), -4):
        word = tile.read32(pc)
        cls = decode_riscv(word)
        if cls is not None and issubclass(cls, Branch) and (away := cls.offset.get(word)) < 0:
            return pc if all(map(_counts, _words(tile, pc + away, pc))) else None
    return None


def _words(tile: Tile, low: int, high: int) -> list[int]:
    return [tile.read32(pc) for pc in range(low, high, 4)]


def _counts(word: int) -> bool:
    """Whether an instruction only computes, or accesses the stack."""
    cls = decode_riscv(word)
    if cls is None or issubclass(cls, Jump | IndirectJump | Pushed | Fence | Atomic):
        return False
    return not issubclass(cls, Load | Store) or word >> 15 & 31 == SP


def loop_around(tile: Tile, step: Step, apart: int) -> Where | None:
    """The first line of the outermost loop around an access that does not contain the pc `apart`.

    The wait that is missing belongs before that loop.
    """
    if isinstance(step, Word) or step.core >= len(CORE_NAMES):
        return None
    core = tile.core[CORE_NAMES[step.core]]
    if core.locate(step.pc)[0] is None:
        return None
    _, _, end = core.function(step.pc)
    found: range | None = None
    for pc in range(step.pc, end, 4):
        word = tile.read32(pc)
        cls = decode_riscv(word)
        if cls is not None and issubclass(cls, Branch) and (away := cls.offset.get(word)) < 0:
            if pc + away <= step.pc and not pc + away <= apart <= pc:
                found = range(pc + away, pc + 4, 4)
    user = outside_headers(where_core(tile, step.core, step.pc))
    places = [outside_headers(where_core(tile, step.core, pc)) for pc in found or ()]
    own = [at for at in places if at.line and (at.file, at.inlined) == (user.file, user.inlined)]
    return min(own, key=lambda at: at.line or 0) if own else None
