"""Changes one token of the instruction units at a time and asks whether a test notices.

python scripts/mutate.py --write            200 changes, docs/mutation.md written
python scripts/mutate.py --count 60 --seed 2 --group shared
python scripts/mutate.py --subset --group package --only cli/,noc/ --count 60

A change is an operator, a comparison, a constant one off, or a name taken for another of the same
function.  The unit tests that execute its statement run first, interpreted, in a fork of a warm
process (mutation_tests.py); what they leave alive meets the whole of its module's tests in a
process of its own, and the golden cases on compiled code.  Results are kept in out/ as they come:
a run that was stopped goes on.  Survivors are explained in scripts/mutation_notes.toml.
"""

import argparse
import datetime
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import select_tests
from mutations import ROOT, Mutant, changed, draw, every, targets

from bhemu.sweeps.engine import Lost, calls

sys.path.append(str(ROOT / "tests"))
from selected import Selection

OUT = ROOT / "out" / "mutation"
PAGE = ROOT / "docs" / "mutation.md"
TESTS = ROOT / "docs" / "tests.md"  # ends with the table of measurements of the selection
NOTES = ROOT / "scripts" / "mutation_notes.toml"
STAGE_SECONDS = 900
GOLDEN = ["tests/test_golden.py"]
_UNSEEN = """What such changes do not show

A change of one token is noticed where some test executes the line and knows what should come out.
A text that was misread is not such a change: the tests of the unit and the literal models were
written from the same text, so they agree with the misreading. Two errors of SFPLOADMACRO stayed so
while 95 % of the changes were noticed: a byte that schedules nothing made the sub-unit forget, and
a scheduled SFPSWAP compared the loaded LReg with itself. Both show in code that others wrote
against silicon: `tests/tensix/test_vector_macro_kernels.py` executes the macros of production
kernels in their order and compares with the same kernel without SFPLOADMACRO, and with numpy. With
the first error put back 11 of its tests fail (reciprocals, conversions of uint32), with the second
6 (clamped exponentials); what was learnt is also in the tests of the unit (`test_vector_macro.py`,
`test_vector_macro_swap.py`), of which 49 and 6 fail then.
"""
_CLASS = re.compile(r"^class (\w+)\([^)]*\bopcode=", re.MULTILINE)  # instructions of a module
# Nothing of these is about a unit's code, or it takes minutes interpreted.
APART = {"test_cache", "test_coverage", "test_lean", "test_vector_literal_golden"}


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    """Results by place; the last of a place counts."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {row["key"]: row for row in map(json.loads, text.splitlines())}


def warm(chosen: list[Mutant], results: Path, first: dict[str, list[str]]) -> None:
    """Have the fast stage decide what is not decided yet, compiled code in a process without it."""
    known = _rows(results)
    for interpreted in (True, False):
        left = [
            {"mutant": asdict(mutant), "first": first.get(mutant.place, [])}
            for mutant in chosen
            if mutant.interpreted == interpreted and mutant.place not in known
        ]
        if left:
            job = results.with_suffix(".job.json")
            job.write_text(json.dumps(left))
            script = ROOT / "scripts" / "mutation_tests.py"
            environment = {**os.environ, "NUMBA_DISABLE_JIT": str(int(interpreted))}
            command = [sys.executable, str(script), str(job), str(results), str(select_tests.OUT)]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)


def subset(chosen: list[Mutant], results: Path, seed: int, write: bool) -> float:
    """The share of what all tests notice that `make test` would notice after the same edit."""
    first = {
        mutant.place: sorted(Selection({mutant.path: [(mutant.line, mutant.line)]}).tests)
        for mutant in chosen
    }
    warm(chosen, results, first)
    rows = {m: row for m in chosen if not (row := _rows(results)[m.place])["broken"]}
    missed = [m for m, row in rows.items() if row["killed_by"] and not row["by_first"]]
    whole = sum(bool(row["killed_by"]) for row in rows.values())
    for mutant in missed:
        print(f"missed: {mutant.place} ({rows[mutant]['killed_by']})")
    rooms = Counter(Path(mutant.path).parent.as_posix().removeprefix("bhemu/") for mutant in rows)
    share = 1 - len(missed) / whole
    text = f"| {datetime.date.today()} | {_commit()} | {seed} | {len(rows)}"
    text += f" in {', '.join(f'{room} {n}' for room, n in sorted(rooms.items()))}"
    text += f" | {whole} | {whole - len(missed)} | {100 * share:.1f} % |"
    print(text)
    if write:
        rest = TESTS.read_text(encoding="utf-8").rstrip("\n")
        TESTS.write_text(f"{rest}\n{text}\n", encoding="utf-8")
    return share


def cold(chosen: list[Mutant], results: Path, workers: int) -> None:
    """Put what the fast stage left alive before the slow ones, each in a fresh process."""
    known = _rows(results)
    left = [m for m in chosen if not known[m.place]["killed_by"] and "cold" not in known[m.place]]
    with tempfile.TemporaryDirectory() as scratch:
        items = [(mutant, Path(scratch)) for mutant in left]
        for (mutant, _), found in calls(_cold, items, workers=workers):
            if isinstance(found, Lost):
                raise RuntimeError(f"{mutant.key}: {found}") from found.problem
            row = {**known[mutant.place], "cold": True, "killed_by": found}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{found or 'SURVIVED'}: {mutant.key}", flush=True)


def _cold(item: tuple[Mutant, Path]) -> str:
    """The stage that notices, or nothing, in this worker's tree, which is as before afterwards."""
    mutant, scratch = item
    tree = scratch / str(os.getpid())
    if not tree.exists():
        copy_tree(tree)
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    path.write_text(changed(source, mutant), encoding="utf-8")
    try:
        for stage, interpreted in ((_own(mutant), "1"), (GOLDEN, "0")):
            if stage and not _passes(stage, tree, interpreted):
                return " ".join(Path(test).stem for test in stage)
        return ""
    finally:
        path.write_text(source, encoding="utf-8")


def _own(mutant: Mutant) -> list[str]:
    """Test files named after the module or its unit, or that name one of its instructions."""
    path = Path(mutant.path)
    alone = path.parent.name in ("units", "tensix")
    unit = path.stem if alone else path.parent.name
    modules = [ROOT / path] if alone else (ROOT / path.parent).glob("*.py")
    names = [name for module in modules for name in _CLASS.findall(module.read_text("utf-8"))]
    named = re.compile(rf"\b({'|'.join(names)})\b")
    found = (ROOT / "tests" / "tensix").glob("test_*.py")
    own = [
        test
        for test in sorted(found)
        if test.stem not in APART
        if test.stem.startswith(f"test_{unit}") or (names and named.search(test.read_text("utf-8")))
    ]
    return [str(test.relative_to(ROOT)) for test in own]


def _passes(stage: list[str], tree: Path, interpreted: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *stage]
    environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_DISABLE_JIT": interpreted}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=STAGE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def copy_tree(folder: Path) -> Path:
    """What the tests need, to be changed at will."""
    folder.mkdir()
    for name in ("bhemu", "tests", "elfs", "scripts"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def page(chosen: list[Mutant], results: Path, drawn: str) -> list[str]:
    """What became of the changes, as lines of docs/mutation.md."""
    notes: dict[str, str] = tomllib.loads(NOTES.read_text(encoding="utf-8"))["notes"]
    known = _rows(results)
    alive = [mutant for mutant in chosen if not known[mutant.place]["killed_by"]]
    killed, cold = len(chosen) - len(alive), all("cold" in known[m.place] for m in alive)
    lines = [
        drawn,
        f"**{killed} were noticed by a test ({100 * killed / len(chosen):.1f} %)**,"
        f" {len(alive)} were not"
        f"{'' if cold else ' by the unit tests; the golden cases were not asked'}.",
        "",
        f"Run on {datetime.date.today()} on the sources of commit {_commit()}.",
        "",
        "| where | change | why no test notices |",
        "|---|---|---|",
    ]
    for mutant in alive:
        note = notes.get(mutant.key, "**not explained yet**")
        change = f"`{mutant.before}` -> `{mutant.after}`".replace("|", "\\|")
        lines.append(f"| {mutant.path} | {change} | {note} |")
    return lines


def write(arguments: argparse.Namespace, chosen: list[Mutant], results: Path) -> None:
    """Put the run into docs/mutation.md: in front, or as the section of the chosen modules."""
    before, *sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    kept = {text.partition("\n")[0]: text for text in sections}
    seed, places = arguments.seed, len(every(_paths(arguments)))
    if arguments.only:
        title = f"`{arguments.only}` alone"
        drawn = f"{len(chosen)} changes drawn with seed {seed} from {places} possible ones:"
        kept[title] = "\n".join([title, "", *page(chosen, results, drawn), ""])
    else:
        drawn = (
            f"{len(chosen)} changes of one token in `bhemu/tensix/units/` and `formats.py`,"
            f" drawn with seed {seed} from {places} possible ones:"
        )
        head = [
            "<!-- Written by scripts/mutate.py; do not edit. -->",
            "# Mutation of the units",
            "",
        ]
        head += ["`make mutate` repeats it, and draws anew when a module has changed.", ""]
        before = "\n".join([*head, *page(chosen, results, drawn), ""])
    kept[_UNSEEN.partition("\n")[0]] = _UNSEEN
    text = "\n## ".join([before, *(kept[title] for title in sorted(kept))])
    PAGE.write_text(text, encoding="utf-8")


def summary(chosen: list[Mutant], results: Path) -> float:
    """Print what survived and the share of every module; the share that was killed."""
    known = _rows(results)
    alive = [mutant for mutant in chosen if not known[mutant.place]["killed_by"]]
    total, left = Counter(m.path for m in chosen), Counter(m.path for m in alive)
    for path in sorted(left):
        print(f"{total[path] - left[path]:4} of {total[path]:4} {path}")
    for mutant in alive:
        print(f"  {mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}")
    share = 1 - len(alive) / len(chosen)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed ({100 * share:.1f} %)")
    return share


def _paths(arguments: argparse.Namespace) -> list[Path]:
    """The modules that are changed."""
    wanted = arguments.only.split(",")
    names = {path: path.relative_to(ROOT).as_posix() for path in targets(arguments.group)}
    return [path for path, name in names.items() if any(only in name for only in wanted)]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, help="another one each time where none is given")
    parser.add_argument("--group", choices=["units", "shared", "package"], default="units")
    parser.add_argument("--only", default="", help="modules whose path contains TEXT[,TEXT...]")
    parser.add_argument("--subset", action="store_true", help="what the tests of make test notice")
    parser.add_argument("--warm-only", action="store_true", help="leave the slow stages out")
    parser.add_argument("--write", action="store_true", help="put it into docs/mutation.md")
    parser.add_argument("--workers", type=int, default=1, help="of the slow stages")
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {arguments.seed}", flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    chosen = draw(_paths(arguments), arguments.count, arguments.seed)
    name = f"{arguments.group}{arguments.only}-{arguments.seed}".replace("/", "_")
    if arguments.subset:
        results = OUT / f"subset-{name}.jsonl"
        return int(subset(chosen, results, arguments.seed, arguments.write) < 0.95)
    select_tests.measure(select_tests.test_files([ROOT / "tests"]), "interpreted")
    results = OUT / f"{name}.jsonl"
    if arguments.again:
        rows = [row for row in _rows(results).values() if row["killed_by"]]
        results.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    warm(chosen, results, {})
    if not arguments.warm_only:
        cold(chosen, results, arguments.workers)
    share = summary(chosen, results)
    if arguments.write:
        write(arguments, chosen, results)
    return int(share < 0.95)


if __name__ == "__main__":
    sys.exit(main())
