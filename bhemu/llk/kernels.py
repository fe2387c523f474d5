"""Kernels of tt-llk's tests compiled once: the compiler's ELFs, kept by what they are made from.

Tests differ in constants of a generated header that most of their kernels do not use: without them
the preprocessed texts are the same. An ELF that is taken from another test differs at most in its
debug information, by the folder of that header and the values of constants that nothing uses.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bhemu.llk.beginnings import Beginnings

BEGINNINGS = "beginnings"  # folder of those that are compiled, for one sweep
_OF_LINKER = ("-Wl,", "-T", "-l", "-nostartfiles")
_OF_SOURCE = ("-I", "-D")  # what preprocessed texts have no use for
_CONSTANT = re.compile(r"^constexpr [^;={}()]* (\w+) = [^;{}()]*;$", re.MULTILINE)
_INCLUDE = re.compile(r"^#include *[<\"](.+)[>\"]", re.MULTILINE)
_NOT_HEADERS = (".cpp", ".pyc")  # of kernels, which tests may write too; of Python
_MARKER = re.compile(r"^(?:# \d.*)?\n", re.MULTILINE)
"""A line of the preprocessor's that says where the next one stood, or an empty one."""


@dataclass(frozen=True)
class _Command:
    """A command that compiles a kernel from its standard input, and the header made for it."""

    words: list[str]
    cwd: Any
    text: str
    out: Path
    header: str

    def name(self) -> str:
        """Digest of all but the header, whatever folder that and the ELF lie in."""
        here = [word.replace(str(self.out.parent.parent), "") for word in self.words]
        return _digest(*here, self.text, *self._included())

    def _included(self) -> Iterator[str]:
        """What the files say that the text itself includes."""
        folders = [word[2:] for word in self.words if word.startswith("-I")]
        for name in _INCLUDE.findall(self.text):
            paths = [Path(self.cwd or ".", folder, name) for folder in ("", *folders)]
            yield from (path.read_text() for path in paths if path.is_file())

    def preprocessed(self) -> str | None:
        """The kernel as the compiler sees it; None where the preprocessor fails."""
        kept = [word for word in self._without("-o") if not word.startswith(_OF_LINKER)]
        done = subprocess.run(
            [*kept, "-E", "-o", "-"],
            cwd=self.cwd,
            input=self.text,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 and done.stdout else None

    def compiler(self) -> list[str]:
        """The command for a preprocessed text, without the files and the linker's words."""
        words = [w for w in self._without("-o", "-x") if not w.startswith(_OF_LINKER)]
        return [w for w in words if w not in ("-", "-nostdlib") and not w.startswith(_OF_SOURCE)]

    def options(self) -> list[str]:
        """What matters beside the preprocessed text: all but where to look for it."""
        return [word for word in self._without("-o") if not word.startswith(_OF_SOURCE)]

    def _without(self, *options: str) -> list[str]:
        """The words but for options that take the next word."""
        words = list(self.words)
        for option in options:
            if option in words:
                at = words.index(option)
                del words[at : at + 2]
        return words


class Kernels:
    """Stands for the suite's run_shell_command(command, cwd, stdin_data), which is `run`.

    `folder` holds ELFs by their preprocessed text. For a later kernel of the same command `unused/`
    has the constants that an earlier one did not use, and `known/` the name of the ELF for the rest
    of the header, so that even the preprocessor has not to be asked again.
    """

    def __init__(self, folder: Path, sources: Iterable[Path], run: Callable[..., Any]) -> None:
        self._folder, self._run = folder, run
        self._beginnings = Beginnings(folder / BEGINNINGS)
        for name in ("known", "unused"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._state = _state(sources)

    def __call__(
        self, command: str | Sequence[str], cwd: Any = None, stdin_data: Any = None, *more: Any
    ) -> Any:
        """Run a command; of one that compiles a kernel, perhaps only copy what it would make."""
        words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
        if not isinstance(stdin_data, str) or "-o" not in words or "g++" not in words[0]:
            return self._run(command, cwd, stdin_data, *more)
        out = Path(words[words.index("-o") + 1])
        asked = _Command(words, cwd, stdin_data, out, _header(out))
        if self._copied(asked.name(), asked):
            return None
        text = asked.preprocessed()
        if text is None:
            return self._run(command, cwd, stdin_data, *more)
        return self._made(asked, text, lambda: self._run(command, cwd, stdin_data, *more))

    def _copied(self, name: str, asked: _Command) -> bool:
        """Whether an earlier kernel of this command was the same, but for what it did not use."""
        for unused in self._unused(name):
            known = self._known(name, asked.header, unused)
            elf = self._folder / known.read_text() if known.exists() else None
            if elf is not None and elf.exists():
                shutil.copyfile(elf, asked.out)
                return True
        return False

    def _made(self, asked: _Command, text: str, plainly: Callable[[], Any]) -> Any:
        """Copy the ELF of this preprocessed text, or compile it."""
        bare, unused = _without_unused(_MARKER.sub("", text), asked.header)
        elf = self._folder / _digest(self._state, *asked.options(), bare)
        found = None
        if elf.exists():
            shutil.copyfile(elf, asked.out)
        else:
            found = self._compiled(asked, text, plainly)
            if not asked.out.exists():
                return found
            _put(elf, asked.out.read_bytes())
        name = asked.name()
        if unused not in self._unused(name):
            with self._list(name).open("a") as lines:
                lines.write(json.dumps(unused) + "\n")
        _put(self._known(name, asked.header, unused), elf.name.encode())
        return found

    def _compiled(self, asked: _Command, text: str, plainly: Callable[[], Any]) -> Any:
        """Compile what is preprocessed already; what fails that way, as the suite does it."""
        words = [w for w in asked.words if not w.startswith(_OF_SOURCE)]
        given = self._beginnings.shortened(asked.compiler(), text) or text
        done = subprocess.run(
            [*words, "-fpreprocessed"],
            cwd=asked.cwd,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0 and asked.out.exists():
            return None
        return plainly()

    def _list(self, name: str) -> Path:
        return self._folder / "unused" / _digest(self._state, name)

    def _unused(self, name: str) -> Iterator[list[str]]:
        path = self._list(name)
        for line in path.read_text().splitlines() if path.exists() else ():
            if line.endswith("]"):
                yield json.loads(line)

    def _known(self, name: str, header: str, unused: Iterable[str]) -> Path:
        for constant in _CONSTANT.finditer(header):
            if constant[1] in unused:
                header = header.replace(f"{constant[0]}\n", "", 1)
        return self._folder / "known" / _digest(self._state, name, header)


def _header(out: Path) -> str:
    """The header that was generated for a kernel."""
    path = out.parent.parent / "build.h"
    return path.read_text() if path.exists() else ""


def _without_unused(text: str, header: str) -> tuple[str, list[str]]:
    """`text` without the header's constants that are named only where defined; their names."""
    lines = {found[1]: found[0] for found in _CONSTANT.finditer(header)}
    removed: list[str] = []
    used = Counter(re.findall(r"\w+", text))
    while lines:
        unused = [name for name in lines if used[name] == 1 and f"\n{lines[name]}\n" in text]
        if not unused:
            break
        for name in unused:
            line = lines.pop(name)
            text = text.replace(f"\n{line}\n", "\n", 1)
            used.subtract(re.findall(r"\w+", line))
        removed += unused
    return text, sorted(removed)


def _state(sources: Iterable[Path]) -> str:
    """Changes when a header, a tool or a linker script in the folders does."""
    found = []
    for folder in sources:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            about = path.stat() if path.is_file() else None
            if about is not None and path.suffix not in _NOT_HEADERS:
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
