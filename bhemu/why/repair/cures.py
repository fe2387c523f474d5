"""A change that makes a run right, and which of several are shown."""

from collections.abc import Iterable
from dataclasses import dataclass

from bhemu.errors import Where
from bhemu.memmap import CORE_NAMES
from bhemu.why.repair.edits import Edit


@dataclass(frozen=True)
class Cure:
    """A change that makes the run right, and the line it belongs to; `edit` None: of a file."""

    where: Where
    text: str
    cost: float
    edit: Edit | None
    part: int = 0

    def has_more_than(self, other: "Cure") -> bool:
        """Whether it is another change of code and something besides."""
        if self.edit is None or other.edit is None or self.part != other.part:
            return False
        return self.edit.core == other.edit.core and set(self.edit.code) > set(other.edit.code)


def best(cures: Iterable[Cure]) -> list[Cure]:
    """The likeliest cure of each line; none that does more than another one."""
    found: dict[object, Cure] = {}
    for cure in sorted(cures, key=_order):
        found.setdefault((cure.where.core, cure.where.file, cure.where.line), cure)
    return [
        cure
        for cure in found.values()
        if not any(cure.has_more_than(other) for other in found.values())
    ]


def _order(cure: Cure) -> tuple[float, bool, int]:
    """Of equal changes first those of the kernel's own file, then those next to the output."""
    core = cure.where.core
    nearest = CORE_NAMES.index(core) % 4 if core else 0
    return round(cure.cost, 2), str(cure.where.file).endswith(".h"), -nearest
