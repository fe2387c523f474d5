"""What a PROGRAM.toml says about its sources: the ELF x.elf is made from x.c, as [build] says."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bhemu.program import files
from bhemu.program.toml import Table

if TYPE_CHECKING:
    from bhemu.program.specs import Program

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
    """The ELFs of a program that are older than their sources, in words."""
    found = []
    folder = program.path.parent if program.path is not None else Path()
    for elf in dict.fromkeys(program.files()):
        source = source_of(elf, folder) if elf.suffix == ".elf" else None
        if source is not None and source.stat().st_mtime > elf.stat().st_mtime:
            found.append(f"{source} is newer than {elf}: bhemu build {folder}")
    return found
