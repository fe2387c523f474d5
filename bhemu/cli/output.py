"""What the commands write: nothing in it acts on the terminal."""

import click

from bhemu.text import printable_lines


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """`text` and a line feed on stdout or stderr; characters that do not print are escaped."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)
