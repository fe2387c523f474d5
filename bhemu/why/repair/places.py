"""The source line of an instruction: the caller's where the compiler inlined a library."""

from dataclasses import replace
from functools import cached_property

from bhemu.errors import Where
from bhemu.report import instruction, where_core
from bhemu.tile import Tile
from bhemu.why.repair.sites import Code

_HEADERS = (".h", ".hpp", ".hh", ".inc")


class Lines:
    """The places of a tile's code; a header that several cores use is a library."""

    def __init__(self, tile: Tile, code: Code) -> None:
        self.tile, self._code = tile, code
        self._known: dict[tuple[int, int], Where] = {}

    @cached_property
    def _library(self) -> frozenset[str]:
        users: dict[str, set[int]] = {}
        for core, words in self._code.words.items():
            for pc in words:
                where = where_core(self.tile, core, pc)
                for file in (where.file, *(call.file for call in where.inlined)):
                    if file is not None and file.endswith(_HEADERS):
                        users.setdefault(file, set()).add(core)
        return frozenset(file for file, cores in users.items() if len(cores) > 1)

    def where(self, core: int, pc: int) -> Where:
        """The place of an instruction, the line of the program's own code first."""
        key = core, pc
        if key not in self._known:
            where = where_core(self.tile, core, pc, **instruction(self.tile, pc))
            if where.line == 0:
                where = self._near(where, core, pc)
            self._known[key] = self._outward(where)
        return self._known[key]

    def _near(self, where: Where, core: int, pc: int) -> Where:
        """The place of what the compiler names no line for: that of the kernel nearby."""
        near, before = where, pc
        while near.line == 0 and before - 4 in self._code.words.get(core, {}):
            before -= 4
            near = where_core(self.tile, core, before)
        file, line, function = near.file, near.line, near.function
        if near.inlined:
            function, file, line = near.inlined[-1]
        return replace(where, file=file, line=line, function=function, inlined=())

    def _outward(self, where: Where) -> Where:
        inner = where
        while inner.file in self._library and inner.inlined:
            call = inner.inlined[0]
            inner = replace(
                inner,
                function=call.function,
                file=call.file,
                line=call.line,
                inlined=inner.inlined[1:],
            )
        return where if inner.file in self._library else inner
