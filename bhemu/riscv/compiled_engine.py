"""The five cores as compiled code over the state record, registers included; nothing is cached.

Words are decoded anew each time: whoever changes code, the new words are what runs next.
"""

from bhemu.jit.build import function, load
from bhemu.jit.subset import JIT
from bhemu.memmap import L1_SIZE
from bhemu.riscv import core_loop
from bhemu.tensix.state import STEP, State

NATIVE = {"run_core": function(STEP, core_loop.run_core)}


class CompiledEngine:
    """The five cores of one tile (index = memmap.CORE_NAMES), running on the state record."""

    def __init__(self, s: State) -> None:
        self._s = s
        if JIT:
            s.run_core[0] = load(NATIVE["run_core"]).address

    def run_core(self, core: int) -> int:
        """One slice of a core, interpreted."""
        return int(core_loop.run_core(self._s, core))

    def read_register(self, core: int, number: int) -> int:
        """x0-x31."""
        return int(self._s.regs[core, number])

    def write_register(self, core: int, number: int, value: int) -> None:
        """x1-x31; writes to x0 are dropped."""
        if number:
            self._s.regs[core, number] = value & 0xFFFFFFFF

    def reset(self) -> None:
        """Power-up: the registers are in the record, which is reset elsewhere."""

    def flush(self, core: int) -> None:
        """What L1 holds now is what runs next, as always."""
        self._s.flush[core] = self._s.translated[core] = 0

    def changed(self, core: int, address: int, size: int) -> None:
        """As after a flush."""

    def make_executable(self, core: int, address: int) -> bool:
        """Whether code may execute at `address`: in L1."""
        return address < L1_SIZE

    def forget_code(self) -> None:
        """Nothing is kept of code but where it was."""
        self._s.code_page[:] = 0
