"""docs/programs.md: its TOML parses, and it names what there is."""

import re
import tomllib
from pathlib import Path

from bhemu import metal
from bhemu.program.coordinates import TILE_VALUES
from bhemu.program.options import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


def test_every_block_is_toml() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    assert {"tile", "chip"} <= tomllib.loads(blocks[0]).keys()
    assert {"input", "output"} <= tomllib.loads(blocks[1]).keys()
    assert len(tomllib.loads(blocks[2])["firmware"]) == 5


def test_kinds_and_tile_values_are_those_of_the_code() -> None:
    assert re.findall(r'^\| `"([\w-]+)"` \|', PAGE, re.MULTILINE) == list(KINDS)
    table = PAGE.partition("| NAME | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == TILE_VALUES.keys()


def test_what_is_read_from_elfs_has_these_names() -> None:
    for name in (metal.FUNCTION, metal.MAILBOXES, metal.BASE, "mailboxes_t"):
        assert f"`{name}`" in PAGE


def test_every_program_it_names_exists() -> None:
    named = set(re.findall(r"`(elfs/\w+|firmware/[\w./]+)`", PAGE))
    assert len(named) >= 7
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
