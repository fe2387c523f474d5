"""Calls on worker processes: results in order, whatever workers do."""

import os
import signal
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from bhemu.errors import InputError, Internal
from bhemu.sweeps.engine import Lost, Processes, calls


def square(number: int) -> int:
    time.sleep(0.02 * (number % 3))  # they end in another order
    return number * number


def ends(item: tuple[int, str]) -> int:
    """What is 13 ends its process each time; others note that they ran."""
    number, folder = item
    if number == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    (Path(folder) / f"{number}-{time.monotonic_ns()}").touch()
    return number


def dies_once(item: tuple[int, str]) -> int:
    number, folder = item
    mark = Path(folder) / "died"
    if number == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def slow(number: int) -> int:
    time.sleep(60 if number == 2 else 0)
    return number


def raising(number: int) -> int:
    if number == 1:
        raise InputError("no such thing")
    return number


def process(_: int) -> int:
    return os.getpid()


def half_an_answer(path: str) -> None:
    """As a long answer is when its process is killed in the middle of it."""
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    frame.f_locals["result_queue"]._writer._send((100).to_bytes(4, "big") + b"begun")
    Path(path).touch()
    time.sleep(600)


def test_results_are_in_the_order_of_the_items() -> None:
    assert [found for _, found in calls(square, range(20), workers=2)] == [n * n for n in range(20)]


def test_a_call_that_ends_its_worker_is_lost_and_the_others_are_done(tmp_path: Path) -> None:
    items = [(number, str(tmp_path)) for number in range(20)]
    found = {item[0]: result for item, result in calls(ends, items, workers=2)}
    lost = found.pop(13)
    assert isinstance(lost, Lost) and isinstance(lost.problem, BrokenProcessPool)
    assert found == {number: number for number in range(20) if number != 13}


def test_a_call_whose_worker_died_once_is_done_again(tmp_path: Path) -> None:
    items = [(number, str(tmp_path)) for number in range(12)]
    assert [found for _, found in calls(dies_once, items, workers=2)] == list(range(12))
    assert (tmp_path / "died").exists()


def test_a_call_that_takes_too_long_is_lost_alone() -> None:
    found = dict(calls(slow, range(5), workers=2, seconds=4))
    assert str(found.pop(2)) == "TimeoutError: longer than 4 s"
    assert found == {0: 0, 1: 1, 3: 3, 4: 4}


def test_what_a_call_raises_is_in_place_of_its_result() -> None:
    found = dict(calls(raising, range(3), workers=1))
    assert (found[0], found[2]) == (0, 2)
    assert isinstance(found[1], Lost) and isinstance(found[1].problem, InputError)


def test_processes_are_renewed_after_so_many_calls() -> None:
    pids = [found for _, found in calls(process, range(9), workers=1, renew=3)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 3]


def test_workers_that_never_end_a_call_are_no_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(Internal, match="no worker process ends its first call"):
        list(calls(ends, [(13, str(tmp_path))], workers=1))


def test_processes_stopped_in_the_middle_of_an_answer_keep_nobody_waiting(tmp_path: Path) -> None:
    """Python waits at its end for the thread that reads answers."""
    pool, begun = Processes(1), tmp_path / "begun"
    before = set(threading.enumerate())
    try:
        pool.start().submit(half_an_answer, str(begun))
        end = time.monotonic() + 60
        while not begun.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        pool.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()
