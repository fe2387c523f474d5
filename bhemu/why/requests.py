"""Requests on the network: who sent them, and which page of which tensor they move."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices import niu_request as niu
from bhemu.devices import noc_map
from bhemu.errors import BhemuError
from bhemu.machine.error_text import where_core
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.noc.grid import XY
from bhemu.program.outputs import OutputResult
from bhemu.program.specs import InputSpec, OutputSpec, Program
from bhemu.program.tensor import bit_offset
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place

# What the cores of a tile have asked of the NoC, as the log of their stores tells.

_COORDINATE = 0x3F


@dataclass(frozen=True)
class Request:
    """A read or write of a range of the own L1, by the store of `core` at `pc` that sends it off.

    `remote` is the address at the other end, `given` the word that names it.
    """

    core: int
    pc: int
    noc: int
    reads: bool
    low: int
    high: int
    remote: int
    given: int
    multicast: bool

    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of where it goes."""
        x, y = self.given & _COORDINATE, self.given >> 6 & _COORDINATE
        if not self.multicast:
            return x, y, x, y
        u, v = self.given >> 12 & _COORDINATE, self.given >> 18 & _COORDINATE
        return min(x, u), min(y, v), max(x, u), max(y, v)


class Requests:
    """The request initiators of a tile, as far as stores of its cores tell."""

    def __init__(self) -> None:
        self._registers: dict[tuple[int, int], int] = {}

    def stored(self, entry: Entry) -> Iterator[Request]:
        """The request that a store of the log sends off, if any that moves data."""
        who, value, pc, address, _ = entry
        for noc, base in enumerate((mm.NOC0_BASE, mm.NOC1_BASE)):
            offset = address - base
            if not 0 <= offset < 4 * mm.NOC_CMD_BUF_OFFSET:
                continue
            buffer, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            self._registers[4 * noc + buffer, register] = value
            if register == mm.NOC_CMD_CTRL:
                yield from self._sent(4 * noc + buffer, who - FIRST_CORE, pc)

    def _sent(self, initiator: int, core: int, pc: int) -> Iterator[Request]:
        def held(register: int) -> int:
            return self._registers.get((initiator, register), 0)

        control, length = held(mm.NOC_CTRL), held(mm.NOC_AT_LEN_BE)
        target, back = ((held(first), held(first + 4) << 32, held(first + 8))
                        for first in (mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO))  # fmt: skip
        reads = control & 3 == niu.READ
        if not reads and (control & 3 != niu.WRITE or control & (niu.INLINE | niu.BYTE_ENABLES)):
            return
        own, other = (back, target) if reads else (target, back)
        yield Request(
            *(core, pc, initiator >> 2, reads, own[0], own[0] + length, other[0] | other[1]),
            given=other[2],
            multicast=bool(control & niu.MULTICAST),
        )


# Which tensors of DRAM the NoC brings to L1 of which tile, or takes from there, in a whole run.

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


# Who wrote an element of an output in DRAM: the last request of a core to that place.


def named(context: Context, result: OutputResult, found: Finding) -> Finding:
    """What is said of a wrong output in DRAM, with who wrote its first wrong element."""
    spec, report = result.spec, result.report
    if spec.dram is None or report is None or report.first is None:
        return found
    at = bit_offset(report.first.index, spec.shape, spec.dtype, spec.layout) // 8
    pieces = spec.dram.pieces(spec.size)
    piece = next(one for one in pieces if one.offset <= at < one.offset + one.size)
    target = piece.address + at - piece.offset
    last = last_sent(context, lambda chip, _, one: _reaches(chip, one, piece.bank, target))
    if last is None:
        told = f"no request of a core has written it: DRAM bank {piece.bank}, {target:#x}"
        return replace(found, evidence=(*found.evidence, told))
    tile, one, clock = last
    low = one.low + target - one.remote
    told = f"written at clock {clock} from L1 {low:#x} of tile ({tile.xy[0]},{tile.xy[1]})"
    culprit = place(where_core(tile, one.core, one.pc), clock, tile)
    return replace(found, culprit=culprit, evidence=(*found.evidence, told))


Sent = tuple[Tile, Request, int]
"""A request, the tile that has sent it, and when."""


def last_sent(context: Context, chosen: Callable[[Any, Tile, Request], bool]) -> Sent | None:
    """The last request of a program that is `chosen` by chip, tile and request."""
    if "requests" not in context.facts:
        context.facts["requests"] = _requests(context)
    chip, sent = context.facts["requests"]
    found = [one for one in sent if chosen(chip, one[0], one[1])]
    return max(reversed(found), key=lambda one: one[2], default=None)


def _requests(context: Context) -> tuple[Any, list[Sent]]:
    """One more run: the chip behind it, and what its tiles have asked for."""
    machine = context.launch(engine="compiled", **context.alone)
    tiles = context.tiles(machine)
    for tile in tiles:
        log_stores(tile)
    with suppress(BhemuError):
        machine.run(limit=context.most)
    return machine, [one for tile in tiles for one in _of_tile(tile)]


def _of_tile(tile: Tile) -> Iterator[Sent]:
    tile.drain_log()
    known = Requests()
    for entry in tile.log:
        if entry[0] >= FIRST_CORE:
            yield from ((tile, one, entry[4]) for one in known.stored(entry))


def _reaches(machine: Any, one: Request, bank: int, address: int) -> bool:
    """Whether a request writes to `address` of a bank."""
    if one.reads or one.multicast or not one.remote <= address < one.remote + one.high - one.low:
        return False
    word = machine.network.endpoint(one.noc, one.box()[:2])
    return bool(word & 15 == noc_map.DRAM and word >> 4 & 0xFF == bank)
