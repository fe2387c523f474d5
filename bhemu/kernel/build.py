"""The ELFs of a program from its sources: what has changed is compiled and linked again."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bhemu.errors import InputError
from bhemu.kernel.compiler import LIBRARY, Compiler, run
from bhemu.memmap import CORE_NAMES
from bhemu.program import files, toml
from bhemu.program.specs import SOURCES, STATE, BuildSpec, build_from, source_of, stamp
from bhemu.program.toml import Table

_FRAMES = {"elf": "lib", "image": "lib", "tt-metal": "kernel"}  # start code, linker scripts
_PLACE = re.compile(
    r"^((?:In file included|\s+) from )?(?:\./)?(?=[^/\s][^\s:]*:\d+)", re.MULTILINE
)


@dataclass(frozen=True)
class Elf:
    """One ELF of a program: paths are relative to its folder."""

    path: Path
    core: str
    source: Path


@dataclass(frozen=True)
class Plan:
    """What a program is built from."""

    folder: Path
    frame: str
    elfs: tuple[Elf, ...]
    kept: tuple[Path, ...]  # ELFs that are there without a source
    include: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """What became of an ELF. `said`: what the compiler said; `commands`: those that were run."""

    elf: Elf
    state: str  # "built", "unchanged" or "failed"
    said: str = ""
    commands: Sequence[Sequence[str]] = ()

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values; paths are relative to the folder of the program."""
        elf = {"elf": str(self.elf.path), "core": self.elf.core, "source": str(self.elf.source)}
        return {**elf, "state": self.state, "said": self.said}


def plan(path: Path) -> Plan:
    """What the PROGRAM.toml at `path`, a file or a folder, says about its ELFs and their sources.

    An ELF that is there and has no source is left as it is. InputError for one that has neither,
    and for one that two cores load: each core's is linked for its own place.
    """
    path = path / "PROGRAM.toml" if files.is_folder(path) else path
    data = toml.read(path, "bhemu new NAME --kernel writes one with its sources")
    top = Table(data, str(path), path.parent, inside=True)
    kind = top.text("kind", "elf")
    if kind not in _FRAMES:
        top.fail(f'kind = "{kind}" is not built here', hint=f"one of {', '.join(_FRAMES)} is")
    spec = build_from(top)
    if os.environ.get(files.CONFINED):
        _check_confined(top, spec)
    found: dict[Path, Elf] = {}
    for table in (top, *top.tables("tile")):
        cores = table.table("cores")
        for core in CORE_NAMES:
            if core not in cores or (name := cores.table(core).text("elf", None)) is None:
                continue
            elf = Path(os.path.normpath(name))
            if not files.is_inside(path.parent / elf, path.parent):
                cores.fail(f"{core}: {name} leaves the folder of the program")
            if found.setdefault(elf, Elf(elf, core, Path())).core != core:
                cores.fail(
                    f"{found[elf].core} and {core} load the same {name}",
                    hint="an ELF is linked for one core: #include one source in two files",
                )
            source = source_of(path.parent / elf, path.parent)
            if source is not None:
                found[elf] = Elf(elf, core, source.relative_to(path.parent))
            elif files.is_missing(path.parent / elf):
                cores.fail(
                    f"{core}: {name} has no source",
                    hint=f"{elf.stem} with one of the endings {' '.join(SOURCES)} beside {path}",
                )
    elfs = tuple(one for one in found.values() if one.source != Path())
    if not elfs:
        top.fail("no core has an ELF that is built from a source here")
    kept = tuple(one.path for one in found.values() if one.source == Path())
    return Plan(path.parent, _FRAMES[kind], elfs, kept, _include(top, spec), spec.flags)


_HARMLESS = re.compile(
    r"-D\w+(=[^/]*)?|-U\w+|-O[0-3sg]|-W[a-z0-9-]+(=\d+)?|-f(?!plugin)[a-z0-9-]+|-g\d?|-std=[a-z0-9+]+"
)


def _check_confined(top: Table, spec: BuildSpec) -> None:
    """InputError for what lets a compiler read or write outside of the folder of the program."""
    table = top.table("build")
    for flag in spec.flags:
        if _HARMLESS.fullmatch(flag) is None:
            table.fail(f"flags: {flag} is not allowed here", hint="-D -U -O -W -f -g -std are")
    for text in spec.include:
        if not files.is_inside(top.folder / os.path.expandvars(text), top.folder):
            table.fail(f"include: {text} leaves the folder of the program")
    for path in (top.folder / STATE, *(top.folder / STATE).rglob("*")):
        if not files.is_inside(path, top.folder):
            table.fail(f"{path} leads out of the folder of the program", hint="remove it")


def _include(top: Table, spec: BuildSpec) -> tuple[str, ...]:
    """The folders of [build] include, with variables of the environment put in."""
    table = top.table("build")
    found = []
    for text in spec.include:
        for name in re.findall(r"\$\{?(\w+)", text):
            if name not in os.environ:
                table.fail(f"include: {text}: ${name} is not set", hint=f"export {name}=FOLDER")
        folder = os.path.expandvars(os.path.expanduser(text))
        if not files.is_folder(top.folder / folder):
            table.fail(f"include: no such folder: {folder}")
        found.append(folder)
    return tuple(found)


def build(planned: Plan, compiler: Compiler) -> Iterator[Built]:
    """Build every ELF whose sources, headers or commands are not those of last time, in order."""
    state = planned.folder / STATE
    try:
        (state / "include").mkdir(parents=True, exist_ok=True)
        _write_header(state / "include" / "tensix_insn.h")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(lambda elf: _build(planned, elf, compiler), planned.elfs)
    except OSError as problem:
        raise InputError(f"{problem.filename or state}: {problem.strerror}") from problem


def _write_header(path: Path) -> None:
    """The macros of all instructions, unless those there are as new as what they are made from."""
    declared = Path(__file__).parents[1] / "tensix"
    newest = max(file.stat().st_mtime for file in declared.rglob("*.py"))
    if path.exists() and path.stat().st_mtime >= newest:
        return
    import bhemu.tensix.units  # noqa: F401  (declares the instructions)
    from bhemu.tensix.c_header import c_header

    path.write_text(c_header())


def _build(planned: Plan, elf: Elf, compiler: Compiler) -> Built:
    folder, frame = planned.folder, LIBRARY / planned.frame
    noted, script = folder / stamp(elf.path), frame / f"{elf.core}.ld"
    places = [f"-I{each}" for each in (f"{STATE}/include", LIBRARY, *planned.include)]
    commands, objects = [], []
    for source in (frame / "crt0.S", elf.source):
        made = f"{STATE}/{noted.stem}.{source.stem}.o"
        more = [*places, *planned.flags, "-MD", "-MF", f"{made}.d"]
        commands.append(compiler.compile(elf.core, source, made, more))
        objects.append(made)
    moves = planned.frame == "kernel"
    commands.append(compiler.link(elf.core, script, objects, elf.path, LIBRARY, moves=moves))
    if _is_as_stamped(noted, folder, commands):
        os.utime(folder / elf.path)  # for tools that compare times: not older than its source
        return Built(elf, "unchanged")
    noted.unlink(missing_ok=True)
    (folder / elf.path).parent.mkdir(parents=True, exist_ok=True)
    said, seen = "", "" if folder == Path() else f"{folder}/"
    for command in commands:
        done = run(command, folder)
        said += _PLACE.sub(lambda at: (at[1] or "") + seen, done.stderr)
        if done.returncode:
            (folder / elf.path).unlink(missing_ok=True)  # no run takes it for what was just built
            return Built(elf, "failed", said, commands)
    inputs = [str(elf.path), str(script)]
    for made in objects:
        rule = (folder / f"{made}.d").read_text().replace("\\\n", " ").partition(": ")[2]
        inputs += [path.replace("\\ ", " ") for path in re.split(r"(?<!\\)\s+", rule.strip())]
    digest = _digest(folder, commands, inputs)
    noted.write_text(json.dumps({"inputs": inputs, "digest": digest}))
    return Built(elf, "built", said, commands)


def _is_as_stamped(stamp: Path, folder: Path, commands: list[list[str]]) -> bool:
    """Whether the ELF, what it was made from and how are those of its stamp."""
    try:
        noted = json.loads(stamp.read_text())
        return bool(noted["digest"] == _digest(folder, commands, noted["inputs"]))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _digest(folder: Path, commands: list[list[str]], inputs: list[str]) -> str:
    found = hashlib.sha256(json.dumps(commands).encode())
    for path in inputs:
        found.update(hashlib.sha256((folder / path).read_bytes()).digest())
    return found.hexdigest()
