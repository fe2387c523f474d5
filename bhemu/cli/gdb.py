"""`bhemu gdb`: a program under gdb, which attaches over the remote protocol."""

import socket
from pathlib import Path
from typing import Any

import click

from bhemu.cli import output
from bhemu.cli.options import program_options, run_options, settings
from bhemu.cli.progress import Progress
from bhemu.errors import EXIT_OK, InputError
from bhemu.program import files

_HOST, _PORT = "127.0.0.1", 3333


@click.command("gdb")
@program_options
@run_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="TCP port; 0 chooses a free one",
)
@click.option("--host", default=_HOST, show_default=True, help="the address to listen on")
@click.option(
    "--allow-save",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="let monitor save and load touch FILE.npz there; otherwise they are refused",
)
@click.option("--once", is_flag=True, help="end when the first debugger leaves")
def command(**values: Any) -> int:
    """Launch a program and wait for gdb, its five cores as threads.

    Nothing has been executed yet when gdb attaches. It reads the ELFs' symbols by itself. monitor
    takes every command of `bhemu step`, save and load only with --allow-save; reverse-step and
    reverse-continue go back. Of a chip it shows the tile of --tile, which the others run along
    with. The server ends when gdb kills the program, or with Ctrl-C.
    """
    chosen, folder = settings(values), values["allow_save"]
    if folder is not None and not files.is_folder(folder):
        raise InputError(f"--allow-save: {folder} is no folder", hint="make it first")
    with _listener(values["host"], values["port"]) as listener:
        progress = Progress(chosen.quiet)
        with progress.starting():
            from bhemu.cli.target import Target as Launched
            from bhemu.hosts.gdb.server import serve
            from bhemu.hosts.gdb.target import Target

            launched = Launched(chosen, progress)
            target = Target(launched, folder)
        port = listener.getsockname()[1]
        output.say(f"waiting for gdb: gdb-multiarch -ex 'target remote {values['host']}:{port}'")
        serve(target, listener, values["once"])
    launched.save()
    return EXIT_OK


def _listener(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except (OSError, UnicodeError) as problem:
        text = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            f"cannot listen on {host}:{port}: {text}", hint="--port 0 chooses a free port"
        ) from problem
