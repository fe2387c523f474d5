"""docs/why.md shows five bugs from the symptom: what it shows is what the commands print."""

import os
import re
from pathlib import Path
from types import ModuleType

import planted
import pytest
from click.testing import CliRunner

from bhemu.cli import main
from bhemu.errors import EXIT_DIFFERS

DOCUMENT = planted.ROOT / "docs" / "why.md"
SHOWN = ("get missing", "recorded one too few", "an offset", "no wait", "layout of the input")
OFFSET = "REG7_Offset_address_ADDR32, 0);"
OWN = (
    planted.Bug(
        "an offset", 13, "matmul",
        (("lib/unpack_pair.h", OFFSET, OFFSET.replace("0)", "16)")),),
        "trisc0",
    ),
    planted.Bug(
        "no wait", 2, "matmul",
        (("lib/pack_half.h", "    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);\n", ""),),
        "trisc2",
    ),
)  # fmt: skip
NAMED = {bug.name: bug for bug in (*planted.bugs(), *OWN)}
# The command that tells it, where that is not `why`: no late run shows it.
TELLS = {"no wait": ("check", "--tool", "order")}
# The one that takes least is always run.
RUN = range(len(SHOWN)) if os.environ.get("BHEMU_LONG") else [len(SHOWN) - 1]


def blocks() -> list[str]:
    """The transcripts, in the order of the page."""
    text = DOCUMENT.read_text(encoding="utf-8")
    part = text.split("## Five bugs, from the symptom", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```text\n(.*?)```", part, re.DOTALL)


def fragments(shown: str) -> list[str]:
    """What each line shows between its omissions, in order."""
    return [part.strip() for line in shown.splitlines() for part in line.split("...")]


def test_the_page_has_a_transcript_of_each() -> None:
    assert len(blocks()) == len(SHOWN)


@pytest.mark.parametrize("number", RUN)
def test_a_transcript(number: int, compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(NAMED[SHOWN[number]], tmp_path / "bug", compiler)
    symptom, told = blocks()[number].split("---\n")
    tells = TELLS.get(SHOWN[number], ("why",))
    for command, shown in ((("run",), symptom), (tells, told)):
        result = CliRunner().invoke(main, [*command, "-q", str(made.folder)])
        assert result.exit_code == EXIT_DIFFERS or command == ("run",)
        at = 0
        for part in fragments(shown):
            found = result.output.find(part, at)
            assert found >= 0, f"{command}: {part!r} is not in\n{result.output}"
            at = found + len(part)
