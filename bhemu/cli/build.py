"""`bhemu build` makes the ELFs of a program from their sources."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bhemu.cli import output
from bhemu.cli.options import json_option
from bhemu.errors import EXIT_OK, InputError

if TYPE_CHECKING:
    from bhemu.kernel.build import Built


@click.command("build")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--compiler", metavar="GCC", help="this RISC-V GCC instead of ziglang or the first one at hand"
)
@json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what is wrong")
@click.option("-v", "--verbose", is_flag=True, help="print the commands")
def build_command(
    folder: Path, compiler: str | None, as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Compile and link the ELFs of a program from C, if changed.

    Each ELF that the PROGRAM.toml in FOLDER gives to a core is made from the source of its name:
    math.elf from math.c, .cc or .S. Headers are found in lib/ of bhemu and where [build] says.
    """
    from bhemu.kernel import build
    from bhemu.kernel.compiler import at_hand

    planned = build.plan(folder)
    found: list[dict[str, object]] = []
    for path in planned.kept:
        found.append({"elf": str(path), "state": "kept"})
        if not (quiet or as_json):
            output.say(f"{path}  kept  (no source)")
    for one in build.build(planned, at_hand(compiler)):
        found.append(one.as_dict())
        if not as_json:
            _show(one, quiet, verbose)
    failed = [str(one["source"]) for one in found if one["state"] == "failed"]
    error = None
    if failed:
        where = "under said" if as_json else "above"
        hint = f"the compiler says why, {where}"
        error = InputError(f"not built: {', '.join(failed)}", hint=hint)
    return output.report({"elfs": found}, EXIT_OK, as_json=as_json, error=error)


def _show(one: "Built", quiet: bool, verbose: bool) -> None:
    """One ELF as it was built, in words; what the compiler said on stderr."""
    for command in one.commands if verbose else ():
        output.say(shlex.join(command))
    if one.said:
        output.say(one.said.rstrip("\n"), err=True)
    if one.state != "failed" and not quiet:
        output.say(f"{one.elf.path}  {one.state}  ({one.elf.core}, {one.elf.source})")
