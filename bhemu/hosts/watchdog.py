"""Sessions whose process dies or cannot begin, and looks ahead in a process of their own."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from urllib.parse import urlsplit

from bhemu import errors
from bhemu.errors import BhemuError


def guarded(work: Callable[[], int], lost: Callable[[str], int]) -> int:
    """The exit code of `work`, done in a child process, which returns from here too.

    When a signal ends the child, `lost` is called in this process with the signal's name. SIGTERM
    goes on to the child. The child does not need this process.
    """
    child = os.fork()
    if child == 0:
        return work()
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child's to answer
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else lost(signal.Signals(-code).name)


# Tells a host that waits for its simulator that none comes, with nothing but Python's sockets.

_PAIR = b"\0SP\0\0\x11\0\0"  # the greeting of NNG's pair protocol, version 1, on both sides
_EMPTY = struct.pack(">QI", 4, 1)  # a message of a hop count and no bytes: a host gives up at it
_SECONDS = 5.0


def decline(address: str) -> None:
    """Send the host at tcp://HOST:PORT an empty message where a greeting belongs, if it listens."""
    with contextlib.suppress(OSError, ValueError):
        parts = urlsplit(address)
        place = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(place, timeout=_SECONDS) as line:
            line.sendall(_PAIR)
            if line.recv(len(_PAIR)) == _PAIR:
                line.sendall(_EMPTY)
                line.shutdown(socket.SHUT_WR)
                line.recv(1)


# What a chip would do next, seen in a child process, so that nothing of it happens here.

_PATIENCE = 5.0  # seconds


def seen_ahead(look: Callable[[], BhemuError | None]) -> BhemuError | None:
    """What `look` gives in a child process, which then ends; None where it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            found = look()
            os.write(writer, b"" if found is None else json.dumps(found.as_dict()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        said = b""
        while select.select([reader], [], [], _PATIENCE)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                break
            said += part
        else:
            os.kill(child, signal.SIGKILL)
            return None
    finally:
        os.close(reader)
        os.waitpid(child, 0)
    return errors.from_dict(json.loads(said)) if said else None
