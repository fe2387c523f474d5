"""One Unicorn core: made, tested, its hooks and memory; the only importer of unicorn.

Sources: measured behaviour of unicorn 2.1.4, which is pinned; the self-test refuses any other.
"""

import ctypes
import functools
import hashlib
import json
import os
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import unicorn
from unicorn import riscv_const as rc

from bhemu import memmap as mm
from bhemu.errors import Internal
from bhemu.jit import cache
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT, External, signature
from bhemu.riscv import hooks
from bhemu.riscv.engine import library
from bhemu.tensix.state import State

assert (hooks.REG_X0, hooks.REG_PC) == (rc.UC_RISCV_REG_X0, rc.UC_RISCV_REG_PC)
assert hooks.PROT_READ_WRITE == unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE
assert hooks.PROT_ALL == unicorn.UC_PROT_ALL

LIBRARY = library()
_TRANSLATION_BUFFER = 4 << 20  # without this each instance reserves 1 GiB of address space
_EVERYWHERE = (1, 0)
_COMPARED = 4  # cores in which the places of the registers are looked for
_hook_add = External("uc_hook_add", signature("int32", *["uint64"] * 2, "int32", *["uint64"] * 4))
_mmio_map = External("uc_mmio_map", signature("int32", *["uint64"] * 7))


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


@functools.cache
def _inspected() -> hooks.Layout:
    """Where the engine keeps registers, if it passes the self-test.

    Both are found out once for every file of the engine's library.
    """
    file = os.stat(LIBRARY)
    seen = (LIBRARY, file.st_size, file.st_mtime_ns, file.st_ctime_ns, unicorn.__version__)
    name = f"{cache.ENGINES}{hashlib.sha256(repr(seen).encode()).hexdigest()[:20]}"
    kept = cache.read(name) if JIT else None
    if kept is not None:
        return [(place, distance) for place, distance in json.loads(kept)]
    self_test()
    cores = [_new_core() for _ in range(_COMPARED)]
    layout = hooks.search((uc, _handle(uc)) for uc in cores)
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


def _attach_interpreted(uc: Any, s: State) -> None:
    own = weakref.ref(s)  # the binding's own cycles must not keep the record

    def code(engine: Any, address: int, size: int, _: Any) -> None:
        hooks.code(engine, address, size, own())

    def trap(engine: Any, cause: int, _: Any) -> None:
        hooks.trap(engine, cause, own())

    def read(engine: Any, offset: int, size: int, _: Any) -> int:
        return int(hooks.load(engine, offset, size, own()))

    def write(engine: Any, offset: int, size: int, value: int, _: Any) -> None:
        hooks.store(engine, offset, size, value, own())

    uc.hook_add(unicorn.UC_HOOK_CODE, code)
    uc.hook_add(unicorn.UC_HOOK_INTR, trap)
    uc.mmio_map(mm.DEVICE_BASE, mm.DEVICE_SIZE, read, None, write, None)


def create(s: State, core: int, addresses: Mapping[str, int]) -> Any:
    """A core over the record's L1 and local memory.

    addresses: of the compiled hooks, by their names; none in the interpreted mode.
    """
    _inspected()
    uc = _new_core()
    # Pages become executable when they are fetched: loads and stores are slower where a page
    # may hold code.
    uc.mem_map_ptr(0, mm.L1_SIZE, hooks.PROT_READ_WRITE, s.base)
    local = s.local[core].ctypes.data
    uc.mem_map_ptr(mm.LOCAL_BASE, mm.LOCAL_SIZES[core], hooks.PROT_READ_WRITE, local)
    if addresses:
        engine = _handle(uc)
        for kind, name in ((unicorn.UC_HOOK_CODE, "code"), (unicorn.UC_HOOK_INTR, "trap")):
            hook = ctypes.c_size_t()
            at = ctypes.addressof(hook)
            problem = _hook_add(engine, at, kind, addresses[name], s.base, *_EVERYWHERE)
            assert problem == 0
        ways = (addresses["load"], s.base, addresses["store"], s.base)
        assert _mmio_map(engine, mm.DEVICE_BASE, mm.DEVICE_SIZE, *ways) == 0
    else:
        _attach_interpreted(uc, s)
    return uc


def located(uc: Any) -> tuple[int, int]:
    """(where its registers are, its handle)."""
    handle = _handle(uc)
    return hooks.locate(uc, handle, _inspected()), handle


def drop(uc: Any, begin: int, end: int) -> None:
    """Forget what is translated of these addresses."""
    try:
        uc.ctl_remove_cache(begin, end)
    except unicorn.UcError:
        uc.ctl_flush_tb()


def start(uc: Any, pc: int) -> int:
    """Run until stopped; the engine's error number, 0 = none."""
    try:
        uc.emu_start(pc, mm.FAR_UNTIL)
    except unicorn.UcError as problem:
        return int(problem.errno)
    return 0
