"""The runs of a sweep, numbered, each with a key that changes with all that decides its result."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import random
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bhemu import __version__
from bhemu.errors import InputError
from bhemu.program import files, limits
from bhemu.program.schema import load_program
from bhemu.sweeps.job import Base, Job
from bhemu.sweeps.spec import TEMPLATES, Part, Scalar, Sweep, filled, options


@dataclass(frozen=True)
class Run:
    """One run of a sweep: its job, and what its row says before it ran."""

    key: str
    program: str
    parameters: Mapping[str, Scalar]
    job: Job
    command: str


class Plan:
    """A sweep with its programs loaded, its files read once for their digests.

    `files` is the path of each file by its digest and name, `columns` are the parameters of all
    programs.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.files: dict[str, Path] = {}
        self.bases: dict[str, bytes] = {}
        self.files_of: dict[str, tuple[str, ...]] = {}
        self._put: set[str] = set()
        self._digests: dict[str, str] = {}
        self.columns = tuple(dict.fromkeys(name for p in sweep.parts for name in p.parameters))
        self._check_count()
        self.runs = tuple(self._numbered())
        self._check_first()

    def blob(self, digest: str) -> bytes:
        """The contents that a worker lacks; InputError when the file has changed since."""
        if digest in self.bases:
            return self.bases[digest]
        path = self.files[digest]
        data = files.read_bytes(path, "ARRAY_BYTES", self.sweep.origin)
        if _digest(data) != digest.partition("/")[0]:
            raise InputError(f"{path} has changed during the sweep")
        return data

    def with_files(self, names: Iterable[str]) -> set[str]:
        """`names`, and with a base's those of its files."""
        found = set(names)
        for name in found & self.bases.keys():
            found |= set(self.files_of[name])
        return found

    def put_files(
        self, jobs: Sequence[Job], store: str, keep: Callable[[Path, bytes], None]
    ) -> None:
        """Put what the jobs need into a folder, what is not there yet."""
        needed = {job.base for job in jobs} | {f for job in jobs for f in job.files.values()}
        for name in self.with_files(needed - self._put):
            keep(Path(store) / name, self.blob(name))
        self._put |= needed

    def _check_count(self) -> None:
        for part in self.sweep.parts:
            lengths = {len(values) for values in part.parameters.values()} - {1}
            if self.sweep.choose == "list" and len(lengths) > 1:
                raise InputError(
                    f'{self.sweep.origin}: choose = "list" wants parameters of one length,'
                    f" not {' and '.join(map(str, sorted(lengths)))}",
                )
        total = sum(_size(self.sweep, part) for part in self.sweep.parts)
        if self.sweep.count is not None:
            if total > sys.maxsize:
                raise InputError(f"{self.sweep.origin}: {total} runs are too many to choose from")
            if total < self.sweep.count:
                raise InputError(f"{self.sweep.origin}: count = {self.sweep.count} of {total} runs")
            total = self.sweep.count
        limits.check("SWEEP_RUNS", total, f"{self.sweep.origin}: runs")

    def _numbered(self) -> Iterator[Run]:
        sizes = [_size(self.sweep, part) for part in self.sweep.parts]
        bases = [self._base(part) for part in self.sweep.parts]
        wanted: Sequence[int] = range(sum(sizes))
        if self.sweep.count is not None:
            wanted = random.Random(self.sweep.seed).sample(wanted, self.sweep.count)
        for number, index in enumerate(wanted):
            which = 0
            while index >= sizes[which]:
                index -= sizes[which]
                which += 1
            part = self.sweep.parts[which]
            yield self._run(number, part, bases[which], _point(self.sweep, part, index))

    def _base(self, part: Part) -> tuple[str, Base]:
        path = self.sweep.folder / part.program
        if self.sweep.inside and not files.is_inside(path, self.sweep.folder):
            raise InputError(
                f"{self.sweep.origin}: {path} leaves the folder of the sweep",
                hint="--allow-outside lets it name programs and files anywhere",
            )
        program = load_program(path, allow_outside=self.sweep.allow_outside)
        held = {str(path): self._digest_of(path) for path in sorted(set(program.files()))}
        base = Base(program, held)
        folder = self.sweep.folder
        known = sorted((os.path.relpath(path, folder), name) for path, name in held.items())
        name = f"{_digest(json.dumps(known).encode())}/base"
        self.bases[name] = pickle.dumps(base)
        self.files_of[name] = tuple(held.values())
        return name, base

    def _digest_of(self, path: Path) -> str:
        """Digest of a file's contents, which is read once, and its name."""
        found = self._digests.get(str(path))
        if found is None:
            data = files.read_bytes(path, "ARRAY_BYTES", self.sweep.origin)
            found = f"{_digest(data)}/{path.name}"
            self._digests[str(path)] = found
            self.files[found] = path
        return found

    def _run(
        self, number: int, part: Part, base: tuple[str, Base], values: Mapping[str, Scalar]
    ) -> Run:
        flags: dict[str, tuple[str, ...]] = {}
        own: dict[str, str] = {}
        given = {f: [filled(t, values) for t in texts] for f, texts in part.templates.items()}
        for flag, texts in given.items():
            if texts and flag not in ("set", "until"):
                texts = [self._rooted(flag, text, own) for text in texts]
            flags[TEMPLATES[flag]] = tuple(texts)
        how = {name: value for name, value in values.items() if name in options()}
        job = Job(number, base[0], flags, how, own, self.sweep.compare)
        held = [*own.values()]
        known = [__version__, base[0], given, how, held, self.sweep.compare, values]
        key = _digest(json.dumps(known).encode())
        return Run(key, part.program, values, job, self._command(part, base[1], job))

    def _rooted(self, flag: str, text: str, own: dict[str, str]) -> str:
        """A flag whose file is named from the root, and noted in `own` with its digest."""
        core, name, rest = "", text, ""
        if flag == "core":
            core, equals, name = text.partition("=")
            core += equals
        else:
            name, at, rest = text.rpartition("@")
            rest = at + rest
        path = Path(os.path.abspath(self.sweep.folder / name))
        if self.sweep.inside and not files.is_inside(path, self.sweep.folder):
            raise InputError(f"{self.sweep.origin}: --{flag} {text} leaves the folder of the sweep")
        own[str(path)] = self._digest_of(path)
        return f"{core}{path}{rest}"

    def _command(self, part: Part, base: Base, job: Job) -> str:
        """The command that repeats a run."""
        words = ["bhemu", "run", _shown(str(self.sweep.folder / part.program))]
        for flag, name in TEMPLATES.items():
            for text in job.flags[name]:
                for path in job.files:
                    text = text.replace(path, _shown(path))
                words += [f"--{flag}", text]
        for name, value in job.options.items():
            words += [f"--{name}", str(value)]
        if not job.compare:
            words.append("--no-compare")
        if not base.program.inside:
            words.append("--allow-outside")
        return shlex.join(words)

    def _check_first(self) -> None:
        """InputError for flags of the first run of each program that cannot be read."""
        seen = set()
        for run in self.runs:
            if run.program not in seen:
                seen.add(run.program)
                base: Base = pickle.loads(self.bases[run.job.base])
                run.job.configured(base.program)


def _size(sweep: Sweep, part: Part) -> int:
    lengths = [len(values) for values in part.parameters.values()]
    return max(lengths, default=1) if sweep.choose == "list" else math.prod(lengths)


def _point(sweep: Sweep, part: Part, index: int) -> dict[str, Scalar]:
    """The values of the parameters at a place of the list, or of the grid: the last one fastest."""
    point: dict[str, Scalar] = {}
    if sweep.choose == "list":
        return {n: v[index if len(v) > 1 else 0] for n, v in part.parameters.items()}
    for name, values in reversed(list(part.parameters.items())):
        index, own = divmod(index, len(values))
        point[name] = values[own]
    return {name: point[name] for name in part.parameters}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _shown(path: str) -> str:
    """As seen from the folder of the caller, when it lies below."""
    shown = os.path.relpath(path)
    return path if shown.startswith("..") else shown
