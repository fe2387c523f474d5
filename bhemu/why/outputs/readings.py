"""Inputs in DRAM that a program takes in another order: by columns of tiles, or tiles transposed.

A product of all pages that are read once each shows no wrong address. Given the input as it is read
the run is right: a cure, of which the line that reads the input is named.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.machine.tile import Tile
from bhemu.program import tensor
from bhemu.program.specs import InputSpec
from bhemu.why.check import Context
from bhemu.why.checks.formats import Operands
from bhemu.why.findings import Finding, outside_headers, place
from bhemu.why.network.requests import Moved, movers
from bhemu.why.repair.trial import Trials

_SIDE = 32  # rows and columns of a tile
_ABOVE = 24  # lines


def otherwise(context: Context) -> Iterator[Finding]:
    """Of a chip whose output is wrong: who takes an input in another order than it lies there."""
    wrong = context.is_chip and context.symptom.error is None and context.symptom.wrong
    inputs = [one for one in context.program.inputs if one.dram is not None and _has_tiles(one)]
    if not wrong or not inputs:
        return
    trials = Trials(context.program, context.end, context.quantum)
    for spec in inputs:
        for data, how, who in (
            (_by_columns(spec), "by columns of tiles", _reader),
            (_transposed(spec), "transposed", _unpacker),
        ):
            if data is not None and data != spec.data() and _is_right(trials, spec, data):
                if (found := who(context, spec)) is not None:
                    yield _finding(spec, how, *found)
    context.work.done += trials.work.done


def _finding(spec: InputSpec, how: str, where: Where, clock: int | None) -> Finding:
    what = f"{'the tiles' if how == 'transposed' else 'pages'} of {spec.file.name}"
    text = f"the run also ends correctly if {what} lie {how} in DRAM; {where.core} reads them here"
    return Finding("repair", "note", text, place(where, clock), {"tensor": spec.file.name}, (), "")


def _has_tiles(spec: InputSpec) -> bool:
    """Whether its pages are tiles of a matrix."""
    assert spec.dram is not None
    two = len(spec.shape) == 2 and spec.layout == "tile32"
    whole = two and all(side % _SIDE == 0 for side in spec.shape)
    return whole and spec.dram.page == tensor.encoded_size((_SIDE, _SIDE), spec.dtype)


def _by_columns(spec: InputSpec) -> bytes | None:
    """The pages in the order of columns of tiles."""
    assert spec.dram is not None
    rows, columns = (side // _SIDE for side in spec.shape)
    if 1 in (rows, columns):
        return None
    pages = np.frombuffer(spec.data(), np.uint8).reshape(rows, columns, spec.dram.page)
    return pages.swapaxes(0, 1).tobytes()


def _transposed(spec: InputSpec) -> bytes | None:
    """Each tile transposed in its place."""
    matrix = tensor.decode(spec.data(), spec.shape, spec.dtype)
    rows, columns = (side // _SIDE for side in spec.shape)
    tiles = matrix.reshape(rows, _SIDE, columns, _SIDE).transpose(0, 3, 2, 1)
    return tensor.encode(tiles.reshape(spec.shape), spec.dtype, convert="nearest")


def _is_right(trials: Trials, spec: InputSpec, data: bytes) -> bool:
    chip: Any = trials.bench
    banks = chip.chip.dram

    def change(_: Tile) -> None:
        assert spec.dram is not None
        spec.dram.write(data, lambda b, at, page: banks[b].write(at, page))

    return trials.is_right(change)


def _reader(context: Context, spec: InputSpec) -> tuple[Where, int | None] | None:
    """The line that reads most pages of an input, or the one that computes which of them."""
    moved = max(movers(context, spec).values(), key=len, default=None)
    if moved is None:
        return None
    where, clock = moved[0][1], moved[0][2]
    return replace(where, line=_product(Sources(context.program), where)), clock


def _product(sources: Sources, where: Where) -> int | None:
    """The line of the one product that a line names as a variable; the line itself otherwise."""
    if where.core is None or where.file is None or not where.line:
        return where.line
    named = set(re.findall(r"[A-Za-z_]\w*", sources.line(where.core, where.file, where.line) or ""))
    found: dict[str, int] = {}
    for number in range(max(where.line - _ABOVE, 1), where.line):
        text = sources.line(where.core, where.file, number) or ""
        made = re.search(r"\b([A-Za-z_]\w*)\s*=[^=].*\w\s*\*\s*\w", text)
        if made is not None and made[1] in named:
            found[made[1]] = number
    return next(iter(found.values())) if len(found) == 1 else where.line


def _unpacker(context: Context, spec: InputSpec) -> tuple[Where, int | None] | None:
    """Who set whether the tiles of an input are transposed, else who unpacks them."""
    machine, looks = context.walked(partial(Operands, context))
    moved = Moved(context.program, machine, [look.tile for look in looks])
    for look in looks:
        found = look.transposes(moved, spec)
        if found is not None:
            return outside_headers(found), None
    return None
