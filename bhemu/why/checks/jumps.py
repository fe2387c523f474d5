"""The check "jumps": a core that executes what is not its own code."""

from collections.abc import Sequence

from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, merged, place
from bhemu.why.walk import Instruction, Walk, where

_KINDS = ("elf", "llk")  # of these every core has its own ELF


class _Look:
    """Follows the cores of one tile until one of them leaves its ELFs."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        self._known: dict[tuple[int, int], bool] = {}
        self._last: dict[int, Instruction] = {}
        self.left: dict[int, tuple[Instruction, int]] = {}

    def walk(self) -> Walk:
        """Every instruction."""
        return Walk(self.tile, instruction=self.instruction)

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
    tiles = context.tiles(context.symptom.machine)
    if context.program.kind not in _KINDS or not any(map(_astray, tiles)):
        return []
    _, looks = context.walked(_Look, steps=True)
    return merged([_finding(look.tile, *one) for one in look.left.values()] for look in looks)


def _finding(tile: Tile, step: Instruction, target: int) -> Finding:
    at: Where = where(tile, step)
    text = f"{at.core} leaves its own code: it goes on at {target:#x}, which no ELF of it holds"
    return Finding(
        "jumps", "error", text, place(at, step.clock, tile), {"place": f"L1 {target:#x}"},
        (f"the jump: {at}",), "look at the function pointer, or who overwrote the return address",
    )  # fmt: skip


CHECK = Check(
    "jumps",
    proves="that a core went on outside all of its ELFs: a wrong function pointer, a return address"
    " that was overwritten",
    misses="code that another core has written; kernels under firmware; what comes after 150,000"
    " steps, of all tiles of a chip that are looked at",
    cost="one more run step by step (some 6 s for 150,000 steps), where a core stands outside its"
    " ELFs",
    applies=_applies,
    run=_run,
)
