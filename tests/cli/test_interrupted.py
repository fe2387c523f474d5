"""Ctrl-C in the middle of imports, and where a process is started: one word and exit code 130."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import bhemu
from bhemu.cli import main
from bhemu.hosts.gdb_server import serve
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.system import interrupts
from bhemu.why.check import Context

ROOT = Path(bhemu.__file__).parent.parent
TIMES = 40 if os.environ.get("BHEMU_LONG") else 5
PROBES = {
    "in __set_name__": "class P:\n    def __set_name__(self, *a): interrupt()\nclass C: p = P()",
    "at its top": "interrupt()",
    "swallowed": "try:\n    interrupt()\nexcept BaseException:\n    pass",
}


@pytest.mark.parametrize("body", PROBES.values(), ids=PROBES)
@pytest.mark.parametrize("module", ["bhemu.cli", "numpy", "bhemu.program.elf"])
def test_in_an_import_it_waits_for_the_end(tmp_path: Path, module: str, body: str) -> None:
    """Python 3.11 makes a RuntimeError of what __set_name__ raises; libraries catch everything."""
    (tmp_path / "probe.py").write_text(
        f"import os, signal\ndef interrupt(): os.kill(os.getpid(), signal.SIGINT)\n{body}\n"
    )
    script = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: import probe\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from bhemu.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "run", str(ROOT / "elfs" / "hang_flag"), "--livelock", "0"],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in done.stderr


def test_a_look_that_is_still_to_come_does_not_end_the_process(tmp_path: Path) -> None:
    """Python gives signals their first action back when it ends, and SIGALRM's is to kill."""
    script = (
        "import signal, sys, time\n"
        "from bhemu.system import interrupts\n"
        "import bhemu.cli\n"
        "def command(**names):\n"
        "    signal.setitimer(signal.ITIMER_REAL, 1)\n"
        "    interrupts._pending = True\n"
        "    interrupts.check()\n"
        "bhemu.cli.main = command\n"
        "class Late:\n"
        "    def __del__(self, sleep=time.sleep): sleep(2)\n"
        "late = Late()\n"  # goes with this module, when the handlers have gone
        "from bhemu.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_one_that_was_swallowed_is_seen_before_a_debugger_is_waited_for(monkeypatch) -> None:
    monkeypatch.setattr(interrupts, "_pending", True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        with pytest.raises(KeyboardInterrupt):
            serve(None, listener, once=True)  # type: ignore[arg-type]


def test_it_waits_for_the_end_of_a_block(monkeypatch) -> None:
    monkeypatch.setattr(interrupts, "_pending", False)
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGALRM)}
    hook, reached = sys.unraisablehook, []
    interrupts.watch()
    try:
        with interrupts.later():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            reached.append("the end of the block")
        time.sleep(10)
        reached.append("what follows it")
    except KeyboardInterrupt:
        reached.append("Ctrl-C")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for one, handler in before.items():
            signal.signal(one, handler)
        sys.unraisablehook = hook
    assert reached == ["the end of the block", "Ctrl-C"]


def test_a_terminal_tells_every_process_of_a_sweep(tmp_path: Path) -> None:
    """Also the one that imports the emulator for the workers, and those that are just begun."""
    (tmp_path / "SWEEP.toml").write_text(
        f'sweep = 1\nname = "s"\nprogram = "{ROOT}/elfs/add1"\n'
        'set = ["runtime_args+4=f32:{scalar}"]\n[parameters]\nscalar = [0.5, 1.0]\n'
        "quantum = { first = 100, last = 4000 }\n"
    )
    dice = random.Random(9)
    command = [sys.executable, "-m", "bhemu", "sweep", "SWEEP.toml", "--allow-outside", "--replace"]
    for _ in range(TIMES):
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        ) as sweep:  # fmt: skip
            time.sleep(0.4 + 1.8 * dice.random())
            os.killpg(sweep.pid, signal.SIGINT)
            try:
                said = sweep.communicate(timeout=60)[0]
            finally:
                sweep.kill()  # one that does not end fails the test instead of keeping it
        assert (sweep.returncode, "Traceback" in said) == (130, False), said


COMMANDS = {
    "run": ["-q"],
    "why": [],
    "why x": ["0x20000:4"],
    "report": ["-o", "r.html"],
    "check": ["--tool", "races"],
    "numerics": [],
    "profile": [],
    "trace": ["--perfetto", "t.json"],
}


def stopped(*_: object, **__: object) -> Stop:
    """As the loop of a run ends by Ctrl-C."""
    interrupts.done()
    return Stop("interrupt", None, 0)


def said(name: str, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [name.split()[0], *arguments])
    return done.exit_code, done.stdout + done.stderr


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_that_it_ends_is_130_of_every_command(
    name: str, as_json: bool, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Tile, "run", stopped)
    shown = ["--json"] if as_json else []
    code, text = said(name, str(ROOT / "elfs" / "add1"), *COMMANDS[name], *shown)
    assert code == 130, text
    assert not as_json or json.loads(text)["exit_code"] == 130
    if name in ("why", "why x", "report", "check", "numerics") and not as_json:
        assert "add1: interrupted, clock 0\n" in text


@pytest.mark.parametrize("name", ["why", "report", "run", "check"])
def test_a_run_of_a_check_that_it_ends_is_130(name: str, monkeypatch, tmp_path) -> None:
    finish = Context.finish

    monkeypatch.setattr(Context, "finish", lambda *a, **b: stopped() and finish(*a, **b))
    more = {**COMMANDS, "run": ["--check", "all"], "report": ["-o", str(tmp_path / "r.html")]}
    code, text = said(name, str(ROOT / "elfs" / "hang_flag"), *more[name])
    assert (code, text.splitlines()[-1]) == (130, "interrupted")


@pytest.mark.parametrize("flags", [[], ["--json"], ["--profile"]])
def test_a_benchmark_that_it_ends_is_130(flags: list[str], monkeypatch) -> None:
    monkeypatch.setattr(Tile, "run", stopped)
    code, text = said("bench", "riscv", "--elfs", str(ROOT / "elfs"), *flags)
    assert (code, text.splitlines()[-1]) == (130, "interrupted")


@pytest.mark.parametrize("pending", [False, True])
def test_an_error_that_a_library_makes_of_it_is_no_defect(monkeypatch, pending: bool) -> None:
    def swallows() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as problem:
            raise RuntimeError("Error calling __set_name__") from problem

    monkeypatch.setattr(interrupts, "_pending", pending)
    monkeypatch.setattr(main, "get_command", lambda *_: click.Command("x", callback=swallows))
    with pytest.raises(KeyboardInterrupt if pending else SystemExit):
        main(["x"])
