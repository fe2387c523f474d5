"""`bhemu profile`: where a card would spend the cycles of a program, by the modelled times."""

from typing import Any

import click

from bhemu.cli import output
from bhemu.cli.options import program_options, run_options, settings
from bhemu.cli.output import Progress
from bhemu.errors import EXIT_INTERRUPTED, EXIT_OK, InputError


@click.command("profile")
@program_options
@click.option(
    "--lines", default=15, type=click.IntRange(0, 10_000), help="how many waits are shown"
)
@run_options
def profile_command(**values: Any) -> int:
    """Run a program in modelled time and show where the cycles go.

    For each core, thread and unit: the cycles in which it works, and what it waits for most; then
    the longest waits by source line; of a chip also the transfers. docs/timing.md has the figures,
    their sources and the error against cards. A run that does not end as the program says is an
    error, as of `bhemu run`.
    """
    if values["late"] is not None or values["timing"] == "off":
        raise InputError("profile runs with modelled times: leave --late and --timing away")
    values["timing"] = "model"
    chosen = settings(values)
    progress = Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.summary import Target
        from bhemu.debug.profile import ChipProfile, Profile
        from bhemu.machine.tile import Tile

        chosen.check_save()
        target = Target(chosen, progress)
        begun = target.machine.clock
        for tile in target.tiles:
            tile.state.spent[0] = 1
        if target.machine.network is not None:
            target.machine.network.state.noc_counts[0] = 1
    with progress.running(target):
        ended = target.finish()
    target.save()
    chip = None if isinstance(target.machine, Tile) else target.machine
    found = Profile(target.tile) if chip is None else ChipProfile(chip, begun)
    if chosen.as_json:
        return output.report(
            {"program": target.program.name, **found.as_dict()},
            EXIT_OK,
            as_json=True,
            error=ended.error,
        )
    output.say(f"{target.program.name}: " + "\n".join(found.lines(values["lines"])))
    if ended.error is not None:
        raise ended.error
    return EXIT_INTERRUPTED if ended.interrupted else EXIT_OK
