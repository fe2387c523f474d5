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
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from typing import Any, Generic, TypeVar

from bhemu import __version__, arguments
from bhemu.errors import BhemuError, InputError, Internal
from bhemu.sweeps import worker
from bhemu.sweeps.spec import Chunk, Job, Plan, Record
from bhemu.sweeps.worker import OUTCOMES, keep, perform
from bhemu.system import interrupts
from bhemu.system.whole_file import Temporary

# Where runs are executed: processes of this machine, or the workers of a Dask cluster.

AHEAD = 2  # tasks given out per worker: one it works on, one that waits
TRIES = 3  # what has ended so many workers is given up
_PATIENCE = 120  # seconds in which a scheduler that went away may come back


Item = TypeVar("Item")
Result = TypeVar("Result")


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
        """An executor of new processes, in place of those that are left."""
        self.stop()
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
            text = f"a cluster needs dask and distributed: {problem}"
            raise InputError(text, hint="pip install 'bhemu[sweep]'") from problem
        self._distributed: Any = distributed
        closed: type[Exception] = distributed.client.ClosedClientError
        self.refusals: tuple[type[Exception], ...] = (RuntimeError, closed)
        self._address = address
        self._client: Any = None
        self._away: float | None = None  # since when the client has been without its scheduler
        self._scheduler = ""  # the id of the one that was given the tasks

    def start(self) -> Executor:
        """The executor of a new client; a scheduler that went away may take its time.

        A client that is closed while it connects again leaves its socket and its thread behind.
        """
        end = time.monotonic()
        if self._client is not None:
            end += _PATIENCE
            while self._client.status == "connecting" and time.monotonic() < end:
                time.sleep(0.1)
            self.stop()
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
        self._scheduler = self._client.scheduler_info(n_workers=-1).get("id", "")
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
        """Whether the client has been without its scheduler for longer than it may be away.

        Or it has another one, which knows nothing of what was given out while none was there.
        """
        if self._client.status == "running":
            self._away = None
            known = self._scheduler and self._client.scheduler_info(n_workers=-1).get("id", "")
            return bool(known != self._scheduler)
        now = time.monotonic()
        self._away = now if self._away is None else self._away
        return now - self._away > _PATIENCE

    def stop(self) -> None:
        """Leave the cluster; what it has not begun is dropped."""
        if self._client is not None:
            self._client.close(timeout=5)
        self._client = self._away = None

    close = stop


Pool = Processes | Cluster
"""An executor that can be had again after it has broken."""


@dataclass(frozen=True)
class Lost:
    """In place of a result: what the call raised, that it was too slow, or ended its worker."""

    problem: BaseException

    def __str__(self) -> str:
        return f"{type(self.problem).__name__}: {self.problem}"


class Tasks(Generic[Item, Result]):
    """Tasks for workers, each of which is done or lost, whatever becomes of workers.

    `fresh(most)`: the next task with its number, None while there is none; `most` may be out.
    `own`: whether what a future raises is the task's own, and no loss of its worker. Where a pool
    breaks, all that was under way is given out again, in its `parts`; one that was under way so
    more than `trusted` times goes alone, and is lost after TRIES. `first`: what a worker has to do
    once. No task may take longer than `seconds`; after `renew` of each process there are new ones.
    """

    def __init__(
        self,
        pool: Pool,
        function: Callable[[Item], Result],
        fresh: Callable[[int], tuple[int, Item] | None],
        own: Callable[[BaseException], bool],
        parts: Callable[[int, Item], Iterable[tuple[int, Item]]] = lambda n, item: [(n, item)],
        trusted: int = 0,
        first: tuple[str, str] = ("ends its first call", ""),
        seconds: float | None = None,
        renew: int | None = None,
    ) -> None:
        self.pool, self._function, self._fresh, self._own = pool, function, fresh, own
        self._parts, self._trusted, self._first = parts, trusted, first
        self._seconds, self._renew = seconds, renew
        self.out: dict[Future[Result], tuple[int, Item]] = {}
        self.again = deque[tuple[int, Item]]()
        self._tries: Counter[int] = Counter()
        self._executor: Executor | None = None
        self._given = self._ended = self._breaks = 0
        self._alone = False  # what is out may end its worker

    def step(self) -> list[tuple[int, Item, Result | Lost]]:
        """Give out tasks, then wait until some have ended, or none has for too long: what ended."""
        self._submit()
        end = None if self._seconds is None else time.monotonic() + self._seconds
        done, silent = set[Future[Result]](), False
        while not done and not silent and (end is None or time.monotonic() < end):
            done, _ = wait(self.out, timeout=1, return_when=FIRST_COMPLETED)
            silent = not done and self.pool.silent()
        found, broken = self._received(done)
        if not broken and not done:
            broken = [TimeoutError("no answer" if silent else f"longer than {self._seconds} s")]
        self._ended += len(found)
        return [*found, *self._break(broken)] if broken else found

    def _submit(self) -> None:
        """Give out so many that no worker waits; what may end its worker goes alone."""
        if self._used_up() and not self.out:
            self._executor = None
        if self._executor is None:
            self._executor, self._given = self.pool.start(), 0
        most = AHEAD * self.pool.slots()
        while len(self.out) < most and not (self.out and self._alone) and not self._used_up():
            suspect = bool(self.again) and self._tries[self.again[0][0]] > self._trusted
            if suspect and self.out:
                return
            task = self.again.popleft() if self.again else self._fresh(most)
            if task is None:
                return
            self._alone = suspect
            self.give(*task)

    def _used_up(self) -> bool:
        return self._renew is not None and self._given >= self._renew * self.pool.slots()

    def give(self, number: int, item: Item) -> None:
        """Let a worker do a task: a failure at once where the pool has broken meanwhile."""
        if self._executor is None:  # it has broken: later
            self.again.append((number, item))
            return
        self._given += 1
        try:
            with interrupts.later():  # it may start a process, which only who knows of it ends
                future = self._executor.submit(self._function, item)
        except self.pool.refusals as problem:
            future = Future()
            future.set_exception(problem)
        self.out[future] = number, item

    def _received(
        self, done: Iterable[Future[Result]]
    ) -> tuple[list[tuple[int, Item, Result | Lost]], list[BaseException]]:
        """What has ended, and why others were lost."""
        found, broken = list[tuple[int, Item, Result | Lost]](), list[BaseException]()
        for future in done:
            problem = CancelledError() if future.cancelled() else future.exception()
            if problem is not None and not self._own(problem):
                broken.append(problem)
                continue
            task = self.out.pop(future)
            found.append((*task, future.result() if problem is None else Lost(problem)))
        return found, broken

    def _break(self, problems: list[BaseException]) -> list[tuple[int, Item, Result | Lost]]:
        """Begin again with a new pool; what was under way goes in its parts, or is lost."""
        found, _ = self._received(wait(self.out, timeout=1).done)  # finished before
        self._breaks += 1
        self._ended += len(found)
        self._executor = None
        if not self._ended and self._breaks >= TRIES:
            told = "; ".join(sorted({repr(problem) for problem in problems}))
            raise Internal(f"no worker process {self._first[0]}: {told}", hint=self._first[1])
        parts = [part for task in self.out.values() for part in self._parts(*task)]
        self.out.clear()
        late = self._seconds is not None and isinstance(problems[0], TimeoutError)
        for number, item in parts:
            self._tries[number] += 1
            if len(parts) == 1 and (late or self._tries[number] >= TRIES):
                found.append((number, item, Lost(problems[0])))
                self._ended += 1
            else:
                self.again.append((number, item))
        return found


_WINDOW = 4  # times what may be out: calls that are begun before the first of them has been taken


def calls(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    seconds: float | None = None,
    renew: int | None = None,
) -> Generator[tuple[Item, Result | Lost], None, None]:
    """Each item with what `function` returns for it in a worker, in the order of `items`.

    A worker that dies costs nothing but time: what was under way is done again, one call after the
    other; one that ends its worker three times is Lost, and one that takes longer than `seconds`.
    renew: new processes after so many calls of each. Internal when no worker begins. A caller that
    takes no more results closes the iterator, which ends the processes.
    """
    waiting, done, wanted = deque(enumerate(items)), dict[int, Result | Lost](), 0

    def fresh(most: int) -> tuple[int, Item] | None:
        begins = waiting and waiting[0][0] < wanted + _WINDOW * most
        return waiting.popleft() if begins else None

    def own(problem: BaseException) -> bool:
        return not isinstance(problem, BrokenProcessPool)

    pool = Processes(workers)
    tasks = Tasks(pool, function, fresh, own, seconds=seconds, renew=renew)
    try:
        for wanted, item in enumerate(items):
            while wanted not in done:
                done |= {number: result for number, _, result in tasks.step()}
            yield item, done.pop(wanted)
    finally:
        pool.close()


_SECONDS = 0.25  # that a chunk of runs is to take
_LONGEST = 64  # runs of a chunk
_HINT = 'in a script, call bhemu.sweep below `if __name__ == "__main__":`'


def execute(plan: Plan, jobs: Iterable[Job], pool: Pool, take: Callable[[Record], None]) -> None:
    """Run the jobs on the pool, each record to `take` as it comes; leave the pool closed."""
    waiting, size = deque(jobs), 1

    def chunk(*jobs: Job) -> tuple[int, Chunk]:
        return jobs[0].number, Chunk(__version__, jobs, store=pool.store)

    def fresh(most: int) -> tuple[int, Chunk] | None:
        """Runs that take some time together; at the end, some for everybody."""
        count = max(1, min(size, -(-len(waiting) // most)))
        some = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        if pool.store is not None:
            plan.put_files(some, pool.store, keep)
        return chunk(*some) if some else None

    tasks = Tasks(
        *(pool, perform, fresh, lambda problem: isinstance(problem, BhemuError)),
        parts=lambda number, task: [chunk(job) for job in task.jobs],
        trusted=1,
        first=("gets to its first run", _HINT),
    )
    try:
        while waiting or tasks.again or tasks.out:
            for number, task, reply in tasks.step():
                if isinstance(reply, Lost):
                    take(_lost(number, reply.problem))
                elif reply.refused:
                    raise InputError(reply.refused, hint="install the same version everywhere")
                elif reply.missing:
                    blobs = {name: plan.blob(name) for name in plan.with_files(reply.missing)}
                    tasks.give(number, replace(task, blobs=blobs))
                else:
                    for record in reply.records:
                        take(record)
                    taken = sum(record["seconds"] for record in reply.records)
                    taken = max(taken / len(reply.records), 1e-4)
                    size = max(1, min(_LONGEST, int(_SECONDS / taken)))
    finally:
        pool.close()


def _lost(number: int, problem: BaseException) -> Record:
    """The record of a run that ended its worker each time; an error of bhemu is raised."""
    if isinstance(problem, BhemuError):
        raise problem
    lost = f"the worker was lost during this run {TRIES} times: {problem!r}"
    named = {"number": number, "outcome": OUTCOMES[70], "exit_code": 70, "category": "WorkerLost"}
    return {**named, "rule": "WorkerLost", "message": lost, "seconds": 0.0}
