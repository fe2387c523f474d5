"""Files written whole: a reader finds the old one or the new one, whenever the writer was killed.

A file is made under a name of its own, brought to the disk, and then takes its place. What a killed
writer leaves is removed before the next one writes: a writer that lives has a lock on its scratch.
"""

import base64
import fcntl
import os
import re
import stat
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

_LONGEST = 100  # characters of a name that its scratch begins with
_SCRATCH = re.compile(r"\.(.+)\.[0-9a-f]{16}")
_OLDER = re.compile(r"[^.].*\.[0-9a-f]{12}")  # as the cache named its own once
_TRIES = 10


def write(
    path: Path, fill: Callable[[Any], object], *, mode: int | None = None, durable: bool = True
) -> None:
    """Create or replace `path` by `fill(file)`; OSError, and whatever `fill` raises.

    `mode` is the file's; without one that of the old file, or what is usual. `durable`: it is on
    the disk when this returns, so that a power failure takes neither the old file nor the new one;
    what can be made again does without.
    """
    clear(path.parent, path.name)
    scratch, file = make(path, 0o666 if mode is None else mode)
    try:
        with file:
            fill(file)
            file.flush()
            if mode is None and path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            if durable:
                os.fsync(file.fileno())
            os.replace(scratch, path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
    if durable:
        folder = path.parent
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def make(path: Path, mode: int = 0o666) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, of a name that cannot be foreseen and is no link, and locked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_TRIES):
        scratch = path.with_name(f".{path.name[:_LONGEST]}.{os.urandom(8).hex()}")
        file = os.fdopen(os.open(scratch, flags, mode), "wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process has taken it for a dead one's
            file.close()
            continue
        except OSError:  # a file system without locks
            return scratch, file
        if os.fstat(file.fileno()).st_nlink:
            return scratch, file
        file.close()
    raise OSError(f"a file beside {path} is removed again and again")


def clear(folder: Path, name: str = "") -> None:
    """Remove what killed writers have left in a folder, of files of this name or of all."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if "." not in (entry.name[-17:-16], entry.name[-13:-12]):
                continue  # of neither pattern: a cache holds thousands of these
            found = _SCRATCH.fullmatch(entry.name)
            ours = found is not None and (not name or found[1] == name[:_LONGEST])
            if ours or (not name and _OLDER.fullmatch(entry.name)):
                with suppress(OSError):
                    _remove(Path(entry.path))


def _remove(scratch: Path) -> None:
    """Remove a scratch that no process writes."""
    about = scratch.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        return
    with open(os.open(scratch, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        scratch.unlink()


# A temporary folder that goes with the process that made it, even when that one is killed.

# Its input ends when the process that writes there does; a session of its own, so that what is
# sent to the terminal's processes does not reach it; the folder's name, which has bhemu's in it, is
# no word of the command, so that what ends processes by name does not reach it either.
_GUARD = ("/bin/sh", "-c", 'trap "" HUP INT TERM; read -r _; rm -rf -- "$FOLDER"')


class Temporary:
    """The folder `path`, whose name begins with `prefix`; `close` removes it."""

    def __init__(self, prefix: str) -> None:
        import subprocess  # takes milliseconds, which few runs need
        import tempfile

        name = base64.b32encode(os.urandom(5)).decode().lower()
        self.path = Path(tempfile.gettempdir()) / f"{prefix}{name}"
        guard: subprocess.Popen[bytes] | None = None
        none = subprocess.DEVNULL
        with suppress(OSError):  # without a shell it stays behind when the process is killed
            guard = subprocess.Popen(
                _GUARD,
                env={**os.environ, "FOLDER": str(self.path)},
                stdin=subprocess.PIPE,
                stdout=none,
                stderr=none,
                cwd="/",
                start_new_session=True,
            )
        try:
            self.path.mkdir(mode=0o700)
        except OSError:  # what stands there is not for the guard to remove
            if guard is not None:
                guard.kill()
                guard.communicate()
            raise
        self.close = weakref.finalize(self, _clean_up, self.path, guard, os.getpid())


def _clean_up(path: Path, guard: "subprocess.Popen[bytes] | None", maker: int) -> None:
    if os.getpid() != maker:  # a copy of the process by fork: it is the maker's
        return
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if guard is not None:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
