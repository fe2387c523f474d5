"""The code that runs a tile's record: compiled through pointers, or interpreted as plain Python."""

import ctypes
import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.devices.bus import address_map, entries, window
from bhemu.devices.bus.window import Window
from bhemu.jit import Later, interpreted, machine_code
from bhemu.jit.build import Entry, expect, function, function_at, load
from bhemu.jit.interpreted import used
from bhemu.jit.intrinsics import callback
from bhemu.jit.record import PAGE
from bhemu.jit.subset import JIT
from bhemu.memmap import DEVICE_BASE, HOST, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import csr
from bhemu.riscv.engine import Engine, new_engine
from bhemu.riscv.engine import entries as engine_entries
from bhemu.system import interrupts
from bhemu.tensix import compiled, loop
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import ACCESS, CORES, STEP, State

if TYPE_CHECKING:
    from bhemu.riscv import core_loop
else:
    core_loop = Later("bhemu.riscv.core_loop")

Look = Callable[[int, Any, bool, Callable[[], int]], int]  # (core, window, store, access)
Told = Callable[[int, int, int, int, int], None]  # (core, kind, address, bytes, value)

# What the pointers of interpreted code stand for; windows[way] by the address of the access
_RUN_ROUNDS, _RUN_CORE, _RUN_TENSIX, _RUN_THREAD, _BUS_READ, _BUS_WRITE, _SYNC, *_FIRST = range(
    1, 10
)
_NOTHING, _PORT, _TOLD = 10, 11, 12
LOOK_EVERY = 4  # words, of which an interpreted one takes up to 15 ms
_TOKENS = (
    *("run_rounds", "run_core", "run_tensix", "run_thread"),
    *("bus_read", "bus_write", "sync_entry"),
)
_INT = ctypes.c_int64
_ACCESS = ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _INT, _INT, _INT, _INT)
_STEP = ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, _INT)


def _do_nothing(_s: Any, _n: Any) -> int:
    return 0


_DO_NOTHING = _STEP(_do_nothing)
_REST = int(ctypes.cast(_DO_NOTHING, ctypes.c_void_p).value or 0) if JIT else _NOTHING

BUS = {  # device loads and stores, by the record's members
    "bus_write": function(ACCESS, entries.store_entry),
    "bus_read": function(ACCESS, entries.load_entry),
}

TIMED = function_at(STEP, "bhemu.timing.loop.run_timed")
OBSERVED = function_at(STEP, "bhemu.riscv.core_loop.observed_core")
CSR = function(ACCESS, csr.host_entry)


def core_is_fresh(engine: str) -> bool:
    """Compile or load the loop and an engine's entries; whether any had to be compiled now."""
    return sum(load(part).seconds for part in core(engine)) > 0


def core(engine: str) -> tuple[Entry, ...]:
    """The loop, an engine's entries, and those of the bus."""
    return (*compiled.LOOP.values(), *engine_entries(engine).values(), *BUS.values())


_living: "weakref.WeakSet[Backend]" = weakref.WeakSet()


def _surfacing(call: Callable[..., int]) -> Callable[..., int]:
    """What compiled code calls: no exception crosses its frames, surface() raises it."""

    @functools.wraps(call)
    def guarded(self: "Backend", *numbers: int) -> int:
        try:
            return call(self, *numbers)
        except BaseException as problem:
            self._failure = problem
            return compiled.FAILED

    return guarded


class Backend:
    """Runs rounds and device accesses on one record; exceptions of callbacks surface here."""

    def __init__(
        self,
        s: State,
        progress: compiled.Progress,
        engine: str,
        timed: bool = False,
        windows: tuple[Window, ...] = address_map.WINDOWS,
    ) -> None:
        self._s, self._windows = s, windows
        self._record: Any = s.base if JIT else s  # as entries take it
        self._read: Callable[..., int]
        self._write: Callable[..., int]
        if JIT and not s.is_copy:
            expect(core(engine))
        self.table = compiled.Table(s, progress)
        self.engine = new_engine(engine, s)
        self._failure: BaseException | None = None
        self._look: Look | None = None
        self._told: Told | None = None
        self.observed: core_loop.ObservedRecord | None = None  # see observe_cores
        if JIT:
            s.accesses = weakref.ref(self)
            first_load = callback(_ACCESS, "accesses", "_on_first", entries.LOAD)
            first_store = callback(_ACCESS, "accesses", "_on_first", entries.STORE)
            self._first = first_load, first_store
            _living.add(self)
            if s.is_copy:
                entries.put_loaded(s, windows)
            else:
                self._point(timed)
            self._rounds = _STEP(int(s.run_rounds[0]))
            self._read, self._write = _ACCESS(int(s.bus_read[0])), _ACCESS(int(s.bus_write[0]))
        else:
            interpreted.announce()
            s.py = weakref.proxy(self)
            s.look_every[0] = LOOK_EVERY
            self.steps = {
                _NOTHING: _do_nothing,
                _RUN_ROUNDS: TIMED.resolved() if timed else loop.run_rounds,
                _RUN_CORE: engine_entries(engine)["run_core"].resolved(),
                _RUN_TENSIX: loop.tensix_entry,
                _RUN_THREAD: loop.thread_entry,
            }
            for token, name in enumerate(_TOKENS, _RUN_ROUNDS):
                getattr(s, name)[0] = token
            s.port_access[0] = _PORT
            entries.fill(s, windows, *_FIRST)
            self._read, self._write = entries.load_entry, entries.store_entry
        # In timed runs threads run when it is their time, not when a core looks at them
        if timed:
            from bhemu.timing import polling  # not needed elsewhere

            self.polling = polling.PollingRecord()
            s.profile_table[polling.PLACE] = self.polling.base
        if timed and not s.is_copy:
            s.run_tensix[0] = s.run_thread[0] = _REST

    def _point(self, timed: bool) -> None:
        """Write the addresses of compiled code into the record."""
        s = self._s
        s.sync_entry[0] = callback(_ACCESS, "accesses", "_on_first_sync")
        s.port_access[0] = callback(_ACCESS, "accesses", "_on_port")
        entries.fill(s, self._windows, *self._first)
        s.run_rounds[0] = load(TIMED if timed else compiled.LOOP["rounds"]).address
        for name, entry in BUS.items():
            getattr(s, name)[0] = load(entry).address

    def rounds(self, n: int) -> int:
        """Run up to `n` rounds from the current position; 0 or why it stopped."""
        if JIT:
            status = int(self._rounds(self._s.base, n))
        else:
            with interrupts.later(), np.errstate(over="ignore"):
                status = int(self.steps[_RUN_ROUNDS](self._s, n))
        self.surface()
        return status

    def observe(self, look: Look | None) -> None:
        """Call `look(core, window, store, access)` for every access of a device window.

        It must call `access`, which makes it, and return its status. None: as without.
        """
        self._look = look
        if JIT:
            entries.fill(self._s, self._windows, *self._first)
            if look is not None:
                self._s.window_entry[0], self._s.window_entry[1] = self._first

    def observe_cores(self, told: Told | None = None) -> "core_loop.ObservedRecord":
        """The record in which the cores count, and which says what `told` is called for.

        They run in the loop of engine "compiled" from now on. told: replaces the one that was.
        """
        s = self._s
        if told is not None or s.timed[0]:  # for every pass of a polling loop, too
            s.count_passes[0], s.loop_length[:] = 0, 0
            self._told = told or self._told
        if self.observed is not None:
            return self.observed
        record = self.observed = core_loop.ObservedRecord()
        record.known[:] = s.retired
        if s.translate_after[0] or s.engine.any() or type(self.engine) is not Engine:
            registers = [[self.engine.read_register(c, n) for n in range(32)] for c in range(CORES)]
            self.engine = Engine(s)
            s.regs[:], s.engine[:], s.registers[:] = registers, 0, 0
            s.translate_after[0] = s.code_page[:] = s.translated[:] = 0
        s.profile_table[core_loop.OBSERVED_PLACE] = record.base
        if JIT:
            record.tell[0] = callback(_ACCESS, "accesses", "_on_told")
            code = load(OBSERVED)
            if code.seconds:
                self.table.compiled("the loop of observed cores", code.seconds)
            s.run_core[0] = code.address
        else:
            record.tell[0] = _TOLD
            self.steps[_RUN_CORE] = core_loop.observed_core
        return record

    def count_skipped(self) -> None:
        """Count what a run has left out of its rounds because it repeated, where cores count."""
        if self.observed is not None:
            core_loop.settle(self.observed, self._s)

    def restored(self) -> None:
        """The record holds another state: what was retired before it is counted already."""
        if self.observed is not None:
            self.observed.known[:], self.observed.told[:] = self._s.retired, 0

    @_surfacing
    def _on_told(self, base: int, event: int, address: int, size: int, value: int) -> int:
        """Something that is asked for has happened; event: the core, and observed's kind."""
        assert self._told is not None
        self._told(event & 0xFF, event >> 8, address, size, value)
        return DONE

    def written(self, address: int, size: int) -> None:
        """These bytes of L1 have changed: what was translated from them must not run again."""
        first, last = address // PAGE, (address + size - 1) // PAGE
        pages = self._s.code_page[first : last + 1]
        cores = int(pages[0]) if first == last else int(np.bitwise_or.reduce(pages))
        for core in range(CORES):
            if cores >> core & 1:
                self.engine.changed(core, address, size)

    def read(self, address: int, size: int = 4, core: int = HOST) -> tuple[int, int]:
        """(status, value) of a device load as `core` (default: the host over the NoC)."""
        with self._standing():
            status = int(self._read(self._record, core, address, size, 0))
        self.surface()
        return status, int(self._s.loaded[0])

    def write(self, address: int, value: int, size: int = 4, core: int = HOST) -> int:
        """Status of a device store as `core` (default: the host over the NoC)."""
        with self._standing():
            status = int(self._write(self._record, core, address, size, value))
        self.surface()
        return status

    def csr(self, core: int, number: int) -> int | None:
        """A CSR as `core` would read it now; None where it has none."""
        value = self._csr(core, number, 0, 0)
        return None if value == csr.UNKNOWN else value

    def set_csr(self, core: int, number: int, value: int) -> bool:
        """Write a CSR; False where `core` cannot."""
        return self._csr(core, number, 1, value) != csr.UNKNOWN

    def _csr(self, core: int, number: int, writes: int, value: int) -> int:
        entry = _ACCESS(load(CSR).address) if JIT else csr.host_entry
        return int(entry(self._record, core, number, writes, value))

    @contextmanager
    def _standing(self) -> Iterator[None]:
        """After an error of the program no thread runs on because a device is read."""
        s = self._s
        if s.status[0] == 0:
            yield
            return
        still = "run_tensix", "run_thread", "route", "status", "status_thread", "status_core"
        kept = {name: int(getattr(s, name)[0]) for name in still}
        s.route[0] = s.status[0] = 0
        s.run_tensix[0] = s.run_thread[0] = _REST
        try:
            yield
        finally:
            for name, value in kept.items():
                getattr(s, name)[0] = value

    def surface(self) -> None:
        """Raise what a callback of compiled code has raised."""
        failure = self._failure or self.table.failure
        self._failure = self.table.failure = None
        if failure is not None:
            if self._s.status[0] == compiled.FAILED:  # nothing is wrong with the program
                self._s.status[0] = 0
            raise failure
        machine_code.surface()

    @_surfacing
    def _on_first(
        self, store: int, base: int, core: int, offset: int, size: int, value: int
    ) -> int:
        """First load or store of a window: compile its entry, then make the access."""
        index, window = self._window()
        access, seconds = entries.first_use(window, bool(store))
        if seconds:
            self.table.compiled(entries.title(window, bool(store)), seconds)
        call = _ACCESS(access)
        if self._look is not None:
            return self._look(
                core, window, bool(store), lambda: int(call(base, core, offset, size, value))
            )
        for one in tuple(_living):  # so no other tile comes here for it
            if one._look is None and one._windows is self._windows:
                one._s.window_entry[store, index] = access
        return int(call(base, core, offset, size, value))

    @_surfacing
    def _on_first_sync(self, base: int, core: int, offset: int, order: int, store: int) -> int:
        """First access that Auto TTSync may hold: compile the check, then make it."""
        access, seconds = load(entries.SYNC)
        if seconds:
            self.table.compiled("Auto TTSync", seconds)
        self._s.sync_entry[0] = access
        return int(_ACCESS(access)(base, core, offset, order, store))

    @_surfacing
    def _on_port(self, base: int, core: int, where: int, action: int, value: int) -> int:
        """What the debug port asks of a core that is halted: its registers, memory as it sees it.

        where: DR(2), a register or an address; action: of DR(1).
        """
        s = self._s
        if s.fresh[core] or action == debug_port.CLEAR_GPRS:
            s.fresh[core] = 0
            for number in range(1, 32):
                self.engine.write_register(core, number, 0)
        if action == debug_port.READ_GPR:
            is_pc = where == debug_port.PC
            s.loaded[0] = s.pc[core] if is_pc else self.engine.read_register(core, where)
        elif action == debug_port.WRITE_GPR:
            self.engine.write_register(core, where & 31, value)
        elif action != debug_port.CLEAR_GPRS:
            # An aligned word of L1, of the core's local memory or of a device
            s, reads, local = self._s, action == debug_port.READ_MEMORY, where - LOCAL_BASE
            is_local = 0 <= local < LOCAL_SIZES[core]
            if where & 3 or not (where < L1_SIZE or is_local or where >= DEVICE_BASE):
                s.detail[:4] = where, value, 4, core  # window.ACCESS
                return window.MISALIGNED if where & 3 else window.UNMAPPED
            if where < L1_SIZE or is_local:
                memory, at = (s.local[core], local) if is_local else (s.l1, where)
                word = memory[at : at + 4].view(np.uint32)
                if reads:
                    s.loaded[0] = word[0]
                    return DONE
                word[0] = value
                if not is_local:
                    self.written(at, 4)
                return DONE
            return self.read(where, 4, core)[0] if reads else self.write(where, value, 4, core)
        return DONE

    def _window(self) -> tuple[int, Window]:
        """Row and declaration of the window that is being accessed."""
        window = address_map.find(int(self._s.detail[0]), self._windows)
        assert window is not None
        return self._windows.index(window), window

    # Interpreted twins of the pointer calls (jit/intrinsics.py)

    def access(self, token: int, core: int, address: int, size: int, value: int) -> Any:
        """Call the ACCESS entry of a token."""
        if token in _FIRST:
            window, store = self._window()[1], token == _FIRST[1]
            access = entries.interpreted(window, store)
            used.add(entries.entry(window, store).path)
            if self._look is not None:
                return self._look(
                    int(core), window, store, lambda: access(self._s, core, address, size, value)
                )
        else:
            if token == _SYNC:
                used.add(entries.SYNC.path)
            access = {
                _BUS_READ: entries.load_entry,
                _BUS_WRITE: entries.store_entry,
                _SYNC: entries.SYNC.resolved(),
                _PORT: self._on_port,
                _TOLD: self._on_told,
            }[token]
        return access(self._s, core, address, size, value)
