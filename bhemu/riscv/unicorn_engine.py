"""Five Unicorn cores over one L1; the only importer of unicorn.

Translating an instruction costs as much as executing it some hundred times. So the first
instructions of a page are executed by the loop of core_loop.py, the same for both engines, and the
page is translated when it is clear that it runs again and again.

Sources: measured behaviour of unicorn 2.1.4, which is pinned; the self-test refuses any other.
"""

import ctypes
import functools
import hashlib
import json
import os
import weakref
from typing import Any

import numpy as np
import unicorn
from unicorn import riscv_const as rc

from bhemu import memmap as mm
from bhemu.errors import InputError, Internal
from bhemu.jit import cache, machine_code
from bhemu.jit.build import function, load
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT, signature
from bhemu.riscv import callbacks, core_loop, memory_check, primitives, register_file
from bhemu.tensix.record import STEP
from bhemu.tensix.state import CORES, DTYPE, State

_LIBRARY = os.path.join(os.path.dirname(unicorn.__file__), "lib", "libunicorn.so.2")
machine_code.libraries.append(_LIBRARY)  # compiled code finds uc_* by name
assert (primitives.REG_X0, primitives.REG_PC) == (rc.UC_RISCV_REG_X0, rc.UC_RISCV_REG_PC)

_TRANSLATION_BUFFER = 4 << 20  # without this each instance reserves 1 GiB of address space
_READ_WRITE = unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE
_EVERYWHERE = (1, 0)
_TRANSLATE_AFTER = 8192  # instructions of a page; scripts/firmware_rate.py shows what it is worth

# What the engine calls: (engine, address or cause, size, record) and the like.
_CODE = signature("void", "uint64", "uint64", "uint32", DTYPE)
_TRAP = signature("void", "uint64", "uint32", DTYPE)
_LOAD = signature("uint64", "uint64", "uint64", "uint32", DTYPE)
_STORE = signature("void", "uint64", "uint64", "uint32", "uint64", DTYPE)


NATIVE = {
    "code": function(_CODE, callbacks.code),
    "trap": function(_TRAP, callbacks.trap),
    "load": function(_LOAD, callbacks.load),
    "store": function(_STORE, callbacks.store),
    "run_core": function(STEP, callbacks.run_core),
}


@functools.cache
def _engine_library() -> ctypes.CDLL:
    library = ctypes.CDLL(_LIBRARY)
    pointer = ctypes.c_void_p
    arguments = (pointer, ctypes.c_uint64, ctypes.c_size_t, pointer, pointer, pointer, pointer)
    library.uc_mmio_map.argtypes = arguments
    return library


def _handle(uc: Any) -> int:
    handle = uc._uch
    return int(getattr(handle, "value", handle))


def _new_core() -> Any:
    """A core without the C extension, so that `.ttinsn` words trap instead of executing.

    The engine ignores writes to misa; it is cleared inside a saved context, before the first
    instruction is translated.
    """
    uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32, rc.UC_CPU_RISCV32_SIFIVE_E31)
    uc.ctl_set_tcg_buffer_size(_TRANSLATION_BUFFER)
    misa = uc.reg_read(rc.UC_RISCV_REG_MISA)
    context = uc.context_save()
    blob, *rest = context.__getstate__()
    words = np.frombuffer(blob, "<u4").copy()
    if (words == misa).sum() != 2:
        raise Internal("the engine's saved context has changed", hint="install unicorn==2.1.4")
    words[words == misa] = misa & ~4
    context.__setstate__((words.tobytes(), *rest))
    uc.context_restore(context)
    if uc.reg_read(rc.UC_RISCV_REG_MISA) != misa & ~4:
        raise Internal("compressed code cannot be switched off", hint="install unicorn==2.1.4")
    return uc


def _fresh_core() -> tuple[Any, int]:
    """Another core and its handle, for looking into the engine."""
    uc = _new_core()
    return uc, _handle(uc)


@functools.cache
def _inspected() -> register_file.Layout:
    """Where the engine keeps registers, if it passes the self-test.

    Both are found out once for every file of the engine's library.
    """
    file = os.stat(_LIBRARY)
    seen = (_LIBRARY, file.st_size, file.st_mtime_ns, file.st_ctime_ns, unicorn.__version__)
    name = f"engine-{hashlib.sha256(repr(seen).encode()).hexdigest()[:20]}"
    kept = cache.read(name) if JIT else None
    if kept is not None:
        return [(place, distance) for place, distance in json.loads(kept)]
    self_test()
    layout = register_file.search(_fresh_core)
    if JIT:
        cache.write(name, json.dumps(layout).encode())
    return layout


def self_test() -> None:
    """`addi a0; a pair of c.nop; addi a0; ebreak`: the pair must trap once, a0 must become 2.

    If it did not, `.ttinsn` words would execute as compressed code and results would be silently
    wrong.
    """
    uc = _new_core()
    uc.mem_map(0, PAGE)
    words = (0x00150513, 0x00010001, 0x00150513, 0x00100073)
    uc.mem_write(0, b"".join(word.to_bytes(4, "little") for word in words))
    traps: list[int] = []
    uc.hook_add(unicorn.UC_HOOK_INTR, lambda engine, cause, _: traps.append(cause))
    try:
        uc.emu_start(0, mm.FAR_UNTIL)
    except unicorn.UcError as problem:
        if problem.errno != unicorn.UC_ERR_INSN_INVALID:
            raise
    if traps != [2] or uc.reg_read(rc.UC_RISCV_REG_A0) != 2:
        raise Internal(
            "the RISC-V engine executes Tensix words as compressed code",
            hint="install unicorn==2.1.4",
        )


def _translate_after() -> int:
    """How many instructions of a page run before it is translated: BHEMU_TRANSLATE_AFTER, 0 = none.

    Interpreted, the loop that would execute them is the slower one.
    """
    text = os.environ.get("BHEMU_TRANSLATE_AFTER") or str(_TRANSLATE_AFTER)
    if not text.isdecimal() or len(text) > 9:
        raise InputError(f"BHEMU_TRANSLATE_AFTER = {text!r} is no number of instructions")
    return int(text) if JIT else 0


class UnicornEngine:
    """The five cores of one tile (index = memmap.CORE_NAMES), running on the state record."""

    def __init__(self, s: State) -> None:
        self._s = s
        s.translate_after[0] = _translate_after()
        self._uc: list[Any] = [None] * CORES  # each is made when it has something to translate
        if JIT:
            s.run_core[0] = load(NATIVE["run_core"]).address

    def _make(self, core: int) -> None:
        """The engine of one core, which has its registers from now on."""
        memory_check.check_cores(1 + 2)  # the self-test and register_file make one each
        layout, s = _inspected(), self._s
        uc = self._uc[core] = _new_core()
        # Pages become executable when they are fetched: loads and stores are slower where a page
        # may hold code.
        uc.mem_map_ptr(0, mm.L1_SIZE, _READ_WRITE, s.base)
        local = s.local[core].ctypes.data
        uc.mem_map_ptr(mm.LOCAL_BASE, mm.LOCAL_SIZES[core], _READ_WRITE, local)
        if JIT:
            self._attach_native(uc)
        else:
            self._attach_interpreted(uc)
        s.registers[core] = register_file.locate(uc, _handle(uc), layout)
        s.engine[core] = _handle(uc)
        for number in range(1, 32):
            self.write_register(core, number, int(s.regs[core, number]))

    def _attach_native(self, uc: Any) -> None:
        library = _engine_library()
        engine, state = ctypes.c_void_p(_handle(uc)), ctypes.c_void_p(self._s.base)
        for kind, name in ((unicorn.UC_HOOK_CODE, "code"), (unicorn.UC_HOOK_INTR, "trap")):
            hook = ctypes.c_size_t()
            problem = library.uc_hook_add(
                engine,
                ctypes.byref(hook),
                ctypes.c_int(kind),
                ctypes.c_void_p(load(NATIVE[name]).address),
                state,
                *(ctypes.c_uint64(limit) for limit in _EVERYWHERE),
            )
            assert problem == 0
        read, write = (load(NATIVE[name]).address for name in ("load", "store"))
        problem = library.uc_mmio_map(
            engine, mm.DEVICE_BASE, mm.DEVICE_SIZE, read, state, write, state
        )
        assert problem == 0

    def _attach_interpreted(self, uc: Any) -> None:
        from bhemu.riscv import callbacks

        own = weakref.ref(self._s)  # the binding's own cycles must not keep the record

        def code(engine: Any, address: int, size: int, _: Any) -> None:
            callbacks.code(engine, address, size, own())

        def trap(engine: Any, cause: int, _: Any) -> None:
            callbacks.trap(engine, cause, own())

        def read(engine: Any, offset: int, size: int, _: Any) -> int:
            return int(callbacks.load(engine, offset, size, own()))

        def write(engine: Any, offset: int, size: int, value: int, _: Any) -> None:
            callbacks.store(engine, offset, size, value, own())

        uc.hook_add(unicorn.UC_HOOK_CODE, code)
        uc.hook_add(unicorn.UC_HOOK_INTR, trap)
        uc.mmio_map(mm.DEVICE_BASE, mm.DEVICE_SIZE, read, None, write, None)

    def run_core(self, core: int) -> int:
        """One slice of a core, interpreted."""
        return int(callbacks.run_core(self._s, core))

    # Registers and translated code

    def read_register(self, core: int, number: int) -> int:
        """x0-x31."""
        if self._uc[core] is None:
            return int(self._s.regs[core, number])
        return int(self._uc[core].reg_read(primitives.REG_X0 + number)) if number else 0

    def write_register(self, core: int, number: int, value: int) -> None:
        """x1-x31; writes to x0 are dropped."""
        if self._uc[core] is None:
            self._s.regs[core, number] = value & 0xFFFFFFFF if number else 0
        elif number:
            self._uc[core].reg_write(primitives.REG_X0 + number, value & 0xFFFFFFFF)

    def reset(self) -> None:
        """Power-up: all registers 0."""
        for core in range(CORES):
            for number in range(1, 32):
                self.write_register(core, number, 0)

    def flush(self, core: int) -> None:
        """Drop translated code: what L1 holds now is what runs next."""
        if self._uc[core] is not None:
            self._uc[core].ctl_flush_tb()
        self._s.flush[core] = self._s.translated[core] = 0
        counts = self._s.page_count[core]
        counts[counts < core_loop.TRANSLATED] = 0

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
            try:
                uc.ctl_remove_cache(first, address + size)
            except unicorn.UcError:
                uc.ctl_flush_tb()
        else:
            uc.ctl_flush_tb()

    def make_executable(self, core: int, address: int) -> bool:
        """Allow execution of the page that holds `address`; False outside L1."""
        if address >= mm.L1_SIZE:
            return False
        if self._uc[core] is None:
            self._make(core)
        self._s.code_page[address // PAGE] |= 1 << core
        self._uc[core].mem_protect(address & -PAGE, PAGE, unicorn.UC_PROT_ALL)
        return True

    def forget_code(self) -> None:
        """No page has been executed yet, and nothing is translated: as after power-up.

        A page that the record does not know to hold code would keep stale code after a write.
        """
        for core, uc in enumerate(self._uc):
            if uc is not None:
                uc.mem_protect(0, mm.L1_SIZE, _READ_WRITE)
            self.flush(core)
        self._s.code_page[:] = 0

    # Interpreted twins of primitives.py

    def reg_read(self, core: int, register: int) -> int:
        """Any register by the engine's number."""
        return int(self._uc[core].reg_read(register))

    def reg_write(self, core: int, register: int, value: int) -> None:
        """Any register by the engine's number."""
        self._uc[core].reg_write(register, value)

    def emu_stop(self, core: int) -> None:
        """Stop before the next instruction."""
        self._uc[core].emu_stop()

    def emu_start(self, core: int, pc: int) -> int:
        """Run until stopped; the engine's error number, 0 = none."""
        try:
            self._uc[core].emu_start(pc, mm.FAR_UNTIL)
        except unicorn.UcError as problem:
            return int(problem.errno)
        return 0
