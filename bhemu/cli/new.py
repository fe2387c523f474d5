"""`bhemu new`: a PROGRAM.toml with every key explained; `bhemu build`: ELFs from their sources."""

import json
import re
import runpy
import shlex
from pathlib import Path

import click

from bhemu.cli import output
from bhemu.cli.options import FilePath, json_option
from bhemu.errors import EXIT_OK, InputError
from bhemu.program.options import KINDS, Option, SeedOr, given_in

TEMPLATE = Path(__file__).parents[1] / "kernel" / "template"
_PARTS = Path(__file__).parents[1] / "data" / "new_program.txt"
"""The parts of a new PROGRAM.toml: a line `@ NAME` begins one."""
_UNTIL = 'until = [{ word = 0x100, equals = 0xD0E0 }] # all of these; or until = "idle"'
_ENDS = {
    "llk": "# until: the mailboxes of the three kernels are 0xFF",
    "tt-metal": "# until: every tile's go message says DONE, or without firmware: idle",
}


@click.command("new")
@click.argument("path", type=FilePath(), metavar="[NAME.toml | FOLDER]", default="PROGRAM.toml")
@click.option("--kind", type=click.Choice(KINDS), default="elf", show_default=True)
@click.option("--kernel", is_flag=True, help="a folder with a kernel for five cores, in C")
def new_command(path: str, kind: str, kernel: bool) -> int:
    """Write a commented PROGRAM.toml, or a kernel that runs.

    A folder that does not exist yet is made. An existing file is never overwritten.
    """
    target = Path(path)
    if kernel:
        return _kernel(target)
    if target.is_dir() or (target.suffix == "" and not target.exists()):
        target /= "PROGRAM.toml"
    if target.suffix != ".toml":
        ends = f"ends in {target.suffix}" if target.suffix else "has no ending"
        raise InputError(
            f"{target} is taken for a file, which {ends}: that of a program ends in .toml",
            hint=f"{target}.toml, or in a folder of that name {target}/PROGRAM.toml",
        )
    text = template(target, kind)
    try:
        target.parent.mkdir(exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{target} exists", hint="give another name, or remove it") from None
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or "its name is not text"
        raise InputError(f"{target} cannot be written: {reason}") from error
    output.say(f"{target} written; fill in the files, then: bhemu check {target}")
    return EXIT_OK


def _kernel(folder: Path) -> int:
    """Write the sources, data, test and PROGRAM.toml of bhemu/kernel/template to a new folder."""
    name = re.sub(r"\W|^(?=\d)", "_", folder.absolute().name) or "kernel"  # of a module, too
    sources = sorted(TEMPLATE.iterdir())
    try:
        folder.mkdir()
        for source in sources:
            if source.is_file():
                text = source.read_text(encoding="utf-8").replace("NAME", name)
                (folder / source.name.replace("NAME", name)).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise InputError(f"{folder} exists", hint="give another name, or remove it") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}") from error
    runpy.run_path(str(folder / f"{name}_data.py"), run_name="__main__")
    given = shlex.quote(str(folder))
    output.say(
        f"{folder} written: the kernel is in math.c, what it should compute in {name}_data.py.\n"
        f"bhemu build {given} && bhemu run {given}"
    )
    return EXIT_OK


def template(target: Path, kind: str) -> str:
    """The text of a new program of `kind` at `target`."""
    from bhemu.program.tensor import DTYPES

    title = target.resolve().parent.name if target.name == "PROGRAM.toml" else target.stem
    name, file = _printable(title or "program"), _printable(target.name)
    texts = _PARTS.read_text(encoding="utf-8").removeprefix("@ ").split("\n@ ")
    parts = {part: f"{text}\n" for part, _, text in (one.partition("\n") for one in texts)}
    template = parts["head"] + parts["tiles" if kind == "tt-metal" else "one tile"] + parts["run"]
    template += parts["build"].removesuffix("\n") if kind in ("elf", "tt-metal") else ""
    return template.format(
        title=name,
        file=file,
        name=json.dumps(name, ensure_ascii=False),
        kind=kind,
        cores=parts[f"cores of {kind}"],
        until=_ENDS.get(kind, _UNTIL),
        keys="".join(_key(name, option) for name, option in given_in("run").items()),
        dtypes=" ".join(DTYPES),
    )


def _key(name: str, option: Option) -> str:
    """The line of an option in [run]: its example, else commented out with its default."""
    words = getattr(option.kind, "words", ())
    value = json.dumps(words[0] if option.default is None and words else option.default)
    line = f"{name} = {option.example}" if option.example else f"# {name} = {value}"
    about = re.sub(r" \(default.*\)$", "", option.help).replace("--", "")
    allowed = option.metavar.split("|") if isinstance(option.kind, SeedOr) else words
    return f"{line:<31} # {about}{': ' if allowed else ''}{' '.join(allowed)}\n"


def _printable(text: str) -> str:
    """Without what TOML allows in no comment and no string."""
    return "".join(c if c.isprintable() else "?" for c in text)


@click.command("build")
@click.argument("folder", default=".", type=FilePath(path_type=Path))
@click.option(
    "--compiler",
    type=FilePath(),
    metavar="GCC",
    help="this RISC-V GCC instead of ziglang or the first one at hand",
)
@json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what is wrong")
@click.option("-v", "--verbose", is_flag=True, help="print the commands")
def build_command(
    folder: Path, compiler: str | None, as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Compile and link the ELFs of a program from C, if changed.

    Each ELF that the PROGRAM.toml in FOLDER gives to a core is made from the source of its name:
    math.elf from math.c, .cc or .S. Headers are found in lib/ of bhemu and where [build] says.
    """
    from bhemu import kernel

    planned = kernel.plan(folder)
    found: list[dict[str, object]] = []
    for path in planned.kept:
        found.append({"elf": str(path), "state": "kept"})
        if not (quiet or as_json):
            output.say(f"{path}  kept  (no source)")
    for one in kernel.build(planned, kernel.at_hand(compiler)):
        found.append(one.as_dict())
        if not as_json:
            # One ELF as it was built, in words; what the compiler said on stderr
            for command in one.commands if verbose else ():
                output.say(shlex.join(command))
            if one.said:
                output.say(one.said.rstrip("\n"), err=True)
            if one.state != "failed" and not quiet:
                output.say(f"{one.elf.path}  {one.state}  ({one.elf.core}, {one.elf.source})")
    failed = [str(one["source"]) for one in found if one["state"] == "failed"]
    error = None
    if failed:
        where = "under said" if as_json else "above"
        hint = f"the compiler says why, {where}"
        error = InputError(f"not built: {', '.join(failed)}", hint=hint)
    return output.report({"elfs": found}, EXIT_OK, as_json=as_json, error=error)
