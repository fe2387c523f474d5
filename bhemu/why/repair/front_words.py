"""The MOP and REPLAY words that cores push by a store, which no trace of executed words has."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from bhemu.errors import BhemuError
from bhemu.machine.breakpoints import MOST
from bhemu.machine.hang.explore import code_stores
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, INSTRN_BUF_BASE, INSTRN_BUF_END
from bhemu.riscv.assembly import SP
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.tensix.frontend import MOP, REPLAY
from bhemu.why.repair.edits import Code, Site
from bhemu.why.repair.trial import Trials
from bhemu.why.work import executed

_FRONT = (MOP, REPLAY)
_SEEN = 8  # times that a store is looked at
_STORES, _CLOCKS = 64, 100_000  # stores of a core that are looked at, for how long


def sites(trials: Trials, code: Code, known: list[Site], last: int) -> Iterator[Site]:
    """The stores of one tile that push such words; `last`: the number behind all known actions."""
    acted = {(site.core, site.pc) for site in known}
    for core in code.words:
        stores = [pc for pc in _stores(trials.tile, code, core) if (core, pc) not in acted]
        for low in range(0, min(len(stores), _STORES), MOST):
            yield from _pushing(trials, core, stores[low : low + MOST], last)


def _pushing(trials: Trials, core: int, stores: list[int], last: int) -> Iterator[Site]:
    """Those of some stores of a core."""
    tile = trials.begin()
    found = {pc: Site(core, pc, INSTRN_BUF_BASE, max(core - 1, 0)) for pc in stores}
    points = {
        tile.break_at(CORE_NAMES[core], pc, condition=partial(_looked_at, site, last))
        for pc, site in found.items()
    }
    with suppress(BhemuError):
        while points:
            stop = tile.run(limit=_CLOCKS)
            if stop.reason != "breakpoint" or stop.breakpoint is None:
                break
            tile.delete(stop.breakpoint)
            points.discard(stop.breakpoint)
    tile.delete()
    trials.work.done += executed([tile])
    yield from (site for site in found.values() if site.values)


def _stores(tile: Tile, code: Code, core: int) -> Iterator[int]:
    """Stores of a core that may go to an instruction FIFO."""
    placed = {one.pc: at for at, several in code_stores(tile, core).stores.items()
              for one in several}  # fmt: skip
    for pc, word in sorted(code.words[core].items()):
        cls = decode(word)
        if cls is not None and issubclass(cls, Store) and word >> 15 & 31 != SP:
            at = placed.get(pc, INSTRN_BUF_BASE)
            if INSTRN_BUF_BASE <= at < INSTRN_BUF_END:
                yield pc


def _looked_at(site: Site, last: int, tile: Tile) -> bool:
    """Take what a store pushes; whether nothing more is to be seen of it."""
    core = tile.core[CORE_NAMES[site.core]]
    word = tile.read32(site.pc)
    address = (int(core.regs[word >> 15 & 31]) + Store.imm.get(word)) & 0xFFFFFFFF
    value = int(core.regs[word >> 20 & 31]) & 0xFFFFFFFF
    if not INSTRN_BUF_BASE <= address < INSTRN_BUF_END or value >> 24 not in _FRONT:
        return True
    site.add(value, last, None)
    return site.count >= _SEEN
