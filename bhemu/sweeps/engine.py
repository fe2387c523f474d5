"""Gives the runs of a plan to a pool until each has its record: once, whatever workers do."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field

from bhemu import __version__
from bhemu.errors import BhemuError, InputError, Internal
from bhemu.sweeps.job import Chunk, Job, Record, Reply
from bhemu.sweeps.plan import Plan
from bhemu.sweeps.pool import AHEAD, TRIES, Pool, give
from bhemu.sweeps.worker import OUTCOMES, keep, perform

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
                    self._keep_finished(future)
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
                self.take(_given_up(job, problems))
            else:
                self.lost.append(job)
        return self.pool.again()

    def _keep_finished(self, future: Future[Reply]) -> None:
        del self.out[future]
        for record in future.result().records:
            self.take(record)
            self.records += 1


def _given_up(job: Job, problems: list[str]) -> Record:
    return {
        "number": job.number,
        "outcome": OUTCOMES[70],
        "exit_code": 70,
        "category": "WorkerLost",
        "rule": "WorkerLost",
        "message": f"the worker was lost during this run {TRIES} times: {'; '.join(problems)}",
        "seconds": 0.0,
    }


def execute(plan: Plan, jobs: Iterable[Job], pool: Pool, take: Callable[[Record], None]) -> None:
    """Run the jobs on the pool, each record to `take` as it comes."""
    Engine(plan, pool, take, deque(jobs)).run()
