"""Whose code an edit changes: the program's own, or that of a library, which is taken to be right.

What a kernel gives to a library's functions the compiler has folded into their code. So they are
changed too, but later, and those first that the kernel calls itself.
"""

from collections.abc import Iterable, Iterator

from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program.specs import Program
from bhemu.why.repair.edits import Edit

_KIND = "llk"


class Origins:
    """Of the code of a tile how deep in a library each instruction stands."""

    def __init__(self, tile: Tile, program: Program) -> None:
        """Of a program that tests tt-llk the library is its own code."""
        self._tile = tile
        self._depths: dict[tuple[int, int], int] = {}
        images = [image for name in CORE_NAMES for image in tile.core[name].images]
        taken = () if program.kind == _KIND else (image.library for image in images)
        self.library: frozenset[str] = frozenset().union(*taken)

    def depth(self, edit: Edit) -> int:
        """How many calls of a library lead to its first instruction; 0: own code."""
        key = edit.core, edit.at
        if key not in self._depths:
            core = self._tile.core[CORE_NAMES[edit.core]]
            _, file, line = core.locate(edit.at)
            files = [file, *(call.file for call in core.inlined(edit.at)[1])] if line else [None]
            own = (n for n, one in enumerate(files) if one and one not in self.library)
            self._depths[key] = next(own, len(files))
        return self._depths[key]

    def every(self, edits: Iterable[Edit]) -> Iterable[Edit]:
        """All of them, in their order."""
        return edits

    def own(self, edits: Iterable[Edit]) -> Iterator[Edit]:
        """Those of the program's own code."""
        return (edit for edit in edits if not self.depth(edit))

    def others(self, edits: Iterable[Edit]) -> list[Edit]:
        """Those of the library's, the ones next to the own code first."""
        return sorted((edit for edit in edits if self.depth(edit)), key=self.depth)
