"""Lean compiling leaves numba as it found it, and gives functions that still do all they did."""

import ctypes
import gc

import numba
import pytest
from numba.core import codegen, cpu, inline_closurecall, registry

from bhemu.jit import machine_code, numba_patches
from bhemu.jit.emit import emit
from bhemu.jit.subset import JIT, signature
from bhemu.tensix.state import DTYPE


def inner(x: int) -> int:
    return x * 3 + 1


def numba_as_it_is() -> tuple[object, ...]:
    backend = registry.cpu_target.target_context.codegen()
    return (
        cpu.CPUContext.get_executable,
        numba.types.Record.__repr__,
        backend._library_class,
        gc.isenabled(),
        numba.types.BaseFunction.get_call_type,
        inline_closurecall.InlineWorker.run_untyped_passes,
    )


@pytest.mark.parametrize("fails", [False, True])
def test_numba_is_left_as_it_was(fails: bool) -> None:
    before = numba_as_it_is()
    try:
        with numba_patches.lean():
            assert all(now != was for now, was in zip(numba_as_it_is(), before, strict=True))
            if fails:
                raise KeyError
    except KeyError:
        pass
    assert numba_as_it_is() == before
    assert before[2] is codegen.JITCodeLibrary


@pytest.mark.skipif(not JIT, reason="about compiled code")
def test_a_callee_is_no_machine_code_until_it_is_asked_for() -> None:
    called = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(inner)

    def entry(n: int) -> int:
        return called(n)  # type: ignore[no-any-return]

    with numba_patches.lean():
        numba.cfunc(numba.types.int64(numba.types.int64))(entry)
    library = called.overloads[(numba.types.int64,)].library
    assert isinstance(library, numba_patches.InnerLibrary)
    assert not library._finalized

    @numba.njit
    def caller(x: int) -> int:
        return called(x)  # type: ignore[no-any-return]

    assert caller(5) == 16  # compiled as numba does, with the same callee
    assert library._finalized


@pytest.mark.skipif(not JIT, reason="about compiled code")
def test_the_record_type_has_a_short_name_only_meanwhile() -> None:
    record = numba.from_dtype(DTYPE)
    with numba_patches.lean():
        assert repr(record) == record.name
    assert repr(record) != record.name


@pytest.mark.skipif(not JIT, reason="about compiled code")
def test_another_version_of_numba_compiles_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def used() -> None:
        raise AssertionError("lean")

    numbers = signature("int64", "int64")
    monkeypatch.setattr(numba_patches, "lean", used)
    with pytest.raises(AssertionError, match="lean"):
        emit(numbers, inner)
    monkeypatch.setattr(numba, "__version__", "99.1.0")
    address = machine_code.load(emit(numbers, inner))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(13) == 40
