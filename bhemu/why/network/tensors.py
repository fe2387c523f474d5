"""Which tensors of DRAM the NoC brings to L1 of which tile, or takes from there, in a whole run."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bhemu.devices import noc_map
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.program.specs import InputSpec, OutputSpec, Program
from bhemu.tensix.recording import FIRST_CORE, WORDS_AND_STORES
from bhemu.why.network.requests import Request, Requests

_HOPS = 32  # tiles on the way
Tensor = InputSpec | OutputSpec


class _Held(NamedTuple):
    """L1 `low` to `high` holds bytes of a tensor."""

    low: int
    high: int
    tensor: Tensor


class _Move(NamedTuple):
    """Between L1 of two tiles."""

    source: XY
    target: XY
    low: int
    high: int
    to: int


def log_stores(tile: Tile) -> None:
    """Note what cores of a tile store to devices, from now on."""
    tile.log = []
    tile.state.trace[0] = WORDS_AND_STORES


class Moved:
    """What requests of some tiles of a chip have moved; `log_stores` of each before the run.

    When something was moved does not count: a range belongs to every tensor that was ever there.
    """

    def __init__(self, program: Program, chip: Chip, tiles: Sequence[Tile]) -> None:
        self._network = chip.network
        self._pieces = list(_pieces(program))
        self._from: dict[XY, set[_Held]] = {tile.xy: set() for tile in tiles}
        self._to: dict[XY, set[_Held]] = {tile.xy: set() for tile in tiles}
        moves = {move for tile in tiles for move in self._moves(tile)}
        for _ in range(_HOPS):
            known = sum(map(len, (*self._from.values(), *self._to.values())))
            for move in moves:
                self._carry(move)
            if known == sum(map(len, (*self._from.values(), *self._to.values()))):
                break

    def tensors(self, xy: XY, low: int, high: int, *, source: bool) -> list[Tensor]:
        """What L1 `low` to `high` of a tile was read from (`source`), or is written to."""
        held = (self._from if source else self._to)[xy]
        found = [one.tensor for one in held if one.low < high and low < one.high]
        return list({id(one): one for one in found}.values())

    def _moves(self, tile: Tile) -> Iterator[_Move]:
        tile.drain_log()
        requests = Requests()
        for entry in tile.log:
            if entry[0] >= FIRST_CORE:
                for one in requests.stored(entry):
                    yield from self._move(tile.xy, one)

    def _move(self, own: XY, one: Request) -> Iterator[_Move]:
        left, top, right, bottom = one.box()
        for xy in self._from:
            if left <= xy[0] <= right and top <= xy[1] <= bottom:
                if one.reads:
                    length = one.high - one.low
                    yield _Move(xy, own, one.remote, one.remote + length, one.low)
                else:
                    yield _Move(own, xy, one.low, one.high, one.remote)
        word = self._network.endpoint(one.noc, (left, top))
        if one.multicast or word & 15 != noc_map.DRAM:
            return
        bank, end = word >> 4 & 0xFF, one.remote + one.high - one.low
        for piece, tensor in self._pieces:
            meet = piece.address < end and one.remote < piece.address + piece.size
            if meet and piece.bank == bank and one.reads == isinstance(tensor, InputSpec):
                held = (self._from if one.reads else self._to)[own]
                held.add(_Held(one.low, one.high, tensor))

    def _carry(self, move: _Move) -> None:
        """What is known of one end holds for the other."""
        ahead = move.to - move.low
        for held, near, far, by in (
            (self._from, move.source, move.target, ahead),
            (self._to, move.target, move.source, -ahead),
        ):
            first, last = (move.low, move.high) if by == ahead else (move.to, move.high + ahead)
            for one in list(held[near]):
                if one.low < last and first < one.high:
                    low, high = max(one.low, first) + by, min(one.high, last) + by
                    held[far].add(_Held(low, high, one.tensor))


def _pieces(program: Program) -> Iterator[tuple[Any, Tensor]]:
    """The pages of the tensors in DRAM."""
    tensors: list[Tensor] = [*program.inputs, *program.outputs]
    for tensor in tensors:
        if tensor.dram is not None:
            for piece in tensor.dram.pieces(tensor.size):
                yield piece, tensor
