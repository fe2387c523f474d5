"""A kernel of `bhemu new --kernel`, for the tests of what its author sees."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bhemu.cli import main


def call(*args: object) -> Any:
    """The result of a command, which must not end in a traceback."""
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new kernel, built."""
    folder = tmp_path_factory.mktemp("new") / "relu"
    assert call("new", folder, "--kernel").exit_code == 0
    assert call("build", folder).exit_code == 0
    return folder
