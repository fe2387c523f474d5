"""What is said while a user waits: compilations, and on a terminal one status line."""

import functools
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bhemu import interrupts
from bhemu.cli import output
from bhemu.riscv import memory_check

if TYPE_CHECKING:
    from bhemu.cli.target import Target

_PERIOD = 0.25  # seconds between two status lines


class Progress:
    """Lines on stderr; `quiet` silences them. Call the object as Tile's `progress`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._begin = time.monotonic()
        self._status = not quiet and sys.stderr.isatty()

    def __call__(self, name: str, seconds: float) -> None:
        """Something was compiled for the first time."""
        self.say(f"compiled {name} in {seconds:.1f} s (kept for next time)")

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if not self._quiet:
            self._clear()
            output.say(text, err=True)

    def status(self, text: str) -> None:
        """On a terminal, one line that the next one replaces; "" clears it."""
        if self._status:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    @property
    def seconds(self) -> float:
        """Since the object was made."""
        return time.monotonic() - self._begin

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Around imports and launch; says so when the core itself must be compiled."""
        if "numba" not in sys.modules:
            memory_check.check_start(memory_check.EMULATOR)
        # What is imported and loaded now stays: collecting it costs a tenth of the start.
        gc.disable()
        try:
            begin = time.monotonic()
            from bhemu.jit import build

            said: list[str] = []
            told = functools.partial(self._compiling, said)
            build.before_compiling.append(told)
            try:
                yield
            finally:
                build.before_compiling.remove(told)
        finally:
            gc.enable()
        interrupts.check()
        if said:
            self("the core", time.monotonic() - begin)

    def _compiling(self, said: list[str], name: str) -> None:
        interrupts.check()  # the compiler swallows a Ctrl-C
        if not said:
            gc.enable()
            self.say("compiling the core of the emulator, once for this version (up to a minute)")
        said.append(name)

    @contextmanager
    def running(self, target: "Target") -> Iterator[None]:
        """On a terminal, show the clock while `target` runs."""
        if not self._status:
            yield
            return
        over = threading.Event()
        line = threading.Thread(target=self._show, args=(target, over), daemon=True)
        line.start()
        try:
            yield
        finally:
            over.set()
            line.join()
            self._clear()

    def _show(self, target: "Target", over: threading.Event) -> None:
        while not over.wait(_PERIOD):
            sys.stderr.write(f"\r\x1b[Krunning  clock {target.clock}  {self.seconds:.1f} s")
            sys.stderr.flush()

    def _clear(self) -> None:
        if self._status:
            sys.stderr.write("\r\x1b[K")
