"""`bhemu sweep`: exit codes, files, the summary; `--no-compare` of the commands it names."""

import json
import os
import shutil
from pathlib import Path

import pytest

ELFS = Path(__file__).parents[2] / "elfs"
SWEEP = """sweep = 1
name = "quanta"
program = "add1"
[parameters]
quantum = [7, 1000]
engine = "compiled"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ELFS / "add1", tmp_path / "add1")
    (tmp_path / "SWEEP.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    root = str(ELFS.parent)  # workers import the same bhemu
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    return tmp_path


def test_all_runs_are_ok(bhemu, folder) -> None:
    result = bhemu("sweep", folder, "--workers", 1, "--report", "page.html")
    assert result.exit_code == 0, result.output
    assert "quanta: 2 of 2 runs: 2 ok" in result.stdout
    rows = [json.loads(line) for line in Path("SWEEP-results/runs.jsonl").read_text().splitlines()]
    assert [(row["run"], row["quantum"], row["outcome"]) for row in rows] == [
        (0, 7, "ok"),
        (1, 1000, "ok"),
    ]
    assert "2 runs of add1: 2 ok" in Path("page.html").read_text()
    result = bhemu("sweep", folder)
    assert result.exit_code == 2
    assert "has results already" in result.stderr and "--resume goes on" in result.stderr
    result = bhemu("sweep", folder, "--resume", "--json")
    assert json.loads(result.stdout)["new"] == 0
    assert result.exit_code == 0


def test_what_differs_is_said_with_the_command_that_repeats_it(bhemu, folder) -> None:
    more = SWEEP.replace("[par", 'set = "runtime_args+4=f32:{scalar}"\n[par') + "scalar = 2.0\n"
    (folder / "SWEEP.toml").write_text(more)
    result = bhemu("sweep", folder, "--workers", 1, "-q", "--out", folder / "out")
    assert result.exit_code == 1
    said, command = result.stdout.splitlines()
    assert said.startswith("2 x differs: add1: y: tile (0,0) face 0 row 0 column 0")
    words = command.split()[1:]
    assert bhemu(*words).exit_code == 1
    assert bhemu(*words, "--no-compare").exit_code == 0
    assert "not compared" in bhemu(*words, "--no-compare").stdout
    (folder / "SWEEP.toml").write_text(more.replace("[par", "compare = false\n[par"))
    result = bhemu("sweep", folder, "--workers", 1, "--replace", "--out", folder / "out")
    assert result.exit_code == 0
    (row, *_) = map(json.loads, (folder / "out" / "runs.jsonl").read_text().splitlines())
    assert row["command"].endswith("--no-compare")
    assert row["digest"] and "differing" not in row


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--heat", "quantum,engin"], "no parameter engin"),
        (["--value", "clok"], "did you mean clock?"),
        (["--out", "no/such/folder"], "no/such/folder cannot be made"),
        (["--report", "no/such/page.html"], "--report: no/such/page.html cannot be written"),
        (["--report", "add1/in.npy"], "is a file of the program"),
        (["--resume", "--replace"], "give one"),
    ],
)
def test_bad_arguments_are_named_and_nothing_runs(bhemu, folder, arguments, said) -> None:
    result = bhemu("sweep", folder, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (folder / "SWEEP-results").exists()


def test_a_link_is_no_place_for_results(bhemu, folder, tmp_path) -> None:
    (folder / "SWEEP-results").mkdir()
    (folder / "SWEEP-results" / "runs.jsonl").symlink_to(tmp_path / "elsewhere")
    result = bhemu("sweep", folder, "--replace")
    assert result.exit_code == 2
    assert "is a symbolic link" in result.stderr
