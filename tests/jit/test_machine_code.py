"""Objects become images that load without the tools that made them, and do the same."""

import ctypes
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from bhemu.errors import Internal
from bhemu.jit import machine_code
from bhemu.jit.build import function, load
from bhemu.jit.machine_code import Fix, Image
from bhemu.jit.subset import JIT, External, njit, signature

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")

ONE = signature("int64", "int64")
TABLE = np.arange(100, dtype=np.int64) ** 3
_sysconf: Any = External("sysconf", ONE)
NAMES = os.sysconf_names  # by number, what the function takes
PAIR = np.dtype([("a", np.int64), ("b", np.int64, (4,))])


def from_table(i):  # type: ignore[no-untyped-def]
    return TABLE[i]


def from_library(x):  # type: ignore[no-untyped-def]
    return _sysconf(x) + 1


def many_ways(x):  # type: ignore[no-untyped-def]
    if x == 0:
        return 11
    if x == 1:
        return 7
    if x == 2:
        return 23
    if x == 3:
        return 5
    if x == 4:
        return 17
    return 2


@njit
def inner(s, i):  # type: ignore[no-untyped-def]
    s.b[i] += s.a
    return s.b[i]


def on_record(s, i):  # type: ignore[no-untyped-def]
    return inner(s, i) * 2


def divides(x):  # type: ignore[no-untyped-def]
    return 100 // x


def call(python: Any, *arguments: int) -> int:
    numbers = signature("int64", *["int64"] * len(arguments))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))
    return int(kind(load(function(numbers, python)).address)(*arguments))


def test_constants_jumps_and_libraries() -> None:
    assert [call(from_table, i) for i in (0, 3, 99)] == [0, 27, 99**3]
    for name in ("SC_PAGESIZE", "SC_CLK_TCK"):
        assert call(from_library, NAMES[name]) == os.sysconf(name) + 1
    assert [call(many_ways, x) for x in range(6)] == [11, 7, 23, 5, 17, 2]


def test_a_record_is_taken_by_pointer() -> None:
    record = np.zeros(1, PAIR)
    record["a"], record["b"] = 5, 1
    code = load(function(signature("int64", PAIR, "int64"), on_record))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    assert kind(code.address)(record.ctypes.data, 2) == 12
    assert record["b"].tolist() == [[1, 1, 6, 1]]


def test_an_exception_in_compiled_code_surfaces() -> None:
    machine_code.surface()
    assert call(divides, 7) == 14
    machine_code.surface()
    assert call(divides, 0) == 0
    with pytest.raises(Internal, match="divided by zero"):
        machine_code.surface()
    machine_code.surface()


def test_a_function_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(Internal, match="no_such_function, which is nowhere"):
        machine_code.load(Image(0, 64, (Fix(8, "no_such_function", 0),), bytes(16)))


def test_an_image_is_read_as_it_was_written() -> None:
    image = Image(3, 4096, (Fix(4096, "memset", 0), Fix(4104, "", -7)), bytes(range(256)) * 20)
    assert machine_code.unpacked(image.packed()) == image


WARM = """
import sys
from bhemu.cli import main
try:
    main(["run", "-q", "elfs/add1"])
except SystemExit as end:
    assert end.code in (0, None), end.code
print(sorted({"numba", "llvmlite", "rich", "importlib.metadata"} & set(sys.modules)))
"""


def test_what_is_kept_runs_without_the_tools(pytestconfig: pytest.Config) -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", WARM],
            cwd=pytestconfig.rootpath,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert outputs[1] == "[]\n"
