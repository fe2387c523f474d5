"""`bhemu build` makes the ELFs of a program from their sources."""

import shlex
from pathlib import Path

import click

from bhemu.cli import output
from bhemu.errors import EXIT_OK, InputError


@click.command("build")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--compiler", metavar="GCC", help="this RISC-V GCC instead of ziglang or the first one at hand"
)
@click.option("-q", "--quiet", is_flag=True, help="print only what is wrong")
@click.option("-v", "--verbose", is_flag=True, help="print the commands")
def build_command(folder: Path, compiler: str | None, quiet: bool, verbose: bool) -> int:
    """Compile and link the ELFs of a program from C, if changed.

    Each ELF that the PROGRAM.toml in FOLDER gives to a core is made from the source of its name:
    math.elf from math.c, .cc or .S. Headers are found in lib/ of bhemu and where [build] says.
    """
    from bhemu.kernel import build
    from bhemu.kernel.compiler import at_hand

    planned = build.plan(folder)
    failed = []
    for path in () if quiet else planned.kept:
        output.say(f"{path}  kept  (no source)")
    for one in build.build(planned, at_hand(compiler)):
        for command in one.commands if verbose else ():
            output.say(shlex.join(command))
        if one.said:
            output.say(one.said.rstrip("\n"), err=True)
        if one.state == "failed":
            failed.append(str(one.elf.source))
        elif not quiet:
            output.say(f"{one.elf.path}  {one.state}  ({one.elf.core}, {one.elf.source})")
    if failed:
        raise InputError(f"not built: {', '.join(failed)}", hint="the compiler says why, above")
    return EXIT_OK
