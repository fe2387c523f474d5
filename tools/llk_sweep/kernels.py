"""Kernels of tt-llk's tests compiled once: the compiler's ELFs, kept by what they are made from.

Tests differ in constants of a generated header that most of their kernels do not use: without them
the preprocessed texts are the same. An ELF that is taken from another test differs at most in its
debug information, by the folder of that header and the values of constants that nothing uses.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from bhemu.program.elf import DamagedError, segments
from bhemu.system import whole_file
from llk_sweep.beginnings import Beginnings
from llk_sweep.preprocessed import Header, Text, parsed

BEGINNINGS = "beginnings"  # folder of those that are compiled, for one sweep
_OF_LINKER = ("-Wl,", "-T", "-l", "-nostartfiles")
_OF_SOURCE = ("-I", "-D")  # what preprocessed texts have no use for
_CONSTANT = re.compile(r"^constexpr [^;={}()]* (\w+) = [^;{}()]*;$", re.MULTILINE)
_INCLUDE = re.compile(r"^#include *[<\"](.+)[>\"]", re.MULTILINE)
_NOT_HEADERS = (".cpp", ".pyc")  # of kernels, which tests may write too; of Python
_TEXTS = 32  # preprocessed texts that are held, for kernels that differ in their header alone
_ERROR = "error:"  # in what a compiler says of a kernel that it does not compile


@dataclass(frozen=True)
class _Command:
    """A command that compiles a kernel from its standard input, and the header made for it."""

    words: list[str]
    cwd: Any
    text: str
    out: Path
    header: Header

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

    def preprocessed(self) -> Text | None:
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
        return parsed(done.stdout) if done.returncode == 0 and done.stdout else None

    def compiler(self) -> list[str]:
        """The command for a preprocessed text, without the files and the linker's words."""
        words = [w for w in self._without("-o", "-x") if not w.startswith(_OF_LINKER)]
        return [w for w in words if w not in ("-", "-nostdlib") and not w.startswith(_OF_SOURCE)]

    def compiled(self, text: str) -> bool:
        """Make the ELF of a preprocessed text; whether the compiler does it."""
        words = [word for word in self.words if not word.startswith(_OF_SOURCE)]
        done = subprocess.run(
            [*words, "-fpreprocessed"],
            cwd=self.cwd,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0 and self.out.exists()

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
    of the header, so that even the preprocessor has not to be asked again. `failed/` has what the
    compiler said of kernels that it does not compile.
    """

    def __init__(self, folder: Path, sources: Iterable[Path], run: Callable[..., Any]) -> None:
        self._folder, self._run = folder, run
        self._beginnings = Beginnings(folder / BEGINNINGS)
        for name in ("known", "unused", "failed"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._state = _state(sources)
        self._texts: dict[str, tuple[Header, Text]] = {}

    def __call__(
        self, command: str | Sequence[str], cwd: Any = None, stdin_data: Any = None, *more: Any
    ) -> Any:
        """Run a command; of one that compiles a kernel, perhaps only copy what it would make."""
        words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
        if not isinstance(stdin_data, str) or "-o" not in words or "g++" not in words[0]:
            return self._run(command, cwd, stdin_data, *more)
        out = Path(words[words.index("-o") + 1])
        asked = _Command(words, cwd, stdin_data, out, _header(out))
        name = asked.name()
        if self._copied(name, asked):
            return None
        text = self._text(name, asked)
        if text is None:
            return self._run(command, cwd, stdin_data, *more)
        return self._made(name, asked, text, lambda: self._run(command, cwd, stdin_data, *more))

    def _copied(self, name: str, asked: _Command) -> bool:
        """Whether an earlier kernel of this command was the same, but for what it did not use."""
        for unused in self._unused(name):
            known = self._known(name, asked.header.text, unused)
            elf = self._folder / known.read_text() if known.exists() else None
            if elf is not None and elf.exists():
                shutil.copyfile(elf, asked.out)
                return True
        return False

    def _text(self, name: str, asked: _Command) -> Text | None:
        """The preprocessed text, perhaps from that of another kernel of this command."""
        held = self._texts.get(name)
        text = asked.header.instead(*held) if held is not None else None
        if text is None:
            text = asked.preprocessed()
            if text is not None:
                self._texts.pop(name, None)
                self._texts[name] = asked.header, text
                for old in list(self._texts)[:-_TEXTS]:
                    self._texts.pop(old, None)
        return text

    def _made(self, name: str, asked: _Command, text: Text, plainly: Callable[[], Any]) -> Any:
        """Copy the ELF of this preprocessed text, or compile it."""
        bare, unused = _without_unused(text.bare, asked.header.text)
        elf = self._folder / _digest(self._state, *asked.options(), bare)
        failed = self._folder / "failed" / elf.name
        found = None
        if elf.exists():
            shutil.copyfile(elf, asked.out)
        elif failed.exists():
            raise RuntimeError(failed.read_text())
        else:
            try:
                found = self._compiled(asked, text, plainly)
            except RuntimeError as problem:  # of the suite: what the compiler says
                if _ERROR in str(problem):
                    _put(failed, str(problem).encode())
                raise
            if not asked.out.exists():
                return found
            _put(elf, asked.out.read_bytes())
        if unused not in self._unused(name):
            with self._list(name).open("a") as lines:
                lines.write(json.dumps(unused) + "\n")
        _put(self._known(name, asked.header.text, unused), elf.name.encode())
        return found

    def _compiled(self, asked: _Command, text: Text, plainly: Callable[[], Any]) -> Any:
        """Compile what is preprocessed already; what fails that way, as the suite does it."""

        def proof(given: str) -> bool | None:
            whole = _code_of(asked, str(text))
            return None if whole is None else whole == _code_of(asked, given)

        given = self._beginnings.shortened(asked.compiler(), text, proof)
        return None if asked.compiled(given or str(text)) else plainly()

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


def _header(out: Path) -> Header:
    """The header that was generated for a kernel."""
    path = out.parent.parent / "build.h"
    return Header(str(path), path.read_text() if path.exists() else "")


def _code_of(asked: _Command, text: str) -> list[tuple[int, bytes]] | None:
    """What of its ELF is loaded; None where the text does not compile."""
    if not asked.compiled(text):
        return None
    data = asked.out.read_bytes()
    asked.out.unlink()
    try:
        loaded = segments(data, str(asked.out))
    except (DamagedError, InputError):
        return [(0, data)]
    return [(each.vaddr, data[each.offset :][: each.filesz]) for each in loaded]


def _without_unused(text: str, header: str) -> tuple[str, list[str]]:
    """`text` without the header's constants that are named only where defined; their names."""
    lines = {found[1]: found[0] for found in _CONSTANT.finditer(header)}
    removed: list[str] = []
    while lines:
        unused = [n for n in lines if _once(n, text) and f"\n{lines[n]}\n" in text]
        if not unused:
            break
        for name in unused:
            text = text.replace(f"\n{lines.pop(name)}\n", "\n", 1)
        removed += unused
    return text, sorted(removed)


def _once(name: str, text: str) -> bool:
    """Whether a text has this word once."""
    parts = text.split(name)
    words = [i for i in range(1, len(parts)) if not _joins(parts[i - 1][-1:], parts[i][:1])]
    return len(words) == 1


def _joins(before: str, behind: str) -> bool:
    """Whether a name between these two is part of a longer one."""
    return any(sign.isalnum() or sign == "_" for sign in (before, behind) if sign)


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
    whole_file.write(path, lambda file: file.write(data), durable=False)
