"""What a program declares and its cores break: formats of tensors, the ends of stacks and code; and
buffers that share bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.noc.grid import XY
from bhemu.program import toml
from bhemu.program.specs import InputSpec, OutputSpec
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, merged, place
from bhemu.why.order.conflicts import Observed, Transfer, observed, requests
from bhemu.why.order.observe import is_own
from bhemu.why.origin import requests_of
from bhemu.why.steps import Act, Instruction, where

_LIKE = {"fp8": ("fp8_e4m3", "fp8_e5m2"), "int8": ("int8", "uint8"), "tf32": ("fp32", "tf32")}
_HEADER = 16  # bytes that both units add to an address
_FACE, _COLUMNS = 256, 16  # datums that follow each other in a tile, those of a row
_AS_TILES = 'layout = "tile32" in PROGRAM.toml'


Held = tuple[int, int, InputSpec | OutputSpec]  # L1 from, to


def _held(context: Context) -> Iterator[tuple[int, Held]]:
    """Tensors of DRAM whose pages requests of a tile (its number) bring to L1 or take from there,
    at any time of the run; of pages of inputs also the tiles to which that tile writes them."""
    tensors: list[InputSpec | OutputSpec] = [*context.program.inputs, *context.program.outputs]
    passed: dict[int, set[tuple[Any, ...]]] = {}
    for one in requests(context) if JIT else ():
        if one.takes_data and one.bank is None:
            passed.setdefault(one.tile, set()).add((*one.own, *one.remote, *one.reached))
    for tensor in tensors:
        moved = (one for one, _, _ in requests_of(context, tensor) if one.reads or one.takes_data)
        for tile, low, high, reads in dict.fromkeys((m.tile, *m.own, m.reads) for m in moved):
            yield tile, (low, high, tensor)
            for first, end, to, to_end, *reached in sorted(passed.get(tile, ())) if reads else ():
                if first < high and low < end:
                    yield from ((u, (to, to_end, tensor)) for u in reached)


# Each UNPACR and PACR beside the tensors that it touches.


@dataclass(frozen=True)
class _Tensor:
    name: str
    at: int
    end: int
    spec: Any
    table: tuple[str, int]  # in PROGRAM.toml


class Operands:
    """Compares each UNPACR and PACR of a tile with the tensors that it touches."""

    def __init__(self, context: Context, seen: Observed) -> None:
        tile = seen.tile
        self._seen, self._tile, self._path = seen, tile, context.program.path
        self._inputs = list(_tensors(tile, "input", context.program.inputs))
        self._outputs = list(_tensors(tile, "output", context.program.outputs))
        self._right: set[tuple[int, str]] = set()  # words that have read a tensor from its begin
        self.found: dict[object, Finding] = {}

    def compare(self, held: Sequence[Held]) -> None:
        """Compare with tensors in L1, and with those in DRAM that its requests move there."""
        distinct: dict[object, Transfer] = {}
        for one in self._seen.transfers():
            distinct.setdefault((one.step.pc, *one[1:6]), one)
        for one in distinct.values():
            for tensor in self._inputs if one.reads else self._outputs:
                if one.first < tensor.end and tensor.at < one.end:
                    self._compare(one, tensor)
            tensors = [
                tensor
                for low, high, tensor in held
                if low < one.end and one.first < high and one.reads == isinstance(tensor, InputSpec)
            ]
            if tensors and not any(_fits(spec.dtype, one.fmt) for spec in tensors):
                how, spec = "comes from" if one.reads else "goes to", tensors[0]
                text = f"{_shown(one)}, and what is there {how} {title(spec)} in DRAM, which is"
                self._report(one, "format", f"{text} {spec.dtype}", _format_of(spec, one))

    def _compare(self, one: Transfer, tensor: _Tensor) -> None:
        shown = _shown(one)
        kind = f"{tensor.name} ({tensor.spec.dtype}, {tensor.at:#x} to {tensor.end:#x})"
        if one.first == tensor.at:
            self._right.add((one.step.pc, tensor.name))
        if not _fits(tensor.spec.dtype, one.fmt):
            text = f"{shown}, and {kind} is {tensor.spec.dtype}"
            self._report(one, "format", text, _format_of(tensor.spec, one))
        elif one.first < tensor.at or one.end > tensor.end:
            advice = "look at the L1 address, the strides and the counters that give this range"
            unit = _HEADER in (one.end - tensor.end, tensor.at - one.first)
            if unit and (one.step.pc, tensor.name) not in self._right:
                advice = "the unit adds 16 bytes for a header: give it address / 16 - 1"
            self._report(one, "address", f"{shown}, beyond {kind}", advice)
        elif (one.first - tensor.at) % 16:
            text = f"{shown}, not at a multiple of 16 bytes of {kind}"
            self._report(one, "address", text, "look at the L1 address that was set")
        elif one.reads and tensor.spec.layout == "rows" and one.datums >= _FACE:
            self._layout(one, tensor)

    def _layout(self, one: Transfer, tensor: _Tensor) -> None:
        """Report that faces are read from an input whose layout is rows."""
        as_faces = tensor.spec.shape[-1] == _COLUMNS  # rows of 16 numbers lie as in a face
        if self._path is None or as_faces or ("layout", tensor.name) in self.found:
            return
        line = toml.line_of_key(self._path, *tensor.table, "layout")
        text = f'{_shown(one)}: faces of a tile, and {tensor.name} has layout = "rows"'
        who = place(Where(file=self._path.name, line=line), None)
        found = Finding("formats", "warning", text, who, self._at(one), (), _AS_TILES)
        self.found["layout", tensor.name] = found

    def _report(self, one: Transfer, kind: str, text: str, advice: str) -> None:
        if (key := (one.reads, kind, one.step.pc)) in self.found:
            return
        by = one.by_format if kind == "format" else one.by_address
        setter, victim = where(self._tile, by or one.step), self._at(one) if by else {}
        text, told = f"{CORE_NAMES[one.step.core]} {text}", (f"set by {setter}",)
        who = place(setter, None, self._tile)
        self.found[key] = Finding("formats", "warning", text, who, victim, told, advice)

    def _at(self, one: Transfer) -> dict[str, Any]:
        return place(where(self._tile, one.step), one.step.clock)


def _shown(one: Transfer) -> str:
    verb = "UNPACR reads" if one.reads else "PACR writes"
    return f"{verb} {one.first:#x} to {one.end:#x} as {one.fmt}"


def _format_of(spec: Any, one: Transfer) -> str:
    return f"set the format to {spec.dtype}, or dtype in PROGRAM.toml to {one.fmt}"


def _fits(dtype: str, fmt: str) -> bool:
    """Whether a tensor of `dtype` may be read or written as `fmt`."""
    return dtype in ("raw", fmt, *_LIKE.get(fmt, ()))


def title(spec: Any) -> str:
    """A tensor of PROGRAM.toml in words."""
    return spec.name if isinstance(spec, OutputSpec) else f"input {spec.file.name}"


def _tensors(tile: Tile, table: str, specs: Sequence[Any]) -> Iterator[_Tensor]:
    """The tensors in the tile's L1."""
    for number, spec in enumerate(specs):
        tiles = (spec.tile,) if isinstance(spec, OutputSpec) else spec.tiles
        if spec.dram is None and (not any(tiles) or tile.xy in tiles):
            at = resolve(tile, spec.at)
            yield _Tensor(title(spec), at, at + spec.size, spec, (table, number))


# Buffers of PROGRAM.toml that share bytes.


def declared_line(context: Context, path: Path, number: int, key: str) -> dict[str, Any]:
    """The line of PROGRAM.toml that gives a key of the buffer of this number, as a culprit."""
    table = "tile.buffer" if context.program.tiles else "buffer"
    return place(Where(file=path.name, line=toml.line_of_key(path, table, number, key)), None)


class Shared(NamedTuple):
    """L1 `low` to `high` of the tiles `at` belongs to two buffers that begin elsewhere."""

    at: tuple[XY, ...]
    low: int
    high: int
    finding: Finding
    buffers: frozenset[int]


def shared_bytes(context: Context) -> Iterator[Shared]:
    """Buffers of a tile that share bytes, except those that begin at one address on purpose."""
    path = context.program.path
    if path is None:
        return
    number = 0
    for part in context.program.placed():
        for i, one in enumerate(part.buffers):
            for other in part.buffers[:i]:
                low = max(one.at, other.at)
                high = min(one.at + one.size, other.at + other.size)
                if low < high and one.at != other.at:
                    first, second = (
                        f"buffer {b.index} ({b.at:#x} to {b.at + b.size:#x})" for b in (one, other)
                    )
                    text = f"{first} shares bytes with {second}"
                    who = declared_line(context, path, number + i, "at")
                    found = Finding("buffers", "error", text, who, {}, (), "give it its own bytes")
                    yield Shared(part.at, low, high, found, frozenset((one.index, other.index)))
        number += len(part.buffers)


def in_shared_bytes(context: Context, xy: XY, at: int, found: Finding, why: str) -> Finding:
    """The finding of an access to L1; if two buffers share the place, their line is the culprit."""
    for one in shared_bytes(context):
        if xy in one.at and one.low <= at < one.high:
            text = f"{one.finding.text}; {why}"
            return replace(
                one.finding, found_by=found.found_by, text=text, victim=found.culprit,
                evidence=found.evidence, ends=found.ends,
            )  # fmt: skip
    return found


# Pages of tensors in DRAM.


def beyond_tensors(context: Context) -> Iterator[Finding]:
    """Requests for the page after the last one of a tensor in DRAM, by code that moves others."""
    every: list[InputSpec | OutputSpec] = [*context.program.inputs, *context.program.outputs]
    tensors = [one for one in every if one.dram is not None]
    pieces = [piece for one in tensors if one.dram for piece in one.dram.pieces(one.size)]
    sent = requests(context) if JIT else []
    for tensor in tensors if sent else ():
        assert tensor.dram is not None
        count = -(-tensor.size // tensor.dram.page)
        (after,) = islice(tensor.dram.pieces(tensor.size + tensor.dram.page), count, count + 1)
        low, high = after.address, after.address + tensor.dram.page
        in_bank = (one for one in pieces if one.bank == after.bank)
        if any(one.address < high and low < one.address + one.size for one in in_bank):
            continue
        sites = {(m.tile, m.core, m.step.pc) for m, _, _ in requests_of(context, tensor)}
        reads = isinstance(tensor, InputSpec)
        for one in (one for one in sent if one.reads == reads):
            there = one.bank == after.bank and one.remote[0] < high and low < one.remote[1]
            if there and (one.tile, one.core, one.step.pc) in sites:
                act = Act(observed(context)[one.tile].tile, one.step)
                does = "reads" if reads else "writes"
                text = f"{CORE_NAMES[one.core]} {does} page {count} of {title(tensor)}, whose last"
                text, advice = f"{text} page is {count - 1}", "look at the bounds of the loop"
                severity = "warning" if context.symptom.fine else "error"
                yield Finding("buffers", severity, text, act.placed(), {}, (f"{act}",), advice)
                break


# The check.


def _run(context: Context) -> Sequence[Finding]:
    looks, held = [Operands(context, seen) for seen in observed(context)], [*_held(context)]
    for number, look in enumerate(looks):
        look.compare([one for of_tile, one in held if of_tile == number])
    return merged(look.found.values() for look in looks)


FORMATS = Check(
    name="formats",
    proves="that an UNPACR reads an input, or a PACR writes an output, in another format than its"
    " dtype, beyond its ends, or off its 16-byte grid;"
    " that faces are read from an input of rows; the culprit is who set the format or address",
    misses="tensors between kernels; of pages that requests of cores bring from DRAM or take there"
    " all but the format; a format that is meant to be another is a warning, and only where a run"
    " went wrong",
    cost="the observed run of `races`, where the run went wrong",
    applies=lambda seen: 4 if JIT and not seen.fine else 0,
    run=_run,
)


# Cores that leave their memory: a stack that grows into data, a pc outside of all ELFs.


def _overflows(seen: Observed) -> Iterator[Finding]:
    """The cores of a tile whose sp was within their data when they accessed memory."""
    for core, (start, end, pc, sp, time) in enumerate(seen.record.stack.tolist()):
        if pc:
            name = CORE_NAMES[core]
            who = Act(seen.tile, Instruction(time, core, pc, 0)).placed()
            text = f"the stack of {name} grows to {sp:#x}, {end - sp} bytes into its data, which"
            told = f"its sp was {start:#x} at most: {start - end} bytes are free below that,"
            yield of_stack(name, f"{text} end at {end:#x}", who, f"{told} {start - sp} used")


def of_stack(core: str, text: str, who: dict[str, Any], *told: str) -> Finding:
    """The finding of a stack that has come into the data of its core."""
    advice = "use less of it: smaller arrays, no deep recursion; or move data to L1"
    return Finding("stack", "error", text, who, {"core": core}, told, advice)


STACK = Check(
    name="stack",
    proves="that sp of a core was below the end of the data that its ELFs have in local memory when"
    " it loaded or stored; the culprit is the function whose frame did it",
    misses="stacks in L1, frames that a function uses without moving sp; of a chip of more than 64"
    " tiles all but 32",
    cost="the observed run of `races`",
    applies=lambda seen: 9 if JIT else 0,
    run=lambda context: merged(_overflows(seen) for seen in observed(context)),
)


# A core that executes what is not its own code.


_OWN_ELFS = ("elf", "llk")  # of these every core has its own ELF


def _jumps(context: Context) -> Sequence[Finding]:
    astray = (  # cores whose pc is outside of all of their ELFs
        core.images and core.retired and not is_own(tile, core.index, core.pc)
        for tile in context.tiles(context.symptom.machine)
        for core in tile.core.values()
    )
    if context.program.kind not in _OWN_ELFS or not any(astray):
        return []
    found = []
    left = [(seen.tile, *one) for seen in observed(context) for one in seen.left]
    for tile, step, target in left:
        act, core = Act(tile, step), CORE_NAMES[step.core]
        text = f"{core} leaves its own code: it goes on at {target:#x}, which no ELF of it holds"
        advice = "look at the function pointer, or who overwrote the return address"
        victim, told = {"place": f"L1 {target:#x}"}, (f"the jump: {act.where}",)
        found.append(Finding("jumps", "error", text, act.placed(), victim, told, advice))
    return merged([found])


JUMPS = Check(
    "jumps",
    proves="that a core went on outside all of its ELFs: a wrong function pointer, a return address"
    " that was overwritten",
    misses="code that another core has written; kernels under firmware; of a chip of more than 64"
    " tiles all but 32",
    cost="the observed run of `races`, where a core stands outside its ELFs",
    applies=lambda seen: 0 if seen.fine or not JIT else 85,
    run=_jumps,
)
