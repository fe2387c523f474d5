"""Who wrote an element of an output in DRAM: the last request of a core to that place."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from bhemu.devices import noc_map
from bhemu.errors import BhemuError, Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.program.outputs import OutputResult
from bhemu.program.tensor import bit_offset
from bhemu.tensix.recording import FIRST_CORE
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.network.requests import Request, Requests
from bhemu.why.network.tensors import log_stores


@dataclass(frozen=True)
class Sent:
    """A write to DRAM: who sent it, when, from which L1."""

    where: Where
    clock: int
    low: int
    tile: Any


def named(context: Context, result: OutputResult, found: Finding) -> Finding:
    """What is said of a wrong output in DRAM, with who wrote its first wrong element."""
    spec, report = result.spec, result.report
    if spec.dram is None or report is None or report.first is None:
        return found
    at = bit_offset(report.first.index, spec.shape, spec.dtype, spec.layout) // 8
    pieces = spec.dram.pieces(spec.size)
    piece = next(one for one in pieces if one.offset <= at < one.offset + one.size)
    sent = _last(context, piece.bank, piece.address + at - piece.offset)
    if sent is None:
        told = f"no request of a core has written it: DRAM bank {piece.bank}, {piece.address:#x}"
        return replace(found, evidence=(*found.evidence, told))
    tile = "({},{})".format(*sent.tile.xy)
    told = f"written at clock {sent.clock} from L1 {sent.low:#x} of tile {tile}"
    culprit = place(sent.where, sent.clock, sent.tile)
    return replace(found, culprit=culprit, evidence=(*found.evidence, told))


def _last(context: Context, bank: int, address: int) -> Sent | None:
    machine, sent = requests(context)
    found: Sent | None = None
    for tile, one, clock in sent:
        later = found is None or clock >= found.clock
        if later and _reaches(machine, one, bank, address):
            by = where_core(tile, one.core, one.pc)
            found = Sent(by, clock, one.low + address - one.remote, tile)
    return found


Asked = tuple[Any, list[tuple[Tile, Request, int]]]


def requests(context: Context) -> Asked:
    """The chip after one more run, and what its tiles have asked for: tile, request, clock."""
    if "requests" not in context.facts:
        context.facts["requests"] = _requests(context)
    found: Asked = context.facts["requests"]
    return found


def _requests(context: Context) -> Asked:
    machine = context.launch(engine="compiled", **context.alone)
    tiles = context.tiles(machine)
    for tile in tiles:
        log_stores(tile)
    with suppress(BhemuError):
        machine.run(limit=context.most)
    return machine, [one for tile in tiles for one in _of_tile(tile)]


def _of_tile(tile: Tile) -> Iterator[tuple[Tile, Request, int]]:
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
