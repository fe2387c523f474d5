"""What many kernels begin with, compiled once: GCC's precompiled headers of preprocessed texts.

Most of a kernel's preprocessed text, and of the compiler's time, is headers that its neighbours
include in the same order. Behind each header that the kernel's own file includes the text can be
cut; a beginning that came up often is compiled to a precompiled header, and the compiler is given
that and the rest. The code that comes out is the same; where the compiler refuses, the text is
compiled whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_MARKER = re.compile(r'^# (\d+) "([^"\n]*)"((?: \d)*)$', re.MULTILINE)
_OWN = "kernel"  # stands for the kernel's own file, which a beginning has only #includes of
_SHORTEST = 100_000  # characters of a beginning that is worth the trouble
_OFTEN = 8  # times that a beginning came up before it is compiled; that costs what 4 uses save
_MOST = 32  # beginnings kept: each takes some 20 MB


class Cut(NamedTuple):
    """A place where a text is back in the kernel's own file: how far, which file, its next line."""

    at: int
    file: str
    line: int


def cuts(text: str) -> Iterator[Cut]:
    """The places behind headers that the kernel's own file includes, in their order."""
    depth, own = 0, ""
    for marker in _MARKER.finditer(text):
        flags = marker[3].split()
        if "1" in flags:
            depth += 1
            own = marker[2] if depth == 1 else own
        elif "2" in flags:
            depth -= 1
            if depth == 1 and marker[2] == own:
                yield Cut(marker.end() + 1, own, int(marker[1]))


class Beginnings:
    """Precompiled beginnings in a folder that several processes share, `NAME.gch` each.

    Such a file is empty where the compiler refused.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._times: Counter[str] = Counter()
        self._begun: set[Path] = set()
        self._lock = threading.Lock()  # the suite compiles the kernels of a test in threads

    def shortened(self, compiler: Sequence[str], text: str) -> str | None:
        """`text` with a precompiled beginning, or None; `compiler`: a command without files.

        Counts how often each beginning came up, and compiles one when that is often enough.
        """
        with self._lock:
            held, wanted = self._choose(compiler, text)
        if wanted is not None and self._compiled(compiler, *wanted[1:]):
            held = wanted[:2]
        return None if held is None else _continued(text, *held)

    def _choose(
        self, compiler: Sequence[str], text: str
    ) -> tuple[tuple[Cut, Path] | None, tuple[Cut, Path, str] | None]:
        """The longest beginning that is there, and a longer one that is now to be compiled."""
        held = wanted = None
        for cut in cuts(text):
            if cut.at < _SHORTEST:
                continue
            beginning = text[: cut.at].replace(f'"{cut.file}"', f'"{_OWN}"')
            name = hashlib.sha256("\0".join([*compiler, beginning]).encode()).hexdigest()[:40]
            self._times[name] += 1
            compiled = self._folder / f"{name}.gch"
            saved = self._times[name] * (cut.at - (held[0].at if held else 0))
            if compiled.exists():
                if compiled.stat().st_size:
                    held, wanted = (cut, compiled), None
            elif saved >= _OFTEN * cut.at and compiled not in self._begun:
                wanted = cut, compiled, beginning
        if wanted is not None:
            self._begun.add(wanted[1])
        return held, wanted

    def _compiled(self, compiler: Sequence[str], target: Path, beginning: str) -> bool:
        """Compile a beginning, unless there are many; whether that has worked."""
        if len(list(self._folder.glob("*.gch"))) >= _MOST:
            return False
        scratch = target.with_name(f"{target.stem}.{os.urandom(4).hex()}")
        source = scratch.with_name(f"{scratch.name}.hh")
        source.write_text(beginning)
        words = [*compiler, "-x", "c++-header", "-fpreprocessed", str(source), "-o", str(scratch)]
        done = subprocess.run(words, capture_output=True, check=False)
        source.unlink()
        worked = done.returncode == 0 and scratch.exists()
        if not worked:
            scratch.write_bytes(b"")
        os.replace(scratch, target)
        return worked


def _continued(text: str, cut: Cut, compiled: Path) -> str:
    """The rest of a text behind its beginning; the compiler takes it where that has ended."""
    place = f'# 1 "<stdin>"\n# 1 "{cut.file}" 1\n# {cut.line} "{cut.file}"\n'
    return f'#pragma GCC pch_preprocess "{compiled}"\n{place}{text[cut.at :]}'
