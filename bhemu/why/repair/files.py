"""Edits of PROGRAM.toml: the values, tensors, ELFs and end that a run is given."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, InputError
from bhemu.launch.session import data_of
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program.codecs import DTYPES
from bhemu.program.schema import InputSpec, OutputSpec, Program, Until
from bhemu.program.tensor import LAYOUTS
from bhemu.why.repair.tiles import TomlLines, arguments, exchanges, other_elfs, semaphores, values
from bhemu.why.repair.trial import Trials

_CONVERT = "nearest"
_SAME_BITS = ("fp32", "tf32")  # read alike; what is compared less closely is no more right
_SAME = 0.7  # how much less likely it is that an input was meant to be the output
_FEW = 2  # words that show no order
_PAGE, _PAGES = 0x200, 17  # bytes of a face, and how many of them an output may be off
_TYPED = 0.9  # how much less likely it is that a number written as one was meant as bits
_ROW, _OF_ROW = 3, 0.75  # words that are alike, cost of a value as they have it
_PLACE, _ALIGNED = 0x1000, 64  # numbers from there on are places; of pages in DRAM
_NO_SIZE = 0.5  # how much less likely it is that a count or choice was meant to be a size
_KIND = 0.85  # cost of a value of another kind
_RELEASED = 0.4  # cost of a core that runs from the beginning
_SHIFTED = 1.25  # cost of a value that is missing among others
_UNLIKE = 1.4  # cost of other ELFs whose names do not say so
_UNREAD, _ODD = 0.6, 0xA5C3F00D  # where nobody reads the last one then, whatever it is
_SMALL = 64  # numbers up to it are counts and choices, not places


@dataclass(frozen=True)
class FileEdit:
    """A change of PROGRAM.toml: its line, the advice, and whether it makes the run right."""

    line: int
    text: str
    cost: float
    cures: Callable[[], bool]


def _numbers(program: Program) -> list[int]:
    """Numbers that a value of [[set]] may have been meant to be: places, counts of tiles."""
    tensors: list[Any] = [*program.inputs, *program.outputs]
    places = [spec.at for spec in tensors if isinstance(spec.at, int)]
    counts = [int(np.prod(spec.shape)) for spec in tensors]
    sides = [n for spec in tensors for n in spec.shape]
    tiles = [n // size for n in (*counts, *sides) for size in (1, 16, 32, 1024) if n % size == 0]
    return list(dict.fromkeys([*places, *tiles]))


_FLOATS = (0.0, 0.5, 1.0, 2.0, -1.0)


class FileEdits:
    """The edits of a program's PROGRAM.toml."""

    def __init__(self, trials: Trials, places: Sequence[int] = ()) -> None:
        """places: addresses that the code names."""
        self._trials, self._program = trials, trials.program
        self._places = [*_numbers(self._program), *places]
        assert self._program.path is not None
        self._lines = TomlLines(self._program.path)

    def every(self) -> Iterator[FileEdit]:
        """All of them, cheap and likely ones first."""
        if not self._program.is_alone:
            yield from self._outputs()
            for found in (exchanges, semaphores, arguments, values):
                for line, text, cost, cures in found(self._trials, self._lines):
                    yield FileEdit(line, text, cost, cures)
            return
        yield from self._outputs()
        yield from self._inputs()
        yield from self._sets()
        yield from self._cores()
        yield from self._ends()

    def _try(self, change: Callable[[Tile], None]) -> Callable[[], bool]:
        def cures() -> bool:
            try:
                return self._trials.is_right(change)
            except InputError:
                return False

        return cures

    # Tensors

    def _inputs(self) -> Iterator[FileEdit]:
        inputs = self._program.inputs
        for i, spec in enumerate(inputs):
            for layout in LAYOUTS:
                if layout != spec.layout:
                    yield self._input(i, "layout", layout, replace(spec, layout=layout))
            for dtype in DTYPES:
                if dtype != spec.dtype:
                    other = replace(spec, dtype=dtype, convert=_CONVERT)
                    yield self._input(i, "dtype", dtype, other)
            for at in dict.fromkeys(self._places):
                if at != spec.at and at >= 0x100:
                    yield self._input(i, "at", hex(at), replace(spec, at=at))
            for file in sorted(spec.file.parent.glob("*.npy")):
                if file not in (spec.file, *(one.expect for one in self._program.outputs)):
                    yield self._input(i, "file", file.name, replace(spec, file=file), -0.01 * i)
        for i, j in combinations(range(len(inputs)), 2):
            first, second = inputs[i], inputs[j]

            def exchange(tile: Tile, a: InputSpec = first, b: InputSpec = second) -> None:
                _write(tile, replace(a, at=b.at))
                _write(tile, replace(b, at=a.at))

            line = self._lines.key("input", i, "at")
            text = f"exchange the places of {first.file.name} and {second.file.name}"
            yield FileEdit(line, text, 0.5, self._try(exchange))

    def _input(self, i: int, key: str, value: str, spec: InputSpec, later: float = 0.0) -> FileEdit:
        line = self._lines.key("input", i, key)
        text = f"input {spec.file.name}: {key} = {value}"
        cost = 0.6 + later + _usual(self._program.inputs[i].layout, spec.layout)
        return FileEdit(line, text, cost, self._try(lambda tile: _write(tile, spec)))

    def _outputs(self) -> Iterator[FileEdit]:
        for i, spec in enumerate(self._program.outputs):
            changes: list[tuple[str, Any]] = [
                ("layout", layout) for layout in LAYOUTS if layout != spec.layout
            ]
            same = _SAME_BITS if spec.compare != "bits" and spec.dtype in _SAME_BITS else ()
            changes += [("dtype", d) for d in DTYPES if d != spec.dtype and d not in same]
            if spec.dram is None:
                changes += [("at", at) for at in self._near(spec) if at != spec.at]
            for key, value in changes:
                other: Any = replace(spec, **{key: value})
                line = self._lines.key("output", i, key)
                shown = hex(value) if isinstance(value, int) else value
                text = f"output {spec.name}: {key} = {shown}"
                cost = 0.5 + _usual(spec.layout, other.layout)
                if key == "at" and value in [one.at for one in self._program.inputs]:
                    cost += _SAME  # an input is no result
                yield FileEdit(line, text, cost, self._reading(i, other))

            if spec.dram is not None:
                for at in self._given():
                    other = replace(spec, dram=replace(spec.dram, address=at))
                    line = self._lines.key("output", i, "dram")
                    text = f"output {spec.name}: address = {at:#x}"
                    cost = 0.55 if self._alike(at, spec.dram.address) else 0.9
                    yield FileEdit(line, text, cost, self._reading(i, other))

    def _given(self) -> list[int]:
        """Places in DRAM that kernels are told of and where no tensor is."""
        texts = [text for part in self._program.placed() for core in part.cores.values()
                 for text in core.args if text.startswith("u32:")]  # fmt: skip
        known = {spec.dram.address for spec in self._tensors() if spec.dram is not None}
        numbers = dict.fromkeys(int(text[4:], 0) for text in texts)
        return [n for n in numbers if n >= _PLACE and n % _ALIGNED == 0 and n not in known]

    def _alike(self, at: int, now: int) -> bool:
        """Whether all inputs begin as far into a page as `at`, and not as `now`."""
        offsets = {s.dram.address % _PLACE for s in self._program.inputs if s.dram is not None}
        return offsets == {at % _PLACE} and now % _PLACE not in offsets

    def _tensors(self) -> list[Any]:
        return [*self._program.inputs, *self._program.outputs]

    def _near(self, spec: OutputSpec) -> list[int]:
        """Where else an output may lie: where the code puts something, or some pages off."""
        at = resolve(self._trials.tile, spec.at)
        pages = [at + sign * n * _PAGE for n in range(1, _PAGES) for sign in (-1, 1)]
        known = [*_numbers(self._program), *self._places, *pages]
        return [one for one in dict.fromkeys(known) if 0 <= one <= L1_SIZE - spec.size]

    def _reading(self, i: int, spec: OutputSpec) -> Callable[[], bool]:
        return lambda: self._trials.reads_right(i, spec)

    # The end

    def _ends(self) -> Iterator[FileEdit]:
        for i, until in enumerate(self._program.run.until):
            at = resolve(self._trials.tile, until.word)
            line = self._lines.inline("run", 0, "until", i)
            held = self._trials.left_at(at)
            if held and held != until.equals:
                text = f"word {at:#x} equals {held:#x} at the end, not {until.equals:#x}"
                others = {one.equals for one in self._program.run.until if one is not until}
                cost = 0.6 if self._regular(i, held) else 1.9 if held in others else 1.4
                yield FileEdit(line, text, cost, self._until(i, replace(until, equals=held)))
            for other in range(max(at - 0x80, 0), at + 0x80, 4):
                if other != at:
                    text = f"the run ends with word {other:#x}, not {at:#x}"
                    change = replace(until, word=other)
                    cost = 2.3 if self._leaves_row(i, other) else 0.6
                    yield FileEdit(line, text, cost, self._until(i, change))

    def _leaves_row(self, i: int, other: int) -> bool:
        """Whether the words of the end stand one behind the other now, and not with this one."""
        places = [resolve(self._trials.tile, until.word) for until in self._program.run.until]
        changed = [*places[:i], other, *places[i + 1 :]]
        return len(places) > _FEW and _in_steps(places) and not _in_steps(changed)

    def _regular(self, i: int, held: int) -> bool:
        """Whether the words of the end are one apart where this one is `held`, and only then."""
        values = [until.equals for until in self._program.run.until]
        others = [*values[:i], held, *values[i + 1 :]]
        return len(values) > _FEW and _in_steps(others) and not _in_steps(values)

    # Values

    def _sets(self) -> Iterator[FileEdit]:
        part = self._program.placed()[0]
        for i, spec in enumerate(part.sets):
            data = data_of(spec, self._trials.tile, part)
            if len(data) % 4:
                continue
            words = np.frombuffer(data, "<u4")
            at = resolve(self._trials.tile, spec.at)
            for k, value in enumerate(int(n) for n in words):
                line, written = self._lines.written("set", i, "values", k)
                beside = _beside(words.tolist(), k)
                for other, shown, cost in _others(value, self._program, written, beside):
                    now = written or f"{value:#x}"
                    text = f"value {k} of set {at:#x}: {shown} instead of {now}"

                    def put(tile: Tile, address: int = at + 4 * k, word: int = other) -> None:
                        tile.write(address, word.to_bytes(4, "little"))

                    yield FileEdit(line, text, cost, self._try(put))
            for k, m in combinations(range(len(words)), 2):
                if words[k] == words[m]:
                    continue

                new = words.copy()
                new[[k, m]] = words[[m, k]]

                def swap(tile: Tile, address: int = at, data: bytes = new.tobytes()) -> None:
                    tile.write(address, data)

                line = self._lines.value("set", i, "values", k)
                text = f"exchange values {k} and {m} of set {at:#x}"
                cost = 0.9 if min(words[k], words[m]) > _SMALL else 1.4
                yield FileEdit(line, text, cost, self._try(swap))
            yield from self._shifted(i, at, [int(n) for n in words])

    def _shifted(self, i: int, at: int, words: list[int]) -> Iterator[FileEdit]:
        """One value more or one less, so that all that follow have another place."""
        for k, new, text in shifted(words):
            cures = self._try(_writer(at, new))
            found = cures()
            unread = found and len(new) > len(words) and self._try(_writer(at, [*new[:-1], _ODD]))()
            line = self._lines.value("set", i, "values", min(k, len(words) - 1))
            moved = [(a, b) for a, b in zip(words, new, strict=False) if a != b]
            odd = len(moved) <= _FEW or any(1 <= a < _SMALL and b > _PAGE for a, b in moved)
            cost = _SHIFTED + _NO_SIZE * odd + _UNREAD * unread
            yield FileEdit(line, f"set {at:#x}: {text}", cost, cures if found else lambda: False)

    # Cores

    def _cores(self) -> Iterator[FileEdit]:
        cores = self._program.cores
        held = [name for name, spec in cores.items() if not spec.release]
        for name, spec in cores.items() if not self._runs(held) else ():
            if not spec.release:
                line, now = self._lines.key("cores", 0, name), {name: replace(spec, release=True)}
                text = f"{name} is released by nobody: without release = false"
                yield FileEdit(line, text, _RELEASED, self._exchanged({**cores, **now}))
        for one in other_elfs(cores, _UNLIKE):
            line = min(self._lines.key("cores", 0, name) for name in one.names)
            yield FileEdit(line, one.text, one.cost, self._exchanged(one.cores))

    def _runs(self, names: list[str]) -> bool:
        """Whether the code releases one of these cores; it is to release the others then, too."""
        if names:
            self._trials.is_right()
        retired = self._trials.tile.state.retired
        return any(retired[CORE_NAMES.index(name)] for name in names)

    def _exchanged(self, cores: Any) -> Callable[[], bool]:
        return lambda: self._other(replace(self._program, cores=cores))

    def _until(self, i: int, until: Until) -> Callable[[], bool]:
        every = list(self._program.run.until)
        every[i] = until
        run = replace(self._program.run, until=tuple(every))
        return lambda: self._other(replace(self._program, run=run))

    def _other(self, program: Program) -> bool:
        try:
            return self._trials.of(program).is_right()
        except BhemuError:
            return False


def _in_steps(values: list[int]) -> bool:
    steps = {b - a for a, b in pairwise(values)}
    return len(steps) == 1


def _usual(now: str, then: str) -> float:
    """Cost of another layout: the coprocessor works on tiles."""
    return 0.0 if now == then else -0.2 if then == "tile32" else 0.2 if now == "tile32" else 0.0


def _writer(at: int, words: list[int]) -> Callable[[Tile], None]:
    data = np.array(words, "<u4").tobytes()
    return lambda tile: tile.write(at, data)


def shifted(words: list[int]) -> Iterator[tuple[int, list[int], str]]:
    """(place, other values, what is different): one value more, as its neighbours, or one less."""
    seen = {tuple(words)}
    for k in range(len(words) + 1):
        near = dict.fromkeys([*words[max(k - 1, 0) : k + 1], 0, 1])
        some = [([*words[:k], one, *words[k:]], f"{one:#x} added") for one in near]
        if k < len(words):
            some.append(([*words[:k], *words[k + 1 :], 0], f"{words[k]:#x} is one too many"))
        for new, text in some:
            if tuple(new) not in seen:
                seen.add(tuple(new))
                yield k, new, f"{text} before value {k}" if "added" in text else text


def _of_other_kind(value: int, is_float: bool) -> Iterator[tuple[int, str]]:
    """A value whose bits are those of another kind: of a bf16, of an fp32, of an integer."""
    now = float(np.array(value, np.uint32).view(np.float32))
    if is_float:
        if 0 < abs(now) < _PAGE and now == int(now):
            yield int(now) & 0xFFFFFFFF, f"{int(now):#x}"
        if not value & 0xFFFF:
            yield value >> 16, f"{value >> 16:#x}, the bits of a bf16,"
    elif _PAGE <= value < 1 << 16:
        yield value << 16, f"{value << 16:#x}, the bits of an fp32,"
    elif value >= 1 << 16 and not value & 0xFFFF:
        yield value >> 16, f"{value >> 16:#x}, the bits of a bf16,"
    elif 0 < value < _PAGE:
        yield int(np.array(value, np.float32).view(np.uint32)), f"f32:{value}"


def _write(tile: Tile, spec: InputSpec) -> None:
    tile.write(resolve(tile, spec.at), spec.data())


def _beside(words: Sequence[int], k: int) -> list[int]:
    """What several words next to a small one have alike: it may be of their row."""
    rows = words[max(k - _ROW, 0) : k], words[k + 1 : k + 1 + _ROW]
    full = [row for row in rows if len(row) == _ROW and len(set(row)) == 1]
    found = dict.fromkeys(row[0] for row in full)
    return [one for one in found if max(one, words[k]) < _SMALL]


def _others(
    value: int, program: Program, written: str = "", beside: Sequence[int] = ()
) -> Iterator[tuple[int, str, float]]:
    """(word, text, cost) that a value may have been meant to be: sizes and places are likelier.

    written: the value in PROGRAM.toml, which says whether it is a float; beside: of its neighbours.
    """
    seen = {value}
    for one in beside:
        if one not in seen:
            seen.add(one)
            yield one, f"{one:#x}", _OF_ROW
    sizes = [n for n in _numbers(program) if n > 1]
    is_float = written.startswith("f")
    for one in () if is_float else (*sizes, value + 1, value - 1, 2 * value, value // 2, *range(5)):
        if 0 <= one < 1 << 32 and one not in seen:
            seen.add(one)
            # A count or choice is no place; what is off is no size.
            small = value < _SMALL and one > (_PAGE if value > 1 else 1)
            far = _NO_SIZE * (1 <= value < _SMALL and one > _PAGE)
            yield one, f"{one:#x}", (0.8 if one in sizes and not small else 1.4) + far
    for one, text in _of_other_kind(value, is_float):
        if one not in seen:
            typed = is_float and one == value >> 16  # nobody writes a float for the bits of another
            yield one, text, _KIND + _TYPED * typed
    now = float(np.array(value, np.uint32).view(np.float32))
    if not is_float and (written or not 1e-6 < abs(now) < 1e6):
        return
    for other in (*_FLOATS, -now, now / 2, 2 * now):
        word = int(np.array(other, np.float32).view(np.uint32))
        if word not in seen:
            seen.add(word)
            yield word, f"f32:{other}", 0.9
