"""libbhemu.so, which hosts load in place of a card: its C sources, and how it comes to be."""

import hashlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import bhemu
from bhemu.errors import InputError
from bhemu.jit.cache import root
from bhemu.system import whole_file

NAME = "libbhemu.so"
_SOURCES = Path(__file__).parent
_TARGET = "x86_64-linux-gnu.2.28"  # the oldest C library that Pythons with wheels of ttnn need
_DATA = Path(bhemu.__file__).parent / "data"
_FLAGS = ("-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden", "-s")
_OF_ZIG = ("-target", _TARGET, "-Werror", "-fno-sanitize=all")


def build(to: Path, compiler: Sequence[str] = (sys.executable, "-m", "ziglang", "cc")) -> None:
    """Compile the library; RuntimeError with what the compiler says.

    ziglang's compiler makes one for all machines, another compiler one for this machine.
    """
    flags = (*_FLAGS, *(_OF_ZIG if "ziglang" in compiler else ()))
    sources = [str(path) for path in sorted(_SOURCES.glob("*.c"))]
    command = [*compiler, *flags, "-o", str(to), *sources, "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def path() -> Path:
    """The library for this machine, made from the sources beside this file; its name says which.

    A wheel carries it. Else it is made when it is first wanted, by ziglang in the package, or by
    the machine's `cc` in the cache. InputError where there is none.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        text = f"there is no {NAME} for {sys.platform} on {platform.machine()}"
        raise InputError(text, hint="TT_METAL_SIMULATOR=FOLDER needs none")
    digest = hashlib.sha256()
    for source in sorted(_SOURCES.glob("*.[ch]")):
        digest.update(source.read_bytes())
    made = _DATA / f"libbhemu-x86_64-{digest.hexdigest()[:12]}.so"
    if made.exists():
        return made
    if importlib.util.find_spec("ziglang") is not None:
        return _made(made)
    compiler, own = shutil.which("cc"), root() / made.name
    if compiler is None and not own.exists():
        text = f"this installation has no {NAME}, and there is no compiler for it"
        raise InputError(text, hint="pip install ziglang==0.17.0, or install a C compiler (cc)")
    return own if own.exists() else _made(own, [str(compiler)])


def _made(to: Path, *compiler: Sequence[str]) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / NAME
        build(part, *compiler)
        data = part.read_bytes()
    whole_file.write(to, lambda file: file.write(data), mode=0o755)
    return to
