"""The code that runs a tile's record: compiled through pointers, or interpreted as plain Python."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.devices import dispatch, rare
from bhemu.jit import machine_code
from bhemu.jit.build import Entry, function, load
from bhemu.jit.callback import callback
from bhemu.jit.subset import JIT
from bhemu.memmap import HOST
from bhemu.riscv import callbacks
from bhemu.riscv.unicorn_engine import NATIVE, UnicornEngine
from bhemu.tensix import compile as tc
from bhemu.tensix import loop
from bhemu.tensix.record import ACCESS
from bhemu.tensix.state import State

# (core, address, size with dispatch.WRITE for a store, value) -> loaded value
PythonAccess = Callable[[int, int, int, int], int]

_RUN_CORE, _RUN_TENSIX, _RUN_THREAD, _BUS_READ, _BUS_WRITE, _DEVICE, _RARE = range(1, 8)
_INT = ctypes.c_int64
_ACCESS = ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _INT, _INT, _INT, _INT)
_STEP = ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _INT)


BUS = {  # device loads and stores, by the record's members
    "bus_write": function(ACCESS, dispatch.write_entry),
    "bus_read": function(ACCESS, dispatch.read_entry),
}


def core_is_fresh() -> bool:
    """Compile or load the loop and the engine's callbacks; whether any had to be compiled now."""
    parts = (*tc.LOOP.values(), *NATIVE.values(), *BUS.values())
    return sum(load(part).seconds for part in parts) > 0


def rare_entry(which: int) -> Entry:
    """The entry of devices/rare.py."""
    return function(ACCESS, rare.ENTRIES[which])


class Backend:
    """Runs rounds and device accesses on one record; exceptions of callbacks surface here."""

    def __init__(self, s: State, device: PythonAccess, progress: tc.Progress) -> None:
        self._s, self._device = s, device
        self.table = tc.Table(s, progress)
        self.engine = UnicornEngine(s)
        self._failure: BaseException | None = None
        if JIT:
            self._callback, s.device[0] = callback(_ACCESS, self._on_device)
            self._rare = [callback(_ACCESS, self._on_rare, i) for i in rare.ENTRIES]
            s.rare[:] = [address for _, address in self._rare]
            self._rounds = _STEP(load(tc.LOOP["rounds"]).address)
            for name, entry in BUS.items():
                getattr(s, name)[0] = load(entry).address
            self._read, self._write = _ACCESS(int(s.bus_read[0])), _ACCESS(int(s.bus_write[0]))
        else:
            s.py = weakref.proxy(self)
            tokens = zip(
                ("run_core", "run_tensix", "run_thread", "bus_read", "bus_write", "device"),
                range(_RUN_CORE, _DEVICE + 1),
                strict=True,
            )
            for name, token in tokens:
                getattr(s, name)[0] = token
            s.rare[:] = [_RARE + i for i in rare.ENTRIES]

    def rounds(self, n: int) -> int:
        """Run up to `n` rounds from the current position; 0 or why it stopped."""
        if JIT:
            status = int(self._rounds(self._s.base, n))
        else:
            with np.errstate(over="ignore"):
                status = int(loop.run_rounds(self._s, n))
        self._surface()
        return status

    def read(self, address: int, size: int = 4, core: int = HOST) -> int:
        """Device load as `core` (default: the host over the NoC); status in s.access[0]."""
        if JIT:
            value = int(self._read(self._s.base, core, address, size, 0))
        else:
            value = int(dispatch.read(self._s, core, address, size, 0))
        self._surface()
        return value

    def write(self, address: int, value: int, size: int = 4, core: int = HOST) -> None:
        """Device store as `core`; status in s.access[0]."""
        if JIT:
            self._write(self._s.base, core, address, size, value)
        else:
            dispatch.write(self._s, core, address, size, value)
        self._surface()

    def _surface(self) -> None:
        failure = self._failure or self.table.failure
        self._failure = self.table.failure = None
        if failure is not None:
            raise failure
        machine_code.surface()

    def _on_device(self, base: int, core: int, address: int, size: int, value: int) -> int:
        try:
            return self._device(core, address, size, value)
        except BaseException as problem:  # must not cross the compiled frames
            self._failure = problem
            self._s.access[0] = tc.FAILED
            return 0

    def _on_rare(
        self, which: int, base: int, core: int, address: int, size: int, value: int
    ) -> int:
        """First access of a kind that few programs make: compile its entry, then make it."""
        try:
            access, seconds = load(rare_entry(which))
            if seconds:
                self.table.compiled("a device access", seconds)
            self._s.rare[which] = access
            return int(_ACCESS(access)(base, core, address, size, value))
        except BaseException as problem:  # must not cross the compiled frames
            self._failure = problem
            self._s.access[0] = tc.FAILED
            return 0

    # Interpreted twins of the pointer calls (jit/calls.py)

    def entry(self, t: int, word: int) -> int:
        """Execute one word."""
        return self.table.watched(int(t), int(word), lambda: tc.interpret(self._s, t, word))

    def step(self, token: int, n: int) -> Any:
        """Call the STEP entry behind a token."""
        function = {
            _RUN_CORE: callbacks.run_core,
            _RUN_TENSIX: loop.tensix_entry,
            _RUN_THREAD: loop.thread_entry,
        }[token]
        return function(self._s, n)

    def access(self, token: int, core: int, address: int, size: int, value: int) -> Any:
        """Call the ACCESS entry behind a token."""
        if token == _DEVICE:
            return self._on_device(0, int(core), int(address), int(size), int(value))
        if token >= _RARE:
            return rare.ENTRIES[token - _RARE](self._s, core, address, size, value)
        function = dispatch.read_entry if token == _BUS_READ else dispatch.write_entry
        return function(self._s, core, address, size, value)

    def reg_read(self, core: int, register: int) -> int:
        """Engine register of a core."""
        return self.engine.reg_read(core, register)

    def reg_write(self, core: int, register: int, value: int) -> None:
        """Set an engine register of a core."""
        self.engine.reg_write(core, register, value)

    def emu_stop(self, core: int) -> None:
        """Stop a core."""
        self.engine.emu_stop(core)

    def emu_start(self, core: int, pc: int) -> int:
        """Run a core."""
        return self.engine.emu_start(core, pc)
