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
    for one in (*found["agents"], *found["units"]):  # the last word may outlast the run
        assert one["busy"] + sum(one["waiting"].values()) <= found["cycles"] + 64, one["name"]
    assert found["bound"] in {f"{one['name']} of tile (1,2)" for one in found["agents"]}
    assert set(found["sources"]) == {"isa text", "measured", "derived", "estimate"}
    lines = {(one["core"], one["file"], one["line"]): one for one in found["lines"]}
    assert len(lines) == len(found["lines"]) > 20
    in_rows = sum(r["cycles"] for r in found["rows"] if r["agent"] in ("brisc", "T0", "T1", "T2"))
    assert 0 < sum(one["cycles"] for one in found["lines"]) <= 2 * in_rows
    assert all(sum(o["waiting"].values()) <= o["cycles"] for o in found["lines"])
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
    tiles = {tuple(one["tile"]) for one in found["agents"]}
    assert found["complete"] and len(tiles) == 16
    for what in ("read", "write"):
        pages = [row for row in found["dram"] if row["what"] == f"{what} of DRAM bank"]
        assert sum(row["requests"] for row in pages) == 64
        assert all(row["cycles"] > 300 * row["requests"] for row in pages)
        assert all(row["niu"] + row["links"] + row["dram"] <= row["cycles"] for row in pages)
        assert {row["tile"] for row in pages} == {f"{x},{y}" for x, y in tiles}
    rows = [row for row in found["rows"] if row["tile"] == [1, 2]]
    waits = [row for row in rows if "NoC reads" in row["waits_for"]]
    assert waits and all(row["agent"] == "ncrisc" and row["cycles"] > 400 for row in waits)
    for one in found["agents"]:
        assert one["busy"] + sum(one["waiting"].values()) <= found["cycles"] + 64, one["name"]


def test_a_chip_shows_tiles_lines_and_what_is_not_modelled(bhemu) -> None:
    done = bhemu("profile", ELFS / "copy_dram", "--lines", 4)
    assert done.exit_code == 0
    assert "transfers, with what of their cycles they waited for" in done.stdout
    assert sum("read of DRAM bank: " in line for line in done.stdout.splitlines()) > 0
    assert "not modelled: " in done.stdout and "arbitration of routers" in done.stdout


def test_two_profiles_are_compared_by_line(bhemu, tmp_path: Path) -> None:
    same = bhemu("profile", ELFS / "matmul", "--diff", ELFS / "matmul")
    assert same.exit_code == 0
    head, table = same.stdout.splitlines()
    assert ", +0 against " in head
    assert table.endswith("line, of all tiles")
    (tmp_path / "a.json").write_text(bhemu("profile", ELFS / "add1", "--json").stdout)
    other = bhemu("profile", ELFS / "eltwise", "--diff", tmp_path / "a.json", "--lines", 4)
    assert other.exit_code == 0
    assert len(other.stdout.splitlines()) == 6
    (tmp_path / "b.json").write_text("{}")
    bad = bhemu("profile", ELFS / "add1", "--diff", tmp_path / "b.json")
    assert bad.exit_code == 2
    assert "no profile" in bad.stderr


def test_what_an_agent_costs_is_a_run_without_its_time(bhemu) -> None:
    """The packer works beside the matrix unit, which takes one cycle a MVMUL anyhow."""
    whole = json.loads(bhemu("profile", ELFS / "matmul", "--json").stdout)
    assert whole["without"]["agent"] == "trisc0"  # it works most
    gains = {}
    for name in ("packer", "matrix unit", "trisc0", "brisc", "ncrisc"):
        asked = bhemu("profile", ELFS / "matmul", "--json", "--without", name)
        found = json.loads(asked.stdout)
        gain = found.pop("without")
        assert gain["cycles"] + gain["gained"] == found["cycles"] == whole["cycles"]
        assert found == {name: value for name, value in whole.items() if name != "without"}
        gains[name] = gain["gained"], gain["source"]
    assert gains["trisc0"] == (whole["without"]["gained"], "measured")
    assert gains["brisc"][0] > 0 and gains["brisc"][1] == "measured"
    assert gains["packer"] == (0, "estimate")
    assert gains["matrix unit"] == (0, "measured")
    assert gains["ncrisc"] == (0, "")
    text = bhemu("profile", ELFS / "matmul", "--lines", 0).stdout.splitlines()[-1]
    assert text.startswith("if all that trisc0 does took one cycle: ")


def test_an_agent_that_is_not_there_is_refused(bhemu) -> None:
    result = bhemu("profile", ELFS / "matmul", "--without", "packer 0")
    assert result.exit_code == 2
    assert "no agent is called 'packer 0'" in result.stderr and "matrix unit" in result.stderr
