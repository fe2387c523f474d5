"""Who could change a word of L1 over the NoC: by what has come, by code, by registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.machine.hang.waits import Agents, Releaser
from bhemu.memmap import HOST, NOC_CTRL, NOC_RET_ADDR_LO, NOC_TARG_ADDR_LO
from bhemu.noc.grid import XY, number_at
from bhemu.tensix.state import CORES, NOC_ARRIVED

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile

NEVER = "nothing was ever written there over the NoC"
_MOST = 4  # senders named for one wait
_INITIATORS, _REGISTERS = 4, 12
_SET = {NOC_TARG_ADDR_LO, NOC_TARG_ADDR_LO + 8, NOC_RET_ADDR_LO, NOC_RET_ADDR_LO + 8}
_SET |= {NOC_CTRL, mm.NOC_AT_LEN_BE}  # registers that say what a request writes to
_LOOKED = 64  # cores whose code is looked at
_TRIED = 64  # combinations of their values for one request


def name_of(tile: Tile) -> str:
    """A tile in words, as in the names of its agents."""
    return f"({tile.xy[0]},{tile.xy[1]})"


def arrivals(chip: Controls, tile: Tile, address: int) -> Iterator[tuple[Tile, int, int, int]]:
    """Sender, core, pc and round of the writes to a word that are remembered, the last first."""
    s = tile.state
    count = int(s.noc_arrivals[0])
    by_number = {number_at(other.xy): other for other in chip.tiles_made()}
    for k in range(count - 1, max(count - NOC_ARRIVED, 0) - 1, -1):
        at, n, t, core, pc, when = (int(word) for word in s.noc_arrived[k % NOC_ARRIVED])
        if at < address + 4 and address < at + n:
            yield by_number[t], core, pc, when


def last_writer(chip: Controls, tile: Tile, address: int) -> str:
    """The last writer of an address over the NoC, as far as is remembered."""
    for sender, core, pc, when in arrivals(chip, tile, address):
        by = "over the NoC" if core == HOST else sender.place(core, pc)
        return f"last written over the NoC in round {when} by tile {name_of(sender)}: {by}"
    all_known = int(tile.state.noc_arrivals[0]) <= NOC_ARRIVED
    return NEVER if all_known else ""


def initiators(chip: Controls) -> Iterator[tuple[Tile, int, list[int]]]:
    """Every initiator of the tiles that are in use: its tile, NoC and registers."""
    for tile in chip.tiles_made():
        for noc in (0, 1):
            for i in range(_INITIATORS):
                yield tile, noc, [int(word) for word in tile.state.niu_command[noc, i]]


def aims(registers: list[int], xy: XY, address: int) -> bool:
    """Whether the registers of an initiator name an address of a tile as the destination."""
    control = registers[NOC_CTRL >> 2]
    kind = control & 3
    if kind not in (request.WRITE, request.ATOMIC):
        return False
    data = kind == request.WRITE and not control & request.INLINE
    first = (NOC_RET_ADDR_LO if data else NOC_TARG_ADDR_LO) >> 2
    low, given = registers[first], registers[first + 2]
    x, y = xy
    if control & request.MULTICAST:
        sides = [sorted((given & 63, given >> 12 & 63)), sorted((given >> 6 & 63, given >> 18))]
        here = sides[0][0] <= x <= sides[0][1] and sides[1][0] <= y <= sides[1][1] & 63
    else:
        here = given & 0xFFF == x | y << 6
    return here and low <= address < low + (registers[8] if data else 4)


class Senders:
    """Who could write to words of L1 over the NoC, on a chip that stands still."""

    def __init__(self, chip: Controls, agents: dict[XY, Agents]) -> None:
        self._chip, self._agents = chip, agents
        self._elsewhere: dict[int, str] = {}
        self._requests: dict[tuple[XY, int], list[tuple[int, list[list[int]]]]] = {}

    def of(self, tile: Tile, address: int, beside: int) -> list[Releaser]:
        """Those that have written to the word; else those whose code would; else tiles whose
        initiators are set up for it. Without the core that waits."""
        found: dict[tuple[XY, int], Releaser] = {}
        for sender, core, pc, when in arrivals(self._chip, tile, address):
            if core < CORES and (sender.xy, core) not in found:
                how = f"it has written there over the NoC, last in round {when}"
                found[sender.xy, core] = self._core(sender.xy, core, pc, how)
        x, y = tile.xy
        near = sorted(self._agents, key=lambda xy: abs(xy[0] - x) + abs(xy[1] - y))
        for xy, core in product(() if found else near, (0, CORES - 1)):
            sends = self._coded(xy, core, tile.xy, address)
            if sends is not None:
                found[xy, core] = self._core(xy, core, sends, "its code sends a request to it")
        found.pop((tile.xy, beside), None)
        return (list(found.values()) or list(self._set_up(tile.xy, address)))[:_MOST]

    def _set_up(self, to: XY, address: int) -> Iterator[Releaser]:
        """The tiles whose initiators are set up for a request to a word."""
        known: set[XY] = set()
        for tile, noc, registers in initiators(self._chip):
            if tile.xy not in known and aims(registers, to, address):
                known.add(tile.xy)
                how = f"registers of its NoC {noc} name this word as the destination"
                cores = ", ".join(f"{one.name} {one.state}" for one in tile.core.values())
                yield Releaser(f"tile {name_of(tile)}", how, "", f"has {cores}")

    def elsewhere(self, address: int) -> str:
        """Who has written this word of another tile, in words; "" for nobody."""
        if address not in self._elsewhere:
            every = (
                f"this word of tile {name_of(other)} was written by {name_of(sender)}"
                f" {self._agents[sender.xy].place(core, pc)}"
                for other in self._chip.tiles_made()
                for sender, core, pc, _ in arrivals(self._chip, other, address)
                if core < CORES
            )
            self._elsewhere[address] = next(every, "")
        return self._elsewhere[address]

    def _core(self, xy: XY, core: int, pc: int, how: str) -> Releaser:
        found = self._agents[xy].acts(core, pc, how)
        return replace(found, who=f"{name_of(self._agents[xy].tile)} {found.who}")

    def _coded(self, xy: XY, core: int, to: XY, address: int) -> int | None:
        """The pc in a core's code that would send a request to a word."""
        for pc, values in self._sent(xy, core):
            if not any(low <= address for i in (0, 3) for low in values[i]):
                continue
            for n, registers in enumerate(product(*values)):
                if n == _TRIED:
                    break
                if aims(list(registers), to, address):
                    return pc
        return None

    def _sent(self, xy: XY, core: int) -> list[tuple[int, list[list[int]]]]:
        """The requests that the code of a core sends: pc, what each register may hold.

        Of the first cores that are asked for: looking at code takes long.
        """
        if (xy, core) not in self._requests and len(self._requests) < _LOOKED:
            self._requests[xy, core] = list(self._of_code(self._agents[xy], core))
        return self._requests.get((xy, core), [])

    def _of_code(self, agents: Agents, core: int) -> Iterator[tuple[int, list[list[int]]]]:
        """By the order of the code: a register holds what the store before has left there."""
        held: dict[tuple[int, int], tuple[int, set[int]]] = {}
        for pc, address, _, value in agents.stores(core, held=True).stores:
            noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
            i, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if noc not in (0, 1) or i >= _INITIATORS:
                continue
            which = _INITIATORS * noc + i
            if register == mm.NOC_CMD_CTRL:
                values = [sorted(held.get((which, 4 * n), (0, {0}))[1]) for n in range(_REGISTERS)]
                if all(values):
                    yield pc, values
            elif register in _SET:
                by, known = held.get((which, register), (-1, set[int]()))
                known = known if by == pc else set()
                held[which, register] = pc, known | ({value} if value is not None else set())
