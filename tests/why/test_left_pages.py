"""A core that has ended while another one waits for what it counts."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import planted

from bhemu import Program
from bhemu.launch import Launched
from bhemu.why.question import context
from bhemu.why.waiting import left_pages


def found(root: Path, *changes: tuple[str, str, int]) -> list[Any]:
    """What is said of add1_chip after changes of PROGRAM.toml: text, replacement, how often."""
    out = root / "add1_chip"
    shutil.copytree(planted.ROOT / "elfs" / "add1_chip", out)
    text = (out / planted.TOML).read_text()
    for old, new, times in changes:
        assert text.count(old) == times
        text = text.replace(old, new)
    (out / planted.TOML).write_text(text)
    target = Launched(Program.load(out))
    ended = target.finish()
    return list(left_pages(context(target, ended), ended.error))


COMPUTE = '"tile:index", "tile:count", "{}", "f32:1.0"'


def code(one: Any) -> str:
    """The line that is blamed."""
    file = planted.ROOT / "firmware" / "add1_chip" / Path(one.culprit["file"]).name
    return file.read_text().splitlines()[one.culprit["line"] - 1].strip()


def test_three_cores_that_end_too_early(compiler: ModuleType, tmp_path: Path) -> None:
    fewer = (COMPUTE.format("u32:16"), COMPUTE.format("u32:4"), 3)
    said = {one.culprit["core"]: one for one in found(tmp_path, fewer)}
    assert sorted(said) == ["trisc0", "trisc2"]
    one = said["trisc0"]
    assert one.text.endswith("trisc0 gives pages back, 1 times, and has ended")
    assert one.victim["core"] == "ncrisc"
    assert code(one) == "cb_pop(&in, 1);"


def test_a_core_that_goes_on_too_long_is_no_others_fault(tmp_path: Path) -> None:
    more = ('"u32:16", "u32:16"', '"u32:20", "u32:16"', 1)
    assert found(tmp_path, more) == []


def test_a_right_program(tmp_path: Path) -> None:
    assert found(tmp_path) == []
