"""The session of docs/api.md runs as it is printed there."""

import doctest
import re
import shutil
from pathlib import Path

import pytest

import bhemu

ROOT = Path(bhemu.__file__).parent.parent
PAGE = ROOT / "docs" / "api.md"


def test_the_session_gives_what_the_page_shows(tmp_path, monkeypatch) -> None:
    for name in ("add1", "add1_chip"):
        shutil.copytree(ROOT / "elfs" / name, tmp_path / "elfs" / name)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), re.S)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    assert len(session.examples) >= 20
    shown: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(session, out=shown.append)
    assert outcome.failed == 0, "".join(shown)


def test_the_page_names_everything_a_tile_has() -> None:
    page = PAGE.read_text()
    public = [name for name in dir(bhemu.Tile()) if not name.startswith("_")]
    assert len(public) > 25
    assert [name for name in public if not re.search(rf"\b{name}\b", page)] == []


def test_the_page_names_everything_a_chip_has() -> None:
    page = PAGE.read_text()
    public = [name for name in dir(bhemu.Chip()) if not name.startswith("_")]
    assert len(public) > 15
    assert [name for name in public if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize("cls", [bhemu.Tile, bhemu.Snapshot, bhemu.Chip, bhemu.ChipSnapshot])
def test_every_public_method_has_a_sentence(cls) -> None:
    for name in dir(cls):
        if not name.startswith("_") and name not in getattr(cls, "__dataclass_fields__", ()):
            assert (getattr(cls, name).__doc__ or "").strip(), name
