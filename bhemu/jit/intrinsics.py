"""Intrinsics of compiled code: addresses, memory, calls through pointers, processor ticks."""

import ctypes
import functools
import inspect
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.jit import Later
from bhemu.jit.subset import JIT, External, intrinsic, signature

ir: Any = Later("llvmlite.ir")
numba: Any = Later("numba")
cgutils: Any = Later("numba.core.cgutils")
arrayobj: Any = Later("numba.np.arrayobj")

# Memory and records by their host address, with interpreted twins.
#
# A record that interpreted code may find by its address is noted in `records`.

records: "weakref.WeakValueDictionary[int, Any]" = weakref.WeakValueDictionary()
"""The record at an address: for interpreted code, and for what compiled code calls."""


def record_at(dtype: "np.dtype[Any]") -> Any:
    """The function (address) -> record of this type."""
    if not JIT:
        return lambda address: records[int(address)]

    @intrinsic
    def at(typing: Any, address: Any) -> Any:
        kind = numba.from_dtype(dtype)

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(numba.types.int64), emit

    return at


def _emitted(result: str, kinds: tuple[str, ...], body: Callable[..., Any]) -> Any:
    """Mark what `body(builder, *values)` emits; kinds: of the values, "" for whatever is there."""

    def typed(typing: Any, *given: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = body(builder, *args)
            return context.get_dummy_value() if value is None else value

        taken = [
            getattr(numba.types, kind) if kind else own
            for kind, own in zip(kinds, given, strict=True)
        ]
        return getattr(numba.types, result)(*taken), emit

    names = ("typing", *(f"value{i}" for i in range(len(kinds))))  # numba takes no *given
    listed = (inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names)
    typed.__signature__ = inspect.Signature([*listed])  # type: ignore[attr-defined]
    return intrinsic(typed)


def _load_from(builder: Any, pointer: Any, align: int | None = None) -> Any:
    return builder.zext(builder.load(pointer, align=align), ir.IntType(64))


def _host_word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(32).as_pointer())


def _store_host_word(builder: Any, address: Any, value: Any) -> None:
    builder.store(builder.trunc(value, ir.IntType(32)), _host_word(builder, address), align=1)


# (to, from, bytes), overlapping or not; (to, byte, bytes)
move: Any = External("memmove", signature("int64", "int64", "int64", "int64"))
fill: Any = External("memset", signature("int64", "int64", "int64", "int64"))

if JIT:
    # (host address) -> its 32-bit word; (host address, value): the low 32 bits
    load_word: Any = _emitted(
        "int64", ("int64",), lambda builder, at: _load_from(builder, _host_word(builder, at), 1)
    )
    store_word: Any = _emitted("void", ("int64", "int64"), _store_host_word)
else:

    def load_word(address: Any) -> Any:
        """Interpreted twin: one word."""
        return np.int64(ctypes.c_uint32.from_address(int(address)).value)

    def store_word(address: Any, value: Any) -> None:
        """Interpreted twin: store one word."""
        ctypes.c_uint32.from_address(int(address)).value = int(value) & 0xFFFFFFFF


# Bytes, halves and words of the state record by their distance from its beginning.


def _pointer(builder: Any, record: Any, at: Any, bits: int) -> Any:
    cells = builder.bitcast(record, ir.IntType(bits).as_pointer())
    shift = (bits // 8).bit_length() - 1
    return builder.gep(cells, [builder.lshr(at, ir.Constant(ir.IntType(64), shift))])


def _load(bits: int) -> Callable[..., Any]:
    if not JIT:
        kind = f"<u{bits // 8}"
        return lambda s, at: np.int64(s.buffer.view(kind)[int(at) // (bits // 8)])

    def load(builder: Any, record: Any, at: Any) -> Any:
        return _load_from(builder, _pointer(builder, record, at, bits))

    emitted: Callable[..., Any] = _emitted("int64", ("", "int64"), load)
    return emitted


def _store(bits: int) -> Callable[..., Any]:
    if not JIT:
        kind, mask = f"<u{bits // 8}", (1 << bits) - 1

        def plain(s: Any, at: Any, value: Any) -> None:
            s.buffer.view(kind)[int(at) // (bits // 8)] = int(value) & mask

        return plain

    def store(builder: Any, record: Any, at: Any, value: Any) -> None:
        cell = builder.trunc(value, ir.IntType(bits))
        builder.store(cell, _pointer(builder, record, at, bits))

    emitted: Callable[..., Any] = _emitted("void", ("", "int64", "int64"), store)
    return emitted


# (record, distance) -> value as int64; the distance is rounded down to the size in bytes
LOAD = {1: _load(8), 2: _load(16), 4: _load(32)}
# (record, distance, value): its low bytes
STORE = {1: _store(8), 2: _store(16), 4: _store(32)}
l1_word: Any = LOAD[4]
"""(record, address): the aligned 32-bit word of L1 that holds it; the caller keeps it inside."""


# Calls through the pointers of compiled code, with interpreted twins.
#
# With NUMBA_DISABLE_JIT=1 the same sources run as plain Python; `s.py` then has what the calls go
# to: `table.interpret(s, t, word)`, functions (s, n) in `steps` by their tokens, and
# `access(token, core, address, size, value)`.


def _pointer_call(builder: Any, address: Any, *given: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(64), [a.type for a in given])
    return builder.call(builder.inttoptr(address, kind.as_pointer()), given)


if JIT:
    # (address, s, t, word) -> status of the entry of an opcode
    call_entry: Any = _emitted("int64", ("uint64", "", "int64", "uint32"), _pointer_call)
    # (address, s, n) -> what a STEP entry gives
    call_step: Any = _emitted("int64", ("uint64", "", "int64"), _pointer_call)
    # (address, s, core, address, size, value) -> what an ACCESS entry gives
    call_access: Any = _emitted("int64", ("uint64", "", *["int64"] * 4), _pointer_call)
else:

    def call_entry(address: Any, s: Any, t: Any, word: Any) -> Any:
        """Interpreted twin: execute one word."""
        return s.py.table.interpret(s, t, word)

    def call_step(address: Any, s: Any, n: Any) -> Any:
        """Interpreted twin: run a core or the coprocessor."""
        return s.py.steps[int(address)](s, n)

    def call_access(address: Any, s: Any, core: Any, where: Any, size: Any, value: Any) -> Any:
        """Interpreted twin: perform a device access."""
        return s.py.access(int(address), core, where, size, value)


# A contiguous array as one row of elements, without the cost of `ravel` in compiled code.
#
# `ravel` and `reshape` of compiled code walk over the shape at run time: 10 ns a call, and a good
# part of a second to compile.

if JIT:

    @intrinsic
    def flat(typing: Any, array: Any) -> Any:
        """View of a C-contiguous array of the state as (size,)."""
        assert array.layout == "C", array
        row = numba.types.Array(array.dtype, 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source = arrayobj.make_array(signature.args[0])(context, builder, args[0])
            view = arrayobj.make_array(row)(context, builder)
            size = ir.Constant(source.nitems.type, 1)
            for extent in cgutils.unpack_tuple(builder, source.shape):
                size = builder.mul(size, extent)
            arrayobj.populate_array(
                view,
                data=source.data,
                shape=cgutils.pack_array(builder, [size]),
                strides=cgutils.pack_array(builder, [source.itemsize]),
                itemsize=source.itemsize,
                meminfo=None,
            )
            return view._getvalue()

        return row(array), emit

else:

    def flat(array: Any) -> Any:
        """Interpreted twin: (size,)."""
        view = array.reshape(-1)
        assert view.base is not None
        return view


# The processor's time stamp counter, for compiled code; interpreted, nanoseconds.


def _counter(builder: Any) -> Any:
    kind = ir.FunctionType(ir.IntType(64), [])
    return builder.call(builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=kind), [])


if JIT:
    # Ticks of a constant rate: on x86-64 1 to 5 per nanosecond
    ticks: Any = _emitted("int64", (), _counter)
else:

    def ticks() -> Any:
        """Interpreted twin."""
        return time.perf_counter_ns()


# Calls of compiled code into methods of Python objects that the call does not keep alive.


@functools.cache
def callback(prototype: Any, owner: str, method: str, *first: int) -> int:
    """The address of a C function (base, ...) that calls method(*first, base, ...).

    The method is that of the object to which `owner` of the record at `base` is a weak reference;
    so one function, which stays, serves every record.
    """

    def call(base: int, *more: int) -> int:
        target = getattr(records[base], owner)()
        assert target is not None, "called after the end of its object"
        return int(getattr(target, method)(*first, base, *more))

    function = prototype(call)
    _kept.append(function)
    # ctypes.cast would make the function refer to itself
    return int(ctypes.c_void_p.from_buffer(function).value or 0)


_kept: list[Any] = []  # functions that compiled code may call as long as the process lives
