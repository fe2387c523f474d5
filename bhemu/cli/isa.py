"""`bhemu isa`: every Tensix instruction with its fields, and how far it is modelled."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bhemu.cli import output
from bhemu.cli.options import json_option, outside_option
from bhemu.errors import InputError

if TYPE_CHECKING:
    from bhemu.tensix.insn import Instruction

_COVERAGE = Path(__file__).parent.parent / "data" / "golden_coverage.json"
_MODES = _COVERAGE.with_name("mode_coverage.json")
_COLUMNS = ("mnemonic", "opcode", "unit", "stall", "status")
_COLOURS = {"golden": "green", "isa-text": "cyan", "refused": "yellow", "unimplemented": "red"}


@click.command("isa")
@click.argument("mnemonic", required=False)
@json_option
@click.option("--c-header", is_flag=True, help="print the C header that firmware is compiled with")
@click.option(
    "--coverage",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="show the modes that RUN uses",
)
@outside_option
def command(
    mnemonic: str | None, as_json: bool, c_header: bool, coverage: Path | None, allow_outside: bool
) -> None:
    """List the Tensix instructions, or explain one.

    The status is golden (executed by a golden case), isa-text (modelled from the ISA text alone),
    refused (with the reason) or unimplemented.

    --coverage shows the instructions, modes and data formats that RUN exercises. RUN is a
    PROGRAM.toml, an .npz case or, for a test suite, the file that BHEMU_COVERAGE named while it
    ran.
    """
    from bhemu.tensix import units
    from bhemu.tensix.c_header import c_header as header
    from bhemu.tensix.insn import REGISTRY

    assert units.MODULES  # importing the package declares the instructions
    if coverage is not None:
        _show_coverage(coverage, mnemonic, as_json, allow_outside)
        return
    if c_header:
        output.say(header(), nl=False)
        return
    chosen = [REGISTRY[opcode] for opcode in sorted(REGISTRY)]
    if mnemonic is not None:
        chosen = [named(chosen, mnemonic)]
    if as_json:
        rows = [row(cls) for cls in chosen]
        output.say(json.dumps(rows if mnemonic is None else rows[0], indent=2))
    elif mnemonic is not None:
        output.say("\n".join(_explain(chosen[0])))
    else:
        _table([row(cls) for cls in chosen])


def _show_coverage(run: Path, mnemonic: str | None, as_json: bool, allow_outside: bool) -> None:
    from bhemu.cli import isa_coverage

    rows, ended = isa_coverage.measure(run, allow_outside)
    wanted = mnemonic and mnemonic.upper()
    rows = [row for row in rows if wanted in (None, row["mnemonic"])]
    if as_json:
        output.say(json.dumps({"ended": ended, "rows": rows}, indent=2))
    else:
        isa_coverage.show(rows, ended)


@cache
def _modes() -> dict[str, list[dict[str, Any]]]:
    if not _MODES.is_file():
        return {}
    modes: dict[str, list[dict[str, Any]]] = json.loads(_MODES.read_text(encoding="utf-8"))
    return modes


@cache
def _coverage() -> dict[str, list[str]]:
    if not _COVERAGE.is_file():
        return {}
    coverage: dict[str, list[str]] = json.loads(_COVERAGE.read_text(encoding="utf-8"))
    return coverage


def golden_mnemonics() -> frozenset[str]:
    """Instructions that at least one golden case executed (data/golden_coverage.json)."""
    return frozenset(name for name, cases in _coverage().items() if cases)


def status(cls: "type[Instruction]") -> str:
    """golden, isa-text, refused or unimplemented, from the class and the golden coverage."""
    if cls.name in golden_mnemonics():
        return "golden"
    if cls.refused:
        return "refused"
    return "isa-text" if cls.execute is not None or expands(cls) else "unimplemented"


def expands(cls: "type[Instruction]") -> bool:
    """Expanded by the front end itself (MOP, MOP_CFG, REPLAY): no wait gate ever sees it."""
    return cls.unit == "front" and cls.stall_mask == 0


def row(cls: "type[Instruction]") -> dict[str, Any]:
    """One instruction as JSON-ready values."""
    shown: dict[str, Any] = {
        "mnemonic": cls.name,
        "opcode": cls.opcode,
        "unit": cls.unit,
        "fields": [f.as_dict() for f in cls.fields],
        "arguments": [one.name for one in cls.arguments],
        "stall": cls.stall,
        "status": status(cls),
        "modes": modes(cls),
        "summary": cls.summary(),
    }
    if shown["status"] == "refused":
        shown["reason"] = cls.refused
    return shown


def modes(cls: "type[Instruction]") -> list[dict[str, Any]]:
    """The modes, where their status differs."""
    own = modes_of(cls)
    return own if len({mode["status"] for mode in own}) > 1 else []


def modes_of(cls: "type[Instruction]") -> list[dict[str, Any]]:
    """Fields, formats and status of every mode that was tried (data/mode_coverage.json)."""
    return _modes().get(cls.name, [])


def named(known: "list[type[Instruction]]", mnemonic: str) -> "type[Instruction]":
    """The one of `known` with that mnemonic in any case; InputError names the nearest."""
    from bhemu.program.table import suggestion

    name = mnemonic.upper()
    for cls in known:
        if cls.name == name:
            return cls
    near = suggestion(name, [cls.name for cls in known]).partition(" allowed:")[0]
    hint = near if near.startswith("did you mean") else _elsewhere(mnemonic)
    raise InputError(f"no Tensix instruction is called {mnemonic!r}", hint=hint)


def _elsewhere(name: str) -> str:
    """Where a name that is no instruction may be known."""
    from bhemu.debug.explain import near_names

    near = near_names(name) if len(name) > 2 else []
    if not near:
        return "bhemu isa lists all of them"
    return f"bhemu explain {near[0]}" + (f"; there are {', '.join(near)}" if near[1:] else "")


def _explain(cls: "type[Instruction]") -> list[str]:
    lines = [f"{cls.name}  opcode {cls.opcode:#04x}  unit {cls.unit}  stall {cls.stall}"]
    lines += [f"  {text.strip()}" for text in (cls.__doc__ or "").strip().splitlines()]
    lines += [f"  {line}" for f in reversed(cls.fields) for line in f.about()]
    if cls.reserved:
        lines.append(f"  reserved bits {cls.reserved:#08x} must be 0")
    if cls.unread:
        lines.append(f"  bits {cls.unread:#08x} are not read: kernels set them without effect")
    arguments = ", ".join(one.name for one in cls.arguments)
    lines.append(f"  in C: TTI_{cls.name}" + (f"({arguments})" if arguments else ""))
    cases = ", ".join(_coverage().get(cls.name, ()))
    reason = cls.refused if status(cls) == "refused" else cases
    return [*lines, f"  status: {status(cls)}" + (f" ({reason})" if reason else "")]


def _table(rows: list[dict[str, Any]]) -> None:
    """A table: with rich on a terminal, in plain columns elsewhere."""
    cells = [
        [r["mnemonic"], f"{r['opcode']:#04x}", r["unit"], r["stall"], r["status"]] for r in rows
    ]
    counts: dict[str, int] = {}
    for r in rows:
        counts[r["status"]] = counts.get(r["status"], 0) + 1
    total = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    if sys.stdout.isatty():
        _rich_table(cells)
    else:
        for line in [list(_COLUMNS), *cells]:
            output.say(f"{line[0]:<14} {line[1]:<7} {line[2]:<8} {line[3]:<12} {line[4]}")
    output.say(f"{len(rows)} instructions: {total}", err=True)


def _rich_table(cells: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for line in cells:
        table.add_row(*line[:4], f"[{_COLOURS[line[4]]}]{line[4]}[/]")
    Console().print(table)
