"""The host processor's level, the code that a wheel ships for it, and the package's sources."""

import functools
import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from bhemu.jit import cache

# The tools that compile and the processor that runs the code, known without loading the tools.

_TOOLS = ("numba", "llvmlite")
_NEUTRAL = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"}
# Levels of x86-64, the best first, with what /proc/cpuinfo calls the features that they add.
_LEVEL_2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
_LEVEL_3 = f"{_LEVEL_2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
_LEVEL_4 = f"{_LEVEL_3} avx512f avx512bw avx512cd avx512dq avx512vl"
LEVELS = {"x86-64-v4": _LEVEL_4, "x86-64-v3": _LEVEL_3, "x86-64-v2": _LEVEL_2}
ARM = "aarch64"  # every AArch64 processor
CARRIED = (*LEVELS, ARM)  # for which a wheel carries code
_LEVEL = "BHEMU_LEVEL"


def _version(tool: str) -> str:
    """What a tool's version file says, or the version it gives itself."""
    spec = importlib.util.find_spec(tool)
    if spec is None or spec.origin is None:
        return "absent"
    try:
        return Path(spec.origin).with_name("_version.py").read_text()
    except OSError:
        return str(importlib.import_module(tool).__version__)


def settings() -> list[tuple[str, str]]:
    """Variables of the environment that change what numba compiles."""
    found = os.environ.items()
    return sorted((k, v) for k, v in found if k.startswith("NUMBA_") and k not in _NEUTRAL)


@functools.cache
def _flags() -> list[str]:
    """What the first processor executes, as Linux calls it; [] on other machines than x86-64."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return []
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.split()[2:] for line in lines if line.startswith("flags")), [])
    except OSError:
        return []


def executed() -> tuple[str, ...]:
    """The levels of x86-64 that this processor executes, the best first; or ARM alone."""
    if os.uname().machine in (ARM, "arm64"):
        return (ARM,)
    flags = set(_flags())
    return tuple(name for name, needed in LEVELS.items() if set(needed.split()) <= flags)


def level() -> str:
    """Which of CARRIED this machine compiles for and loads: that of $BHEMU_LEVEL, or the best.

    "" for an x86-64 of no level. InputError for a level that is unknown, or that this machine does
    not execute.
    """
    name = os.environ.get(_LEVEL, "")
    if not name:
        return next(iter(executed()), "")
    if name not in LEVELS:
        raise InputError(f"{_LEVEL}: no level {name}", hint=f"known: {', '.join(LEVELS)}")
    if missing := set(LEVELS[name].split()) - set(_flags()):
        raise InputError(
            f"{_LEVEL}: this processor does not execute {name}: it has no {min(missing)}",
            hint="unset it, or name a lower level",
        )
    return name


@functools.cache
def tools() -> str:
    """Versions of what compiles, its settings, and what processors it compiles for."""
    versions = [(tool, _version(tool)) for tool in _TOOLS]
    import numpy as np  # a tenth of a second, which the sources' hash does without

    return repr((versions, np.__version__, sys.version, settings(), os.uname().machine, level()))


# Which sources this process runs, as one number.
#
# Keys are made by looking into every function that an entry can reach, which takes a tenth of a
# second.  They are the same as long as no source file of the package changes, so what was found is
# noted under a hash of all of them.

PACKAGE = Path(__file__).resolve().parent.parent
_SINCE = time.time_ns()
_TICK = 2_000_000_000  # nanoseconds, as the coarsest file system counts


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for entry in sorted(found, key=lambda entry: entry.name):
            if entry.name.endswith((".py", "_record.txt", "_fields.json")):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path)


@functools.cache
def fingerprint() -> str:
    """Hash of every source file; "" when one has changed since this module was loaded.

    What is loaded by then may be older than the files, so nothing can be said about it. The hash is
    kept under what the system says of the files, while their last change is long enough ago that
    no other can have been in the same tick of its clock.
    """
    found = [(path, os.stat(path)) for path in _files(str(PACKAGE))]
    newest = max(state.st_ctime_ns for _, state in found)
    about = [(path, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in found]
    name = f"{cache.SOURCES}{hashlib.sha256(repr(about).encode()).hexdigest()[:32]}"
    settled = newest < _SINCE - _TICK
    if settled and (kept := cache.read(name)):
        return kept.decode()
    digest = hashlib.blake2b(digest_size=16)
    start = len(str(PACKAGE))
    for path, _ in found:
        with open(path, "rb") as opened:
            if os.fstat(opened.fileno()).st_ctime_ns > _SINCE:
                return ""
            content = opened.read()
        digest.update(f"{path[start:]} {len(content)}\n".encode() + content)
    if settled:
        cache.write(name, digest.hexdigest().encode())
        cache.prune(cache.SOURCES, 20)
    return digest.hexdigest()


# Machine code that a wheel carries, for processors (CARRIED) and exactly the sources in the wheel.
#
# It needs no key: it was made from these sources, whatever Python, NumPy or numba is here.  When a
# source has been edited, on another processor, or when the environment asks for other code, it is
# as if it were absent.  scripts/make_objects.py makes the files.

FOLDER = PACKAGE / "data"
_DIGEST = 32


def pack(images: dict[str, bytes]) -> bytes:
    """The content of the file that holds packed images by the labels of their entries."""
    places: dict[str, tuple[int, int]] = {}
    body = bytearray()
    for label, image in images.items():
        places[label] = len(body), len(image)
        body += hashlib.sha256(label.encode() + b"\0" + image).digest() + image
    head = json.dumps({"sources": fingerprint(), "entries": places}).encode()
    return len(head).to_bytes(4, "little") + head + body


@functools.cache
def _entries(folder: Path) -> tuple[Path, int, dict[str, Any]]:
    """(file, where its first image begins, places by label); no places where none counts."""
    path = folder / f"{level()}.code"
    nothing: tuple[Path, int, dict[str, Any]] = path, 0, {}
    if settings():
        return nothing
    try:
        with path.open("rb") as opened:
            size = int.from_bytes(opened.read(4), "little")
            head = json.loads(opened.read(size))
    except (OSError, ValueError):
        return nothing
    if head["sources"] != fingerprint():
        return nothing
    return path, 4 + size, head["entries"]


def carries() -> bool:
    """Whether there is code of a wheel that counts."""
    return bool(_entries(FOLDER)[2])


def find(label: str) -> bytes | None:
    """The packed image of an entry; None where there is none, or a damaged one."""
    path, begin, places = _entries(FOLDER)
    if label not in places:
        return None
    at, length = places[label]
    with path.open("rb") as opened:
        opened.seek(begin + at)
        digest, image = opened.read(_DIGEST), opened.read(length)
    return image if digest == hashlib.sha256(label.encode() + b"\0" + image).digest() else None
