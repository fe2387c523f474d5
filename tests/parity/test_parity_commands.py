"""Each command does the same on a program of a tile and on that program as a [[tile]] of a chip."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import twins
from click.testing import CliRunner, Result

from bhemu.cli import main

ENGINE = ("--engine", "compiled")
# What may differ: the coordinate that a chip puts before the names of its cores.
_PLACE = re.compile(r"\(1,2\) (?=\w)|(?m:^)1,2 ")
_FOLDER = re.compile(r"\S*/(tile|chip)/(?=\w+/)")
_SECONDS = re.compile(r"\d+\.\d+ s$", re.M)

Both = Callable[..., tuple[Result, Result]]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """both(name, command, arguments...): the results for the tile and the chip."""
    made: dict[Any, dict[str, Path]] = {}

    def call(name: str, command: str, *args: str, change: tuple[str, str] = ("", "")) -> Any:
        key = (name, change)
        if key not in made:
            made[key] = twins.write(name, tmp_path / str(len(made)), change)
        results = []
        for form in twins.TWINS:
            given = [str(made[key][form]) if arg == "." else arg for arg in args]
            results.append(CliRunner().invoke(main, [command, *given]))
            assert "Traceback" not in results[-1].output
        return results[0], results[1]

    return call


def text(result: Result) -> tuple[int, list[str], list[str]]:
    return (
        result.exit_code,
        _PLACE.sub("", _FOLDER.sub("", result.stdout)).splitlines(),
        _SECONDS.sub("", _PLACE.sub("", result.stderr)).splitlines(),
    )


@pytest.mark.parametrize(
    ("name", "command", "args"),
    [
        ("add1", "run", ("-q", ".", *ENGINE)),
        ("matmul", "run", (".", "--limit", "3000", *ENGINE)),
        ("matmul", "run", (".", "--until", "0x10C=0xD0E3", *ENGINE)),
        ("add1", "run", (".", "--set", "0x40000=u32:1", *ENGINE)),
        ("add1", "trace", (".", "--limit", "20", *ENGINE)),
        ("matmul", "dump", (".", "sem", "dst:0-3", "gpr", *ENGINE)),
        ("matmul", "numerics", (".", *ENGINE)),
        ("add1", "disasm", (".", "--core", "trisc1")),
        (
            "add1",
            "step",
            ("-q", ".", "-x", "break main trisc1; continue; step 2; sem; info", *ENGINE),
        ),
        ("add1", "step", ("-q", ".", "-x", "continue; reverse-step 4; goto 1000; where", *ENGINE)),
        ("add1", "why", ("-q", ".", *ENGINE)),
    ],
)
def test_the_same_is_printed(both: Both, name: str, command: str, args: tuple[str, ...]) -> None:
    tile, chip = both(name, command, *args)
    assert text(tile) == text(chip)


def test_the_same_json(both: Both) -> None:
    tile, chip = both("matmul", "run", ".", "--json", *ENGINE)
    assert json.loads(tile.stdout) == json.loads(chip.stdout)
    assert json.loads(tile.stdout)["cores"] == json.loads(tile.stdout)["tiles"]["1,2"]["cores"]


def test_check(both: Both) -> None:
    change = ("at = 0x80000", "at = 0x10000")
    tile, chip = both("matmul", "check", ".", change=change)
    assert "warning: code trisc0.elf trisc0 and input b.npy" in tile.stderr
    assert (tile.exit_code, tile.stderr) == (chip.exit_code, chip.stderr)
    assert "1,2 0x00000200..0x00000238  set     [[set]] 1 runtime_args" in chip.stdout
    assert chip.stdout.splitlines()[-5:] == tile.stdout.splitlines()[-5:]
    shown = [
        json.loads(one.stdout) for one in both("matmul", "check", ".", "--json", change=change)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", ["hang_flag", "hang_cycle"])
@pytest.mark.parametrize("command", ["run", "why"])
def test_hangs(both: Both, name: str, command: str) -> None:
    tile, chip = both(name, command, "-q", ".", *ENGINE)
    assert text(tile) == text(chip)
