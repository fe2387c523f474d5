"""Elements of outputs in DRAM: the request that wrote them, and their causes on its tile."""

from dataclasses import replace

from bhemu.debug.value_origin import datum, element
from bhemu.errors import InputError
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.program.coordinates import XY
from bhemu.program.schema import Program
from bhemu.program.specs import OutputSpec
from bhemu.program.tensor import bit_offset
from bhemu.why.check import Context
from bhemu.why.findings import in_words, place
from bhemu.why.order.conflicts import observed
from bhemu.why.origin.chain import Link, links_behind
from bhemu.why.requests import Written, written


def with_history(context: Context, xy: XY) -> Tile:
    """A tile of a chip after one more run, with its history."""
    chip = context.launch(engine="compiled", **context.alone)
    tile: Tile = chip.tile[xy]
    tile.keep_history()
    context.finish(chip, limit=context.most)
    return tile


def links_of_sent(
    tile: Tile, program: Program, spec: OutputSpec, index: tuple[int, ...], sent: Written
) -> list[Link]:
    """The causes of an element in L1 of `tile` at the clock when `sent` took it from there."""
    assert sent.low is not None
    base = sent.low - bit_offset(index, spec.shape, spec.dtype, spec.layout) // 8
    address, mask = datum(base, spec, index)
    found = (Span(address & ~3, 4, mask),)
    return links_behind(tile, program, "brisc", f"{address:#x}", found, sent.clock)


def _packed_as_it_was(context: Context, tile: Tile, link: Link, at: int, clock: int) -> Link:
    """The link of L1 `at` on a tile; where nothing has changed it, with the last PACR there.

    clock: the link is about what was there then.
    """
    if link.where is not None or not JIT:
        return link
    seen = (one.transfers() for one in observed(context) if one.tile.xy == tile.xy)
    packs = [
        one
        for transfers in seen
        for one in transfers
        if not one.reads and one.first <= at < one.end and one.step.clock <= clock
    ]
    if not packs:
        return link
    step = packs[-1].step
    who = in_words(place(where_core(tile, step.core, step.pc), step.clock))
    return replace(link, text=f"{link.text}; the last PACR there has left it so: {who}")


def links_of(context: Context, tile: Tile, core: str, text: str) -> list[Link]:
    """As links_behind; also for an element of an output in DRAM, of whatever tile wrote it."""
    spec, index = element(context.program, text)
    if spec is None or spec.dram is None:
        links = links_behind(tile, context.program, core, text)
        if spec is not None:
            at = datum(resolve(tile, spec.at), spec, index)[0]
            links[0] = _packed_as_it_was(context, tile, links[0], at, context.end)
        return links
    sent, told = written(context, spec, index)
    if sent is None:
        raise InputError(f"{text}: {told or 'which request has written it is not known'}")
    address, mask = datum(0, spec, index)
    data = context.symptom.outputs[context.program.outputs.index(spec)][address & ~3 :][:4]
    value = (int.from_bytes(data, "little") & mask) // (mask & -mask)
    first = Link(0, text, None, value, sent.clock, sent.where, str(sent))
    if sent.low is None:
        return [first]
    seen = with_history(context, sent.tile.xy)
    links = links_of_sent(seen, context.program, spec, index, sent)
    links[0] = _packed_as_it_was(context, sent.tile, links[0], sent.low, sent.clock)
    return [first, *(replace(link, depth=link.depth + 1) for link in links)]
