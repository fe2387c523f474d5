"""What whoever reaches gdb's port cannot do: touch files, send packets from a web page, hang it."""

import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts.gdb_server import ROOT, Client, server

from bhemu import Program, Snapshot
from bhemu.errors import InputError
from bhemu.hosts.gdb_target import Target
from bhemu.launch import Launched

PACKETS, REQUESTS = 1000, 200
KINDS = b"?HTgGpPmMXZzcsbDqQv!RrtiIA"  # no k: it ends the server
COMMANDS = (
    *("save {}", "load {}", "list {}:1", "list {}", "break {}:1", "mem 0 99999999999"),
    *("dis 0 99999999999", "x/99999s 0", "print {}", "print " + "(" * 4000, "dump {}"),
    *("watch {}", "commands 1", "end", "info source", "frame", "bt", "goto -1", "core {}"),
    *("reverse-step 1 {}", "ignore 1 {}", "condition 1 {}", "read32 {}", "src a 0-{}", "up"),
)


def packet(body: bytes) -> bytes:
    return b"$" + body + b"#%02x" % (sum(body) & 0xFF)


def monitor(line: str) -> bytes:
    return b"qRcmd," + line.encode().hex().encode()


def said(client: Client, line: str) -> str:
    answer = client.ask(monitor(line))
    return "" if answer == b"OK" else bytes.fromhex(answer.decode()).decode()


@pytest.fixture
def victims(tmp_path: Path) -> Path:
    """A folder of files that nobody may touch: a state, a text, a source."""
    folder = tmp_path / "victims"
    folder.mkdir()
    Program.load(ROOT / "elfs/add1").launch().snapshot().save(folder / "state.npz")
    (folder / "notes.txt").write_text("private\n")
    (folder / "kernel.c").write_text("private\n")
    return folder


def held(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Everything about the files of a folder."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.iterdir()
    }


@pytest.fixture
def port() -> Iterator[int]:
    with server("elfs/add1", "-q") as (_, number):
        yield number


def sent(port: int, data: bytes) -> bytes:
    """What the server answers to a connection that sends this."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
        link.sendall(data)
        link.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while more := link.recv(1 << 16):
                received += more
        except ConnectionResetError:  # closed before it had read everything
            pass
        return received


def post(path: Path, start: bytes = b"POST / HTTP/1.1") -> bytes:
    body = packet(monitor(f"save {path}"))
    return start + b"\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def test_a_web_page_reaches_nothing(victims: Path) -> None:
    """A page may send any method and body to any port of this machine."""
    before = held(victims)
    with server("elfs/add1", "-q", "--allow-save", str(victims)) as (_, port):
        for start in (b"POST / HTTP/1.1", b"GET /$qC#b4 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"\r\n"):
            assert sent(port, post(victims / "state.npz", start)) == b""
        for method in (b"$k#6b", b"$D#44", b"+", b"-$c#63", b"\x03"):  # letters of a method
            sent(port, post(victims / "state.npz", method + b" / HTTP/1.1"))
        assert sent(port, b"$k#6b / HTTP/1.1\r\n\r\n") == b""
        with Client(port) as client:
            assert client.ask(b"qC").startswith(b"QC")
    assert held(victims) == before


def test_a_line_between_packets_ends_the_session(port: int) -> None:
    with Client(port) as client:
        assert client.ask(b"qC").startswith(b"QC")
        client.link.sendall(b"GET / HTTP/1.1\r\n" + packet(b"qC"))
        assert client.link.recv(1 << 16) == b""


def test_files_are_refused_to_whoever_reaches_the_port(port: int, victims: Path) -> None:
    before = held(victims)
    with Client(port) as client:
        for line in (f"save {victims / 'state.npz'}", f"load {victims / 'state.npz'}"):
            assert "may not save or load" in said(client, line)
        said(client, "break main trisc1")
        assert said(client, "commands 1") == ""
        said(client, f"save {victims / 'new.npz'}")
        said(client, "end")
        assert "may not save or load" in said(client, "continue")
        for file in ("kernel.c", "notes.txt", "../notes.txt", str(victims / "notes.txt")):
            answer = said(client, f"list {file}:1")
            assert "private" not in answer and answer.startswith("error:")
    assert held(victims) == before


def test_a_folder_is_allowed_and_nothing_outside(victims: Path, tmp_path: Path) -> None:
    folder = tmp_path / "states"
    folder.mkdir()
    (folder / "up").symlink_to(victims)
    (folder / "link.npz").symlink_to(victims / "state.npz")
    before = held(victims)
    launched = Launched(Program.load(ROOT / "elfs/add1"))
    target = Target(launched, folder)
    assert "saved" in target.monitor("save a.npz", 0)
    assert "clock" in target.monitor(f"load {folder / 'a.npz'}", 0)
    assert "saved" in target.monitor("save a.npz", 0)
    Snapshot.load(folder / "a.npz")
    outside = (victims / "state.npz", "../victims/state.npz", "up/state.npz", "link.npz")
    for name in (*outside, "a.txt", "a", "nowhere/../../b.npz"):
        for command in ("save", "load"):
            assert "is no FILE.npz in" in target.monitor(f"{command} {name}", 0)
    assert held(victims) == before
    assert sorted(path.name for path in folder.iterdir()) == ["a.npz", "link.npz", "up"]


def test_a_state_does_not_replace_a_file_of_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs/add1", folder)
    state = folder / "state.npz"
    Program.load(folder).launch().snapshot().save(state)
    target = Target(Launched(Program.load(state)), folder)
    assert "is a file of the program" in target.monitor("save state.npz", 0)


def test_the_folder_must_be_there() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "gdb", "elfs/add1", "--allow-save", "no/such"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no/such is no folder" in done.stderr


@pytest.mark.parametrize("line", ["mem 0 99999999999", "mem 0 4097", "dis 0 99999999999"])
def test_a_command_shows_so_much_at_most(line: str) -> None:
    target = Target(Launched(Program.load(ROOT / "elfs/add1")))
    begin = time.monotonic()
    assert "shows 1 to 4096" in target.monitor(line, 0)
    assert time.monotonic() - begin < 2
    with pytest.raises(InputError):
        target._stepper.execute(line)


@pytest.mark.parametrize(
    ("names", "told"),
    [(["l1:0-1572863"], "4096 lines"), (["l1:0"] * 9, "8 names"), (["cfg"] * 6000, "8 names")],
)
def test_a_dump_shows_so_much_at_most(names: list[str], told: str) -> None:
    target = Target(Launched(Program.load(ROOT / "elfs/add1")))
    said = target.monitor(" ".join(["dump", *names]), 0)
    assert said.startswith(f"error: dump shows {told} at most") and len(said) < 200
    assert target.monitor("dump l1:0-0xffff", 0).count("\n") == 1 + 0x10000 // 32


@pytest.mark.parametrize("text", ["(" * 4000, "!" * 4000, "9" * 5000, "*" * 4000 + "0"])
def test_an_expression_that_is_too_long_is_a_mistake_in_it(text: str) -> None:
    target = Target(Launched(Program.load(ROOT / "elfs/add1")))
    assert target.monitor(f"print {text}", 0).startswith("error: ")


WATCHED = """
import os, sys, threading
folder, log = sys.argv.pop(1), open(sys.argv.pop(1), "w", buffering=1)
def look(event, arguments):
    if event.split(".")[0] in ("open", "os", "shutil", "subprocess", "socket"):
        if folder in repr(arguments):
            log.write(f"{event} {arguments!r}\\n")
sys.addaudithook(look)
sys.argv[0] = "bhemu"
from bhemu.__main__ import main
main()
"""


def hostile(dice: random.Random, victims: Path) -> bytes:
    """One packet of a debugger that is none: noise, nonsense, commands that name a file."""
    kind = dice.randrange(4)
    if kind == 0:
        names = ("state.npz", "new.npz", "notes.txt", "kernel.c", "../victims/state.npz", "")
        name = str(victims / dice.choice(names))
        return packet(monitor(dice.choice(COMMANDS).format(name)))
    if kind == 1:
        names = (b"vFile:open:", b"vRun;", b"qXfer:exec-file:read:", b"vFile:unlink:", b"vAttach;")
        return packet(dice.choice(names) + str(victims / "notes.txt").encode().hex().encode())
    if kind == 2:
        size = dice.randrange(1, 60)
        body = bytes(dice.choice(KINDS[:1] + b",:;=-0123456789abcdef") for _ in range(size))
        return packet(bytes([dice.choice(KINDS)]) + body)
    noise = dice.randbytes(dice.randrange(1, 200)).replace(b"#", b"").replace(b"$", b"")
    return packet(noise[noise[:1] == b"k" :])


def test_a_campaign_of_hostile_packets_and_requests_touches_no_file(
    victims: Path, tmp_path: Path
) -> None:
    """The server's own process notes whatever it does with the folder of these files."""
    log, dice, before = tmp_path / "log", random.Random(20), held(victims)
    wrapper = tmp_path / "watched.py"
    wrapper.write_text(WATCHED)
    command = (sys.executable, str(wrapper), str(victims), str(log), "gdb")
    with server("elfs/add1", "-q", command=command) as (process, port):
        client = Client(port)
        try:
            for _ in range(PACKETS):
                try:
                    client.link.sendall(hostile(dice, victims))
                    client.answer()
                except (AssertionError, ConnectionError):  # D: the next debugger, please
                    client.link.close()
                    client = Client(port)
                assert process.poll() is None
        finally:
            client.link.close()
        for _ in range(REQUESTS):
            starts = (b"POST / HTTP/1.1", b"PUT /x HTTP/1.1", b"GET /", b"$?#3f / HTTP/1.1")
            assert sent(port, post(victims / "state.npz", dice.choice(starts))) == b""
        with Client(port) as client:
            assert client.ask(b"qC").startswith(b"QC")
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert held(victims) == before
    assert log.read_text() == ""
