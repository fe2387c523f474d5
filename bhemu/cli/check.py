"""`bhemu check`: everything about a program that can be found out without running it."""

import json
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import json_option, program_of, program_options
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_OK

if TYPE_CHECKING:
    from bhemu.debug.plan import Part
    from bhemu.program.schema import Program


@click.command("check")
@program_options
@json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what is wrong")
def command(as_json: bool, quiet: bool, **flags: Any) -> int:
    """Check a program without running it.

    Shows where everything would be placed, and checks the file itself, the ELFs, their placement
    and overlaps, the symbols and values of [[set]], that inputs convert exactly, the expected
    files, the address ranges of outputs, and the end condition. The first mistake ends the check
    with exit code 2. What is allowed but probably unintended is a warning.
    """
    program = program_of(flags)
    with Progress(quiet or as_json).starting():
        from bhemu.debug import plan

        plan.check_expected(program)
        if program.is_chip:
            return _chip(program, as_json=as_json, quiet=quiet)
        from bhemu.launch import launch

        tile = launch(program, boot=False)
    parts = plan.parts(tile, program)
    report = {
        "program": program.name,
        "kind": program.kind,
        "parts": [vars(part) for part in parts],
        "cores": {name: {"start": at, "release": mine} for name, at, mine in plan.starts(program)},
        "end": plan.ends(tile, program),
        "warnings": plan.warnings(parts),
        "exit_code": EXIT_OK,
    }
    if as_json:
        output.say(json.dumps(report, indent=2))
        return EXIT_OK
    if not quiet:
        _show(report, parts)
    for text in plan.warnings(parts):
        output.say(f"warning: {text}", err=True)
    return EXIT_OK


def _chip(program: "Program", *, as_json: bool, quiet: bool) -> int:
    from bhemu.debug import chip_plan
    from bhemu.launch_chip import launch

    report = chip_plan.report(launch(program, boot=False), program)
    if as_json:
        output.say(json.dumps({**report, "exit_code": EXIT_OK}, indent=2))
    elif not quiet:
        output.say(f"{report['program']}: kind {report['kind']}, nothing wrong")
        for part in report["parts"]:
            where = f"{part['where']} 0x{part['low']:08X}..0x{part['high']:08X}"
            output.say(f"{where}  {part['kind']:<6}  {part['what']}")
        output.say(report["end"])
    return EXIT_OK


def _show(report: dict[str, Any], parts: "list[Part]") -> None:
    lines = [f"{report['program']}: kind {report['kind']}, nothing wrong", *map(str, parts)]
    for name, core in report["cores"].items():
        who = "released by bhemu" if core["release"] else "released by another core"
        at = core["start"]
        where = "where that one says" if at is None else f"at 0x{at:08X}"
        lines.append(f"{name:<7} {who}, starts {where}")
    output.say("\n".join([*lines, report["end"]]))
