"""Runs cases on bhemu, with the same outcomes as libttsim.py."""

import time
from typing import Any

import numpy as np

from bhemu.errors import BhemuError, Internal, NoProgress
from bhemu.oracle.case import Case, Outcome
from bhemu.tile import Tile

SECONDS = 60.0
_KINDS = {
    "until": "done",
    "idle": "unfinished",
    "limit": "unfinished",
    "timeout": "timeout",
    "interrupt": "interrupt",
}


class Emulator:
    """One tile, reset before every case; options as those of Tile."""

    def __init__(self, **options: Any) -> None:
        self.tile = Tile(**options)

    def run(self, case: Case, *, seconds: float = SECONDS) -> Outcome:
        """The case's outcome; errors of the program are outcomes, defects of bhemu are raised."""
        tile = self.tile
        tile.reset()
        tile.write(0, case.image)
        tile.state.dst_valid[:] = 1  # programs dump all of Dst, which in the golden model is zeros
        for name, pc in case.starts.items():
            if name != "brisc":
                tile.core[name].set_reset_pc(pc)
            tile.core[name].release()
        begin = time.perf_counter()
        try:
            stop = tile.run(list(case.until), timeout_s=seconds)
        except Internal:
            raise
        except NoProgress as problem:
            return Outcome("unfinished", category=problem.category, text=problem.message)
        except BhemuError as problem:
            text = f"[{problem.rule}] {problem.message}, at {problem.where}"
            return Outcome("error", category=problem.category, text=text)
        taken = time.perf_counter() - begin
        kind = _KINDS[stop.reason]
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind != "done":
            return Outcome(kind, text=f"stopped: {stop.reason}")
        l1 = np.frombuffer(tile.read(0, tile.state.l1.size), np.uint8)
        return Outcome("done", l1, seconds=taken)
