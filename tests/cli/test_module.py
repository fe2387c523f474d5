"""`python -m bhemu` is the command."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import bhemu
from bhemu.cli import COMMANDS, main


@pytest.mark.parametrize("module", ["bhemu", "bhemu.cli"])
def test_the_package_runs_as_the_command(module: str) -> None:
    root = Path(bhemu.__file__).parents[1]
    command = [sys.executable, "-m", module]
    done = subprocess.run([*command, "--version"], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"bhemu, version {bhemu.__version__}\n")
    done = subprocess.run([*command, "nonsense"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no command 'nonsense'" in done.stderr


def test_the_help_text_imports_no_command() -> None:
    """It names every command, and is there before arrays could be."""
    program = (
        "import sys\n"
        "from bhemu.cli import COMMANDS, main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rstrip().rpartition("\n")[2].split())
    assert "numpy" not in loaded
    assert not {f"bhemu.cli.{module}" for module, _ in COMMANDS.values()} & loaded
    assert len([name for name in loaded if name.startswith("bhemu.")]) <= 12
    assert {*main.list_commands(click.Context(main))} <= {*re.findall(r"\w+", done.stdout)}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_text_has_the_first_sentence_of_each_command(name: str) -> None:
    module, text = COMMANDS[name]
    command = getattr(importlib.import_module(f"bhemu.cli.{module}"), f"{name}_command")
    assert command.get_short_help_str(limit=200) == text
