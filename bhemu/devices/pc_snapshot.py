"""The program counters of the five cores, 0xFFB13138, read only."""

from typing import Any

from bhemu.devices.bus.window import Effect, Window
from bhemu.jit.subset import njit
from bhemu.memmap import PC_SNAPSHOT_BASE, PC_SNAPSHOT_END
from bhemu.tensix.rules import DONE

ORDER = (0, 4, 1, 2, 3)  # of slots: brisc, ncrisc, trisc0, trisc1, trisc2


@njit
def load(s: Any, offset: Any) -> Any:
    """Load the pc of a core."""
    s.loaded[0] = s.pc[ORDER[offset >> 2]]
    return DONE


WINDOW = Window(
    *("PC snapshot", PC_SNAPSHOT_BASE, PC_SNAPSHOT_END, load),
    load_effect=Effect.VARIES,
)
