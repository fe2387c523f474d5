"""Five Unicorn cores over one L1.

Translating an instruction costs as much as executing it some hundred times. So the first
instructions of a page are executed by the loop of core_loop.py, the same for both engines, and the
page is translated when it is clear that it runs again and again. Until then no core is made, and
the library's Python side (unicorn_core.py) is not imported.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from bhemu import memmap as mm
from bhemu.errors import InputError
from bhemu.jit import machine_code
from bhemu.jit.build import function_at, load
from bhemu.jit.later import Later
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT, signature
from bhemu.riscv import memory_check
from bhemu.riscv.engine import TRANSLATED, Engine
from bhemu.tensix.state import CORES, DTYPE, STEP, State

hooks = Later("bhemu.riscv.hooks")


def _library() -> str:
    """The path of the engine's library, found without importing its Python side (20 ms)."""
    found = importlib.util.find_spec("unicorn")
    if found is None or found.origin is None:
        raise ImportError("unicorn is not installed")
    name = "libunicorn.2.dylib" if sys.platform == "darwin" else "libunicorn.so.2"
    return str(Path(found.origin).parent / "lib" / name)


LIBRARY = _library()
machine_code.libraries.append(LIBRARY)  # compiled code finds uc_* by name

_TRANSLATE_AFTER = 8192  # instructions of a page; scripts/firmware_rate.py shows what it is worth

# What the engine calls: (engine, address or cause, size, record) and the like.
_SIGNATURES = {
    "code": signature("void", "uint64", "uint64", "uint32", DTYPE),
    "trap": signature("void", "uint64", "uint32", DTYPE),
    "load": signature("uint64", "uint64", "uint64", "uint32", DTYPE),
    "store": signature("void", "uint64", "uint64", "uint32", "uint64", DTYPE),
    "run_core": STEP,
}
NATIVE = {
    name: function_at(kind, f"bhemu.riscv.hooks.{name}") for name, kind in _SIGNATURES.items()
}


class UnicornEngine(Engine):
    """The five cores of one tile (index = memmap.CORE_NAMES), running on the state record."""

    name = "unicorn"

    def __init__(self, s: State) -> None:
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
        from bhemu.riscv import unicorn_core

        memory_check.check_cores(1 + 2)  # the self-test and register_file make one each
        s = self._s
        addresses = {name: load(entry).address for name, entry in NATIVE.items()} if JIT else {}
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
        if address >= mm.L1_SIZE:
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
                uc.mem_protect(0, mm.L1_SIZE, hooks.PROT_READ_WRITE)
            self.flush(core)
        super().forget_code()

    def emu_start(self, core: int, pc: int) -> int:
        """Interpreted twin of hooks.py: run until stopped; the engine's error number, 0 = none."""
        from bhemu.riscv import unicorn_core

        return unicorn_core.start(self._uc[core], pc)
