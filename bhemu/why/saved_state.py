"""Facts that a saved state alone tells: it has no past, so no check can follow a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS
from bhemu.launch import Launched
from bhemu.machine.hang.givers import Agents
from bhemu.machine.hang.waits import semaphore_releasers, touched
from bhemu.machine.tile import Tile
from bhemu.memmap import LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv.assembly import SP
from bhemu.tensix import mmio
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.insn import SEMAPHORE_NAMES
from bhemu.why.checks.contract import of_stack
from bhemu.why.findings import Finding, merged, place
from bhemu.why.order.observe import data_end

_TILES = 8  # whose state is shown
_COUNT = 0xFFFF  # counters of circular buffers wrap
_NOT_KNOWN = (
    "not known of a saved state: who wrote what, races, barriers, what was never written; for these"
    " run the program itself (bhemu why PROGRAM), or begin with a state saved earlier"
    " (bhemu step STATE, then reverse-continue, or why PLACE)"
)


@dataclass(frozen=True)
class Told:
    """The contents of a state, by tile, and what a state does not tell."""

    tiles: dict[tuple[int, int], list[str]]
    more: int
    not_known: str = _NOT_KNOWN

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        shown = [{"tile": list(xy), "lines": lines} for xy, lines in self.tiles.items()]
        return {"state": shown, "not_known": self.not_known}

    def lines(self) -> Iterator[str]:
        """As text."""
        for (x, y), lines in self.tiles.items():
            yield f"[state] tile ({x},{y})"
            yield from (f"  {line}" for line in lines)
        if self.more:
            yield f"[state] {self.more} more tiles (bhemu step STATE --tile x,y; where, dump)"
        yield self.not_known


def told(target: Launched, found: Iterable[Finding] = ()) -> Told:
    """Semaphores, circular buffers and banks of tiles that have used them, or that are named."""
    named = {tuple(one.culprit.get("tile") or ()) for one in found}
    used = [tile for tile in target.tiles if tile.xy in named or _used(tile)]
    first = sorted(used, key=lambda tile: tile.xy not in named)[:_TILES]
    return Told({tile.xy: [*_lines(tile)] for tile in first}, len(used) - len(first))


def _used(tile: Tile) -> bool:
    s = tile.state
    counts = s.stream[:, [mmio.REMOTE_DEST_BUF_SIZE, mmio.REMOTE_DEST_BUF_START]]
    return bool(s.sem.any() or s.sem_by.any() or s.src_valid.any() or counts.any())


def _lines(tile: Tile) -> Iterator[str]:
    """What a tile holds in semaphores, circular buffers and banks of SrcA and SrcB."""
    s, agents = tile.state, Agents(tile, ())
    for i, name in enumerate(SEMAPHORE_NAMES):  # those that were set up or used
        value, most = int(s.sem[i]), int(s.sem_max[i])
        if not (value or most or s.sem_by[i].any()):
            continue
        text = f"semaphore {i} ({name}) = {value} of {most}"
        for zero, verb in ((True, "post"), (False, "take")):
            if (value == 0) == zero and not semaphore_releasers(agents, i, zero):
                text += f", nobody can {verb} it any more"
        yield f"{text}; {touched(agents, i).partition(' was ')[2]}"
    for stream in range(mmio.STREAMS):  # counters of pages that kernels keep there
        received = int(s.stream[stream, mmio.REMOTE_DEST_BUF_SIZE])
        acked = int(s.stream[stream, mmio.REMOTE_DEST_BUF_START])
        if received or acked:
            left = (received - acked) & _COUNT
            then = stream - FIRST_BUFFER_STREAMS[1]
            older = f" (in older builds {then})" if then >= 0 else ""
            yield (
                f"circular buffer {stream}{older}: {received} pages announced, {acked} given back:"
                f" {left} in it"
            )
    for which, name in ((SRCA, "SrcA"), (SRCB, "SrcB")):  # that were not given back
        held = [bank for bank in range(2) if s.src_valid[which, bank]]
        if held:
            banks = " and ".join(str(bank) for bank in held)
            reads, writes = int(s.matrix_bank[which]) & 1, int(s.unpack_bank[which]) & 1
            yield (
                f"{name}: bank {banks} belongs to the matrix unit, which reads bank {reads} next;"
                f" unpacker {which} writes bank {writes} next"
            )


def stacks(target: Launched) -> list[Finding]:
    """Cores whose sp is within the data of their own memory."""
    found = []
    for tile, core in ((one, core) for one in target.tiles for core in one.core.values()):
        sp, end = int(core.regs[SP]), data_end(core)
        at_top = end >= LOCAL_BASE + LOCAL_SIZES[core.index]  # its ELF counts the stack among data
        if core.state != "reset" and not at_top and LOCAL_BASE <= sp < end:
            text = f"the stack of {core.name} is at {sp:#x}, within its data, which end at {end:#x}"
            who = place(core.where(), target.clock, tile)
            found.append(of_stack(core.name, text, who))
    return merged([found])
