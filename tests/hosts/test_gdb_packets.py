"""gdb's remote protocol, packet by packet: answers, mistakes, garbage."""

import random
import socket

import pytest
from hosts.gdb_server import ROOT, Client, server

from bhemu import Program
from bhemu.hosts.gdb_target import Target
from bhemu.launch import Launched

ADD1 = "elfs/add1"


@pytest.fixture(scope="module")
def port():
    with server(ADD1, "-q") as (_, number):
        yield number


@pytest.fixture
def client(port):
    with Client(port) as made:
        yield made
        made.ask(b"D")


def test_what_is_not_known_has_an_empty_answer(client) -> None:
    for packet in (b"vMustReplyEmpty", b"qUnknown", b"!", b"Z5,20000,4", b"R00"):
        assert client.ask(packet) == b""


def test_registers_are_those_of_the_tile(client) -> None:
    assert client.ask(b"Hg3") == b"OK"
    general = client.ask(b"g")
    assert len(general) == 33 * 8
    assert client.ask(b"P5=78563412") == b"OK"
    assert client.ask(b"p5") == b"78563412"
    assert client.ask(b"G" + general) == b"OK"
    assert client.ask(b"g") == general
    assert client.ask(b"p0") == b"00000000"
    assert client.ask(b"p7f") == b"E01"


def test_a_csr_that_a_core_does_not_have_is_not_available(client) -> None:
    from bhemu.hosts.gdb_target import CSRS, PC
    from bhemu.riscv import csr as csr_module

    number = PC + 1 + CSRS.index(csr_module.TT_CFG_SSTATUS0)
    assert client.ask(b"Hg1") == b"OK"
    assert client.ask(b"p%x" % number) == b"00000000"
    assert client.ask(b"Hg2") == b"OK"
    assert client.ask(b"p%x" % number) == b"x" * 8


def test_memory(client) -> None:
    assert client.ask(b"M50000,4:01020304") == b"OK"
    assert client.ask(b"X50004,2:\xff}\x03") == b"OK"
    assert client.ask(b"m50000,6") == b"01020304ff23"
    assert client.ask(b"Hg2") == b"OK"
    assert client.ask(b"Mffb00010,2:aabb") == b"OK"
    assert client.ask(b"mffb00010,2") == b"aabb"
    assert client.ask(b"Hg3") == b"OK"
    assert client.ask(b"mffb00010,2") == b"0000"
    assert client.ask(b"m20000000,4") == b"E01"
    assert client.ask(b"m17fffe,8") == b"0000"


def test_reading_a_device_does_not_change_it(client) -> None:
    """A load of a semaphore through the PCBuf would decrement nothing; of a mailbox it pops."""
    assert client.ask(b"Hg1") == b"OK"
    assert client.ask(b"Mffec0000,4:07000000") == b"OK"  # brisc's mailbox to itself
    assert client.ask(b"mffec0000,4") == b"07000000"
    assert client.ask(b"mffec0000,4") == b"07000000"


@pytest.mark.parametrize(
    "packet",
    [b"m", b"mxyz", b"m10", b"M0,4:00", b"P99=00000000", b"Pzz", b"Hg9", b"Hx1", b"T9", b"p",
     b"Z0,3,4", b"Z2,0,1000", b"Z0", b"qRcmd,zz", b"qXfer:features:read:target.xml:x", b"vCont;q",
     b"vCont;s:9", b"qThreadExtraInfo,8", b"X50000,4:ab"],
)  # fmt: skip
def test_a_wrong_packet_is_an_error_and_nothing_more(client, packet) -> None:
    assert client.ask(packet) == b"E01"
    assert client.ask(b"qC").startswith(b"QC")


def test_garbage_ends_nothing(port) -> None:
    random.seed(7)
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            kind = random.randrange(3)
            noise = random.randbytes(random.randrange(1, 200))
            if kind == 1:
                noise = b"$" + noise.replace(b"#", b"") + b"#00"
            elif kind == 2:
                body = bytes(random.choice(b"qvHgGpPmMXZzT?,:;0123456789abcdef") for _ in noise)
                body = body.replace(b"k", b"")
                noise = b"$" + body + b"#%02x" % (sum(body) & 0xFF)
            link.sendall(noise)
    with Client(port) as made:
        assert made.ask(b"qC").startswith(b"QC")
        made.ask(b"D")


def test_a_session_runs_as_one_long_run_does() -> None:
    plain = Program.load(ROOT / ADD1).launch()
    end = plain.run()
    with server(ADD1, "-q", "--once") as (process, number), Client(number) as client:
        assert client.ask(b"QStartNoAckMode") == b"OK"
        assert client.ask(b"Z3,40000,4") == b"OK"
        assert client.ask(b"vCont;c") == b"T05thread:2;rwatch:40000;"
        assert client.ask(b"z3,40000,4") == b"OK"
        assert client.ask(b"bc").endswith(b"replaylog:begin;")
        main = plain.core["trisc1"].address("main")
        assert client.ask(b"Z0,%x,4" % main) == b"OK"
        assert client.ask(b"vCont;c") == b"T05thread:3;"
        assert client.ask(b"p20") == main.to_bytes(4, "little").hex().encode()
        assert client.ask(b"vCont;s:3;c") == b"T05thread:3;"
        assert client.ask(b"bs") == b"T05thread:3;"
        assert client.ask(b"p20") == main.to_bytes(4, "little").hex().encode()
        assert client.ask(b"z0,%x,4" % main) == b"OK"
        assert client.ask(b"Hg4") == b"OK"
        assert client.ask(b"Z2,c0000,4") == b"OK"
        assert client.ask(b"vCont;c") == b"T05thread:4;watch:c0000;"
        assert "PACR" in client.said
        assert client.ask(b"z2,c0000,4") == b"OK"
        assert client.ask(b"vCont;c").startswith(b"T00")
        assert f"until, clock {end.clock}" in client.said
        assert client.ask(b"mc0000,20") == plain.read(0xC0000, 32).hex().encode()
        assert client.ask(b"bc").endswith(b"replaylog:begin;")
        assert client.ask(b"p20") == b"00000000"
        assert (
            "sem1" in bytes.fromhex(client.ask(b"qRcmd," + b"sem".hex().encode()).decode()).decode()
        )
        client.send(b"k")
        assert process.wait(20) == 0


def test_ctrl_c_stops_a_run(tmp_path) -> None:
    (tmp_path / "l1.bin").write_bytes(
        (0x13).to_bytes(4, "little") + (0xFFDFF06F).to_bytes(4, "little")
    )
    (tmp_path / "PROGRAM.toml").write_text(
        'bhemu = 1\nkind = "image"\n[run]\nlivelock = 0\n[cores]\nbrisc = { pc = 0 }\n'
        '[image]\nfile = "l1.bin"\n'
    )
    with server(str(tmp_path), "-q", "--once") as (process, number), Client(number) as client:
        client.send(b"vCont;c")
        client.link.sendall(b"\x03")
        assert client.answer() == b"T02thread:1;"
        client.send(b"k")
        assert process.wait(20) == 0


def test_a_port_in_use_is_named() -> None:
    with server(ADD1, "-q") as (_, number):
        import subprocess
        import sys

        done = subprocess.run(
            [sys.executable, "-m", "bhemu", "gdb", ADD1, "--port", str(number)],
            cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2
        assert "Address already in use" in done.stderr
        assert "--port 0" in done.stderr


def test_a_core_that_parks_while_it_is_stepped_is_no_end_of_the_run() -> None:
    target = Target(Launched(Program.load(ROOT / ADD1)))
    target.tile.run_to("trisc1", target.core(2).address("main"))
    report = target.step(2, 0, 1 << 20, lambda: False)
    assert "trisc1 is parked: it steps no further, clock " in report.text
    assert target.core(0).state == "running" and target.core(0).retired < 2013
    assert "trisc1 is parked: it does not step" in target.step(2, 0, 4, lambda: False).text
