"""One walk of all tiles of a program, in which clocks go from tile to tile with what they send."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices.niu import ACKS, ATOMIC_ANSWERS, OUTGOING, OUTSTANDING, READ_ANSWERS
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.why.check import Context
from bhemu.why.network.conflicts import Counter, TileRaces
from bhemu.why.network.flag_words import Look
from bhemu.why.network.transfers import Sent, of_receiver, proves_arrival, targets
from bhemu.why.network.vector_clocks import Channels
from bhemu.why.ordering import effects
from bhemu.why.walk import ChipWalk, Instruction, Walk, Word

_MOST = 320_000  # steps of all tiles together
_TILES = 64  # with more of them each has too few steps
_HANGS = 80_000  # of a tile of a program that goes on for ever
_COLUMNS, _ROWS = (at - mm.NIU_CFG_0 >> 2 for at in (mm.ROUTER_CFG_1, mm.ROUTER_CFG_3))
_COUNTED = (ATOMIC_ANSWERS, ACKS, READ_ANSWERS)


class NetworkWalk:
    """The tiles of a launched chip."""

    def __init__(self, chip: Chip, tiles: Sequence[Tile]) -> None:
        self._chip = chip
        self.tiles = [
            TileRaces(tile, n, len(tiles), self._send, self._asked) for n, tile in enumerate(tiles)
        ]
        self.sent: list[list[Sent]] = [[] for _ in tiles]
        self._under_way: list[list[Sent]] = [[] for _ in tiles]
        self._arrived: list[list[Sent]] = [[] for _ in tiles]
        self._rows = [int(tile.state.noc_requests[0]) for tile in tiles]
        self._numbers = [chip.number_of(tile.xy) for tile in tiles]
        self._places = {number: n for n, number in enumerate(self._numbers)}
        self._channels = Channels(len(tiles))

    def walk(self, most: int) -> list[Walk]:
        """At most so many steps of each tile; how they were seen."""
        walks = [
            Walk(races.tile, instruction=races.executed, before=_before, after=_after)
            for races in self.tiles
            for _before, _after in [_words(races)]
        ]
        ChipWalk(self._chip, walks, self._stepped).run(most)
        return walks

    # Requests

    def _send(self, races: TileRaces, step: Instruction, agent: int) -> None:
        """A store of a core has sent a request."""
        state, n = races.tile.state, races.number
        row = state.noc_request[self._rows[n]].copy()
        if (int(row[request.CORE]), int(row[request.PC])) != (step.core, step.pc):
            return  # another core's: the request before it is still there
        epoch = int(races.order.clocks[agent, agent])
        sequence = int(state.noc_issued[0]) - 1
        known = races.order.exported(agent)
        low = int(row[request.LOCAL]) & ~3
        value = int(row[request.OPERAND])
        one = Sent(n, step.core, epoch, step, row, sequence, known, value)
        if one.takes_data:
            one.value = int(state.l1[low : low + 4].view(np.uint32)[0])
            number, clock = self._channels.leaving(n, int(row[request.NOC]), known)
            one.left = number, clock
            races.leaves(one, clock, number, source=one.own)
        self._under_way[n].append(one)
        self.sent[n].append(one)
        races.order.clocks[agent, agent] += 1

    def _stepped(self) -> None:
        """All tiles have made a step: what has arrived by now?"""
        for n, races in enumerate(self.tiles):
            if self._under_way[n]:
                state = races.tile.state
                rows = state.noc_request[: int(state.noc_requests[0]), request.SEQUENCE]
                waiting = set(rows.tolist())
                for one in self._under_way[n]:
                    if one.sequence not in waiting:
                        self._arrive(one)
                self._under_way[n] = [one for one in self._under_way[n] if one.arrived is None]
            self._rows[n] = int(races.tile.state.noc_requests[0])

    def _arrive(self, one: Sent) -> None:
        one.agent, one.arrived = self._channels.arrival(one.tile, one.row, one.known)
        number = self._numbers[one.tile]
        masks = self._masks() if int(one.row[request.CONTROL]) & request.MULTICAST else {}
        for u in targets(self._chip, masks, one, number):
            n = self._places.get(u)
            if n is None:
                continue
            if one.reads:
                if not one.is_register:
                    self.tiles[n].leaves(one, one.arrived, one.agent, source=one.remote)
            else:
                self._arrived[n].append(one)
                self.tiles[n].arrives(one, one.arrived, one.agent)
        if one.reads:
            self.tiles[one.tile].arrives(one, one.arrived, one.agent)

    def _masks(self) -> dict[int, list[tuple[int, int]]]:
        return {
            number: [
                (int(config[_COLUMNS]), int(config[_ROWS]))
                for config in races.tile.state.niu_config
            ]
            for number, races in zip(self._numbers, self.tiles, strict=True)
        }

    def _asked(self, races: TileRaces, core: int, counter: Counter, look: Look | None) -> None:
        """A core has looked at a counter; `look`: with a branch that its value decides."""
        noc, index = counter
        if look is not None and not _is_proof(races, counter, look):
            return
        if of_receiver(index):
            for one in self._arrived[races.number]:
                assert one.arrived is not None
                races.order.learn(core, one.arrived)
            return
        for one in self.sent[races.number]:
            if one.counted_by(noc, index):
                if one.left is not None:
                    races.order.learn(core, one.left[1])
                if proves_arrival(index) and one.arrived is not None:
                    races.order.learn(core, one.arrived)


def _is_proof(races: TileRaces, counter: Counter, look: Look) -> bool:
    """Whether the branch goes this way only when no answer is missing."""
    noc, index = counter
    now = int(races.tile.state.niu_counter[noc, index])
    if index in _COUNTED:
        return look.ends(now - 1 & 0xFFFFFFFF) != look.ended
    return not OUTSTANDING <= index < OUTGOING + 16 or look.ends(1) != look.ended


def _words(races: TileRaces) -> tuple[Any, Any]:
    state = races.tile.state

    def before(step: Word) -> effects.Before | None:
        return effects.before_word(state, step.thread, step.word)

    def after(step: Word, seen: effects.Before | None) -> None:
        races.word(step, effects.NOTHING if seen is None else effects.after_word(state, seen))

    return before, after


def walked(context: Context) -> NetworkWalk | None:
    """The walk of a program whose tiles have sent something to one another."""
    if "network" not in context.facts:
        context.facts["network"] = _walked(context) if _talk(context) else None
    found: NetworkWalk | None = context.facts["network"]
    return found


def _talk(context: Context) -> bool:
    tiles = context.tiles(context.symptom.machine)
    return 1 < len(tiles) <= _TILES and any(_received(tile) for tile in tiles)


def _received(tile: Tile) -> bool:
    """Whether another tile has written to it, or read of it."""
    return bool(tile.state.noc_arrivals[0]) or bool(tile.state.niu_counter[:, 53].any())


def _walked(context: Context) -> NetworkWalk:
    chip = context.launch(engine="compiled", **context.alone)
    tiles = context.tiles(chip)
    walk = NetworkWalk(chip, tiles)
    most = _MOST // len(tiles)
    context.work.walked(walk.walk(min(most, _HANGS) if context.symptom.hangs else most))
    return walk
