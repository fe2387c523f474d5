"""libbhemu.so, which hosts load in place of a card: its C sources, and how it comes to be."""

import importlib.util
import platform
import subprocess
import sys
from pathlib import Path

import bhemu
from bhemu.errors import InputError

NAME = "libbhemu.so"
_SOURCES = Path(__file__).parent
_TARGET = "x86_64-linux-gnu.2.28"  # the oldest C library that Pythons with wheels of ttnn need
_SHIPPED = Path(bhemu.__file__).parent / "data" / "libbhemu-x86_64.so"
_FLAGS = (
    *("-target", _TARGET, "-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror"),
    *("-fno-sanitize=all", "-fvisibility=hidden", "-s"),
)


def build(to: Path) -> None:
    """Compile the library, with ziglang's C compiler; RuntimeError with what it says."""
    sources = [str(path) for path in sorted(_SOURCES.glob("*.c"))]
    command = [sys.executable, "-m", "ziglang", "cc", *_FLAGS, "-o", str(to), *sources]
    done = subprocess.run([*command, "-ldl", "-lpthread"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def content() -> bytes:
    """The library for this machine: the wheel's, or a checkout's.

    InputError where there is none.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        text = f"there is no {NAME} for {sys.platform} on {platform.machine()}"
        raise InputError(text, hint="TT_METAL_SIMULATOR=FOLDER needs none")
    if not _SHIPPED.exists():
        if importlib.util.find_spec("ziglang") is None:
            text = f"this checkout has no {NAME}, and no compiler for it"
            raise InputError(text, hint="pip install ziglang==0.17.0, then make library")
        build(_SHIPPED)
    return _SHIPPED.read_bytes()
