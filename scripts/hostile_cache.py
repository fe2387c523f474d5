"""Damage to the cache of compiled code for hostile_campaign.py: a run must give what it gave."""

import importlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hostile_files import mutate

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "elfs" / "hang_flag"  # what it executes is compiled quickly; exit code 3
LIMIT = 300  # seconds of a run, which compiles what was damaged
SHARE = 50  # one of so many damaged caches goes through the command line

Damage = Callable[[random.Random, Path, list[Path]], None]


def _mutated(r: random.Random, file: Path, others: list[Path]) -> None:
    file.write_bytes(mutate(r, file.read_bytes()))


def _cut(r: random.Random, file: Path, others: list[Path]) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: r.randrange(len(data) + 1)])


def _one_bit(r: random.Random, file: Path, others: list[Path]) -> None:
    data = bytearray(file.read_bytes())
    if data:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    file.write_bytes(data)


def _of_another(r: random.Random, file: Path, others: list[Path]) -> None:
    file.write_bytes(r.choice(others).read_bytes())


def _link(r: random.Random, file: Path, others: list[Path]) -> None:
    target = file.with_name("elsewhere")
    file.rename(target)
    file.symlink_to(r.choice((target, Path("/dev/zero"), file, Path("/nowhere/at/all"))))


def _folder(r: random.Random, file: Path, others: list[Path]) -> None:
    file.unlink()
    file.mkdir()


def _pipe(r: random.Random, file: Path, others: list[Path]) -> None:
    file.unlink()
    os.mkfifo(file)


def _writable(r: random.Random, file: Path, others: list[Path]) -> None:
    file.chmod(r.choice((0o620, 0o602, 0o666, 0o777, 0o000)))


DAMAGES: tuple[Damage, ...] = (
    *(_mutated, _mutated, _one_bit, _one_bit, _cut),
    *(_of_another, _link, _folder, _pipe, _writable),
)


class RunResult(NamedTuple):
    """How a run ended, and what it wrote."""

    end: str
    out: str = ""
    errors: str = ""


def _run(cache: Path, limit: int | None) -> RunResult:
    """A run of PROGRAM with this cache; its report holds no time."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bhemu", "run", "--json", str(PROGRAM)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=limit,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BHEMU_CACHE_DIR": str(cache)},
        )
    except subprocess.TimeoutExpired:
        return RunResult(f"not ended after {limit} s")
    return RunResult(f"exit code {done.returncode}", done.stdout, done.stderr)


def _damaged(r: random.Random, whole: Path, folder: Path) -> tuple[Path, str]:
    """One file of a copy of a cache, damaged, and how."""
    shutil.copytree(whole, folder)
    files = sorted(folder.iterdir())
    file = r.choice([path for path in files if path.suffix != ".lock"] + files)
    damage = r.choice(DAMAGES)
    damage(r, file, files)
    return file, damage.__name__.strip("_")


def _read(cache: ModuleType, file: Path, whole: Path) -> str:
    """What becomes of reading one file: only what was kept may come back."""
    wanted = cache.read_in(whole, file.name)
    found = cache.read_in(file.parent, file.name)
    if found is None:
        return "refused"
    return "read" if found == wanted else "other bytes read"


def damaged_caches(count: int, folder: Path, seed: int = 0) -> Iterator[tuple[str, str, float]]:
    """Kind, end and seconds of damaged caches; one of SHARE is used by a run of PROGRAM.

    Each run must end and report as the one that filled the cache.
    """
    cache = importlib.import_module("bhemu.jit.cache")
    whole = folder / "whole"
    wanted = _run(whole, None)
    assert wanted.out, wanted.errors
    r = random.Random(f"{seed} {count}" if seed else count)
    for number in range(count):
        case = folder / f"case{number}"
        file, how = _damaged(r, whole, case)
        begin = time.monotonic()
        end = _read(cache, file, whole)
        yield "cached code", end, time.monotonic() - begin
        if number % SHARE == 0:
            begin = time.monotonic()
            ended = _run(case, LIMIT)
            end = f"{wanted.end} as without damage"
            if ended[:2] != wanted[:2] or "Traceback" in ended.errors:
                end = f"undocumented: {how} {file.name}: {ended.end} {ended.errors[-80:]!r}"
            yield "cached code by command", end, time.monotonic() - begin
        shutil.rmtree(case)
