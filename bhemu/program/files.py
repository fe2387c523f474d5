"""Files that bhemu reads and writes: whole, never half; how much each may ask for."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError
from bhemu.system import whole_file

# How much a file may ask for: checked before anything is allocated, settable by the environment.
#
# `BHEMU_LIMIT_ELF_BYTES=256M` sets the limit `ELF_BYTES`; K, M and G are 2^10, 2^20 and 2^30.


_PREFIX = "BHEMU_LIMIT_"
_VALUE = re.compile(r"([0-9]{1,15})([KMG]?)")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


class Limit(NamedTuple):
    """One limit: its default and what it bounds."""

    default: int
    doc: str


LIMITS = {
    "PROGRAM_BYTES": Limit(256 << 10, "size of a PROGRAM.toml, of a SWEEP.toml"),
    "PROGRAM_DEPTH": Limit(16, "nested brackets, and parts of a dotted key, in a PROGRAM.toml"),
    "ELF_BYTES": Limit(64 << 20, "size of an ELF"),
    "ELF_SEGMENTS": Limit(256, "program headers of an ELF"),
    "ELF_SECTIONS": Limit(8192, "section headers of an ELF"),
    "ELF_SYMBOLS": Limit(100_000, "symbols of an ELF"),
    "ELF_NAMES": Limit(16 << 20, "bytes of all symbol names of an ELF"),
    "LINE_BYTES": Limit(16 << 20, "size of a DWARF section with line numbers, unpacked"),
    "LINE_STEPS": Limit(400_000, "steps through .debug_line of an ELF"),
    "DWARF_BYTES": Limit(64 << 20, "size of all debug sections of an ELF, unpacked"),
    "DWARF_ENTRIES": Limit(400_000, "entries of .debug_info of an ELF"),
    "DWARF_STEPS": Limit(8_000_000, "steps through .debug_info of an ELF"),
    "ARRAY_BYTES": Limit(64 << 20, "size of an input or expected array, and of a picture of L1"),
    "ARCHIVE_BYTES": Limit(64 << 20, "size of an .npz: a saved state, a picture of L1"),
    "SESSION_BYTES": Limit(2 << 30, "size of a recorded session, packed and unpacked"),
    "COVERAGE_BYTES": Limit(256 << 20, "size of a file of `bhemu explain --coverage`"),
    "MESSAGE_BYTES": Limit(1 << 30, "data of one message between a host and `bhemu serve`"),
    "SWEEP_RUNS": Limit(1_000_000, "runs of a SWEEP.toml"),
    "SOURCE_BYTES": Limit(4 << 20, "size of a source file whose lines are shown"),
}


def limit(name: str) -> int:
    """The value of a limit; InputError when the environment holds no number for it."""
    if (text := os.environ.get(_PREFIX + name)) is None:
        return LIMITS[name].default
    if (found := _VALUE.fullmatch(text)) is None:
        hint = "a number of bytes or things, as in 64M"
        raise InputError(f"{_PREFIX}{name} = {text!r} is no limit", hint=hint)
    return int(found[1]) << _UNITS[found[2]]


def check_limit(name: str, value: int, subject: str) -> None:
    """InputError when `value`, of `subject`, is more than the limit called `name`."""
    most = limit(name)
    if value > most:
        hint = f"{_PREFIX}{name} sets the limit"
        raise InputError(f"{subject}: {value}, the limit is {most} ({LIMITS[name].doc})", hint=hint)


CONFINED = "BHEMU_CONFINED"
"""The variable that names a folder: outside of it no file of a user is read or written."""
_PACKAGE = Path(__file__).parents[1]


def _check_confined(path: Path, *, write: bool = False) -> None:
    """OSError for what lies outside of $BHEMU_CONFINED, with every link followed.

    The package's own files may be read.
    """
    folder = os.environ.get(CONFINED)
    if not folder or is_inside(path, Path(folder)):
        return
    if write or not is_inside(path, _PACKAGE):
        raise PermissionError(errno.EACCES, f"it lies outside of {folder}")


def read_bytes(path: Path, limit: str, origin: str = "") -> bytes:
    """The contents of a file of at most the limit called `limit`; InputError, and nothing else.

    It is read up to the size it states, so that no file of a system folder blocks.
    """
    name = f"{origin}: {path}" if origin else f"{path}:"
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            check_limit(limit, size, f"{name} bytes")
            return file.read(size)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        hint = "write what it gives to a file" if isinstance(error, _NoRegularFileError) else ""
        hint = hint_for_missing(path) if isinstance(error, FileNotFoundError) else hint
        raise InputError(f"{name} cannot be read: {reason(error)}", hint=hint) from error


class _NoRegularFileError(OSError):
    """Reading might wait for ever, or change something."""


def open_regular(path: Path) -> IO[bytes]:
    """A file to read; OSError, for a folder, pipe or device too, on none of which it waits."""
    _check_confined(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    raise _NoRegularFileError(errno.EINVAL, f"it is {_kind(mode)}, no regular file")


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def special(path: Path) -> str:
    """What is there in place of a file: a pipe, a device; "" for a file, a folder, nothing."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _kind(mode)


def _holds(question: Callable[[], bool]) -> bool:
    """The answer of the file system; False for a name that cannot be, or a loop of links."""
    try:
        return question()
    except (OSError, RuntimeError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Whether there is a regular file; False too for a name that no file can have."""
    return _holds(path.is_file)


def begins_with(path: Path, magic: bytes) -> bool:
    """Whether a regular file begins with these bytes; False for one that cannot be read.

    What states no size, as files of a system folder, is not read: that may block.
    """
    try:
        with open_regular(path) as file:
            long_enough = os.fstat(file.fileno()).st_size >= len(magic)
            return long_enough and file.read(len(magic)) == magic
    except (OSError, ValueError):
        return False


def is_missing(path: Path) -> bool:
    """Whether nothing is there."""
    return _holds(lambda: not path.exists())


def hint_for_missing(path: Path) -> str:
    """What may have been meant by a file that is not there: the nearest name, or where it is not.

    Of a folder that may not be read nothing is told.
    """
    folder = path.parent
    if not is_folder(folder):
        return f"there is no folder {folder}"
    try:
        _check_confined(folder)
        near = did_you_mean(path.name, os.listdir(folder))
    except OSError:
        near = ""
    return near or f"it is looked for in {'the current folder' if folder == Path() else folder}"


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False too for a name that no folder can have."""
    return _holds(path.is_dir)


def is_inside(path: Path, folder: Path) -> bool:
    """Whether `path`, with every link followed, lies in `folder`."""
    return _holds(lambda: path.resolve().is_relative_to(folder.resolve()))


def same(path: Path, other: Path) -> bool:
    """Whether two names stand for one file, there already or not."""
    return _holds(lambda: path.resolve() == other.resolve() or path.samefile(other))


NAME_ANOTHER = "name another folder"
"""The hint where something cannot be written."""


def check_writable(path: Path, origin: str, keep: Iterable[Path] = ()) -> None:
    """InputError when a file at `path` could not be written later, or is one of `keep`."""
    _check_target(path, origin)
    if any(same(path, other) for other in keep):
        raise InputError(f"{origin}: {path} is a file of the program", hint="name another file")
    try:
        scratch, file = whole_file.make(path)
        file.close()
        scratch.unlink()
    except (OSError, ValueError) as error:
        text = f"{origin}: {path} cannot be written: {reason(error)}"
        raise InputError(text, hint=NAME_ANOTHER) from error


def write_whole(path: Path, content: bytes | Callable[[Any], None], origin: str) -> None:
    """Create `path`: a reader sees the old file or the whole new one, always.

    content: the bytes, or what writes them to a file. The mode of an old file is kept; what is no
    regular file is neither followed nor replaced.
    """
    _check_target(path, origin)
    try:
        whole_file.write(path, content if callable(content) else lambda file: file.write(content))
    except (OSError, ValueError) as error:
        text = f"{origin}: {path} cannot be written: {reason(error)}"
        raise InputError(text, hint=NAME_ANOTHER) from error


def reason(error: OSError | ValueError) -> str:
    """What is wrong with a file, in words."""
    return getattr(error, "strerror", None) or str(error)


def _check_target(path: Path, origin: str) -> None:
    """What is there, if anything, is a regular file and no link."""
    try:
        _check_confined(path, write=True)
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(f"{origin}: {path} cannot be written: {reason(error)}") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{origin}: {path} is a folder")
    if stat.S_ISLNK(mode):
        raise InputError(f"{origin}: {path} is a symbolic link", hint="name the file itself")
    if not stat.S_ISREG(mode):
        raise InputError(f"{origin}: {path} is no regular file", hint="name another file")
