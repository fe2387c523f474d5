"""The second entries of instructions, for tests that call an instruction without a tile."""

from bhemu.jit.subset import JIT
from bhemu.tensix.cold import ENTRIES
from bhemu.tensix.compile import cold_entry
from bhemu.tensix.state import State


def connect(s: State) -> None:
    """Fill the pointers that compiled instructions follow to their rarer modes."""
    if JIT:
        for slot in ENTRIES:
            s.cold[slot] = cold_entry(slot)[0].address
