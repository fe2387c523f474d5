"""Where runs are executed: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import multiprocessing.process
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver, resource_tracker
from typing import Any, Protocol, TypeVar

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.sweeps import worker
from bhemu.system import interrupts
from bhemu.system.temporary import Temporary

AHEAD = 2  # tasks given out per worker: one it works on, one that waits
TRIES = 3  # what has ended so many workers is given up
_PATIENCE = 120  # seconds in which a scheduler that went away may come back


class Pool(Protocol):
    """An executor that can be had again after it has broken."""

    store: str | None
    refusals: tuple[type[Exception], ...]  # what its executor raises where it has broken

    def start(self) -> Executor:
        """A working executor."""

    def again(self) -> Executor:
        """Another one, after the last one has broken."""

    def slots(self) -> int:
        """How many chunks it works on at the same time."""

    def silent(self) -> bool:
        """Whether what was given out will never be answered, not even with an error."""

    def stop(self) -> None:
        """Drop it at once, with what it is doing."""

    def close(self) -> None:
        """Stop, and leave nothing behind."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def give(
    pool: Pool, executor: Executor, function: Callable[[Item], Result], item: Item
) -> Future[Result]:
    """What will become of an item: a failure at once where the pool has broken meanwhile."""
    try:
        with interrupts.later():  # it may start a process, which nobody ends who does not know it
            return executor.submit(function, item)
    except pool.refusals as problem:
        failed: Future[Result] = Future()
        failed.set_exception(problem)
        return failed


@functools.cache
def _sockets() -> Temporary:
    """The folder of multiprocessing's sockets, which it removes only where it is not killed."""
    made = Temporary("bhemu")  # as short as multiprocessing's own: a socket's name has 107 bytes
    config: dict[str, Any] = vars(multiprocessing.process.current_process())["_config"]
    config.setdefault("tempdir", str(made.path))
    return made


def _begin_forkserver() -> None:
    """Start the process that forks workers; Ctrl-C, of which the terminal tells all, is not for it.

    It ignores Ctrl-C when it has imported the emulator, not before. One that comes meanwhile
    reaches this process afterwards.
    """
    resource_tracker.ensure_running()  # which would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Processes:
    """Worker processes of this machine, made by a process that has imported the emulator."""

    refusals: tuple[type[Exception], ...] = (BrokenProcessPool,)

    def __init__(self, workers: int | None = None) -> None:
        most = len(os.sched_getaffinity(0))
        self._workers = most if workers is None else arguments.integer("workers", workers, 1)
        self._folder = Temporary("bhemu-sweep-")
        self.store: str | None = str(self._folder.path)
        self._executor: ProcessPoolExecutor | None = None
        self._before: set[int | None] = set()

    def start(self) -> Executor:
        """New processes."""
        _sockets()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([worker.__name__])
        self._before = {child.pid for child in multiprocessing.active_children()}
        _begin_forkserver()
        self._executor = ProcessPoolExecutor(self._workers, context, initializer=worker.begin)
        return self._executor

    def again(self) -> Executor:
        """New processes in place of those that are left."""
        self.stop()
        return self.start()

    def slots(self) -> int:
        """One chunk each."""
        return self._workers

    def silent(self) -> bool:
        """Never: the death of a process is an error."""
        return False

    def stop(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child.pid not in self._before:
                    child.kill()
        self._executor = None

    def close(self) -> None:
        """End the processes, remove their files."""
        self.stop()
        self._folder.close()


class Cluster:
    """The workers of a Dask scheduler at `address`; files travel with the chunks that need them."""

    store: str | None = None

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as problem:
            raise InputError(
                f"a cluster needs dask and distributed: {problem}",
                hint="pip install 'bhemu[sweep]'",
            ) from problem
        self._distributed: Any = distributed
        closed: type[Exception] = distributed.client.ClosedClientError
        self.refusals: tuple[type[Exception], ...] = (RuntimeError, closed)
        self._address = address
        self._client: Any = None
        self._away: float | None = None  # since when the client has been without its scheduler

    def start(self) -> Executor:
        """The cluster's executor."""
        return self._connected(time.monotonic())

    def again(self) -> Executor:
        """The cluster's executor; a scheduler that went away may take its time.

        A client that is closed while it connects again leaves its socket and its thread behind.
        """
        end = time.monotonic() + _PATIENCE
        while self._client.status == "connecting" and time.monotonic() < end:
            time.sleep(0.1)
        self.stop()
        return self._connected(end)

    def _connected(self, end: float) -> Executor:
        """The executor of a new client, where a scheduler answers until then."""
        while True:
            try:
                asyncio.run(self._answered())  # a Client that finds nobody leaves its thread behind
                self._client = self._distributed.Client(
                    self._address, set_as_default=False, timeout=_PATIENCE
                )
                break
            except (OSError, TimeoutError, ValueError) as problem:
                if time.monotonic() >= end:
                    raise InputError(
                        f"no Dask scheduler answers at {self._address}: {problem}",
                        hint="dask scheduler starts one, dask worker its workers",
                    ) from problem
                time.sleep(0.5)
        executor: Executor = self._client.get_executor(pure=False, retries=0)
        return executor

    async def _answered(self) -> None:
        line = await self._distributed.core.connect(self._address, timeout=10)
        await line.close()

    def slots(self) -> int:
        """One chunk for each thread of each worker; at least one, which waits for a worker."""
        workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        threads: int = sum(each["nthreads"] for each in workers.values())
        return max(1, threads)

    def silent(self) -> bool:
        """Whether the client has been without its scheduler for longer than it may be away."""
        if self._client.status == "running":
            self._away = None
            return False
        now = time.monotonic()
        self._away = now if self._away is None else self._away
        return now - self._away > _PATIENCE

    def stop(self) -> None:
        """Leave the cluster; what it has not begun is dropped."""
        if self._client is not None:
            self._client.close(timeout=5)
        self._client = self._away = None

    def close(self) -> None:
        """Leave the cluster."""
        self.stop()
