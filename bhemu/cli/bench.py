"""`bhemu bench` measures what a tile does per second, `bhemu warm` compiles into the cache."""

import datetime
import os
import platform
from collections.abc import Iterable, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bhemu import __version__
from bhemu.cli import output
from bhemu.cli.isa import class_of, classes, expands
from bhemu.cli.options import FilePath, json_option
from bhemu.errors import EXIT_OK, InputError
from bhemu.program import files
from bhemu.program.schema import ENGINES
from bhemu.text import counted

if TYPE_CHECKING:
    from bhemu.bench import Row
    from bhemu.tensix.insn import Instruction


_ALONE = (("median", 10), ("lowest", 10), ("highest", 10), ("ttsim", 10), ("ratio", 8))
_BOTH = (
    *((name, 10) for name in ENGINES),
    ("times", 8),
    ("ttsim", 10),
    *((f"ratio {name}", 16) for name in ENGINES),
)
_NAMES = (14, 34)  # columns of the names of benchmarks, of pairs of formats


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--elfs",
    type=FilePath(path_type=Path),
    default=Path("elfs"),
    show_default=True,
    help="the folder with add1/, bench/ and matmul/",
)
@click.option(
    "--ttsim",
    type=FilePath(),
    metavar="LIB",
    help="also run each image on this libttsim.so and compare every byte of L1",
)
@click.option(
    "--engine",
    type=click.Choice((*ENGINES, "both")),
    default=ENGINES[0],
    envvar="BHEMU_ENGINE",
    show_default=True,
    help="what runs the RISC-V cores; both: in turns, side by side",
)
@click.option("--formats", is_flag=True, help="measure unpack and pack of every pair of formats")
@click.option("--profile", is_flag=True, help="show where the time of one run goes")
@click.option("--markdown", type=FilePath(path_type=Path), help="also write the table to this file")
@json_option
def bench_command(
    names: tuple[str, ...],
    elfs: Path,
    ttsim: str | None,
    engine: str,
    formats: bool,
    profile: bool,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Measure the named benchmarks, or all of them.

    The figures are medians of several samples, taken after a warm-up. A sample lasts at least
    0.3 s, from the release of the cores to the done words. --formats takes several minutes.
    """
    from bhemu import bench
    from bhemu.oracle.libttsim import find

    if not files.is_folder(elfs):
        hint = "go to bhemu's checkout, whose ELFs are measured, or --elfs FOLDER"
        raise InputError(f"bench: there is no folder {elfs}", hint=hint)
    if profile:
        _profile(elfs, names, ENGINES[0] if engine == "both" else engine, as_json)
        return
    library = find(ttsim) if ttsim else None
    load = os.getloadavg()[0]
    engines = ENGINES if engine == "both" else (engine,)
    measured = bench.run(elfs, names, library, formats, engines)
    columns, width = _BOTH if engine == "both" else _ALONE, _NAMES[formats]
    if not as_json:
        click.echo(f"{'benchmark':<{width}}{_aligned([n for n, _ in columns], columns)}  unit")
    rows = []
    for each in measured:
        rows.append(each)
        if not as_json:
            figures = _aligned(_figures(each), columns)
            click.echo(f"{each[0].name:<{width}}{figures}  {each[0].unit}")
    if as_json:
        output.report({"rows": [r.as_dict() for e in rows for r in e]}, EXIT_OK, as_json=True)
    if markdown is not None:
        text = _markdown(rows, [name for name, _ in columns], elfs, formats, load)
        files.write_whole(markdown, text.encode(), "--markdown")


def _profile(elfs: Path, names: tuple[str, ...], engine: str, as_json: bool) -> None:
    from bhemu.bench import select, shares

    found = {each.name: list(shares(each, engine)) for each in select(elfs, names)}
    if as_json:
        rows = {name: [vars(share) for share in parts] for name, parts in found.items()}
        output.report({"profile": rows}, EXIT_OK, as_json=True)
        return
    from rich.console import Console
    from rich.table import Table

    for name, parts in found.items():
        total = sum(share.seconds for share in parts)
        table = Table(title=f"{name}: {1e3 * total:.1f} ms", box=None, title_justify="left")
        for title in ("part", "share", "ms", "calls", "ns each"):
            table.add_column(title, justify="left" if title == "part" else "right")
        for share in parts:
            each = 1e9 * share.seconds / share.calls if share.calls else 0.0
            row = (f"{100 * share.seconds / total:.1f} %", f"{1e3 * share.seconds:.2f}")
            table.add_row(share.part, *row, str(share.calls or ""), f"{each:.0f}" if each else "")
        Console(highlight=False).print(table)


def _figures(rows: "tuple[Row, ...]") -> list[str]:
    """The cells of a benchmark: of one engine, or of both side by side."""
    golden = f"{rows[0].ttsim:.1f}" if rows[0].ttsim else ""
    ratios = [f"{row.ratio:.1f}x" if row.ratio else "" for row in rows]
    if len(rows) == 1:
        (row,) = rows
        return [*(f"{value:.1f}" for value in (row.rate, row.low, row.high)), golden, *ratios]
    times = f"{rows[1].rate / rows[0].rate:.1f}x"
    return [*(f"{row.rate:.1f}" for row in rows), times, golden, *ratios]


def _aligned(cells: Sequence[str], columns: Sequence[tuple[str, int]]) -> str:
    return "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, columns, strict=True))


def processor() -> str:
    """The processor of this machine, as Linux names it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return f"{names[0]}, {len(names)} processors" if names else platform.machine()


def _markdown(
    rows: "list[tuple[Row, ...]]", columns: list[str], elfs: Path, formats: bool, load: float
) -> str:
    from bhemu.bench import select

    there = [name for name in ("numba", "numpy", "unicorn") if util.find_spec(name)]
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in there)
    versions = f"bhemu {__version__}, CPython {platform.python_version()}, {tools}"
    by = "bhemu bench --formats" if formats else "make bench"
    lines = [
        f"<!-- Written by `{by}`; do not edit. -->",
        f"# Benchmarks{' of formats' if formats else ''}",
        "",
        f"{datetime.date.today().isoformat()}; {processor()}; {versions}.",
        "Medians of samples of at least 0.3 s after one warm-up run; every run starts with cold"
        " translations. Where ttsim has a figure, it ran the same L1 images in turns with bhemu,"
        " and every byte of L1 was equal. Absolute rates move with the machine and its load"
        f" (load average at the beginning: {load:.1f}).",
        "",
        f"| benchmark | {' | '.join(columns)} | unit |",
        f"|---{'|---' * len(columns)}|---|",
    ]
    lines += [f"| {r[0].name} | {' | '.join(_figures(r))} | {r[0].unit} |" for r in rows]
    lines += ["", "| benchmark | what runs |", "|---|---|"]
    lines += [f"| {b.name} | {b.what} |" for b in select(elfs, tuple(r[0].name for r in rows))]
    return "\n".join([*lines, ""])


@click.command("warm")
@click.argument("mnemonics", nargs=-1, metavar="[MNEMONIC]...")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="print only what went wrong")
def warm_command(mnemonics: tuple[str, ...], as_json: bool, quiet: bool) -> int:
    """Compile everything into the cache before it is needed.

    Given names, it compiles the core and these instructions only, no device windows. What is in the
    cache already is not compiled again. BHEMU_CACHE_DIR sets the cache folder.
    """
    progress = output.Progress(quiet or as_json)
    with progress.starting():
        from bhemu.devices.bus import entries
        from bhemu.jit import interpreted
        from bhemu.jit.build import load
        from bhemu.jit.cache import root
        from bhemu.jit.subset import JIT
        from bhemu.machine import precompile
        from bhemu.machine.backend import core_is_fresh
        from bhemu.tensix import compiled

        if not JIT:
            if interpreted.lacks_compiler():
                raise InputError("there is no compiler", hint=interpreted.COMPILER)
            raise InputError("NUMBA_DISABLE_JIT is set: nothing is compiled", hint="unset it")
        chosen = _chosen(mnemonics)
        precompile.start(precompile.missing(cls.opcode for cls in reversed(chosen)))
        devices = () if mnemonics else entries.performed()
        fresh = [*map(core_is_fresh, ENGINES), *(load(part).seconds > 0 for part in devices)]
        made = ["the core"] if any(fresh) else []
    for number, cls in enumerate(chosen, start=1):
        progress.status(f"{number} of {len(chosen)}  {cls.name}")
        parts = [
            compiled.entry(cls.opcode),
            *(compiled.second_entry(i) for i in cls.second_entries),
        ]
        if seconds := sum(load(part).seconds for part in parts):
            made.append(cls.name)
            progress(cls.name, seconds)
    progress.status("")
    seconds, count = progress.seconds, len(chosen) + 1
    rest = count - len(made)
    found = {"compiled": made, "cached": rest, "seconds": seconds, "folder": str(root())}
    everything = f"the core and {counted(len(chosen), 'instruction')}"
    if made:
        there = f", {rest} {'was' if rest == 1 else 'were'} there" if rest else ""
        line = f"{everything}: compiled {len(made)} in {seconds:.1f} s{there}"
    else:
        line = f"everything is there: {everything}, loaded in {seconds:.1f} s"
    return output.report(found, EXIT_OK, [] if quiet else [line], as_json=as_json)


def _chosen(mnemonics: Iterable[str]) -> "list[type[Instruction]]":
    """The instructions with those names, or all that have a model."""
    if not (wanted := [class_of(mnemonic) for mnemonic in mnemonics]):
        return [cls for cls in classes() if cls.execute is not None]
    for cls in wanted:
        if cls.execute is None:
            reason = cls.refused or "it is not modelled yet"
            if expands(cls):
                reason = "the front end expands it, so it is part of the core"
            raise InputError(f"{cls.name} has nothing to compile: {reason}")
    return list(dict.fromkeys(wanted))
