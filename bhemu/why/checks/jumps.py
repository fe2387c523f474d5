"""The check "jumps": a core that executes what is not its own code."""

from collections.abc import Sequence

from bhemu.errors import Where
from bhemu.memmap import CORE_NAMES
from bhemu.tile import Tile
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place
from bhemu.why.walk import Instruction, Walk, where

_KINDS = ("elf", "llk")  # of these every core has its own ELF


class _Look:
    """Follows the cores of one tile until one of them leaves its ELFs."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        self._known: dict[tuple[int, int], bool] = {}
        self._last: dict[int, Instruction] = {}
        self.left: dict[int, tuple[Instruction, int]] = {}

    def instruction(self, step: Instruction) -> None:
        """An instruction has executed."""
        c = step.core
        last = self._last.get(c)
        self._last[c] = step
        if c not in self.left and last is not None and self._own(c, last.pc):
            if not self._own(c, step.pc):
                self.left[c] = last, step.pc

    def _own(self, core: int, pc: int) -> bool:
        key = core, pc
        if key not in self._known:
            self._known[key] = is_own(self.tile, core, pc)
        return self._known[key]


def is_own(tile: Tile, core: int, pc: int) -> bool:
    """Whether an address lies in an ELF of a core."""
    return any(image.lookup(pc) is not None for image in tile.core[CORE_NAMES[core]].images)


def _astray(tile: Tile) -> list[int]:
    """Cores that stand in what none of their ELFs holds."""
    cores = [tile.core[name] for name in CORE_NAMES]
    return [c for c, core in enumerate(cores)
            if core.images and core.retired and not is_own(tile, c, core.pc)]  # fmt: skip


def _applies(seen: Outcome) -> int:
    return 0 if seen.fine else 85


def _run(context: Context) -> Sequence[Finding]:
    if context.is_chip or context.program.kind not in _KINDS or not _astray(context.tile):
        return []
    looks: list[_Look] = []

    def visit(tile: Tile) -> Walk:
        looks.append(_Look(tile))
        return Walk(tile, instruction=looks[0].instruction)

    context.walk(visit)
    look = looks[0]
    return [_finding(look.tile, *one) for one in look.left.values()]


def _finding(tile: Tile, step: Instruction, target: int) -> Finding:
    at: Where = where(tile, step)
    text = f"{at.core} leaves its own code: it goes on at {target:#x}, which no ELF of it holds"
    return Finding(
        "jumps", "error", text, place(at, step.clock, tile), {"place": f"L1 {target:#x}"},
        (f"the jump: {at}",), "see the function pointer, or what overwrote a return address", 100,
    )  # fmt: skip


CHECK = Check(
    "jumps",
    proves="that a core went on outside all of its ELFs: a wrong function pointer, a return address"
    " that was overwritten",
    misses="code that another core has written; programs of a chip; what comes after 150,000 steps",
    cost="one more run step by step (6 s at most), where a core stands outside its ELFs",
    applies=_applies,
    run=_run,
)
