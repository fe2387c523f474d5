"""Elements of outputs: the request that wrote them to DRAM, their causes on a tile, and what wrong
ones are of those that are expected."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bhemu.debug.numerics import datum, element, element_name
from bhemu.devices import niu_request as request
from bhemu.errors import InputError, Where
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import outside_headers
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import XY
from bhemu.program.input_files import read_array
from bhemu.program.outputs import OutputResult
from bhemu.program.specs import InputSpec, OutputSpec
from bhemu.program.tensor import (
    EDGE,
    Floats,
    bit_offset,
    decode,
    encoded_size,
    in_words,
    number_text,
    widen,
)
from bhemu.text import joined
from bhemu.why.chain import ATOMIC, RELU, Link, left_in_dst, links_behind
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place, with_role
from bhemu.why.order.conflicts import observed, requests, seen_at, tiles
from bhemu.why.order.tiles import Sent
from bhemu.why.overwritten import address_modes
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
    piece = next(p for p in spec.dram.pieces(spec.size) if p.offset <= at < p.offset + p.size)
    target = piece.address + at - piece.offset
    last = _last_write(context, piece.bank, target, 1)
    if last is None:
        text = f"no request of a core has written it: DRAM bank {piece.bank}, {target:#x}"
        return None, "" if together.few else text
    found = _by(context, last, last.own[0] + target - last.remote[0] if last.takes_data else None)
    return found, str(found)


def _last_write(context: Context, bank: int, at: int, size: int) -> Sent | None:
    """The last request that has written some of these bytes of DRAM."""

    def writes(one: Sent) -> bool:
        low, high = one.remote
        return not one.reads and one.bank == bank and low < at + size and at < high

    return last_sent(context, writes)


def _by(context: Context, sent: Sent, low: int | None = None) -> Written:
    tile = observed(context)[sent.tile].tile
    return Written(tile, where(tile, sent.step), sent.step.clock, low)


def beside(context: Context, spec: OutputSpec, index: tuple[int, ...]) -> Written | None:
    """The last request that wrote the piece of an output in DRAM nearest to an element."""
    assert spec.dram is not None
    at = bit_offset(index, spec.shape, spec.dtype, spec.layout) // 8
    pieces = sorted(spec.dram.pieces(spec.size), key=lambda one: abs(one.offset - at))[:_NEAR]
    lasts = (_last_write(context, one.bank, one.address, one.size) for one in pieces)
    return next((_by(context, last) for last in lasts if last is not None), None)


def last_sent(context: Context, chosen: Callable[[Sent], bool]) -> Sent | None:
    """The last request of the observed tiles that is `chosen`."""
    found = [one for one in requests(context) if chosen(one)]
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
    sent, told, xy = None, "", spec.tile
    if spec.dram is not None:
        sent, told = written(context, spec, index)
        tile, xy = None, sent.tile.xy if sent is not None and sent.low is not None else None
    if tile is None and follow and xy is not None:
        tile = with_history(context, xy)
    if tile is None:
        return Causes(None, [], sent, told)
    name, then, first = element_name(spec.name, index), None, datum(0, spec, index)[0]
    base = 0 if sent is not None else resolve(tile, spec.at)
    if sent is not None and sent.low is not None:
        base, then, name = sent.low - first, sent.clock, f"{sent.low:#x}"
    at, mask = datum(base, spec, index)
    seen, found = SeenOf(context, tile.xy) if JIT else None, (Span(at & ~3, 4, mask),)
    links = links_behind(tile, context.program, "brisc", name, found, then, seen)
    return Causes(tile, links, sent, told)


@dataclass(frozen=True)
class SeenOf:
    """What the observed run tells of the tile at `xy`."""

    context: Context
    xy: XY

    def packed(self, address: int, clock: int) -> int | None:
        """The clock before the last PACR to an address of L1, up to a clock."""
        own = seen_at(self.context, self.xy)
        moves = (one for one in (own.transfers() if own else ()) if not one.reads)
        clocks = (one.step.clock for one in moves if one.first <= address < one.end)
        return max((one for one in clocks if one < clock), default=None)

    def source(self, where: Where, address: int, clock: int) -> str:
        """Whence a request that `where` sent has brought what lies at an address of L1."""

        def brought(one: Sent) -> bool:
            low, high = one.own if one.reads else one.remote
            core, tile = CORE_NAMES[one.core], observed(self.context)[one.tile].tile
            sender = (tile.xy, core, one.step.pc) == (where.tile, where.core, where.pc)
            in_time = where.tile != self.xy or one.step.clock <= clock
            return sender and low <= address < high and in_time

        one = last_sent(self.context, brought)
        if one is None:
            return ""
        if not one.reads:
            x, y = observed(self.context)[one.tile].tile.xy
            if one.kind == request.ATOMIC:
                return ATOMIC
            from_there = one.own[0] + address - one.remote[0]
            return f" from L1 {from_there:#x} of tile ({x},{y})" if one.takes_data else ""
        at = one.remote[0] + address - one.own[0]
        if one.bank is None:
            return ""
        for tensor in self.context.program.inputs:
            for piece in tensor.dram.pieces(tensor.size) if tensor.dram else ():
                if piece.bank == one.bank and piece.address <= at < piece.address + piece.size:
                    offset = piece.offset + at - piece.address
                    return f" from {tensor.file.name}, {offset:#x} bytes from its beginning"
        return f" from DRAM bank {one.bank} {at:#x}"


def links_of(context: Context, tile: Tile, core: str, text: str) -> list[Link]:
    """As links_behind; also for an element of an output in DRAM, of whatever tile wrote it."""
    spec, index = element(context.program, text)
    if spec is None or (spec.dram is None and spec.tile not in (None, tile.xy)):
        seen = SeenOf(context, tile.xy) if JIT else None
        return links_behind(tile, context.program, core, text, seen=seen)
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


# A wrong output: the line that made its first wrong element, or that left it out.

_WORD = 4
_RUN, _ALIKE = 16, 1e-3  # neighbours that are compared, by this relative distance
_VALUES = 4  # that these have at least
_PART = 16  # bytes of a tensor that are moved together
_NEXT = "nothing has written it, and what is next to it this line writes"


def of_output(
    context: Context, tile: Tile | None, result: OutputResult, *, follow: bool
) -> list[Finding]:
    """The finding of a wrong element with its causes, then notes of the stores among them.

    tile: the only one of a program, with its history; follow: of a chip find the causes by another
    run. The culprit is the move that is wrong if the value belongs at another index, if that can be
    told; else the first cause that does more than move it, else the word that brought it to Dst.
    """
    report, spec = result.report, result.spec
    assert report is not None and report.first is not None
    found = causes(context, tile, spec, report.first.index, follow=follow)
    if not _changes(found.links) and spec.dram is None and report.worst is not None:
        worst = causes(context, found.tile, spec, report.worst.index, follow=False)
        found = worst if _changes(worst.links) else found
    links, sent, tile = found.links, found.sent, found.tile
    context.touched += [(link.where, link.clock) for link in links if link.where is not None]
    changed = _changes(links)
    made = next((link for link in changed if not link.moves), None)
    if made is not None and made.mnemonic == "PACR":  # whose ReLU makes it 0
        made = next((link for link in changed if link.place == RELU), made)
    text, sure = joined(str(report)), True
    text += "; ReLU makes it 0" if made is not None and made.place == RELU else ""
    if (belongs := _belongs(context, result)) is not None:
        text += f"; what is there belongs at {belongs}: it, or what it is made of, is moved wrongly"
        made, sent = _move_at_fault(context, found, spec)
        sure = made is not None or sent is not None
        made = made if sure else next((one for one in changed if one.moves), None)
    else:
        data = context.symptom.outputs[context.program.outputs.index(spec)]
        text += relation(*pair(spec, data))
        unread, reader = _never_read(context) if JIT else ("", None)
        text += unread + _left_over(context, found) + address_modes(context, tile)
    if belongs is None and changed and made is None:
        text += "; nothing on its way does more than move it"
        made = next((link for link in changed if not link.leaves_dst), changed[0])
    special = math.isfinite(report.first.expected) and not math.isfinite(report.first.got)
    specials = (link for link in links if special and is_special(link))
    born = min(specials, key=lambda link: link.clock or 0, default=None)
    if born is not None:
        made = born
        text += f"; infinity or NaN is first in {born.place}"
    role = "made by" if belongs is None else "culprit" if sure else "moved by"
    role = role if born is None else "culprit"  # else what it is made of may be wrong
    culprit = {} if made is None else with_role(place(made.where, made.clock, tile), role)
    if belongs is None and born is None and reader is not None:
        culprit = with_role(place(reader.where, reader.clock, reader.tile), "read by")
    if sent is not None and not culprit:  # at fault if its address is
        culprit = place(sent.where, sent.clock, sent.tile)
        culprit = culprit if belongs else with_role(culprit, "written by")
    if spec.dram is not None and found.sent is None and found.told:
        if (near := beside(context, spec, report.first.index)) is not None:
            text, culprit = f"{text}; {_NEXT}", place(near.where, near.clock, near.tile)
    lines = ("  " * link.depth + str(link) for link in links)
    evidence = (found.told, *lines) if found.told else tuple(lines)
    victim = {"output": spec.name, "index": list(report.first.index)}
    output = Finding("output", "error", text, culprit, victim, evidence, "")
    if not culprit and not changed and tile is not None:
        output = _beside(context, tile, result, output)
    return [output, *_stored(tile, links[1:], victim)]


def _left_over(context: Context, found: Causes) -> str:
    """What a word has added to although it was packed before, for the end of a sentence."""
    tile = found.tile
    if tile is None or not JIT:
        return ""
    seen = seen_at(context, tile.xy)
    packs = [one.step for one in (seen.transfers() if seen else ()) if not one.reads]
    if (both := left_in_dst(tile, found.links, packs)) is None:
        return ""
    adds, packed = both
    text = f"; {adds.mnemonic} adds to {adds.before:#x}, which {adds.place} still holds: packed at"
    return f"{text} clock {packed.clock} and not cleared since"


def _changes(links: list[Link]) -> list[Link]:
    return [link for link in links if link.where is not None]


def _stored(tile: Tile | None, links: Iterable[Link], victim: dict[str, Any]) -> Iterator[Finding]:
    """Notes of the stores of cores to L1 among the causes, each line once."""
    lines: set[tuple[Any, ...]] = set()
    for link in links:
        of_core = link.where and link.where.thread is None and link.where.word is not None
        if not of_core or not link.place.startswith("0x"):
            continue
        who = place(link.where, link.clock, tile)
        line = who.get("core"), who.get("file"), who.get("line")
        if who.get("line") and line not in lines:
            lines.add(line)
            text = f"a wrong element of {victim['output']} comes from what this line has stored"
            text += ", as right ones may"
            told, who = (str(link),), with_role(who, "stored by")
            yield Finding("output", "note", text, who, victim, told, "")


def _belongs(context: Context, result: OutputResult) -> list[int] | None:
    """The only index at which the first wrong element and its neighbours are expected, if any."""
    spec, report = result.spec, result.report
    if spec.expect is None or report is None or report.first is None or len(spec.shape) < 1:
        return None
    got, wanted = pair(spec, context.symptom.outputs[context.program.outputs.index(spec)])
    *row, column = report.first.index
    run = got[tuple(row)][column : column + _RUN]
    if len(run) < _RUN or np.unique(run).size < _VALUES:
        return None
    alike = np.isclose(sliding_window_view(wanted, _RUN, axis=-1), run, rtol=_ALIKE, atol=0)
    places = np.argwhere(alike.all(axis=-1)).tolist()
    return places[0] if len(places) == 1 and places[0] != [*row, column] else None


def _move_at_fault(
    context: Context, found: Causes, spec: OutputSpec
) -> tuple[Link | None, Written | None]:
    """The move of a value that is wrong: one in, if inputs are read unevenly and the output is
    written evenly; that out, if it is the other way round; none if that does not tell."""
    evenly = [_is_even(context, one) for one in context.program.inputs]
    reads, writes = False not in evenly, _is_even(context, spec)
    moves = [link for link in found.links if link.where is not None and link.moves]
    if reads and writes is False:
        return (None, found.sent) if found.sent is not None else (next(iter(moves), None), None)
    if writes and not reads:
        tensor = context.program.inputs[evenly.index(False)]
        if tensor.dram is None:
            words = (one for one in moves[1:] if one.where and one.where.thread is not None)
            return next(words, None), None
        return None, _reader(context, tensor)  # which asks for the wrong ones
    return None, None


def _reader(context: Context, tensor: InputSpec) -> Written | None:
    """The only line that reads an input, by UNPACR in L1 or by requests in DRAM."""
    words = observed(context)[0].transfers() if tensor.dram is None else ()
    at = resolve(context.tile, tensor.at) if tensor.dram is None else 0
    reads = (w for w in words if w.reads and w.first < at + tensor.size and at < w.end)
    steps = {one.step.pc: one.step for one in reads}.values()
    asked = {(one.tile, one.step.pc): one for one, _, _ in requests_of(context, tensor)}
    by = [Written(context.tile, where(context.tile, one), one.clock, None) for one in steps]
    by += [_by(context, one) for one in asked.values()]
    lines = [one._replace(where=outside_headers(one.where)) for one in by]
    named = {(one.where.core, one.where.file, one.where.line) for one in lines}
    return lines[0] if len(named) == 1 else None


def _never_read(context: Context) -> tuple[str, Written | None]:
    """Of the first input that is read in part alone: what of it nothing reads, for the end of a
    sentence, and the line that reads the others. Inputs in L1 of a chip are not looked at."""
    for tensor in context.program.inputs:
        edge = EDGE.get(tensor.layout)
        unit, noun = 0, ""  # what of it is read as a whole: 0 where that is not known
        if tensor.dram is not None:
            unit, noun = tensor.dram.page, "pages"
        elif edge is not None:
            unit = encoded_size((edge, edge), tensor.dtype, tensor.layout)
            noun = f"blocks of {edge}x{edge}"
        read = np.zeros(tensor.size // unit if unit else 0, bool)
        for low, high in _moves_of(context, tensor) if read.size > 1 else ():
            if low < min(high, tensor.size):
                read[low // unit : -(-high // unit)] = True
        if not read.any() or read.all():
            continue
        if tensor.dram is None:
            first = resolve(context.tile, tensor.at) >> 2
            held = observed(context)[0].record
            cells = slice(first, first + tensor.size // 4)
            seen = held.reader[cells].any(axis=1) | (held.writer[cells] != 0)
            read |= seen[: read.size * unit // 4].reshape(read.size, -1).any(axis=1)
        if not read.all():
            left = np.flatnonzero(~read)
            text = f"; of {tensor.file.name} {left.size} of {read.size} {noun} are never read,"
            text += f" the first {int(left[0]) * unit:#x} bytes from its beginning"
            return text, _reader(context, tensor)
    return "", None


def _is_even(context: Context, tensor: InputSpec | OutputSpec) -> bool | None:
    """Whether all parts of a tensor are moved equally often: by UNPACR or PACR in L1, by requests
    in DRAM. None if they are not moved, or that is not known."""
    counts = np.zeros(-(-tensor.size // _PART), np.int64)
    for low, high in _moves_of(context, tensor):
        counts[low // _PART : high // _PART] += 1
    return bool((counts == counts[0]).all()) if counts.any() else None


def _moves_of(context: Context, tensor: InputSpec | OutputSpec) -> Iterator[tuple[int, int]]:
    """The bytes of a tensor that each move takes or brings, in order; none if not all are seen."""
    reads = isinstance(tensor, InputSpec)
    if tensor.dram is None and JIT and context.program.is_alone:
        at = resolve(context.tile, tensor.at)
        for move in (one for one in observed(context)[0].transfers() if one.reads == reads):
            yield max(move.first - at, 0), max(move.end - at, 0)
    together = tiles(context) if JIT else None
    if together is not None and not together.few:
        yield from ((low, high) for _, low, high in requests_of(context, tensor))


def requests_of(
    context: Context, tensor: InputSpec | OutputSpec
) -> Iterator[tuple[Sent, int, int]]:
    """The requests of observed tiles that move a tensor in DRAM, and which bytes of it."""
    if tensor.dram is None:
        return
    by_bank: dict[int | None, list[Sent]] = {}
    for one in requests(context) if JIT else ():
        if one.reads == isinstance(tensor, InputSpec):
            by_bank.setdefault(one.bank, []).append(one)
    ranges = {bank: np.array([one.remote for one in sent]) for bank, sent in by_bank.items()}
    for piece in tensor.dram.pieces(tensor.size):
        if piece.bank in ranges:
            parts = np.clip(ranges[piece.bank] - piece.address, 0, piece.size)
            for n in np.flatnonzero(parts[:, 0] < parts[:, 1]).tolist():
                low, high = parts[n].tolist()
                yield by_bank[piece.bank][n], piece.offset + low, piece.offset + high


# Infinity or NaN: where it is first, and whether PROGRAM.toml gives it.


def is_special(link: Link) -> bool:
    """Whether infinity or NaN came into a register of the vector unit or a 16-bit row of Dst."""
    if link.where is None:
        return False
    if link.place.startswith("lreg:"):
        return link.after >> 23 & 0xFF == 0xFF
    return link.place.startswith("dst:") and link.after & 0xFF == 0xFF and link.after < 1 << 16


# An element that nothing has changed.


def _beside(context: Context, tile: Tile, result: OutputResult, found: Finding) -> Finding:
    """The finding with the writer of the nearest word of the output that is not zero."""
    low = resolve(tile, result.spec.at)
    spec, index = result.spec, found.victim["index"]
    written = np.flatnonzero(np.frombuffer(tile.read(low, spec.size), "u1"))
    if not written.size:
        return found
    at = bit_offset(tuple(index), spec.shape, spec.dtype, spec.layout) // 8
    near = low + int(written[np.argmin(abs(written - at))]) & ~(_WORD - 1)
    links = links_behind(tile, context.program, "brisc", f"{near:#x}:{_WORD}")
    if not links or links[0].where is None:
        return found
    text = f"{found.text}; {_NEXT}"
    culprit = place(links[0].where, links[0].clock, tile)
    return replace(found, text=text, culprit=culprit, evidence=(*found.evidence, str(links[0])))


# What a wrong output is of the expected one: its negative, a multiple, transposed, a sum.

_FEW, _KINDS = 16, 4  # values that differ, and of different size, by which a relation is told
_ROUNDED = 2.0**-6  # by which a multiple or a sum may be off
_SURE = 8  # times what is off of a sum is less than what is added
_EDGES = (32, 16)  # of blocks: tiles, faces


def pair(spec: OutputSpec, data: bytes) -> tuple[Floats, Floats]:
    """The values of an output, `data` its bytes, and of the file that it is compared with."""
    assert spec.expect is not None
    got = widen(decode(data, spec.shape, spec.dtype, spec.layout))
    wanted = read_array(spec.expect, spec.dtype, spec.origin)
    if spec.dtype == "raw":
        wanted = np.frombuffer(wanted.tobytes(), np.uint8)
    return got, widen(wanted.reshape(spec.shape))


def relation(got: Floats, wanted: Floats) -> str:
    """For the end of a sentence: what holds for every element that differs, "" if nothing is known.

    Values are compared, not their patterns.
    """
    differs = got != wanted
    both = np.stack([got[differs], wanted[differs]])
    if not np.isfinite(both).all() or both.shape[1] < _FEW:
        return ""
    if max(np.unique(abs(values)).size for values in both) < _KINDS:
        return ""
    got, wanted = (np.where(np.isfinite(values), values, 0) for values in (got, wanted))
    found = next(chain(_of_elements(*both), _of_blocks(got, wanted)), "")
    return f"; {found}" if found else ""


def _of_elements(got: Floats, wanted: Floats) -> Iterator[str]:
    """Of the elements that differ: relations of each to what is expected of it."""
    if not got.any():
        yield "all that differ are 0" + (", which are to be negative" if (wanted < 0).all() else "")
    if not wanted.any() and (got < 0).all():
        yield "all that differ are negative, where 0 is expected"
    if (got == -wanted).all():
        yield "each that differs is the negative of what is expected"
    if np.ptp(got - wanted) == 0:
        more = float(got[0] - wanted[0])
        than = "more" if more > 0 else "less"
        yield f"each that differs is {number_text(abs(more))} {than} than expected"
    if wanted.all():
        factor = float(np.median(got / wanted))
        off = abs(got - factor * wanted)
        if abs(factor) > _ROUNDED < abs(factor - 1) and (off <= _ROUNDED * abs(got)).all():
            yield f"each that differs is {factor:.3g} times what is expected"


def _of_blocks(got: Floats, wanted: Floats) -> Iterator[str]:
    """Of the last two axes: what is transposed, and which block has another one added."""
    if got.ndim < 2:
        return
    *_, rows, columns = got.shape
    if rows == columns and (got == wanted.swapaxes(-1, -2)).all():
        yield "it is what is expected, transposed"
    for edge in (edge for edge in _EDGES if rows % edge == 0 == columns % edge):
        mine, other = _blocks(got, edge), _blocks(wanted, edge)
        wrong = np.flatnonzero((mine != other).any(axis=(1, 2)))
        if (mine[wrong] == other[wrong].swapaxes(1, 2)).all():
            yield f"each block of {edge}x{edge} elements that differs is transposed"
        first = int(wrong[0])
        more = mine[first] - other[first]
        size = abs(mine[first]) + abs(other[first]) + abs(other)
        near = (abs(other - more) <= _ROUNDED * size).all(axis=(1, 2))
        near &= abs(other - more).sum(axis=(1, 2)) * _SURE < abs(more).sum()
        near[first] = False
        if near.any():
            *outer, rows, columns = got.shape
            grid = (*outer, rows // edge, columns // edge)
            scale = (*(1 for _ in outer), edge, edge)
            both = (np.unravel_index(n, grid) for n in (first, int(np.argmax(near))))
            at, by = (in_words(tuple(map(int, np.multiply(one, scale)))) for one in both)
            yield f"the {edge}x{edge} elements at {at} are those expected there plus those at {by}"


def _blocks(values: Floats, edge: int) -> NDArray[np.float64]:
    """The blocks of the last two axes, (blocks, edge, edge)."""
    *_, rows, columns = values.shape
    parts = values.reshape(-1, rows // edge, edge, columns // edge, edge)
    return parts.swapaxes(2, 3).reshape(-1, edge, edge)
