"""The line of a kernel for what stands in tt-metal's or tt-llk's headers, which it calls."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bhemu.errors import Call, source_text
from bhemu.why.check import Context
from bhemu.why.findings import Finding

_KIND = "llk"  # of a program that tests tt-llk itself


def of_kernels(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """The findings, their culprits in the kernels; where in the header is evidence."""
    if context.program.kind == _KIND:
        return list(found)
    tiles = {tile.xy: tile for tile in context.tiles(context.symptom.machine)}

    @cache
    def library(xy: Any, core: str) -> frozenset[str]:
        images = tiles[xy].core[core].images if xy in tiles else ()
        of_session = context.libraries.get((xy, core), ())
        return frozenset().union(of_session, *(image.library for image in images))

    return [_outward(one, library) for one in found]


def _outward(found: Finding, library: Any) -> Finding:
    who = found.culprit
    if not who.get("inlined") or "core" not in who or "tile" not in who:
        return found
    names = library(tuple(who["tile"]), who["core"])
    calls = [Call(**call) for call in who["inlined"]]
    inner = source_text(who.get("file"), who.get("line"), who.get("function"), ())
    function, file, line = who.get("function"), who.get("file"), who.get("line")
    while file in names and calls:
        function, file, line = (calls[0].function, calls[0].file, calls[0].line)
        calls = calls[1:]
    if file == who.get("file") or file in names:
        return found
    inlined = [call._asdict() for call in calls]
    culprit = {**who, "function": function, "file": file, "line": line, "inlined": inlined}
    said, core = f"{who['core']} {who.get('file')}:{who.get('line')} ", who["core"]
    text = found.text.replace(said, f"{core} {file}:{line} ", 1)  # there as well
    return replace(
        found, text=text, culprit=culprit, evidence=(*found.evidence, f"there in {inner}")
    )
