"""What became of each of tt-llk's tests, noted inside pytest; their code is not changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final

from bhemu import llk as device
from bhemu.errors import BhemuError
from bhemu.llk import Device

OUTCOMES: Final = {
    "AssertionError": "mismatch",
    "TimeoutError": "timeout",
    "LLKAssertException": "assert",
    "RuntimeError": "compile",  # tt-llk's run_shell_command: compiler or linker
}
SLOWER: Final = 4  # by how much the suite's clock, of processor time, is slower than ours
DATA: Final = range(0x21000, 0x160000)  # of L1: operands and results
_TEXT: Final = 2000  # characters of a message
_HEAD: Final = 400  # of them from its begin, the others from its end


def _shortened(text: str) -> str:
    """A message without its middle: a compiler's begins with a long command."""
    if len(text) <= _TEXT:
        return text
    return f"{text[:_HEAD]}\n[...]\n{text[_HEAD - _TEXT :]}"


class Recorder:
    """The records of the test that runs: outcome, rule, message, what it read of L1.

    Results that are equal bit for bit have one digest, which leaves out the harness' words.
    """

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._cause: dict[str, Any] = {}
        self._read = hashlib.sha256()
        self._touched = False
        self._begins = False  # whether the test has not written to the device yet

    def watch(self) -> None:
        """Note what tests read, and slow the suite's clock down.

        The suite waits for 1 or 2 s; an emulator on a busy machine may need longer.
        """
        begun, used = time.time(), time.process_time()
        time.time = lambda: begun + (time.process_time() - used) / SLOWER
        plain, words = Device.read, Device.read_words

        def read(device: Device, address: int, size: int) -> bytes:
            data = plain(device, address, size)
            self._note(address, data)
            return data

        def read_words(device: Device, address: int, count: int = 1) -> list[int]:
            found = words(device, address, count)
            self._note(address, b"".join(word.to_bytes(4, "little") for word in found))
            return found

        write, write_words = Device.write, Device.write_words

        def fresh(device: Device) -> None:
            if self._begins:  # a test reads more than its kernel writes: nothing of another test
                write(device, DATA.start, bytes(len(DATA)))
                self._begins = False

        def written(device: Device, address: int, data: bytes) -> None:
            fresh(device)
            write(device, address, data)

        def words_written(device: Device, address: int, values: Sequence[int]) -> None:
            fresh(device)
            write_words(device, address, values)

        Device.read, Device.read_words = read, read_words  # type: ignore[method-assign,assignment]
        Device.write, Device.write_words = written, words_written  # type: ignore[method-assign,assignment]

    def _note(self, address: int, data: bytes) -> None:
        if address not in device.WORDS:
            self._touched = True
            self._read.update(f"{address:x} {len(data):x}:".encode() + data)

    def begin(self) -> None:
        """A test begins."""
        self._read, self._touched, self._begins = hashlib.sha256(), False, True
        self.records.clear()

    def problem(self, problem: BaseException) -> None:
        """The exception itself, before tt-llk's report has its text only."""
        self._cause["type"] = type(problem).__name__
        self._cause["text"] = _shortened(str(problem))
        if isinstance(problem, BhemuError):
            self._cause["rule"] = problem.rule or type(problem).__name__
            if problem.where is not None:
                self._cause["where"] = str(problem.where)

    def report(self, report: Any) -> None:
        """One record per test, from the phase that decides."""
        if report.when == "call" or not report.passed:
            record = {"test": report.nodeid, "outcome": self._outcome(report)}
            if report.failed:
                record.update(self._cause)
            elif report.skipped:
                record["text"] = str(report.longrepr)[-200:]
            elif not self._touched:
                record["outcome"] = "host"
            else:
                record["digest"] = self._read.hexdigest()[:16]
            self.records.append(record | {"seconds": round(report.duration, 2)})
        self._cause.clear()

    def _outcome(self, report: Any) -> str:
        if report.skipped:
            return "skip"
        if report.passed:
            return "pass"
        if "rule" in self._cause:
            return "refused"
        return OUTCOMES.get(self._cause.get("type", ""), "error")
