"""Where compiled code is kept, and why what is found there can be trusted.

Machine code runs with all rights of the user.  So a file counts only if it and its folder belong to
this user, no other user can write to them, it is no symbolic link, and its checksum and name are
right; anything else is as if it were absent.  SECURITY.md says what this protects from.
"""

import fcntl
import functools
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bhemu.errors import InputError
from bhemu.system import whole_file

_MAGIC = b"bhemu machine code 1\n"
KEYS, SOURCES, ENGINES = NOTES = ("keys-", "sources-", "engine-")
"""How the names of files begin that hold no code."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@functools.cache
def root() -> Path:
    """$BHEMU_CACHE_DIR, else the user's cache folder, else a temporary folder.

    What killed runs have left of files they were writing there is removed. InputError when the
    folder of the environment variable cannot be used.
    """
    if chosen := os.environ.get("BHEMU_CACHE_DIR"):
        folder = Path(chosen)
        if problem := _unusable(folder):
            raise InputError(
                f"BHEMU_CACHE_DIR: {chosen}: {problem}",
                hint="name a folder that you own and can write, or unset it",
            )
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bhemu"
        if _unusable(folder):
            import tempfile

            folder = Path(tempfile.gettempdir()) / f"bhemu-{os.getuid()}"
            if _unusable(folder):  # another process was there first
                folder = Path(tempfile.mkdtemp(prefix="bhemu-"))
    whole_file.clear(folder)
    return folder


def _unusable(folder: Path) -> str:
    """Why nothing can be kept in a folder, which is made when there is none; "" when it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode):
            return "it is a symbolic link"
        if state.st_uid != os.geteuid():
            return "it belongs to another user"
        if state.st_mode & _OTHERS:
            folder.chmod(stat.S_IMODE(state.st_mode) & ~_OTHERS)
        if not os.access(folder, os.W_OK | os.X_OK):
            return "Permission denied"
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _sealed(name: str, data: bytes) -> bytes:
    """The content of the file `name` that holds `data`."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\0" + data).digest() + data


def read(name: str) -> bytes | None:
    """What was kept under a name; None for what is absent, damaged or not certainly ours."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe does not wait
        with open(os.open(root() / name, flags), "rb") as opened:
            state = os.fstat(opened.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid():
                return None
            if state.st_mode & _OTHERS:
                return None
            content = opened.read()
    except OSError:  # absent, a link, a folder
        return None
    data = content[len(_MAGIC) + 32 :]
    return data if content == _sealed(name, data) else None


def has(name: str) -> bool:
    """Whether an entry is kept under a name, valid or not."""
    return (root() / name).exists()


problem: list[str] = []  # why the last entry that could not be kept was not


def write(name: str, data: bytes) -> None:
    """Keep `data` under a name; `problem` says why it could not be kept."""
    place, sealed = root() / name, _sealed(name, data)
    try:
        whole_file.write(place, lambda file: file.write(sealed), mode=0o600, durable=False)
    except OSError as error:
        problem[:] = [error.strerror or str(error)]


def prune(prefix: str, keep: int) -> None:
    """Remove all but the newest files whose names begin so."""
    with suppress(OSError):
        found = sorted(root().glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime)
        for path in found[:-keep]:
            path.unlink()


class BusyError(Exception):
    """Another process is compiling this entry."""


@contextmanager
def alone(name: str, wait: bool = True) -> Iterator[bool]:
    """Compile an entry while no other process does; True after a wait, BusyError instead of one."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        lock = os.fdopen(os.open(root() / f"{name}.lock", flags, 0o600), "w")
    except OSError:  # a folder that cannot be written, or something else stands there
        yield False
        return
    waited = False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise BusyError from None
            waited = True
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield waited
