"""How `--help` shows options: in sections, those that many commands share by name alone."""

import textwrap

import click

from bhemu.program.options import given_in

_PROGRAM = ("cores", "inputs", "expects", "until", "sets", "no_compare", "allow_outside", "tile")
_OUTPUT = ("save", "quiet", "verbose", "as_json")
_SECTIONS = {  # title: names of parameters; whether each has its line before --help-all
    "The program, beside its PROGRAM.toml": (_PROGRAM, False),
    "The machine and its run (docs/options.md)": (tuple(given_in("flag")), False),
    "What is written": (_OUTPUT, True),
}
ALL = "--help-all"
"""The option that explains every other; the key of a context's meta that does the same."""


class Command(click.Command):
    """A command whose options stand in sections, and whose help fits a screen."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its parameters, with --help-all where --help leaves something out."""
        params = super().get_params(ctx)
        if any(self._section(one) in self._by_name() for one in params):
            params.append(_help_all())
        return params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then the sections."""
        whole = bool(ctx.meta.get(ALL))
        rows: dict[str, list[tuple[str, str]]] = {one: [] for one in ("Options", *_SECTIONS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                rows[self._section(param)].append(record)
        for title, records in rows.items():
            if not records:
                continue
            with formatter.section(title):
                if whole or title not in self._by_name():
                    formatter.write_dl(records)
                    continue
                named = [record[0].replace(" ", "\0") for record in records]
                indent = " " * formatter.current_indent
                for line in textwrap.wrap("  ".join(named), formatter.width - len(indent)):
                    formatter.write(indent + line.replace("\0", " ") + "\n")

    @staticmethod
    def _by_name() -> list[str]:
        return [title for title, (_, explained) in _SECTIONS.items() if not explained]

    @staticmethod
    def _section(param: click.Parameter) -> str:
        found = (title for title, (names, _) in _SECTIONS.items() if param.name in names)
        return next(found, "Options")


def _help_all() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        [ALL],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Explain every option and exit.",
    )
