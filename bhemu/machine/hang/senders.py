"""Who could change a word of L1 over the NoC: by what has come, by code, by registers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.machine.hang.givers import Agents, Releaser, name_of, times
from bhemu.memmap import CORE_NAMES, HOST, NOC_CTRL, NOC_RET_ADDR_LO, NOC_TARG_ADDR_LO
from bhemu.noc.grid import XY, number_at
from bhemu.tensix.state import CORES, NOC_ARRIVED

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile

NEVER = "nothing was ever written there over the NoC"
GAVE = "it has written there over the NoC"
_INITIATORS, _REGISTERS = 4, 12
_TILES = {NOC_TARG_ADDR_LO + 8, NOC_RET_ADDR_LO + 8}
_SET = _TILES | {NOC_TARG_ADDR_LO, NOC_RET_ADDR_LO}
_SET |= {NOC_CTRL, mm.NOC_AT_LEN_BE}  # registers that say what a request writes to
_LATER = "its code sends a request to this word of a tile that it reads from what it waits for"
MOST = 4  # senders named for one wait
_LOOKED = 64  # cores whose code is looked at
_TRIED = 64  # combinations of their values for one request


def initiators(chip: Controls) -> Iterator[tuple[Tile, int, list[int]]]:
    """Every initiator of the tiles that are in use: its tile, NoC and registers."""
    for tile in chip.tiles_made():
        for noc in (0, 1):
            for i in range(_INITIATORS):
                yield tile, noc, [int(word) for word in tile.state.niu_command[noc, i]]


class Senders:
    """Who could write to words of L1 over the NoC, on a chip that stands still."""

    def __init__(self, chip: Controls, agents: dict[XY, Agents]) -> None:
        self._chip, self._agents = chip, agents
        self._elsewhere: dict[int, dict[str, Releaser]] = {}
        self._requests: dict[tuple[XY, int], list[tuple[int, list[list[int]]]]] = {}

    def of(self, tile: Tile, address: int, beside: int) -> list[Releaser]:
        """Those that have written to the word, and others with their code, who has done so least
        first; else those whose code would; else tiles whose initiators are set up for it; else
        those whose code would on a tile that they are to learn. Without the core that waits.
        """
        found: dict[tuple[XY, int], Releaser] = {}
        came = [one for one in arrivals(self._chip, tile, address) if one[1] < CORES]
        count = Counter((sender.xy, core) for sender, core, _, _ in came)
        known = int(tile.state.noc_arrivals[0]) <= NOC_ARRIVED
        for sender, core, pc, when in came:
            if (at := (sender.xy, core)) not in found:
                how = f"{GAVE}{' ' + times(count[at]) if known else ''}, last in round {when}"
                by = self._core(sender.xy, core, pc, how)
                found[at] = replace(by, given=count[at] if known else None)
        x, y = tile.xy
        near = sorted(self._agents, key=lambda xy: abs(xy[0] - x) + abs(xy[1] - y))
        codes = {self._code(xy, core) for xy, core in found}
        alone = [one.able for one in found.values()] == [True]  # it has a word of its own
        asked = () if alone else product(near, (0, CORES - 1))
        for xy, core in asked:
            if (xy, core) in found or (codes and self._code(xy, core) not in codes):
                continue
            sends = self._coded(xy, core, tile.xy, address)
            if sends is not None:
                by = self._core(xy, core, sends, "its code sends a request to it")
                found[xy, core] = replace(by, given=0)
        found.pop((tile.xy, beside), None)
        ready = sorted(found.values(), key=lambda one: one.given or 0)
        ready = ready or [*self._set_up(tile.xy, address)]
        return (ready or [*self._later(tile.xy, address, beside)])[:MOST]

    def _code(self, xy: XY, core: int) -> tuple[bytes, ...]:
        """The ELFs of a core."""
        held = self._agents[xy].tile.core[CORE_NAMES[core]].images
        return tuple(image.data for image in held)

    def _set_up(self, to: XY, address: int) -> Iterator[Releaser]:
        """The tiles whose initiators are set up for a request to a word."""
        known: set[XY] = set()
        for tile, noc, registers in initiators(self._chip):
            if tile.xy not in known and aims(registers, to, address):
                known.add(tile.xy)
                how = f"registers of its NoC {noc} name this word as the destination"
                cores = ", ".join(f"{one.name} {one.state}" for one in tile.core.values())
                yield Releaser(f"tile {name_of(tile)}", how, "", f"has {cores}")

    def elsewhere(self, address: int) -> dict[str, Releaser]:
        """By tile of which this word was written: the last core that did."""
        if address not in self._elsewhere:
            self._elsewhere[address] = found = dict[str, Releaser]()
            for other in self._chip.tiles_made():
                last = (one for one in arrivals(self._chip, other, address) if one[1] < CORES)
                for sender, core, pc, when in last:
                    how = f"{GAVE}, last in round {when}"
                    found[name_of(other)] = self._core(sender.xy, core, pc, how)
                    break
        return self._elsewhere[address]

    def _core(self, xy: XY, core: int, pc: int, how: str) -> Releaser:
        found = self._agents[xy].acts(core, pc, how)
        return replace(found, who=f"{name_of(self._agents[xy].tile)} {found.who}")

    def _coded(self, xy: XY, core: int, to: XY, address: int) -> int | None:
        """The pc to which a core may come and that would send a request to a word."""
        sent = self._sent(xy, core)
        return next((pc for pc, values in sent if _may_aim(values, to, address)), None)

    def _later(self, to: XY, address: int, beside: int) -> Iterator[Releaser]:
        """Cores that go round, and whose code sends a request to a word of a tile that they read
        from what they wait for."""
        for (xy, core), sent in self._requests.items():
            agents, now = self._agents[xy], {pc for pc, _ in sent}
            if core in agents.loops and (xy, core) != (to, beside):
                for pc, values in self._of_code(agents, core, to):
                    if pc in now and _may_aim(values, to, address):
                        yield self._core(xy, core, pc, _LATER)
                        break

    def _sent(self, xy: XY, core: int) -> list[tuple[int, list[list[int]]]]:
        """The requests that the code of a core sends: pc, what each register may hold.

        Of the first cores that are asked for: looking at code takes long.
        """
        if (xy, core) not in self._requests and len(self._requests) < _LOOKED:
            self._requests[xy, core] = list(self._of_code(self._agents[xy], core))
        return self._requests.get((xy, core), [])

    def _of_code(
        self, agents: Agents, core: int, later: XY | None = None
    ) -> Iterator[tuple[int, list[list[int]]]]:
        """By the order of the code: a register holds what the store before has left there.

        later: the words that the core waits for are others, and a tile that they name is this one.
        """
        held: dict[tuple[int, int], tuple[int, set[int]]] = {}
        now = agents.stores(core, held=True).stores
        unknown = {(one.pc, one.address) for one in now if one.value is None}
        for pc, address, _, value in agents.stores(core, held=True, later=later is not None).stores:
            noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
            i, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if noc not in (0, 1) or i >= _INITIATORS:
                continue
            which = _INITIATORS * noc + i
            if register == mm.NOC_CMD_CTRL:
                values = [sorted(held.get((which, 4 * n), (0, {0}))[1]) for n in range(_REGISTERS)]
                if all(values) and agents.comes(core, pc):
                    yield pc, values
            elif register in _SET:
                by, known = held.get((which, register), (-1, set[int]()))
                known = known if by == pc else set()
                learns = register in _TILES and (pc, address) not in unknown
                if value is None and later is not None and learns:
                    value = later[0] | later[1] << 6
                held[which, register] = pc, known | ({value} if value is not None else set())


def _may_aim(values: list[list[int]], to: XY, address: int) -> bool:
    """Whether registers that may hold these values name a word as the destination."""
    if not any(low <= address for i in (0, 3) for low in values[i]):
        return False
    return any(aims([*one], to, address) for one in islice(product(*values), _TRIED))


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
