"""`bhemu simulator`: a folder that stock ttnn and tt-exalens take as their simulator."""

import shlex
from pathlib import Path
from typing import Any

import click

from bhemu.cli import output
from bhemu.cli.serve import arguments, check_packages, serve_options


@click.command("simulator")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@serve_options
def command(folder: Path, **values: Any) -> int:
    """Write a simulator FOLDER for programs of Tenstorrent: run.sh and soc_descriptor.yaml.

    The options are those that `bhemu serve` gets from run.sh.
    """
    check_packages()
    from bhemu.hosts import simulator
    from bhemu.jit.cache import root

    simulator.write(folder, arguments(values), root())
    at = shlex.quote(str(folder.resolve()))
    output.say(f"TT_METAL_SIMULATOR={at} TT_METAL_SLOW_DISPATCH_MODE=1 python program.py")
    output.say(f"tt-exalens -s {at}")
    return 0
