"""`bhemu isa --coverage`: what a run, or a test suite, exercises, by mode and format."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bhemu.cli import output
from bhemu.errors import BhemuError, InputError
from bhemu.program import files
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program.schema import Program

_SECONDS = 600.0


def measure(path: Path, allow_outside: bool = False) -> tuple[list[dict[str, Any]], str]:
    """(rows of debug.coverage, what ended the run) of a program, case or file of a test suite.

    A PROGRAM.toml or folder and an .npz case are run; any other file is what processes with
    $BHEMU_COVERAGE wrote. InputError when it cannot be read.
    """
    from bhemu.debug import coverage

    if path.suffix not in (".toml", ".npz") and not files.is_folder(path):
        try:
            rows = coverage.read(path)
            if not all(isinstance(row["fields"], dict) for row in rows):
                raise ValueError("fields is no object")
            return rows, "a file of a test suite"
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            hint = "a PROGRAM.toml, its folder, an .npz case, or what $BHEMU_COVERAGE named"
            raise InputError(f"{path}: no coverage: {error}", hint=hint) from error
    return _run(_case(path) if path.suffix == ".npz" else _program(path, allow_outside))


def _program(path: Path, allow_outside: bool) -> "Program":
    from bhemu.program.schema import load_program

    return load_program(path, allow_outside=allow_outside)


def _case(path: Path) -> "Program":
    """A case: an image of L1 that TRISC0-2 run from fixed addresses until their words are set."""
    from bhemu.oracle.cases import DONE, TRISC_STARTS
    from bhemu.program.schema import CoreSpec, Program, RunSpec, Until

    return Program(
        name=path.stem,
        kind="image",
        cores={name: CoreSpec(name, pc=pc) for name, pc in TRISC_STARTS.items()},
        image=path,
        run=RunSpec(until=tuple(Until(*word) for word in DONE), timeout_s=_SECONDS),
    )


def _run(program: "Program") -> tuple[list[dict[str, Any]], str]:
    from bhemu.debug import coverage
    from bhemu.launch.launch import launch

    tile = launch(program)
    cover = coverage.Coverage(tile)
    try:
        ended = tile.run().reason
    except BhemuError as problem:
        ended = f"{problem.rule}: {problem.message}"
    return list(coverage.rows([cover.notes])), ended


def show(rows: list[dict[str, Any]], ended: str) -> None:
    """Lines: mnemonic, how often, mode; what was refused is marked with its rule."""
    for row in rows:
        row = {key: printable(one) if isinstance(one, str) else one for key, one in row.items()}
        fields = [f"{name}={value}" for name, value in row["fields"].items() if value]
        mode = " ".join([*fields, row["formats"]]).strip() or "plain"
        rule = f"  refused: {row['rule']}" if row["rule"] else ""
        output.say(f"{row['mnemonic']:<14} {row['count']:>9}  {mode}{rule}")
    names = {row["mnemonic"] for row in rows if row["count"]}
    output.say(f"{len(names)} instructions in {len(rows)} modes; the run ended: {ended}", err=True)
