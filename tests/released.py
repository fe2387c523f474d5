"""Programs put on the cores of a tile, and the cores released."""

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
