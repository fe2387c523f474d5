"""A word of the vector unit for the rules of the shadow: its operands, and how a result is kept."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu.debug.shadow.numbers import DECODED, FLOAT, RAW, TRUE, Floats, exact, rest

if TYPE_CHECKING:
    from bhemu.debug.shadow.run import Shadow

After = Callable[[], None]
Lanes = npt.NDArray[np.bool_]
_WRITABLE, _LANES = 8, 32


class Word:
    """A word that is about to be executed, in the lanes that are enabled then."""

    def __init__(
        self, shadow: "Shadow", t: int, word: int, name: str, values: dict[str, int]
    ) -> None:
        self.shadow, self.t, self.word, self.name, self.v = shadow, t, word, name, values
        s = shadow.s
        self.on: Lanes = np.full(_LANES, True) if s.cc_en[0] == 0 else np.asarray(s.cc != 0)

    @property
    def mode(self) -> int:
        """Its mode, whichever field holds it."""
        return self.v["instr_mod1"] if "instr_mod1" in self.v else self.v["instr_mod0"]

    def bits(self, reg: int) -> Any:
        """Bits of a register now, uint32."""
        return self.shadow.lanes(reg).copy()

    def numbers(self, reg: int, kind: int = FLOAT) -> Floats:
        """Numbers of a register read as `kind`."""
        return self.shadow.lane_numbers(reg, kind)

    def kinds(self, reg: int) -> Any:
        """What the bits of each lane stand for."""
        return self.shadow.lane_kind[reg].copy()

    def exact(self, *registers: int) -> Lanes:
        """Lanes that are exact in all these registers."""
        found = np.full(_LANES, True)
        for reg in registers:
            found &= self.shadow.lane_exact(reg)
        return found

    def constant(self, value: float) -> Floats:
        """The same exact number in all lanes."""
        return exact(np.full(_LANES, value), len(self.shadow.lane))

    # Results

    def result(
        self, dest: Any, made: Floats, kind: Any = FLOAT, chosen: Any = False
    ) -> After | None:
        """Keep `made` as what LReg[dest] is meant to hold; what it holds beside that is its error.

        `dest` and `kind` may be one for each lane; RAW lanes are exact, and so are `chosen` ones.
        """
        if isinstance(dest, int) and dest >= _WRITABLE:
            return None  # a template of SFPLOADMACRO
        kinds = np.broadcast_to(np.asarray(kind, np.uint8), (_LANES,))
        choice = np.broadcast_to(np.asarray(chosen), (_LANES,))

        def after() -> None:
            for reg in np.unique(dest):
                here = self.on & np.broadcast_to(reg == dest, (_LANES,))
                if reg < _WRITABLE and here.any():
                    self._keep(int(reg), here & ~choice, made, kinds)
                    self._choose(int(reg), here & choice, made)

        return after

    def _keep(self, reg: int, here: Lanes, made: Floats, kinds: Any) -> None:
        shadow = self.shadow
        held = np.zeros(_LANES)
        for kind, decoded in DECODED.items():
            held = np.where(kinds == kind, decoded(shadow.lanes(reg)), held)
        own = np.where(kinds == RAW, 0.0, rest(held, made))
        lost = np.isfinite(own) & (own != 0) & here
        if (here & (kinds != RAW) & np.isnan(made[TRUE]) & np.isfinite(held)).any():
            shadow.cannot(f"{self.name} of what was not followed", self.t, self.word)
        shadow.lane[:, reg, here] = 0.0
        shadow.lane[: len(made), reg, here] = made[:, here]
        shadow.lane_kind[reg, here] = kinds[here]
        if lost.any():
            part = shadow.part_of(shadow.place(self.t, self.word))
            shadow.lane[part, reg, here] += own[here]
            shadow.saw("vector", self.t, self.word)

    def _choose(self, reg: int, here: Lanes, made: Floats) -> None:
        """Lanes that are meant to hold just what they hold."""
        shadow = self.shadow
        shadow.lane[:, reg, here] = 0.0
        shadow.lane_kind[reg, here] = np.where(np.isnan(made[TRUE]), FLOAT, RAW)[here]
        shadow.lane[TRUE, reg, here] = np.where(np.isnan(made[TRUE]), np.nan, 0.0)[here]

    def settle(self, reg: int, lanes: Lanes, clean: Lanes, tell: bool = True) -> None:
        """Lanes of a register with new bits: exact where `clean`, else not followed."""
        shadow = self.shadow
        shadow.lane[:, reg, lanes] = 0.0
        shadow.lane_kind[reg, lanes] = RAW
        if (lanes & ~clean).any():
            shadow.lane[TRUE, reg, lanes & ~clean] = np.nan
            shadow.lane_kind[reg, lanes & ~clean] = FLOAT
            if tell:
                shadow.cannot(f"{self.name} of a number that was rounded", self.t, self.word)

    def whole_bits(self, dest: int, *registers: int) -> After:
        """A result that is exact where these registers are, else not followed."""
        clean = self.exact(*registers)
        return lambda: self.settle(dest, self.on, clean) if dest < _WRITABLE else None

    def by_change(self) -> After:
        """A word without a rule: lanes that change are exact where all registers were."""
        clean = self.exact(*range(_WRITABLE))
        old = self.shadow.s.lreg.copy()

        def after() -> None:
            for reg, was in enumerate(old):
                self.settle(reg, self.shadow.lanes(reg) != was, clean)

        return after

    def scaled(self, dest: int, source: int) -> After | None:
        """A float that the word multiplies by a sign and a power of two, as it turns out."""
        if dest >= _WRITABLE:
            return None
        kinds, clean, made = self.kinds(source), self.exact(source), self.numbers(source)
        held = DECODED[FLOAT](self.bits(source))

        def after() -> None:
            out = DECODED[FLOAT](self.shadow.lanes(dest))
            ratio = out / held
            fits = np.isfinite(ratio) & (ratio != 0) & (kinds != RAW)
            self.settle(dest, self.on & ~fits, clean | ((out == 0) & (held == 0)))
            here = self.on & fits
            self.shadow.lane[:, dest, here] = 0.0
            self.shadow.lane[: len(made), dest, here] = (made * ratio)[:, here]
            self.shadow.lane_kind[dest, here] = FLOAT

        return after
