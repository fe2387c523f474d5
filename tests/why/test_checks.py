"""The framework of checks: names, choice by symptom, both commands, the corpus' helper."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from corpus import ROOT, folder, found, store

from bhemu import InputError
from bhemu.cli import main
from bhemu.launch import Launched
from bhemu.program.schema import load_program
from bhemu.why import check, checks, question
from bhemu.why.check import Check
from bhemu.why.findings import Finding


def told(instant: int) -> Finding:
    culprit = {"core": "trisc0", "file": "k.c", "line": 3, "pc": 0x10000, "instant": instant}
    return Finding("stack", "error", f"{instant}", culprit, {}, (), "")


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that finds two things in whatever it is asked about."""
    one = Check("mine", "p", "m", "c", lambda seen: 1, lambda context: [told(90), told(10)])
    monkeypatch.setattr(checks, "every", lambda: {"mine": one})


@pytest.mark.usefixtures("mine")
def test_findings_of_a_class_come_in_order_of_time() -> None:
    done = CliRunner().invoke(main, ["why", "-q", "--json", str(ROOT / "elfs" / "add1")])
    assert done.exit_code == 1
    findings = json.loads(done.output)["findings"]
    assert [one["text"] for one in findings] == ["10", "90"]
    assert set(findings[0]) == {
        *("check", "severity", "text", "culprit", "victim", "evidence", "advice")
    }


@pytest.mark.usefixtures("mine")
def test_run_runs_the_named_checks() -> None:
    add1 = str(ROOT / "elfs" / "add1")
    done = CliRunner().invoke(main, ["run", "--check", "mine", add1])
    assert done.exit_code == 1
    assert "culprit: trisc0 pc 0x00010000 (k.c:3)" in done.output
    done = CliRunner().invoke(main, ["run", "-q", "--json", "--check", "all", add1])
    report = json.loads(done.output)
    assert (done.exit_code, report["exit_code"], len(report["findings"])) == (1, 1, 2)
    assert report["outputs"][0]["equal"] is True


def test_an_unknown_check() -> None:
    with pytest.raises(InputError, match="no check is called 'rases'"):
        checks.named("rases")
    with pytest.raises(InputError, match="no check is named"):
        checks.named(" , ")
    assert checks.named("races,all") == checks.named("all")


def test_names_of_an_earlier_release_name_what_asks_that_now() -> None:
    assert checks.named("uninit,leaks") == checks.named("unwritten")


def test_every_check_is_documented_and_has_its_file() -> None:
    for name, one in checks.every().items():
        assert name == one.name
        assert one.proves and one.misses and one.cost


def test_lines_of_a_kernel_are_those_of_its_list(tmp_path: Path) -> None:
    kernel = [store(0x20000, 1), store(0x20004, 2), store(0x20008, 3)]
    path = folder(tmp_path / "p", {"trisc1": kernel}, outputs={0x20000: [1, 9, 3]})
    (finding,) = [one for one in found(path) if one["check"] == "origin"]
    assert (finding["culprit"]["file"], finding["culprit"]["line"]) == ("trisc1.s", 2)
    assert finding["culprit"]["core"] == "trisc1"


def test_the_checks_are_bounded_by_their_work_and_say_what_they_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched = Launched(load_program(ROOT / "elfs" / "add1"))
    ended = launched.finish()

    def asked() -> tuple[int, list[str]]:
        about = question.context(launched, ended)
        assert checks.findings(about, checks.fitting(about)) == []
        return about.work, about.skipped

    done, left = asked()
    assert left == []
    assert asked() == (done, [])
    monkeypatch.setattr(check, "WORK", done // 2)
    half, left = asked()
    assert half < done
    assert left
