"""Loads that get what L1 held before: runs with the data caches of the cores modelled."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bhemu.machine.error_text import where_core
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.riscv.formats import Atomic, Fence, Load, Store
from bhemu.riscv.isa import decode
from bhemu.text import joined
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place
from bhemu.why.order.conflicts import observed
from bhemu.why.order.observe import Observer
from bhemu.why.order.sites import is_polled, spin
from bhemu.why.walk import Instruction, where

_SEEDS = 3
_SEEN = 3  # findings of a run
_LINES = 4  # of a data cache
_ADVICE = "fence (invalidate_l1_cache) before the load: a cache does not see what others write"


def run(context: Context) -> list[Finding]:
    """The loads of stale bytes in a run that ends otherwise than without caches."""
    plain = context.again(l0="off")
    if context.program.l0 == "model":  # then every stale load is the user's business
        seed = context.program.options.get("seed", 0)
        found = _found(context, context.again(l0="model", seed=seed), seed)
        return found or list(_unfenced(context))[:_SEEN]
    if plain.error is not None:
        return []
    for seed in range(1, _SEEDS + 1):
        seen = context.again(l0="model", seed=seed)
        if not seen.same(plain):
            return _found(context, seen, seed)
    return []


def _unfenced(context: Context) -> Iterator[Finding]:
    """Loops that wait for a word of another core and never drop the cache that they look into."""
    for seen in observed(context):
        tile = seen.tile
        for core, pc, address in seen.polls:
            loop = spin(tile.state.l1, pc)
            writer = seen.writer(core, address)
            if loop is None or writer is None:
                continue
            words = tile.state.l1[loop[0] : loop[1]].view(np.uint32).tolist()
            kinds = [cls for word in words if (cls := decode(word)) is not None]
            if any(issubclass(cls, Fence | Atomic) for cls in kinds):
                continue
            if sum(issubclass(cls, Load) for cls in kinds) > _LINES:
                continue  # which replace each other's lines
            at = where_core(tile, core, pc)
            yield Finding(
                "stale", "warning",
                f"{at.core} waits for L1 {address:#x} in a loop without a fence, with a data"
                f" cache: what others write is not seen there: {at}",
                place(at, None, tile), place(where(tile, writer), writer.clock, tile),
                ("here the word was there in time, by chance",),
                _ADVICE,
            )  # fmt: skip


def _found(context: Context, seen: Outcome, seed: int) -> list[Finding]:
    for tile in context.tiles(seen.machine):
        if tile.state.l0_stale[:, 0].any():
            loads = _Loads(context, tile.xy, seed)
            chosen = [one for one in loads.stale.values() if not one.polled] or [
                *loads.stale.values()
            ]
            return [_finding(context, loads.tile, one, seen, seed) for one in chosen[:_SEEN]]
    return []


class _Load:
    """A load of stale bytes, and who had written newer ones."""

    def __init__(self, step: Instruction, address: int, writer: Instruction | None) -> None:
        self.step, self.address, self.writer = step, address, writer
        self.polled = False
        self.repeated = False  # it got them twice, and the core dropped nothing in between


class _Loads:
    """All loads of stale bytes of a tile, by core and pc, from one more run."""

    def __init__(self, context: Context, xy: tuple[int, int], seed: int) -> None:
        machine: Any = context.launch(engine="compiled", l0="model", seed=seed, **context.alone)
        self.tile: Tile = machine.tile[xy]
        self.stale: dict[tuple[int, int], _Load] = {}
        self._writers: dict[int, Instruction] = {}
        self._since_fence: set[tuple[int, int]] = set()  # loads of stale bytes since the last one
        self._fenced: set[tuple[int, int]] = set()  # whose core has dropped its cache since
        self._counts = self.tile.state.l0_stale[:, 0].copy()
        observer = Observer(self.tile, self._access)
        context.finish(machine, limit=context.most)
        observer.rows()  # raises what has gone wrong

    def _access(self, core: int, pc: int, address: int) -> None:
        word, key = self.tile.read32(pc), (core, pc)
        cls: Any = decode(word)
        if issubclass(cls, Fence | Atomic):
            self._fenced |= {other for other in self.stale if other[0] == core}
            self._since_fence = {other for other in self._since_fence if other[0] != core}
        if key in self._fenced and self.stale[key].polled and not self.stale[key].repeated:
            self._fenced.discard(key)  # a turn of a poll that dropped the cache and looked again
            del self.stale[key]
        if issubclass(cls, Fence) or address >= L1_SIZE:
            return
        step = Instruction(now(self.tile.state), core, pc, word)
        if issubclass(cls, Store | Atomic):
            self._writers[address // 4] = step
        counts = self.tile.state.l0_stale[:, 0]
        if not issubclass(cls, Store) and counts[core] != self._counts[core]:
            self._counts[:] = counts
            load = _Load(step, address, self._writers.get(address // 4))
            load = self.stale.setdefault(key, load)
            load.repeated |= key in self._since_fence
            self._since_fence.add(key)
            load.polled = load.step is not step or is_polled(self.tile.state.l1, pc)


def _finding(context: Context, tile: Tile, load: _Load, seen: Outcome, seed: int) -> Finding:
    at = where(tile, load.step)
    victim: dict[str, Any] = {"place": f"L1 {load.address:#x}"}
    by = "by the coprocessor, the host or over the NoC"
    if load.writer is not None:
        victim = place(where(tile, load.writer), load.writer.clock, tile)
        by = f"by {where(tile, load.writer)}"
    how = "otherwise" if not seen.fine or context.program.l0 != "model" else "as without, by chance"
    end = "; ".join(joined(str(result)) for result in seen.wrong)
    if seen.error is not None:
        end = str(seen.error).splitlines()[0]
    path = context.program.path or "PROGRAM"
    evidence = (
        f"L1 {load.address:#x} was written {by}, after the core had loaded its line",
        f"with data caches the program ends {how}" + (f": {end}" if end else ""),
        f"as in bhemu run {path} --l0 model --seed {seed}",
    )
    text = f"a load of {at.core} gets an old L1 {load.address:#x} from its data cache: {at}"
    return Finding(
        "stale",
        "error",
        text,
        place(at, load.step.clock, tile),
        victim,
        evidence,
        _ADVICE,
    )


CHECK = Check(
    "stale",
    proves="a load that gets older bytes than L1 holds, because another agent wrote them and the"
    ' core did not drop its cache, in a run that ends otherwise for it; with l0 = "model" also a'
    " loop that waits for a word of another core without a fence",
    misses="stale bytes that change nothing; which line is replaced and when hardware drops all of"
    " them is a model",
    cost="4 runs, and an observed one where they differ",
    applies=lambda seen: 0 if seen.refused else 65,
    run=run,
)
