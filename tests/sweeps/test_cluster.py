"""A Dask cluster gives the same table, and neither a worker nor the scheduler loses a run."""

import contextlib
import gc
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bhemu
from bhemu.errors import InputError
from bhemu.sweeps.engine import Cluster
from bhemu.sweeps.spec import Record

distributed = pytest.importorskip("distributed", reason="no dask: pip install 'bhemu[sweep]'")
parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install 'bhemu[sweep]'")

# A client of distributed that is closed while it connects again leaves its socket to the collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """No loop goes on, and sockets that distributed leaves are collected here, not elsewhere."""
    yield
    gc.collect()
    assert "IO loop" not in [thread.name for thread in threading.enumerate()]


class Servers:
    """A scheduler and workers, each a process."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        log = (self.folder / "dask.log").open("ab")
        command = [sys.executable, "-m", "dask", *words]
        self.running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))
        log.close()
        return self.running[-1]

    def scheduler(self) -> "subprocess.Popen[bytes]":
        listening = ["--host", "127.0.0.1", "--port", str(self.port), "--dashboard-address", ":0"]
        started = self.start("scheduler", *listening, "--no-show")
        end = time.monotonic() + 120  # on a machine that is busy
        while time.monotonic() < end and started.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                break
            time.sleep(0.1)
        return started

    def worker(self) -> "subprocess.Popen[bytes]":
        alone = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "120"]
        return self.start("worker", self.address, *alone)

    def end(self) -> None:
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()


@pytest.fixture
def servers(folder: Path) -> Iterator[Servers]:
    made = Servers(folder)
    yield made
    made.end()


def timeless(table: Any) -> Any:
    return table.drop_columns(["seconds"])


def test_a_cluster_gives_the_same_parquet_as_processes(add1: Path) -> None:
    more = ["compiled", "unicorn"]
    add1.write_text(add1.read_text().replace('engine = "compiled"', f"engine = {more}"))
    bhemu.sweep(add1, workers=1, out="one")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", worker_dashboard_address=":0"
    )
    with cluster:
        found = bhemu.sweep(add1, scheduler=cluster.scheduler_address, out="two")
    assert len(found) == 24
    one, two = (parquet.read_table(f"{name}/runs.parquet") for name in ("one", "two"))
    assert one.schema == two.schema
    assert one.schema.field("scalar").type == "double"
    assert timeless(one).equals(timeless(two))
    lines = [Path(f"{name}/runs.jsonl").read_text().splitlines() for name in ("one", "two")]
    for own, other in zip(*[[json.loads(line) for line in each] for each in lines], strict=True):
        assert {**own, "seconds": 0} == {**other, "seconds": 0}


def test_a_lost_worker_and_a_restarted_scheduler_lose_no_run(add1: Path, servers: Servers) -> None:
    add1.write_text(add1.read_text().replace("step = 300", "step = 3"))
    scheduler, workers = servers.scheduler(), [servers.worker(), servers.worker()]
    rows: list[Record] = []

    def accident(row: Record) -> None:
        rows.append(row)
        if len(rows) == 50:
            workers[0].send_signal(signal.SIGKILL)
        if len(rows) == 200:
            scheduler.send_signal(signal.SIGKILL)
            scheduler.wait()
            for worker in workers:
                worker.kill()
            time.sleep(11)  # some clients would have given up after 10 s
            servers.scheduler()
            servers.worker()

    found = bhemu.sweep(add1, scheduler=servers.address, out="out", progress=accident)
    assert found.complete and len(found) == 903
    assert sorted(row["run"] for row in rows) == list(range(903))
    lines = Path("out/runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == list(range(903))
    assert dict(found.counts) == {"differs": 602, "ok": 301}


def test_a_client_without_its_scheduler_is_given_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, now = Cluster("tcp://127.0.0.1:9"), iter([0.0, 119.0, 200.0, 300.0, 321.0])
    clock = SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr("bhemu.sweeps.engine.time", clock)
    cluster._client = SimpleNamespace(status="connecting")
    assert [cluster.silent(), cluster.silent()] == [False, False]
    cluster._client.status = "running"
    assert not cluster.silent()
    cluster._client.status = "connecting"
    assert [cluster.silent(), cluster.silent(), cluster.silent()] == [False, False, True]


def test_no_scheduler_is_named(add1: Path) -> None:
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        bhemu.sweep(add1, scheduler="tcp://127.0.0.1:9")
    assert time.monotonic() - begin < 100
    with pytest.raises(InputError, match="no Dask scheduler answers at nonsense"):
        bhemu.sweep(add1, scheduler="nonsense://x")
