"""Which step of a computation loses how much: unpack, fidelity phases, sums, SFPSTORE, pack."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.debug import ulps
from bhemu.debug.shadow import FIDELITY, HELD, STEPS, STORE, TRUE, UNPACK, Floats, Shadow
from bhemu.names import resolve
from bhemu.program import codecs, tensor
from bhemu.program.specs import OutputSpec, Program
from bhemu.tile import Tile

_ROUNDING = 12**-0.5  # ULP, root mean square


@dataclass(frozen=True)
class Lost:
    """The error that the steps add in one tile of an output: root mean square, in ULP.

    The unit is that of the exact value, or that of the tile's median where this is larger; 0.29 is
    what rounding alone costs.
    `followed`: the share of its elements that could be followed.
    """

    tile: dict[str, int]
    ulp: dict[str, float]
    followed: float

    @property
    def most(self) -> str:
        """The step that lost the most."""
        return max(self.ulp, key=self.ulp.__getitem__)

    @property
    def bits(self) -> float:
        """Bits of the mantissa that it cost; rounding to the format costs none."""
        return float(np.log2(max(self.ulp[self.most] / _ROUNDING, 1.0)))

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {**vars(self), "most": self.most, "bits": self.bits}


def by_tile(shadow: Shadow, base: int, data: bytes, spec: OutputSpec) -> list[Lost]:
    """What was lost in each tile of an output that lies at `base`, in the order of memory."""
    fmt = codecs.FORMATS[spec.dtype]
    if fmt.bits < 8 or fmt.kind in ("int", "raw"):
        return []
    got = codecs.widen(tensor.decode(data, spec.shape, spec.dtype, spec.layout))
    edge = tensor.EDGE.get(spec.layout)
    if edge is None or got.ndim < 2:
        return []
    first = (0,) * (got.ndim - 2)
    inside = np.array(
        [
            [
                tensor.bit_offset((*first, r, c), spec.shape, spec.dtype, spec.layout)
                for c in range(edge)
            ]
            for r in range(edge)
        ]
    )
    inside -= inside[0, 0]
    found = []
    for place in np.ndindex(*got.shape[:-2], got.shape[-2] // edge, got.shape[-1] // edge):
        *lead, row, column = place
        index = (*lead, row * edge, column * edge)
        start = tensor.bit_offset(index, spec.shape, spec.dtype, spec.layout)
        there = got[(*lead, *(slice(n * edge, (n + 1) * edge) for n in (row, column)))]
        found.append(_tile(shadow.l1[:, base + (start + inside) // 8], there, fmt, (row, column)))
    return found


def _rms(values: Floats, known: npt.NDArray[np.bool_]) -> float:
    return float(np.sqrt((values**2).sum() / max(int(known.sum()), 1)))


def _units(true: Floats, known: npt.NDArray[np.bool_], fmt: codecs.Format) -> Floats:
    """The ULP that each error is measured in."""
    sizes = np.abs(true)
    some = sizes[known & (sizes > 0)]
    typical = np.median(some) if len(some) else 0.0
    least = float(ulps.spacing(np.full((1, codecs.GROUP), typical), fmt)[0, 0])
    own = ulps.spacing(sizes.reshape(-1, codecs.GROUP), fmt).reshape(sizes.shape)
    return np.maximum(own, least)


def _tile(made: Floats, got: Floats, fmt: codecs.Format, place: tuple[int, int]) -> Lost:
    known = np.isfinite(made).all(axis=0) & np.isfinite(got)
    made, got = np.where(known, made, 0.0), np.where(known, got, 0.0)
    true, held = made[TRUE], made[HELD]
    summed = held - made[TRUE:HELD].sum(axis=0)
    each = made[UNPACK], made[FIDELITY], summed, made[STORE], got - held
    errors = dict(zip(STEPS, each, strict=True))
    unit = _units(true, known, fmt)
    ulp = {step: _rms(error / unit, known) for step, error in errors.items()}
    names = ("tile_row", "tile_column")
    return Lost(dict(zip(names, place, strict=True)), ulp, float(known.mean()))


class Steps:
    """What the steps of a program lose: it runs once more when that is asked first."""

    def __init__(self, program: Program, fresh: Callable[[], Tile]) -> None:
        self._program, self._fresh = program, fresh
        self._ran: tuple[Tile, Shadow] | None = None

    def _run(self) -> tuple[Tile, Shadow]:
        if self._ran is None:
            tile = self._fresh()
            shadow = Shadow(tile)
            tile.run()
            self._ran = tile, shadow
        return self._ran

    def lost(self, spec: OutputSpec) -> list[Lost]:
        """In each tile of an output."""
        tile, shadow = self._run()
        base = resolve(tile, spec.at)
        return by_tile(shadow, base, tile.read(base, spec.size), spec)

    @property
    def places(self) -> dict[str, str]:
        """Where each step is done, as far as it is: the words that do it most often."""
        tile, shadow = self._run()
        found = {}
        for step, seen in shadow.places.items():
            for (core, pc), n in seen.most_common(1):
                found[step] = f"{tile.place(core, pc)}, {n} of {seen.total()} words"
        return found
