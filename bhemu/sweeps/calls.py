"""Calls of a function on worker processes, one for each item: all end, whatever workers do."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic

from bhemu.errors import Internal
from bhemu.sweeps.pool import AHEAD, TRIES, Item, Pool, Processes, Result, give

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
    renew: new processes after so many calls of each. Internal when no worker begins. Whoever takes
    no more results closes the iterator, which ends the processes.
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
        if self._left() == 0:
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
            if self._left() == 0:
                return
            self._give(self._fresh.popleft())

    def _left(self) -> int | None:
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
            self._break(broken or TimeoutError(f"longer than {self._seconds} s"))

    def _break(self, problem: BaseException) -> None:
        """Begin again with new processes; what was under way goes alone, or is given up."""
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
