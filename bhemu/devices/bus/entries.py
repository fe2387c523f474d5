"""The device bus: which window an access goes to, and the entries that perform it.

An entry is compiled on its first use: what a program does not access is never compiled. The bus
(entries.py) finds it through tables of the record, so a new window compiles nothing else again.
"""

import functools
import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu import memmap as mm
from bhemu.devices import debug_regs
from bhemu.devices.bus import window as declared
from bhemu.devices.bus.address_map import ETHERNET, INERT, MODULE_OF, WINDOWS
from bhemu.devices.bus.window import Register, Window
from bhemu.jit import Later
from bhemu.jit.build import Code, Entry, function_at, generated, load
from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.memmap import DEVICE_BASE, HOST
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import ACCESS, WINDOW_PAGES, WINDOW_ROWS, State

# The device bus: which window an access goes to, what goes before it, and which widths exist.
#
# The windows are rows of tables in the record (entries.fill). Before a TRISC's access to anything
# but its instruction push, its own thread may run until its head blocks (brisc: all threads it has
# pushed to); then the access takes place at once.


auto_sync = Later("bhemu.devices.bus.access_order")

LOAD, STORE = 0, 1
GAP = WINDOW_ROWS - 1  # the row of addresses between the windows
PAGE_SHIFT = 12
LOW, HIGH, ORDER, WIDTHS, AGENTS = 0, 1, 2, 3, 5  # of a row; the last two by way


@njit
def _row(s: Any, address: Any) -> Any:
    """The window that holds `address`, or GAP."""
    page = (address - DEVICE_BASE) >> PAGE_SHIFT
    if page < 0 or page >= WINDOW_PAGES:
        return np.int64(GAP)
    i = np.int64(s.window_at[page])  # the first that ends after the start of the page
    while s.window[i, HIGH] <= address:
        i += 1
    return i if s.window[i, LOW] <= address else np.int64(GAP)


@njit
def _refused(s: Any, c: Any, i: Any, address: Any, size: Any, value: Any, way: Any) -> Any:
    """Why row `i` does not take the access, or DONE; before it, the core's thread may run."""
    order = np.int64(declared.AT_ONCE)
    if c < HOST:
        s.core_address[c] = np.uint32(address)
        order = s.window[i, ORDER]
        if order != declared.AT_ONCE and declared.offer(s, c) != DONE:
            return np.int64(declared.RETRY)
    s.detail[0], s.detail[1], s.detail[2], s.detail[3] = address, value, size, c  # declared.ACCESS
    if order > declared.AFTER_WORDS and 1 <= c <= 3 and auto_sync.tracks(s, c):
        at = address - s.window[i, LOW]
        status = call_access(s.sync_entry[0], s, c, at, order, np.int64(way))
        if status != DONE:
            return status
    if address & (size - 1):
        return np.int64(declared.MISALIGNED)
    if s.window[i, WIDTHS + way] & size == 0:
        return np.int64(declared.STORE_SIZE if way == STORE else declared.LOAD_SIZE)
    if (s.window[i, AGENTS + way] >> c) & 1:
        return np.int64(DONE)
    return np.int64(s.window_rule[way, i, c])


def load_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: load 1, 2 or 4 bytes into `s.loaded`; its status."""
    i = _row(s, address)
    status = _refused(s, c, i, address, size, value, np.int64(LOAD))
    if status != DONE:
        return status
    at, entry = address - s.window[i, LOW], s.window_entry[LOAD, i]
    if size == 4 or s.window[i, WIDTHS + LOAD] & declared.BY_BYTES:
        return call_access(entry, s, c, at, size, value)
    status = call_access(entry, s, c, at & ~3, np.int64(4), value)
    if status == DONE:
        s.loaded[0] = (s.loaded[0] >> (8 * (at & 3))) & ((1 << (8 * size)) - 1)
    return status


def store_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: store 1, 2 or 4 bytes; its status, refused before any effect."""
    i = _row(s, address)
    status = _refused(s, c, i, address, size, value, np.int64(STORE))
    if status != DONE:
        return status
    return call_access(s.window_entry[STORE, i], s, c, address - s.window[i, LOW], size, value)


assert max(len(WINDOWS), len(ETHERNET)) < GAP < WINDOW_ROWS

_HEAD = '''"""Generated from the window {name} by bhemu/devices/bus/entries.py; do not edit."""

import numpy as np

{imports}

def entry(s, c, offset, size, value):
{body}'''
_NEVER = 1 << 40  # above every address


class _Text:
    """The text of one entry: its imports, and what each register's branch does."""

    def __init__(self, window: Window, store: bool) -> None:
        self._window, self._store = window, store
        self._functions: list[Any] = []
        self._branches: dict[tuple[str, ...], list[str]] = {}  # statements: their conditions

    def _call(self, function: Any, **more: int) -> str:
        """Statement that returns what a function does, with those arguments that it names."""
        if function not in self._functions:
            self._functions.append(function)
        given = {**self._window.given, **more}
        names = inspect.signature(getattr(function, "py_func", function)).parameters
        listed = ", ".join(f"np.int64({given[name]})" if name in given else name for name in names)
        return f"return np.int64(f{self._functions.index(function)}({listed}))"

    def _statements(self, register: Register) -> tuple[str, ...]:
        way = register.store if self._store else register.load
        if register.inert:
            i = list(INERT.values()).index(register)
            if self._store:
                return f"value &= {register.mask:#x}", self._call(debug_regs.inert_store, i=i)
            return (self._call(debug_regs.inert_load, i=i),)
        done = f"return np.int64({DONE})"
        if way is declared.DROPPED:
            return (done,)
        if way is declared.KEPT or isinstance(way, int):
            place = register.place or f"{self._window.storage}[offset >> 2]"
            what = f"s.{place}" if way is declared.KEPT else way
            return f"s.{place} = np.uint32(value)" if self._store else f"s.loaded[0] = {what}", done
        if way is None:
            return (
                f"return np.int64({declared.READ_ONLY if self._store else declared.WRITE_ONLY})",
            )
        return (self._call(way),)

    def _acts(self, register: Register | None) -> tuple[str, ...]:
        """What marks a load that does more than load a value."""
        acts = not self._store and self._window.load_acts(register)
        return ("s.load_acted[0] = 1",) if acts else ()

    def build(self) -> str:
        """The whole module."""
        window = self._window
        for register in window.registers:
            if register.modelled:
                statements = (*self._acts(register), *self._statements(register))
                conditions = self._branches.setdefault(statements, [])
                conditions.append(f"{register.offset:#x} <= offset < {register.end:#x}")
        way = window.way(self._store)
        last = f"return np.int64({window.unknown})" if way is None else self._call(way)
        last = "\n    ".join((*self._acts(None), last))
        lines = []
        for statements, conditions in self._branches.items():
            test = "\n        or ".join(conditions)
            lines += [f"    if (\n        {test}\n    ):", *(f"        {s}" for s in statements)]
        imports = "".join(
            f"from {function.__module__} import {function.__name__} as f{i}\n"
            for i, function in enumerate(self._functions)
        )
        body = "\n".join([*lines, f"    {last}\n"])
        return _HEAD.format(name=window.name, imports=imports, body=body)


def source(window: Window, store: bool) -> str:
    """Text of the generated module with the entry function of a window's loads or stores."""
    return _Text(window, store).build()


def title(window: Window, store: bool) -> str:
    """What is compiled, for the progress line."""
    return f"{'stores to' if store else 'loads from'} {window.name}"


@functools.cache
def entry(window: Window, store: bool) -> Entry:
    """The entry of a window's loads or stores."""
    name = re.sub(r"\W+", "_", f"{'store' if store else 'load'}_{window.name}")
    return generated(ACCESS, name, MODULE_OF[window], lambda: source(window, store))


SYNC = function_at(ACCESS, "bhemu.devices.bus.access_order.check")

_addresses: dict[tuple[int, Window], int] = {}  # by way, of the entries that this process has


def first_use(window: Window, store: bool) -> Code:
    """Load the entry of a window, for the tables of this and of every later record."""
    code = load(entry(window, store))
    _addresses[STORE if store else LOAD, window] = code.address
    return code


def of(window: Window) -> Iterator[Entry]:
    """The entries of a window that an access can come to."""
    for store in (False, True):
        if not all(window.refuses(store, agent) for agent in declared.EVERYONE):
            yield entry(window, store)


def performed() -> Iterator[Entry]:
    """Every entry that an access can come to."""
    for window in WINDOWS:
        yield from of(window)
    yield SYNC


@functools.cache
def interpreted(window: Window, store: bool) -> Any:
    """The entry as a function of Python."""
    return entry(window, store).resolved()


class _Tables(NamedTuple):
    """The tables of the bus, as every record holds them."""

    window_at: npt.NDArray[np.int64]
    window: npt.NDArray[np.int64]
    window_rule: npt.NDArray[np.int64]


@functools.cache
def _tables(windows: tuple[Window, ...], shapes: tuple[tuple[int, ...], ...]) -> _Tables:
    made = _Tables(*(np.zeros(shape, np.int64) for shape in shapes))
    pages = mm.DEVICE_BASE + (np.arange(made.window_at.size) << PAGE_SHIFT)
    made.window_at[:] = np.searchsorted([w.high - 1 for w in windows], pages)
    made.window[:, (LOW, HIGH)] = _NEVER
    rows = {**dict(enumerate(windows)), GAP: None}
    for i, window in rows.items():
        if window is not None:
            made.window[i, (LOW, HIGH, ORDER)] = (window.low, window.high, window.order)
        for way in (LOAD, STORE):
            sizes, why = declared.ANY, [declared.UNMAPPED] * len(declared.EVERYONE)
            if window is not None:
                sizes = window.stores if way == STORE else window.loads
                why = [window.refuses(way == STORE, agent) for agent in declared.EVERYONE]
            made.window[i, WIDTHS + way] = sizes
            made.window[i, AGENTS + way] = sum(1 << n for n, rule in enumerate(why) if not rule)
            made.window_rule[way, i] = why
    return made


def fill(s: State, windows: tuple[Window, ...], first_load: int, first_store: int) -> None:
    """Write the tables of a tile's bus into its record; pointers until the first use."""
    names = _Tables._fields
    made = _tables(windows, tuple(getattr(s, name).shape for name in names))
    for name, table in zip(names, made, strict=True):
        getattr(s, name)[...] = table
    s.window_entry[LOAD], s.window_entry[STORE] = first_load, first_store
    put_loaded(s, windows)


def put_loaded(s: State, windows: tuple[Window, ...]) -> None:
    """Write the pointers of the windows that have been used already."""
    for (way, window), address in _addresses.items():
        if window in windows:
            s.window_entry[way, windows.index(window)] = address
