"""Cases: one program as both models run it, and its run on bhemu."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix.state import BLOCKED, HELD, RUNNING

# One program as both models run it: an L1 image, where the cores start, when it is finished.

SECONDS = 60.0  # a run may take
TRISC_STARTS = {"trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000}
DONE = ((0x100, 0xD0E0), (0x104, 0xD0E1), (0x108, 0xD0E2))


@dataclass(frozen=True)
class Case:
    """An L1 image (bytes, zero-extended to all of L1), the cores to release, the end condition.

    `starts` maps a core's name to its start address (brisc always starts at 0), `held` does so for
    cores that the program itself releases. `until` holds (L1 address, value) pairs that all must
    hold; without any the run ends when L1 equals `goal`, or at its limit. `regions` names parts of
    L1 as (name, address, size) for reports.
    """

    image: bytes
    starts: Mapping[str, int] = field(default_factory=lambda: dict(TRISC_STARTS))
    until: Sequence[tuple[int, int]] = DONE
    regions: Sequence[tuple[str, int, int]] = ()
    name: str = ""
    held: Mapping[str, int] = field(default_factory=dict)
    goal: bytes = b""

    def __post_init__(self) -> None:
        assert len(self.image) <= L1_SIZE, f"{len(self.image):#x} bytes do not fit L1"
        assert self.starts.keys() <= set(CORE_NAMES), self.starts
        assert self.until or self.goal, "a case needs an end condition"

    def place(self, address: int) -> str:
        """An L1 address as "region + offset", or as it is."""
        for name, start, size in self.regions:
            if start <= address < start + size:
                return f"{name} + {address - start:#x} (L1 {address:#x})"
        return f"L1 {address:#x}"


@dataclass(frozen=True)
class Outcome:
    """What became of a case on one model.

    kind: "done" (then `l1` is all of L1, uint8), "error" (category and text), "unfinished" (the
    clock limit came first, as with a deadlock), "timeout" or "crash". `seconds` is the time from
    the release of the cores to the end.
    """

    kind: str
    l1: npt.NDArray[np.uint8] | None = None
    category: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """The end condition was reached."""
        return self.kind == "done"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values, without the image."""
        return {
            "kind": self.kind,
            "category": self.category,
            "text": self.text,
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        if self.kind == "error":
            return f"{self.category}: {self.text}"
        return self.kind if not self.text else f"{self.kind} ({self.text})"


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
