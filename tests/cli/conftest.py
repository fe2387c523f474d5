"""Small programs as images: RISC-V words at 0x10000, started by trisc0."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bhemu.cli import main
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import code

assert Tile  # importing the tile declares the instructions that tests assemble

START = 0x10000

Write = Callable[..., Path]
Call = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """What the small programs use is compiled before any of them looks at the messages."""
    add1 = Path(__file__).parents[2] / "elfs" / "add1"
    assert CliRunner().invoke(main, ["run", str(add1), "-q"]).exit_code == 0


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write(words..., core=, run=, more=): the PROGRAM.toml of an image with these words."""

    def create(
        *parts: int | list[int], core: str = "trisc0", run: str = "", more: str = ""
    ) -> Path:
        (tmp_path / "l1.bin").write_bytes(bytes(START) + code(*parts))
        path = tmp_path / "PROGRAM.toml"
        path.write_text(
            'bhemu = 1\nname = "small"\nkind = "image"\nimage = { file = "l1.bin" }\n'
            f"[cores]\n{core} = {{ pc = {START} }}\n{more}\n[run]\n{run}\n"
        )
        return path

    return create


@pytest.fixture
def bhemu() -> Call:
    """bhemu(arguments...): the result of the command in this process."""

    def call(*args: object, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture
def report(bhemu: Call) -> Callable[..., tuple[int, dict[str, object]]]:
    """report(arguments...): exit code and JSON object of the command with --json."""

    def call(*args: object) -> tuple[int, dict[str, object]]:
        result = bhemu(*args, "--json")
        assert result.stderr == ""
        return result.exit_code, json.loads(result.stdout)

    return call
