"""What is said while a user waits: on a terminal one status line, otherwise now and then a line."""

import functools
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bhemu.cli import output
from bhemu.riscv import unicorn_engine
from bhemu.system import interrupts

if TYPE_CHECKING:
    from bhemu.cli.target import Target

_PERIOD = 0.25  # seconds between two status lines
_SILENT = 2.0  # after so many seconds of compiling a line is said where there is no terminal


class Progress:
    """Lines on stderr; `quiet` silences them. Call the object as Tile's `progress`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._check = ""
        self._begin = self._said = time.monotonic()
        self._status = not quiet and sys.stderr.isatty()

    def __call__(self, name: str, seconds: float) -> None:
        """Something was compiled for the first time."""
        self.say(f"compiled {name} in {seconds:.1f} s (kept for next time)")

    def say(self, text: str) -> None:
        """One line, unless quiet."""
        if not self._quiet:
            self._clear()
            output.say(text, err=True)
            self._said = time.monotonic()

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
            unicorn_engine.check_start(unicorn_engine.EMULATOR)
        # What is imported and loaded now stays: collecting it costs a tenth of the start.
        gc.disable()
        try:
            with self._told(lambda: "starting"):
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
            self.say("compiling what the program uses, once for this version (up to a minute)")
        said.append(name)

    @contextmanager
    def running(self, target: "Target") -> Iterator[None]:
        """On a terminal, show the clock while `target` runs, or what has to be compiled for it."""
        with self._told(lambda: f"running  clock {target.clock}"):
            yield

    @contextmanager
    def looking(self) -> Iterator[None]:
        """On a terminal, show how long the present check has taken; `checking` says which it is."""
        with self._told(lambda: self._check):
            yield

    def checking(self, text: str) -> None:
        """A check begins; `text` names it."""
        self._check = text
        self.say(f"{text}, after {self.seconds:.1f} s")

    @contextmanager
    def _told(self, doing: Callable[[], str]) -> Iterator[None]:
        """While it lasts, what is compiled, else what is done, is shown."""
        if self._quiet:
            yield
            return
        over = threading.Event()
        line = threading.Thread(target=self._show, args=(doing, over), daemon=True)
        line.start()
        try:
            yield
        finally:
            over.set()
            line.join()
            self._clear()

    def _show(self, doing: Callable[[], str], over: threading.Event) -> None:
        while not over.wait(_PERIOD):
            compiled = self._compiled()
            text = compiled or doing()
            if self._status and text and (compiled or self.seconds > _PERIOD * 2):
                self.status(f"{text}  {self.seconds:.1f} s")
            elif compiled and time.monotonic() - self._said > _SILENT:
                self.say(f"{compiled}, after {self.seconds:.0f} s")

    def _compiled(self) -> str:
        """What is being compiled and how much of it is done; "" where nothing is."""
        outlook = getattr(sys.modules.get("bhemu.jit.build"), "outlook", None)  # or it is imported
        name, done, known = ("", 0, 0) if outlook is None else outlook()
        return f"compiling {name}: {done} of {known} parts are done" if name else ""

    def _clear(self) -> None:
        if self._status:
            sys.stderr.write("\r\x1b[K")
