"""The code that stood in a tile when a pair of a recorded session was found, and its names.

A host writes one kernel over the other. At the end of a session the code is gone that an access
was made by; whatever reads it there, for names or for loops of NOPs, would tell of another kernel.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc.grid import XY
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.ttinsn import TTINSN
from bhemu.tensix import insn
from bhemu.why.check import Name
from bhemu.why.order import record as r
from bhemu.why.order.observe import Observer
from bhemu.why.walk import Instruction, Step

NEAR, FAR = "pair", "far"  # accesses of one tile, of two tiles
_EXPANDED = ("MOP", "REPLAY")  # one pushed word gives many


class CodeThen:
    """L1 of the tiles of a session, as it was at the end of the round in which a pair was found."""

    def __init__(
        self,
        observers: Sequence[Observer],
        name: Name,
        libraries: dict[tuple[XY, str], frozenset[str]],
    ) -> None:
        """libraries: gets the files of headers that kernels call, by tile and core."""
        self._observers, self._name, self._libraries = observers, name, libraries
        self._counts: dict[Any, int] = {}
        self._kept: dict[Any, bytes] = {}

    def look(self) -> None:
        """A round is over: keep the code of the tiles of new pairs."""
        now: dict[int, bytes] = {}
        for n, one in enumerate(self._observers):
            for kind, count in (
                (NEAR, int(one.record.pairs[0])),
                (FAR, int(one.record.far_pairs[0])),
            ):
                for number in range(self._counts.get((n, kind), 0), count):
                    for home in _homes(one, number) | {n} if kind == FAR else {n}:
                        if home not in now:
                            now[home] = zlib.compress(
                                self._observers[home].tile.state.l1.tobytes(), 1
                            )
                        self._kept[n, kind, number, home] = now[home]
                self._counts[n, kind] = count

    def stand(self, pair: tuple[int, str, int], steps: Iterable[tuple[int, Step]]) -> list[str]:
        """Put the code back that a pair was made by; the steps of (tile, step) get their names.

        Which ELFs these are of, a line each.
        """
        by_tile: dict[int, list[Step]] = {}
        told: list[str] = []
        for home, step in steps:
            by_tile.setdefault(home, []).append(step)
        for home, of_tile in by_tile.items():
            tile = self._observers[home].tile
            l1 = np.frombuffer(zlib.decompress(self._kept[*pair, home]), np.uint8)
            tile.state.l1[:] = l1
            gone = {step.core for step in of_tile if not _stands(tile, step)}
            places = {
                (step.core, pc) for step in of_tile if step.core not in gone for pc in _pcs(step)
            }
            self._name(tile, places)
            for c in sorted({c for c, _ in places}):
                (x, y), core = tile.xy, tile.core[CORE_NAMES[c]]
                for image in core.images:
                    known = self._libraries.get((tile.xy, core.name), frozenset())
                    self._libraries[tile.xy, core.name] = known | image.library
                    told.append(f"tile ({x},{y}) {core.name} runs {image.path}")
        return told


def _homes(one: Observer, number: int) -> set[int]:
    """The tiles that made the accesses of a pair of two tiles."""
    row = one.record.far_pair[number]
    events = [int(row[k]) for k in (r.FP_FIRST, r.FP_SECOND)]
    return {int(one.record.far_event[at, r.F_HOME]) for at in events if at}


def _pcs(step: Step) -> set[int]:
    return {step.pc} if isinstance(step, Instruction) else {step.pc, step.pushed}


def _stands(tile: Tile, step: Step) -> bool:
    """Whether the instruction that a step comes from stands in L1; as far as can be seen."""
    if not 0 <= (at := max(_pcs(step))) <= L1_SIZE - 4:
        return False
    there = tile.read32(at)
    if isinstance(step, Instruction):
        return step.word in (0, there)
    cls: Any = decode(there)
    if cls is not TTINSN:
        return cls is not None and issubclass(cls, Store)
    pushed = TTINSN.pushed(there)
    opcode = insn.decode(pushed)
    return pushed == step.word or (opcode is not None and opcode.name in _EXPANDED)
