"""A sweep that is killed leaves no process and no folder behind, whenever that is."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu.system.whole_file import Temporary

KILLS = 20 if os.environ.get("BHEMU_LONG") else 4
LONGEST = 4.0  # seconds until a kill: the processes begin, the first runs end, many are under way
SWEEP = """sweep = 1
name = "long"
program = "add1"
set = ["runtime_args+4=f32:{scalar}"]
[parameters]
scalar = [0.5, 1.0, 2.0]
quantum = { first = 100, last = 3000 }
"""


def processes(folder: Path) -> list[str]:
    """Those in whose environment or command the folder stands."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            environment = Path(f"/proc/{number}/environ").read_bytes()
        except OSError:  # it has ended, or is somebody else's
            continue
        if command and str(folder).encode() in command + environment:
            found.append(f"{number} {command.decode(errors='replace')}")
    return found


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def test_a_killed_sweep_leaves_no_process_and_no_folder(folder: Path, monkeypatch) -> None:
    dice = random.Random(4)
    temporary = folder / "t"
    temporary.mkdir()
    (folder / "SWEEP.toml").write_text(SWEEP)
    monkeypatch.setenv("TMPDIR", str(temporary))
    journal = folder / "SWEEP-results" / "runs.jsonl"
    command = [sys.executable, "-m", "bhemu", "sweep", "SWEEP.toml", "--replace", "-q"]
    for n in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as sweep:
            if n == 0:  # while runs are under way
                wait_for(lambda: journal.exists() and journal.stat().st_size, 60)
                assert len(processes(temporary)) >= 4
            else:
                time.sleep(dice.random() * LONGEST)
            sweep.send_signal(signal.SIGKILL)
        wait_for(lambda: not processes(temporary) and not os.listdir(temporary), 15)
        assert (processes(temporary), os.listdir(temporary)) == ([], [])


def test_a_temporary_folder_goes_with_its_process(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    source = (
        "import os, signal, sys; from bhemu.system.whole_file import Temporary;"
        " signal.signal(signal.SIGINT, signal.default_int_handler);"  # ignored in the background
        " made = Temporary('x-');"
        " (made.path / 'below').mkdir(); print(made.path, flush=True);"
        " os.kill(0 if sys.argv[1] == 'all' else os.getpid(), int(sys.argv[2]))"
    )
    for who, number in (("own", signal.SIGKILL), ("all", signal.SIGTERM), ("all", signal.SIGINT)):
        done = subprocess.run(
            [sys.executable, "-c", source, who, str(int(number))],
            capture_output=True, text=True, start_new_session=True,
        )  # fmt: skip
        assert done.returncode != 0
        assert done.stdout.startswith(f"{tmp_path}/x-")
        wait_for(lambda: not os.listdir(tmp_path), 15)
        assert os.listdir(tmp_path) == []


def test_it_goes_when_all_of_that_name_are_killed(tmp_path: Path, monkeypatch) -> None:
    """As `pkill -9 -f bhemu` does: each process with that word in its command."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    source = (
        "import time; from bhemu.system.whole_file import Temporary;"
        " made = Temporary('bhemu'); print(made.path, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        assert Path(maker.stdout.readline().strip()).is_dir()
        named = [one.split(maxsplit=1) for one in processes(tmp_path)]
        for number in sorted((int(n) for n, words in named if "bhemu" in words), reverse=True):
            os.kill(number, signal.SIGKILL)  # the maker last: its end is what is waited for
    wait_for(lambda: not os.listdir(tmp_path), 15)
    assert os.listdir(tmp_path) == []


def test_it_is_removed_by_close_and_when_it_is_forgotten(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Temporary("x-")
    (made.path / "file").write_bytes(b"x")
    made.close()
    assert os.listdir(tmp_path) == []
    made = Temporary("x-")
    assert len(os.listdir(tmp_path)) == 1
    if os.fork() == 0:  # a copy of the process is not the one that made it
        made.close()
        os._exit(0)
    os.wait()
    assert len(os.listdir(tmp_path)) == 1
    del made
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shell", ["/no/such/shell"])
def test_without_a_shell_it_is_removed_at_the_end(tmp_path: Path, monkeypatch, shell: str) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("bhemu.system.whole_file._GUARD", (shell,))
    made = Temporary("x-")
    made.close()
    assert os.listdir(tmp_path) == []
