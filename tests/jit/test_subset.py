"""The decorators only mark; the interpreted mode needs nothing that compiles."""

import os
import subprocess
import sys

import pytest

from bhemu.jit import interpreted
from bhemu.jit.subset import JIT, Compiled, njit

RUN = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # an import is an error
import bhemu.machine.precompile
from bhemu.cli import main
main(["run", "-q", "elfs/add1"])
"""


@pytest.mark.parametrize("value", ["1", "0", "", "no"])
def test_the_switch_is_read_as_numba_reads_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", value)
    assert interpreted.always() == (value == "1")


def test_the_interpreted_mode_needs_no_numba(pytestconfig: pytest.Config) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


WITHOUT = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # as if they were not installed
"""
COMMAND = WITHOUT + 'from bhemu.cli import main\nmain(["run", "-q", "elfs/add1"])'
TILES = WITHOUT + "import bhemu\nbhemu.Tile(), bhemu.Tile()"
ENTRY = """
from bhemu.jit import build, interpreted
from bhemu.jit.subset import signature
interpreted.lacks_compiler = lambda: False  # a wheel carries code, but not of this
try:
    build.load(build.function(signature("int64", "int64"), lambda x: x))
except Exception as error:
    sys.exit(error)
"""


@pytest.mark.parametrize(
    ("program", "code", "times"),
    [
        (COMMAND, 0, 0),
        (COMMAND.replace('"-q", ', ""), 0, 1),
        (TILES, 0, 1),
        (WITHOUT + ENTRY, 1, 1),
    ],
)
def test_without_a_compiler_the_command_that_installs_it_is_told_once(
    pytestconfig: pytest.Config, program: str, code: int, times: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=pytestconfig.rootpath,
        env={k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.count("pip install 'bhemu[compile]'") == times, done.stderr
    assert "Traceback" not in done.stderr


def test_a_marked_function_stays_what_it_is() -> None:
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    marked = njit(inline="always")(double)
    assert marked(4) == 8
    assert (marked.__name__, marked.__doc__) == ("double", "Twice.")
    assert njit(marked) is marked
    if JIT:
        assert isinstance(marked, Compiled) and marked.options == {"inline": "always"}
        assert marked.py_func is double
    else:
        assert marked is double
