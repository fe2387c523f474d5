"""A pair that nothing orders is shown by a late run, which one command repeats."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import ROOT, checked, folder, found, shipped, store

from bhemu import memmap as mm
from bhemu.errors import GuestFault, InputError
from bhemu.launch import Launched, Program
from bhemu.program.options import AGENTS, Acts, Lateness, lateness
from bhemu.program.schema import SESSION
from bhemu.riscv.assembly import add, li, lw, sw
from bhemu.tensix import in_flight
from bhemu.tensix.state import LATE_AGENTS
from bhemu.why import witness
from bhemu.why.check import Context
from bhemu.why.findings import Finding
from bhemu.why.question import context
from bhemu.why.steps import Instruction
from bhemu.why.witness import Pair

WALL_CLOCK = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_WALL_CLOCK_0
NOP, OUT = 0x02000000, 0x20200
STALLWAIT_PACK = 0xA2200008  # holds back what comes after PACR until it has read Dst


def pushed(word: int) -> bytes:
    """The `.ttinsn` of a core that pushes a word."""
    return ((word << 2 | word >> 30) & 0xFFFFFFFF).to_bytes(4, "little")


def without_wait(path: Path) -> Path:
    """elfs/add1, whose pack thread does not wait for the packer."""
    data = (ROOT / "elfs" / "add1" / "trisc2.elf").read_bytes()
    assert data.count(pushed(STALLWAIT_PACK)) == 1
    return shipped(path, "add1", trisc2=data.replace(pushed(STALLWAIT_PACK), pushed(NOP)))


def test_one_late_word_shows_a_missing_wait_in_a_fresh_process(tmp_path: Path) -> None:
    program = without_wait(tmp_path / "add1")
    first = checked(program, "races")[0]
    (shown,) = [line for line in first["evidence"] if line.startswith("shown by ")]
    command, _, ends = shown.removeprefix("shown by bhemu ").partition(": ")
    assert "--late" in command
    assert "packer@" in command
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", *command.split()], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert ends.partition(";")[0].removeprefix("y: ") in done.stdout
    seed, _, acts = command.rpartition(" ")[2].partition(":")
    (alone,) = lateness("late", f"{seed}:{acts}").acts
    assert alone.first == alone.last
    for late in (f"{seed}:{replace(alone, first=1 << 40, last=None)}", f"{seed}:mover"):
        right = subprocess.run(
            [sys.executable, "-m", "bhemu", "run", str(program), "--late", late],
            capture_output=True, text=True,
        )  # fmt: skip
        assert right.returncode == 0, late


def test_why_of_a_late_run_tells_its_end_and_what_nothing_orders(tmp_path: Path) -> None:
    program = without_wait(tmp_path / "add1")
    tile = Program.load(program).launch(late=12)
    tile.run()
    first, *others = tile.why()
    assert first.check == "order" and "shown by" in first.evidence[-1]
    (last,) = [one for one in others if one.check == "origin"]
    assert last.text.startswith("with --late 12: y: 64 of 1024 elements differ")
    assert last.evidence == ("without --late 12 the program ends as expected",)


def test_a_late_run_that_comes_to_its_limit_blames_nobody(tmp_path: Path) -> None:
    """add1 ends at clock 2688, with seed 32 at 6294: it is only late."""
    (limit,) = found(shipped(tmp_path / "add1", "add1"), "--late", "32", "--limit", "3000")
    assert limit["text"].startswith("with --late 32: the clock limit of 3000 was reached")
    assert limit["evidence"] == ["without --late 32 the program ends as expected"]


def test_a_run_in_time_that_differs_without_a_pair_says_so(tmp_path: Path) -> None:
    """A core stores the clock: no order of accesses decides that."""
    load = [*li(5, OUT), lw(7, 5, 0), add(7, 7, 7)]  # takes cycles
    kernel = [*load, *li(5, WALL_CLOCK), lw(6, 5, 0), *li(5, OUT), sw(6, 5, 0)]
    folder(tmp_path, {"trisc0": [kernel]}, outputs={OUT: 1})
    on_time = Program.load(tmp_path).launch()
    on_time.run()
    folder(tmp_path, {"trisc0": [kernel]}, outputs={OUT: [on_time.read32(OUT)]})
    tile = Program.load(tmp_path).launch(timing="model")
    tile.run()
    (found,) = tile.why()
    assert found.check == "origin"
    assert "it reads a clock or a counter" in found.evidence[-1]


@pytest.mark.parametrize(("on_time", "found"), [(None, True), ("the same", False)])
def test_a_run_that_ends_so_with_nothing_late_proves_nothing(
    on_time: str | None, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, {"trisc0": [store(OUT, 1)]}, outputs={OUT: [1]})
    target = Launched(Program.load(tmp_path))
    asked = context(target, target.finish())
    refused = replace(asked.symptom, error=GuestFault("an illegal word"))
    ends = iter([asked.symptom if on_time is None else refused, *[refused] * 40])
    monkeypatch.setattr(Context, "finish", lambda self, machine, **_: next(ends))
    step = Instruction(0, 0, 0x4000, 0x13)
    other = replace(step, core=1)
    assert (witness.of_pair(asked, Pair((1, 2), step, other)) is not None) == found
    assert witness.of_pair(asked, Pair((1, 2), step, step)) is None  # late together


@pytest.mark.parametrize(
    "text",
    ["7", "7:packer", "7:packer@0x18190#3", "7:1-2/T1@0x14000#2-9,noc@0x4000", "0:brisc#4-9"],
)
def test_what_is_late_reads_back(text: str) -> None:
    assert str(lateness("late", text)) == text
    assert lateness("late", text) == lateness("late", str(lateness("late", text)))


def test_a_count_without_an_end_reads_back() -> None:
    one = Lateness(3, (Acts("T0", None, 5),))
    (back,) = lateness("late", str(one)).acts
    assert back.row == one.acts[0].row


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "not known"), ("7:", "not known"), ("4294967296", "not known"),
        ("7:pack er", "names no"),
        ("7:packet", "no agent is called 'packet'"), ("7:T0#0", "counts from 1"),
        ("7:T0#5-4", "counts from 1"), ("7:noc@0x4000#2", "noc@PC"), ("7:noc,noc@0x4", "too many"),
        ("7:" + ",".join(["T0"] * 17), "too many"),
    ],
)  # fmt: skip
def test_what_names_nothing_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        lateness("late", text)
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", "run", str(ROOT / "elfs" / "add1"), "--late", text],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_agents_have_the_numbers_of_the_record() -> None:
    named = [name.replace(" unit", "").replace(" ", "") for name in in_flight.NAMES]
    assert list(AGENTS[: len(named)]) == named
    assert len(AGENTS) == LATE_AGENTS


def test_of_a_session_no_late_run_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path, {"trisc0": [store(OUT, 1)]}, outputs={OUT: [1]})
    target = Launched(Program.load(tmp_path))
    asked = context(target, target.finish())
    asked.program = replace(asked.program, kind=SESSION)
    runs = iter([asked.symptom])
    monkeypatch.setattr(Context, "finish", lambda self, machine, **_: next(runs))
    step = Instruction(0, 0, 0x4000, 0x13)
    found = Finding("races", "error", "a pair", {}, {}, (), "")
    seen = witness.witnessed(
        asked, witness.PairFinding(found, Pair((1, 2), step, replace(step, core=1)))
    )
    assert seen.severity == "note" and "no late run was tried" in seen.evidence[-1]
    assert next(runs) is asked.symptom


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (3, ()),
        (4, ("1 more line like this is not shown",)),
        (7, ("4 more lines like this are not shown",)),
    ],
)
def test_the_last_finding_of_a_check_says_how_many_more_there_are(
    lines: int, told: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "witnessed", lambda _context, one: one.finding)
    found = [Finding("races", "error", "", {"pc": line}, {}, (), "") for line in range(lines)]
    pairs = [(n, witness.PairFinding(found[n], None)) for n in range(lines) for _ in range(2)]  # type: ignore[arg-type]

    shown = witness.with_late_runs(None, pairs)  # type: ignore[arg-type]

    assert [each.evidence for each in shown] == [(), (), told]
