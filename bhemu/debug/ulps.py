"""How far an output is from exact values, in units of its format's last place, tile by tile."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import InputError
from bhemu.program import codecs, files, input_files, tensor

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
    return codecs.widen(array)


def spacing(exact: Floats, fmt: codecs.Format) -> Floats:
    """Distance between neighbouring values of a format at each exact value.

    Of a bfp format it follows from the greatest of the 16 values that share an exponent.
    """
    if fmt.kind in ("int", "raw"):
        return np.ones_like(exact)
    size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    if fmt.kind == "bfp":
        groups = size.reshape(*size.shape[:-1], -1, codecs.GROUP)
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


def distances(got: NDArray[Any], exact: Floats, fmt: codecs.Format) -> Floats:
    """ULP between what came out and the exact values; infinite where only one is not finite.

    An exact zero has no last place: there the unit is that of the greatest value of its tile.
    """
    values = codecs.widen(got)
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


def by_tile(got: NDArray[Any], exact: Floats, fmt: codecs.Format, layout: str) -> list[TileError]:
    """The errors of every tile in memory order; of the whole output where it has no tiles."""
    error = distances(got, exact, fmt)
    edge = tensor.EDGE.get(layout)
    if edge is None or got.ndim < 2:
        return [_tile(got, exact, error, (), tuple(slice(None) for _ in got.shape))]
    found = []
    counts = (*got.shape[:-2], got.shape[-2] // edge, got.shape[-1] // edge)
    for place in np.ndindex(*counts):
        rows, columns = (slice(n * edge, (n + 1) * edge) for n in place[-2:])
        where = (*place[:-2], rows, columns)
        found.append(_tile(got, exact, error, place, where))
    return found


def _tile(
    got: NDArray[Any], exact: Floats, error: Floats, place: tuple[int, ...], where: tuple[Any, ...]
) -> TileError:
    part = error[where]
    finite = part[np.isfinite(part)]
    inside = np.unravel_index(int(part.argmax()), part.shape)
    starts = [at.start or 0 if isinstance(at, slice) else at for at in where]
    skipped = got.ndim - part.ndim
    index = tuple(
        starts[i] if i < skipped else int(starts[i] + inside[i - skipped]) for i in range(got.ndim)
    )
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
    bad = np.flatnonzero(~np.isfinite(codecs.widen(got)))
    return tuple(int(i) for i in np.unravel_index(bad[0], got.shape)) if bad.size else None


def place(index: Sequence[int], shape: Sequence[int], layout: str) -> str:
    """For example "tile (0, 1), face 2, row 3, column 4"."""
    found = tensor.locate(index, shape, layout)
    tile = [found.pop(name) for name in ("tile_row", "tile_column") if name in found]
    named = [f"{name} {value}" for name, value in found.items()]
    return ", ".join([f"tile ({tile[0]}, {tile[1]})", *named] if tile else named)
