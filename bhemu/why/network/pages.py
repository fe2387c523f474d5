"""Pages of a tensor in DRAM that no request moves, while a line moves another one again.

What a run should have read or written and has not: the line that reads or writes one page twice has
the wrong address. It is asked where an output differs: kernels may leave pages out.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bhemu.devices import noc_map
from bhemu.errors import Where
from bhemu.machine.error_text import where_core
from bhemu.machine.tile import Tile
from bhemu.program.specs import InputSpec
from bhemu.why.check import Context
from bhemu.why.classes import likely
from bhemu.why.findings import Finding, outside_headers, place
from bhemu.why.network.requests import Request
from bhemu.why.network.senders import requests
from bhemu.why.network.tensors import Tensor

_NONE = -1  # the page of a request to a place where no tensor is
Line = tuple[Any, ...]  # tile, core, file, line
Moves = dict[Line, list[tuple[int, Where, int]]]  # page, who moves it, when


def left_out(context: Context) -> list[Finding]:
    """Of each tensor that is moved in part, the line that moves some of it again."""
    if not context.is_chip or context.symptom.error is not None or not context.symptom.wrong:
        return []
    tensors: list[Tensor] = [*context.program.inputs, *context.program.outputs]
    found = []
    for tensor in tensors:
        if tensor.dram is not None:
            found += list(_again(tensor, movers(context, tensor)))
    return found


def movers(context: Context, tensor: Tensor) -> Moves:
    """The pages of a tensor in DRAM that each line moves, as `_moves` tells."""
    machine, sent = requests(context)
    return _moves(machine, tensor, [move for move in sent if not move[1].multicast])


def _moves(machine: Any, tensor: Tensor, sent: Iterable[tuple[Tile, Request, int]]) -> Moves:
    """The pages of a tensor that each line moves, in order; where it moves any."""
    assert tensor.dram is not None
    pages = list(tensor.dram.pieces(tensor.size))
    found: Moves = {}
    for tile, one, clock in sent:
        word = machine.network.endpoint(one.noc, one.box()[:2])
        if word & 15 != noc_map.DRAM or one.reads != isinstance(tensor, InputSpec):
            continue
        bank, end = word >> 4 & 0xFF, one.remote + one.high - one.low
        touched = [
            number
            for number, page in enumerate(pages)
            if page.bank == bank and page.address < end and one.remote < page.address + page.size
        ]
        who = where_core(tile, one.core, one.pc)
        at = outside_headers(who)
        moved = found.setdefault((tile.xy, one.core, at.file, at.line), [])
        moved += [(number, at, clock) for number in touched or (_NONE,)]
    return {line: moved for line, moved in found.items() if any(n != _NONE for n, _, _ in moved)}


def _again(tensor: Tensor, moves: Moves) -> Iterator[Finding]:
    assert tensor.dram is not None
    count = sum(1 for _ in tensor.dram.pieces(tensor.size))
    missing = sorted(set(range(count)) - {n for moved in moves.values() for n, _, _ in moved})
    if not missing:
        return
    reads = isinstance(tensor, InputSpec)
    name = tensor.file.name if isinstance(tensor, InputSpec) else tensor.name
    verb, done = ("reads", "read") if reads else ("writes", "written")
    told = f"{len(missing)} of {count} pages are never {done}: {missing[:8]}"
    for number, at, clock, too in (*_of_one_tile(moves), *_of_several(moves)):
        what = "beside every page of it" if number == _NONE else f"page {number} of it {too}"
        text = f"page {missing[0]} of {name} is never {done}, and this line {verb} {what}"
        yield Finding(
            "output", "error", text, place(at, clock), {"tensor": name}, (told,),
            "look at the address: which page has its turn", likely("page again"),
        )  # fmt: skip


Again = tuple[int, Where, int, str]  # page, who moves it, when, in which way again


def _of_one_tile(moves: Moves) -> Iterator[Again]:
    """The first page that a line moves twice on one tile, or beside the tensor."""
    for moved in moves.values():
        seen: set[int] = set()
        for number, at, clock in moved:
            if number in seen or number == _NONE:
                yield number, at, clock, "again"
                break
            seen.add(number)


def _of_several(moves: Moves) -> Iterator[Again]:
    """A page that a line moves on two tiles that do not move the same ones: no broadcast."""
    by_line: dict[Line, list[list[tuple[int, Where, int]]]] = {}
    for (_, *line), moved in moves.items():
        by_line.setdefault(tuple(line), []).append(moved)
    for tiles in by_line.values():
        pages = [{number for number, _, _ in moved} for moved in tiles]
        for n, moved in enumerate(tiles):
            shared = [one for one in pages[:n] if one != pages[n] and one & pages[n]]
            if shared:
                both = next(one for one in moved if one[0] in shared[0])
                yield *both, "as another tile does"
                break
