"""Which step of a computation loses how much: unpack, fidelity, sums, SFPU, SFPSTORE, pack."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.debug import ulps
from bhemu.debug.shadow import (
    FIDELITY,
    STEPS,
    STORE,
    SUM,
    TRUE,
    UNPACK,
    VECTOR,
    Floats,
    Packed,
    Shadow,
    rest,
)
from bhemu.names import resolve
from bhemu.program import codecs, tensor
from bhemu.program.specs import OutputSpec, Program
from bhemu.tensix.insn import disassemble
from bhemu.tile import Tile

_ROUNDING = 12**-0.5  # ULP, root mean square
_METHOD = "method"  # no step of the run: its constants, tables and formulas
_SHOWN = 3  # words of the vector unit


@dataclass(frozen=True)
class Lost:
    """The error that the steps add in one tile of an output: root mean square, in ULP.

    The unit is that of the exact value, or that of the tile's median where this is larger; 0.29 is
    what rounding alone costs. With exact values "method" is what the computation would be off if no
    step rounded, and `total` what it is off.
    `followed`: the share of its elements that could be followed. `words`: what each word of the
    vector unit adds, in the order of the shadow.
    """

    tile: dict[str, int]
    ulp: dict[str, float]
    followed: float
    words: tuple[float, ...] = ()
    total: float | None = None

    @property
    def most(self) -> str:
        """The step that lost the most."""
        return max(self.ulp, key=self.ulp.__getitem__)

    @property
    def bits(self) -> float:
        """Bits of the mantissa that it cost; rounding to the format costs none."""
        return bits_lost(self.ulp[self.most])

    @property
    def doubtful(self) -> bool:
        """Whether what was followed is further from the exact values than what came out."""
        return self.total is not None and self.ulp[_METHOD] > 2 * max(self.total, 1.0)

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        shown = {"tile": self.tile, "ulp": self.ulp, "followed": self.followed}
        return {**shown, "most": self.most, "bits": self.bits, "doubtful": self.doubtful}


def bits_lost(ulp: float) -> float:
    """Bits of the mantissa that an error costs."""
    return float(np.log2(max(ulp / _ROUNDING, 1.0)))


def refused(spec: OutputSpec) -> str:
    """Why the steps of an output are not followed, or nothing."""
    if codecs.FORMATS[spec.dtype].kind == "raw":
        return f'dtype "{spec.dtype}" is bytes, no numbers'
    if spec.layout not in tensor.EDGE or len(spec.shape) < 2:
        return f'layout "{spec.layout}" has no tiles'
    return ""


def packed_of(spec: OutputSpec, base: int) -> Packed:
    """Where the datums of an output at `base` are kept."""
    return Packed(base, spec.size, codecs.FORMATS[spec.dtype].bits)


def by_tile(
    packed: Packed, base: int, data: bytes, spec: OutputSpec, exact: Floats | None = None
) -> list[Lost]:
    """What was lost in each tile of an output that lies at `base`, in the order of memory."""
    fmt, edge = codecs.FORMATS[spec.dtype], tensor.EDGE[spec.layout]
    got = codecs.widen(tensor.decode(data, spec.shape, spec.dtype, spec.layout))
    first = (0,) * (got.ndim - 2)
    form = spec.shape, spec.dtype, spec.layout
    inside = np.array(
        [[tensor.bit_offset((*first, r, c), *form) for c in range(edge)] for r in range(edge)]
    )
    inside -= inside[0, 0]
    found = []
    for place in np.ndindex(*got.shape[:-2], got.shape[-2] // edge, got.shape[-1] // edge):
        *lead, row, column = place
        start = tensor.bit_offset((*lead, row * edge, column * edge), *form)
        here = (*lead, *(slice(n * edge, (n + 1) * edge) for n in (row, column)))
        made = packed.numbers(8 * base + start + inside)
        wanted = None if exact is None else exact[here]
        found.append(_tile(made, got[here], fmt, (row, column), wanted))
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


def _tile(
    made: Floats,
    got: Floats,
    fmt: codecs.Format,
    place: tuple[int, int],
    exact: Floats | None = None,
) -> Lost:
    known = np.isfinite(made).all(axis=0) & np.isfinite(got)
    if exact is not None:
        known &= np.isfinite(exact)
    made, got = np.where(known, made, 0.0), np.where(known, got, 0.0)
    more = max(VECTOR - len(made), 0)
    made = np.concatenate([made, np.zeros((more, *got.shape))])
    true, vector = made[TRUE], made[VECTOR:]
    # In the order of STEPS.
    parts = made[UNPACK], made[FIDELITY], made[SUM], made[STORE], vector.sum(axis=0)
    errors = dict(zip(STEPS, (*parts, rest(got, made)), strict=True))
    whole = None
    if exact is not None:
        wanted = np.where(known, exact, 0.0)
        errors[_METHOD], whole = true - wanted, got - wanted
    unit = _units(true, known, fmt)
    ulp = {step: _rms(error / unit, known) for step, error in errors.items()}
    names = ("tile_row", "tile_column")
    return Lost(
        dict(zip(names, place, strict=True)),
        ulp,
        float(known.mean()),
        tuple(_rms(word / unit, known) for word in vector),
        None if whole is None else _rms(whole / unit, known),
    )


class Steps:
    """What the steps of a program lose: it runs once more when that is asked first."""

    def __init__(self, program: Program, fresh: Callable[[], Tile]) -> None:
        self._program, self._fresh = program, fresh
        self._ran: tuple[Tile, Shadow] | None = None
        self._packed: dict[str, tuple[int, Packed]] = {}

    def _run(self) -> tuple[Tile, Shadow]:
        if self._ran is None:
            tile = self._fresh()
            for spec in self._program.outputs:
                if not refused(spec):
                    base = resolve(tile, spec.at)
                    self._packed[spec.name] = base, packed_of(spec, base)
            shadow = Shadow(tile, [packed for _, packed in self._packed.values()])
            tile.run()
            self._ran = tile, shadow
        return self._ran

    def lost(self, spec: OutputSpec, exact: Floats | None = None) -> list[Lost]:
        """In each tile of an output; nothing where its format or layout is refused."""
        tile, _ = self._run()
        if refused(spec):
            return []
        base, packed = self._packed[spec.name]
        return by_tile(packed, base, tile.read(base, spec.size), spec, exact)

    @property
    def places(self) -> dict[str, str]:
        """Where each step is done, as far as it is: the words that do it most often."""
        tile, shadow = self._run()
        found = {}
        for step, seen in shadow.places.items():
            for place, n in seen.most_common(1):
                at = tile.place(place.core, place.pc)
                found[step] = f"{at}, {n} of {seen.total()} words"
        return found

    def words(self, lost: list[Lost]) -> list[dict[str, object]]:
        """The words of the vector unit that lose most in these tiles: ULP, bits, name, place."""
        tile, shadow = self._run()
        each = np.zeros(len(shadow.words))
        for one in lost:
            own = np.array(one.words[: len(each)])
            each[: len(own)] = np.maximum(each[: len(own)], own)
        found: list[dict[str, object]] = []
        for k in np.argsort(-each)[:_SHOWN]:
            place, ulp = shadow.words[int(k)], float(each[k])
            if ulp > 0:
                name = disassemble(place.word)
                at = tile.place(place.core, place.pc)
                found.append({"word": name, "ulp": ulp, "bits": bits_lost(ulp), "place": at})
        return found

    @property
    def unfollowed(self) -> list[str]:
        """What could not be followed, where and how often."""
        tile, shadow = self._run()
        seen: Counter[tuple[str, str]] = Counter()
        for (why, place), n in shadow.unfollowed.items():
            seen[why, str(tile.place(place.core, place.pc))] += n
        return [f"{why}, {n} words: {place}" for (why, place), n in seen.most_common(_SHOWN)]
