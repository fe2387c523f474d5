"""Who writes what lies next to an element of an output that nobody has written."""

from dataclasses import replace

import numpy as np

from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.program.outputs import OutputResult
from bhemu.program.tensor import bit_offset
from bhemu.why.check import Context
from bhemu.why.findings import Finding, chain, place

_WORD = 4


def named(context: Context, tile: Tile | None, result: OutputResult, found: Finding) -> Finding:
    """What is said of a wrong output, with who has written the nearest word of it."""
    spec, report = result.spec, result.report
    if found.culprit or tile is None or report is None or report.first is None:
        return found
    low = resolve(tile, spec.at)
    written = np.flatnonzero(np.frombuffer(tile.read(low, spec.size), "u1"))
    if not written.size:
        return found
    at = bit_offset(report.first.index, spec.shape, spec.dtype, spec.layout) // 8
    near = low + int(written[np.argmin(abs(written - at))]) & ~(_WORD - 1)
    links = chain(tile, context.program, "brisc", f"{near:#x}:{_WORD}")
    if not links or links[0].where is None:
        return found
    text = f"{found.text}; nothing has written it, and what is next to it this line writes"
    culprit = place(links[0].where, links[0].clock, tile)
    return replace(found, text=text, culprit=culprit, evidence=(*found.evidence, str(links[0])))
