"""`bhemu check`: everything about a program that can be found out without running it."""

import json
from typing import Any

import click

from bhemu.cli import output
from bhemu.cli.options import json_option, program_of, program_options
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_OK
from bhemu.program import coordinates


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
        from bhemu.launch.session import Launched

        plan.check_expected(program)
        launched = Launched(program, boot=False)
        report = {**plan.report(launched), "exit_code": EXIT_OK}
    if as_json:
        output.say(json.dumps(report, indent=2))
        return EXIT_OK
    if not quiet:
        parts = [part.line(with_tiles=bool(program.tiles)) for part in plan.parts(launched)]
        _show(report, parts, firmware=program.firmware is not None)
    for text in report["warnings"]:
        output.say(f"warning: {text}", err=True)
    return EXIT_OK


def _show(report: dict[str, Any], parts: list[str], *, firmware: bool) -> None:
    lines = [f"{report['program']}: kind {report['kind']}, nothing wrong", *parts]
    for tiles in report["tiles"]:
        on = "" if len(report["tiles"]) == 1 else f"{coordinates.text(tiles['at'])} "
        for name, core in tiles["cores"].items():
            if firmware:
                lines.append(f"{on}{name:<7} started by the firmware")
                continue
            released = "released by bhemu" if core["release"] else "released by another core"
            at = core["start"]
            where = "where that one says" if at is None else f"at 0x{at:08X}"
            lines.append(f"{on}{name:<7} {released}, starts {where}")
    output.say("\n".join([*lines, report["end"]]))
