"""What a launched program put on which tiles and DRAM banks: the report of a check of a chip."""

from collections.abc import Iterator
from typing import Any

from bhemu.chip import Chip
from bhemu.program import coordinates, interleave
from bhemu.program.specs import InputSpec, OutputSpec, Program, TileSpec
from bhemu.text import printable

Row = dict[str, Any]


def report(chip: Chip, program: Program) -> Row:
    """JSON-ready: parts by tiles and banks, and how the program ends."""
    rows = [row for part in program.placed() for row in _tiles(chip, part)]
    rows += [_tensor(source, "input", source.file.name) for source in program.inputs]
    rows += [_tensor(output, "output", output.name) for output in program.outputs]
    return {
        "program": program.name,
        "kind": program.kind,
        "parts": rows,
        "end": _end(chip, program),
    }


def _tiles(chip: Chip, part: TileSpec) -> Iterator[Row]:
    """What lies in L1 of the first tile, which stands for the others of its [[tile]]."""
    where = coordinates.text(part.at)
    for low, high, name in sorted(chip.tile[part.at[0]].ranges):
        yield _row(where, low, high, "code", name.rpartition("/")[2])
    for buffer in part.buffers:
        what = f"circular buffer {buffer.index}, {buffer.pages} pages of {buffer.page} bytes"
        yield _row(where, buffer.at, buffer.at + buffer.size, "buffer", what)
    for spec in part.sets:
        if isinstance(spec.at, int):
            yield _row(where, spec.at, spec.at + len(spec.data), "set", spec.origin)


def _tensor(spec: InputSpec | OutputSpec, kind: str, name: str) -> Row:
    shape = "x".join(str(n) for n in spec.shape)
    what = printable(f"{name} {shape} {spec.dtype} {spec.layout}")
    if spec.dram is not None:
        banks = ",".join(map(str, spec.dram.banks))
        last = interleave.end(spec.dram, spec.size)
        return _row(f"DRAM {banks}", spec.dram.address, last, kind, what)
    tiles = spec.tiles if isinstance(spec, InputSpec) else (spec.tile,) if spec.tile else ()
    low = spec.at if isinstance(spec.at, int) else 0
    return _row(coordinates.text(tiles), low, low + spec.size, kind, what)


def _row(where: str, low: int, high: int, kind: str, what: str) -> Row:
    return {"where": where, "low": low, "high": high, "kind": kind, "what": what}


def _end(chip: Chip, program: Program) -> str:
    words = chip.end.words
    if not words:
        return "ends when everything is idle"
    (_, at, want), more = words[0], len(words)
    tiles = coordinates.text([xy for xy, _, _ in words])
    if program.firmware is not None and not program.run.until:
        return f"ends when the go messages at {at:#x} of {tiles} say DONE"
    return f"ends when {more} words, the first at {at:#x} = {want:#x}, hold on {tiles}"
