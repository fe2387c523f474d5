"""Profiles as trace events and as a page: what they show adds up to the table."""

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from browser import needs_browser, title_after
from click.testing import CliRunner

from bhemu.cli import main

ELFS = Path(__file__).parents[2] / "elfs"


def profile(name: str, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """What --json, --perfetto and --html of a program give."""
    events, page = folder / "events.json", folder / "page.html"
    args = ["profile", str(ELFS / name), "--json", "--perfetto", str(events), "--html", str(page)]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), json.loads(events.read_text())["traceEvents"], page.read_text()


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return profile("matmul", tmp_path_factory.mktemp("matmul"))


@pytest.fixture(scope="module")
def copy_dram(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return profile("copy_dram", tmp_path_factory.mktemp("copy_dram"))


def lanes(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Spans by lane of the only tile."""
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[names[event["tid"]]].append(event)
    return found


def test_spans_of_threads_and_units_are_those_of_the_table(matmul: Any) -> None:
    report, events, _ = matmul
    of = lanes(events)
    for one in (*report["agents"], *report["units"]):
        if one["name"] in ("brisc", "trisc0", "trisc1", "trisc2", "ncrisc"):
            continue
        spans = sorted(of[one["name"]], key=lambda e: e["ts"])
        assert sum(e["dur"] for e in spans if e["cat"] == "works") == one["busy"]
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in itertools.pairwise(spans))
    words = [e["name"] for e in of["T1"] if e["cat"] == "works"]
    assert len(words) == 821 and words.count("MVMUL") > 500


def test_spans_of_a_core_hold_its_work(matmul: Any) -> None:
    report, events, _ = matmul
    of = lanes(events)
    for one in report["agents"]:
        if one["name"].startswith("trisc"):
            spans = [e for e in of[one["name"]] if e["cat"] == "works"]
            assert one["busy"] <= sum(e["dur"] for e in spans) <= report["cycles"]


def test_counters_follow_semaphores_and_fifos(matmul: Any) -> None:
    _, events, _ = matmul
    values: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            values[event["name"]].append(event["args"]["value"])
    assert all(a != b for of in values.values() for a, b in itertools.pairwise(of))
    semaphores = [of for name, of in values.items() if name.startswith("semaphore")]
    assert any(max(of) >= 1 for of in semaphores)
    fifos = [values[f"words in the FIFO of T{t}"] for t in (1, 2)]
    assert all(of[-1] == 0 and max(of) > 1 for of in fifos)


def test_arrows_go_from_posts_to_waits(matmul: Any) -> None:
    _, events, _ = matmul
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    spans = [e for e in events if e["ph"] == "X"]
    waits = [e for e in spans if e["name"].startswith("waits for a semaphore")]
    assert starts.keys() == ends.keys() and len(starts) == len(waits) > 0
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"]
        assert any(w["tid"] == end["tid"] and w["ts"] + w["dur"] == end["ts"] for w in waits)
        there = {e["name"] for e in spans if (e["tid"], e["ts"]) == (start["tid"], start["ts"])}
        assert there & {"SEMPOST", "SEMGET"}


def test_every_request_has_its_answer(copy_dram: Any) -> None:
    report, events, _ = copy_dram
    begins = {e["id"]: e for e in events if e["ph"] == "b"}
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    assert begins.keys() == ends.keys()
    assert len(begins) == sum(one["requests"] for one in report["dram"]) == 128
    taken = sum(ends[number]["ts"] - begins[number]["ts"] for number in begins)
    assert taken == sum(one["cycles"] for one in report["dram"])
    under_way = defaultdict(list)
    for event in events:
        if event["ph"] == "C" and event["name"].startswith("requests under way"):
            under_way[event["pid"], event["name"]].append(event["args"]["value"])
    assert all(of[-1] == 0 and max(of) >= 1 and min(of) == 0 for of in under_way.values())


def test_every_figure_says_where_it_is_from(copy_dram: Any, matmul: Any) -> None:
    known = {"isa text", "measured", "derived", "estimate"}
    for report in (copy_dram[0], matmul[0]):
        rows = [*report["rows"], *report["noc"], *report["dram"], *report["lines"]]
        rows += [one for one in (*report["agents"], *report["units"]) if one["busy"]]
        assert {one["source"] for one in rows} <= known
        assert all(one["bound"] for one in report["lines"])
    writes = [one for one in copy_dram[0]["dram"] if one["what"].startswith("write")]
    assert {one["source"] for one in writes} == {"estimate"}
    unit = {one["name"]: one["source"] for one in matmul[0]["units"]}
    assert unit["packer"] == "estimate" and unit["unpacker 0"] == "derived"


def test_links_carry_what_was_asked_for(copy_dram: Any) -> None:
    """64 reads and 64 writes of pages of 2048 bytes: 33 flits each, on one link at least."""
    report = copy_dram[0]
    most = defaultdict(int)
    for one in report["links"]:
        most[one["noc"]] = max(most[one["noc"]], one["flits"])
        assert one["axis"] in "xy" and one["flits"] > 0
    assert sum(one["flits"] for one in report["links"]) >= 128 * 33
    assert all(33 <= flits <= report["cycles"] for flits in most.values())


@needs_browser
def test_the_page_shows_flame_timeline_and_links(copy_dram: Any, tmp_path: Path) -> None:
    report, _, page = copy_dram
    script = """
    const n = s => document.querySelectorAll(s).length;
    document.title = [n('.flame rect'), n('.time'), n('.link'), n('#waits tbody tr'),
      n('#moved tbody tr'), [...document.querySelectorAll('.flame rect')].every(
        r => r.getBoundingClientRect().width > 0),
      [...document.querySelectorAll('.link')].every(l => {
        const a = l.getBoundingClientRect(), b = l.closest('svg').getBoundingClientRect();
        return a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
      })].join(' ');
    """
    *numbers, wide, inside = title_after(page, script, tmp_path).split()
    flame, timelines, links, waits, moved = numbers
    assert int(flame) > 50 and int(timelines) == 16 and wide == inside == "true"
    assert int(links) == len(report["links"])
    assert int(waits) > 10 and int(moved) == len(report["noc"]) + len(report["dram"])
    assert "http" not in page.replace("http-equiv", "")
