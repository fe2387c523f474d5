"""Runs cases on bhemu, with the same outcomes as libttsim.py."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.oracle.case import SECONDS, Case, Outcome
from bhemu.tensix.state import BLOCKED, HELD, RUNNING

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
