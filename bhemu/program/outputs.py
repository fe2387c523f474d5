"""Outputs of a program: read and saved after a run, compared with what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu.errors import InputError
from bhemu.program import files, tensor
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.specs import OutputSpec, Program


COMPARES = ("bits", "ulp", "close")

_NO_ULP = 1 << 62
_EXPECT_HINT = 'save what the format holds, or compare by "ulp" or "close"'


@dataclass(frozen=True)
class Mismatch:
    """One element that differs: where, both values, both bit patterns, and the distance.

    `place` is what `locate` says. `ulp` counts representable values in between (for bfp, those of
    bf16); None when one of the two is NaN.
    """

    index: tuple[int, ...]
    place: dict[str, int]
    expected: float | int
    got: float | int
    expected_bits: str
    got_bits: str
    ulp: int | None

    def __str__(self) -> str:
        place = dict(self.place)
        tile = (place.pop("tile_row", None), place.pop("tile_column", None))
        names = [] if tile[0] is None else [f"tile ({tile[0]},{tile[1]})"]
        names += [f"{name} {value}" for name, value in place.items()]
        distance = "NaN" if self.ulp is None else f"{self.ulp} ULP"
        expected, got = tensor.number_text(self.expected), tensor.number_text(self.got)
        return (
            f"{' '.join(names)} {tensor.in_words(self.index)}: expected {expected}"
            f" ({self.expected_bits}), got {got} ({self.got_bits}), {distance}"
        )


@dataclass(frozen=True)
class Report:
    """The outcome of a comparison; `differing` of `total` elements are outside what `how` allows.

    `first` is the first one in row-major order, `worst` the one farthest off (in ULP; with "close"
    in absolute value).
    """

    name: str
    dtype: str
    layout: str
    how: str
    total: int
    differing: int
    first: Mismatch | None = None
    worst: Mismatch | None = None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.differing == 0

    def as_dict(self) -> dict[str, object]:
        """The report as JSON-ready values; NaN and Inf, which JSON lacks, as text."""
        report = asdict(self)
        for mismatch in (report["first"], report["worst"]):
            for key in ("expected", "got") if mismatch else ():
                if not math.isfinite(mismatch[key]):
                    mismatch[key] = str(mismatch[key])
        return report

    def __str__(self) -> str:
        rule = f"{self.dtype} {self.layout}, compared by {self.how}"
        if self.first is None or self.worst is None:
            return f"{self.name}: all {self.total} elements agree ({rule})"
        lines = [f"{self.name}: {self.differing} of {self.total} elements differ ({rule})"]
        if self.first == self.worst:
            lines.append(f"  first and worst: {self.first}")
        else:
            lines += [f"  first: {self.first}", f"  worst: {self.worst}"]
        return "\n".join(lines)


def compare(
    expected: ArrayLike,
    got: ArrayLike | bytes,
    dtype: str,
    how: str = "bits",
    *,
    layout: str = "tile32",
    name: str = "output",
    max_ulp: int = 1,
    rtol: float = 0.05,
    atol: float = 0.05,
) -> Report:
    """Compare `got` (L1 bytes, or numbers) with the numbers `expected`, element by element.

    "bits": same pattern (every expected value must be exact in `dtype`). "ulp": at most `max_ulp`
    representable values apart from the expected value rounded to nearest. "close": within `atol` +
    `rtol` * |expected|. Two NaN agree except by bits. InputError for unequal shapes.
    """
    tensor.one_of("compare", how, COMPARES)
    pair = _pair(np.atleast_1d(np.asarray(expected)), got, dtype, how=how, layout=layout, name=name)
    bad, distance = pair.outside(how, max_ulp, rtol, atol)
    first = worst = None
    if bad.any():
        first = pair.mismatch(int(np.argmax(bad)))
        worst = pair.mismatch(int(np.argmax(np.where(bad, distance, -1))))
    return Report(name, dtype, layout, how, bad.size, int(bad.sum()), first, worst)


def differing(
    expected: ArrayLike, got: bytes, dtype: str, how: str, *, layout: str, name: str, **allowed: Any
) -> NDArray[np.bool_]:
    """Which elements `compare` finds to differ, in the shape of `expected`."""
    wanted = np.atleast_1d(np.asarray(expected))
    return _pair(wanted, got, dtype, how=how, layout=layout, name=name).outside(how, **allowed)[0]


@dataclass(frozen=True)
class _Pair:
    """Expected and got, in that order, as float64 values and as patterns, all of one shape."""

    fmt: tensor.Format
    layout: str
    values: tuple[tensor.Floats, tensor.Floats]
    bits: Sequence[tensor.Words]
    ulp: NDArray[np.int64]

    def outside(
        self, how: str, max_ulp: int, rtol: float, atol: float
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """(elements that differ, how far each is off)."""
        if how == "bits":
            return self.bits[0] != self.bits[1], self.ulp
        if how != "close":
            return self.ulp > max_ulp, self.ulp
        wanted, have = self.values
        bad: NDArray[np.bool_] = ~np.isclose(have, wanted, rtol=rtol, atol=atol, equal_nan=True)
        with np.errstate(invalid="ignore"):
            return bad, np.nan_to_num(np.abs(wanted - have), nan=np.inf)

    def mismatch(self, flat: int) -> Mismatch:
        shape = self.ulp.shape
        index = tuple(int(i) for i in np.unravel_index(flat, shape))
        digits = 4 if self.fmt.kind == "bfp" else self.fmt.bits // 4
        number = int if self.fmt.kind in ("int", "raw") else float
        expected, got = (number(side[index]) for side in self.values)
        want_bits, got_bits = (f"0x{int(side[index]):0{digits}X}" for side in self.bits)
        far = int(self.ulp[index])
        ulp = None if far == _NO_ULP else far
        place = tensor.locate(index, shape, self.layout)
        return Mismatch(index, place, expected, got, want_bits, got_bits, ulp)


def _pair(
    wanted: NDArray[Any], got: ArrayLike | bytes, dtype: str, *, how: str, layout: str, name: str
) -> _Pair:
    fmt = tensor.format_of(dtype)
    shape = (wanted.nbytes,) if fmt.kind == "raw" else wanted.shape
    try:
        data = tensor.encode(wanted, dtype, layout, "exact" if how == "bits" else "nearest")
    except InputError as error:
        raise InputError(f"{name}: expected {error.message}", hint=_EXPECT_HINT) from error
    if not isinstance(got, bytes):
        numbers = np.atleast_1d(np.asarray(got))
        if numbers.shape != wanted.shape:
            shapes = tensor.in_words(numbers.shape), tensor.in_words(wanted.shape)
            raise InputError(f"{name}: {shapes[0]}, expected {shapes[1]}")
        got = tensor.encode(numbers, dtype, layout)
    bits = [tensor.element_bits(each, shape, dtype, layout) for each in (data, got)]
    target = tensor.widen(tensor.decode(data, shape, dtype, layout))
    if how == "close" and fmt.kind != "raw":
        target = tensor.widen(wanted)
    values = (target, tensor.widen(tensor.decode(got, shape, dtype, layout)))
    # Distance in representable values; 0 between two NaN, _NO_ULP between NaN and a number
    first, second = (_ordinal(words, fmt) for words in bits)
    nan = [np.isnan(v) for v in values]
    distance = np.where(nan[0] & nan[1], 0, np.abs(first - second))
    return _Pair(fmt, layout, values, bits, np.where(nan[0] ^ nan[1], _NO_ULP, distance))


def _ordinal(words: tensor.Words, fmt: tensor.Format) -> NDArray[np.int64]:
    """Position of a pattern among the format's values in increasing order; 0 for both zeros."""
    if not fmt.signed:
        return words.astype(np.int64)
    width = 16 if fmt.kind == "bfp" else fmt.bits
    magnitude = (words & np.uint32((1 << (width - 1)) - 1)).astype(np.int64)
    magnitude >>= fmt.unused
    return np.where(words >> np.uint32(width - 1), -magnitude, magnitude)


# The outputs of a program after a run: read, saved where it says so, and compared.


@dataclass(frozen=True, repr=False)
class OutputResult:
    """One output after a run: where it was, how it compares, where it was saved.

    `report` is None when the program names nothing to compare with, `saved` when nothing was saved.
    """

    spec: OutputSpec
    address: int
    report: Report | None
    saved: Path | None

    @property
    def equal(self) -> bool:
        """False when the output differs from what was expected."""
        return self.report is None or self.report.equal

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values: name, address, shape, dtype, layout, saved, and the report's."""
        compared = {} if self.report is None else self.report.as_dict()
        return {
            **compared,
            "name": self.spec.name,
            "address": self.address,
            "shape": list(self.spec.shape),
            "dtype": self.spec.dtype,
            "layout": self.spec.layout,
            "equal": None if self.report is None else self.report.equal,
            "saved": None if self.saved is None else str(self.saved),
        }

    def __repr__(self) -> str:
        return f"<OutputResult {' '.join(str(self).split())}>"

    def __str__(self) -> str:
        if self.report is not None and not self.report.equal:
            return str(self.report)
        shape = "x".join(str(n) for n in self.spec.shape)
        parts = [self.spec.name, f"{shape} {self.spec.dtype}"]
        if self.report is not None:
            how = "equal" if self.report.how == "bits" else f"agrees by {self.report.how}"
            parts.append(f"{how} ({self.report.total} of {self.report.total})")
        if self.saved is not None:
            parts.append(f"saved to {printable(str(self.saved))}")
        return "  ".join(parts if len(parts) > 2 else [*parts, "not compared"])


def collect(
    program: Program, read: Callable[[OutputSpec], tuple[int, bytes]]
) -> list[OutputResult]:
    """Read every output, save it where the program says so, and compare it.

    read: the address of an output and its bytes. A file is written whole or not.
    """
    results = []
    for spec in program.outputs:
        address, data = read(spec)
        if spec.save is not None:
            _save(spec, data, program.home)
        results.append(OutputResult(spec, address, spec.check(data), spec.save))
    return results


def check_saves(program: Program) -> None:
    """Every file to be saved can be written, and is of a kind that can be read back."""
    keep = list(program.files())
    for spec in program.outputs:
        if spec.save is None:
            continue
        if spec.save.suffix != ".npy" and spec.dtype != "raw":
            hint = 'only dtype = "raw" is saved as plain bytes'
            raise InputError(f"{spec.origin}: save = {spec.save} is not .npy", hint=hint)
        files.check_writable(spec.save, spec.origin, keep)
        keep.append(spec.save)


def _save(spec: OutputSpec, data: bytes, inside: Path | None) -> None:
    """Write an output, below `inside`: its folder may have changed since it was checked."""
    assert spec.save is not None
    if inside is not None and not files.is_inside(spec.save, inside):
        raise InputError(f"{spec.origin}: {spec.save} leaves the folder of the program")
    if spec.save.suffix != ".npy":
        files.write_whole(spec.save, data, spec.origin)
        return
    array = tensor.decode(data, spec.shape, spec.dtype, spec.layout)
    files.write_whole(spec.save, lambda file: np.save(file, array), spec.origin)
