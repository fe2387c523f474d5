"""`bhemu gdb` in a process of its own, and a client that speaks raw packets."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bhemu as package

ROOT = Path(package.__file__).parent.parent


@contextmanager
def server(
    *arguments: str, command: tuple[str, ...] = (sys.executable, "-m", "bhemu", "gdb")
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port; it is killed if it has not ended by itself."""
    with subprocess.Popen(
        [*command, "--port", "0", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"remote 127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            yield process, int(found[1])
        finally:
            process.kill()


class Client:
    """Packets without a debugger."""

    def __init__(self, port: int) -> None:
        self.link = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.said = ""
        self._data = b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *problem: object) -> None:
        self.link.close()

    def send(self, packet: bytes) -> None:
        self.link.sendall(b"$" + packet + b"#%02x" % (sum(packet) & 0xFF))

    def ask(self, packet: bytes) -> bytes:
        """The answer; console output before it is kept in `said`."""
        self.send(packet)
        return self.answer()

    def answer(self) -> bytes:
        while True:
            found = re.match(rb"\+*\$([^#]*)#..", self._data, re.S)
            if found is None:
                received = self.link.recv(1 << 16)
                assert received, "the server has closed the connection"
                self._data += received
                continue
            self._data = self._data[found.end() :]
            self.link.sendall(b"+")
            if found[1][:1] == b"O" and found[1] != b"OK":
                self.said += bytes.fromhex(found[1][1:].decode()).decode()
                continue
            return found[1]
