"""What runs the five cores of a tile: the compiled engine, or five Unicorn cores over one L1.

The names of the engines are those of program/schema.py.
"""

import functools
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from bhemu.jit import Later, machine_code
from bhemu.jit.build import Entry, function_at, load
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT, signature
from bhemu.memmap import L1_SIZE
from bhemu.tensix.state import CORES, DTYPE, STEP, State

hooks = Later("bhemu.riscv.hooks")

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


# Unicorn.
#
# Translating an instruction costs as much as executing it some hundred times. So the first
# instructions of a page are executed by the loop of core_loop.py, the same for both engines, and
# the page is translated when it is clear that it runs again and again. Until then no core is made,
# and the library's Python side (unicorn_core.py) is not imported.

_TRANSLATE_AFTER = 8192  # instructions of a page; scripts/firmware_rate.py shows what it is worth

# What the engine calls: (engine, address or cause, size, record) and the like.
_SIGNATURES = {
    "code": signature("void", "uint64", "uint64", "uint32", DTYPE),
    "trap": signature("void", "uint64", "uint32", DTYPE),
    "load": signature("uint64", "uint64", "uint64", "uint32", DTYPE),
    "store": signature("void", "uint64", "uint64", "uint32", "uint64", DTYPE),
    "run_core": STEP,
}


@functools.cache
def library() -> str:
    """The path of the engine's library, found without importing its Python side (20 ms).

    From now on compiled code finds uc_* by name.
    """
    found = importlib.util.find_spec("unicorn")
    if found is None or found.origin is None:
        raise ImportError("unicorn is not installed")
    name = "libunicorn.2.dylib" if sys.platform == "darwin" else "libunicorn.so.2"
    path = str(Path(found.origin).parent / "lib" / name)
    machine_code.libraries.append(path)
    return path


class UnicornEngine(Engine):
    """The five cores of one tile (index = memmap.CORE_NAMES), running on the state record."""

    name = "unicorn"

    def __init__(self, s: State) -> None:
        library()
        super().__init__(s)
        # How many instructions of a page run before it is translated: BHEMU_TRANSLATE_AFTER, 0 =
        # none. Interpreted, the loop that would execute them is the slower one.
        text = os.environ.get("BHEMU_TRANSLATE_AFTER") or str(_TRANSLATE_AFTER)
        if not text.isdecimal() or len(text) > 9:
            raise InputError(f"BHEMU_TRANSLATE_AFTER = {text!r} is no number of instructions")
        s.translate_after[0] = int(text) if JIT else 0
        self._uc: list[Any] = [None] * CORES  # each is made when it has something to translate

    def _make(self, core: int) -> None:
        """The engine of one core, which has its registers from now on."""
        from bhemu.riscv import check_cores, unicorn_core

        check_cores(1 + 2)  # the self-test and register_file make one each
        s = self._s
        addresses = (
            {name: load(entry).address for name, entry in entries(self.name).items()} if JIT else {}
        )
        uc = self._uc[core] = unicorn_core.create(s, core, addresses)
        s.registers[core], s.engine[core] = unicorn_core.located(uc)
        for number in range(1, 32):
            self.write_register(core, number, int(s.regs[core, number]))

    # Registers and translated code

    def read_register(self, core: int, number: int) -> int:
        """x0-x31."""
        if self._uc[core] is None:
            return super().read_register(core, number)
        return int(self._uc[core].reg_read(hooks.REG_X0 + number)) if number else 0

    def write_register(self, core: int, number: int, value: int) -> None:
        """x1-x31; writes to x0 are dropped."""
        if self._uc[core] is None:
            super().write_register(core, number, value)
        elif number:
            self._uc[core].reg_write(hooks.REG_X0 + number, value & 0xFFFFFFFF)

    def reset(self) -> None:
        """Power-up: all registers 0."""
        for core in range(CORES):
            for number in range(1, 32):
                self.write_register(core, number, 0)

    def flush(self, core: int) -> None:
        """Drop translated code: what L1 holds now is what runs next."""
        if self._uc[core] is not None:
            self._uc[core].ctl_flush_tb()
        super().flush(core)
        counts = self._s.page_count[core]
        counts[counts < TRANSLATED] = 0

    def changed(self, core: int, address: int, size: int) -> None:
        """Drop translated code of these bytes of L1, of one page or all of the core's.

        The engine does not count a word that traps as part of its block: the word before is
        dropped as well, so that the block that ends in front of the first one goes.
        """
        self._s.page_count[core, address // PAGE : (address + size + PAGE - 1) // PAGE] = 0
        uc, first = self._uc[core], address - 4
        if uc is None:
            return
        if address & -PAGE == (address + size - 1) & -PAGE == first & -PAGE:
            from bhemu.riscv import unicorn_core

            unicorn_core.drop(uc, first, address + size)
        else:
            uc.ctl_flush_tb()

    def make_executable(self, core: int, address: int) -> bool:
        """Allow execution of the page that holds `address`; False outside L1."""
        if address >= L1_SIZE:
            return False
        if self._uc[core] is None:
            self._make(core)
        self._s.code_page[address // PAGE] |= 1 << core
        self._uc[core].mem_protect(address & -PAGE, PAGE, hooks.PROT_ALL)
        return True

    def forget_code(self) -> None:
        """No page has been executed yet, and nothing is translated: as after power-up.

        A page that the record does not know to hold code would keep stale code after a write.
        """
        for core, uc in enumerate(self._uc):
            if uc is not None:
                uc.mem_protect(0, L1_SIZE, hooks.PROT_READ_WRITE)
            self.flush(core)
        super().forget_code()

    def emu_start(self, core: int, pc: int) -> int:
        """Interpreted twin of hooks.py: run until stopped; the engine's error number, 0 = none."""
        from bhemu.riscv import unicorn_core

        return unicorn_core.start(self._uc[core], pc)


def new_engine(name: str, s: State) -> Engine:
    """The engine "unicorn" or "compiled" on a record."""
    return Engine(s) if name == "compiled" else UnicornEngine(s)


def entries(name: str) -> dict[str, Entry]:
    """The entries of an engine."""
    if name == "compiled":
        return {"run_core": function_at(STEP, "bhemu.riscv.core_loop.run_core")}
    library()
    return {
        name: function_at(kind, f"bhemu.riscv.hooks.{name}") for name, kind in _SIGNATURES.items()
    }
