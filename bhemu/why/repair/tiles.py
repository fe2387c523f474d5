"""Edits of the tiles and kernels that PROGRAM.toml names."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from bhemu.errors import BhemuError, InputError
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.program.coordinates import TILE_VALUES, At, values_of
from bhemu.program.input_files import encode_values
from bhemu.program.schema import Program
from bhemu.program.specs import CoreSpec, TileSpec
from bhemu.why.repair.trial import Trials

# Cores with other ELFs: two with each other's, and one with its own that no core has.

_NAMED = 0.3  # cost where the names of the files say so


@dataclass(frozen=True)
class OtherElfs:
    """The cores whose ELFs are others, what to do, its cost, and all cores then."""

    names: tuple[str, ...]
    text: str
    cost: float
    cores: Mapping[str, CoreSpec]


def other_elfs(cores: Mapping[str, CoreSpec], unlike: float) -> list[OtherElfs]:
    """Cheap ones first; `unlike`: cost where the names of the files do not say so."""
    return sorted((*_exchanges(cores, unlike), *_unused(cores)), key=lambda one: one.cost)


def _exchanges(cores: Mapping[str, CoreSpec], unlike: float) -> Iterator[OtherElfs]:
    for a, b in combinations(cores, 2):
        first, second = cores[a], cores[b]
        if first.elf is None or second.elf is None or first.elf == second.elf:
            continue
        cost = _NAMED if (first.elf.stem, second.elf.stem) == (b, a) else unlike
        changed = {a: replace(first, elf=second.elf), b: replace(second, elf=first.elf)}
        yield OtherElfs((a, b), f"exchange the ELFs of {a} and {b}", cost, {**cores, **changed})


def _unused(cores: Mapping[str, CoreSpec]) -> Iterator[OtherElfs]:
    """A core that has another one's ELF, while a file of its own name lies beside it."""
    for name, spec in cores.items():
        if spec.elf is None:
            continue
        own = spec.elf.with_name(f"{name}.elf")
        others = [other for other in cores if other != name and cores[other].elf == spec.elf]
        if others and own.is_file() and all(one.elf != own for one in cores.values()):
            text = f"{name} has the ELF of {others[0]}, {spec.elf.name}: {own.name} instead"
            yield OtherElfs((name,), text, _NAMED, {**cores, name: replace(spec, elf=own)})


# Where in the text of a PROGRAM.toml a table, a key or a value of an array stands.

_HEADER = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?")
_VALUE = re.compile(r'"[^"]*"|[^\s,\[\]#]+')


class TomlLines:
    """Line numbers (from 1) of one file."""

    def __init__(self, path: Path) -> None:
        self._lines = path.read_text().splitlines()

    def table(self, name: str, number: int = 0) -> int:
        """The header of table `name`, the `number`-th of that name; 1 where it has none."""
        for line, text in enumerate(self._lines, 1):
            found = _HEADER.match(text)
            if found and found[1] == name:
                if number == 0:
                    return line
                number -= 1
        return 1

    def key(self, name: str, number: int, key: str) -> int:
        """A key of a table; the table's header where the key is not given."""
        header = self.table(name, number)
        for line in range(header, len(self._lines)):
            text = self._lines[line]
            if _HEADER.match(text):
                break
            if re.match(rf"\s*{re.escape(key)}\s*=", text):
                return line + 1
        return header

    def value(self, name: str, number: int, key: str, index: int) -> int:
        """Value `index` of the array that a key holds."""
        return self.written(name, number, key, index)[0]

    def written(self, name: str, number: int, key: str, index: int) -> tuple[int, str]:
        """Its line and how it is written, "" where there is none."""
        line = self.key(name, number, key)
        left = index
        text = self._lines[line - 1].partition("=")[2]
        while True:
            values = _VALUE.findall(text.partition("#")[0])
            if left < len(values):
                return line, values[left].strip('"')
            if "]" in text.partition("#")[0] or line >= len(self._lines):
                return line, ""
            left -= len(values)
            text = self._lines[line]
            line += 1

    def inline(self, name: str, number: int, key: str, index: int) -> int:
        """The line of inline table `index` of the array that a key holds."""
        first = self.key(name, number, key)
        left = index
        for line in range(first, len(self._lines) + 1):
            text = self._lines[line - 1].partition("#")[0]
            if left < text.count("{"):
                return line
            left -= text.count("{")
        return first

    def argument(self, number: int, core: str, index: int) -> tuple[int, str]:
        """Argument `index` of a core of the `number`-th tile: its line, how it is written."""
        line = self.key("tile.cores", number, core)
        text = self._lines[line - 1].partition("args")[2]
        left = index
        while line <= len(self._lines):
            text = text.partition("#")[0]
            values = re.findall(r'"[^"]*"', text)
            if left < len(values):
                return line, values[left].strip('"')
            left -= len(values)
            if "}" in text or line == len(self._lines):
                break
            text = self._lines[line]
            line += 1
        return line, ""


# Edits of what PROGRAM.toml gives the tiles of a chip: the kernels of their cores, arguments.

Cures = Callable[[], bool]
_OTHER = 0.7  # cost of other ELFs whose names do not say so
_SWAP, _SWAP_NUMBERS = 0.6, 0.9  # of two arguments that follow each other
_SISTERS = 0.55  # of arguments that other kernels of the tile agree on
_FEW = 2  # values that all cores have, and the one that is another
_WORDS = 64  # bytes of a set of numbers
_SHORT = 2  # words that stand in memory in many places, which is worth a launch
_GENEROUS = 1.9  # of a semaphore that lets somebody go on earlier
AS_OTHERS = 0.2  # of an argument that all other cores of a tile have alike
# Of a number next to the argument; where other kernels have that too, or a tensor as many pages.
_NEAR, _AGREED = 1.3, 1.95


def exchanges(trials: Trials, lines: TomlLines) -> Iterator[tuple[int, str, float, Cures]]:
    """(line, text, cost, whether it cures): cores of a tile with other kernels."""
    program = trials.program
    found = [
        (one.cost, number, one)
        for number, part in enumerate(program.tiles)
        for one in other_elfs(part.cores, _OTHER)
    ]
    for cost, number, one in sorted(found, key=lambda each: each[:2]):
        line = min(lines.key("tile.cores", number, name) for name in one.names)
        part = replace(program.tiles[number], cores=one.cores)
        yield line, one.text, cost, _launches(trials, _with(program, number, part))


def semaphores(trials: Trials, lines: TomlLines) -> Iterator[tuple[int, str, float, Cures]]:
    """The same for what the semaphores of the tiles hold at first."""
    for number, part in enumerate(trials.program.tiles):
        line = lines.key("tile", number, "semaphores")
        for k, value in enumerate(part.semaphores):
            for other in (value + 1, value - 1):
                if other >= 0:
                    held = (*part.semaphores[:k], other, *part.semaphores[k + 1 :])
                    program = _with(trials.program, number, replace(part, semaphores=held))
                    text = f"semaphore {k} is {other} at first instead of {value}"
                    cost = _GENEROUS if other > value else 0.8
                    yield line, text, cost, _launches(trials, program)


def _with(program: Program, number: int, part: TileSpec) -> Program:
    tiles = (*program.tiles[:number], part, *program.tiles[number + 1 :])
    return replace(program, tiles=tiles)


def _launches(trials: Trials, program: Program) -> Cures:
    def cures() -> bool:
        try:
            return trials.of(program).is_right()
        except BhemuError:
            return False

    return cures


def arguments(trials: Trials, lines: TomlLines) -> Iterator[tuple[int, str, float, Cures]]:
    """The same for the runtime arguments of kernels, found in L1 where the launch put them."""
    program = trials.program
    for number, part in enumerate(program.tiles):
        for name, core in part.cores.items():
            for k, value in enumerate(core.args):
                line, _ = lines.argument(number, name, k)
                for other, cost in _others(program, part, name, k):
                    text = f"argument {k} of {name}: {other} instead of {value}"
                    changed = (*core.args[:k], other, *core.args[k + 1 :])
                    yield line, text, cost, _put(trials, number, core, changed)
            for k, pair in enumerate(pairwise(core.args)):
                kinds = {one.partition(":")[0] for one in pair}
                if pair[0] != pair[1] and len(kinds) == 1:
                    line, _ = lines.argument(number, name, k)
                    text = f"exchange arguments {k} and {k + 1} of {name}: {pair[1]}, {pair[0]}"
                    changed = (*core.args[:k], *pair[::-1], *core.args[k + 2 :])
                    cost = _SWAP if kinds == {"tile"} else _SWAP_NUMBERS
                    yield line, text, cost, _put(trials, number, core, changed)
            for theirs in _of_sisters(part, name):
                k = next(k for k, one in enumerate(core.args) if one != theirs[k])
                line, _ = lines.argument(number, name, k)
                text = f"the arguments of {name} as those of the other cores, from {k} on"
                yield line, text, _SISTERS, _put(trials, number, core, theirs)


def _of_sisters(part: TileSpec, name: str) -> Iterator[tuple[str, ...]]:
    """What two or more other kernels of a tile have for as many arguments, and this one has not."""
    core = part.cores[name]
    same = [one.args for other, one in part.cores.items() if other != name]
    same = [args for args in same if len(args) == len(core.args) and args != core.args]
    yield from dict.fromkeys(args for args in same if same.count(args) > 1)


def values(trials: Trials, lines: TomlLines) -> Iterator[tuple[int, str, float, Cures]]:
    """The same for the values that PROGRAM.toml puts into L1 of the tiles."""
    before = 0
    for number, part in enumerate(trials.program.tiles):
        for n, spec in enumerate(part.sets, before):
            words = [f"u32:{word:#x}" for word in np.frombuffer(spec.data[:_WORDS], "<u4")]
            held = spec.values or tuple(words if len(spec.data) % 4 == 0 else ())
            for k, value in enumerate(held):
                line, _ = lines.written("tile.set", n, "values", k)
                for other, cost in _meant(value):
                    text = f"value {k} of set {spec.at}: {other} instead of {value}"
                    changed = (*held[:k], other, *held[k + 1 :])
                    yield line, text, cost, _set(trials, number, spec.at, changed)
        before += len(part.sets)


def _set(trials: Trials, number: int, at: At, changed: tuple[str, ...]) -> Cures:
    part = trials.program.tiles[number]

    def change(tile: Tile) -> None:
        place = values_of(tile.xy, part.at)
        tile.write(resolve(tile, at), encode_values(changed, part.origin, place))

    return lambda: trials.is_right(change, number)


def _meant(value: str) -> Iterator[tuple[str, float]]:
    """What a value may have been meant to be."""
    kind, _, text = value.partition(":")
    if kind == "tile":
        yield from ((f"tile:{name}", _SWAP) for name in TILE_VALUES if name != text)
    elif kind == "u32":
        now = int(text, 0)
        for other in (now + 1, now - 1):
            if other >= 0:
                yield f"u32:{other:#x}", _NEAR


def _others(program: Program, part: TileSpec, name: str, k: int) -> Iterator[tuple[str, float]]:
    """What an argument may have been meant to be: what sisters have, places, neighbours."""
    value = part.cores[name].args[k]
    kind, _, text = value.partition(":")
    if kind != "u32":
        return
    sisters = [core.args[k] for core in part.cores.values() if len(core.args) > k]
    drams = [spec.dram for spec in program.inputs] + [spec.dram for spec in program.outputs]
    tensors = [dram.address for dram in drams if dram]
    buffers = [one.index for one in part.buffers]
    likely = [*sisters, *(f"u32:{n:#x}" for n in tensors), *(f"u32:{n}" for n in buffers)]
    now = int(text, 0)
    alike = sisters.count(value) == 1 and len(sisters) > _FEW and len(set(sisters)) == _FEW
    for one in dict.fromkeys(likely):
        if one != value:
            yield one, AS_OTHERS if alike and one in sisters else 0.6
    agreed = now > 1 and (sisters.count(value) > 1 or now in _pages(program))
    for other in (now + 1, now - 1, 2 * now, now // 2):
        if other >= 0 and other != now:
            yield f"u32:{other}", _AGREED if agreed else _NEAR


def _pages(program: Program) -> set[int]:
    """How many pages tensors in DRAM have: an argument that says so is what it is meant to be."""
    tensors = [(spec.dram, spec.size) for spec in program.inputs]
    tensors += [(spec.dram, spec.size) for spec in program.outputs]
    return {-(-size // dram.page) for dram, size in tensors if dram}


def _put(trials: Trials, number: int, core: CoreSpec, changed: tuple[str, ...]) -> Cures:
    part = trials.program.tiles[number]
    cores = {name: replace(one, args=changed) if one is core else one
             for name, one in part.cores.items()}  # fmt: skip
    again = _launches(trials, _with(trials.program, number, replace(part, cores=cores)))

    def change(tile: Tile) -> None:
        place = values_of(tile.xy, part.at)
        given = encode_values(core.args, part.origin, place)
        data = tile.state.l1.tobytes()
        at = data.find(given)
        if at < 0 or data.find(given, at + 4) >= 0:
            raise InputError("arguments that stand in several places")
        tile.write(at, encode_values(changed, part.origin, place))

    def cures() -> bool:
        try:
            return trials.is_right(change, number)
        except InputError:
            return len(core.args) <= _SHORT and again()

    return cures
