"""Compiled code is found again exactly as long as nothing it is made from has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu
from bhemu.jit import cache
from bhemu.jit.subset import JIT

PACKAGE = Path(bhemu.__file__).parent
PROGRAM = """
from ctypes import CFUNCTYPE, c_int64, c_uint32, c_void_p
from bhemu.tensix import compile as tc
from bhemu.tensix.state import State
from bhemu.tensix.units.sync import SEMPOST
s = State()
entry, _ = tc.entry(SEMPOST.opcode)
s.sem_max[:] = 15
status = CFUNCTYPE(c_int64, c_void_p, c_int64, c_uint32)(entry.address)(
    s.base, 0, SEMPOST.assemble(sem_sel=1)
)
print(status, s.sem[0], int(bool(entry.cache_hits)))
"""


def relative(module: str) -> set[str]:
    return {str(path.relative_to(PACKAGE)) for path in cache.closure(module, cache.RECORD)}


def test_the_closure_holds_callees_of_callees_and_not_the_neighbours() -> None:
    found = relative("bhemu.tensix.units.sync")
    assert {"tensix/units/sync.py", "tensix/semaphores.py", "tensix/quirks.py"} <= found
    assert {"tensix/state.py", "tensix/record.py", "tensix/status.py", "bits.py"} <= found
    assert not {"tensix/units/adc.py", "tensix/units/__init__.py", "riscv/hooks.py"} & found


def test_the_loop_and_the_devices_are_reached() -> None:
    assert {"tensix/frontend.py", "tensix/gate.py"} <= relative("bhemu.tensix.loop")
    assert {"devices/pcbuf.py", "riscv/isa/zbb.py"} <= relative("bhemu.riscv.callbacks") | relative(
        "bhemu.devices.dispatch"
    )


@pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")
def test_an_edited_callee_is_compiled_again(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bhemu", ignore=shutil.ignore_patterns("__pycache__"))

    def run() -> list[str]:
        environment = {"BHEMU_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run() == ["0", "1", "0"]
    assert run() == ["0", "1", "1"]
    callee = tmp_path / "bhemu" / "tensix" / "semaphores.py"
    text = callee.read_text()
    assert text.count("s.sem[i & 7] += 1") == 1
    callee.write_text(text.replace("s.sem[i & 7] += 1", "s.sem[i & 7] += 3"))
    assert run() == ["0", "3", "0"]
    neighbour = tmp_path / "bhemu" / "tensix" / "units" / "adc.py"
    neighbour.write_text(neighbour.read_text() + "\n# a comment\n")
    assert run() == ["0", "3", "1"]


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere"])
def test_a_chosen_folder_that_cannot_be_written_is_bad_input(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "bhemu.cli", "run", str(PACKAGE.parent / "elfs" / "add1")]
    environment = {**os.environ, "BHEMU_CACHE_DIR": str(tmp_path / place)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: BHEMU_CACHE_DIR: {tmp_path / place}: ")
    assert "name a folder that can be written, or unset it" in done.stderr


def test_without_a_folder_of_its_own_the_cache_is_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("BHEMU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache.root.__wrapped__() == tmp_path / f"bhemu-{os.getuid()}"
