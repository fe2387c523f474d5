"""A simulator folder as UMD expects it: run.sh, which starts `bhemu serve`, and the descriptor."""

import shlex
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import bhemu
from bhemu.errors import InputError
from bhemu.hosts.descriptor import soc_descriptor
from bhemu.program import files

RUN, DESCRIPTOR = "run.sh", "soc_descriptor.yaml"
_MARK = "# Written by `bhemu simulator`"


def write(folder: Path, options: Sequence[str], cache: Path) -> None:
    """Write both files into `folder`, which is created; InputError where that cannot be.

    `options` are those of `bhemu serve`; `cache` is where compiled code is kept. A run.sh that
    another program wrote is not replaced.
    """
    run = folder / RUN
    if not files.is_missing(run) and not _is_ours(run):
        raise InputError(f"{run} is not from bhemu", hint="name a folder of its own")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / DESCRIPTOR, f"{_MARK}.\n{soc_descriptor()}")
        _write(run, _script(options, cache))
        run.chmod(0o755)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the name
        reason = getattr(problem, "strerror", None) or problem
        raise InputError(f"{folder}: {reason}", hint="is that folder meant?") from problem


def _write(path: Path, text: str) -> None:
    files.write_whole(path, lambda file: file.write(text.encode()), "simulator")


def _is_ours(run: Path) -> bool:
    return _MARK.encode() in files.read_bytes(run, "PROGRAM_BYTES")


def _script(options: Sequence[str], cache: Path) -> str:
    """The host's Python is another one than ours: none of its settings may reach ours."""
    home = Path(bhemu.__file__).parent.parent
    paths = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    lines = [
        "#!/bin/sh",
        f"{_MARK}; a host that uses the folder as its simulator starts it.",
        "unset PYTHONHOME PYTHONPATH PYTHONSTARTUP",
        *([] if home in paths else [f"export PYTHONPATH={shlex.quote(str(home))}"]),
        f'[ "$BHEMU_CACHE_DIR" ] || BHEMU_CACHE_DIR={shlex.quote(str(cache))}',
        "export BHEMU_CACHE_DIR",
        f"exec {shlex.join([sys.executable, '-P', '-m', 'bhemu', 'serve', *options])}",
    ]
    return "\n".join(lines) + "\n"
