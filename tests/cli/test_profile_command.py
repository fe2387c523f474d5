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
    assert bhemu("profile", ELFS / "add1", "--late", 3).exit_code == 2


def test_transfers_of_a_chip_are_shown(bhemu) -> None:
    """copy_dram: 16 tiles read and write 64 pages of DRAM; each waits in a barrier."""
    found = json.loads(bhemu("profile", ELFS / "copy_dram", "--json").stdout)
    assert found["complete"] and len(found["tiles"]) == 16
    for what in ("read", "write"):
        pages = [row for row in found["transfers"] if row["what"] == f"{what} of DRAM bank"]
        assert sum(row["requests"] for row in pages) == 64
        assert all(row["cycles"] > 300 * row["requests"] for row in pages)
        assert all(row["niu"] + row["links"] + row["dram"] <= row["cycles"] for row in pages)
        assert {row["tile"] for row in pages} == found["tiles"].keys()
    waits = [row for row in found["tiles"]["1,2"]["rows"] if "NoC reads" in row["waits_for"]]
    assert waits and all(row["agent"] == "ncrisc" and row["cycles"] > 400 for row in waits)
    for tile in found["tiles"].values():
        for agent, own in tile["agents"].items():
            assert sum(own.values()) <= found["cycles"] + 64, agent


def test_a_chip_shows_tiles_lines_and_what_is_not_modelled(bhemu) -> None:
    done = bhemu("profile", ELFS / "copy_dram", "--lines", 4)
    assert done.exit_code == 0
    assert "transfers, with what of their cycles they waited for" in done.stdout
    assert sum("read of DRAM bank: " in line for line in done.stdout.splitlines()) > 0
    assert "not modelled: " in done.stdout and "arbitration of routers" in done.stdout
