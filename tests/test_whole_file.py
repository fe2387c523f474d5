"""Files are whole whenever their writer is killed; what it leaves is removed by the next one."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu
from bhemu.jit import cache
from bhemu.system import whole_file

TESTS = Path(__file__).parent
KILLS = 500 if os.environ.get("BHEMU_LONG") else 40
NEW = ".y.bin.0123456789abcdef"


def put(path: Path, data: bytes = b"new") -> None:
    whole_file.write(path, lambda file: file.write(data))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_writer_has_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / NEW).write_bytes(b"half")
    (tmp_path / NEW.replace("y", "z")).write_bytes(b"of another file")
    (tmp_path / ".y.bin.notes").write_bytes(b"of somebody else")
    put(tmp_path / "y.bin")
    assert names(tmp_path) == [".y.bin.notes", NEW.replace("y", "z"), "y.bin"]


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    with (tmp_path / NEW).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        put(tmp_path / "y.bin")
        whole_file.clear(tmp_path)
        assert names(tmp_path) == [NEW, "y.bin"]
    whole_file.clear(tmp_path)
    assert names(tmp_path) == ["y.bin"]


def test_links_pipes_and_files_of_others_stay(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / NEW).symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / NEW.replace("0", "1"))
    (tmp_path / NEW.replace("0", "2")).mkdir()
    before = names(tmp_path)
    whole_file.clear(tmp_path)
    assert names(tmp_path) == before
    (tmp_path / NEW.replace("0", "3")).write_bytes(b"half")
    monkeypatch.setattr(os, "geteuid", lambda: 1 << 20)
    whole_file.clear(tmp_path)
    assert len(names(tmp_path)) == len(before) + 1


def test_a_start_clears_the_cache(tmp_path: Path, monkeypatch) -> None:
    for name in (".ADD-12.0123456789abcdef", "ADD-12.0123456789ab", "ADD.lock", "ADD-12"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setenv("BHEMU_CACHE_DIR", str(tmp_path))
    cache.root.cache_clear()
    try:
        assert cache.root() == tmp_path
    finally:
        monkeypatch.undo()
        cache.root.cache_clear()
    assert names(tmp_path) == ["ADD-12", "ADD.lock"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch, durable: bool
) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, r=real: done.append(n) or r(*a))
    whole_file.write(tmp_path / "y", lambda file: file.write(b"x"), durable=durable)
    assert done == (["fsync", "replace", "fsync"] if durable else ["replace"])


def test_no_other_place_of_the_package_replaces_a_file() -> None:
    """One function writes what must be whole."""
    package = Path(bhemu.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "os.replace(" in path.read_text() or "os.rename(" in path.read_text()
    }
    # A compiler writes the latter's file itself, and another process may not see half of it.
    assert found == {"system/whole_file.py"}


def test_killed_writers_leave_nothing_half(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TESTS / "killed_writers.py"), str(tmp_path), str(KILLS), "5"],
        capture_output=True, text=True, timeout=600 + 3 * KILLS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert set(json.loads(done.stdout)) == {"states", "arrays", "entries", "journals", "scratches"}
