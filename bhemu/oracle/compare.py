"""Runs a case on both models and compares L1.

A verdict is one of

* "equal": both finished and L1 is the same byte for byte;
* "both refuse": both stopped with an error;
* "no second opinion": ttsim has not done (Unsupported, Unimplemented, ...) what bhemu models;
* "different": L1 differs, or one of them refuses what the other runs, or never ends.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.oracle.cases import Case, Emulator, Outcome
from bhemu.oracle.libttsim import Library

EQUAL, BOTH_REFUSE, ALONE, DIFFERENT = "equal", "both refuse", "no second opinion", "different"
NOT_DONE = (
    *("UnsupportedFunctionality", "UnimplementedFunctionality"),
    *("UntestedFunctionality", "MissingSpecification"),
)
_SHOWN = 8  # differing words that a report names


@dataclass(frozen=True)
class Pair:
    """The outcomes of one case on both models."""

    bhemu: Outcome
    ttsim: Outcome

    @property
    def verdict(self) -> str:
        """See the module's text."""
        if self.bhemu.done and self.ttsim.done:
            return EQUAL if self.words.size == 0 else DIFFERENT
        if self.bhemu.kind == self.ttsim.kind:
            return BOTH_REFUSE
        # Unfinished: bhemu models a wait whose condition this program never meets.
        models = self.bhemu.kind in ("done", "unfinished")
        return ALONE if models and self.ttsim.category in NOT_DONE else DIFFERENT

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """L1 addresses of the words that differ; empty unless both finished."""
        if self.bhemu.l1 is None or self.ttsim.l1 is None:
            return np.zeros(0, np.int64)
        ours, theirs = self.bhemu.l1.view(np.uint32), self.ttsim.l1.view(np.uint32)
        return 4 * np.flatnonzero(ours != theirs)

    def values(self, address: int) -> tuple[int, int]:
        """The word at `address`: (bhemu, ttsim)."""
        assert self.bhemu.l1 is not None
        assert self.ttsim.l1 is not None
        index = address >> 2
        ours, theirs = self.bhemu.l1.view(np.uint32), self.ttsim.l1.view(np.uint32)
        return int(ours[index]), int(theirs[index])


class Judge:
    """Both models, ready to run cases."""

    def __init__(self, library: Library, reference: str = "ttsim") -> None:
        self.library = library
        self.reference = reference
        self.emulator = Emulator(reference=reference)

    def pair(self, case: Case) -> Pair:
        """Run the case on both."""
        return Pair(bhemu=self.emulator.run(case), ttsim=self.library.run(case))


@dataclass(frozen=True)
class Difference:
    """What a user reads about one case that differs."""

    name: str
    pair: Pair
    lines: tuple[str, ...]
    step: str = ""
    program: tuple[str, ...] = ()
    mnemonic: str = ""

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "name": self.name,
            "bhemu": self.pair.bhemu.as_dict(),
            "ttsim": self.pair.ttsim.as_dict(),
            "differing_words": int(self.pair.words.size),
            "first": list(self.lines),
            "instruction": self.step,
            "program": list(self.program),
        }


def describe(pair: Pair, explain: Callable[[int], str]) -> tuple[str, ...]:
    """One line per differing word, at most eight; or how the runs ended."""
    if not (pair.bhemu.done and pair.ttsim.done):
        return (f"bhemu: {pair.bhemu}", f"ttsim: {pair.ttsim}")
    lines = []
    for address in pair.words[:_SHOWN]:
        ours, theirs = pair.values(int(address))
        halves = [h for h in (0, 2) if (ours ^ theirs) >> 8 * h & 0xFFFF]
        where = explain(int(address) + halves[0])
        lines.append(f"{where}: bhemu {ours:08x} ttsim {theirs:08x}")
    return tuple(lines)
