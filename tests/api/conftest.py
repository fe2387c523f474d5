"""Tiles with a small program of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu import Program, Tile
from bhemu.launch import launch
from bhemu.program.schema import CoreSpec, RunSpec
from bhemu.riscv.assembly import code

START = 0x10000


@pytest.fixture
def image(tmp_path: Path) -> Callable[..., Program]:
    """A program of instruction words that run from START on the named cores."""

    def make(*words: int | list[int], cores: tuple[str, ...] = ("trisc0",), **run: object):
        path = tmp_path / "l1.bin"
        path.write_bytes(bytes(START) + code(*words))
        specs = {name: CoreSpec(name, pc=START) for name in cores}
        return Program(
            "p", "image", specs, image=path, run=RunSpec(limit=100_000).with_options(run)
        )

    return make


@pytest.fixture
def tile(image: Callable[..., Program]) -> Callable[..., Tile]:
    """The same, launched."""
    return lambda *words, **how: launch(image(*words, **how))
