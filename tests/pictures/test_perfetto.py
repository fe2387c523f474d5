"""bhemu trace --perfetto: Chrome trace events of cores, words, stores and NoC requests."""

import itertools
import json
from collections import Counter
from pathlib import Path

from click.testing import CliRunner

import bhemu as package
from bhemu import Program
from bhemu.cli import main

ROOT = Path(package.__file__).parent.parent


def events(tmp_path: Path, program: str, *options: str) -> tuple[list[dict], dict]:
    path = tmp_path / "out.json"
    args = ["trace", "-q", str(ROOT / "elfs" / program), "--perfetto", str(path), *options]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    document = json.loads(path.read_text())
    return document["traceEvents"], document


def test_every_word_stands_at_its_clock(tmp_path) -> None:
    found, document = events(tmp_path, "add1")
    assert document["displayTimeUnit"] == "ns"
    tile = Program.load(ROOT / "elfs/add1").launch()
    tile.state.trace[0] = 1
    end = tile.run()
    tile.drain_log()
    words = [one for one in found if one.get("cat") == "word"]
    assert [one["ts"] + 1 for one in words] == [entry[4] for entry in tile.log]
    assert [one["args"]["word"] for one in words] == [f"{entry[1]:#010x}" for entry in tile.log]
    assert max(one["ts"] for one in found if "ts" in one) <= end.clock
    assert Counter(one["ph"] for one in found)["M"] == 1 + 2 * 9
    names = {one["args"]["name"] for one in found if one["name"] == "thread_name"}
    assert names == {"brisc", "trisc0", "trisc1", "trisc2", "ncrisc", "T0", "T1", "T2", "NoC"}


def test_slices_of_a_lane_do_not_overlap(tmp_path) -> None:
    found, _ = events(tmp_path, "matmul")
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for one in found:
        if one["ph"] == "X":
            lanes.setdefault((one["pid"], one["tid"]), []).append((one["ts"], one["dur"]))
    assert len(lanes) >= 7
    for slices in lanes.values():
        slices.sort()
        assert all(a + n <= b for (a, n), (b, _) in itertools.pairwise(slices))
    names = {one["name"] for one in found if one.get("cat") == "works"}
    assert "main" in names


def test_a_chip_has_a_process_per_tile_and_its_requests(tmp_path) -> None:
    found, _ = events(tmp_path, "copy_dram")
    tiles = [one["args"]["name"] for one in found if one["name"] == "process_name"]
    assert all(name.startswith("tile (") for name in tiles)
    requests = [one for one in found if one.get("cat") == "noc"]
    assert requests
    assert all("NOC_TARG_ADDR_LO" in " ".join(one["args"]) for one in requests)
    assert all(".c:" in one["args"]["from"] for one in requests)


def test_words_are_cut(tmp_path) -> None:
    found, document = events(tmp_path, "add1", "--limit-words", "20")
    assert sum(one.get("cat") in ("word", "store") for one in found) == 20
    assert "first" in document["otherData"]["words"]
