"""Compiled code is found again if it is whole and certainly ours; else it is compiled again."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import bhemu
from bhemu.jit import cache
from bhemu.jit.subset import JIT

PACKAGE = Path(bhemu.__file__).parent
PROGRAM = """
from ctypes import CFUNCTYPE, c_int64, c_uint32, c_void_p
from bhemu.jit.build import load
from bhemu.tensix import compiled as tc
from bhemu.tensix.state import State
from bhemu.tensix.units.sync import SEMPOST
s = State()
address, seconds = load(tc.entry(SEMPOST.opcode))
s.sem_max[:] = 15
status = CFUNCTYPE(c_int64, c_void_p, c_int64, c_uint32)(address)(
    s.base, 0, SEMPOST.assemble(sem_sel=1)
)
print(status, s.sem[0], "kept" if seconds == 0 else "compiled")
"""
compiled_only = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")


class Tree:
    """A copy of the package with a cache of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root, root / "cache"
        shutil.copytree(PACKAGE, root / "bhemu", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self) -> str:
        environment = {"BHEMU_CACHE_DIR": str(self.cache), "PYTHONPATH": str(self.root)}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def kept(self) -> Path:
        (file,) = (path for path in self.cache.glob("SEMPOST-*") if path.suffix != ".lock")
        return file


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@compiled_only
def test_an_edited_callee_is_compiled_again_and_back(tree: Tree) -> None:
    assert tree.run() == "0 1 compiled"
    assert tree.run() == "0 1 kept"
    callee = tree.root / "bhemu" / "tensix" / "semaphores.py"
    text = callee.read_text()
    assert text.count("s.sem[i & 7] += 1") == 1
    callee.write_text(text.replace("s.sem[i & 7] += 1", "s.sem[i & 7] += 3"))
    assert tree.run() == "0 3 compiled"
    callee.write_text(text + "\n# a comment\n")
    assert tree.run() == "0 1 kept"


@compiled_only
def test_what_is_damaged_or_foreign_is_compiled_again(tree: Tree) -> None:
    assert tree.run() == "0 1 compiled"
    file, good = tree.kept(), tree.kept().read_bytes()
    for at in (0, 30, len(good) // 2, len(good) - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        file.write_bytes(bad)
        assert tree.run() == "0 1 compiled"
        assert file.read_bytes() == good, "compiling is repeatable, and the file is replaced"
    file.write_bytes(good[:-1])
    assert tree.run() == "0 1 compiled"
    file.chmod(0o620)
    assert tree.run() == "0 1 compiled"
    assert file.stat().st_mode & 0o777 == 0o600
    file.rename(tree.root / "elsewhere")
    file.symlink_to(tree.root / "elsewhere")
    assert tree.run() == "0 1 compiled"
    assert not file.is_symlink()
    assert tree.run() == "0 1 kept"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    return tmp_path


def test_what_was_written_is_read(folder: Path) -> None:
    cache.write("name", b"data")
    assert cache.read("name") == b"data"
    assert cache.read("other") is None
    assert [path.name for path in folder.iterdir()] == ["name"]


def test_only_the_newest_notes_are_kept(folder: Path) -> None:
    for i, name in enumerate(("keys-c", "keys-a", "keys-b", "other")):
        cache.write(name, b"data")
        os.utime(folder / name, (i, i))
    cache.prune("keys-", 2)
    assert sorted(path.name for path in folder.iterdir()) == ["keys-a", "keys-b", "other"]


def test_a_file_under_another_name_is_not_believed(folder: Path) -> None:
    cache.write("name", b"data")
    (folder / "name").rename(folder / "other")
    assert cache.read("other") is None


def test_what_is_no_plain_file_is_as_if_absent(folder: Path) -> None:
    """A pipe is not waited for, neither for reading nor as a lock; a folder is no error."""
    os.mkfifo(folder / "pipe")
    (folder / "below").mkdir()
    (folder / "link").symlink_to("/dev/zero")
    assert [cache.read(name) for name in ("pipe", "below", "link")] == [None, None, None]
    os.mkfifo(folder / "entry.lock")
    (folder / "other.lock").mkdir()
    for name in ("entry", "other"):
        with cache.alone(name) as waited:
            assert waited is False
    cache.write("pipe", b"data")
    assert cache.read("pipe") == b"data"
    cache.write("below", b"data")
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["pipe"]


def test_a_file_of_somebody_else_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write("name", b"data")
    monkeypatch.setattr(cache.os, "geteuid", lambda: os.getuid() + 1)
    assert cache.read("name") is None


def test_a_folder_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path / "absent")
    monkeypatch.setattr(cache, "problem", [])
    cache.write("name", b"data")
    assert cache.read("name") is None
    assert cache.problem == ["No such file or directory"]


def test_a_folder_that_others_can_write_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    monkeypatch.setenv("BHEMU_CACHE_DIR", str(open_folder))
    assert cache.root.__wrapped__() == open_folder
    assert open_folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere", "link"])
def test_a_chosen_folder_that_cannot_be_used_is_bad_input(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    command = [sys.executable, "-m", "bhemu", "run", str(PACKAGE.parent / "elfs" / "add1")]
    environment = {**os.environ, "BHEMU_CACHE_DIR": str(tmp_path / place)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: BHEMU_CACHE_DIR: {tmp_path / place}: ")
    assert "name a folder that you own and can write, or unset it" in done.stderr


def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the user's own one nor the temporary one, if another user owns them."""
    monkeypatch.delenv("BHEMU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.os, "geteuid", lambda: os.getuid() + 1)
    found = cache.root.__wrapped__()
    assert found not in (tmp_path / "bhemu", tmp_path / f"bhemu-{os.getuid()}")
    assert found.is_dir() and found.stat().st_mode & 0o777 == 0o700


def test_without_a_folder_of_its_own_the_cache_is_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("BHEMU_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache.root.__wrapped__() == tmp_path / f"bhemu-{os.getuid()}"
