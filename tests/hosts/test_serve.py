"""`bhemu serve` as a process: greeting, answers, every way to end; no orphan, no traceback."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pynng
import pytest
from fuzz.campaign import LONG
from hosts.conftest import Host, children, is_alive, soon
from hosts.fake_chip import BROKEN, HOST_MEMORY, FakeChip

from bhemu.cli import serve
from bhemu.hosts.umd import Command, Message

SLEEP = 0x51EE9000  # serve_fake.py


def test_a_session(host: Host) -> None:
    process = host.start("-v")
    assert host.greeted().command == Command.EXIT
    host.write(0x100, b"abcdefgh")
    host.tell(Message(Command.ALL_TENSIX_RESET_DEASSERT, (1, 2)))
    assert host.read(0x104) == b"efgh"
    host.exit()
    assert process.wait(10) == 0
    line = host.said()
    assert line.startswith(
        "bhemu serve: WRITE 1, READ 1, ALL_TENSIX_RESET_DEASSERT 1, EXIT 1; 8 bytes written, exit,"
    )
    assert line.count("\n") == 1


def test_without_verbose_nothing_is_said(host: Host) -> None:
    process = host.start()
    host.greeted()
    host.exit()
    assert process.wait(10) == 0
    assert host.said() == ""


def test_options_reach_the_chip(host: Host) -> None:
    host.start("--ub", "warn", "--engine", "compiled", "--poison", "ff", "--seed", "3")
    host.greeted()
    assert host.read(0) == bytes(4)
    host.exit()


@pytest.mark.parametrize(
    ("given", "used"), [((), "llk"), (("--reference", "ttsim"), "ttsim"), (("--ub", "warn"), "llk")]
)
def test_production_kernels_follow_llk_unless_told_otherwise(
    given: tuple[str, ...], used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FakeChip] = []

    def chip(**options: object) -> FakeChip:
        made.append(FakeChip())
        made[-1].options = options
        return made[-1]

    monkeypatch.setattr("bhemu.machine.machine.Chip", chip)
    values = serve.serve_command.make_context("serve", list(given)).params
    served = SimpleNamespace(serve=lambda device: None)
    assert serve._session(served, values) == 0  # type: ignore[arg-type]
    assert [c.options["reference"] for c in made] == [used]


def test_thousands_of_writes_before_a_read_arrive_in_order(host: Host) -> None:
    host.start()
    host.greeted()
    for i in range(5000):
        host.write(0x100, struct.pack("<I", i))
    assert host.read(0x100) == struct.pack("<I", 4999)
    host.write(0x2000, bytes(range(256)) * 256)
    assert host.read(0x2000, 1 << 16) == bytes(range(256)) * 256
    host.exit()


def test_a_chip_that_fails_tells_the_user_and_the_host(host: Host, tmp_path: Path) -> None:
    state = tmp_path / "state.npz"
    process = host.start("--keep", str(state))
    host.greeted()
    host.write(BROKEN, b"1234")
    assert host.read(0) == b"", "UMD takes it as a failed read"
    then = f"  hint: none; bhemu step {state}\n"
    assert host.said() == f"error: [FAKE] the chip met what it does not know\n{then}"
    assert state.read_text() == "4 bytes"
    assert host.read(BROKEN) == b"1234"
    host.exit()
    assert process.wait(10) == 4


def test_a_bad_request_is_told_and_the_session_goes_on(host: Host) -> None:
    process = host.start()
    host.greeted()
    assert host.read(0, core=(50, 50)) == b""
    host.tell(b"no message at all")
    host.tell(b"")
    assert host.read(0) == bytes(4)
    host.exit()
    assert process.wait(10) == 0
    said = host.said()
    assert "there is no endpoint at (50, 50)" in said
    assert said.count("a message that cannot be read") == 2


def test_a_killed_host_ends_it(host: Host) -> None:
    process = host.start("-v")
    host.greeted()
    assert host.read(0) == bytes(4)
    workers = children(process)
    host.close()
    assert process.wait(5) == 0
    assert not any(map(is_alive, workers))
    assert "host gone" in host.said()


def test_a_killed_host_ends_even_a_run_without_end(host: Host) -> None:
    process = host.start()
    host.greeted()
    host.write(SLEEP, b"1234")
    host.tell(Message(Command.READ, (1, 2), 0, 4, bytes(4)))
    time.sleep(0.5)
    host.close()
    assert process.wait(12) == 0


def test_a_killed_simulator_fails_the_reads_of_its_host(host: Host) -> None:
    process = host.start()
    host.greeted()
    assert host.read(0) == bytes(4)
    (worker,) = children(process)
    host.write(SLEEP, b"1234")
    host.tell(Message(Command.READ, (1, 2), 0, 4, bytes(4)))
    os.kill(worker, signal.SIGKILL)
    assert host.ask(Message(Command.READ, (1, 2), 0, 4, bytes(4))).data == b""
    assert "SIGKILL ended the emulator" in host.said()
    host.exit()
    assert process.wait(10) == 70


def test_a_killed_watcher_leaves_the_simulator_at_work(host: Host) -> None:
    process = host.start()
    host.greeted()
    (worker,) = children(process)
    process.kill()
    process.wait()
    assert host.read(0) == bytes(4)
    host.exit()
    assert soon(lambda: not is_alive(worker))


def test_a_terminated_simulator_ends_and_tells_its_host(host: Host) -> None:
    process = host.start()
    host.greeted()
    assert host.read(0) == bytes(4)
    process.terminate()
    request = Message(Command.READ, (1, 2), 0, 4, bytes(4))
    assert soon(lambda: host.ask(request).data == b"")  # what came first may still be answered
    host.exit()
    assert process.wait(10) == 70


def test_two_hosts_have_a_chip_each(host: Host, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Host(tmp_path / "other")
    other.listen()
    for one in (host, other):
        one.start()
        one.greeted()
    host.write(0, b"host")
    other.write(0, b"othr")
    assert (host.read(0), other.read(0)) == (b"host", b"othr")
    host.exit()
    other.exit()
    assert other.processes[0].wait(10) == 0
    other.close()


def test_a_second_simulator_for_one_host_ends_and_says_why(host: Host) -> None:
    host.start()
    host.greeted()
    second = host.start()
    assert second.wait(15) == 2
    assert host.said().count("took no simulator") == 1
    assert host.read(0) == bytes(4), "the first is not disturbed"
    host.exit()


def test_a_second_simulator_that_is_slow_to_start_says_why_too(host: Host) -> None:
    host.start()
    host.greeted()
    assert host.start(MAKING="30").wait(25) == 2
    assert host.said().count("took no simulator") == 1
    host.exit()


def test_a_port_of_another_program(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        host.address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        process = host.start()
        accepted, _ = other.accept()
        accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        assert process.wait(15) == 2
        accepted.close()
    assert "took no simulator" in host.said()


def test_nobody_listens(tmp_path: Path) -> None:
    silent = Host(tmp_path)
    process = silent.start()
    assert process.wait(60) == 2
    assert "no process listens at tcp://127.0.0.1:" in silent.said()


def test_half_a_message_and_then_nothing(tmp_path: Path) -> None:
    """The bytes of the transport, by hand: a header that promises more than comes."""
    half = Host(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        half.address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        process = half.start("-v")
        line, _ = listener.accept()
        line.sendall(b"\0SP\0\0\x11\0\0")  # the pair protocol, version 1
        assert line.recv(8) == b"\0SP\0\0\x11\0\0"
        length = struct.unpack(">Q", line.recv(8))[0]
        assert line.recv(length)[4:]
        line.sendall(struct.pack(">QI", 72, 1) + b"\x14\0\0\0")
        time.sleep(0.3)
        assert process.poll() is None
        line.close()
    assert process.wait(10) == 2
    assert "took no simulator" in half.said()


def test_sessions_in_a_row(tmp_path: Path) -> None:
    for number in range(20 if LONG else 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Host(folder)
        one.listen()
        process = one.start()
        one.greeted()
        one.write(0, struct.pack("<I", number))
        assert one.read(0) == struct.pack("<I", number)
        one.exit()
        assert process.wait(10) == 0
        assert one.said() == ""
        one.close()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "NNG_SOCKET_ADDR is not set"),
        ("localhost", "'localhost' is no address"),
        ("tcp://localhost", "'tcp://localhost' is no address"),
        ("tcp://localhost:x", "'tcp://localhost:x' is no address"),
        ("inproc://x", "'inproc://x' is no address"),
        ("tcp://192.0.2.1:50000", "tcp://192.0.2.1:50000 is not on this machine"),
    ],
)
def test_an_address_that_is_none_of_ours(address: str, message: str) -> None:
    there = dict(os.environ, NNG_SOCKET_ADDR=address)
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "serve"], env=there, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_host_hears_that_packages_are_missing(host: Host) -> None:
    program = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pynng' else real(name, *more)\n"
        "from bhemu.cli import main; main(['serve'])"
    )
    there = dict(os.environ, NNG_SOCKET_ADDR=host.address)
    process = subprocess.Popen([sys.executable, "-c", program], env=there, stderr=subprocess.PIPE)
    with pytest.raises(RuntimeError):  # how pynng receives a message of no bytes
        host.socket.recv()
    assert process.communicate(timeout=10)[1].startswith(b"error: the package pynng is not")
    assert process.returncode == 2


def test_a_unix_socket(tmp_path: Path) -> None:
    local = Host(tmp_path)
    local.address = f"ipc://{tmp_path}/line"
    local.listen()
    process = local.start()
    local.greeted()
    local.exit()
    assert process.wait(10) == 0
    local.close()


def test_an_idle_chip_costs_no_processor_time(host: Host) -> None:
    process = host.start()
    host.greeted()
    host.read(0)
    (worker,) = children(process)

    def ticks() -> int:
        fields = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(1.5)
    assert (ticks() - before) / os.sysconf("SC_CLK_TCK") <= 0.03
    host.exit()


def test_pynng_of_a_host_that_closes_at_once(host: Host) -> None:
    process = host.start()
    host.greeted()
    for _ in range(100):
        host.tell(Message(Command.READ, (1, 2), 0, 4, bytes(4)))
    host.close()
    assert process.wait(10) == 0
    assert host.said() == ""
    assert isinstance(host.socket, pynng.Pair1)


def test_a_silent_host_hears_that_its_memory_is_wanted(host: Host) -> None:
    """It writes, then waits for its own memory; on standard error, which is the host's log."""
    process = host.start("-v")
    host.greeted()
    host.write(HOST_MEMORY, b"1234")
    assert soon(lambda: "[HOST-MEMORY]" in host.said())
    assert "TT_METAL_DRAM_BACKED_CQ=1" in host.said()
    assert host.read(HOST_MEMORY) == b"1234"
    host.exit()
    assert process.wait(10) == 0
    assert host.said().count("[HOST-MEMORY]") == 1
    assert "1 errors, exit" in host.said()
