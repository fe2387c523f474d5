"""What a launched program put where, and what of it lies on top of what: the report of a check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bhemu.devices.debug_regs import reset_pc
from bhemu.errors import naming
from bhemu.launch import Launched, word_name
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import coordinates, loader
from bhemu.program.coordinates import XY
from bhemu.program.schema import CoreSpec, OutputSpec, Program
from bhemu.program.specs import InputSpec, TileSpec
from bhemu.text import printable


@dataclass(frozen=True)
class Part:
    """Bytes of a program: `space` is "l1", a core's name for local RAM, "device" or "dram".

    kind: "code", "data", "jump", "image", "set", "buffer", "input" or "output"; `what` says which.
    tiles: on which tiles, or banks: in which DRAM banks.
    """

    space: str
    low: int
    high: int
    kind: str
    what: str
    tiles: tuple[XY, ...] = ()
    banks: tuple[int, ...] = ()

    @property
    def _where(self) -> str:
        banks = ",".join(map(str, self.banks))
        return f"DRAM {banks}" if banks else coordinates.text(self.tiles)

    def line(self, *, with_tiles: bool) -> str:
        """One line of text; with_tiles: it begins with the tiles."""
        where = self._where
        if not self.banks and not with_tiles:
            where = f"{'L1' if self.space == 'l1' else self.space:<7}"
        elif not self.banks and self.space != "l1":
            where += f" {self.space}"
        return f"{where} 0x{self.low:08X}..0x{self.high:08X}  {self.kind:<6}  {self.what}"

    def as_dict(self) -> dict[str, Any]:
        """JSON form."""
        named = {name: getattr(self, name) for name in ("space", "low", "high", "kind", "what")}
        return {**named, "where": self._where}

    def overlaps(self, other: Part) -> bool:
        """Whether some byte belongs to both."""
        shared = set(self.tiles) & set(other.tiles) or set(self.banks) & set(other.banks)
        same = bool(shared) and self.space == other.space
        return same and self.low < other.high and other.low < self.high


def report(launched: Launched) -> dict[str, Any]:
    """JSON-ready: the parts, the cores' start addresses, the end condition, the warnings."""
    program = launched.program
    found = parts(launched)
    starts = [
        {"at": part.at, "cores": _starts(launched.machine.tile[part.at[0]], program, part)}
        for part in program.placed()
    ]
    return {
        "program": program.name,
        "kind": program.kind,
        "parts": [part.as_dict() for part in found],
        "tiles": starts,
        **({"cores": starts[0]["cores"]} if len(starts) == 1 else {}),
        "end": _ends(launched),
        "warnings": warnings(found),
    }


def parts(launched: Launched) -> list[Part]:
    """Everything that the launch placed and what will be read after the run, by address.

    The first tile of a [[tile]] stands for the others.
    """
    program, found = launched.program, list[Part]()
    for part in program.placed():
        found += _of_tile(launched.machine.tile[part.at[0]], program, part)
    for source in program.inputs:
        what = f"{source.file.name} {_form(source)} {source.convert}"
        found.append(_tensor(launched, source, "input", what, source.tiles))
    for output in program.outputs:
        tiles = () if output.tile is None else (output.tile,)
        text = f"{output.name} {_form(output)}"
        if output.expect is not None:
            text += f", {output.compare} against {output.expect.name}"
        text += f", saved to {output.save.name}" if output.save is not None else ""
        found.append(_tensor(launched, output, "output", text, tiles))
    order = {xy: i for i, xy in enumerate(xy for part in program.placed() for xy in part.at)}

    def key(part: Part) -> tuple[Any, ...]:
        first = min((order.get(xy, 0) for xy in part.tiles), default=len(order))
        return first, part.space != "l1", part.space, part.low

    return sorted(found, key=key)


def _of_tile(tile: Tile, program: Program, part: TileSpec) -> Iterator[Part]:
    """What lies in the memories of one tile besides tensors."""
    known = set()
    for spec in part.cores.values() if program.kind in ("elf", "llk") else ():
        for own in _elf(spec, part.at):
            known.add(own.low)
            yield own
    for low, high, name in tile.ranges:
        jump = name.startswith("the jump")
        if jump or low not in known:
            what = name if jump else name.rpartition("/")[2]
            yield Part("l1", low, high, "jump" if jump else "code", printable(what), part.at)
    if part.image is not None:
        yield Part("l1", 0, L1_SIZE, "image", printable(part.image.name), part.at)
    for buffer in part.buffers:
        what = f"circular buffer {buffer.index}, {buffer.pages} pages of {buffer.page} bytes"
        yield Part("l1", buffer.at, buffer.at + buffer.size, "buffer", what, part.at)
    for number, entry in enumerate(part.sets, start=1):
        low = resolve(tile, entry.at, entry.core)
        what = f"[[set]] {number}" + (f" {entry.at}" if isinstance(entry.at, str) else "")
        space = "l1" if low < L1_SIZE else "device"
        if space == "device" and low < LOCAL_BASE + max(LOCAL_SIZES):
            space = entry.core or space
        yield Part(space, low, low + len(entry.data), "set", printable(what), part.at)


def _elf(spec: CoreSpec, tiles: tuple[XY, ...]) -> Iterator[Part]:
    """The segments of a core's ELF."""
    if spec.elf is None:
        return
    image = loader.read_elf(spec.elf)
    code = {str(s) for s in image.segments if s.executable}
    for placed in loader.place(image, local=spec.local, core=spec.name):
        base, space = (LOCAL_BASE, spec.name) if placed.space == "local" else (0, "l1")
        is_code = placed.name.removeprefix(f"{image.path.name} ") in code
        kind, what = "code" if is_code else "data", printable(f"{spec.elf.name} {spec.name}")
        yield Part(space, base + placed.address, base + placed.end, kind, what, tiles)


def _tensor(
    launched: Launched, spec: InputSpec | OutputSpec, kind: str, label: str, tiles: tuple[XY, ...]
) -> Part:
    label = printable(label)
    if spec.dram is not None:
        low, high = spec.dram.address, spec.dram.end(spec.size)
        return Part("dram", low, high, kind, label, banks=tuple(spec.dram.banks))
    tiles = tiles or launched.program.placed()[0].at
    low = resolve(launched.machine.tile[tiles[0]], spec.at)
    return Part("l1", low, low + spec.size, kind, label, tiles)


def _form(spec: InputSpec | OutputSpec) -> str:
    return f"{'x'.join(str(n) for n in spec.shape)} {spec.dtype} {spec.layout}"


def warnings(parts: list[Part]) -> list[str]:
    """What lies on top of something else in a way that is allowed and hardly ever meant."""
    texts = []
    for one, other in combinations(parts, 2):
        if not one.overlaps(other):
            continue
        kinds = {one.kind, other.kind}
        hidden = kinds <= {"input", "set"} or kinds == {"input", "output"}
        aliases = one.low == other.low  # as two buffers of one place, which are meant
        hidden = hidden or (kinds == {"buffer"} and not aliases)
        if hidden or (kinds & {"input", "set", "output", "buffer"} and "code" in kinds):
            both = f"{one.kind} {one.what} and {other.kind} {other.what}"
            texts.append(printable(f"{both} overlap at 0x{max(one.low, other.low):X}"))
    return texts


def _starts(tile: Tile, program: Program, part: TileSpec) -> dict[str, dict[str, Any]]:
    """Of the cores that are named: the address each starts at, whether bhemu releases it.

    None: the core that releases it sets the address, or the firmware calls its kernel. brisc has no
    choice: it starts at 0.
    """
    found: dict[str, dict[str, Any]] = {}
    for c, name in enumerate(CORE_NAMES):
        if (spec := part.cores.get(name)) is None:
            continue
        start = spec.pc
        if program.firmware is not None:
            found[name] = {"start": None, "release": False}
            continue
        if program.kind == "tt-metal":
            start = int(reset_pc(tile.state, c))
        elif start is None and spec.elf is not None:
            start = loader.read_elf(spec.elf).entry
        found[name] = {"start": 0 if name == "brisc" else start, "release": spec.release}
    return found


def _ends(launched: Launched) -> str:
    """The end condition, limit and time-out in words."""
    program = launched.program
    several = sum(len(part.at) for part in program.placed()) > 1
    tiles_of: dict[tuple[int, int], list[XY]] = {}
    for tile, at, want in launched.end_words():
        tiles_of.setdefault((at, want), []).append(tile.xy)
    conditions = []
    for (at, want), tiles in tiles_of.items():
        where = coordinates.text(tiles) if several else ""
        if where and program.firmware is not None and not program.run.until:
            conditions.append(f"the go messages at {at:#x} of {where} say DONE")
        else:
            on = f" on {where}" if where else ""
            conditions.append(f"{word_name(program, at)} is {want:#x}{on}")
    texts = [f"ends when {' and '.join(conditions) or 'everything is idle'}"]
    if program.run.limit is not None:
        texts.append(f"limit {program.run.limit}")
    if program.run.timeout_s is not None:
        texts.append(f"time-out {program.run.timeout_s:g} s")
    return ", ".join(texts)


def check_expected(program: Program) -> None:
    """InputError when an expected file holds what its output can never equal."""
    for spec in program.outputs:
        with naming(spec.origin):
            spec.check(bytes(spec.size))
