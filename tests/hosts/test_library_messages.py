"""`bhemu serve` at the other end of a library: messages that no library sends end the session."""

import os
import socket
import struct
import subprocess
import sys

import pytest

from bhemu.hosts.library import Op

MESSAGE = struct.Struct("<IIQII")


class Library:
    """The other end of the emulator's socket, which got the file of its memory."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.settimeout(60)
        self.branch, asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        numbers = [theirs.fileno(), asks.fileno()]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bhemu", "serve", "-v"],
            env={**os.environ, "BHEMU_LIBRARY_FD": "{},{}".format(*numbers), "NO_COLOR": "1"},
            pass_fds=numbers,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        asks.close()
        hello, self.files, _, _ = socket.recv_fds(self.line, MESSAGE.size, 1)
        assert MESSAGE.unpack(hello)[0] == Op.DONE

    def end(self) -> tuple[int, str]:
        """The exit code, and what was said, once this end is closed."""
        self.line.close()
        self.branch.close()
        for file in self.files:
            os.close(file)
        said = self.process.communicate(timeout=60)[1]
        return self.process.returncode, said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ((99, 0, 0, 0, 0), "message 99"),
        ((Op.READ, 1 << 31, 0, 1 | 2 << 6, 0), "at most 1048576"),
        ((Op.WRITE, 3, 0xFFB121B0, 1 | 2 << 6, 0), "whole aligned words"),
        ((Op.READ, 4, (1 << 64) - 4, 1 | 2 << 6, 0), "must be an integer"),
        ((Op.READ, 4, 0, 0xFFF, 0), "coordinate of no tile"),
        ((Op.READ, 4, 0, 1 << 12 | 1 | 2 << 6, 0), "named chip 1"),
    ],
)
def test_wrong_message_fails_the_host(message: tuple[int, ...], said: str) -> None:
    library = Library()
    library.line.send(MESSAGE.pack(*message))
    op, *_, status = MESSAGE.unpack(library.line.recv(64))
    assert (op, status) == (Op.FAILED, 2)
    code, text = library.end()
    assert code == 2
    assert said in text
    assert "Traceback" not in text


@pytest.mark.parametrize("message", [b"", b"abc"])
def test_no_message_is_the_end(message: bytes) -> None:
    library = Library()
    if message:
        library.line.send(message)
    code, text = library.end()
    assert code == 0
    assert "host gone" in text
    assert "error" not in text


@pytest.mark.parametrize("files", [0, 1, 3, 9])
def test_branch_that_brings_other_files_is_no_child(files: int) -> None:
    library = Library()
    given = [library.branch.fileno()] * files
    socket.send_fds(library.branch, [MESSAGE.pack(Op.COPY, 0, 0, 0, 0)], given)
    library.line.send(MESSAGE.pack(Op.READ, 4, 0, 1 | 2 << 6, 0))
    assert MESSAGE.unpack(library.line.recv(64))[0] == Op.DONE
    assert library.end()[0] == 0


def test_child_that_is_gone_at_once_ends_its_copy_only() -> None:
    library = Library()
    ends = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    given = [*(theirs.fileno() for _, theirs in ends), 1, 2]
    socket.send_fds(library.branch, [MESSAGE.pack(Op.COPY, 0, 0, 0, 0)], given)
    for pair in ends:
        for end in pair:
            end.close()
    library.line.send(MESSAGE.pack(Op.READ, 4, 0, 1 | 2 << 6, 0))
    assert MESSAGE.unpack(library.line.recv(64))[0] == Op.DONE
    assert library.end()[0] == 0


@pytest.mark.parametrize("number", ["x", "-1", "77777", "0", "0,x", "1,2,3"])
def test_number_that_is_no_socket(number: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "serve"],
        env={**os.environ, "BHEMU_LIBRARY_FD": number, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "is no socket of a host" in done.stderr
