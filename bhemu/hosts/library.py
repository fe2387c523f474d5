"""The session of a host that has loaded libbhemu.so: its messages, answered in order."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from bhemu.devices import noc_map
from bhemu.errors import BhemuError, InputError
from bhemu.hosts.shared import DATA, Bytes, SharedChips
from bhemu.hosts.umd import end_soon
from bhemu.noc import firmware
from bhemu.program.recorded import FETCH, READ, STORE, WRITE, Recorder

if TYPE_CHECKING:
    from bhemu.hosts.shared import SharedChip
    from bhemu.machine.machine import Machine

_MESSAGE = Struct("<IIQII")  # op, size, address, place, status
_CHIP_SHIFT = 12  # of `place`, below it y << 6 | x
_OF_CHILD = 4  # files that a forked child sends: line, branch, standard output and error


class Op(IntEnum):
    """What a message asks for, or answers; libbhemu/libbhemu.h has the same numbers."""

    READ = 1
    WRITE = 2
    CLOCK = 3
    LEAVE = 4
    WAITS = 5
    DONE = 6
    FAILED = 7
    DMA_READ = 8
    DMA_WRITE = 9
    SETTLE = 10
    COPY = 11  # on the branch, not the line: by a forked child of the host, with its sockets


class Gone(Exception):  # noqa: N818 - the end of a session is no error
    """The host has ended."""


class Line:
    """The socket to the library in the host's process, and that to its forked children."""

    def __init__(self, fds: str) -> None:
        """`fds`: their numbers, the second may be missing; InputError where one is no socket."""
        try:
            self._socket, *more = (socket.socket(fileno=int(fd)) for fd in fds.split(","))
            self._branch = more[0] if more else None
            for one in (self._socket, *more):
                os.set_inheritable(one.fileno(), False)
        except (OSError, ValueError) as problem:
            hint = "libbhemu.so sets BHEMU_LIBRARY_FD when it starts run.sh"
            raise InputError(f"{fds!r} is no socket of a host", hint=hint) from problem
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        if self._branch is not None:
            self._poll.register(self._branch, select.POLLIN)

    def wait(self) -> list[int] | None:
        """Until a message is there: None; or until a child of the host asks: the files it sent."""
        while self._branch is not None:
            if self._socket.fileno() in [fd for fd, _ in self._poll.poll()]:
                return None
            asked, fds, _, _ = socket.recv_fds(self._branch, _MESSAGE.size, _OF_CHILD)
            if len(fds) == _OF_CHILD:
                return fds
            for fd in fds:
                os.close(fd)
            if not asked:  # nobody holds the other end
                self._branch = None
        return None

    def close(self) -> None:
        """Leave both sockets to whoever else holds them."""
        self._socket.close()
        if self._branch is not None:
            self._branch.close()

    def receive(self) -> tuple[int, int, int, int]:
        """(op, size, address, place) of the next message; Gone when the host is."""
        try:
            buffer = self._socket.recv(_MESSAGE.size)
        except OSError:
            buffer = b""
        if len(buffer) != _MESSAGE.size:
            raise Gone
        op, size, address, place, _ = _MESSAGE.unpack(buffer)
        return op, size, address, place

    def send(self, op: Op, size: int = 0, address: int = 0, status: int = 0, chip: int = 0) -> None:
        """A message; Gone when the host is."""
        message = _MESSAGE.pack(op, size, address, chip << _CHIP_SHIFT, status)
        try:
            self._socket.send(message, socket.MSG_NOSIGNAL)
        except OSError:
            raise Gone from None

    def send_memory(self, fds: Sequence[int]) -> None:
        """The first message: the file of each chip's memory."""
        socket.send_fds(self._socket, [_MESSAGE.pack(Op.DONE, 0, 0, 0, 0)], fds)

    def fail(self, code: int) -> int:
        """The last message: the host ends with this exit code."""
        with contextlib.suppress(Gone):
            self.send(Op.FAILED, status=code)
        return code

    def watch(self, lost: Callable[[], object]) -> None:
        """Call `lost`, in another thread, when the host is gone."""
        threading.Thread(target=self._wait, args=(lost,), daemon=True).start()

    def _wait(self, lost: Callable[[], object]) -> None:
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLRDHUP)
        poll.poll()
        lost()


class LibrarySession:
    """Serves the host on `line` from `chips`, until the host leaves or is gone.

    An error ends the session, and the host with it; `report` tells it, of the chip that was at
    work, and gives the exit code.
    """

    def __init__(
        self, line: Line, chips: Sequence[SharedChip], report: Callable[[Machine, BhemuError], int]
    ) -> None:
        self._line, self._report = line, report
        self._all = SharedChips(chips)
        self._begin = time.monotonic()
        self.count: Counter[int] = Counter()
        self.ended = ""
        self._recorders: Sequence[Recorder] = ()
        for number, chip in enumerate(chips):
            chip.network.share_host_memory(functools.partial(self._transfer, number))

    def record(self, recorders: Sequence[Recorder]) -> None:
        """Keep what the host asks and gets, and what links carry: one recorder for each chip."""
        self._recorders = recorders
        self._all.record(recorders)

    def serve(self) -> int:
        """The exit code."""
        try:
            while True:
                if (child := self._line.wait()) is not None:
                    self._serve_child(child)
                    continue
                op, size, address, place = self._line.receive()
                self.count[op] += 1
                if op == Op.LEAVE:
                    self.ended = "exit"
                    return 0
                if place >> _CHIP_SHIFT >= len(self._all.chips):
                    raise InputError(f"the library named chip {place >> _CHIP_SHIFT}")
                xy = place & 63, place >> 6 & 63
                number = place >> _CHIP_SHIFT
                chip = self._all.chips[number]
                data = chip.arena.data
                if size > DATA:
                    raise InputError(f"the library sent {size} bytes, at most {DATA} are possible")
                if op != Op.CLOCK:
                    chip.take_writes()
                if op == Op.CLOCK:
                    stands = self._all.run_rounds(address)
                    for one in self._all.chips:
                        one.arena.head["stands"] = stands
                elif op == Op.READ:
                    got = chip.read(*xy, address, size)
                    data[:size] = np.frombuffer(got, np.uint8)
                    self._record(number, READ, xy, address, got)
                elif op == Op.WRITE:
                    written = data[:size].tobytes()
                    chip.write(*xy, address, written)
                    chip.touched = True
                    self._record(number, WRITE, xy, address, written)
                    if chip.network.endpoint(0, xy) & 15 == noc_map.ARC:
                        firmware.written(chip.network, address)
                elif op == Op.SETTLE:
                    chip.settle_for_host(chip.network.endpoint(0, xy) >> 4 & 0xFF)
                elif op == Op.WAITS:
                    if chip.network.endpoint(0, xy) & 15 == noc_map.TENSIX:
                        raise chip.standstill(xy)  # the host reads one place of it, again and again
                else:
                    raise InputError(f"the library sent message {op}")
                self._line.send(Op.DONE)
        except Gone:
            self.ended = "host gone"
            return 0
        except BhemuError as error:
            self.ended = "error"
            stopped = (one for one in self._all.chips if one.loop.error is not None)
            return self._line.fail(self._report(next(stopped, self._all.chips[0]), error))

    def _serve_child(self, fds: list[int]) -> None:
        """A copy of this process serves a forked child of the host; it returns from here too."""
        if copied():
            self._line.close()
            self._line = Line(f"{fds[0]},{fds[1]}")
            self._line.watch(end_soon)
            for to, fd in enumerate(fds[2:], start=1):
                os.dup2(fd, to)
                os.close(fd)
            self.count.clear()
            self._begin = time.monotonic()
            if self._recorders:
                hint = "record a host that does not fork, or one that opens the chip in the child"
                raise InputError("a chip that is recorded is not copied for a child", hint=hint)
            for chip in self._all.chips:
                chip.arena.detach()
            self._line.send_memory([chip.arena.fd for chip in self._all.chips])
        else:
            for fd in fds:
                os.close(fd)

    def _transfer(self, chip: int, write: bool, address: int, data: Bytes) -> None:
        """Bytes of the host's memory, moved by the host; writes end before the next message."""
        room = self._all.chips[chip].arena.data[: len(data)]
        if write:
            room[:] = data
        self.count[Op.DMA_WRITE if write else Op.DMA_READ] += 1
        self._line.send(Op.DMA_WRITE if write else Op.DMA_READ, len(data), address, chip=chip)
        if self._line.receive()[0] != Op.DONE:
            raise Gone
        if not write:
            data[:] = room
        self._record(chip, STORE if write else FETCH, (0, 0), address, data.tobytes())

    def _record(self, chip: int, kind: int, xy: tuple[int, int], address: int, data: bytes) -> None:
        if self._recorders:
            self._recorders[chip].act(kind, self._all.chips[chip].round, xy, address, data)

    def __str__(self) -> str:
        """One line: what was asked, how it ended, how long it took."""
        names = {op.value: op.name for op in Op}
        counts = ", ".join(f"{names.get(op, op)} {n}" for op, n in sorted(self.count.items()))
        seconds = time.monotonic() - self._begin
        return f"{counts or 'no message'}; {self.ended}, {seconds:.1f} s"


def copied() -> bool:
    """Whether this is the copy of the process that is made here, no child of the first."""
    try:
        child = os.fork()
        if child == 0:
            if os.fork():
                os._exit(0)
            return True
        os.waitpid(child, 0)
    except OSError as problem:
        print(f"bhemu serve: no copy for a forked child: {problem.strerror}", file=sys.stderr)
    return False
