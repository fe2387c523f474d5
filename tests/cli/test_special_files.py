"""A pipe, a device or a folder where a file belongs: bad input at once, on no pipe is waited."""

import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import bhemu
from bhemu.cli import main

ROOT = Path(bhemu.__file__).parent.parent
COMMANDS = (
    ("check", "{}"),
    ("run", "{}"),
    ("why", "{}"),
    ("dump", "{}"),
    ("disasm", "{}"),
    ("sweep", "{}"),
    ("gdb", "--port", "0", "{}"),
    ("check", "--core", "brisc={}"),
    ("check", "elfs/add1", "--in", "{}@0x30000"),
    ("check", "elfs/add1", "--expect", "{}@0xC0000"),
    ("check", "elfs/add1", "--core", "trisc0={}"),
    ("numerics", "elfs/add1", "--against", "out={}"),
    ("step", "elfs/add1", "-q", "-x", "load {}"),
    ("step", "elfs/add1", "-q", "-x", "save {}"),
    ("run", "elfs/add1", "-q", "--save", "{}"),
    ("trace", "elfs/add1", "-q", "--perfetto", "{}"),
    ("report", "elfs/add1", "-q", "-o", "{}"),
    ("isa", "--coverage", "{}"),
)


@pytest.fixture(scope="module")
def special(tmp_path_factory):
    """By kind, a path with the ending of a state, which some commands ask for."""
    folder = tmp_path_factory.mktemp("special")
    os.mkfifo(folder / "pipe.npz")
    (folder / "folder.npz").mkdir()
    (folder / "zeros.npz").symlink_to("/dev/zero")
    (folder / "terminal.npz").symlink_to("/dev/tty")
    return folder


def said(words: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a command, which is interrupted when it waits."""

    def late(number: int, frame: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    try:
        done = CliRunner().invoke(main, words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return done.exit_code, done.output


@pytest.mark.parametrize("kind", ["pipe", "folder", "zeros", "terminal"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_waits_for_what_is_no_file(
    special: Path, monkeypatch, words: Sequence[str], kind: str
) -> None:
    monkeypatch.chdir(ROOT)
    code, text = said([word.format(special / f"{kind}.npz") for word in words])
    assert (code, "Traceback" in text) == (2, False), text


@pytest.mark.parametrize("name", ["in.npy", "expected.npy", "trisc0.elf", "PROGRAM.toml"])
def test_a_pipe_in_the_folder_of_a_program(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs/add1", folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    code, text = said(["check", str(folder)])
    assert (code, "Traceback" in text) == (2, False), text
    assert "no such file" not in text and "is a pipe, no regular file" in text


@pytest.mark.parametrize(
    "words", [("report", "-o"), ("trace", "--perfetto"), ("run", "--save")], ids=" ".join
)
def test_a_picture_does_not_replace_a_file_of_the_program(tmp_path: Path, words) -> None:
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs/add1", folder)
    before = (folder / "brisc.elf").read_bytes()
    command, option = words
    code, text = said([command, str(folder), "-q", option, str(folder / "brisc.elf")])
    assert code == 2 and "is a file of the program" in text
    assert (folder / "brisc.elf").read_bytes() == before
