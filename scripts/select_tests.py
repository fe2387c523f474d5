"""Measures which tests execute what, and writes the choice of `make test`: tests/selection.json.xz.

python scripts/select_tests.py                     what was not measured as it is now, then write
python scripts/select_tests.py tests/cli tests/noc    of these folders or files only
python scripts/select_tests.py --write-only

Measured is each test file once compiled, for the times and for code that is not compiled, and those
of folders about compiled code once more interpreted (test_cover.py).  Results are kept in
out/selection: a run that was stopped goes on.  What the committed selection knows of other test
files stays.

Of each module those tests are chosen that execute each of its statements three times, in three test
functions if there are as many, the cheapest first (greedy cover), and then twelve others.
"""

import argparse
import heapq
import json
import lzma
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import test_cover

from bhemu.program.schema import ENGINES

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "selection"
STORE = ROOT / "tests" / "selection.json.xz"
INTERPRETED = ("tensix", "devices", "noc", "riscv", "random_programs")
# Nothing of these is about a unit's code, or they take minutes interpreted.
APART = (
    "cache",
    "coverage",
    "lean",
    "vector_literal_golden",
    "golden_noc",
    "arch_tests",
    "riscv_tests",
)
TIMES = 3  # tests of a statement from different test functions
MORE = 12  # further ones
UNKNOWN = 5.0  # seconds of a test file that was never measured
LEAST = 0.01  # seconds that any test costs
MOST = 10.0  # seconds of a test that is chosen
BOTH = "tests/riscv/"  # here tests of every engine are chosen, elsewhere those of the first
SECONDS = 240.0  # of the choice for the whole package
_OTHER = re.compile(rf"\b({'|'.join((*ENGINES[1:], 'translated'))})\b")

Chosen = list[tuple[int, list[str]]]


def measure(files: list[str], kind: str) -> None:
    """Have a process of its own measure what is not known yet (test_cover.py)."""
    if kind == "interpreted":
        files = [
            file
            for file in files
            if Path(file).parts[1] in INTERPRETED
            and Path(file).stem.removeprefix("test_") not in APART
        ]
    command = [sys.executable, "scripts/test_cover.py", kind, str(OUT), *files]
    if subprocess.run(command, cwd=ROOT).returncode > 1:  # 1: a test failed, as interpreted some do
        sys.exit("stopped; what is measured is kept")


def test_files(chosen: Iterable[Path]) -> list[str]:
    """The test files of files and folders."""
    found = {
        path for one in chosen for path in ([one] if one.is_file() else one.rglob("test_*.py"))
    }
    return sorted(path.resolve().relative_to(ROOT).as_posix() for path in found)


def cover(tests: dict[int, set[str]], cost: list[float], group: list[str], times: int) -> Chosen:
    """Tests by their number, cheapest per statement first, each with the statements it is for."""
    groups: dict[str, set[str]] = defaultdict(set)
    for number, places in tests.items():
        for place in places:
            groups[place].add(group[number])
    need = dict.fromkeys(groups, times)
    used: set[tuple[str, str]] = set()

    def gain(number: int) -> list[str]:
        return [
            place
            for place in tests[number]
            if need[place] and (len(groups[place]) < times or (place, group[number]) not in used)
        ]

    chosen = []
    heap = [(-len(places) / cost[n], n) for n, places in tests.items()]
    heapq.heapify(heap)
    while heap:
        _, number = heapq.heappop(heap)
        places = gain(number)
        if not places:
            continue
        value = -len(places) / cost[number]
        if heap and value > heap[0][0]:
            heapq.heappush(heap, (value, number))
            continue
        for place in places:
            need[place] -= 1
            used.add((place, group[number]))
        chosen.append((number, places))
    return chosen


def choose() -> dict[str, Any]:
    """The selection of what is measured."""
    cost: dict[str, float] = {}
    executed: dict[str, set[str]] = defaultdict(set)
    for interpreted in (False, True):
        for test, seconds, places in test_cover.rows(OUT, interpreted):
            cost.setdefault(test, seconds)  # interpreted, where there is nothing better
            executed[test].update(places)
    tests = [
        test
        for test, seconds in cost.items()
        if seconds <= MOST and (test.startswith(BOTH) or not _other(test))
    ]
    costs = [max(cost[test], LEAST) for test in tests]
    group = [test.partition("[")[0] for test in tests]
    modules: dict[str, dict[int, set[str]]] = defaultdict(dict)
    for number, test in enumerate(tests):
        for place in executed[test]:
            modules[place.partition(":")[0]].setdefault(number, set()).add(place)
    found: dict[str, dict[str, list[str]]] = {}
    for module in sorted(modules):
        own: dict[str, list[str]] = {}
        chosen = cover(modules[module], costs, group, TIMES)
        first = {number for number, _ in chosen}
        others = {n: places for n, places in modules[module].items() if n not in first}
        for number, places in [*chosen, *cover(others, costs, [*tests], MORE)]:
            for function in {place.partition(":")[2].rpartition("+")[0] for place in places}:
                own.setdefault(function, []).append(tests[number])
        found[module] = own
    spent, default = 0.0, []
    whole = {number: executed[test] for number, test in enumerate(tests)}
    for number, _ in cover(whole, costs, group, 1):
        if spent + costs[number] <= SECONDS:
            spent += costs[number]
            default.append(tests[number])
    files: dict[str, float] = defaultdict(float)
    for test, seconds in cost.items():
        files[test.partition("::")[0]] += seconds
    plain = test_cover.plain(OUT)
    return {
        "modules": found,
        "default": default,
        "measured": files,
        "seconds": cost,
        "plain": plain,
    }


def _other(test: str) -> bool:
    return bool(_OTHER.search(test.partition("[")[2]))


def merged(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The new selection, with what the old one knows of test files that were not measured."""
    measured, names, seconds = new["measured"], old["tests"], dict(new["seconds"])

    def kept(numbers: Iterable[int]) -> list[str]:
        others = ((n, names[n].partition("::")[0]) for n in numbers)
        chosen = [n for n, file in others if file not in measured and (ROOT / file).exists()]
        seconds.update({names[n]: old["seconds"][n] for n in chosen})
        return [names[n] for n in chosen]

    modules = new["modules"]
    for module, functions in old["modules"].items():
        for function, numbers in functions.items():
            if left := kept(numbers):
                modules.setdefault(module, {}).setdefault(function, []).extend(left)
    default = new["default"] + kept(old["default"])
    files = {file: v for file, v in old["test_files"].items() if (ROOT / file).exists()}
    files |= measured
    plain = dict.fromkeys(old.get("plain", ()), True) | new["plain"]
    return {
        "modules": modules,
        "default": default,
        "measured": files,
        "seconds": seconds,
        "plain": plain,
    }


def write(found: dict[str, Any]) -> None:
    """Tests as numbers, packed."""
    lists = [tests for own in found["modules"].values() for tests in own.values()]
    names = sorted({test for tests in [*lists, found["default"]] for test in tests})
    number = {name: i for i, name in enumerate(names)}
    store = {
        "tests": names,
        "seconds": [round(max(found["seconds"][name], LEAST), 2) for name in names],
        "modules": {
            module: {function: [number[test] for test in tests] for function, tests in own.items()}
            for module, own in found["modules"].items()
        },
        "default": [number[test] for test in found["default"]],
        "test_files": {
            name: round(found["measured"].get(name, UNKNOWN), 1)
            for name in test_files([ROOT / "tests"])
        },
        "plain": sorted(name for name, is_plain in found["plain"].items() if is_plain),
    }
    text = json.dumps(store, separators=(",", ":"), sort_keys=True)
    STORE.write_bytes(lzma.compress(text.encode(), preset=9))
    chosen = sum(store["seconds"][i] for i in store["default"])
    print(f"{len(names)} tests for {len(store['modules'])} modules, {STORE.stat().st_size} bytes")
    if left := len(store["test_files"].keys() - found["measured"].keys()):
        print(f"{left} test files were never measured")
    print(f"for the whole package {len(store['default'])} tests of {chosen:.0f} s")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help="folders or files, all of tests/ otherwise")
    parser.add_argument("--write-only", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    chosen = [Path(name) for name in arguments.tests or ["tests"]]
    paths = {
        path for one in chosen for path in ([one] if one.is_file() else one.rglob("test_*.py"))
    }
    OUT.mkdir(parents=True, exist_ok=True)
    if not arguments.write_only:
        files = sorted(str(path) for path in paths)
        for kind in ("compiled", "again", "interpreted"):
            measure(files, kind)
    found = choose()
    if STORE.exists():
        found = merged(found, json.loads(lzma.decompress(STORE.read_bytes())))
    write(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
