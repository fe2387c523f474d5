"""What goes to a worker and comes back: plain data, and no path but those of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bhemu.program.flags import with_flags, with_options, without_expected
from bhemu.program.options import given_in
from bhemu.program.specs import Program

Record = dict[str, Any]


@dataclass(frozen=True)
class Base:
    """A program as it was loaded, and the the store's names (digest/name) of its files by path."""

    program: Program
    files: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """One run: a base by its name, flags and options of `bhemu run`, the flags' files by path."""

    number: int
    base: str
    flags: Mapping[str, tuple[str, ...]]
    options: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    compare: bool = True

    def configured(
        self, program: Program, flags: Mapping[str, Sequence[str]] | None = None
    ) -> Program:
        """The program as `bhemu run` takes it with these flags (or `flags`) and options."""
        base = program if self.compare else without_expected(program)
        how = {n: self.options.get(o.flag or n) for n, o in given_in("flag").items()}
        return with_options(with_flags(base, **(self.flags if flags is None else flags)), how)


@dataclass(frozen=True)
class Chunk:
    """Runs for one worker, with the contents of files that it has said it lacks.

    `store`: the folder where files lie, None for a worker that keeps its own.
    """

    version: str
    jobs: tuple[Job, ...]
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    store: str | None = None


@dataclass(frozen=True)
class Reply:
    """What came of a chunk: a record for each run, or the digests that are missing."""

    records: tuple[Record, ...] = ()
    missing: tuple[str, ...] = ()
    refused: str = ""
