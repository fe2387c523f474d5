"""Runs cases on bhemu, with the same outcomes as libttsim.py."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.machine.stop import Stop
from bhemu.memmap import L1_SIZE
from bhemu.oracle.case import SECONDS, Case, Outcome
from bhemu.tile import Tile

_KINDS = {"until": "done", "timeout": "timeout"}


def outcome(tile: Tile, run: Callable[[], Stop], kinds: Mapping[str, str]) -> Outcome:
    """What `run` comes to, `kinds` giving the kind of outcome for the reason of its stop.

    Errors of the program are outcomes, defects of bhemu are raised.
    """
    begin = time.perf_counter()
    try:
        stop = run()
    except Internal:
        raise
    except NoProgress as problem:
        return Outcome("unfinished", category=problem.category, text=problem.message)
    except BhemuError as problem:
        text = f"[{problem.rule}] {problem.message}, at {problem.where}"
        return Outcome("error", category=problem.category, text=text)
    seconds = time.perf_counter() - begin
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    kind = kinds.get(stop.reason, "unfinished")
    if kind != "done":
        return Outcome(kind, text=f"stopped: {stop.reason}")
    return Outcome("done", np.frombuffer(tile.read(0, L1_SIZE), np.uint8), seconds=seconds)


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
