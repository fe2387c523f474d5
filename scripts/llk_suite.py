"""Runs a seeded sample of tt-llk's Blackhole tests on bhemu and tabulates the outcomes by file.

python scripts/llk_suite.py run CHECKOUT RESULTS [FILE...]   append records to RESULTS/<file>.jsonl
python scripts/llk_suite.py table CHECKOUT RESULTS [--write] the table; --write: into docs/llk.md
CHECKOUT is one of tt-llk or of tt-metal.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "llk.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
COLUMNS = ("pass", "refused", "mismatch", "assert", "timeout", "compile", "error", "skip")


@dataclass
class Result:
    """What became of one test file."""

    file: str
    total: int | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    @property
    def ran(self) -> int:
        """Tests that were not skipped."""
        return sum(n for name, n in self.outcomes.items() if name != "skip")


def python_tests(checkout: Path) -> Path:
    """The tests' folder in a checkout of tt-llk or of tt-metal, which has it as tt_metal/tt-llk."""
    inside = checkout / "tt_metal" / "tt-llk"
    return (inside if inside.is_dir() else checkout) / "tests" / "python_tests"


def run(options: argparse.Namespace) -> None:
    """Run each file in a pytest of its own."""
    tests = python_tests(options.checkout)
    files = options.files or sorted(path.name for path in tests.glob("test_*.py"))
    stand_in = ROOT / "bhemu" / "llk" / "stand_in"
    paths = (stand_in, ROOT, ROOT / "scripts")
    environment = dict(os.environ, PYTHONPATH=":".join(map(str, paths)), CHIP_ARCH="blackhole")
    options.results.mkdir(parents=True, exist_ok=True)
    for file in files:
        record = (options.results / file).with_suffix(".jsonl").resolve()
        record.unlink(missing_ok=True)
        words = f"--sample {options.sample} --budget {options.budget} --order {options.seed}"
        command = [options.python, "-m", "pytest", "-p", "llk_sample", "-p", "no:cacheprovider"]
        command += ["-q", *words.split(), "--record", str(record), file]
        log = record.with_suffix(".log")
        with log.open("w") as out:
            try:
                limit = options.budget + options.collection
                arguments: dict[str, Any] = {"stdout": out, "stderr": subprocess.STDOUT}
                subprocess.run(command, cwd=tests, env=environment, timeout=limit, **arguments)
            except subprocess.TimeoutExpired:
                out.write("\ncollection or one test took too long\n")
        print(row(read(record)), flush=True)


def read(path: Path) -> Result:
    """Count one file's records; a test that ran twice counts as it ended last."""
    result = Result(path.with_suffix(".py").name)
    last: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        if "total" in record:
            result.total = record["total"]
        else:
            last[record["test"]] = record
    for record in last.values():
        result.outcomes[record["outcome"]] += 1
        if record["outcome"] == "refused":
            result.rules[record["rule"]] += 1
    return result


def row(result: Result) -> str:
    """One line of the table."""
    rules = ", ".join(f"{rule} {n}" for rule, n in result.rules.most_common())
    total = "not collected" if result.total is None else f"{result.total:,}"
    numbers = [str(result.outcomes[name] or "") for name in COLUMNS]
    cells = [result.file, total, str(result.ran), *numbers, rules]
    return "| " + " | ".join(cells) + " |"


def table(results: list[Result]) -> str:
    """The whole table, with its sums."""
    heads = ["file", "tests", "ran", *COLUMNS, "rules of the refusals"]
    all_files = Result("all", sum(result.total or 0 for result in results))
    for result in results:
        all_files.outcomes.update(result.outcomes)
        all_files.rules.update(result.rules)
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 2) + "|---|"]
    return "\n".join([*lines, *map(row, results), row(all_files)])


def tabulate(options: argparse.Namespace) -> None:
    """Print the table, or put it between the marks in docs/llk.md."""
    results = [read(path) for path in sorted(options.results.glob("test_*.jsonl"))]
    text = table(results)
    if not options.write:
        print(text)
        return
    page = DOC.read_text()
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    DOC.write_text(re.sub(pattern, lambda _: f"{BEGIN}\n{text}\n{END}", page, flags=re.S))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, action in (("run", run), ("table", tabulate)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("checkout", type=Path)
        command.add_argument("results", type=Path)
    runs, tables = (commands.choices[name] for name in ("run", "table"))
    runs.add_argument("files", nargs="*")
    runs.add_argument("--sample", type=int, default=20, help="tests per file; skips are extra")
    runs.add_argument("--budget", type=int, default=120, help="seconds per file")
    runs.add_argument("--collection", type=int, default=300, help="seconds to collect a file")
    runs.add_argument("--seed", type=int, default=1, help="of the order within a file")
    runs.add_argument("--python", default=sys.executable, help="with tt-llk's requirements")
    tables.add_argument("--write", action="store_true", help="into docs/llk.md")
    options = parser.parse_args()
    options.action(options)


if __name__ == "__main__":
    main()
