"""What runs the five cores of a tile: the compiled engine, and the engines by name.

The names are those of program/schema.py.
"""

from bhemu.jit.build import Entry, function_at, load
from bhemu.jit.subset import JIT
from bhemu.memmap import L1_SIZE
from bhemu.tensix.state import STEP, State

TRANSLATED = 1 << 40  # in page_count: translated at once, after a flush too


class Engine:
    """The five cores of one tile on its state record, in the loop of core_loop.py.

    `s.run_core` is set to the entry that runs a turn. Another engine overrides what it keeps.
    """

    name = "compiled"

    def __init__(self, s: State) -> None:
        self._s = s
        if JIT and not s.is_copy:
            s.run_core[0] = load(entries(self.name)["run_core"]).address

    def read_register(self, core: int, number: int) -> int:
        """x0-x31."""
        return int(self._s.regs[core, number])

    def write_register(self, core: int, number: int, value: int) -> None:
        """x1-x31; writes to x0 are dropped."""
        if number:
            self._s.regs[core, number] = value & 0xFFFFFFFF

    def reset(self) -> None:
        """Power-up: all registers 0; the record is reset elsewhere."""

    def flush(self, core: int) -> None:
        """Drop translated code: what L1 holds now is what runs next."""
        self._s.flush[core] = self._s.translated[core] = 0

    def changed(self, core: int, address: int, size: int) -> None:
        """Drop translated code of these bytes of L1, while nothing runs."""

    def make_executable(self, core: int, address: int) -> bool:
        """Allow execution of the page that holds `address`; False outside L1."""
        return address < L1_SIZE

    def forget_code(self) -> None:
        """No page has been executed yet, and nothing is translated."""
        self._s.code_page[:] = 0


def new_engine(name: str, s: State) -> Engine:
    """The engine "unicorn" or "compiled" on a record; only the one that is asked for is loaded."""
    if name == "compiled":
        return Engine(s)
    from bhemu.riscv.unicorn_engine import UnicornEngine

    return UnicornEngine(s)


def entries(name: str) -> dict[str, Entry]:
    """The entries of an engine."""
    if name == "compiled":
        return {"run_core": function_at(STEP, "bhemu.riscv.core_loop.run_core")}
    from bhemu.riscv import unicorn_engine

    return unicorn_engine.NATIVE
