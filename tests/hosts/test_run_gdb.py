"""`bhemu run --gdb`: gdb finds the program before its first instruction, and the run goes on."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hosts.gdb_server import ROOT, Client


@contextmanager
def running() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`bhemu run elfs/add1 --gdb` and its port."""
    command = [sys.executable, "-m", "bhemu", "run", "elfs/add1", "--gdb", "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = None
            while found is None:
                line = process.stderr.readline()
                assert line, "no line for gdb"
                found = re.search(r"gdb-multiarch -ex 'target remote 127.0.0.1:(\d+)'", line)
            yield process, int(found[1])
        finally:
            process.kill()


@pytest.mark.parametrize("first", [None, b"vCont;c"])
def test_the_run_goes_on_when_gdb_detaches(first: bytes | None) -> None:
    """From the entry, or from where the program has ended under gdb."""
    with running() as (process, port):
        with Client(port) as client:
            assert client.ask(b"p20") == b"00000000", "pc of BRISC"
            if first is not None:
                assert client.ask(first)[:1] in (b"S", b"T", b"W")
            assert client.ask(b"D") == b"OK"
        shown, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"clock": 2688' in shown and '"equal": true' in shown


def test_the_run_ends_when_gdb_kills_it() -> None:
    with running() as (process, port):
        with Client(port) as client:
            client.send(b"k")
        shown, _ = process.communicate(timeout=60)
    assert (process.returncode, shown) == (0, "")
