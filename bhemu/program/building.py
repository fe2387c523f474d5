"""What a PROGRAM.toml says about its sources: the ELF x.elf is made from x.c, as [build] says."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bhemu.program import files
from bhemu.program.toml import Table

if TYPE_CHECKING:
    from bhemu.program.specs import Program

STATE = "build"
"""The folder of objects, of the generated header and of what was built from what."""
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".S")


@dataclass(frozen=True)
class BuildSpec:
    """As written: `include` are folders of headers, in which $NAME is an environment variable."""

    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def build_from(top: Table) -> BuildSpec:
    """The table [build] of a whole file; InputError for what is no array of strings."""
    table = top.table("build")
    spec = BuildSpec(_strings(table, "include"), _strings(table, "flags"))
    table.finish()
    return spec


def _strings(table: Table, key: str) -> tuple[str, ...]:
    values = table.take(key, [], (list,))
    if any(type(value) is not str or not value or "\0" in value for value in values):
        table.fail(f"{key} must be an array of strings", hint=f'{key} = ["..."]')
    return tuple(values)


def source_of(elf: Path, folder: Path) -> Path | None:
    """The source of the ELF's name, beside it or in the folder of its program; None without one."""
    named = (where / f"{elf.stem}{end}" for where in (elf.parent, folder) for end in SOURCES)
    return next((path for path in named if files.is_file(path)), None)


def elf_file(table: Table) -> Path | None:
    """The path under `elf`, None when absent; InputError for an ELF that is not there (yet)."""
    name = table.text("elf", None)
    elf = None if name is None or "\0" in name else table.folder / name
    if elf is not None and files.is_missing(elf) and source_of(elf, table.folder) is not None:
        table.fail(f"elf: {elf} is not built yet", hint=f"bhemu build {table.folder}")
    return table.file("elf")


def outdated(program: "Program") -> list[str]:
    """Each file of a program that is older than its source, and the command that makes it anew.

    Sources of x.elf are what `bhemu build` made it from, or x.c where it was built by other means;
    the source of a .npy file is a script *_data.py of the program's folder.
    """
    folder = program.path.parent if program.path is not None else Path()
    scripts = sorted(folder.glob("*_data.py"))
    found: dict[str, None] = {}
    firmware = () if program.firmware is None else program.firmware.elfs.values()
    for path in dict.fromkeys(program.files()):
        if path in firmware:  # which `bhemu build` does not build
            continue
        if path.suffix == ".elf":
            sources, command = _sources(path, folder), f"bhemu build {folder}"
        else:
            sources = scripts if path.suffix == ".npy" and len(scripts) == 1 else []
            command = f"python {sources[0]}" if sources else ""
        for source in sources if files.is_file(path) else ():
            if files.is_file(source) and source.stat().st_mtime > path.stat().st_mtime:
                found[f"{source} is newer than {path}: {command}"] = None
                break
    return list(found)


def stamp(elf: Path) -> str:
    """The file, below the folder of a program, in which `bhemu build` notes what an ELF was made
    from; `elf` is relative to that folder."""
    return f"{STATE}/{'_'.join(elf.with_suffix('').parts).removeprefix(f'{STATE}_')}.json"


def _sources(elf: Path, folder: Path) -> list[Path]:
    """The files of the program's folder that an ELF was made from, its own source first."""
    source = source_of(elf, folder)
    if source is None or not files.is_inside(elf, folder):
        return [] if source is None else [source]
    try:
        noted = json.loads((folder / stamp(Path(os.path.relpath(elf, folder)))).read_text())
        written = [str(path) for path in noted["inputs"]]
    except (OSError, ValueError, LookupError, TypeError):
        written = []
    made = (folder / path for path in written if not path.startswith((STATE, os.sep)))
    return [source, *(path for path in made if path not in (elf, source))]
