"""`bhemu why`: findings with their culprit, exit codes, JSON."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main
from bhemu.why.findings import Finding

ROOT = Path(package.__file__).parent.parent


def why(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["why", "-q", *arguments])
    return done.exit_code, done.output


def test_nothing_is_wrong() -> None:
    code, shown = why(str(ROOT / "elfs" / "add1"))
    assert code == 0
    assert "nothing is wrong" in shown
    code, shown = why(str(ROOT / "elfs" / "add1"), "--json")
    assert (code, json.loads(shown)) == (0, {"findings": []})


def test_a_wrong_element_and_its_culprit(tmp_path) -> None:
    folder = tmp_path / "add1"
    shutil.copytree(ROOT / "elfs" / "add1", folder)
    expected = np.load(folder / "expected.npy")
    expected[3, 5] += 1
    np.save(folder / "expected.npy", expected)
    code, shown = why(str(folder), "--json")
    assert code == 1
    (finding,) = json.loads(shown)["findings"]
    assert finding["check"] == "output"
    assert finding["victim"] == {"output": "y", "index": [3, 5]}
    culprit = finding["culprit"]
    assert (culprit["core"], culprit["thread"], culprit["file"]) == ("trisc2", 2, "pack.c")
    assert culprit["instant"] > 0
    assert any("UNPACR" in line for line in finding["evidence"])
    code, shown = why(str(folder))
    assert code == 1
    assert shown.startswith("[output] y: 1 of 1024 elements differ")


_KEYS = "tile core thread pc function file line inlined instant word".split()


def test_a_finding_has_every_key_whatever_is_known() -> None:
    found = Finding("repair", "error", "text", {"file": "PROGRAM.toml", "line": 3}, {}, ("a",), "")
    shown = found.as_dict()
    assert list(shown) == "check severity text culprit victim evidence advice".split()
    assert list(shown["culprit"]) == _KEYS
    assert shown["culprit"]["core"] == "" and shown["culprit"]["thread"] is None
    assert (shown["culprit"]["line"], shown["culprit"]["inlined"]) == (3, [])
    where = {"core": "brisc", "symbol": "main+0x24", "decoded": "lw"}
    shown = replace(found, culprit=where).as_dict()
    assert shown["culprit"]["function"] == "main" and {*_KEYS} < {*shown["culprit"]}


@pytest.mark.parametrize(("name", "core"), [("hang_flag", "brisc"), ("hang_cycle", None)])
def test_a_hang(name, core) -> None:
    code, shown = why(str(ROOT / "elfs" / name), "--json")
    assert code == 1
    first, *others = [one for one in json.loads(shown)["findings"] if one["check"] == "hang"]
    assert first["evidence"]
    assert core is None or any(core in line for line in first["evidence"])
    waits = {(one["culprit"]["core"], one["culprit"]["line"]) for one in (first, *others)}
    assert len(waits) == 1 + len(others)  # each wait once
    assert {one["severity"] for one in others} <= {"note"}
    assert bool(others) == (name == "hang_cycle")


def test_a_place_has_exit_code_0_and_bad_input_2() -> None:
    code, shown = why(str(ROOT / "elfs" / "add1"), "sem:1", "--json")
    assert code == 0
    links = json.loads(shown)["links"]
    assert links[0]["where"]["decoded"].startswith("SEM")
    code, shown = why(str(ROOT / "elfs" / "add1"), "nonsense")
    assert code == 2
    assert "no symbol or register nonsense" in shown


@pytest.mark.parametrize("command", [["why"], ["run", "--check", "races,stack"]])
def test_checks_for_which_no_work_was_left_are_told_also_where_little_is(
    monkeypatch, command
) -> None:
    monkeypatch.setattr("bhemu.why.check.WORK", -1)
    arguments = [*command, "-q", "--json", str(ROOT / "elfs" / "add1")]
    done = CliRunner().invoke(main, arguments)
    assert json.loads(done.stdout)["findings"] == []
    assert "not asked, all that checks may do is done: bhemu run --check " in done.stderr
    assert "stack" in done.stderr and "races" in done.stderr
