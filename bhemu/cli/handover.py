"""Runs that begin before their code is compiled: interpreted, then taken to compiled code.

Where the cache lacks something that a run needs, the process that a user has started interprets the
run, with others beside it that compile (machine/beside.py). When all is kept, it writes the state
of the machine to an unnamed file, between two slices of time, and executes the command anew in its
place: the same process with the same streams, so that output, Ctrl-C and exit code stay its own.
The command then makes its machine in that state and runs on. A variable of the environment says so.
"""

import io
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli.options import Settings
from bhemu.cli.output import Progress
from bhemu.errors import InputError
from bhemu.jit import cache, host, interpreted
from bhemu.program.schema import SESSION
from bhemu.system import interrupts

if TYPE_CHECKING:
    from bhemu.launch import Launched
    from bhemu.machine.beside import Watch
    from bhemu.machine.rounds import Memory
    from bhemu.machine.saved import Snapshot

WAYS = ("beside", "wait")
VARIABLE = "BHEMU_RUN_GOES_ON"
_INTERRUPT = {signal.SIGINT}


class Start:
    """How the run of a command begins: interpreted, with compiled code, or where it was taken over.

    To be made before anything is imported that is compiled. `wait`: it is never interpreted.
    """

    def __init__(self, settings: Settings, progress: Progress, *, wait: bool) -> None:
        self._program, self._progress = settings.program, progress
        self._note = _own_note(os.environ.pop(VARIABLE, ""))
        self._goes_on = "state" in self._note
        begins = not wait and not self._goes_on and bool(sys.executable)
        begins = begins and settings.program.kind != SESSION  # what its host has read stays here
        self._may = begins and is_own_process() and not interpreted.always()
        if self._note:
            progress.go_on(self._note["began"])
        if self._may:
            interpreted.chosen = bool(self._note) or nothing_is_compiled()
        self._target: Launched | None = None
        self._watch: Watch | None = None

    def options(self) -> dict[str, Any]:
        """Arguments of launch(): the ELFs that were read by now, the state to begin in.

        Compiling begins beside this process, or the command begins anew to be interpreted, where
        something is not compiled that the run seems to need.
        """
        if self._goes_on:
            return {"begun": _state(self._note["state"])}
        if not self._may:
            return {}
        from bhemu.jit.build import is_there
        from bhemu.machine.beside import Watch, needed
        from bhemu.machine.precompile import ElfCache

        elfs = ElfCache()
        with suppress(InputError):  # launch() raises it again
            entries = needed(self._program, elfs)
            if interpreted.chosen:
                self._watch = Watch(entry.path for entry in entries)
                self._progress.beside = self._watch.progress_text
            elif not all(map(is_there, entries)):
                self._execute({})
        return {"elfs": elfs}

    def launched(self, target: "Launched") -> None:
        """What is to run is there."""
        loop = target.machine.loop
        if self._watch is not None:
            self._target, loop.handover = target, self
        if self._goes_on:
            loop.begun = self._note["memory"]
            with interrupts.later():  # the run, which begins now, ends by one that has come
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)

    # What the run loop asks (machine/run.py, Handover)

    def is_due(self) -> bool:
        """Whether everything is compiled that the run needs, as far as is known."""
        if self._watch is None or self._target is None:
            return False
        if self._watch.failed:
            self._stay("what it uses cannot be compiled")
            return False
        return self._watch.is_compiled(self._target.machine)

    def hand_over(self, memory: "Memory") -> None:
        """Run on in compiled code; returns where that is not possible."""
        import tempfile  # takes milliseconds, which few runs need

        from bhemu.program.input_files import Archive, UnreadableError

        target = self._target
        assert target is not None
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)  # until the command is there again
        try:
            interrupts.check()
            data = _written(target.machine)
            with Archive(data), tempfile.TemporaryFile() as file:
                file.write(data)
                file.flush()
                os.set_inheritable(file.fileno(), True)
                self._progress.say(f"running  clock {target.clock}: compiled from here on")
                self._execute({"state": file.fileno(), "memory": memory})
        except (OSError, UnreadableError) as problem:
            self._stay(f"its state cannot be taken over: {problem}")
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)

    def _stay(self, why: str) -> None:
        self._watch = self._progress.beside = None
        if self._target is not None:
            self._target.machine.loop.handover = None
        self._progress.say(f"the run stays interpreted: {why}")

    def _execute(self, note: dict[str, Any]) -> None:
        """The command anew, in this process; returns where the system refuses."""
        self._progress.clear()
        sys.stdout.flush()
        text = json.dumps({"process": os.getpid(), "began": self._progress.began, **note})
        try:
            os.execve(sys.executable, sys.orig_argv, {**os.environ, VARIABLE: text})
        except OSError as problem:
            self._stay(problem.strerror or str(problem))


def _own_note(text: str) -> dict[str, Any]:
    """What this process has left to itself when it executed its command anew; else nothing."""
    with suppress(ValueError, RecursionError):
        note = json.loads(text)
        if isinstance(note, dict) and note.get("process") == os.getpid():
            return note
    return {}


def is_own_process() -> bool:
    """Whether the command is what this process is for: no call of a test or a notebook."""
    return click.get_current_context().find_root().obj is True


def nothing_is_compiled() -> bool:
    """Whether not even the loop of any version is kept, as seen without importing it."""
    if host.carries():
        return False
    with os.scandir(cache.root()) as entries:  # up to the first: a folder may hold thousands
        names = (entry.name for entry in entries)
        return not any(n.startswith("tensix_entry-") and not n.endswith(".lock") for n in names)


def _written(machine: Any) -> bytes:
    """The state of a machine, in the middle of a run."""
    import numpy as np

    from bhemu.machine import saved

    alone = machine.network is None
    state: Snapshot = saved.of_tile(machine) if alone else saved.of_machine(machine)
    file = io.BytesIO()
    np.savez(file, **state.held())
    return file.getvalue()


def _state(number: int) -> "Snapshot":
    """The state that hand_over() has left in a file."""
    from bhemu.machine.saved import Snapshot

    with os.fdopen(number, "rb") as file:
        file.seek(0)
        return Snapshot.of_bytes(file.read(), Path("the run that was begun"))
