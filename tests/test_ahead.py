"""What is compiled ahead in other processes, and that no entry is compiled twice."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bhemu
from bhemu.jit import cache
from bhemu.jit.build import is_kept
from bhemu.jit.subset import JIT
from bhemu.machine import precompile
from bhemu.program.loader import read_elf
from bhemu.tensix import compiled
from bhemu.tensix.insn import instructions

ELFS = Path(bhemu.__file__).parent.parent / "elfs"
compiled_only = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")


def names(*elfs: str) -> set[str]:
    return {
        instructions()[op].name for op in precompile.opcodes(read_elf(ELFS / elf) for elf in elfs)
    }


def test_pushed_words_and_those_built_by_lui_are_found() -> None:
    """MVMUL and PACR reach the coprocessor through the MOP expander, UNPACR by `.ttinsn`."""
    math = names("matmul/trisc1.elf")
    assert {"MVMUL", "SETRWC", "SEMPOST"} <= math and "PACR" not in math
    assert "PACR" in names("matmul/trisc2.elf")
    assert "UNPACR" in names("matmul/trisc0.elf")


def test_device_windows_whose_addresses_are_built_by_lui_are_found() -> None:
    math = precompile.accesses([read_elf(ELFS / "add1/brisc.elf")])
    assert "store_tile_control_debug_status" in math
    assert "load_Dst_window" not in math


def run_ahead(folder: Path, *parts: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "BHEMU_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-m", "bhemu.machine.precompile", *parts], env=environment
    )


def entries(folder: Path, name: str) -> list[Path]:
    return [path for path in folder.glob(f"{name}-*") if path.suffix != ".lock"]


@compiled_only
def test_parts_are_compiled_into_the_cache(tmp_path: Path) -> None:
    assert run_ahead(tmp_path, "SEMPOST", "SEMGET").wait() == 0
    assert len(entries(tmp_path, "SEMPOST")) == len(entries(tmp_path, "SEMGET")) == 1


@compiled_only
def test_an_entry_that_another_process_compiles_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    assert instructions()[0xA4].name == "SEMPOST"
    with cache.alone("SEMPOST") as waited:
        assert not waited
        assert run_ahead(tmp_path, "SEMPOST", "SEMGET").wait() == 0
        assert not is_kept(compiled.entry(0xA4))
    assert len(entries(tmp_path, "SEMGET")) == 1


@compiled_only
def test_who_needs_an_entry_waits_for_the_process_that_compiles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`alone` says that it has waited, and goes on as soon as the other is done."""
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    held = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", f"{held}; print('held', flush=True); time.sleep(0.5)"]
    with subprocess.Popen([*command, str(tmp_path / "name.lock")], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        begin = time.monotonic()
        with cache.alone("name") as waited:
            assert waited and time.monotonic() - begin > 0.2
            with (tmp_path / "name.lock").open("w") as again, pytest.raises(BlockingIOError):
                fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path / "absent")
    with cache.alone("name") as waited:
        assert not waited
