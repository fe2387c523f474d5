"""`bhemu bench`: what a tile does per second on this machine."""

import datetime
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bhemu import __version__
from bhemu.cli.options import json_option

if TYPE_CHECKING:
    from bhemu.bench import Row

_HEAD = f"{'benchmark':<14}{'median':>10}{'lowest':>10}{'highest':>10}  unit"


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--elfs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("elfs"),
    show_default=True,
    help="folder that holds add1/ and matmul/",
)
@click.option("--markdown", type=click.Path(path_type=Path), help="also write the table here")
@json_option
def command(names: tuple[str, ...], elfs: Path, markdown: Path | None, as_json: bool) -> None:
    """Measure all benchmarks, or those named; medians of several runs after a warm-up."""
    from bhemu import bench

    if not as_json:
        click.echo(_HEAD)
    rows = []
    for row in bench.run(elfs, names):
        rows.append(row)
        if not as_json:
            click.echo(_line(row))
    if as_json:
        click.echo(json.dumps({"rows": [r.as_dict() for r in rows]}, indent=2))
    if markdown is not None:
        markdown.write_text(_markdown(rows), encoding="utf-8")


def _line(row: "Row") -> str:
    figures = "".join(f"{value:>10.1f}" for value in (row.rate, row.low, row.high))
    return f"{row.name:<14}{figures}  {row.unit}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return f"{names[0]}, {len(names)} processors" if names else platform.machine()


def _markdown(rows: "list[Row]") -> str:
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba", "numpy", "unicorn"))
    versions = f"bhemu {__version__}, CPython {platform.python_version()}, {tools}"
    lines = [
        "<!-- Written by `make bench`; do not edit. -->",
        "# Benchmarks",
        "",
        f"{datetime.date.today().isoformat()}; {_processor()}; {versions}.",
        "Medians after one warm-up run. Absolute rates move with the machine and its load.",
        "",
        "| benchmark | median | lowest | highest | unit |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {r.name} | {r.rate:.1f} | {r.low:.1f} | {r.high:.1f} | {r.unit} |" for r in rows]
    lines += [
        "",
        "| benchmark | what runs |",
        "|---|---|",
        "| riscv | one core, loop of lw, addi, sw, addi, bne on L1 |",
        "| push_store | SETC16 words pushed by stores to 0xFFE40000, executed |",
        "| push_ttinsn | SETC16 words as `.ttinsn`, executed |",
        "| add1 | elfs/add1 over 256 tiles: unpack, add on the vector unit, pack; from the release"
        " of brisc to idle |",
        "| matmul_hifi4, matmul_lofi | elfs/matmul, 8 x 16 x 8 tiles: products of two 32x32 bf16"
        " tiles, four phases or one |",
        "",
    ]
    return "\n".join(lines)
