"""What runs the five cores of a tile: the engines by name, and what each of them must do.

The names are those of program/schema.py.
"""

from typing import Protocol

from bhemu.jit.build import Entry, function_at
from bhemu.tensix.state import STEP, State

TRANSLATED = 1 << 40  # in page_count: translated at once, after a flush too


class Engine(Protocol):
    """The cores on one state record; `s.run_core` is set to the entry that runs a turn."""

    def read_register(self, core: int, number: int) -> int:
        """x0-x31."""

    def write_register(self, core: int, number: int, value: int) -> None:
        """x1-x31; writes to x0 are dropped."""

    def reset(self) -> None:
        """Power-up: all registers 0; the record is reset elsewhere."""

    def flush(self, core: int) -> None:
        """Drop translated code: what L1 holds now is what runs next."""

    def changed(self, core: int, address: int, size: int) -> None:
        """Drop translated code of these bytes of L1, while nothing runs."""

    def make_executable(self, core: int, address: int) -> bool:
        """Allow execution of the page that holds `address`; False outside L1."""

    def forget_code(self) -> None:
        """No page has been executed yet, and nothing is translated."""


def new_engine(name: str, s: State) -> Engine:
    """The engine "unicorn" or "compiled" on a record; only the one that is asked for is loaded."""
    if name == "compiled":
        from bhemu.riscv.core_loop import CompiledEngine

        return CompiledEngine(s)
    from bhemu.riscv.unicorn_engine import UnicornEngine

    return UnicornEngine(s)


def entries(name: str) -> dict[str, Entry]:
    """The entries of an engine."""
    if name == "compiled":
        return {"run_core": function_at(STEP, "bhemu.riscv.core_loop.run_core")}
    from bhemu.riscv import unicorn_engine

    return unicorn_engine.NATIVE
