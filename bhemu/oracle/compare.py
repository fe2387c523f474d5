"""Runs a case on both models and compares L1.

A verdict is one of

* "equal": both finished and L1 is the same byte for byte;
* "both refuse": both stopped with an error;
* "no second opinion": ttsim has not done (Unsupported, Unimplemented, ...) what bhemu models;
* "different": L1 differs, or one of them refuses what the other runs, or never ends.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.oracle.libttsim import SECONDS, Case, Library, Outcome
from bhemu.tensix.state import BLOCKED, HELD, RUNNING

# Runs cases on bhemu, with the same outcomes as libttsim.py.

MOST_LEFT = 10_000_000  # clock units: far more than what FIFOs, MOPs and REPLAYs can hold

_KINDS = {"until": "done", "timeout": "timeout"}


def outcome(tile: Tile, run: Callable[[], Stop], kinds: Mapping[str, str]) -> Outcome:
    """What `run` comes to, `kinds` giving the kind of outcome for the reason of its stop.

    Errors of the program are outcomes, defects of bhemu are raised.
    """
    begin = time.perf_counter()
    try:
        stop = run()
    except BhemuError as problem:
        return failed(problem)
    seconds = time.perf_counter() - begin
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    kind = kinds.get(stop.reason, "unfinished")
    if kind != "done":
        return Outcome(kind, text=f"stopped: {stop.reason}")
    if stop.reason == "until":
        try:
            finish_words(tile)
        except BhemuError as problem:
            return failed(problem)
    return Outcome("done", np.frombuffer(tile.read(0, L1_SIZE), np.uint8), seconds=seconds)


def failed(problem: BhemuError) -> Outcome:
    """What an error of the program is as an outcome; a defect of bhemu is raised."""
    if isinstance(problem, Internal):
        raise problem
    if isinstance(problem, NoProgress):
        return Outcome("unfinished", category=problem.category, text=problem.message)
    text = f"[{problem.rule}] {problem.message}, at {problem.where}"
    return Outcome("error", category=problem.category, text=text)


def finish_words(tile: Tile) -> None:
    """Execute the words that are queued where `until` stopped; the cores stand still.

    The golden model executes a word when it is pushed, and so has done these.
    """
    s = tile.state
    held = s.fifo_write - s.fifo_read, s.gate_full, s.mop_on, s.play_left
    if not any(np.any(part) for part in held):
        return
    states = s.core_state.copy()
    s.core_state[np.isin(states, (RUNNING, BLOCKED))] = HELD
    try:
        tile.run("idle", limit=MOST_LEFT)
    except NoProgress:  # a word that waits for a core: it waits in the golden model too
        pass
    finally:
        s.core_state[:] = states


class Emulator:
    """One tile, reset before every case; options as those of Tile."""

    def __init__(self, **options: Any) -> None:
        self.tile = Tile(**options)

    def run(self, case: Case, *, seconds: float = SECONDS) -> Outcome:
        """The case's outcome; unfinished when all cores are idle first."""
        tile = self.tile
        tile.reset()
        tile.write(0, case.image)
        tile.state.dst_valid[:] = 1  # programs dump all of Dst, which in the golden model is zeros
        for name, pc in case.starts.items():
            if name != "brisc":
                tile.core[name].set_reset_pc(pc)
            tile.core[name].release()
        return outcome(tile, lambda: tile.run(list(case.until), timeout_s=seconds), _KINDS)


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

    def __init__(self, library: Library, reference: str = "ttsim", **options: Any) -> None:
        """options: more of those of Tile, for bhemu's runs."""
        self.library = library
        self.reference = reference
        self.emulator = Emulator(reference=reference, **options)

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
