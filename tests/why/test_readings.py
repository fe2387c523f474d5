"""Inputs in DRAM that a program takes in another order than they lie there."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import planted
import pytest

COPY = "copy_dram"


def folder(root: Path, expected: Any) -> Path:
    """A program that copies 64 tiles, with another result expected of it."""
    out = root / COPY
    shutil.copytree(planted.ROOT / "elfs" / COPY, out)
    np.save(out / "expected.npy", expected)
    text = (out / planted.TOML).read_text()
    (out / planted.TOML).write_text(text.replace('expect = "in.npy"', 'expect = "expected.npy"'))
    return out


def tiles(matrix: Any) -> Any:
    """By row of tiles, column of tiles, row, column."""
    return matrix.reshape(8, 32, 8, 32).transpose(0, 2, 1, 3)


def matrix(of_tiles: Any) -> Any:
    return of_tiles.transpose(0, 2, 1, 3).reshape(256, 256)


@pytest.fixture
def given() -> Any:
    return np.load(planted.ROOT / "elfs" / COPY / "in.npy")


def said(root: Path, expected: Any) -> list[tuple[str, str, str]]:
    found = planted.why(folder(root, expected))
    return [
        (one["text"], one["culprit"]["core"], Path(one["culprit"]["file"]).name)
        for one in found
        if "reads them here" in one["text"]
    ]


def test_pages_by_columns(compiler: ModuleType, tmp_path: Path, given: Any) -> None:
    by_columns = matrix(tiles(given).transpose(1, 0, 2, 3))
    text = "the run also ends correctly if pages of in.npy lie by columns of tiles in DRAM"
    text += "; ncrisc reads them here"
    assert said(tmp_path, by_columns) == [(text, "ncrisc", "reader.c")]


def test_an_order_that_explains_nothing(tmp_path: Path, given: Any) -> None:
    other = tiles(given).copy()
    other[0, 0], other[0, 1] = other[0, 1].copy(), other[0, 0].copy()
    assert said(tmp_path, matrix(other)) == []
