"""Runs and calls on worker processes or a cluster: each has one result, whatever workers do."""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import multiprocessing.process
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from typing import Any, Generic, TypeVar

from bhemu import __version__, arguments
from bhemu.errors import BhemuError, InputError, Internal
from bhemu.sweeps import worker
from bhemu.sweeps.spec import Chunk, Job, Plan, Record, Reply
from bhemu.sweeps.worker import OUTCOMES, keep, perform
from bhemu.system import interrupts
from bhemu.system.whole_file import Temporary

# Where runs are executed: processes of this machine, or the workers of a Dask cluster.

AHEAD = 2  # tasks given out per worker: one it works on, one that waits
TRIES = 3  # what has ended so many workers is given up
_PATIENCE = 120  # seconds in which a scheduler that went away may come back


Item = TypeVar("Item")
Result = TypeVar("Result")


def give(
    pool: Pool, executor: Executor, function: Callable[[Item], Result], item: Item
) -> Future[Result]:
    """What will become of an item: a failure at once where the pool has broken meanwhile."""
    try:
        with (
            interrupts.later()
        ):  # it may start a process, which only a caller that knows of it ends
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


class Processes:
    """Worker processes of this machine, made by a process that has imported the emulator.

    refusals: what its executor raises where it has broken.
    """

    refusals: tuple[type[Exception], ...] = (BrokenProcessPool,)

    def __init__(self, workers: int | None = None) -> None:
        most = len(os.sched_getaffinity(0))
        self._workers = most if workers is None else arguments.integer("workers", workers, 1)
        self._folder = Temporary("bhemu-sweep-")
        self.store: str | None = str(self._folder.path)
        self._executor: ProcessPoolExecutor | None = None
        self._before: set[int | None] = set()

    def start(self) -> Executor:
        """A working executor: of new processes."""
        _sockets()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([worker.__name__])
        self._before = {child.pid for child in multiprocessing.active_children()}
        # Start the process that forks workers; Ctrl-C, of which the terminal tells all, is not for
        # it. It ignores Ctrl-C when it has imported the emulator, not before. One that comes
        # meanwhile reaches this process afterwards.
        resource_tracker.ensure_running()  # which would let the signal through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._executor = ProcessPoolExecutor(self._workers, context, initializer=worker.begin)
        return self._executor

    def again(self) -> Executor:
        """Another executor, of new processes in place of those that are left."""
        self.stop()
        return self.start()

    def slots(self) -> int:
        """How many chunks it works on at the same time: one each."""
        return self._workers

    def silent(self) -> bool:
        """Whether what was given out will never be answered: the death of a process is an error."""
        return False

    def stop(self) -> None:
        """Drop it at once, with what it is doing: end the processes."""
        if self._executor is not None:
            answers = self._executor._result_queue  # shutdown forgets it
            self._executor.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child.pid not in self._before:
                    child.kill()
            # One that was killed in the middle of an answer: the thread that reads it waits for
            # the rest, and Python for that thread, until no process can write any more.
            answers._writer.close()  # type: ignore[attr-defined]
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
                asyncio.run(self._answered())  # a Client without scheduler leaves its thread
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


Pool = Processes | Cluster
"""An executor that can be had again after it has broken."""


_WINDOW = 8  # items per worker that are begun at most before the first of them has been taken


@dataclass(frozen=True)
class Lost:
    """In place of a result: what the call raised, that it was too slow, or ended its worker."""

    problem: BaseException

    def __str__(self) -> str:
        return f"{type(self.problem).__name__}: {self.problem}"


def calls(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    seconds: float | None = None,
    renew: int | None = None,
    pool: Pool | None = None,
) -> Generator[tuple[Item, Result | Lost], None, None]:
    """Each item with what `function` returns for it in a worker, in the order of `items`.

    A worker that dies costs nothing but time: what was under way is done again, one call after the
    other; one that ends its worker three times is Lost, and one that takes longer than `seconds`.
    renew: new processes after so many calls of each. Internal when no worker begins. A caller that
    takes no more results closes the iterator, which ends the processes.
    """
    made = _Calls(function, items, pool or Processes(workers), seconds, renew)
    try:
        for index, item in enumerate(items):
            yield item, made.result(index)
    finally:
        made.pool.close()


class _Calls(Generic[Item, Result]):
    """What waits, what is under way, what is done and was not taken yet; by index."""

    def __init__(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        pool: Pool,
        seconds: float | None,
        renew: int | None,
    ) -> None:
        self._function, self._items, self.pool = function, items, pool
        self._seconds, self._renew = seconds, renew
        self._fresh, self._again = deque(range(len(items))), deque[int]()
        self._out: dict[Future[Result], int] = {}
        self._done: dict[int, Result | Lost] = {}
        self._tries: Counter[int] = Counter()
        self._executor: Executor | None = None
        self._given = self._all = self._breaks = 0

    def result(self, index: int) -> Result | Lost:
        """Of one call; the next ones are under way meanwhile."""
        while index not in self._done:
            self._submit(index)
            self._wait()
        return self._done.pop(index)

    def _submit(self, first: int) -> None:
        """Give out calls, so many that no worker waits; what may end its worker goes alone."""
        if self._calls_left() == 0:
            if self._out:
                return
            self._stop()
        if self._executor is None:
            self._executor, self._given = self.pool.start(), 0
        while self._again:
            if self._out:
                return
            self._give(self._again.popleft())
        if any(self._tries[index] for index in self._out.values()):
            return
        last = first + _WINDOW * self.pool.slots()
        while len(self._out) < AHEAD * self.pool.slots() and self._fresh and self._fresh[0] < last:
            if self._calls_left() == 0:
                return
            self._give(self._fresh.popleft())

    def _calls_left(self) -> int | None:
        """How many calls these processes still get, None without a bound."""
        return None if self._renew is None else self._renew * self.pool.slots() - self._given

    def _give(self, index: int) -> None:
        assert self._executor is not None
        self._given += 1
        future = give(self.pool, self._executor, self._function, self._items[index])
        self._out[future] = index

    def _wait(self) -> None:
        """Until a call has ended, or none has for too long."""
        end = None if self._seconds is None else time.monotonic() + self._seconds
        done: set[Future[Result]] = set()
        while not done and (end is None or time.monotonic() < end):
            done, _ = wait(self._out, timeout=1, return_when=FIRST_COMPLETED)
        broken: BaseException | None = None
        for future in done:
            problem = future.exception()
            if isinstance(problem, BrokenProcessPool):
                broken = problem
                continue
            index = self._out.pop(future)
            self._done[index] = Lost(problem) if problem is not None else future.result()
            self._all += 1
        if broken is not None or not done:
            # Begin again with new processes; what was under way goes alone, or is given up
            problem = broken or TimeoutError(f"longer than {self._seconds} s")
            self._breaks += 1
            if not self._all and self._breaks >= TRIES:
                raise Internal(f"no worker process ends its first call: {problem!r}") from problem
            under_way = sorted(self._out.values())
            self._stop()
            for index in under_way:
                self._tries[index] += 1
                late = isinstance(problem, TimeoutError)
                if len(under_way) == 1 and (late or self._tries[index] >= TRIES):
                    self._done[index] = Lost(problem)
                    self._all += 1
                else:
                    self._again.append(index)

    def _stop(self) -> None:
        self.pool.stop()
        self._executor = None
        self._out.clear()


_SECONDS = 0.25  # that a chunk of runs is to take
_LONGEST = 64  # runs of a chunk
_HINT = 'in a script, call bhemu.sweep below `if __name__ == "__main__":`'


@dataclass
class Engine:
    """The state of one sweep under way: what waits, what is out, what was lost."""

    plan: Plan
    pool: Pool
    take: Callable[[Record], None]
    fresh: deque[Job]
    lost: deque[Job] = field(default_factory=deque)
    tries: Counter[int] = field(default_factory=Counter)
    out: dict[Future[Reply], Chunk] = field(default_factory=dict)
    size: int = 1
    records: int = 0
    breaks: int = 0

    def run(self) -> None:
        """Until every job has its record; every exception leaves the pool closed."""
        executor = self.pool.start()
        try:
            while self.fresh or self.lost or self.out:
                self._submit(executor)
                done, _ = wait(self.out, timeout=1, return_when=FIRST_COMPLETED)
                broken = [future for future in done if not self._received(executor, future)]
                if broken or (not done and self.pool.silent()):
                    executor = self._again(broken)
        finally:
            self.pool.close()

    def _submit(self, executor: Executor) -> None:
        """Give out chunks, so many that no worker waits; a suspect run goes alone."""
        most = AHEAD * self.pool.slots()
        while len(self.out) < most and (self.fresh or self.lost):
            if self.lost:
                if self.tries[self.lost[0].number] > 1 and self.out:
                    return
                jobs = [self.lost.popleft()]
            elif any(self.tries[job.number] > 1 for c in self.out.values() for job in c.jobs):
                return
            else:
                share = -(-len(self.fresh) // most)  # at the end, some for everybody
                count = max(1, min(self.size, share))
                jobs = [self.fresh.popleft() for _ in range(min(count, len(self.fresh)))]
            self._give(executor, Chunk(__version__, tuple(jobs), store=self.pool.store))

    def _give(self, executor: Executor, chunk: Chunk) -> None:
        if self.pool.store is not None:
            self.plan.put_files(chunk.jobs, self.pool.store, keep)
        self.out[give(self.pool, executor, perform, chunk)] = chunk

    def _received(self, executor: Executor, future: Future[Reply]) -> bool:
        """Take the records of a future, or send what it lacks; False when it was lost."""
        if future.cancelled():
            return False
        problem = future.exception()
        if isinstance(problem, BhemuError):
            raise problem
        if problem is not None:
            return False
        chunk, reply = self.out.pop(future), future.result()
        if reply.refused:
            raise InputError(reply.refused, hint="install the same version everywhere")
        if reply.missing:
            blobs = {name: self.plan.blob(name) for name in self.plan.with_files(reply.missing)}
            self._give(executor, Chunk(__version__, chunk.jobs, blobs, chunk.store))
            return True
        for record in reply.records:
            self.take(record)
        self.records += len(reply.records)
        seconds = sum(record["seconds"] for record in reply.records) / len(reply.records)
        self.size = max(1, min(_LONGEST, int(_SECONDS / max(seconds, 1e-4))))
        return True

    def _again(self, broken: list[Future[Reply]]) -> Executor:
        """A new pool; what was out when the old one broke is done again, suspects alone."""
        problems = sorted({repr(f.exception()) for f in broken if not f.cancelled()})
        problems = problems or ["it does not answer"]
        wait(self.out, timeout=1)  # those that were finished before
        chunks = []
        for future in list(self.out):
            if future.done() and not future.cancelled() and future.exception() is None:
                if not future.result().missing and not future.result().refused:
                    del self.out[future]
                    for record in future.result().records:
                        self.take(record)
                        self.records += 1
                    continue
            chunks.append(self.out.pop(future))
        self.breaks += 1
        if not self.records and self.breaks >= TRIES:
            text = f"no worker process gets to its first run: {'; '.join(problems)}"
            raise Internal(text, hint=_HINT)
        alone = len(chunks) == 1 and len(chunks[0].jobs) == 1
        for job in (job for chunk in chunks for job in chunk.jobs):
            self.tries[job.number] += 1
            if alone and self.tries[job.number] >= TRIES:
                lost = f"the worker was lost during this run {TRIES} times"
                self.take(
                    {
                        "number": job.number,
                        "outcome": OUTCOMES[70],
                        "exit_code": 70,
                        "category": "WorkerLost",
                        "rule": "WorkerLost",
                        "message": f"{lost}: {'; '.join(problems)}",
                        "seconds": 0.0,
                    }
                )
            else:
                self.lost.append(job)
        return self.pool.again()


def execute(plan: Plan, jobs: Iterable[Job], pool: Pool, take: Callable[[Record], None]) -> None:
    """Run the jobs on the pool, each record to `take` as it comes."""
    Engine(plan, pool, take, deque(jobs)).run()
