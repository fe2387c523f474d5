"""Files of a user and of a program: read under a limit, kept inside a folder, written whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from bhemu import limits
from bhemu.errors import InputError


def read_bytes(path: Path, limit: str, origin: str = "") -> bytes:
    """The contents of a file of at most the limit called `limit`; InputError, and nothing else.

    A regular file is read up to the size it states, so that no file of a system folder blocks.
    """
    name = f"{origin}: {path}" if origin else f"{path}:"
    try:
        with path.open("rb") as file:
            return _contents(file, limit, name)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{name} cannot be read: {_reason(error)}") from error


def _contents(file: IO[bytes], limit: str, name: str) -> bytes:
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode):
        limits.check(limit, about.st_size, f"{name} bytes")
        return file.read(about.st_size)
    most = limits.limit(limit)
    data = file.read(most + 1)
    limits.check(limit, len(data), f"{name} bytes, at least")
    return data


def is_file(path: Path) -> bool:
    """Whether there is a regular file; False too for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def begins_with(path: Path, magic: bytes) -> bool:
    """Whether a regular file begins with these bytes; False for one that cannot be read.

    What states no size, as files of a system folder, is not read: that may block.
    """
    try:
        with path.open("rb") as file:
            long_enough = os.fstat(file.fileno()).st_size >= len(magic)
            return long_enough and file.read(len(magic)) == magic
    except (OSError, ValueError):
        return False


def is_missing(path: Path) -> bool:
    """Whether nothing is there."""
    try:
        return not path.exists()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False too for a name that no folder can have."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_inside(path: Path, folder: Path) -> bool:
    """Whether `path`, with every link followed, lies in `folder`."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that cannot be
        return False


def same(path: Path, other: Path) -> bool:
    """Whether two names stand for one file, there already or not."""
    try:
        return path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError, ValueError):
        return False


def check_writable(path: Path, origin: str, keep: Iterable[Path] = ()) -> None:
    """InputError when a file at `path` could not be written later, or is one of `keep`."""
    _check_target(path, origin)
    if any(same(path, other) for other in keep):
        raise InputError(f"{origin}: {path} is a file of the program", hint="name another file")
    try:
        scratch, file = _scratch(path)
        file.close()
        scratch.unlink()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{origin}: {path} cannot be written: {_reason(error)}", hint="name another folder"
        ) from error


def write_whole(path: Path, write: Callable[[Any], None], origin: str) -> None:
    """Create `path` by `write(file)`: a reader sees the old file or the whole new one.

    The mode of an old file is kept; what is no regular file is neither followed nor replaced.
    """
    _check_target(path, origin)
    scratch: Path | None = None
    try:
        scratch, file = _scratch(path)
        with file:
            write(file)
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        os.replace(scratch, path)
    except (OSError, ValueError) as error:
        raise InputError(f"{origin}: {path} cannot be written: {_reason(error)}") from error
    finally:
        if scratch is not None:
            scratch.unlink(missing_ok=True)


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _check_target(path: Path, origin: str) -> None:
    """What is there, if anything, is a regular file and no link."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{origin}: {path} cannot be written: {_reason(error)}") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{origin}: {path} is a folder")
    if stat.S_ISLNK(mode):
        raise InputError(f"{origin}: {path} is a symbolic link", hint="name the file itself")
    if not stat.S_ISREG(mode):
        raise InputError(f"{origin}: {path} is no regular file", hint="name another file")


def _scratch(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `path`, of a name nobody could foresee and of nobody's link."""
    scratch = path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return scratch, os.fdopen(os.open(scratch, flags, 0o666), "wb")
