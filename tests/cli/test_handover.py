"""Runs that begin interpreted, and are taken to compiled code: nothing shows when."""

import functools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bhemu as package
from bhemu.jit import cache
from bhemu.jit.subset import JIT
from bhemu.machine import precompile
from bhemu.machine.saved import HOSTS
from bhemu.program.options import ENGINES
from bhemu.riscv.assembly import A0, EBREAK, PARK, ZERO, addi, bne, li, tt
from bhemu.tensix.state import DTYPE

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")

ROOT = Path(package.__file__).parent.parent
ELFS = ROOT / "elfs"
LOOP = [li(A0, 500_000), addi(A0, A0, -1), bne(A0, ZERO, -4)]  # seconds, interpreted
FOREVER = [li(A0, 0x7FFFFFFF), addi(A0, A0, -1), bne(A0, ZERO, -4), PARK]  # as good as
RUNS_ON = re.compile("running  clock [1-9][0-9]+: interpreted, ")
TIMES = 20 if os.environ.get("BHEMU_LONG") else 1
RUNS = (
    # program, flags, pauses of its interpreted run
    ("add1", "", 280),
    ("add1", "--engine compiled", 280),
    ("add1", "--late 5", 280),
    ("add1", "--timing model", 280),
    ("hang_flag", "", 50),
    ("hang_cycle", "--engine compiled", 60),
    ("eltwise", "--ub warn --poison random --seed 3", 200),
    ("copy_dram", "", 40),
    ("copy_dram", "--engine unicorn", 40),
    ("all_gather", "--delivery late --seed 4", 60),
)


def run(*words: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, cwd=ROOT
    )


def members(path: Path) -> dict[str, Any]:
    """What a saved state holds, without what says how a host looked on, and pending drops."""
    found: dict[str, Any] = {}
    with np.load(path) as held:
        for name in held.files:
            if name.startswith("tile"):
                record = held[name].view(DTYPE)
                found |= {f"{name} {member}": record[member][0] for member in DTYPE.names or ()}
            else:
                found[name] = held[name]
    return {n: v for n, v in found.items() if n.rpartition(" ")[2] not in (*HOSTS, "flush")}


@functools.cache
def compiled(program: str, flags: str, folder: Path) -> tuple[int, str, str, dict[str, Any]]:
    state = folder / "compiled.npz"
    words = "run", ELFS / program, *flags.split(), "--json", "--save", state
    done = run("-m", "bhemu", *words, "--compile=wait")
    return done.returncode, done.stdout, done.stderr, members(state)


@pytest.mark.parametrize(("program", "flags", "pauses"), RUNS if TIMES > 1 else RUNS[::2])
def test_nothing_shows_when_a_run_is_taken_over(
    tmp_path: Path, program: str, flags: str, pauses: int
) -> None:
    """Exit code, summary, errors and every bit of the state are those of a compiled run."""
    code, said, problem, state = compiled(program, flags, tmp_path)
    dice = random.Random(os.urandom(8) if TIMES > 1 else f"{program} {flags}")
    for _ in range(TIMES):
        at, path = dice.randrange(pauses), tmp_path / "taken.npz"
        words = "run", ELFS / program, *flags.split(), "--json", "--save", path
        done = run(ROOT / "tests" / "cli" / "interpreted_first.py", at, *words)
        assert (done.returncode, done.stdout, done.stderr) == (code, said, problem), at
        found = members(path)
        assert found.keys() == state.keys()
        differing = [name for name, value in found.items() if (value != state[name]).any()]
        assert differing == [], at


ENDS = {
    "RV-ILLEGAL": [addi(A0, ZERO, 1), 0x0000000B],
    "EBREAK": [addi(A0, ZERO, 1), tt("SEMINIT", sem_sel=1, max_value=1), EBREAK],
    "ENC-RESERVED": [tt("SEMINIT", sem_sel=1, max_value=1), tt("SEMPOST") | 0x4, PARK],
    "DEADLOCK": [tt("SEMWAIT", wait_sem_cond=1, sem_sel=1, stall_res=0x1FF), tt("NOP"), PARK],
}


@pytest.mark.parametrize("rule", ENDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_errors_are_the_same(write, report, tmp_path: Path, engine: str, rule: str) -> None:
    """With place, hint, waits and clock, at whichever pause the run is taken over."""
    path = write(*ENDS[rule])
    flags = "--engine", engine
    code, error = report("run", path, *flags)
    assert code != 0
    at = random.Random(f"{engine} {rule}").randrange(4)
    driver = ROOT / "tests" / "cli" / "interpreted_first.py"
    done = run(driver, at, "run", path, *flags, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (code, error)
    assert error["rule"] == rule


@pytest.fixture
def lacking(tmp_path: Path) -> Path:
    """A cache that has all that add1 uses but SEMINIT and loads of the bus."""
    run("-m", "bhemu", "run", "-q", ELFS / "add1", "--compile=wait")
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for path in cache.root().iterdir():
        if not path.name.startswith(("SEMINIT-", "load_entry-", ".")) and path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_run_is_taken_over_when_all_is_compiled(write, lacking: Path) -> None:
    """The loop takes longer, interpreted, than compiling takes on a busy machine."""
    path = write(tt("SEMINIT", sem_sel=1, max_value=1), *LOOP * 120, PARK)
    done = run("-m", "bhemu", "run", path, "-v", BHEMU_CACHE_DIR=str(lacking))
    assert done.returncode == 0
    assert "interpreted, " in done.stderr and ": compiled from here on" in done.stderr
    assert list(lacking.glob("SEMINIT-*"))
    again = run("-m", "bhemu", "run", path, "-v", BHEMU_CACHE_DIR=str(lacking))
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "interpreted" not in again.stderr


def test_a_time_out_begins_with_compiled_code(write, lacking: Path) -> None:
    """As it begins behind compiling where a run waits: how it ends is no matter of the cache."""
    words = "run", write(*FOREVER), "--timeout", "0.2"
    done = run("-m", "bhemu", *words, BHEMU_CACHE_DIR=str(lacking))
    assert done.returncode == 7
    handed, error = done.stderr.index(": compiled from"), done.stderr.index("error: [TIMEOUT]")
    assert handed < error


def test_a_run_waits_where_that_is_asked_for(write, lacking: Path) -> None:
    words = "run", write(tt("SEMINIT", sem_sel=1, max_value=1), PARK), "--compile", "wait"
    done = run("-m", "bhemu", *words, BHEMU_CACHE_DIR=str(lacking))
    assert done.returncode == 0
    assert done.stderr.startswith("compiling what the program uses")


def test_a_run_that_ends_before_anything_is_compiled(tmp_path: Path) -> None:
    """The first answer of a fresh clone, and what compiled beside it has ended."""
    words = "-m", "bhemu", "run", ELFS / "add1", "--json"
    done = run(*words, BHEMU_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run(*words, "--compile=wait").stdout
    assert not list(tmp_path.glob("run_rounds-*"))


class Running:
    """An interpreted run that would take hours, and the processes that compile beside it."""

    def __init__(self, path: Path, folder: Path, *flags: object) -> None:
        words = [sys.executable, "-m", "bhemu", "run", path, *flags]
        environment = {**os.environ, "BHEMU_CACHE_DIR": str(folder)}
        said = folder.with_name("said")
        with said.open("w") as file:
            self.process = subprocess.Popen(
                [*map(str, words)], env=environment, stderr=file, cwd=ROOT
            )
        end = time.monotonic() + 60
        while not RUNS_ON.search(said.read_text()) and time.monotonic() < end:
            time.sleep(0.1)
        self.said = said.read_text()
        number = self.process.pid
        text = Path(f"/proc/{number}/task/{number}/children").read_text()
        self.compilers = [int(child) for child in text.split()]

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def live(self) -> list[int]:
        return [pid for pid in self.compilers if Path(f"/proc/{pid}").exists()]

    def wait_for_compilers(self) -> None:
        end = time.monotonic() + 60
        while self.live() and time.monotonic() < end:
            time.sleep(0.1)
        assert self.live() == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for children in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_compilers_end_with_the_run(write, tmp_path: Path, number: int) -> None:
    """However it ends; a Ctrl-C leaves a state between two instructions."""
    state, folder = tmp_path / "state.npz", tmp_path / "cache"
    with Running(write(*FOREVER), folder, "--save", state) as running:
        assert RUNS_ON.search(running.said)
        assert running.compilers and running.live() == running.compilers
        running.process.send_signal(number)
        code = running.process.wait(60)
        assert code == (130 if number == signal.SIGINT else -number)
        running.wait_for_compilers()
    if number == signal.SIGINT:
        loaded = package.Snapshot.load(state)
        at, passed = divmod(int(loaded.retired[1]) - 2, 2)[::-1]
        assert int(loaded.pc[1]) == 0x10008 + 4 * at
        assert int(loaded.regs[1, A0]) == 0x7FFFFFFF - passed - at


def test_a_check_compiles_nothing(tmp_path: Path) -> None:
    words = "-m", "bhemu", "check", ELFS / "add1"
    done = run(*words, BHEMU_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_compilers_that_fail_leave_the_run_interpreted() -> None:
    watch = precompile.Watch(["bhemu.no.such_entry"])
    end = time.monotonic() + 60
    while not watch.failed and time.monotonic() < end:
        assert not watch.is_compiled(None)
        time.sleep(0.05)
    assert watch.failed


def test_most_of_what_runs_use_is_foreseen() -> None:
    """The rest is compiled when the run has come to it, before it is taken over."""
    script = (
        "from bhemu.jit import interpreted\n"
        "interpreted.chosen = True\n"
        "import json\n"
        "from bhemu import Program\n"
        "from bhemu.machine import precompile\n"
        "program, elfs = Program.load('elfs/reduce'), precompile.ElfCache()\n"
        "foreseen = {entry.path for entry in precompile.needed(program, elfs)}\n"
        "tile = program.launch(elfs=elfs)\n"
        "tile.run()\n"
        "used = precompile.used(tile)\n"
        "print(json.dumps([len(used), sorted(used - foreseen)]))\n"
    )
    count, unforeseen = json.loads(run("-c", script).stdout)
    assert count > 20
    second = "bhemu.tensix.units.{}._stage_by_stage"
    assert unforeseen == [second.format("pack.pacr"), second.format("unpack.unpacr")]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"state": 3}', '{"process": 1, "began": 0}'])
def test_a_variable_that_another_process_has_set_is_nothing(text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "run", "-q", str(ROOT / "elfs" / "add1")],
        capture_output=True, text=True, env={**os.environ, "BHEMU_RUN_GOES_ON": text},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
