"""Programs put on the cores of a tile, and the cores released."""

import pytest

from bhemu.errors import NoProgress
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.hang.waits import Waiter
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import ZERO, code, jal

FIRST, ROOM = 0x10000, 0x4000  # where the first program lies, and from one to the next


def release(tile: Tile, **programs: bytes) -> None:
    """Each program at its own place, its core released; brisc behind a jump at 0."""
    for i, (name, program) in enumerate(programs.items()):
        at = FIRST + ROOM * i
        tile.write(at, program)
        if name == "brisc":
            tile.write(0, code(jal(ZERO, at)))
        else:
            tile.core[name].set_reset_pc(at)
        tile.core[name].release()


def hung(tile: Tile, **programs: bytes) -> WaitGraph:
    """Who waits for whom when the tile hangs with these programs."""
    release(tile, **programs)
    with pytest.raises(NoProgress) as caught:
        tile.run(timeout_s=60)
    assert isinstance(caught.value.graph, WaitGraph)
    return caught.value.graph


def waits(found: WaitGraph, who: str) -> Waiter:
    """The one wait of `who`."""
    (one,) = (waiter for waiter in found.waiters if waiter.who == who)
    return one
