"""Functions of a user that compiled code calls: their events, their arrays, their entries."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.errors import InputError
from bhemu.jit import interpreted, machine_code
from bhemu.jit.build import function, image, load
from bhemu.jit.intrinsics import record_at
from bhemu.jit.subset import JIT, Compiled, njit
from bhemu.riscv.core_loop import PC, WRITES
from bhemu.tensix import formats
from bhemu.tensix.insn import Instruction, instructions
from bhemu.tensix.rules import clock_reached
from bhemu.tensix.state import ACCESS, THREADS
from bhemu.tensix.units.pack import addresses as output_address
from bhemu.tensix.units.pack.modes import mode_of
from bhemu.tensix.units.unpack import addresses as input_address
from bhemu.tensix.units.unpack.modes import mode_of_word

# What a function gets: numbers only, the same ones compiled and in Python.


class Word(NamedTuple):
    """A Tensix word before it executes, of tile (x, y), pushed by core number `core` from `pc`.

    fields: values of its fields by name, and `word`; () where every word is asked for.
    """

    thread: int
    word: int
    core: int
    pc: int
    clock: int
    x: int
    y: int
    fields: Any


class TransferWord(NamedTuple):
    """An UNPACR or PACR: also the bytes in L1 that it moves, `first` to before `end`.

    datums: how many; l1_format: the number of their format (bhemu.tensix.formats.NAMES). All are 0
    where nothing moves.
    """

    thread: int
    word: int
    core: int
    pc: int
    clock: int
    x: int
    y: int
    fields: Any
    first: int
    end: int
    datums: int
    l1_format: int


class Step(NamedTuple):
    """An instruction `word` at `pc` before core number `core` of tile (x, y) executes it."""

    core: int
    pc: int
    word: int
    clock: int
    x: int
    y: int


class Access(NamedTuple):
    """After a load, or a store (`stores` 1): `value`, `size` bytes at `address`."""

    core: int
    pc: int
    address: int
    size: int
    value: int
    stores: int
    clock: int
    x: int
    y: int


_NUMBERS = "iufb"  # kinds of elements that compiled functions take
_FAILED = 1


class CompiledFunction:
    """A function of the compiled subset, called with an event and its arrays."""

    def __init__(self, function: Callable[..., object], arrays: tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.arrays = function, arrays

    def __call__(self, event: Any) -> object:
        """Call it in Python."""
        return self.function(event, *self.arrays)

    def table(self, xy: tuple[int, int]) -> npt.NDArray[np.int64]:
        """What its entry gets for a tile, to be kept: x, y, addresses of the arrays."""
        return np.array([*xy, *(array.ctypes.data for array in self.arrays)], np.int64)

    def entry(self, kinds: int, name: str | None) -> int:
        """Address of its ACCESS entry for words `name`, or accesses of kinds; 0: not compiled here.

        InputError for what is not of the subset.
        """
        if not JIT:
            return 0
        if importlib.util.find_spec("numba") is None:
            name = self.function.__name__
            interpreted.tell(f"{name} is called in Python; {interpreted.COMPILER} compiles it")
            return 0
        event = _step if kinds == PC else _access if kinds else _word(name)
        layouts = tuple((array.dtype.str, array.shape) for array in self.arrays)
        try:
            made = function(ACCESS, _entry(self.function, event, layouts))
            needs = {fix.symbol for fix in machine_code.unpacked(image(made)).fixes}
        except Exception as problem:
            raise _refusal(self.function, problem) from None
        if any(symbol.startswith("NRT_") for symbol in needs):
            raise _refusal(self.function, ValueError("makes a list, string, array or other object"))
        return load(made).address


def compiled(*arrays: Any) -> Callable[[Callable[..., object]], CompiledFunction]:
    """Let on_word, on_pc and on_access call a function from compiled code, with these arrays.

    The function gets an event of numbers, then the arrays, which are all that it may change:
    C-contiguous arrays of integers, floats or booleans. InputError for others.
    """
    for n, array in enumerate(arrays):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _NUMBERS:
            raise InputError(f"compiled: argument {n + 1} is no array of numbers")
        if not array.flags.c_contiguous or not array.flags.writeable or not array.shape:
            raise InputError(f"compiled: array {n + 1} must be C-contiguous and writable, not 0-d")

    def mark(function: Callable[..., object]) -> CompiledFunction:
        return CompiledFunction(function, arrays)

    return mark


def _refusal(function: Callable[..., object], problem: Exception) -> InputError:
    """The error of a function that does not compile: what numba says of it, and of which line."""
    code = function.__code__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(problem))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Failed in", "During", "- ", "File"))]
    file = re.escape(Path(code.co_filename).name)  # numba names it from the current folder
    found = re.search(rf'File "[^"]*{file}", line (\d+)', text)
    line = int(found[1]) if found else code.co_firstlineno
    source = linecache.getline(code.co_filename, line).strip()
    hint = f"the compiled subset is that of numba, without objects (docs/plugins.md): {source}"
    what = said[0] if said else type(problem).__name__
    return InputError(f"{code.co_filename}:{line}: {function.__name__}: {what}", hint=hint)


# The entry of a function: (record, table of arrays, who, where, value) -> 0, or _FAILED.


def _entry(function: Callable[..., object], event: Any, layouts: tuple[Any, ...]) -> Any:
    """The entry of a function of an event, with arrays of these types and shapes."""
    n = len(layouts)
    # no module of this package: the key of its code is looked up under no name
    names: dict[str, Any] = {"__name__": "plugin", "np": np}
    names |= {"table": record_at(np.dtype([("of", np.int64, (2 + n,))])), "event": event}
    names |= {"function": Compiled(function, {"boundscheck": True}), "FAILED": np.int64(_FAILED)}
    for k, layout in enumerate(layouts):
        names[f"array{k}"] = record_at(np.dtype([("of", *layout)]))
    arrays = "".join(f", array{k}(at.of[{2 + k}]).of" for k in range(n))
    text = f"""
def entry(s, place, who, where, value):
    at = table(place)
    try:
        function(event(s, who, where, value, at.of[0], at.of[1]){arrays})
    except Exception:
        return FAILED
    return np.int64(0)
"""
    exec(compile(text, f"<{function.__name__}>", "exec"), names)
    made = names["entry"]
    made.__qualname__ = made.__name__ = "plugin"
    return made


@njit
def _step(s: Any, who: Any, where: Any, value: Any, x: Any, y: Any) -> Any:
    return Step(who & 0xFF, where, value, clock_reached(s) + 1, x, y)


@njit
def _access(s: Any, who: Any, where: Any, value: Any, x: Any, y: Any) -> Any:
    c = who & 0xFF
    stores: Any = np.int64((who >> 8 & 0xFF) == WRITES)
    pc: Any = np.int64(s.pc[c])
    return Access(c, pc, where, who >> 16, value, stores, clock_reached(s), x, y)


_NO_TRANSFER = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))


@njit
def _unpacked(s: Any, t: Any, f: Any) -> Any:
    """(first byte in L1, after the last, datums, format) of an UNPACR."""
    m = mode_of_word(s, t, f)
    if f.cfg_context_cnt_inc or f.search_cache_flush or m.counters >= THREADS:
        return _NO_TRANSFER
    at = s.adc[m.counters, f.unpack_block_selection]
    count = np.int64(at[1, 0]) - np.int64(at[0, 0]) + 1
    read = input_address.source(s, t, m)
    rows = max((count - 1) // read.row, np.int64(0))
    bits = read.data + 8 * read.step * rows + read.bits * (count - rows * read.row)
    return np.int64(read.data >> 3), np.int64((bits + 7) >> 3), count, np.int64(m.fmt)


@njit
def _packed(s: Any, t: Any, f: Any) -> Any:
    """The same of a PACR."""
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    if f.flush or a >= THREADS:
        return _NO_TRANSFER
    m = mode_of(s, t)
    rows = output_address.rows_of(s, a, m, f.read_intf_sel, f.dst_access_mode)
    datums = np.int64(output_address.count_of(s, m, rows))
    first = np.int64(output_address.place_of(s, a, m).data)
    end = first + (datums * formats.datum_bits(m.out) + 7 >> 3)
    return first, np.int64(end), datums, np.int64(m.out)


TRANSFERS = {"unpack": _unpacked, "pack": _packed}
_WORD = """
@njit
def event(s, t, word, nothing, x, y):
    w = np.int64(word)
    fields = {fields}
    {transfer}
    core, pc = np.int64(s.gate_core[t]), np.int64(s.gate_pc[t])
    return {event}(t, w, core, pc, clock_reached(s), x, y, fields{more})
"""


@functools.cache
def _word(name: str | None) -> Any:
    """What makes the event of words of a mnemonic, None: of any."""
    cls = instruction(name)
    moves = "" if cls is None else cls.formats if cls.formats in TRANSFERS else ""
    names: dict[str, Any] = {"np": np, "njit": njit, "clock_reached": clock_reached}
    names |= {"__name__": __name__, "Word": Word, "TransferWord": TransferWord}
    names |= {"_Fields": cls and cls.Fields, "transfer": TRANSFERS.get(moves)}
    text = _WORD.format(
        fields="()" if cls is None else cls.source("w"),
        transfer="first, end, datums, kind = transfer(s, t, fields)" if moves else "",
        event="TransferWord" if moves else "Word",
        more=", first, end, datums, kind" if moves else "",
    )
    exec(compile(text, f"<word {name}>", "exec"), names)
    return names["event"]


def instruction(name: str | None) -> type[Instruction] | None:
    """The class of a mnemonic."""
    return next((cls for cls in instructions().values() if cls.name == name), None)
