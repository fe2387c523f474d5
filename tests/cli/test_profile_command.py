"""`bhemu profile`: cycles by agent and by source line, in modelled time."""

import json
from pathlib import Path

ELFS = Path(__file__).parents[2] / "elfs"


def test_agents_and_lines_are_shown(bhemu) -> None:
    done = bhemu("profile", ELFS / "add1", "--lines", 3)
    assert done.exit_code == 0
    first, *rest = done.stdout.splitlines()
    assert first.startswith("add1: ") and "cycles in modelled time" in first
    assert any(line.startswith("packer ") for line in rest)
    assert sum("main+0x" in line for line in rest) == 3
    assert any(line.startswith("estimates: of words ") for line in rest)


def test_cycles_add_up(bhemu) -> None:
    """What a thread works and waits is never more than the run took; words are all counted."""
    found = json.loads(bhemu("profile", ELFS / "matmul", "--json").stdout)
    assert found["complete"]
    for agent, own in found["agents"].items():
        assert sum(own.values()) <= found["cycles"] + 64, agent  # the last word may outlast the run
    math = [row for row in found["rows"] if row["agent"] == "T1" and row["waits_for"] == ""]
    assert sum(row["times"] for row in math) == 821  # words of T1, as `bhemu run` counts them


def test_a_hang_is_an_error_and_still_shown(bhemu) -> None:
    done = bhemu("profile", ELFS / "hang_cycle")
    assert done.exit_code == 3
    assert "waits most for" in done.stdout
    assert "DEADLOCK" in done.stderr


def test_what_cannot_be_modelled_is_refused(bhemu) -> None:
    assert bhemu("profile", ELFS / "add1_chip").exit_code == 2
    assert bhemu("profile", ELFS / "add1", "--late", 3).exit_code == 2
