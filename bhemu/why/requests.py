"""Tensors in DRAM that requests of tiles move, and the last request that wrote an element."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.machine.tile import Tile
from bhemu.program.specs import InputSpec, OutputSpec, Program
from bhemu.program.tensor import bit_offset
from bhemu.why.check import Context
from bhemu.why.order.conflicts import tiles
from bhemu.why.order.sent import Sent
from bhemu.why.order.tiles import Tiles
from bhemu.why.steps import where

# Which tensors of DRAM the NoC brings to L1 of which tile, or takes from there, in a whole run.

_HOPS = 32  # tiles on the way
Tensor = InputSpec | OutputSpec


class _Held(NamedTuple):
    """L1 `low` to `high` holds bytes of a tensor."""

    low: int
    high: int
    tensor: Tensor


class _Move(NamedTuple):
    """Between L1 of two observed tiles."""

    source: int
    target: int
    low: int
    high: int
    to: int


class Moved:
    """The tensors that requests of observed tiles have moved, by tile (number of its observer).

    Time does not count: a range belongs to every tensor that was ever there.
    """

    def __init__(self, program: Program, tiles: Tiles) -> None:
        self._pieces = list(_pieces(program))
        self._from: list[set[_Held]] = [set() for _ in tiles.observers]
        self._to: list[set[_Held]] = [set() for _ in tiles.observers]
        moves = {move for sent in tiles.sent for one in sent for move in self._moves(one)}
        for _ in range(_HOPS):
            known = sum(map(len, (*self._from, *self._to)))
            for move in moves:
                self._carry(move)
            if known == sum(map(len, (*self._from, *self._to))):
                break

    def tensors(self, n: int, low: int, high: int, *, source: bool) -> list[Tensor]:
        """The tensors from which L1 `low` to `high` came (`source`), or to which it goes."""
        held = (self._from if source else self._to)[n]
        found = [one.tensor for one in held if one.low < high and low < one.high]
        return list({id(one): one for one in found}.values())

    def _moves(self, one: Sent) -> Iterator[_Move]:
        if not (one.reads or one.takes_data):
            return
        (low, high), (there, end) = one.own, one.remote
        for n in one.reached:
            if one.reads:
                yield _Move(n, one.tile, there, end, low)
            else:
                yield _Move(one.tile, n, low, high, there)
        bank = one.bank
        for piece, tensor in self._pieces if bank is not None else ():
            meet = piece.address < end and there < piece.address + piece.size
            if meet and piece.bank == bank and one.reads == isinstance(tensor, InputSpec):
                held = (self._from if one.reads else self._to)[one.tile]
                held.add(_Held(low, high, tensor))

    def _carry(self, move: _Move) -> None:
        """Carry the tensors of one end of a move over to the other."""
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


# The last request of a core that has written an element of an output in DRAM.


class Written(NamedTuple):
    """A request of a tile that has written an element.

    low: the address of the element in L1 of that tile; None if it took no bytes from there.
    """

    tile: Tile
    where: Where
    clock: int
    low: int | None

    def __str__(self) -> str:
        source = "by" if self.low is None else f"from L1 {self.low:#x} of"
        return f"written at clock {self.clock} {source} tile ({self.tile.xy[0]},{self.tile.xy[1]})"


def written(
    context: Context, spec: OutputSpec, index: tuple[int, ...]
) -> tuple[Written | None, str]:
    """The last request that has written an element of an output in DRAM, and a sentence about it.

    None if no core has written it; the sentence is empty if that is not known.
    """
    assert spec.dram is not None
    together = tiles(context) if JIT else None
    if together is None:
        return None, ""
    at = bit_offset(index, spec.shape, spec.dtype, spec.layout) // 8
    pieces = spec.dram.pieces(spec.size)
    piece = next(one for one in pieces if one.offset <= at < one.offset + one.size)
    target = piece.address + at - piece.offset

    def writes(one: Sent) -> bool:
        low, end = one.remote
        return not one.reads and one.bank == piece.bank and low <= target < end

    last = last_sent(context, writes)
    if last is None:
        text = f"no request of a core has written it: DRAM bank {piece.bank}, {target:#x}"
        return None, "" if together.few else text
    tile = together.observers[last.tile].tile
    low = last.own[0] + target - last.remote[0] if last.takes_data else None
    found = Written(tile, where(tile, last.step), last.step.clock, low)
    return found, str(found)


def last_sent(context: Context, chosen: Callable[[Sent], bool]) -> Sent | None:
    """The last request of the observed tiles that is `chosen`."""
    together = tiles(context)
    found = [one for sent in (together.sent if together else ()) for one in sent if chosen(one)]
    return max(reversed(found), key=lambda one: one.step.clock, default=None)
