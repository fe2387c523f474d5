"""The baby RISC-V cores: engine, traps, missing instructions, registers and disassembly.

Here: whether there is memory for them.
"""

import mmap

from bhemu.errors import Limit

# Is there memory? Asked beforehand, because libraries end the process where they find none.

HINT = "a tile takes about 500 MB of address space (ulimit -v)"
ARRAYS = 160 << 20  # what importing numpy takes
EMULATOR = 320 << 20  # what importing and loading the rest takes
_PER_CORE = 8 << 20  # translation buffer, register file, page tables
_SPARE = 32 << 20  # what the engine and the compiler take while a program runs


def is_there(size: int) -> bool:
    """Whether so many bytes of address space can be had; none is taken."""
    try:
        mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


def check_start(size: int) -> None:
    """Limit when what needs `size` bytes could not be loaded."""
    if not is_there(size):
        raise Limit("there is not enough memory to start", rule="MEMORY", hint=HINT)


def check_cores(cores: int) -> None:
    """Limit when so many cores of the RISC-V engine could not be made."""
    if not is_there(cores * _PER_CORE + _SPARE):
        text = "there is not enough memory for the RISC-V cores"
        raise Limit(text, rule="MEMORY", hint=HINT)
