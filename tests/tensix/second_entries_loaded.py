"""The second entries of instructions, for tests that call an instruction without a tile."""

from bhemu.jit.build import load
from bhemu.jit.subset import JIT
from bhemu.tensix.compiled import second_entry
from bhemu.tensix.insn import ENTRIES
from bhemu.tensix.state import State


def connect(s: State) -> None:
    """Fill the pointers that compiled instructions follow to second entries."""
    if JIT:
        for slot in ENTRIES:
            s.second[slot] = load(second_entry(slot)).address
