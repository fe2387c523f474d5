"""How far outputs are from exact values, and which words computed a value."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.debug.trace import Tracer
from bhemu.errors import InputError
from bhemu.launch import Launched
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import TracedWord
from bhemu.program import files, input_files, tensor
from bhemu.program.coordinates import XY
from bhemu.program.schema import OutputSpec, Program
from bhemu.program.toml import suggestion
from bhemu.tensix import compiled, observe
from bhemu.tensix.insn import decode, instructions
from bhemu.tensix.spaces import LREG
from bhemu.tensix.state import LOG_SIZE, State

Floats = NDArray[np.float64]


def read_exact(path: Path, shape: Sequence[int], name: str) -> Floats:
    """The exact values of output `name`, float64 of `shape`; InputError when they do not fit."""
    try:
        content = files.read_bytes(path, "ARRAY_BYTES", f"exact values of {name}")
        array = input_files.from_npy(content)
    except input_files.UnreadableError as error:
        raise InputError(
            f"exact values of {name}: {path} cannot be read: {error}", hint="save them by np.save"
        ) from error
    if array.dtype.kind not in "fiu":
        raise InputError(f"exact values of {name}: {path} holds {array.dtype}, not numbers")
    if array.shape != tuple(shape):
        raise InputError(
            f"exact values of {name}: {path} has shape {array.shape}, the output {tuple(shape)}"
        )
    return tensor.widen(array)


def spacing(exact: Floats, fmt: tensor.Format) -> Floats:
    """Distance between neighbouring values of a format at each exact value.

    Of a bfp format it follows from the greatest of the 16 values that share an exponent.
    """
    if fmt.kind in ("int", "raw"):
        return np.ones_like(exact)
    size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    if fmt.kind == "bfp":
        groups = size.reshape(*size.shape[:-1], -1, tensor.GROUP)
        size = np.broadcast_to(groups.max(axis=-1, keepdims=True), groups.shape).reshape(size.shape)
    lowest = 2.0 ** (1 - fmt.bias)
    digits = fmt.man - 1 if fmt.kind == "bfp" else fmt.man
    unit: Floats = 2.0 ** (np.floor(np.log2(np.maximum(size, lowest))) - digits)
    return unit


def _greatest(size: Floats) -> Floats:
    """The greatest value of each element's tile, else of all; 1 where everything is 0."""
    edge, all_of_it = tensor.EDGE["tile32"], size.max(initial=0.0) or 1.0
    if size.ndim < 2 or size.shape[-2] % edge or size.shape[-1] % edge:
        return np.full_like(size, all_of_it)
    blocks = size.reshape(*size.shape[:-2], size.shape[-2] // edge, edge, -1, edge)
    most = np.broadcast_to(blocks.max(axis=(-3, -1), keepdims=True), blocks.shape)
    return np.where(most == 0, all_of_it, most).reshape(size.shape)


def distances(got: NDArray[Any], exact: Floats, fmt: tensor.Format) -> Floats:
    """ULP between what came out and the exact values; infinite where only one is not finite.

    An exact zero has no last place: there the unit is that of the greatest value of its tile.
    """
    values = tensor.widen(got)
    finite = np.where(np.isfinite(exact), exact, 0.0)
    sizes = np.where(exact == 0, _greatest(np.abs(finite)), exact)
    with np.errstate(invalid="ignore"):
        error: Floats = np.abs(values - exact) / spacing(sizes, fmt)
    same = (values == exact) | (np.isnan(values) & np.isnan(exact))
    error[same] = 0.0
    error[~same & ~(np.isfinite(values) & np.isfinite(exact))] = np.inf
    return error


@dataclass(frozen=True)
class TileError:
    """One tile of an output: its place, greatest and mean ULP, and where the greatest is.

    The mean leaves out elements that are infinitely far; `infinite` counts them.
    """

    tile: dict[str, int]
    most: float
    mean: float
    infinite: int
    index: tuple[int, ...]
    got: float
    exact: float

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; null for an infinite distance."""
        known = dict(vars(self))
        known.update(index=list(self.index), most=self.most if np.isfinite(self.most) else None)
        for name in ("got", "exact"):
            known[name] = known[name] if np.isfinite(known[name]) else str(known[name])
        return known


def by_tile(got: NDArray[Any], exact: Floats, fmt: tensor.Format, layout: str) -> list[TileError]:
    """The errors of every tile in memory order; of the whole output where it has no tiles."""
    error = distances(got, exact, fmt)
    edge = tensor.EDGE.get(layout)
    if edge is None or got.ndim < 2:
        return [_tile(got, exact, error, (), tuple(slice(None) for _ in got.shape))]
    found = []
    counts = (*got.shape[:-2], got.shape[-2] // edge, got.shape[-1] // edge)
    for place in np.ndindex(*counts):
        sizes = (*(1 for _ in place[:-2]), edge, edge)
        where = tuple(slice(n * k, (n + 1) * k) for n, k in zip(place, sizes, strict=True))
        found.append(_tile(got, exact, error, place, where))
    return found


def _tile(
    got: NDArray[Any],
    exact: Floats,
    error: Floats,
    place: tuple[int, ...],
    where: tuple[slice, ...],
) -> TileError:
    part = error[where]
    finite = part[np.isfinite(part)]
    inside = np.unravel_index(int(part.argmax()), part.shape)
    index = tuple((at.start or 0) + int(n) for at, n in zip(where, inside, strict=True))
    names = ("tile_row", "tile_column")
    return TileError(
        tile=dict(zip(names, place[-2:], strict=False)),
        most=float(part.max()),
        mean=mean(error[where]),
        infinite=int(part.size - finite.size),
        index=index,
        got=float(got[index]),
        exact=float(exact[index]),
    )


def mean(error: Floats) -> float:
    """The mean of the finite distances, 0 when there are none; it cannot overflow."""
    finite = error[np.isfinite(error)]
    return float((finite / finite.size).sum()) if finite.size else 0.0


def first_not_finite(got: NDArray[Any]) -> tuple[int, ...] | None:
    """Index of the first NaN or infinity in the order of rows, None when there is none."""
    bad = np.flatnonzero(~np.isfinite(tensor.widen(got)))
    return tuple(int(i) for i in np.unravel_index(bad[0], got.shape)) if bad.size else None


def place(index: Sequence[int], shape: Sequence[int], layout: str) -> str:
    """For example "tile (0, 1), face 2, row 3, column 4"."""
    found = tensor.locate(index, shape, layout)
    tile = [found.pop(name) for name in ("tile_row", "tile_column") if name in found]
    named = [f"{name} {value}" for name, value in found.items()]
    return ", ".join([f"tile ({tile[0]}, {tile[1]})", *named] if tile else named)


# Where a value comes from: the chain of words that computed it, each tried on a changed record.


# Which inputs decide what one word makes: it is executed again with some of them set to zero.

Cells = NDArray[Any]


class Trial:
    """Executes one word on copies of a state that stands before it; `read` gives its result.

    plain: the result without any change.
    """

    def __init__(
        self, state: State, thread: int, word: int, read: Callable[[State], object]
    ) -> None:
        self._state, self._thread, self._word, self._read = state, thread, word, read
        self._kept = state.buffer.copy()
        self.plain = self.result()

    def result(self, change: Callable[[State], None] = lambda state: None) -> tuple[object, int]:
        """The result after `change` of the state before the word, and how the word ended."""
        state = self._state
        change(state)
        state.trace[0] = 0
        status = compiled.execute(state, self._thread, self._word)
        result = self._read(state), status
        state.buffer[:] = self._kept
        return result

    def deciding(self, member: str, cells: Cells) -> Cells:
        """The fewest of `cells` (n, 2) of the member without which the result would be another.

        Empty when not even without all of them.
        """

        def decide(some: Cells) -> bool:
            def zero(state: State) -> None:
                getattr(state, member)[some[:, 0], some[:, 1]] = 0

            return self.result(zero) != self.plain

        if not decide(cells):
            return cells[:0]
        size = len(cells)
        while size > 1:
            size = (size + 1) // 2
            at = 0
            while at < len(cells) > 1:
                rest = np.delete(cells, slice(at, at + size), axis=0)
                if len(rest) and decide(rest):
                    cells = rest
                else:
                    at += size
        return cells


# The vector instructions that made a value which an SFPSTORE brought into Dst, back to the first.
#
# Each question is a run of the program up to a word, which is then tried on copies of the state.

MOST = 12  # links of a chain
_TRIES = 16  # words looked at for one link
_EXPONENT, _SIGN = 0x7F800000, 0x80000000
_POISON = (0x3F8ACE11, 0x40C0FFEE)
_LANES_OF_ROW, _COLUMNS_OF_LANE = 8, 2
_MACRO = "SFPLOADMACRO had instructions scheduled: what they computed is not followed"
_EARLIER = "no vector instruction before gave it that value"
_LONG = f"and so on: only {MOST} instructions are shown"


@dataclass(frozen=True)
class Register:
    """One lane of an LReg."""

    number: int
    lane: int


@dataclass(frozen=True)
class Link:
    """A word, and the lane of an LReg that it made a NaN, an infinity or what became one."""

    word: TracedWord
    register: Register

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "register": self.register.number,
            "lane": self.register.lane,
            **self.word.as_dict(),
        }


class Chain:
    """`words`: all vector words of the run; `stopped(word)`: the state before that word."""

    def __init__(self, words: list[TracedWord], stopped: Callable[[TracedWord], State]) -> None:
        self._words, self._stopped = words, stopped

    def leading_to(self, store: TracedWord, cell: tuple[int, int]) -> tuple[tuple[Link, ...], str]:
        """Links from the value that `store` put into a Dst cell back to the first, and a note.

        The last word has no non-finite LReg as input; an SFPLOAD took its value from Dst.
        """
        lane = _LANES_OF_ROW * (cell[0] & 3) + cell[1] // _COLUMNS_OF_LANE
        register: Register | None = Register(
            instructions()[store.word >> 24].operands(store.word)["lreg_ind"], lane
        )
        links: list[Link] = []
        before = store.number
        while register is not None and len(links) < MOST:
            found = self._maker(register, before)
            if isinstance(found, str):
                return tuple(links), found
            word, source = found
            links.append(Link(word, register))
            register, before = source, word.number
        return tuple(links), "" if register is None else _LONG

    def _maker(self, register: Register, before: int) -> tuple[TracedWord, Register | None] | str:
        """(the last word that wrote the register, its own non-finite input), or why not."""

        def read(state: State) -> int:
            return int(state.lreg[register.number, register.lane])

        for word in self._candidates(register.number, before):
            state = self._stopped(word)
            if state.route[0] or _is(word, "SFPLOADMACRO"):
                return _MACRO
            trial = Trial(state, word.thread, word.word, read)
            if _writes(trial, register):
                inputs = np.argwhere((state.lreg & _EXPONENT) == _EXPONENT)
                inputs = trial.deciding("lreg", inputs)
                values = state.lreg[inputs[:, 0], inputs[:, 1]] & ~np.uint32(_SIGN)
                worst = [Register(*map(int, inputs[i])) for i in np.argsort(values)[-1:]]
                return word, next(iter(worst), None)  # a NaN is worse than an infinity
        return _EARLIER

    def _candidates(self, number: int, before: int) -> Iterator[TracedWord]:
        left = _TRIES
        for word in reversed(self._words):
            if left and word.number < before and _may_write(word, number):
                left -= 1
                yield word


def _writes(trial: Trial, register: Register) -> bool:
    """Whether the word writes the lane at all: what stood there before must not remain."""

    def remains(poison: int) -> bool:
        def restore(state: State) -> None:
            state.lreg[register.number, register.lane] = poison

        return trial.result(restore)[0] == poison

    return not all(remains(poison) for poison in _POISON)


def _may_write(word: TracedWord, number: int) -> bool:
    """False when the fields of the word exclude that it writes the LReg."""
    cls = instructions()[word.word >> 24]
    places = cls.writes.places(LREG, cls.operands(word.word))
    return places is None or number in places


# Which executed word made a datum of an output what it is: found by running the program again.
#
# A run is repeated exactly, so that each question is one more run: which word last changed the
# datum in L1; which Dst cell that word read for it; which word made that cell a NaN or an
# infinity; which vector instructions made the value, if that is an SFPSTORE.

_CELL_EXPONENT = 0xFF  # of a bf16 cell, and of the upper half of a 32-bit one (see tensix/dest.py)


@dataclass(frozen=True)
class Change:
    """The word that changed a watched place, and what was there before and after."""

    word: TracedWord
    before: int
    after: int


@dataclass(frozen=True)
class Origin:
    """Where a datum comes from.

    `written`: the word that gave it its last value, None when no word did; `cell`: the Dst row and
    column it was read from, None when no single cell decides; `made`: the word that turned that
    cell into a NaN or an infinity; `chain`: if that is an SFPSTORE, the vector instructions that
    made its value, the last first; `note`: what else must be said, "" for nothing.
    """

    address: int
    written: TracedWord | None
    cell: tuple[int, int] | None
    made: TracedWord | None
    note: str
    chain: tuple[Link, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        words = {"written": self.written, "made": self.made}
        shown = {name: None if w is None else w.as_dict() for name, w in words.items()}
        cell = None if self.cell is None else list(self.cell)
        chain = [link.as_dict() for link in self.chain]
        return {"address": self.address, "cell": cell, "note": self.note, **shown, "chain": chain}


class Finder:
    """Answers by running `program` again as `launch` makes it, nothing executed yet."""

    def __init__(self, program: Program, launch: Callable[[], Launched]) -> None:
        self._program, self._launch = program, launch
        self._launched: Launched  # that of the tile that was asked for last
        self._xy: XY | None = None

    def _fresh(self) -> Tile:
        self._launched = self._launch()
        return self._launched.tile if self._xy is None else self._launched.at(self._xy)

    def origin(self, spec: OutputSpec, index: tuple[int, ...]) -> Origin:
        """Where the element `index` of an output comes from."""
        if spec.dram is not None:
            note = "it lies in DRAM: bhemu why PROGRAM tells which tile sent it there"
            return Origin(spec.dram.address, None, None, None, note)
        self._xy = spec.tile
        tile = self._fresh()
        address, mask = datum(resolve(tile, spec.at), spec, index)
        changes, other = self._watched(tile, (observe.L1, address & ~3, 0), mask)
        if not changes or other > changes[-1].word.number:
            note = "no Tensix word wrote it: it was there before, or a core stored it"
            return Origin(address, None, None, None, note)
        writer = changes[-1].word
        cell = self._cell(writer, address & ~3, mask)
        if cell is None:
            note = "no Dst cell decides: the word itself made it (conversion, accumulation)"
            return Origin(address, writer, None, None, note)
        changes, other = self._watched(self._fresh(), (observe.DST, *cell), 0xFFFF)
        made = [c.word for c in changes if c.word.number < writer.number and _became(c)]
        if not made or other > made[-1].number:
            return Origin(address, writer, cell, None, "no Tensix word made the Dst cell so")
        note = _scheduled(made[-1])
        chain: tuple[Link, ...] = ()
        if not note and _is(made[-1], "SFPSTORE"):
            chain, note = Chain(self._vector_words(), self._stopped).leading_to(made[-1], cell)
        return Origin(address, writer, cell, made[-1], note, chain)

    def _vector_words(self) -> list[TracedWord]:
        """Every vector word of the run."""
        words: list[TracedWord] = []

        def keep(word: TracedWord) -> None:
            cls = decode(word.word)
            if cls is not None and cls.unit == "vector":
                words.append(word)

        Tracer(self._fresh(), self._program, keep).run()
        return words

    def _stopped(self, word: TracedWord) -> State:
        """The state of a tile that stands before a word."""
        tile = self._fresh()
        state = tile.state
        state.watch[observe.STOP_AT] = int(state.log_write[0]) + word.number
        state.watch[observe.STOP_THREAD] = word.thread
        Tracer(tile, self._program, lambda word: None).run()
        state.watch[observe.STOP_AT] = -1
        return state

    def _watched(
        self, tile: Tile, place: tuple[int, int, int], mask: int
    ) -> tuple[list[Change], int]:
        """(changes by words, number of the last word before which something else changed it)."""
        state = tile.state
        first = int(state.log_write[0])
        changes: list[Change] = []
        last: int | None = None
        other = -1
        state.watch[: observe.STOP_AT] = place

        def look(word: TracedWord) -> None:
            nonlocal last, other
            logged = state.watch_log[(first + word.number) % LOG_SIZE]
            before, after = (int(v) & mask for v in logged)
            if last is not None and before != last:
                other = word.number
            if before != after:
                changes.append(Change(word, before, after))
            last = after

        Tracer(tile, self._program, look).run()
        return changes, other

    def _cell(self, writer: TracedWord, address: int, mask: int) -> tuple[int, int] | None:
        """The Dst cell without which `writer` would have written a finite datum to L1."""
        state = self._stopped(writer)
        cells = np.argwhere((state.dst & _CELL_EXPONENT) == _CELL_EXPONENT)

        def read(state: State) -> int:
            return int(state.l1.view(np.uint32)[address >> 2]) & mask

        found = Trial(state, writer.thread, writer.word, read).deciding("dst", cells)
        return (int(found[0, 0]), int(found[0, 1])) if len(found) == 1 else None


def _became(change: Change) -> bool:
    """True when a Dst cell became a NaN or an infinity."""
    return change.before & _CELL_EXPONENT != _CELL_EXPONENT == change.after & _CELL_EXPONENT


def _is(word: TracedWord, name: str) -> bool:
    cls = decode(word.word)
    return cls is not None and cls.name == name


def _scheduled(word: TracedWord) -> str:
    """A note when the word itself cannot have written Dst."""
    cls = decode(word.word)
    if cls is None or cls.unit in ("matrix", "unpack") or _is(word, "SFPSTORE"):
        return ""
    return "an SFPSTORE that SFPLOADMACRO scheduled, in the cycle of the word shown"


def datum(base: int, spec: OutputSpec, index: tuple[int, ...]) -> tuple[int, int]:
    """(byte address of an element, mask of its bits in the aligned word that holds it)."""
    at = tensor.bit_offset(index, spec.shape, spec.dtype, spec.layout)
    address = base + at // 8
    bits = tensor.FORMATS[spec.dtype].bits
    return address, ((1 << bits) - 1) << (8 * (address & 3) + at % 8)


_ELEMENT = re.compile(r"(.+)\[([\d,\s]*)\]", re.DOTALL)


def element(program: Program, text: str) -> tuple[OutputSpec | None, tuple[int, ...]]:
    """The output and index that `y[3,5]` names; None for a text of another form.

    InputError for an unknown output, or an index outside of it.
    """
    found = _ELEMENT.fullmatch(text.strip())
    if found is None:
        return None, ()
    name, numbers = found.groups()
    spec = next((spec for spec in program.outputs if spec.name == name), None)
    if spec is None:
        names = [spec.name for spec in program.outputs]
        raise InputError(f"no output is called {name!r}", hint=suggestion(name, names))
    index = tuple(int(number) for number in numbers.split(",") if number.strip())
    inside = all(i < n for i, n in zip(index, spec.shape, strict=False))
    if len(index) != len(spec.shape) or not inside:
        shape = " x ".join(str(n) for n in spec.shape)
        raise InputError(
            f"{text}: {name} is {shape}", hint=f"{name}[{', '.join('0' for _ in spec.shape)}]"
        )
    return spec, index


def watched_text(tile: Tile, text: str) -> str:
    """A place as `watch` takes it: the bytes of an element of an output (y[3,5]), else `text`.

    InputError for an output in the L1 of another tile.
    """
    program = tile.machine.loop.program
    spec, index = (None, ()) if program is None else element(program, text)
    if spec is None:
        return text
    offset, length = datum(0, spec, index)[0], max(tensor.FORMATS[spec.dtype].bits // 8, 1)
    if spec.dram is None:
        if spec.tile not in (None, tile.xy):
            raise InputError(f"{text} does not lie in the L1 of this tile", hint="--tile x,y")
        return f"{resolve(tile, spec.at) + offset:#x}:{length}"
    for piece in spec.dram.pieces(spec.size):
        if piece.offset <= offset < piece.offset + piece.size:
            return f"dram:{piece.bank}:{piece.address + offset - piece.offset:#x}:{length}"
    return text
