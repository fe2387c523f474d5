"""A sweep's results: the same for any number of workers, and whatever becomes of a worker."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import bhemu
from bhemu.errors import InputError, Internal
from bhemu.sweeps.engine import execute
from bhemu.sweeps.spec import Chunk, Plan, Record, load_sweep


def timeless(rows: list[Record]) -> list[Record]:
    """Without what differs from run to run."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_rows_say_what_a_run_by_itself_says(add1: Path) -> None:
    found = bhemu.sweep(add1, workers=1)
    assert found.complete and len(found) == 12
    assert dict(found.counts) == {"ok": 4, "differs": 8}
    tile = bhemu.Program.load("add1").launch(quantum=100, engine="compiled")
    tile.run()
    row = next(r for r in found.rows if (r["scalar"], r["quantum"]) == (1.0, 100))
    assert (row["outcome"], row["clock"], row["t1"]) == ("ok", tile.clock, 165)
    assert row["brisc"] == tile.core["brisc"].retired
    assert len({r["digest"] for r in found.rows}) == 3  # one a scalar, whatever the quantum
    (group,) = found.failures
    assert len(group.runs) == 8
    done = subprocess.run(
        [sys.executable, "-m", *group.command.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "773 of 1024 elements differ" in done.stdout


def test_the_number_of_workers_changes_nothing(add1: Path) -> None:
    one, two = (bhemu.sweep(add1, workers=n, out=f"out{n}", progress=None) for n in (1, 2))
    assert timeless(one.rows) == timeless(two.rows)
    lines = [(Path(f"out{n}") / "runs.jsonl").read_text().splitlines() for n in (1, 2)]
    assert timeless([*map(json.loads, lines[0])]) == timeless([*map(json.loads, lines[1])])


def test_a_killed_worker_loses_nothing_and_nothing_runs_twice(add1: Path) -> None:
    killed: list[int] = []

    def kill(row: Record) -> None:
        if not killed:
            child = multiprocessing.active_children()[0]
            assert child.pid is not None
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)

    found = bhemu.sweep(add1, workers=2, out="out", progress=kill)
    assert killed
    assert [row["run"] for row in found.rows] == list(range(12))
    lines = (Path("out") / "runs.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["run"] for line in lines) == list(range(12))
    assert timeless(found.rows) == timeless(bhemu.sweep(add1, workers=1).rows)


class Breaking(Executor):
    """Runs a chunk at once, and breaks with the chunk that holds the run `bad`."""

    def __init__(self, bad: int) -> None:
        self.bad, self.broken = bad, False

    def submit(self, fn: Any, /, *args: Any, **more: Any) -> Any:
        future: Future[Any] = Future()
        chunk: Chunk = args[0]
        self.broken |= any(job.number == self.bad for job in chunk.jobs)
        if self.broken:
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(fn(chunk))
        return future


class Refusing(Breaking):
    """Takes one chunk, and refuses the next one, because it has broken meanwhile."""

    def submit(self, fn: Any, /, *args: Any, **more: Any) -> Any:
        if self.broken:
            raise BrokenProcessPool("a worker died")
        self.broken = True
        return super().submit(fn, *args, **more)


class Pool:
    store = None
    refusals: tuple[type[Exception], ...] = (BrokenProcessPool,)

    def __init__(self, bad: int, first: type[Breaking] = Breaking) -> None:
        self.bad, self.starts, self.first = bad, 0, first

    def start(self) -> Executor:
        self.starts += 1
        return (self.first if self.starts == 1 else Breaking)(self.bad)

    def again(self) -> Executor:
        return self.start()

    def slots(self) -> int:
        return 2

    def silent(self) -> bool:
        return False

    def stop(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_run_that_ends_its_worker_is_named_and_the_others_are_done(add1: Path) -> None:
    plan, rows = Plan(load_sweep(add1)), []
    pool = Pool(bad=5)
    execute(plan, [run.job for run in plan.runs], pool, rows.append)
    assert sorted(row["number"] for row in rows) == list(range(12))
    (lost,) = [row for row in rows if row["outcome"] == "internal error"]
    assert (lost["number"], lost["rule"]) == (5, "WorkerLost")
    assert "a worker died" in lost["message"]


def test_a_pool_that_breaks_while_runs_are_given_out_loses_none(add1: Path) -> None:
    plan, rows = Plan(load_sweep(add1)), []
    pool = Pool(bad=-1, first=Refusing)
    execute(plan, [run.job for run in plan.runs], pool, rows.append)
    assert sorted(row["number"] for row in rows) == list(range(12))
    assert pool.starts == 2
    assert {row["outcome"] for row in rows} == {"ok", "differs"}


class Silent(Pool):
    """Its first executor answers nothing."""

    def start(self) -> Executor:
        self.starts += 1
        return Unanswered(-1) if self.starts == 1 else Breaking(-1)

    def silent(self) -> bool:
        return self.starts == 1


class Unanswered(Breaking):
    def submit(self, fn: Any, /, *args: Any, **more: Any) -> Any:
        return Future()


def test_runs_that_are_never_answered_are_done_again(add1: Path) -> None:
    plan, rows = Plan(load_sweep(add1)), []
    execute(plan, [run.job for run in plan.runs], Silent(bad=-1), rows.append)
    assert sorted(row["number"] for row in rows) == list(range(12))


def test_workers_that_never_begin_are_no_endless_loop(add1: Path) -> None:
    plan = Plan(load_sweep(add1))
    with pytest.raises(Internal, match="no worker process gets to its first run"):
        execute(plan, [run.job for run in plan.runs], Pool(bad=0), print)


def test_a_worker_of_another_version_is_refused(
    add1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bhemu.sweeps.engine.__version__", "0.0.1")
    plan = Plan(load_sweep(add1))
    with pytest.raises(InputError, match=r"a worker has bhemu .*, not 0\.0\.1"):
        execute(plan, [run.job for run in plan.runs], Pool(bad=-1), print)


def test_files_travel_to_a_worker_that_has_none(
    add1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool has no store: the worker asks for every file that it lacks, and for no other."""
    monkeypatch.setattr("bhemu.sweeps.worker._workers", threading.local())  # that of a new process
    plan, rows = Plan(load_sweep(add1)), []
    sent: list[str] = []
    blob = plan.blob
    plan.blob = lambda name: sent.append(name) or blob(name)  # type: ignore[method-assign,func-returns-value]
    execute(plan, [run.job for run in plan.runs], Pool(bad=-1), rows.append)
    assert len(rows) == 12
    names = Counter(name.partition("/")[2] for name in sent)
    elfs = {f"{core}.elf" for core in ("brisc", "trisc0", "trisc1", "trisc2")}
    assert names.keys() == {"base", "PROGRAM.toml", "in.npy", "expected.npy", *elfs}
    assert max(names.values()) <= 4  # the chunks that were out before the first answer


def test_an_error_is_a_row_with_rule_and_place_and_names_the_callers_files(folder: Path) -> None:
    found = bhemu.sweep(["hang_cycle", "add1"], {"seed": [0]}, workers=1, set=["nothing=u32:1"])
    hang, wrong = found.rows
    assert wrong["outcome"] == "bad input"
    assert "no symbol or register nothing" in wrong["message"]
    found = bhemu.sweep("hang_cycle", {"engine": ["compiled"]}, workers=1)
    (hang,) = found.rows
    assert (hang["outcome"], hang["rule"]) == ("no progress", "DEADLOCK")
    assert (hang["core"], hang["file"], hang["line"]) == ("trisc1", "cycle_math.c", 11)
    assert "semaphore 2" in hang["waits"][0]
    (group,) = found.failures
    assert group.place == "tile 1,2 trisc1 main cycle_math.c:11"
    names = {"data": ["add1/in.npy", "add1/brisc.elf"], "engine": ["compiled"]}
    good, bad = bhemu.sweep("add1", names, workers=1, in_="{data}@0x40000:bf16").rows
    assert good["outcome"] == "ok"
    assert f"{folder}/add1/brisc.elf is not .npy" in bad["message"]
    assert "bhemu-sweep" not in bad["message"]


def test_what_a_check_finds_is_the_outcome_of_a_run_that_is_else_fine(folder: Path) -> None:
    path = folder / "add1" / "PROGRAM.toml"
    before, after = path.read_text().split("[[input]]")
    path.write_text(before + "[[output]]" + after.partition("[[output]]")[2])  # nobody writes src
    values = {"check": ["unwritten"], "engine": ["compiled"]}
    (row,) = bhemu.sweep("add1", values, compare=False, workers=1).rows
    assert (row["outcome"], row["exit_code"], row["rule"]) == ("finding", 1, "unwritten")
    assert row["core"] and row["file"] and row["findings"][0].startswith("[unwritten]")
    assert row["command"].endswith("--check unwritten --engine compiled --no-compare")
    (hang,) = bhemu.sweep("hang_cycle", values, workers=1).rows
    assert (hang["outcome"], hang["rule"]) == ("no progress", "DEADLOCK")
    with pytest.raises(InputError, match="no check is called 'unini'"):
        bhemu.sweep("add1", {"check": ["unini"]})


def test_a_program_of_a_chip_is_swept_too(folder: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "elfs" / "copy_dram", folder / "copy_dram")
    values = {"delivery": ["round", "late"], "seed": [0, 1], "engine": ["compiled"]}
    rows = bhemu.sweep("copy_dram", values, workers=1).rows
    assert [row["outcome"] for row in rows] == ["ok"] * 4
    assert len({row["digest"] for row in rows}) == 1
    plain, again, late, other = (row["clock"] for row in rows)
    assert plain == again and len({plain, late, other}) == 3


def test_resume_runs_what_is_missing_and_what_has_changed(add1: Path) -> None:
    whole = bhemu.sweep(add1, workers=1, out="out")
    path = Path("out") / "runs.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[3:9], lines[10][:40]]))  # the last one was cut off
    again = bhemu.sweep(add1, workers=1, out="out", resume=True)
    assert again.new == 6
    assert timeless(again.rows) == timeless(whole.rows)
    assert path.read_text().count("\n") == 12
    add1.write_text(add1.read_text().replace("2.0]", "4.0]"))
    assert bhemu.sweep(add1, workers=1, out="out", resume=True).new == 4
    with pytest.raises(InputError, match="has results already"):
        bhemu.sweep(add1, workers=1, out="out")


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(add1: Path) -> None:
    add1.write_text(add1.read_text().replace("step = 300", "step = 1"))
    command = [sys.executable, "-m", "bhemu", "sweep", "SWEEP.toml", "--out", "out"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    path = Path("out") / "runs.jsonl"
    end = time.monotonic() + 120
    while time.monotonic() < end and not (path.exists() and path.read_bytes().count(b"\n") > 3):
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "interrupted: --resume goes on" in out
    assert re.search(r"\d now, in [1-9\d]+\.\d s, \d{1,5} runs/s", out), out
    assert "Traceback" not in err
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert 3 < len(kept) < 2703
    found = bhemu.sweep(add1, out="out", resume=True)
    assert found.complete and found.new == 2703 - len(kept)
    assert timeless(found.rows[: len(kept)])
    assert {row["key"] for row in kept} <= {row["key"] for row in found.rows}
