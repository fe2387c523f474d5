"""A kernel's preprocessed text, in pieces: of system headers, and of its own.

Most of such a text is the standard library, the same in every kernel but not at the same place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

MARKER = re.compile(r'^# (\d+) "([^"\n]*)"((?: \d)*)\n', re.MULTILINE)
"""A line of the preprocessor's: the next one is that line of that file, which begins here (flag 1),
or goes on behind one that it includes (2), and is a system header (3)."""

_EMPTY = re.compile(r"^\n", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\s*\()?")
_BEGINS, _RETURNS, _SYSTEM = "1", "2", "3"


class Piece(NamedTuple):
    """A marker and what stands behind it."""

    line: int
    file: str
    flags: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return " ".join(["#", str(self.line), f'"{self.file}"', *self.flags]) + "\n" + self.text

    @property
    def system(self) -> bool:
        """Whether it stands in a system header."""
        return _SYSTEM in self.flags

    def only_here(self) -> Piece:
        """The same without a word of where it comes from."""
        return self._replace(flags=tuple(f for f in self.flags if f not in (_BEGINS, _RETURNS)))


class Text:
    """A preprocessed text as its pieces, and what stands before the first marker."""

    def __init__(
        self, head: str, pieces: Iterable[Piece], contents: dict[str, str] | None = None
    ) -> None:
        self.head, self.pieces = head, list(pieces)
        self._contents = contents

    def __str__(self) -> str:
        return self.head + "".join(map(str, self.pieces))

    @property
    def contents(self) -> dict[str, str]:
        """Of each system header a digest of what it says, wherever that stands."""
        if self._contents is None:
            said: dict[str, list[str]] = {}
            for piece in self.pieces:
                if piece.system:
                    said.setdefault(piece.file, []).append(_EMPTY.sub("", piece.text))
            self._contents = {file: _digest("".join(parts)) for file, parts in said.items()}
        return self._contents

    @cached_property
    def bare(self) -> str:
        """Without markers and empty lines; of pieces of system headers their digests."""
        said = (_said(piece.text, piece.system) for piece in self.pieces)
        return "".join([_said(self.head, False), *said])

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in what is not of system headers."""
        return frozenset(_NAME.findall("".join(p.text for p in self.pieces if not p.system)))

    def without(self, files: Mapping[str, str]) -> str:
        """The text without these system headers."""
        parts = [self.head]
        stack: list[tuple[str, bool]] = []  # a file that has begun, and whether it is kept
        for piece in self.pieces:
            kept = not (piece.system and piece.file in files)
            if _BEGINS in piece.flags:
                stack.append((piece.file, kept))
            inner = stack.pop()[1] if _RETURNS in piece.flags and stack else kept
            if kept:
                parts.append(str(piece if inner else piece.only_here()))
            elif inner:
                around = next((file for file, there in reversed(stack) if there), "<stdin>")
                parts.append(f'# 1 "{around}" 2\n')
        return "".join(parts)


class Library(NamedTuple):
    """The system headers of a kernel, for others that have them too: a text, and its `contents`."""

    text: str
    contents: dict[str, str]

    @classmethod
    def of(cls, text: Text) -> Library:
        """The system headers that `text` has, in its order."""
        parts = ['# 1 "<stdin>"\n']
        before = False
        for piece in text.pieces:
            if piece.system:
                parts.append(str(piece))
            elif before:
                parts.append('# 1 "<stdin>" 2\n')
            before = piece.system
        return cls("".join(parts), text.contents)

    def fits(self, text: Text) -> bool:
        """Whether `text` has all of it."""
        return self.contents.items() <= text.contents.items()


class Header(NamedTuple):
    """A generated header, of which each test has its own."""

    path: str
    text: str

    def instead(self, before: Header, text: Text) -> Text | None:
        """`text`, which has `before`, with this one; None where only the preprocessor can say so.

        They may differ behind the last #include, in what is no directive and names nothing new but
        names that the preprocessor has left in the text, which are no macros.
        """
        at = [number for number, piece in enumerate(text.pieces) if piece.file == before.path]
        if not at:
            return text if text.pieces else None  # or it has no markers
        returns = [
            n for n, each in enumerate(at) if {_BEGINS, _RETURNS} & {*text.pieces[each].flags}
        ]
        if not returns:
            return None
        tail = at[returns[-1] :]
        if tail != list(range(tail[0], tail[-1] + 1)):
            return None
        first = text.pieces[tail[0]]
        said = _lines("".join(text.pieces[each].text for each in tail))
        if not self._differs_in_plain_lines(before, first.line - 1, said, text.names):
            return None
        code = "".join(f"{line}\n" for line in _code(self.text.split("\n")[first.line - 1 :]))
        pieces = [p._replace(file=self.path) if p.file == before.path else p for p in text.pieces]
        pieces[tail[0] : tail[-1] + 1] = [first._replace(file=self.path, text=code)]
        return Text(text.head, pieces, text.contents)

    def _differs_in_plain_lines(
        self, before: Header, start: int, said: list[str], known: Container[str]
    ) -> bool:
        """Whether both are alike up to line `start`, and the preprocessor leaves the others."""
        old, new = before.text.split("\n"), self.text.split("\n")
        added = "\n".join({*_code(new[start:])} - {*_code(old[start:])})
        names = {*_NAME.findall(added)} - {*_NAME.findall("\n".join(old[start:]))}
        return (
            old[:start] == new[:start]
            and _directives(old[start:]) == _directives(new[start:])
            and _lines("\n".join(_code(old[start:]))) == said
            and not any(sign in added for sign in ('"', "'", "/*", "\\"))
            and all(name in known for name in names)
        )


def _directives(lines: list[str]) -> list[str]:
    return [line for line in lines if line.lstrip().startswith("#")]


def _code(lines: list[str]) -> list[str]:
    """Lines without directives and comments."""
    kept = ("" if line.lstrip().startswith("#") else line for line in lines)
    return [line.partition("//")[0].rstrip() for line in kept]


def _lines(text: str) -> list[str]:
    """Lines that say something, with single blanks."""
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


def parsed(text: str) -> Text:
    """The pieces of a preprocessed text."""
    head, *rest = MARKER.split(text)
    found = []
    for at in range(0, len(rest), 4):
        line, file, flags, said = rest[at : at + 4]
        found.append(Piece(int(line), file, tuple(flags.split()), said))
    return Text(head, found)


@lru_cache(10_000)
def _said(text: str, system: bool) -> str:
    text = _EMPTY.sub("", text)
    return f"#{_digest(text)}\n" if system and text else text


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
