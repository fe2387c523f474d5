"""Runs a seeded sample of tt-llk's Blackhole tests on bhemu and tabulates the outcomes by file.

python scripts/llk_suite.py run CHECKOUT RESULTS [FILE...]   write records to RESULTS/<file>.jsonl
python scripts/llk_suite.py table CHECKOUT RESULTS [--write NAME]  the table; or into docs/llk.md
python scripts/llk_suite.py orders CHECKOUT RESULTS      some of these tests again, in other orders
CHECKOUT is one of tt-llk or of tt-metal.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "llk.md"
COLUMNS = ("pass", "refused", "mismatch", "assert", "timeout", "compile", "error", "host", "skip")


@dataclass
class Result:
    """What became of one test file."""

    file: str
    total: int | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    @property
    def ran(self) -> int:
        """Tests that asked for a device."""
        return sum(n for name, n in self.outcomes.items() if name not in ("host", "skip"))


def python_tests(checkout: Path) -> Path:
    """The tests' folder in a checkout of tt-llk or of tt-metal, which has it as tt_metal/tt-llk."""
    inside = checkout / "tt_metal" / "tt-llk"
    return (inside if inside.is_dir() else checkout) / "tests" / "python_tests"


def session(options: argparse.Namespace, folder: Path, files: list[str], *more: str) -> None:
    """Run files in one pytest; its records go to `folder`, what it prints to a file there."""
    stand_in = ROOT / "bhemu" / "llk" / "stand_in"
    paths = (stand_in, ROOT, ROOT / "scripts")
    environment = dict(os.environ, PYTHONPATH=":".join(map(str, paths)), CHIP_ARCH="blackhole")
    command = [options.python, "-m", "pytest", "-p", "llk_sample", "-p", "no:cacheprovider", "-q"]
    command += ["--record", str(folder.resolve()), *more, *files]
    limit = options.budget * len(files) + options.collection
    with (folder / Path(files[0]).with_suffix(".log")).open("w") as out:
        arguments: dict[str, Any] = {"stdout": out, "stderr": subprocess.STDOUT}
        tests = python_tests(options.checkout)
        try:
            subprocess.run(command, cwd=tests, env=environment, timeout=limit, **arguments)
        except subprocess.TimeoutExpired:
            out.write("\ncollection or one test took too long\n")


def run(options: argparse.Namespace) -> None:
    """Run a sample of each file, several files in one pytest."""
    tests = python_tests(options.checkout)
    files = options.files or sorted(path.name for path in tests.glob("test_*.py"))
    options.results.mkdir(parents=True, exist_ok=True)
    more = ["--sample", options.sample, "--budget", options.budget, "--order", options.seed]
    for first in range(0, len(files), options.together):
        group = files[first : first + options.together]
        records = [(options.results / file).with_suffix(".jsonl") for file in group]
        for record in records:
            record.unlink(missing_ok=True)
        session(options, options.results, group, *map(str, more))
        for record in records:
            print(row(read(record)), flush=True)


def again(options: argparse.Namespace) -> None:
    """Run a seeded choice of the tests that ran, in several orders, each on one tile.

    Each must end as it did, and read in every order what it read in the first.
    """
    ended: dict[str, dict[str, Any]] = {}
    for path in sorted(options.results.glob("test_*.jsonl")):
        ended |= {record["test"]: record for record in last_records(path).values()}
    able = sorted(name for name, record in ended.items() if "digest" in record)
    names = random.Random(options.seed).sample(able, min(options.sample, len(able)))
    files = sorted({name.partition("::")[0] for name in names})
    first: dict[str, Any] = {}
    for order in range(options.orders):
        folder = options.results / f"order{order}"
        folder.mkdir(exist_ok=True)
        for old in folder.glob("test_*.jsonl"):
            old.unlink()
        chosen = (folder / "chosen.txt").resolve()
        chosen.write_text("\n".join(names) + "\n")
        session(options, folder, files, "--chosen", str(chosen), "--order", str(order))
        found: dict[str, Any] = {}
        for path in folder.glob("test_*.jsonl"):
            found |= last_records(path)
        first = first or found
        same = [n for n in names if n in found and _same(found[n], ended[n], first.get(n, {}))]
        print(f"order {order}: {len(same)} of {len(names)} tests ended and read the same")
        for name in sorted(set(names) - set(same)):
            print(" ", name, found.get(name, {}).get("outcome", "did not run"))


def _same(found: dict[str, Any], ended: dict[str, Any], first: dict[str, Any]) -> bool:
    """Whether a test ended as before and read what it read in the first order."""
    digests = found.get("digest"), first.get("digest")
    return bool(found["outcome"] == ended["outcome"] and digests[0] == digests[1])


def last_records(path: Path) -> dict[str, dict[str, Any]]:
    """How each test of a file ended last, by its name."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    return {record["test"]: record for record in records if "test" in record}


def read(path: Path) -> Result:
    """Count one file's records; a test that ran twice counts as it ended last."""
    result = Result(path.with_suffix(".py").name)
    for line in path.read_text().splitlines() if path.exists() else []:
        result.total = json.loads(line).get("total", result.total)
    for record in last_records(path).values():
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
    """Print the table, or put it between its marks in docs/llk.md; files without a run are out."""
    results = [read(path) for path in sorted(options.results.glob("test_*.jsonl"))]
    text = table([result for result in results if result.ran])
    if not options.write:
        print(text)
        return
    page = DOC.read_text()
    begin, end = (f"<!-- {options.write}: {part} -->" for part in ("begin", "end"))
    if begin not in page:
        sys.exit(f"{DOC} has no line {begin}")
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    DOC.write_text(re.sub(pattern, lambda _: f"{begin}\n{text}\n{end}", page, flags=re.S))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, action in (("run", run), ("orders", again), ("table", tabulate)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("checkout", type=Path)
        command.add_argument("results", type=Path)
    runs, orders, tables = (commands.choices[name] for name in ("run", "orders", "table"))
    for command, sample, what in (
        (runs, 20, "tests per file; skips are extra"),
        (orders, 60, "tests"),
    ):
        command.add_argument("--sample", type=int, default=sample, help=what)
        command.add_argument("--budget", type=int, default=120, help="seconds per file")
        command.add_argument(
            "--collection", type=int, default=300, help="seconds of a pytest's own"
        )
        command.add_argument("--seed", type=int, default=1, help="of the choice, or of its order")
        command.add_argument("--python", default=sys.executable, help="with tt-llk's requirements")
    runs.add_argument("files", nargs="*")
    runs.add_argument("--together", type=int, default=1, help="files in one pytest, on one tile")
    orders.add_argument("--orders", type=int, default=3)
    tables.add_argument("--write", metavar="NAME", help="between the marks NAME of docs/llk.md")
    options = parser.parse_args()
    options.action(options)


if __name__ == "__main__":
    main()
