"""Tiles of several threads: the same bytes as one after another, safe from their first use on."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bhemu import Program, Tile
from bhemu.errors import InputError
from bhemu.jit import build, machine_code
from bhemu.jit.build import Entry
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, beq, code, li, lw, sw

ELFS = Path(__file__).parents[2] / "elfs"
START, FLAG, DONE = 0x10000, 0x8000, 0x8004
engines = pytest.mark.parametrize("engine", ENGINES)


def result(name: str, engine: str) -> tuple[bytes, int]:
    """L1 and the clock after a program."""
    tile = Program.load(ELFS / name).launch(engine=engine)
    assert tile.run().reason == "until"
    return tile.l1.tobytes(), tile.clock


@engines
def test_tiles_in_threads_give_what_they_give_alone(engine: str) -> None:
    names = ["add1", "matmul", "add1", "matmul"]
    alone = [result(name, engine) for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(result, names, [engine] * 4)) == alone


@engines
def test_compiled_rounds_leave_python_to_other_threads(engine: str) -> None:
    """A core polls, in one call that only another thread can end, by what it stores."""
    begun, tiles = threading.Event(), []

    def work() -> str:
        tile = Tile(engine=engine, livelock=0)
        tile.state.time_slice[0] = 1 << 60  # compiled code does not return by itself
        tile.state.count_passes[0] = 0
        poll = [*li(A1, FLAG), lw(A0, A1), beq(A0, ZERO, -4), *li(A1, DONE), sw(A0, A1), PARK]
        tile.write(START, code(poll))
        tile.core["trisc0"].set_reset_pc(START)
        tile.core["trisc0"].release()
        tiles.append(tile)
        begun.set()
        return tile.run([(DONE, 1)], limit=2_000_000_000).reason

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(work)
        assert begun.wait(60)
        time.sleep(0.05)
        tiles[0].state.l1[FLAG] = 1
        assert ended.result() == "until"


FIRST_USE = """
import sys, threading
from pathlib import Path
from bhemu import Program
names, engine = sys.argv[2:], sys.argv[1]
at_once, found = threading.Barrier(len(names)), {}
def work(i, name):
    at_once.wait()
    tile = Program.load(name).launch(engine=engine)
    found[i] = (tile.run().reason, tile.clock, [result.equal for result in tile.check()])
threads = [threading.Thread(target=work, args=pair) for pair in enumerate(names)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for i in range(0, len(names), 2):
    assert found[i] == found[i + 1], found
    assert found[i][0] == "until" and all(found[i][2]), found
"""


@engines
def test_first_use_from_several_threads_at_once(engine: str) -> None:
    """A new process in which four threads load everything at the same time."""
    names = [str(ELFS / name) for name in ("add1", "add1", "matmul", "matmul")]
    command = [sys.executable, "-c", FIRST_USE, engine, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_two_threads_want_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads ask for two entries: each is compiled once, never both at a time."""
    compiling: list[str] = []
    most = 0

    def compiled(wanted: Entry) -> bytes:
        nonlocal most
        compiling.append(wanted.name)
        most = max(most, len(compiling) - len(done))
        time.sleep(0.05)
        done.append(wanted.name)
        return wanted.name.encode()

    done: list[str] = []
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr(build, "_find_image", lambda wanted: None)
    monkeypatch.setattr(build, "_compiled", compiled)
    monkeypatch.setattr(machine_code, "unpacked", lambda data: data)
    monkeypatch.setattr(machine_code, "load", lambda data: 1 + (data == b"one"))
    entries: list[Any] = [Entry(name, "m", None) for name in ("one", "two")] * 2  # type: ignore[arg-type]
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(build.load, entries))
    assert [code.address for code in codes] == [2, 1, 2, 1]
    assert sorted(done) == ["one", "two"]
    assert most == 1


def test_a_tile_of_another_thread_is_refused() -> None:
    with ThreadPoolExecutor(1) as pool:
        tile = pool.submit(Tile).result()
    with pytest.raises(InputError, match="belongs to the thread"):
        tile.run()
