"""Gives bhemu damaged and hostile files by the ten thousand and writes docs/reliability.md.

    python scripts/hostile_campaign.py [--files N] [--programs N] [--interrupts N] [--caches N]
        [--seed N] [--write]

Another seed gives other cases.  Every case must end by a documented exit code, in SECONDS of
processor time and MEMORY of address space. Files are read in worker processes, as the commands
read them; a sample goes through the command line. A case that fails is kept under --keep for a
look.
"""

import argparse
import importlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hostile_cache import damaged_caches
from hostile_files import Kind, kinds, make_seeds

from bhemu.sweeps.engine import Lost, calls

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "reliability.md"
MEMORY = 2 << 30
SECONDS = 5
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7, 130}
CHUNK = 500  # cases of one call
CLI_SHARE = 500  # one of so many cases goes through the command line
BAD = "not documented"
SEEDS = 10**6  # more than the cases of one seed
BATCH = 500  # hostile programs of one call
PART_SECONDS = 600  # of a call
RENEWED = 8  # calls of a process
Part = tuple[Callable[[Any], list["Outcome"]], Any]


class Outcome(NamedTuple):
    """How one case ended: "read", "refused", or what went wrong."""

    kind: str
    end: str
    seconds: float


# Cases in worker processes


def bound() -> None:
    """No process takes more than MEMORY of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def too_long(*_: object) -> None:
    """The time of a case is over."""
    raise TimeoutError


def one(kind: Kind, path: Path) -> Outcome:
    """Read one file: "read", "refused" by InputError or NotModelled, else what came instead."""
    errors = importlib.import_module("bhemu.errors")
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        kind.read(path)
        end = "read"
    except (errors.InputError, errors.NotModelled):
        end = "refused"
    except TimeoutError:
        end = f"longer than {SECONDS} s"
    except Exception as problem:
        end = f"{type(problem).__name__}: {problem}"[:120]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Outcome(kind.name, end, time.process_time() - begin)


def chunk(job: tuple[int, int, str, str]) -> list[Outcome]:
    """The cases of one number, in a folder of their own."""
    number, count, seeds, keep = job
    bound()
    signal.signal(signal.SIGVTALRM, too_long)
    r = random.Random(number)
    choices = kinds(Path(seeds))
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(count):
            kind = r.choices(choices, [k.weight for k in choices])[0]
            seed = r.choice(kind.seeds)
            data = kind.damage(r, seed.read_bytes())
            alone = folder / kind.file
            path = _beside(folder, seed) if seed.name == "PROGRAM.toml" else alone
            path.write_bytes(data)
            outcome = one(kind, path)
            outcomes.append(outcome)
            if outcome.end not in ("read", "refused"):
                _keep(Path(keep), f"{number}-{len(outcomes)}-{kind.file}", data)
            if r.randrange(CLI_SHARE) == 0 and kind.command:
                outcomes.append(by_command(kind, path, Path(keep)))
    return outcomes


def _beside(folder: Path, program: Path) -> Path:
    """The place of a program file in a copy of its folder."""
    home = folder / program.parent.name
    if not home.exists():
        shutil.copytree(program.parent, home)
    return home / "PROGRAM.toml"


def _keep(folder: Path, name: str, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def by_command(kind: Kind, path: Path, keep: Path) -> Outcome:
    """The same file through the command line: exit code, no traceback."""
    core = kind.command[-1] == "--core"
    words = [*kind.command, f"trisc0={path}" if core else str(path)]
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    end = f"exit code {done.returncode}"
    if done.returncode not in DOCUMENTED or "Traceback" in done.stderr:
        end = f"undocumented: {end} {done.stderr[-80:]!r}"
        _keep(keep, f"command-{path.name}", path.read_bytes())
    return Outcome(f"{kind.name} by command", end, time.monotonic() - begin)


# Hostile programs and interrupts


def programs(job: tuple[int, int]) -> list[Outcome]:
    """Random words on five cores, RISC-V and Tensix words (`.ttinsn`) among them."""
    first, count = job
    bound()
    sys.path[:0] = [str(ROOT / "tests" / "fuzz"), str(ROOT / "tests")]
    riscv = importlib.import_module("test_riscv")
    outcomes = []
    for seed in range(first, first + count):
        begin = time.process_time()
        try:
            riscv.execute(seed)
            end = "named errors only"
        except Exception as problem:
            end = f"{type(problem).__name__}: {problem}"[:120]
        outcomes.append(Outcome("programs of random words", end, time.process_time() - begin))
    return outcomes


def interrupts(count: int, seed: int) -> Iterator[Outcome]:
    """Ctrl-C at random times, from the first import to the middle of a run."""
    # In the background a shell lets its commands ignore Ctrl-C, and their commands inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    r = random.Random(seed * SEEDS + count)
    start = "from bhemu.__main__ import main; print('ready', flush=True); main()"
    words = ["run", "--livelock", "0", str(ROOT / "elfs" / "hang_flag")]
    for _ in range(count):
        begin = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", start, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(r.uniform(0.005, 2.5))
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=60)[1]
            end = f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            said, end = process.communicate()[1], "not ended"
        if process.returncode not in DOCUMENTED or "Traceback" in said:
            end = f"undocumented: {end} {said[-80:]!r}"
        yield Outcome("Ctrl-C", end, time.monotonic() - begin)


def caches(count: int, seed: int) -> Iterator[Outcome]:
    """A damaged cache of compiled code each: what was damaged is compiled again."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, end, seconds in damaged_caches(count, Path(folder), seed):
            yield Outcome(kind, end, seconds)
            print(f"\r{kind}: {end:40}", end="", file=sys.stderr, flush=True)


# Report


def part(job: Part) -> list[Outcome]:
    """In a worker: the outcomes of some cases."""
    work, about = job
    return work(about)


def campaign(
    files: int, many: int, stops: int, damaged: int, keep: Path, workers: int, seed: int = 0
) -> list[Outcome]:
    """All outcomes; a worker process that dies is an outcome of its own."""
    outcomes: list[Outcome] = []
    first = seed * SEEDS
    with tempfile.TemporaryDirectory() as seeds:
        make_seeds(Path(seeds))
        jobs: list[Part] = [
            (chunk, (first + n, min(CHUNK, files - n), seeds, str(keep)))
            for n in range(0, files, CHUNK)
        ]
        jobs += [(programs, (first + n, min(BATCH, many - n))) for n in range(0, many, BATCH)]
        for number, (_, found) in enumerate(
            calls(part, jobs, workers=workers, seconds=PART_SECONDS, renew=RENEWED), start=1
        ):
            if isinstance(found, Lost):  # a worker that died, or could not begin
                outcomes.append(Outcome("worker processes", str(found)[:120], 0))
            else:
                outcomes += found
            print(f"\r{number} of {len(jobs)} parts", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    outcomes += interrupts(stops, seed)
    if damaged:
        outcomes += caches(damaged, seed)
    return outcomes


def good(outcome: Outcome) -> bool:
    """Whether the case ended as documented."""
    ends = ("read", "refused", "named errors only")
    return outcome.end in ends or outcome.end.startswith("exit code")


def rows(outcomes: list[Outcome]) -> dict[str, str]:
    """A line of the table for every kind of cases."""
    found = {}
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        ends = Counter(o.end if good(o) else BAD for o in mine)
        text = ", ".join(f"{end} {count}" for end, count in sorted(ends.items()))
        slowest = max(o.seconds for o in mine)
        found[kind] = f"| {kind} | {len(mine)} | {text} | {slowest:.1f} s |"
    return found


def page(outcomes: list[Outcome], before: str) -> str:
    """docs/reliability.md; kinds that have not run keep their line of the page `before`."""
    old = {line.split("|")[1].strip(): line for line in before.splitlines() if line[:1] == "|"}
    lines = {kind: line for kind, line in old.items() if kind not in ("cases", "---")}
    lines |= rows(outcomes)
    total = sum(int(line.split("|")[2]) for line in lines.values())
    bad = sum(int(n) for line in lines.values() for n in re.findall(rf"{BAD} (\d+)", line))
    text = [
        "# Reliability",
        "",
        "Written by `make reliability`, a part of `make test-all`: damaged files in processes of",
        f"{MEMORY >> 30} GiB of address space and {SECONDS} s of processor time a file, programs",
        "of random words, interrupts, and runs with a damaged cache of compiled code. A case is",
        "good when it is read, refused as bad input, or ends by a documented exit code without a",
        "traceback ([SECURITY.md](../SECURITY.md)); with a damaged cache a run ends as without.",
        "",
        "| cases | number | ends | slowest |",
        "|---|---|---|---|",
        *lines.values(),
        "",
        f"{total} cases, {bad} of them bad.",
        *(f"- {o.kind}: {o.end}" for o in outcomes if not good(o)),
        "",
        "Not counted here: less memory than the 500 MB that a tile takes",
        "(`tests/cli/test_hostile_input.py`).",
    ]
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--interrupts", type=int, default=50)
    parser.add_argument("--caches", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="another one gives other cases")
    parser.add_argument("--keep", type=Path, default=ROOT / "out" / "hostile")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    chosen = parser.parse_args()
    outcomes = campaign(
        *(chosen.files, chosen.programs, chosen.interrupts, chosen.caches),
        *(chosen.keep, chosen.workers, chosen.seed),
    )
    text = page(outcomes, REPORT.read_text(encoding="utf-8"))
    if chosen.write:
        REPORT.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(good(outcome) for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
