"""Kernels of tt-llk's tests compiled once: the compiler's ELFs, kept by what they are made from.

Tests differ in constants of a generated header that most of their kernels do not use: without them
the preprocessed texts are the same. An ELF that is taken from another test differs at most in its
debug information, by the folder of that header and the values of constants that nothing uses.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

_OF_LINKER = ("-Wl,", "-T", "-l", "-nostartfiles")
_TRIALS, _WORTH = 24, 8  # it does where one kernel of so many is, after the first ones
_CONSTANT = re.compile(r"^constexpr [^;={}()]* (\w+) = [^;{}()]*;$", re.MULTILINE)


class Kernels:
    """Stands for the suite's run_shell_command(command, cwd, stdin_data), which is `run`.

    `folder` holds ELFs, and under `known/` the name of the ELF for a command, its header and the
    state of the source folders, so that even the preprocessor has not to be asked again.
    """

    def __init__(self, folder: Path, sources: Iterable[Path], run: Callable[..., Any]) -> None:
        self._folder, self._run = folder, run
        (folder / "known").mkdir(parents=True, exist_ok=True)
        self._state = _state(sources)
        self.made = self.shared = 0

    def __call__(
        self, command: str | Sequence[str], cwd: Any = None, stdin_data: Any = None, *more: Any
    ) -> Any:
        """Run a command; of one that compiles a kernel, perhaps only copy what it would make."""
        words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
        if not isinstance(stdin_data, str) or "-o" not in words or "g++" not in words[0]:
            return self._run(command, cwd, stdin_data, *more)
        at = words.index("-o")
        out, words = Path(words[at + 1]), words[:at] + words[at + 2 :]
        known = self._folder / "known" / self._name(words, stdin_data, out)
        header = _header(out)
        name = known.read_text() if known.exists() else self._found(words, cwd, stdin_data, header)
        elf = self._folder / (name or known.name)
        found = None
        if elf.exists():
            self.shared += not known.exists()
            shutil.copyfile(elf, out)
        else:
            found = self._run(command, cwd, stdin_data, *more)
            self.made += 1
            if not out.exists():
                return found
            _put(elf, out.read_bytes())
        if not known.exists():
            _put(known, elf.name.encode())
        return found

    def _found(self, words: list[str], cwd: Any, text: str, header: str) -> str:
        """The name of the ELF by its preprocessed text; "" where asking for it does not pay."""
        seen = _preprocessed(words, cwd, text) if self._pays() else None
        if seen is None:
            return ""
        return _digest(self._state, *_options(words), _without_unused(seen, header))

    def _pays(self) -> bool:
        """Whether asking the preprocessor finds kernels that are the same: else it costs alone."""
        return self.made < _TRIALS or _WORTH * self.shared > self.made

    def _name(self, words: list[str], text: str, out: Path) -> str:
        """Of a command whatever folder its header and its ELF lie in."""
        here = [word.replace(str(out.parent.parent), "") for word in words]
        return _digest(self._state, *here, text, _header(out))


def _header(out: Path) -> str:
    """The header that was generated for a kernel."""
    path = out.parent.parent / "build.h"
    return path.read_text() if path.exists() else ""


def _without_unused(text: str, header: str) -> str:
    """`text` without those constants of the header that are named nowhere but where defined."""
    lines = {found[1]: found[0] for found in _CONSTANT.finditer(header)}
    while lines:
        used = Counter(re.findall(rf"\b(?:{'|'.join(lines)})\b", text))
        unused = [name for name in lines if used[name] == 1 and f"\n{lines[name]}\n" in text]
        if not unused:
            break
        for name in unused:
            text = text.replace(f"\n{lines.pop(name)}\n", "\n", 1)
    return text


def _options(words: list[str]) -> list[str]:
    """What matters beside the preprocessed text: all but where to look for it."""
    return [word for word in words if not word.startswith(("-I", "-D"))]


def _preprocessed(words: list[str], cwd: Any, text: str) -> str | None:
    """The kernel as the compiler sees it; None where the preprocessor fails."""
    kept = [word for word in words if not word.startswith(_OF_LINKER)]
    done = subprocess.run(
        [*kept, "-E", "-P", "-o", "-"],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 and done.stdout else None


def _state(sources: Iterable[Path]) -> str:
    """Changes when a file of the folders does."""
    found = []
    for folder in sources:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            about = path.stat() if path.is_file() else None
            if about is not None and path.suffix != ".pyc":
                found.append(f"{path} {about.st_size} {about.st_mtime_ns}")
    return _digest(*found)


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part.encode())
    return digest.hexdigest()[:40]


def _put(path: Path, data: bytes) -> None:
    """Write a file that others may look for meanwhile."""
    scratch = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    scratch.write_bytes(data)
    os.replace(scratch, path)
