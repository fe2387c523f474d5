"""A host as UMD is one: listens, starts the simulator, sends requests, ends."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pynng
import pytest

import bhemu
from bhemu.hosts import umd
from bhemu.hosts.umd import Command, Message

TESTS = Path(__file__).parent.parent
FAKE = (str(TESTS / "hosts" / "serve_fake.py"), "serve")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Host:
    """Listens at a port of its own; `start` starts the simulator; everything else is a request."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.address = f"tcp://127.0.0.1:{port or free_port()}"
        self.log = folder / "log"
        self.socket = pynng.Pair1(recv_timeout=20_000, send_timeout=20_000)
        self.processes: list[subprocess.Popen[bytes]] = []

    def listen(self) -> None:
        self.socket.listen(self.address)

    def start(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        there = dict(os.environ, NNG_SOCKET_ADDR=self.address, NO_COLOR="1", **environment)
        places = (str(TESTS), str(Path(bhemu.__file__).parent.parent), there.get("PYTHONPATH", ""))
        there["PYTHONPATH"] = os.pathsep.join(places)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *FAKE, *options], env=there, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def greeted(self) -> Message:
        return umd.read(self.socket.recv())

    def ask(self, message: Message) -> Message:
        self.tell(message)
        return umd.read(self.socket.recv())

    def tell(self, message: Message | bytes) -> None:
        self.socket.send(umd.write(message) if isinstance(message, Message) else message)

    def read(self, address: int, size: int = 4, core: tuple[int, int] = (1, 2)) -> bytes:
        return self.ask(Message(Command.READ, core, address, size, bytes(4))).data

    def write(self, address: int, data: bytes, core: tuple[int, int] = (1, 2)) -> None:
        self.tell(Message(Command.WRITE, core, address, len(data), data))

    def exit(self) -> None:
        self.tell(Message(Command.EXIT, (0, 0)))

    def said(self) -> str:
        text = self.log.read_text()
        assert "Traceback" not in text
        return text

    def close(self) -> None:
        self.socket.close()


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """Process numbers of a process's children."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, parent = status.parent.name, status.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if int(parent) == process.pid:
            found.append(int(number))
    return found


def is_alive(number: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] != "Z"


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host that listens; at the end no process of its simulators is left."""
    made = Host(tmp_path)
    made.listen()
    yield made
    made.close()
    for process in made.processes:
        workers = children(process)
        process.wait(15)
        assert soon(lambda workers=workers: not any(map(is_alive, workers)))
