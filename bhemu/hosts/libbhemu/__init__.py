"""libbhemu.so, which hosts load in place of a card: its C sources, and how it comes to be."""

import hashlib
import importlib.util
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import bhemu
from bhemu.errors import InputError
from bhemu.system import whole_file

NAME = "libbhemu.so"
_SOURCES = Path(__file__).parent
_TARGET = "x86_64-linux-gnu.2.28"  # the oldest C library that Pythons with wheels of ttnn need
_DATA = Path(bhemu.__file__).parent / "data"
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


def path() -> Path:
    """The library for this machine, made from the sources beside this file; its name says which.

    A wheel carries it; a checkout makes it when it is first wanted. InputError where there is none.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        text = f"there is no {NAME} for {sys.platform} on {platform.machine()}"
        raise InputError(text, hint="TT_METAL_SIMULATOR=FOLDER needs none")
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    made = _DATA / f"libbhemu-x86_64-{digest.hexdigest()[:12]}.so"
    if not made.exists():
        if importlib.util.find_spec("ziglang") is None:
            text = f"this checkout has no {NAME}, and no compiler for it"
            raise InputError(text, hint="pip install ziglang==0.17.0, then make library")
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / NAME
            build(part)
            data = part.read_bytes()
        whole_file.write(made, lambda file: file.write(data), mode=0o755)
    return made
