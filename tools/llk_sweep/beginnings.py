"""What many kernels begin with, compiled once: GCC's precompiled headers of preprocessed texts.

Most of a kernel's preprocessed text, and of the compiler's time, is headers. The standard library's
are put in front of all others, which C++ allows: so all kernels begin alike. The first kernel is
compiled both ways, and where its code is not the same nothing is moved. Behind each header that the
kernel's own file includes the text can be cut; a beginning that came up often is compiled too, and
the compiler is given that and the rest. Where the compiler refuses, the text is compiled whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bhemu.system import whole_file
from llk_sweep.preprocessed import MARKER, Library, Text

_OWN = "kernel"  # stands for the kernel's own file, which a beginning has only #includes of
_SHORTEST = 100_000  # characters of a beginning that is worth the trouble
_OFTEN = 4  # times that a beginning came up before it is compiled, which costs what 4 uses save
_MOST = 32  # beginnings kept: each takes some 20 MB
_LIBRARIES = 4  # of system headers in different numbers

Proof = Callable[[str], bool | None]
"""Whether a shortened text comes out as the whole one; None where that does not compile."""


class Cut(NamedTuple):
    """A place where a text is back in the kernel's own file: how far, which file, its next line."""

    at: int
    file: str
    line: int


def cuts(text: str) -> Iterator[Cut]:
    """The places behind headers that the kernel's own file includes, in their order."""
    depth, own = 0, ""
    for marker in MARKER.finditer(text):
        flags = marker[3].split()
        if "1" in flags:
            depth += 1
            own = marker[2] if depth == 1 else own
        elif "2" in flags:
            depth -= 1
            if depth == 1 and marker[2] == own:
                yield Cut(marker.end(), own, int(marker[1]))


class _Beginning(NamedTuple):
    """A text up to one of the cuts, by a name that does not depend on the kernel's own file."""

    system: Library
    rest: str
    cuts: tuple[Cut, ...]
    name: str

    @property
    def cut(self) -> Cut:
        """Where it ends in the rest."""
        return self.cuts[-1]

    @property
    def size(self) -> int:
        """In characters."""
        return len(self.system.text) + self.cut.at

    @property
    def text(self) -> str:
        """What is to be compiled."""
        pairs = pairwise((Cut(0, "", 0), *self.cuts))
        return self.system.text + "".join(_part(self.rest, last, cut) for last, cut in pairs)


class Beginnings:
    """Precompiled beginnings in a folder that several processes share, `NAME.gch` each.

    Such a file is empty where the compiler refused. `NAME.begun` says that a process is at it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._times: Counter[str] = Counter()
        self._libraries: dict[Path, Library] = {}
        self._lock = threading.Lock()  # the suite compiles the kernels of a test in threads

    def shortened(self, compiler: Sequence[str], text: Text, proof: Proof) -> str | None:
        """`text` with a precompiled beginning, or None; `compiler`: a command without files.

        Counts how often each beginning came up, and compiles one when that is often enough.
        """
        with self._lock:
            library = self._library(text)
            rest = text.without(library.contents)
            found = list(_beginnings(compiler, library, rest))
            held, wanted = self._choose(found)
        if wanted is not None and self._compiled(compiler, wanted, proof):
            held = wanted
        return None if held is None else _continued(held, self._path(held))

    def _path(self, beginning: _Beginning) -> Path:
        return self._folder / f"{beginning.name}.gch"

    def _library(self, text: Text) -> Library:
        """The most of system headers that `text` and others have; empty when there are too many."""
        for path in sorted(self._folder.glob("*.headers")):
            if path not in self._libraries:
                self._libraries[path] = Library(**json.loads(path.read_text()))
        fitting = [each for each in self._libraries.values() if each.fits(text)]
        if fitting:
            return max(fitting, key=lambda each: len(each.text))
        if len(self._libraries) >= _LIBRARIES:
            return Library("", {})
        made = Library.of(text)
        path = self._folder / f"{_digest(made.text)}.headers"
        data = json.dumps(made._asdict()).encode()
        whole_file.write(path, lambda file: file.write(data), durable=False)
        self._libraries[path] = made
        return made

    def _choose(self, found: list[_Beginning]) -> tuple[_Beginning | None, _Beginning | None]:
        """The longest beginning that is there, and a longer one that is now to be compiled."""
        held = wanted = None
        for beginning in found:
            compiled, at = self._path(beginning), beginning.size
            self._times[beginning.name] += 1
            saved = self._times[beginning.name] * (at - (held.size if held else 0))
            if compiled.exists():
                if compiled.stat().st_size:
                    held, wanted = beginning, None
            elif beginning.cut.line == 0 or saved >= _OFTEN * at:
                wanted = beginning
        return held, wanted

    def _compiled(self, compiler: Sequence[str], wanted: _Beginning, proof: Proof) -> bool:
        """Compile a beginning, unless there are many or another process does; whether it works."""
        target = self._path(wanted)
        if len(list(self._folder.glob("*.gch"))) >= _MOST:
            return False
        begun = target.with_suffix(".begun")
        try:
            begun.open("x").close()
        except FileExistsError:
            return False
        scratch = target.with_name(f"{target.stem}.{os.urandom(4).hex()}")
        source = scratch.with_name(f"{scratch.name}.hh")
        source.write_text(wanted.text)
        words = [*compiler, "-x", "c++-header", "-fpreprocessed", str(source), "-o", str(scratch)]
        done = subprocess.run(words, capture_output=True, check=False)
        source.unlink()
        worked: bool | None = done.returncode == 0 and scratch.exists()
        if worked and wanted.cut.line == 0:
            worked = proof(_continued(wanted, scratch))
        if worked is None:
            scratch.unlink()
            begun.unlink()
            return False
        if not worked:
            scratch.write_bytes(b"")
        os.replace(scratch, target)
        return worked


def _beginnings(compiler: Sequence[str], library: Library, rest: str) -> Iterator[_Beginning]:
    """The library, and what follows it up to each cut of the rest."""
    digest = hashlib.sha256("\0".join([*compiler, _digest(library.text)]).encode())
    found: tuple[Cut, ...] = ()
    for cut in (Cut(0, "<stdin>", 0), *cuts(rest)):
        digest.update(_part(rest, found[-1] if found else cut, cut).encode())
        found += (cut,)
        beginning = _Beginning(library, rest, found, digest.hexdigest()[:40])
        if beginning.size >= _SHORTEST:
            yield beginning


def _part(rest: str, last: Cut, cut: Cut) -> str:
    """The text between two cuts, whatever the kernel's own file is called and has for comments."""
    own = re.escape(cut.file)
    part = re.sub(
        rf'^# \d+ "{own}"(( \d)*)\n\n*(?=# |\Z)', _unplaced, rest[last.at : cut.at], flags=re.M
    )
    return part.replace(f'"{cut.file}"', f'"{_OWN}"')


def _unplaced(marker: re.Match[str]) -> str:
    """A marker without its line, behind which the own file says nothing before the next one."""
    return f'# 1 "{_OWN}"{marker[1]}\n' if {"1", "2"} & {*marker[1].split()} else ""


def _continued(beginning: _Beginning, compiled: Path) -> str:
    """What follows a beginning; the compiler takes it where that has ended."""
    at, file, line = beginning.cut
    place = f'# 1 "{file}" 1\n# {line} "{file}"\n' if line else ""
    return f'#pragma GCC pch_preprocess "{compiled}"\n# 1 "<stdin>"\n{place}{beginning.rest[at:]}'


@lru_cache(_LIBRARIES)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
