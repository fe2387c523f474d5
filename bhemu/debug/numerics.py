"""How far outputs are from exact values, elements of outputs, and trials of words."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import InputError
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.program import files, input_files, tensor
from bhemu.program.schema import OutputSpec, Program
from bhemu.program.toml import suggestion
from bhemu.tensix import compiled
from bhemu.tensix.state import State

Floats = NDArray[np.float64]


def read_exact(path: Path, shape: Sequence[int], name: str) -> Floats:
    """The exact values of output `name`, float64 of `shape`; InputError when they do not fit."""
    origin = f"exact values of {name}"
    try:
        array = input_files.from_npy(files.read_bytes(path, "ARRAY_BYTES", origin))
    except input_files.UnreadableError as error:
        text = f"{origin}: {path} cannot be read: {error}"
        raise InputError(text, hint="save them by np.save") from error
    if array.dtype.kind not in "fiu":
        raise InputError(f"{origin}: {path} holds {array.dtype}, not numbers")
    if array.shape != tuple(shape):
        shapes = f"{array.shape}, the output {tuple(shape)}"
        raise InputError(f"{origin}: {path} has shape {shapes}")
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
    if (edge := tensor.EDGE.get(layout)) is None or got.ndim < 2:
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
    inside = np.unravel_index(int(part.argmax()), part.shape)
    index = tuple((at.start or 0) + int(n) for at, n in zip(where, inside, strict=True))
    return TileError(
        tile=dict(zip(("tile_row", "tile_column"), place[-2:], strict=False)),
        most=float(part.max()),
        mean=mean(part),
        infinite=int((~np.isfinite(part)).sum()),
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


# Which inputs decide what one word makes: it is executed again with some of them changed.


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


# Elements of outputs: what they are called, and where they lie.


def datum(base: int, spec: OutputSpec, index: tuple[int, ...]) -> tuple[int, int]:
    """(byte address of an element, mask of its bits in the aligned word that holds it)."""
    at = tensor.bit_offset(index, spec.shape, spec.dtype, spec.layout)
    address = base + at // 8
    bits = tensor.FORMATS[spec.dtype].bits
    return address, ((1 << bits) - 1) << (8 * (address & 3) + at % 8)


def element_name(output: str, index: Sequence[int]) -> str:
    """As `bhemu why` names an element of an output: "y[0,2]"."""
    return f"{output}[{','.join(str(n) for n in index)}]"


_ELEMENT = re.compile(r"(.+)\[([\d,\s]*)\]", re.DOTALL)


def element(program: Program, text: str) -> tuple[OutputSpec | None, tuple[int, ...]]:
    """The output and index that `y[3,5]` names; None for a text of another form.

    InputError for an unknown output, or an index outside of it.
    """
    if (found := _ELEMENT.fullmatch(text.strip())) is None:
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
        hint = f"{name}[{', '.join('0' for _ in spec.shape)}]"
        raise InputError(f"{text}: {name} is {shape}", hint=hint)
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
