"""A user's own CASE.npz or PROGRAM.toml on both models."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError
from bhemu.launch.launch import launch
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.oracle.case import Case
from bhemu.oracle.compare import EQUAL, Difference, Judge, Pair, describe
from bhemu.oracle.emulated import outcome
from bhemu.oracle.libttsim import Library
from bhemu.program import datafiles, files, tensor
from bhemu.program.datafiles import read_image
from bhemu.program.schema import OutputSpec, Program
from bhemu.tensix.state import RESET
from bhemu.text import printable

CLOCKS = 20_000_000  # of the library, where the program says no end it could poll
_KINDS = {"until": "done", "idle": "done"}
_META_BYTES = 1 << 20
_RESET_PC = {
    "trisc0": "TRISC0_RESET_PC",
    "trisc1": "TRISC1_RESET_PC",
    "trisc2": "TRISC2_RESET_PC",
    "ncrisc": "NCRISC_RESET_PC",
}


@dataclass(frozen=True)
class Verdict:
    """How a program compares: the pair, its verdict, and lines for a user."""

    name: str
    pair: Pair
    verdict: str
    lines: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        shown = Difference(self.name, self.pair, self.lines).as_dict()
        return {**shown, "verdict": self.verdict}


def read_case(path: Path) -> Case:
    """A CASE.npz: `in_data`, `in_addr`, `in_len` are the image, `meta` may name regions of L1.

    TRISC0-2 start at 0x10000, 0x20000, 0x30000 and store the done words 0xD0E0, 0xD0E1, 0xD0E2 at
    0x100, 0x104, 0x108.
    """
    image = read_image(path).tobytes()
    try:
        with datafiles.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
            text = str(archive.array("meta", _META_BYTES)) if "meta" in archive else "{}"
        regions = [
            (printable(str(n)), int(a), int(size))
            for n, a, size in json.loads(text).get("regions", [])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(f"{path}: meta does not name regions: {problem}") from problem
    return Case(image, regions=regions, name=path.stem)


def compare_case(judge: Judge, case: Case) -> Verdict:
    """Run a case on both; differing words by region."""
    pair = judge.pair(case)
    verdict = pair.verdict
    lines = () if verdict == EQUAL else describe(pair, case.place)
    return Verdict(case.name, pair, verdict, lines)


def compare_program(library: Library, program: Program, *, seconds: float = 60.0) -> Verdict:
    """Run a PROGRAM.toml on both: its outputs by tile, face, row and column, then all of L1."""
    tile = launch(program)
    before = tile.read(0, L1_SIZE)
    _check_local(tile)
    _check_sets(tile, program)
    starts, held = _starts(tile)
    until = list(tile.loop.end.words)
    ours = outcome(tile, tile.run, _KINDS)
    goal = tile.read(0, L1_SIZE) if not until else b""
    regions = [(o.name, resolve(tile, o.at), o.size) for o in program.outputs]
    case = Case(before, starts, until, regions, program.name, held, goal)
    limit = program.run.timeout_s or seconds
    pair = Pair(bhemu=ours, ttsim=library.run(case, clocks=CLOCKS, seconds=limit))
    lines = [] if pair.verdict == EQUAL else _output_lines(program, case, pair)
    if pair.verdict != EQUAL:
        lines += describe(pair, case.place)
    return Verdict(program.name, pair, pair.verdict, tuple(lines))


def _check_local(tile: Tile) -> None:
    for index, name in enumerate(CORE_NAMES):
        if tile.state.local[index].any():
            raise InputError(
                f"{name}'s private memory holds data before the start, which nothing outside the"
                " core can write on ttsim",
                hint='let the start code copy it: local = "loader_init" or "lma"',
            )


def _check_sets(tile: Tile, program: Program) -> None:
    for spec in program.sets:
        address = resolve(tile, spec.at, spec.core)
        if address >= L1_SIZE:
            raise InputError(
                f"{spec.origin}: {address:#x} is not an address of L1; only values in L1 can be set"
                " on both models"
            )


def _starts(tile: Tile) -> tuple[dict[str, int], dict[str, int]]:
    """Start addresses of the released cores, and of those that another core releases."""
    released: dict[str, int] = {}
    held: dict[str, int] = {}
    for index, name in enumerate(CORE_NAMES):
        register = _RESET_PC.get(name)
        pc = 0 if register is None else tile.read32(REGISTERS[register])
        which = held if tile.state.core_state[index] == RESET else released
        which[name] = pc
    return released, {name: pc for name, pc in held.items() if pc}


def _output_lines(program: Program, case: Case, pair: Pair) -> list[str]:
    """The first differing element of every output that differs."""
    if pair.bhemu.l1 is None or pair.ttsim.l1 is None:
        return []
    lines = []
    for spec, (_, address, size) in zip(program.outputs, case.regions, strict=True):
        ours = pair.bhemu.l1[address : address + size].tobytes()
        theirs = pair.ttsim.l1[address : address + size].tobytes()
        if ours != theirs:
            lines.append(first_difference(spec, ours, theirs))
    return lines


def first_difference(spec: OutputSpec, ours: bytes, theirs: bytes) -> str:
    """One line: how many elements of an output differ, and the first one."""
    form = (spec.shape, spec.dtype, spec.layout)
    words = [tensor.element_bits(data, *form) for data in (ours, theirs)]
    values = [tensor.decode(data, *form) for data in (ours, theirs)]
    wrong = np.argwhere(words[0] != words[1])
    if not len(wrong):
        return f"{spec.name}: equal values, different encodings"
    index = tuple(int(i) for i in wrong[0])
    place = tensor.locate(index, spec.shape, spec.layout)
    where = " ".join(f"{name} {value}" for name, value in place.items())
    shown = [f"{v[index]} ({int(w[index]):#x})" for v, w in zip(values, words, strict=True)]
    return (
        f"{spec.name}: {len(wrong)} of {words[0].size} elements differ; first at {where}:"
        f" bhemu {shown[0]}, ttsim {shown[1]}"
    )
