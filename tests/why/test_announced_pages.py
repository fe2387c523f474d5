"""Pages of circular buffers that are announced, of which nothing has written all: who is named."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import planted
import pytest

READER, PACK, UNPACK = "dataflow/reader.c", "add1_chip/pack.c", "add1_chip/unpack.c"
READ = "        dram_read_page(&noc, &tensor, page, cb.pointer);\n"
HALF = (
    "        noc_read(&noc, noc_dram(&noc, page % tensor.banks), dram_address(&tensor, page),\n"
    "                 cb.pointer, tensor.page / 2);\n"
)
FILL = "        pack_half(out.pointer, half);\n"
ASIDE = FILL.replace("out.pointer", "out.pointer + 0x10000")
RESULT, ALL = "decides the result, and nothing has written it when", ", nor any of its 2048 bytes"


def findings(compiler: ModuleType, out: Path, *change: str) -> list[Any]:
    """What is said of add1_chip with a line replaced: file, old and new text."""
    file, old, new = change
    bug = planted.Bug("own", 1, "add1_chip", ((file, old, new),), "ncrisc", "")
    return planted.why(planted.make(bug, out / "p", compiler).folder)


def line(found: Any, path: Path) -> str:
    """The line of the kernel that the culprit is in or called from, in the sources."""
    (*_, at) = (found["culprit"], *found["culprit"]["inlined"])
    name = Path(at["file"]).name
    (source,) = (one for one in path.rglob(name) if one.parent.name in ("dataflow", "add1_chip"))
    return source.read_text().splitlines()[at["line"] - 1].strip()


@pytest.mark.parametrize(
    ("change", "core", "page", "reader", "beside"),
    [
        ((READER, READ, "        (void)tensor;\n"), "ncrisc", "page 0 of buffer 0", "trisc0", []),
        ((PACK, FILL, ASIDE), "trisc2", "page 0 of buffer 16", "brisc", ["0x42080"]),
    ],
    ids=["nowhere", "elsewhere"],
)
def test_who_announces_a_page_that_nothing_fills(
    compiler: ModuleType,
    tmp_path: Path,
    change: tuple[str, str, str],
    core: str,
    page: str,
    reader: str,
    beside: list[str],
) -> None:
    first, *_ = findings(compiler, tmp_path, *change)
    told = first["text"].partition(RESULT)[2]
    assert told == f" {core} announces {page}{ALL}"
    assert (first["check"], first["culprit"]["role"]) == ("unwritten", "announces it")
    assert line(first, tmp_path).startswith("cb_push(")
    assert first["victim"]["core"] == reader
    filled = "before that it fills L1 from "
    others = [one.removeprefix(filled) for one in first["evidence"] if one.startswith(filled)]
    assert [one.partition(" ")[0] for one in others] == beside
    assert ("correct the address" in first["advice"]) == bool(beside)


def test_who_fills_a_page_in_part(compiler: ModuleType, tmp_path: Path) -> None:
    first, *_ = findings(compiler, tmp_path, READER, READ, HALF)
    told = first["text"].partition(RESULT)[2]
    assert told == " ncrisc announces page 0 of buffer 0, nor 1023 others of its 2048 bytes"
    assert first["culprit"]["role"] == "writes the rest"
    assert line(first, tmp_path).startswith("noc_read(")
    assert any(one.startswith("announced by tile (1,2) ncrisc") for one in first["evidence"])


def test_who_fills_a_page_in_part_once(compiler: ModuleType, tmp_path: Path) -> None:
    """The next time all of it is filled: how much of it is missing is not said."""
    once = HALF.replace("tensor.page / 2", "page == args->first ? tensor.page / 2 : tensor.page")
    first, *_ = findings(compiler, tmp_path, READER, READ, once)
    assert first["text"].endswith(f"{RESULT} ncrisc announces page 0 of buffer 0")
    assert first["culprit"]["role"] == "writes the rest"
    assert line(first, tmp_path).startswith("noc_read(")


def test_a_page_that_is_filled_later(compiler: ModuleType, tmp_path: Path) -> None:
    """Only the first time nothing fills it: how much of it is missing is not said."""
    later = f"        if (page != args->first) {{\n    {READ}        }}\n"
    first, *_ = findings(compiler, tmp_path, READER, READ, later)
    assert first["text"].endswith(f"{RESULT} ncrisc announces page 0 of buffer 0")
    assert line(first, tmp_path).startswith("cb_push(")


def test_who_reads_a_page_that_is_not_announced(compiler: ModuleType, tmp_path: Path) -> None:
    found = findings(compiler, tmp_path, UNPACK, "        cb_wait_pages(&in, 1);\n", "")
    assert found[0]["culprit"]["core"] == "trisc0"
    assert not any(one["culprit"]["role"] == "announces it" for one in found)


def test_what_is_read_after_an_input(tmp_path: Path) -> None:
    """add1 is told of two tiles, and the input has one."""
    out = tmp_path / "add1"
    shutil.copytree(planted.ROOT / "elfs" / "add1", out)
    text = (out / planted.TOML).read_text()
    for old, new in (
        ('"u32:1", "f32:1.0"', '"u32:2", "f32:1.0"'),
        ('shape = [32, 32]\nexpect = "expected.npy"\n', "shape = [64, 32]\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (out / planted.TOML).write_text(text)
    first, *_ = planted.why(out)
    assert first["text"].startswith("L1 0x40800 decides the result, and nothing has written it")
    assert "it reads L1 0x40800 to 0x40a00; input in.npy ends at 0x40800" in first["evidence"]
    assert first["culprit"]["role"] == "read by"
