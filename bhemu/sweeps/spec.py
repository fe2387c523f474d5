"""SWEEP.toml: programs and parameters, and the runs that they stand for."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import random
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bhemu import __version__, arguments
from bhemu.errors import InputError
from bhemu.program import files, toml
from bhemu.program.cli_overrides import with_flags, with_options, without_expected
from bhemu.program.options import given_in
from bhemu.program.schema import load_program
from bhemu.program.specs import Program
from bhemu.text import printable

SCHEMA = 1
CHOICES: Final = ("grid", "list", "random")
TEMPLATES: Final = {
    "core": "cores",
    "in": "inputs",
    "expect": "expects",
    "until": "until",
    "set": "sets",
}
"""Flags of `bhemu run` that may name parameters as {name}, and what they are called in Python."""
COUNTS: Final = ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2", "t0", "t1", "t2")
"""Columns of what cores and threads have executed."""
RESULTS: Final = (
    *("run", "program", "outcome", "exit_code", "stop", "clock"),
    *COUNTS,
    *("digest", "differing", "worst_ulp", "category", "rule", "message", "where"),
    *("tile", "core", "thread", "pc", "function", "file", "line"),
    *("tolerated", "seconds", "command", "key"),
)
"""Columns of the results, beside the parameters."""
Scalar = int | float | str | bool
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def _check_names(name: str, value: Any) -> Any:
    from bhemu.why import checks  # much code that a sweep without them does not need

    return checks.named(value) if isinstance(value, str) else arguments.choice(name, value, {})


def options() -> dict[str, Callable[[str, Any], Any]]:
    """Parameters that mean something by themselves, with their checks: options of `bhemu run`."""
    flags = {o.flag or name: o.kind.check_written for name, o in given_in("flag").items()}
    return {**flags, "check": _check_names}


@dataclass(frozen=True)
class Part:
    """One program of a sweep; its parameters and templates are those of the sweep and its own."""

    program: str
    parameters: Mapping[str, Sequence[Scalar]]
    templates: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Sweep:
    """What to run: each of `parts` with the values of its parameters that `choose` says.

    "grid": all combinations; "list": the first values of all, the second ones, and so on;
    "random": `count` combinations of the grid, which `seed` decides. `folder` is what paths start
    from; with `inside` none may leave it. `allow_outside`: a program's files may lie outside of its
    own folder. Without `compare` outputs are read and not compared.
    """

    name: str
    folder: Path
    parts: tuple[Part, ...]
    choose: str = "grid"
    count: int | None = None
    seed: int = 0
    compare: bool = True
    inside: bool = False
    allow_outside: bool = False
    origin: str = "sweep"


def load_sweep(path: str | Path, *, allow_outside: bool = False) -> Sweep:
    """Read a SWEEP.toml, or the one in a folder; InputError for every mistake in it."""
    path = arguments.path(path)
    if files.is_folder(path):
        path /= "SWEEP.toml"
    data = toml.read(path, "docs/sweep.md shows one")
    top = toml.Table(data, str(path), path.parent, inside=not allow_outside)
    toml.check_schema(top, "sweep", SCHEMA)
    sweep = Sweep(
        name=printable(top.text("name", path.stem)),
        folder=path.parent,
        choose=top.text("choose", "grid", choices=CHOICES),
        count=top.integer("count", None, lo=1),
        seed=top.integer("seed", 0),
        compare=top.flag("compare", True),
        inside=not allow_outside,
        allow_outside=allow_outside,
        origin=str(path),
        parts=_parts(top),
    )
    top.finish()
    check(sweep)
    return sweep


def _parts(top: toml.Table) -> tuple[Part, ...]:
    shared, templates = _parameters(top), _templates(top)
    names = top.take("program", None, (str, list))
    if isinstance(names, str):
        names = [names]
    if not names:
        top.fail("missing key program: what runs?", hint='program = ["add1", "matmul"]')
    if all(isinstance(name, str) for name in names):
        return tuple(Part(name, shared, templates) for name in names)
    parts = []
    for table in top.tables("program"):
        own = _templates(table)
        both = {flag: (*templates[flag], *own[flag]) for flag in TEMPLATES}
        parts.append(Part(table.text("path"), {**shared, **_parameters(table)}, both))
        table.finish()
    return tuple(parts)


def _templates(table: toml.Table) -> dict[str, tuple[str, ...]]:
    found = {}
    for key in TEMPLATES:
        values = table.take(key, [], (list, str))
        values = [values] if isinstance(values, str) else values
        if not all(isinstance(value, str) for value in values):
            table.fail(f"{key} is not an array of strings", hint=f"as --{key} of bhemu run")
        found[key] = tuple(values)
    return found


def _parameters(table: toml.Table) -> dict[str, Sequence[Scalar]]:
    """[parameters]: each an array of values, one value, or { first, last, step }."""
    parameters = table.table("parameters")
    return {name: _values(parameters, name) for name in parameters}


def _values(table: toml.Table, name: str) -> Sequence[Scalar]:
    value = table.take(name, None, (list, dict, str, int, float, bool))
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    span = table.table(name)
    first, last = span.integer("first", lo=-arguments.MOST), span.integer("last")
    step = span.integer("step", 1, lo=1)
    span.finish()
    return range(first, last + 1, step)


def check(sweep: Sweep) -> None:
    """InputError for parameters that mean nothing, have no values or are used nowhere."""
    if (sweep.choose == "random") != (sweep.count is not None):
        raise InputError(f'{sweep.origin}: count goes with choose = "random", and with no other')
    if sweep.count is None:
        total = sum(_size(sweep, part) for part in sweep.parts)
        files.check_limit("SWEEP_RUNS", total, f"{sweep.origin}: runs")
    for part in sweep.parts:
        texts = [text for several in part.templates.values() for text in several]
        used = {name for text in texts for name in _PLACEHOLDER.findall(text)}
        known = (*part.parameters, *options())
        for name in used - part.parameters.keys():
            hint = toml.suggestion(name, known)
            raise InputError(f"{sweep.origin}: {{{name}}} stands for no parameter", hint=hint)
        for name, values in part.parameters.items():
            _check_parameter(f"{sweep.origin}: {name}", name, values)
            if name not in used and name not in options():
                raise InputError(
                    f"{sweep.origin}: parameter {name} is neither an option of bhemu run nor used"
                    f" as {{{name}}} with {part.program}",
                    hint=toml.suggestion(name, tuple(options())),
                )


def _check_parameter(origin: str, name: str, values: Sequence[Scalar]) -> None:
    if not _NAME.fullmatch(name) or name in RESULTS:
        what = "a column of the results" if name in RESULTS else "no name"
        raise InputError(f"{origin} is {what}", hint="letters, digits and _, as in n_tiles")
    if not values:
        raise InputError(f"{origin} has no values")
    if isinstance(values, range) and name not in options():
        return
    if isinstance(values, range):
        values = (values[0], values[-1])
    kinds = {type(value) for value in values}
    if not (kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool})):
        raise InputError(f"{origin}: values of one kind: numbers, strings, or true and false")
    if len(set(values)) < len(values):
        twice = next(value for value in values if list(values).count(value) > 1)
        raise InputError(f"{origin}: {twice!r} stands there twice")
    for value in values if name in options() else ():
        options()[name](origin, value)


def filled(template: str, values: Mapping[str, Scalar]) -> str:
    """The template with values for its parameters."""
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)


# What goes to a worker and comes back: plain data, and no path but those of its files.

Record = dict[str, Any]


@dataclass(frozen=True)
class Base:
    """A program as it was loaded, and the store's names (digest/name) of its files by path."""

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

    def configured(self, program: Program) -> Program:
        """The program as `bhemu run` takes it with these flags and options."""
        base = program if self.compare else without_expected(program)
        how = {n: self.options.get(o.flag or n) for n, o in given_in("flag").items()}
        return with_options(with_flags(base, **self.flags), how)


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


# The runs of a sweep, numbered, each with a key that changes with all that decides its result.


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
        for part in sweep.parts:
            lengths = {len(values) for values in part.parameters.values()} - {1}
            if sweep.choose == "list" and len(lengths) > 1:
                raise InputError(
                    f'{sweep.origin}: choose = "list" wants parameters of one length,'
                    f" not {' and '.join(map(str, sorted(lengths)))}"
                )
        if sweep.count is not None:
            total = sum(_size(sweep, part) for part in sweep.parts)
            if total > sys.maxsize:
                raise InputError(f"{sweep.origin}: {total} runs are too many to choose from")
            if total < sweep.count:
                raise InputError(f"{sweep.origin}: count = {sweep.count} of {total} runs")
            files.check_limit("SWEEP_RUNS", sweep.count, f"{sweep.origin}: runs")
        self.runs = tuple(self._numbered())
        # InputError for flags of the first run of each program that cannot be read
        first: dict[str, Run] = {}
        for run in self.runs:
            first.setdefault(run.program, run)
        for run in first.values():
            base: Base = pickle.loads(self.bases[run.job.base])
            run.job.configured(base.program)

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
            base = bases[which]
            values = _point(self.sweep, part, index)
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
            # The command that repeats a run
            words = ["bhemu", "run", _relative_path(str(self.sweep.folder / part.program))]
            for flag, name in TEMPLATES.items():
                for text in job.flags[name]:
                    for path in job.files:
                        text = text.replace(path, _relative_path(path))
                    words += [f"--{flag}", text]
            for name, value in job.options.items():
                words += [f"--{name.replace('_', '-')}", str(value)]
            if not job.compare:
                words.append("--no-compare")
            if not base[1].program.inside:
                words.append("--allow-outside")
            yield Run(key, part.program, values, job, shlex.join(words))

    def _base(self, part: Part) -> tuple[str, Base]:
        path = self.sweep.folder / part.program
        if self.sweep.inside and not files.is_inside(path, self.sweep.folder):
            text = f"{self.sweep.origin}: {path} leaves the folder of the sweep"
            raise InputError(text, hint="--allow-outside lets it name programs and files anywhere")
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
        if (found := self._digests.get(str(path))) is None:
            data = files.read_bytes(path, "ARRAY_BYTES", self.sweep.origin)
            found = f"{_digest(data)}/{path.name}"
            self._digests[str(path)] = found
            self.files[found] = path
        return found

    def _rooted(self, flag: str, text: str, own: dict[str, str]) -> str:
        """A flag whose file is named from the root, and noted in `own` with its digest."""
        if flag == "core":
            core, equals, name = text.partition("=")
            before, after = core + equals, ""
        else:
            name, at, rest = text.rpartition("@")
            before, after = "", at + rest
        path = Path(os.path.abspath(self.sweep.folder / name))
        if self.sweep.inside and not files.is_inside(path, self.sweep.folder):
            raise InputError(f"{self.sweep.origin}: --{flag} {text} leaves the folder of the sweep")
        own[str(path)] = self._digest_of(path)
        return f"{before}{path}{after}"


def _size(sweep: Sweep, part: Part) -> int:
    lengths = [len(values) for values in part.parameters.values()]
    return max(lengths, default=1) if sweep.choose == "list" else math.prod(lengths)


def _point(sweep: Sweep, part: Part, index: int) -> dict[str, Scalar]:
    """The values of the parameters at a place of the list, or of the grid: the last one fastest."""
    if sweep.choose == "list":
        return {n: v[index if len(v) > 1 else 0] for n, v in part.parameters.items()}
    point: dict[str, Scalar] = {}
    for name, values in reversed(list(part.parameters.items())):
        index, own = divmod(index, len(values))
        point[name] = values[own]
    return {name: point[name] for name in part.parameters}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _relative_path(path: str) -> str:
    """As seen from the folder of the caller, when it lies below."""
    shown = os.path.relpath(path)
    return path if shown.startswith("..") else shown
