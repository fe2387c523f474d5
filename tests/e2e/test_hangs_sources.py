"""Hanging C programs: function, file and line of who waits, and of who could have released it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.errors import EXIT_NO_PROGRESS, NoProgress
from bhemu.launch import launch
from bhemu.machine.hang.graph import WaitGraph
from bhemu.machine.hang.waits import Waiter
from bhemu.program.schema import load_program

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "firmware" / "hangs"


def line_of(source: str, text: str, nth: int = 0) -> int:
    """Line number of the nth line of a source that holds `text`."""
    lines = (SOURCES / source).read_text().splitlines()
    return [i for i, line in enumerate(lines, 1) if text in line][nth]


def hang(name: str) -> tuple[str, WaitGraph]:
    program = load_program(ROOT / "elfs" / f"hang_{name}")
    with pytest.raises(NoProgress) as caught:
        launch(program).run()
    graph = caught.value.graph
    assert isinstance(graph, WaitGraph)
    return caught.value.category, graph


def at(w: Waiter) -> tuple[object, object, object]:
    """Function, file and line of a waiter."""
    symbol = str(w.where["symbol"]).split("+")[0]
    return symbol, w.where["file"], w.where["line"]


def test_brisc_waits_for_a_trisc_that_it_has_not_released() -> None:
    category, graph = hang("flag")
    assert category == "Livelock"
    (w,) = graph.waiters
    assert (w.who, w.kind, w.resource) == ("brisc", "l1", {"address": 0x104, "value": 0})
    assert at(w) == ("wait_for", "flag_brisc.c", line_of("flag_brisc.c", "while (*word"))
    (releaser,) = w.releasers
    assert releaser.who == "trisc0"
    assert releaser.how == "store of 0xd0e1 to 0x104"
    line = line_of("flag_trisc0.c", "report_done(void)")
    assert f"(flag_trisc0.c:{line})" in releaser.place
    assert "in report_done" in releaser.place
    assert releaser.state == "is in reset: no core or host has released it"


def test_a_time_out_that_starts_again() -> None:
    category, graph = hang("timeout")
    assert category == "Livelock"
    (w,) = graph.waiters
    assert (w.who, w.resource) == ("trisc0", {"address": 0x108, "value": 0})
    line = line_of("timeout_trisc0.c", "if (done_words[2]")
    assert at(w) == ("arrived", "timeout_trisc0.c", line)
    assert "the clock it reads ends nothing" in w.detail
    assert w.releasers == ()


def test_two_threads_in_a_ring() -> None:
    category, graph = hang("cycle")
    assert category == "Deadlock"
    assert graph.cycle == ("thread T1", "thread T2")
    by_name = {w.who: w for w in graph.waiters}
    assert by_name.keys() == {"thread T1", "thread T2", "trisc1", "trisc2"}
    first, second = by_name["thread T1"], by_name["thread T2"]
    assert at(first) == ("main", "cycle_math.c", line_of("cycle_math.c", "SEMWAIT"))
    assert at(second) == ("main", "cycle_pack.c", line_of("cycle_pack.c", "SEMWAIT"))
    posts = f"(cycle_pack.c:{line_of('cycle_pack.c', 'SEMPOST')} release, inlined at cycle_pack.c:"
    assert [r.who for r in first.releasers] == ["thread T2"]
    assert posts in first.releasers[0].place
    assert by_name["trisc1"].kind == "ttsync"
    assert by_name["trisc1"].resource == {"thread": 1}
    assert by_name["trisc1"].where["file"] == "tensix.h"


@pytest.mark.parametrize(("name", "rule"), [("cycle", "DEADLOCK"), ("flag", "LIVELOCK")])
def test_the_command_prints_the_graph_and_gives_it_as_data(name: str, rule: str) -> None:
    command = [sys.executable, "-m", "bhemu", "run", f"elfs/hang_{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == EXIT_NO_PROGRESS
    assert f"error: [{rule}] {rule.lower()}: " in done.stderr
    assert "could have been released by" in done.stderr
    assert ("cycle: thread T1 needs" in done.stderr) == (rule == "DEADLOCK")
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    error = json.loads(done.stdout)
    assert (error["error"], error["rule"], error["exit_code"]) == ("NoProgress", rule, 3)
    first = error["graph"]["waiters"][0]
    keys = {"who", "how", "place", "state", "able", "core", "pc", "line"}
    assert first["releasers"][0].keys() == keys
    assert first["where"]["line"] > 0
    assert first["resource"]
