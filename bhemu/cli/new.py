"""`bhemu new`: a PROGRAM.toml with every key explained; `bhemu build`: ELFs from their sources."""

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bhemu.cli import output
from bhemu.cli.options import json_option
from bhemu.errors import EXIT_OK, InputError
from bhemu.program.options import Option, SeedOr, given_in
from bhemu.program.schema import KINDS

if TYPE_CHECKING:
    from bhemu.kernel.build import Built


TEMPLATE = Path(__file__).parents[1] / "kernel" / "template"

_CORES = {
    "elf": """\
[cores]                         # a core that is not named stays in reset
# elf: the linked file. local: where segments linked for 0xFFB00000 go: "direct" into the core's
# local RAM, "lma" to their load address, "loader_init" to that section, or a staging address.
# release: false when another core releases it. pc: start there instead of at the entry.
brisc = { elf = "brisc.elf", local = "direct" }
trisc0 = { elf = "unpack.elf", local = "direct", release = false }
trisc1 = { elf = "math.elf", local = "direct", release = false }
trisc2 = { elf = "pack.elf", local = "direct", release = false }
# ncrisc = { elf = "ncrisc.elf" }
""",
    "image": """\
image = { file = "l1.npz" }     # in_addr, in_len, in_data; or any other file: L1 from address 0

[cores]                         # a core that is not named stays in reset
# pc: where it starts (brisc: a jump to there is put at 0). release: false when another core
# releases it.
# elf and local: an ELF beside the image, as for kind = "elf".
trisc0 = { pc = 0x10000 }
# trisc1 = { pc = 0x14000, release = false }
""",
    "llk": """\

[cores]
# The four ELFs of a tt-llk test. Their local RAM segments go to the section .loader_init, and
# brisc, which bhemu commands as the test's host does, starts the others.
brisc = { elf = "brisc.elf" }
trisc0 = { elf = "unpack.elf" }
trisc1 = { elf = "math.elf" }
trisc2 = { elf = "pack.elf" }
""",
    "tt-metal": """\

[chip]                          # what it is like, and how it runs
dram_banks = 8                  # 7 or 8
harvest = []                    # harvested Tensix columns
delivery = "round"              # when NoC transfers arrive: round (at its end) late (any order)
threads = 1                     # processor threads that tiles are spread over; same results

[firmware]
# The firmware of every tile, five ELFs of one build with debug information. Without [firmware]
# kernels run alone: what they expect in local RAM goes where their ELFs' symbols say.
brisc = "brisc.elf"
ncrisc = "ncrisc.elf"
trisc0 = "unpack.elf"
trisc1 = "math.elf"
trisc2 = "pack.elf"
# base = 0x82B0                 # where kernels go; found out unless given

# Kernels, one table for tiles that run the same. A program of one tile has [cores], [[buffer]],
# [[set]] and semaphores at the top instead, without [[tile]] and `tile`.
[[tile]]
at = "1-2,2-3"                  # "x,y", ranges, or an array of those
semaphores = [0, 0]             # initial values, 16 bytes apart

[tile.cores]
# args: runtime arguments, common: those at crta_l1_base. tile: index count x y column row
# columns rows first_x first_y last_x last_y next_x next_y.
brisc = { elf = "brisc.elf", args = ["u32:0x100080", "tile:index"], common = [] }
ncrisc = { elf = "ncrisc.elf" }

[[tile.buffer]]                 # a circular buffer
index = 0                       # 0 to 63
at = 0x30000                    # in L1
pages = 2                       # how many it holds
page = 2048                     # bytes, a multiple of 16
""",
}

_UNTIL = 'until = [{ word = 0x100, equals = 0xD0E0 }] # all of these; or until = "idle"'
_ENDS = {
    "llk": "# until: the mailboxes of the three kernels are 0xFF",
    "tt-metal": "# until: every tile's go message says DONE, or without firmware: idle",
}

_HEAD = """\
# {title}: bhemu check {file} says what is wrong, bhemu run {file} runs it.
# Paths are relative to this file. `at` is an address, "symbol", "symbol+4" or a register name.

bhemu = 1                       # version of this format
name = {name}
kind = "{kind}"                  # what the program is
# elf: every core loads one; image: L1 as a file; llk: tt-llk; tt-metal: kernels under firmware
{cores}
"""

_OF_ONE_TILE = """\
# Values stored before the run, one table each: u8 u16 u32 i8 i16 i32 f32 bf16, little-endian,
# one after the other.
[[set]]
at = 0x200
# core = "trisc0"               # its ELF has the symbol; it writes (local RAM, devices)
values = ["u32:1", "f32:1.0"]

# Tensors put into L1 before the run, one table each.
[[input]]
at = 0x50000
file = "a.npy"                  # .npy; with dtype = "raw" any file
dtype = "bf16"                  # {dtypes}
layout = "tile32"               # raw rows faces16 tile32 (32x32 tiles of four 16x16 faces)
shape = [32, 32]                # may be left out: that of the file
convert = "exact"               # exact (refuse what does not fit) nearest truncate

# Tensors read from L1 after the run, one table each.
[[output]]
name = "c"
at = 0x70000
dtype = "bf16"
layout = "tile32"
shape = [32, 32]                # may be left out with expect: that of the file
# save = "c.npy"                # write it there
expect = "c_expected.npy"       # compare with this; exit code 1 when it differs
compare = "bits"                # bits ulp close
# max_ulp = 1                   # for compare = "ulp"
# rtol = 0.05                   # for compare = "close": atol + rtol * |expected|
# atol = 0.05
"""

_OF_TILES = """\
# Values stored before the run, as in [[set]] of one tile.
[[tile.set]]
at = 0x200
values = ["u32:1", "tile:index"]

# Tensors put into DRAM, or with at and tile into L1, before the run.
[[input]]
file = "a.npy"                  # .npy; with dtype = "raw" any file
dtype = "bf16"                  # {dtypes}
# Page i goes to bank i mod 8. page: bytes, else a tile or row; banks: how many, or which.
dram = {{ address = 0x100080, page = 2048, banks = 8 }}

# Tensors read from DRAM, or from L1 of one tile, after the run.
[[output]]
name = "c"
at = 0x70000
tile = "1,2"                    # whose L1
dtype = "bf16"
expect = "c_expected.npy"       # compare with this; exit code 1 when it differs
"""

_RUN = """
[run]
{until}
{keys}"""

_BUILD = """
[build]                         # bhemu build makes x.elf from x.c, .cc or .S, where there is one
include = []                    # more folders of headers, for example "$LLK/common/inc"
flags = []                      # more flags of the compiler, for example "-DTILES=4"
"""


@click.command("new")
@click.argument("path", metavar="[NAME.toml | FOLDER]", default="PROGRAM.toml")
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

    named = target.resolve()
    title = named.parent.name if target.name == "PROGRAM.toml" else target.stem
    name, file = _printable(title or "program"), _printable(target.name)
    template = _HEAD + (_OF_TILES if kind == "tt-metal" else _OF_ONE_TILE) + _RUN
    template += _BUILD if kind in ("elf", "tt-metal") else ""
    return template.format(
        title=name,
        file=file,
        name=json.dumps(name, ensure_ascii=False),
        kind=kind,
        cores=_CORES[kind],
        until=_ENDS.get(kind, _UNTIL),
        keys="".join(_key(name, option) for name, option in given_in("run").items()),
        dtypes=" ".join(DTYPES),
    )


def _key(name: str, option: Option) -> str:
    """The line of an option in [run]: with an example, or its default after a #."""
    words = getattr(option.kind, "words", ())
    value = json.dumps(words[0] if option.default is None and words else option.default)
    line = f"{name} = {option.example}" if option.example else f"# {name} = {value}"
    about = re.sub(r" \(default.*\)$", "", option.help).replace("--", "")
    allowed = option.metavar.split("|") if isinstance(option.kind, SeedOr) else words
    return f"{line:<31} # {about}{': ' if allowed else ''}{' '.join(allowed)}\n"


def _printable(text: str) -> str:
    """Without what TOML allows in no comment and no string."""
    return "".join(c if c.isprintable() else "?" for c in text)


# `bhemu build` makes the ELFs of a program from their sources.


@click.command("build")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option(
    "--compiler", metavar="GCC", help="this RISC-V GCC instead of ziglang or the first one at hand"
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
    from bhemu.kernel import build
    from bhemu.kernel.build import at_hand

    planned = build.plan(folder)
    found: list[dict[str, object]] = []
    for path in planned.kept:
        found.append({"elf": str(path), "state": "kept"})
        if not (quiet or as_json):
            output.say(f"{path}  kept  (no source)")
    for one in build.build(planned, at_hand(compiler)):
        found.append(one.as_dict())
        if not as_json:
            _show(one, quiet, verbose)
    failed = [str(one["source"]) for one in found if one["state"] == "failed"]
    error = None
    if failed:
        where = "under said" if as_json else "above"
        hint = f"the compiler says why, {where}"
        error = InputError(f"not built: {', '.join(failed)}", hint=hint)
    return output.report({"elfs": found}, EXIT_OK, as_json=as_json, error=error)


def _show(one: "Built", quiet: bool, verbose: bool) -> None:
    """One ELF as it was built, in words; what the compiler said on stderr."""
    for command in one.commands if verbose else ():
        output.say(shlex.join(command))
    if one.said:
        output.say(one.said.rstrip("\n"), err=True)
    if one.state != "failed" and not quiet:
        output.say(f"{one.elf.path}  {one.state}  ({one.elf.core}, {one.elf.source})")
