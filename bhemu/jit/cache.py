"""Where compiled code is kept: one folder per entry, named by a hash of all it is made from.

numba notices edits of the file that defines a function but not of the functions it calls. So every
entry is compiled from a small generated file in a folder of its own, named by a hash of that text,
of every module of bhemu that it can reach by imports, of the tools and of the CPU. An edit of the
vector unit compiles the vector unit again and nothing else; a second checkout shares the code.
"""

import fcntl
import functools
import hashlib
import importlib.util
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import llvmlite
import llvmlite.binding
import numba
import numpy as np

from bhemu.errors import InputError

_PACKAGE = Path(__file__).resolve().parent.parent
_NAME = _PACKAGE.name
RECORD = f"{_NAME}.tensix.record"  # what every entry is compiled with: the record type


def _file_of(module: str) -> Path | None:
    """Source file of a module of this package; None of any other."""
    head, *parts = module.split(".")
    if head != _NAME:
        return None
    path = _PACKAGE.joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def _text(path: Path) -> bytes:
    return path.read_bytes()


_FROM = re.compile(rf"^ *from ({_NAME}[\w.]*) import (\([^)]*\)|[^\n]*)", re.M)
_IMPORT = re.compile(rf"^ *import ({_NAME}[\w.]*)", re.M)


def _imports(path: Path) -> set[Path]:
    """Files of this package that a file imports names from.

    `from package import submodule` reaches the submodule, not the package's own file.
    """
    text = _text(path).decode()
    found = {_file_of(module) for module in _IMPORT.findall(text)}
    for module, names in _FROM.findall(text):
        for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)):
            inner = _file_of(f"{module}.{name}")
            found.add(inner if inner and inner.exists() else _file_of(module))
    return {path for path in found if path is not None}


@functools.cache
def _direct(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(_imports(path)))


def closure(*modules: str) -> list[Path]:
    """Every source file of this package that modules can reach by imports, sorted."""
    todo = [path for module in modules if (path := _file_of(module))]
    assert len(todo) == len(modules), modules
    seen = set(todo)
    while todo:
        new = set(_direct(todo.pop())) - seen
        seen |= new
        todo += new
    return sorted(seen)


def _tools() -> bytes:
    cpu = (llvmlite.binding.get_host_cpu_name(), platform.machine())
    return repr(
        (numba.__version__, llvmlite.__version__, np.__version__, sys.version, cpu)
    ).encode()


def key(modules: list[Path], text: str = "") -> str:
    """Hash of these sources, of a text, of the tools and the CPU."""
    digest = hashlib.sha256(_tools() + text.encode())
    for path in modules:
        digest.update(str(path.relative_to(_PACKAGE)).encode() + _text(path))
    return digest.hexdigest()[:20]


@functools.cache
def root() -> Path:
    """$BHEMU_CACHE_DIR, else the user's cache folder, else a temporary folder.

    InputError when the folder of the environment variable cannot be written.
    """
    if chosen := os.environ.get("BHEMU_CACHE_DIR"):
        if problem := _unusable(Path(chosen)):
            raise InputError(
                f"BHEMU_CACHE_DIR: {chosen}: {problem}",
                hint="name a folder that can be written, or unset it",
            )
        return Path(chosen)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bhemu"
    if _unusable(folder):
        folder = Path(tempfile.gettempdir()) / f"bhemu-{os.getuid()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _unusable(folder: Path) -> str:
    """Why nothing can be kept in a folder, which is made when there is none; "" when it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


class BusyError(Exception):
    """Another process is compiling this entry."""


def folder(name: str, module: str, text: str) -> Path:
    """Folder of the entry `name` that the generated `text`, which calls into `module`, defines."""
    return root() / f"{name}-{key(closure(module, RECORD), text)}"


def present(place: Path) -> bool:
    """Whether an entry's folder holds compiled code."""
    return any(place.glob("*/*.nbi"))


@contextmanager
def alone(place: Path, wait: bool = True) -> Iterator[bool]:
    """Compile an entry while no other process does; True after a wait, BusyError instead of one."""
    try:
        lock = (place / "lock").open("w")
    except OSError:  # a folder that cannot be written
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


def generated(name: str, module: str, text: str) -> ModuleType:
    """The generated module `text` that calls into `module`, as a real file in its own folder."""
    place = folder(name, module, text)
    stamp, path = place.name.rpartition("-")[2], place / "entry.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text)
        os.replace(scratch, path)
    spec = importlib.util.spec_from_file_location(f"bhemu_entry_{name}_{stamp}", path)
    assert spec is not None and spec.loader is not None
    built = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = built
    spec.loader.exec_module(built)
    return built
