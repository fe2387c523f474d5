"""Options that several commands share, how --help shows them, shell completion."""

import functools
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bhemu.arguments import MOST
from bhemu.cli import output
from bhemu.errors import EXIT_OK, InputError, Where
from bhemu.memmap import CORE_NAMES
from bhemu.program import coordinates, files, options, toml

if TYPE_CHECKING:
    from bhemu.cli.summary import Target
    from bhemu.program.specs import Program

# How `--help` shows options: in sections, those that many commands share by name alone.

_PROGRAM = ("cores", "inputs", "expects", "until", "sets", "no_compare", "allow_outside", "tile")
_OUTPUT = ("save", "quiet", "verbose", "as_json")
_BY_NAME = {  # title: names of parameters, which --help-all alone explains
    "The program, beside its PROGRAM.toml": _PROGRAM,
    "The machine and its run (docs/options.md)": tuple(options.given_in("flag")),
}
_SECTIONS = {**_BY_NAME, "What is written": _OUTPUT}
ALL = "--help-all"
"""The option that explains every other; the key of a context's meta that does the same."""


class Command(click.Command):
    """A command whose options stand in sections, and whose help fits a screen."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its parameters, with --help-all where --help leaves something out."""
        params = super().get_params(ctx)
        if any(self._section(one) in _BY_NAME for one in params):
            params.append(_help_all())
        return params

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; an error about its program says at which line of PROGRAM.toml."""
        try:
            return super().invoke(ctx)
        except InputError as problem:
            if problem.where is None:
                problem.where = place(ctx.params, problem)
            raise

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
                if whole or title not in _BY_NAME:
                    formatter.write_dl(records)
                    continue
                named = [record[0].replace(" ", "\0") for record in records]
                indent = " " * formatter.current_indent
                for line in textwrap.wrap("  ".join(named), formatter.width - len(indent)):
                    formatter.write(indent + line.replace("\0", " ") + "\n")

    @staticmethod
    def _section(param: click.Parameter) -> str:
        return next((title for title, names in _SECTIONS.items() if param.name in names), "Options")


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


F = TypeVar("F", bound=Callable[..., Any])

_HERE = "PROGRAM.toml"
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".S", ".h")
_FILES = (".toml", ".npz", ".elf", *_SOURCES)  # endings of what is no PLACE of `bhemu why`
_KINDS = {".npy": "a tensor", **dict.fromkeys(_SOURCES, "a source of C or assembly")}
FLAGS = ("cores", "inputs", "expects", "until", "sets")
_PROGRAMS = ("program", "programs", "what", "names", "other", "coverage")  # parameters


@dataclass(frozen=True)
class Settings:
    """What the shared options say: the program, and how to run and report it."""

    program: "Program"
    save: Path | None
    as_json: bool
    quiet: bool
    verbose: bool
    tile: coordinates.XY | None = None
    warnings: tuple[str, ...] = ()  # files that are older than their sources

    def check_save(self) -> None:
        """InputError when --save cannot be written, or names a file of the program."""
        if self.save is not None:
            saves = (output.save for output in self.program.outputs if output.save is not None)
            files.check_writable(self.save, "--save", (*self.program.files(), *saves))
            if self.save.suffix != ".npz" and (self.save.is_file() or not self.save.exists()):
                hint = f"--save {self.save}.npz"
                raise InputError(f"--save {self.save}: no .npz, which commands read", hint=hint)


class FilePath(click.Path):
    """Type of every argument and option that names a file or folder, there or not: not empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, as text unless path_type says otherwise."""
        if not str(value):
            self.fail("no file or folder has an empty name", param, ctx)
        return self.coerce_path_result(value)


class Count(click.IntRange):
    """Type of an option that counts something: an integer between bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        least = int(self.min or 0)
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number < least or (self.max is not None and number > self.max):
            bounds = f"{least} or more" if self.max is None else f"{least} to {self.max}"
            self.fail(f"{value} is no integer of {bounds}", param, ctx)
        return number

    def _describe_range(self) -> str:
        """The help text says nothing of an upper end that no count reaches."""
        return f"x>={self.min}" if self.max == MOST else super()._describe_range()


class Thread(Count):
    """Type of an option that names a thread of the coprocessor: 1, or T1."""

    def __init__(self) -> None:
        super().__init__(0, 2)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of the thread."""
        number: Any = str(value).removeprefix("T").removeprefix("t")
        return int(super().convert(number, param, ctx))


class SeedOrWord(click.ParamType):  # type: ignore[type-arg]
    """Type of an option that is a seed or one of some words."""

    def __init__(self, kind: options.SeedOr) -> None:
        self._kind = kind
        self.name = "|".join(("SEED", *kind.words[1:]))

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """The word or the seed."""
        given = int(value) if str(value).isdecimal() else value
        try:
            return self._kind.check(str(param and param.name), given)
        except InputError as error:
            self.fail(": ".join(filter(None, (error.message, error.hint))), param, ctx)


class Seconds(click.FloatRange):
    """Type of an option that is a time: more than 0 and finite."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number of seconds."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < math.inf:
            text = f"{value} is no finite number above 0; leave it out for no limit"
            self.fail(text, param, ctx)
        return seconds


def place(values: Mapping[str, Any], problem: InputError) -> Where | None:
    """The line of PROGRAM.toml that an error about a program names; None where a flag is wrong."""
    head = problem.message.partition(": ")[0]
    given = (text for name in FLAGS for text in values.get(name) or ())
    of_flag = any(text.startswith(f"{head}@") or text.endswith(f"={head}") for text in given)
    if head.startswith("--") or of_flag:
        return None
    if "program" in values and values["program"] is None and files.is_file(Path(_HERE)):
        return toml.place(Path(_HERE), problem)
    named = [values[name] for name in _PROGRAMS if values.get(name) is not None]
    paths = [Path(one) for some in named for one in (some if isinstance(some, tuple) else (some,))]
    if len(paths) > 1:
        paths = [path for path in paths if problem.message.startswith(str(path))]
    return next(filter(None, (toml.place(path, problem) for path in paths)), None)


def _many(flag: str, name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(
        flag, name, multiple=True, metavar=metavar, help=f"{text} (may be repeated)"
    )


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one, in the order in which help shows them."""
    return lambda command: functools.reduce(lambda one, add: add(one), reversed(options), command)


def flag(
    name: str, option: options.Option, more: str = "", words: type[click.Choice[Any]] = click.Choice
) -> Callable[[F], F]:
    """The flag of an option, with `more` after its help; `words`: the type of one of several."""
    kind, metavar = option.kind, None if isinstance(option.kind, options.Words) else option.metavar
    value: click.ParamType[Any]
    if isinstance(kind, options.Words):
        value = words(kind.words)
    elif isinstance(kind, options.SeedOr):
        value = SeedOrWord(kind)
    elif isinstance(kind, options.Whole):
        value = Count(kind.least, kind.written)
    else:
        assert isinstance(kind, options.Seconds), kind
        value = Seconds(0, min_open=True)
    names = f"--{options.flag_of(name, option)}", name
    return click.option(*names, type=value, metavar=metavar, help=option.help + more)


def flags(where: str) -> list[Callable[[F], F]]:
    """Those of all options that can be given there."""
    return [flag(name, option) for name, option in options.given_in(where).items()]


tile_option = click.option(
    "--tile", metavar="X,Y", help="the tile of a chip that is shown (default: the first)"
)
outside_option = click.option(
    "--allow-outside", is_flag=True, help="let a PROGRAM.toml name files outside of its folder"
)
json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object")


def run_options(command: F) -> F:
    """How to run and report: the flags of a command that runs a program."""
    text = "write the state after the run to this file"
    return all_of(
        *flags("flag"),
        click.option("--save", type=FilePath(), metavar="STATE.npz", help=text),
        click.option("-q", "--quiet", is_flag=True, help="print only what went wrong"),
        click.option("-v", "--verbose", is_flag=True, help="print more detail"),
        json_option,
    )(command)


program_options = all_of(
    tile_option,
    click.argument(
        "program",
        required=False,
        type=FilePath(),
        metavar="[PROGRAM.toml | FOLDER | STATE.npz | ELF]",
    ),
    _many("--core", "cores", "CORE=FILE", "load this ELF there; CORE alone: run ELF there"),
    _many(
        *("--in", "inputs", "FILE@AT:DTYPE[:LAYOUT[:SHAPE]]"),
        "write this tensor to L1 before the run",
    ),
    _many(
        *("--expect", "expects", "FILE@AT:DTYPE[:LAYOUT[:SHAPE]]"),
        "compare the tensor at AT with FILE after the run",
    ),
    _many("--until", "until", "WORD=VALUE|idle", "stop when this word of L1 has this value"),
    _many("--set", "sets", "AT=KIND:VALUE[,...]", "store these values before the run"),
    click.option(
        "--no-compare", is_flag=True, help="compare no output with what the PROGRAM.toml expects"
    ),
    outside_option,
)
"""PROGRAM and the flag form of its parts."""


def program_of(values: dict[str, Any]) -> "Program":
    """What PROGRAM and the flags of its parts say; InputError for what cannot be read."""
    from bhemu.program.cli_overrides import with_flags, without_expected

    _in_folder(values)
    path, flags = values["program"], {name: values[name] for name in FLAGS}
    if path is not None:
        _check_kind(Path(path))
    if path is not None and files.begins_with(Path(path), toml.ELF):
        cores = flags["cores"]  # of which one without a file says where the ELF runs
        bare = [name for name in cores if "=" not in name]
        if len(bare) != 1:
            problem = f"{len(bare)} of them are named" if bare else "none is named"
            called, several = Path(path).stem, f"CORE, one of {', '.join(CORE_NAMES)}"
            hint = f"--core {called if called in CORE_NAMES else several}"
            raise InputError(f"{path}: an ELF runs on one core, and {problem}", hint=hint)
        flags["cores"] = tuple(f"{name}={path}" if name in bare else name for name in cores)
        path = None
    if path is None and not flags["cores"]:
        raise click.UsageError(
            "no program: name a PROGRAM.toml, go to its folder, or give --core CORE=FILE"
        )
    from bhemu.program.schema import load_program

    program = (
        load_program(path, allow_outside=values["allow_outside"]) if path is not None else None
    )
    if program is not None and values.get("no_compare"):
        program = without_expected(program)
    return with_flags(program, **flags)


def _in_folder(values: dict[str, Any]) -> None:
    """Where no program is named, it is that of the current folder.

    What is given in its place may be a PLACE of `bhemu why`: no file, and no name of one.
    """
    if not files.is_file(Path(_HERE)):
        return
    if (path := values["program"]) is None and not values["cores"]:
        values["program"] = _HERE
    elif path is not None and "place" in values and values["place"] is None:
        given = Path(path)
        if files.is_missing(given) and len(given.parts) == 1 and given.suffix not in _FILES:
            values["program"], values["place"] = _HERE, path


def _check_kind(path: Path) -> None:
    """InputError for a file that belongs to a program and is none: a source, a tensor."""
    if (kind := _KINDS.get(path.suffix)) is not None and files.is_missing(path):
        hint = "a program is a PROGRAM.toml, or its folder: bhemu new NAME --kernel writes one"
        raise InputError(f"{path}: no such file", hint=hint)
    if kind is None or not files.is_file(path):
        return
    folder = path.parent
    hint = "bhemu new NAME --kernel writes a program"
    if files.is_file(folder / _HERE):
        hint = f"bhemu run {folder} runs the program there"
        hint = f"bhemu build {folder} compiles it; {hint}" if kind.startswith("a source") else hint
    raise InputError(f"{path} is {kind}, no program", hint=hint)


def settings(values: dict[str, Any]) -> Settings:
    """The settings of a command's parameters; InputError for what cannot be read."""
    from bhemu.program.cli_overrides import with_options
    from bhemu.program.specs import outdated

    program = with_options(program_of(values), values)
    warnings = outdated(program)
    shown = [] if values["as_json"] else warnings[: 1 if values["quiet"] else None]
    for text in shown:
        more = f" (and {len(warnings) - 1} more)" if len(shown) < len(warnings) else ""
        output.say(f"warning: {text}{more}", err=True)
    return Settings(
        program=program,
        save=None if values["save"] is None else Path(values["save"]),
        as_json=values["as_json"],
        quiet=values["quiet"],
        verbose=values["verbose"],
        tile=tile_of(values),
        warnings=tuple(warnings),
    )


def launched(chosen: Settings) -> "Target":
    """The program of a command, nothing executed yet; --save can be written."""
    chosen.check_save()
    progress = output.Progress(chosen.quiet or chosen.as_json)
    with progress.starting():
        from bhemu.cli.summary import Target

        return Target(chosen, progress)


def tile_of(values: dict[str, Any]) -> coordinates.XY | None:
    """What --tile names, None without it."""
    if (text := values.get("tile")) is None:
        return None
    found = coordinates.parse([text], "--tile")
    if len(found) > 1:
        raise InputError(f"--tile {text} stands for {len(found)} tiles, one is shown")
    return found[0]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> int:
    """Print what completes commands and options in a shell.

    For bash: source <(bhemu completion bash), in ~/.bashrc for every session.
    """
    from click.shell_completion import get_completion_class

    kind: Any = get_completion_class(shell)
    command = click.get_current_context().find_root().command
    output.say(kind(command, {}, "bhemu", "_BHEMU_COMPLETE").source())
    return EXIT_OK
