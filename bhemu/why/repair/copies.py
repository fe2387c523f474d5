"""The code that several parts of a program have in common: an edit of it is made in all of them.

Each [[tile]] is a part of its own, and kernels of one ELF may lie elsewhere in each of them.
"""

from dataclasses import replace

from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.why.repair.edits import Code, Edit


class Copies:
    """Where the code of one tile stands in a tile of another part."""

    def __init__(self, tile: Tile, code: Code, other: Tile, held: Code) -> None:
        self._tile, self._code, self._other, self._held = tile, code, other, held
        self._places: dict[tuple[int, int], int | None] = {}

    def moved(self, edit: Edit) -> Edit | None:
        """The edit as the other part needs it; None where its code is another."""
        changed = []
        for pc, instead in edit.code:
            owner = self._code.owner(pc)
            at = None if owner is None else self._place(owner, pc)
            if at is None:
                return None
            changed.append((at, instead))
        return replace(edit, code=tuple(changed))

    def _place(self, core: int, pc: int) -> int | None:
        """Where the other part has an instruction: the same one, of the same ELF."""
        key = core, pc
        if key not in self._places:
            found = (at for at in self._all(core, pc) if self._is_same(core, pc, at))
            self._places[key] = next(found, None)
        return self._places[key]

    def _all(self, core: int, pc: int) -> list[int]:
        name = CORE_NAMES[core]
        here = [one for one in self._tile.core[name].images if one.lookup(pc)]
        there = self._other.core[name].images
        return [
            pc + two.offset - one.offset for one in here for two in there if two.data == one.data
        ]

    def _is_same(self, core: int, pc: int, at: int) -> bool:
        return self._held.words.get(core, {}).get(at) == self._code.words[core][pc]
