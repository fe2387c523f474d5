"""Why a loop leaves words out: the branch by which it comes to its store the next time.

Of the branches between the store in front of a gap and the one behind it, the last that went the
other way before: until then it had led past the store.
"""

from typing import Any

from bhemu.errors import Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.riscv.formats import Branch, Store
from bhemu.riscv.isa import decode
from bhemu.why.check import Context
from bhemu.why.findings import outside_headers
from bhemu.why.walk import Instruction, Walk

_MOST = 60_000  # steps of the walk
_NEAR = 0x1000  # bytes between two stores of one loop
_FEW = 64  # branches of the rounds that leave it out
_ABOVE = 8  # lines


class _Loop:
    """The stores of one line of a core around a word of L1, with the branches between them."""

    def __init__(self, tile: Tile, core: int, line: tuple[Any, ...], at: int) -> None:
        self._tile, self._core, self._line, self._at = tile, core, line, at
        self._lines: dict[int, tuple[Any, ...]] = {}
        self._last = -1  # address of the last such store
        self._branches: list[tuple[int, bool]] = []  # since then: pc, whether taken
        self.across: list[tuple[int, bool]] = []  # those between the stores around the word

    def instruction(self, step: Instruction) -> None:
        """After an instruction of a core."""
        cls: Any = decode(step.word)
        if step.core != self._core or cls is None or self.across:
            return
        if issubclass(cls, Branch):
            fields = cls.rs1.get(step.word), cls.rs2.get(step.word)
            a, b = (int(step.regs[n]) for n in fields)
            self._branches.append((step.pc, bool(cls.compute(step.word, step.pc, a, b))))
        elif issubclass(cls, Store) and self._is_of_line(step.pc):
            access = step.access()
            if access is None or access.address >= L1_SIZE:
                return
            near = 0 < access.address - self._last < _NEAR
            if near and self._last < self._at < access.address:
                self.across = self._branches
            self._last, self._branches = access.address, []

    def _is_of_line(self, pc: int) -> bool:
        if pc not in self._lines:
            self._lines[pc] = line_of(where_core(self._tile, self._core, pc))
        return self._lines[pc] == self._line


def line_of(where: Where) -> tuple[Any, ...]:
    """The line of a place, of a helper in a header its caller's."""
    outer = outside_headers(where)
    return outer.file, outer.line


def branch_past(context: Context, where: Where, at: int) -> Where | None:
    """The branch that leads past a store, made at `where`, of the word of L1 at `at`."""
    if context.is_chip or where.core is None or where.thread is not None or not where.line:
        return None
    core = CORE_NAMES.index(where.core)
    tile = context.launch(engine="compiled", **context.alone)
    loop = _Loop(tile, core, line_of(where), at)
    walk = Walk(tile, instruction=loop.instruction)
    walk.run(_MOST)
    context.work.walked([walk])
    ways: dict[int, bool] = {}
    found = None
    for pc, taken in loop.across if len(loop.across) <= _FEW else ():
        if ways.get(pc, taken) != taken:
            found = pc
        ways[pc] = taken
    past = None if found is None else where_core(tile, core, found)
    return past if past is not None and _is_close(past, where) else None


def _is_close(branch: Where, store: Where) -> bool:
    """Whether a branch stands in the source close above the store, as an `if` in its loop does."""
    file, line = line_of(store)
    other, above = line_of(branch)
    return bool(file == other and above and 0 <= line - above <= _ABOVE)
