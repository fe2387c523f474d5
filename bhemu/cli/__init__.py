"""The command `bhemu`: finds the sub-commands and turns errors into exit codes."""

import errno
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from bhemu import __version__
from bhemu.cli import output
from bhemu.errors import BhemuError, InputError
from bhemu.riscv import ARRAYS, check_start
from bhemu.system import interrupts

_FIRST = {
    "run": ("run", "Run a program and compare its outputs."),
    "step": ("inspect", "Step through a program, at a prompt or from a script."),
    "profile": ("measure", "Run a program in modelled time: where do the cycles go?"),
    "why": ("why", "Run a program and tell what is wrong, or what made PLACE."),
    "report": ("why", "Run a program and write a report of it, one HTML file."),
    "trace": ("inspect", "Run a program and print each Tensix word that was executed."),
    "build": ("new", "Compile and link the ELFs of a program from C, if changed."),
    "new": ("new", "Write a commented PROGRAM.toml, or a kernel that runs."),
    "explain": ("isa", "Say what something is; list instructions; disassemble."),
    "gdb": ("inspect", "Launch a program and wait for gdb, its five cores as threads."),
    "sweep": ("sweep", "Run programs with many values of parameters."),
    "simulator": ("serve", "Write a simulator FOLDER for programs of Tenstorrent."),
}
_MORE = {
    "check": ("run", "Check a program without running it."),
    "dump": ("inspect", "Show the state of a tile: all but memory, or named parts."),
    "numerics": ("why", "Run a program and compare its outputs with exact values."),
    "coverage": (
        "measure",
        "Run programs and show which lines and branches of their kernels were executed.",
    ),
    "diff": ("why", "Run a program on bhemu and on ttsim and compare L1."),
    "bench": ("bench", "Measure the named benchmarks, or all of them."),
    "warm": ("bench", "Compile everything into the cache before it is needed."),
    "llk": ("serve", "Show how to run tt-llk's tests on an emulated tile."),
    "serve": ("serve", "Serve a chip to the host that listens at NNG_SOCKET_ADDR."),
    "mcp": ("serve", "Serve run, why, profile, explain, read, step, build to an agent."),
    "completion": ("options", "Print what completes commands and options in a shell."),
}
_OLD = {
    "isa": ("isa", "List the Tensix instructions, or explain one."),
    "disasm": ("isa", "Disassemble an ELF, or words given in hexadecimal."),
}
COMMANDS = _FIRST | _MORE | _OLD
"""By command: its module, which has it as NAME_command, and the first sentence of its help."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_BROKEN_PIPE = 141  # as a shell reports a process that SIGPIPE ended


@contextmanager
def _writing() -> Iterator[None]:
    """Where output is written: a reader that went away (`| head`) is no error, a full disk is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        output.mute(sys.stdout)
        raise click.exceptions.Exit(_BROKEN_PIPE) from None
    except OSError as problem:
        if problem.filename is not None or problem.errno not in _FULL:
            raise
        output.mute(sys.stdout)
        raise InputError(f"the output cannot be written: {problem.strerror}") from problem


class Commands(click.Group):
    """A group whose members are imported when asked for; see errors.py for the exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help text."""
        return [*_FIRST, *_MORE]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, of which none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _FIRST.items()])
        formatter.write_paragraph()
        formatter.write_text(f"More: {', '.join(_MORE)}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and options that begin so; no command is imported."""
        named = {**_FIRST, **_MORE}.items()
        found = [CompletionItem(name, help=text) for name, (_, text) in named]
        own = click.Command.shell_complete(self, ctx, incomplete)
        return [*(one for one in found if one.value.startswith(incomplete)), *own]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"bhemu.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        from bhemu.cli.options import Command

        command.__class__ = Command  # as if each were declared with it
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest name for an unknown one."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from bhemu.program.toml import suggestion

            ctx.fail(f"no command {name!r}; {suggestion(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _writing():
            if "numpy" not in sys.modules:
                check_start(ARRAYS)
            return super().invoke(ctx)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """As click's, which writes what --help and --version say."""
        with _writing():
            return super().make_context(*args, **extra)

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Parse, run and leave with the exit code; never with a traceback for bad input."""
        given = list(sys.argv[1:] if args is None else args)
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:  # closed by the parent process
                setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - to the end
        extra.update(standalone_mode=False)
        extra.setdefault("obj", args is None)  # whether the command is this process (run.py)
        try:
            code = super().main(given, *more, **extra)
        except Exception as problem:  # everything ends as one line and an exit code
            if not isinstance(problem, (BhemuError, click.ClickException)):
                interrupts.check()  # whatever a library makes of a Ctrl-C
            code = output.show(problem, as_json="--json" in given)
        sys.exit(code or 0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bhemu")
def main() -> None:
    """Emulate a Tenstorrent Blackhole Tensix tile: run ELFs, step, look inside."""
