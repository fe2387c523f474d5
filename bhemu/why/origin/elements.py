"""Elements of outputs: the request that wrote them to DRAM, and their causes on a tile."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from bhemu.debug.value_origin import datum, element
from bhemu.errors import InputError, Where
from bhemu.jit.subset import JIT
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.program.coordinates import XY
from bhemu.program.specs import OutputSpec, Piece
from bhemu.program.tensor import bit_offset
from bhemu.why.check import Context
from bhemu.why.findings import in_words, place
from bhemu.why.order.conflicts import observed, tiles
from bhemu.why.order.sent import Sent
from bhemu.why.origin.chain import Link, links_behind
from bhemu.why.steps import where

_NEAR = 32  # pieces of an output


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


def beside(context: Context, spec: OutputSpec, index: tuple[int, ...]) -> Written | None:
    """The last request that wrote the piece of an output in DRAM nearest to an element."""
    assert spec.dram is not None
    at = bit_offset(index, spec.shape, spec.dtype, spec.layout) // 8
    pieces = sorted(spec.dram.pieces(spec.size), key=lambda one: abs(one.offset - at))
    for piece in pieces[:_NEAR]:
        end = piece.address + piece.size

        def writes(one: Sent, piece: Piece = piece, end: int = end) -> bool:
            meets = one.remote[0] < end and piece.address < one.remote[1]
            return not one.reads and one.bank == piece.bank and meets

        if (last := last_sent(context, writes)) is not None:
            tile = observed(context)[last.tile].tile
            return Written(tile, where(tile, last.step), last.step.clock, None)
    return None


def last_sent(context: Context, chosen: Callable[[Sent], bool]) -> Sent | None:
    """The last request of the observed tiles that is `chosen`."""
    together = tiles(context)
    found = [one for sent in (together.sent if together else ()) for one in sent if chosen(one)]
    return max(reversed(found), key=lambda one: one.step.clock, default=None)


def with_history(context: Context, xy: XY) -> Tile:
    """A tile of a chip after one more run, with its history."""
    chip = context.launch(engine="compiled", **context.alone)
    tile: Tile = chip.tile[xy]
    tile.keep_history()
    context.finish(chip, limit=context.most)
    return tile


@dataclass(frozen=True)
class Causes:
    """Of an element: its causes, their tile, the request that wrote it and what is said of that."""

    tile: Tile | None
    links: list[Link]
    sent: Written | None = None
    told: str = ""


def causes(
    context: Context,
    tile: Tile | None,
    spec: OutputSpec,
    index: tuple[int, ...],
    *,
    follow: bool = True,
) -> Causes:
    """The causes of an element of an output.

    tile: whose L1 holds it, with its history; None if that takes one more run, which is made if
    `follow` says so.
    """
    sent, told, clock, xy = None, "", context.end, spec.tile
    if spec.dram is not None:
        sent, told = written(context, spec, index)
        tile, xy = None, sent.tile.xy if sent is not None and sent.low is not None else None
    if tile is None and follow and xy is not None:
        tile = with_history(context, xy)
    if tile is None:
        return Causes(None, [], sent, told)
    name = f"{spec.name}[{','.join(map(str, index))}]"
    base, then = resolve(tile, spec.at) if sent is None else 0, None
    if sent is not None and sent.low is not None:
        base = sent.low - bit_offset(index, spec.shape, spec.dtype, spec.layout) // 8
        clock = then = sent.clock
    at, mask = datum(base, spec, index)
    name = name if sent is None else f"{at:#x}"
    found = (Span(at & ~3, 4, mask),)
    links = links_behind(tile, context.program, "brisc", name, found, then)
    if links[0].where is None and (packed := _last_pack(context, tile, at, clock)) is not None:
        text = f"the last PACR there has left it so: {in_words(place(*packed))}"
        links[0] = replace(links[0], text=f"{links[0].text}; {text}")
    return Causes(tile, links, sent, told)


def _last_pack(context: Context, tile: Tile, at: int, clock: int) -> tuple[Where, int] | None:
    """The last PACR to L1 `at` of a tile up to a clock."""
    seen = [one for one in observed(context) if one.tile.xy == tile.xy] if JIT else []
    packs = [
        one.step
        for one in (one for each in seen for one in each.transfers())
        if not one.reads and one.first <= at < one.end and one.step.clock <= clock
    ]
    return (where(seen[0].tile, packs[-1]), packs[-1].clock) if packs else None


def links_of(context: Context, tile: Tile, core: str, text: str) -> list[Link]:
    """As links_behind; also for an element of an output in DRAM, of whatever tile wrote it."""
    spec, index = element(context.program, text)
    if spec is None or (spec.dram is None and spec.tile not in (None, tile.xy)):
        return links_behind(tile, context.program, core, text)
    found = causes(context, tile, spec, index)
    if spec.dram is None:
        return found.links
    if found.sent is None:
        raise InputError(f"{text}: {found.told or 'which request has written it is not known'}")
    address, mask = datum(0, spec, index)
    data = context.symptom.outputs[context.program.outputs.index(spec)][address & ~3 :][:4]
    value = (int.from_bytes(data, "little") & mask) // (mask & -mask)
    first = Link(0, text, None, value, found.sent.clock, found.sent.where, str(found.sent))
    return [first, *(replace(link, depth=link.depth + 1) for link in found.links)]
