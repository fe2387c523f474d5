"""`bhemu completion` prints what makes a shell complete commands and options."""

from typing import Any

import click

from bhemu.cli import output
from bhemu.errors import EXIT_OK


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> int:
    """Print what completes commands and options in a shell.

    For bash: source <(bhemu completion bash), in ~/.bashrc for every session.
    """
    from click.shell_completion import get_completion_class

    kind: Any = get_completion_class(shell)
    output.say(
        kind(
            click.get_current_context().find_root().command, {}, "bhemu", "_BHEMU_COMPLETE"
        ).source()
    )
    return EXIT_OK
