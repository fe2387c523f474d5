"""Tells a host that waits for its simulator that none comes, with nothing but Python's sockets."""

import contextlib
import socket
import struct
from urllib.parse import urlsplit

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
