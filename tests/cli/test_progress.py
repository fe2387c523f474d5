"""What is said while a user waits for compilations, checks and installations."""

import io
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from script_module import ROOT

from bhemu.cli import output as module
from bhemu.cli.output import Progress
from bhemu.jit import build, cache
from bhemu.jit.build import Outlook
from bhemu.tensix import compiled

TARGET: Any = SimpleNamespace(clock=6)


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, *looks: Outlook) -> str:
    """What is written while something runs for a few looks of the line at the compiler."""
    monkeypatch.setattr(module, "_PERIOD", 0.02)
    monkeypatch.setattr(module, "_SILENT", 0.05)
    monkeypatch.setattr(sys, "stderr", stderr)
    left = list(looks)
    monkeypatch.setattr(build, "outlook", lambda: left.pop(0) if len(left) > 1 else left[0])
    with Progress(quiet=False).running(TARGET):
        time.sleep(0.4)
    return stderr.getvalue()


def test_a_terminal_shows_what_is_compiled_and_never_calls_it_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = shown(monkeypatch, Terminal(), Outlook("MVMUL", 3, 12))
    assert "compiling MVMUL: 3 of 12 parts are done  0." in text
    assert "running" not in text
    text = shown(monkeypatch, Terminal(), Outlook("", 12, 12))
    assert "running  clock 6" in text and "compiling" not in text


def test_without_a_terminal_a_line_is_said_now_and_then_while_something_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = shown(monkeypatch, io.StringIO(), Outlook("PACR", 4, 12)).splitlines()
    assert 2 <= len(lines) <= 8
    assert all(line.startswith("compiling PACR: 4 of 12 parts are done, after ") for line in lines)
    assert shown(monkeypatch, io.StringIO(), Outlook("", 12, 12)) == ""


def test_who_waits_without_a_terminal_reads_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until there is nothing to say."""
    monkeypatch.setattr(module, "_PERIOD", 0.02)
    monkeypatch.setattr(module, "_SILENT", 0.05)
    monkeypatch.setattr(build, "outlook", lambda: Outlook("", 0, 0))
    left = ["0 of 3 runs are done"] * 8
    with Progress(quiet=False).waiting(lambda: left.pop() if left else ""):
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 7
    assert all(line.startswith("0 of 3 runs are done, after ") for line in lines)


def test_quiet_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "outlook", lambda: Outlook("PACR", 4, 12))
    monkeypatch.setattr(sys, "stderr", stderr := Terminal())
    with Progress(quiet=True).starting():
        time.sleep(0.3)
    assert stderr.getvalue() == ""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing expected or loaded."""
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    monkeypatch.setattr(build, "_expected", set())
    monkeypatch.setattr(build, "_loaded", {})
    monkeypatch.setattr("bhemu.jit.host.find", lambda label: None)
    return tmp_path


def test_the_outlook_counts_what_others_have_compiled_too(empty: Path) -> None:
    post, get = (compiled.entry(opcode) for opcode in (0xA4, 0xA5))
    build.expect([post, get])
    assert build.outlook() == Outlook("", 0, 2)
    cache.write(build._file(post), b"by another process")
    assert build.outlook() == Outlook("", 1, 2)
    build.expect([post])  # what is there is expected no more, and stays counted
    assert build.outlook() == Outlook("", 1, 2)


def test_the_outlook_names_what_is_compiled(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(build, "before_compiling", [lambda name: seen.append(build.outlook())])
    monkeypatch.setattr("bhemu.jit.emit.emit", lambda *_: SimpleNamespace(packed=lambda: b"code"))
    build._compiled(compiled.entry(0xA4))
    assert seen == [Outlook("SEMPOST", 0, 1)]
    assert build.outlook() == Outlook("", 1, 1)


def test_a_check_is_said_with_its_number_and_the_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Progress(quiet=False).checking("checking races, 6 of 10")
    assert capsys.readouterr().err.startswith("checking races, 6 of 10, after 0.0 s")


def installed(*command: str) -> "subprocess.Popen[str]":
    script = [sys.executable, str(ROOT / "scripts" / "shown.py"), "installing"]
    return subprocess.Popen([*script, *command], stderr=subprocess.PIPE, text=True)


def test_an_installation_is_never_silent_for_three_seconds() -> None:
    work = "import time; print('Collecting numpy', flush=True); time.sleep(5)"
    last, silent, lines = time.monotonic(), [], []
    with installed(sys.executable, "-c", work) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            silent.append(time.monotonic() - last)
            last = time.monotonic()
    assert process.returncode == 0
    assert max(silent) < 3
    assert any("Collecting numpy" in line for line in lines[:-1])
    assert lines[-1].startswith("installing: done, ")


def test_what_a_failed_installation_said_is_shown() -> None:
    process = installed(sys.executable, "-c", "print('no such package'); raise SystemExit(3)")
    text = process.communicate()[1]
    assert process.returncode == 3
    assert "installing: failed" in text and text.endswith("no such package\n")
