"""Gives bhemu damaged and hostile files by the ten thousand and writes docs/reliability.md.

    python scripts/hostile_campaign.py [--files N] [--programs N] [--interrupts N] [--write]

Every case must end by a documented exit code, in SECONDS of processor time and MEMORY of address
space. Files are read in worker processes, as the commands read them; a sample goes through the
command line. A case that fails is kept under --keep for a look.
"""

import argparse
import contextlib
import importlib
import io
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "reliability.md"
MEMORY = 2 << 30
SECONDS = 5
DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 7, 130}
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
PIECES = (b"\xff" * 4, b"\x80" * 12, b"(((((((", b"[[[[", b"a.a.a.a.")
CHUNK = 500  # cases of one worker process
CLI_SHARE = 500  # one of so many cases goes through the command line
BATCH = 500  # hostile programs of one process


class Outcome(NamedTuple):
    """How one case ended: "read", "refused", or what went wrong."""

    kind: str
    end: str
    seconds: float


# Damage


def mutate(r: random.Random, data: bytes) -> bytes:
    """One to six changes: bytes, words, runs, cuts, copies; more often near the head."""
    out = bytearray(data)
    for _ in range(r.randint(1, 6)):
        at = r.randrange(min(len(out), 0x400) if r.random() < 0.5 else len(out)) if out else 0
        change = r.randrange(8)
        if change < 3:
            size = r.choice((1, 2, 4, 8))
            out[at : at + size] = (r.choice(NUMBERS) & (1 << 8 * size) - 1).to_bytes(size, "little")
        elif change == 3 and out:
            out[at % len(out)] ^= 1 << r.randrange(8)
        elif change == 4:
            out[at : at + r.randrange(64)] = r.randbytes(r.randrange(64))
        elif change == 5:
            source = r.randrange(len(out) + 1)
            out[at:at] = out[source : source + r.randrange(256)]
        elif change == 6 and r.random() < 0.3:
            del out[at:]
        else:
            out[at : at + 4] = r.choice(
                (b"\xff" * 4, b"\x80" * 12, b"(((((((", b"[[[[", b"a.a.a.a.")
            )
    return bytes(out)


def archive(r: random.Random, data: bytes) -> bytes:
    """An .npz whose members or whose own bytes are damaged."""
    if r.random() < 0.4:
        return mutate(r, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", 8) as new:
        victim = r.choice(old.namelist())
        for name in old.namelist():
            held = old.read(name)
            if name == victim:
                held = mutate(r, held[:4096]) + held[4096:]
            new.writestr(name, held, compress_type=r.choice((0, 8)), compresslevel=1)
    return out.getvalue()


# Kinds of files: how one is made, and what a command does with it


def read_elf(path: Path) -> None:
    """Placement for every core and mode, names and source lines of where code may be."""
    loader = importlib.import_module("bhemu.program.loader")
    image = loader.read_elf(path)
    for core in ("brisc", "trisc1"):
        for local in ("direct", "lma", "loader_init"):
            _tolerate(lambda c=core, how=local: loader.place(image, local=how, core=c))
    _tolerate(lambda: image.symbols.names)
    for segment in image.segments[:8]:
        _tolerate(lambda s=segment: (image.symbols.lookup(s.vaddr), image.symbols.line(s.vaddr)))


def read_state(path: Path) -> None:
    """Everything that `bhemu dump` shows."""
    savefile, dump = (importlib.import_module(f"bhemu.debug.{n}") for n in ("savefile", "dump"))
    view = importlib.import_module("bhemu.debug.view").View("", False)
    state = savefile.load_state(path)
    list(dump.text(state, dump.select([]), view))


def read_image(path: Path) -> None:
    """A picture of L1."""
    importlib.import_module("bhemu.program.datafiles").read_image(path)


def read_toml(path: Path) -> None:
    """A program file with its arrays."""
    schema = importlib.import_module("bhemu.program.schema")
    program = schema.load_program(path)
    for source in program.inputs:
        source.data()
    for output in program.outputs:
        output.check(bytes(output.size))


def read_array(path: Path) -> None:
    """An array by itself."""
    importlib.import_module("bhemu.program.datafiles").read_array(path, "bf16", "array")


def _tolerate(action: Callable[[], Any]) -> None:
    errors = importlib.import_module("bhemu.errors")
    with contextlib.suppress(errors.InputError):
        action()


class Kind(NamedTuple):
    """One kind of file: its name in a folder, how it is damaged and read, its share of cases."""

    name: str
    file: str
    seeds: list[Path]
    damage: Callable[[random.Random, bytes], bytes]
    read: Callable[[Path], None]
    command: tuple[str, ...]
    weight: int


def kinds(seeds: Path) -> list[Kind]:
    """Every kind with the files it starts from."""
    elfs, tomls, arrays = (
        sorted((ROOT / "elfs").glob(f"*/{name}")) for name in ("*.elf", "PROGRAM.toml", "*.npy")
    )
    run = ("run", "-q", "--limit", "20000", "--timeout", "3")
    elf = (*run, "--core")
    return [
        Kind("ELFs", "k.elf", elfs, mutate, read_elf, elf, 45),
        Kind("program files", "PROGRAM.toml", tomls, mutate, read_toml, ("check",), 35),
        Kind("arrays", "a.npy", arrays, mutate, read_array, (), 15),
        Kind("images of L1", "l1.npz", [seeds / "image.npz"], archive, read_image, (), 3),
        Kind("saved states", "s.npz", [seeds / "state.npz"], archive, read_state, ("dump",), 2),
    ]


def make_seeds(folder: Path) -> None:
    """A saved state and a picture of L1 to damage."""
    import numpy as np

    from bhemu.debug.savefile import save_state
    from bhemu.tile import Tile

    save_state(Tile(), folder / "state.npz")
    piece = np.arange(256, dtype=np.uint8)
    np.savez_compressed(
        folder / "image.npz",
        in_addr=np.array([0, 0x1000]),
        in_len=np.array([100, 156]),
        in_data=piece,
    )


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
    """Random RISC-V words on five cores and random Tensix words on three threads."""
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


def interrupts(count: int) -> Iterator[Outcome]:
    """Ctrl-C at random times, from the first import to the middle of a run."""
    r = random.Random(count)
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
        said = process.communicate(timeout=60)[1]
        end = f"exit code {process.returncode}"
        if process.returncode not in DOCUMENTED or "Traceback" in said:
            end = f"undocumented: {end} {said[-80:]!r}"
        yield Outcome("Ctrl-C", end, time.monotonic() - begin)


# Report


def campaign(files: int, many: int, stops: int, keep: Path, workers: int) -> list[Outcome]:
    """All outcomes; a worker process that dies is an outcome of its own."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as seeds:
        make_seeds(Path(seeds))
        jobs: list[tuple[Callable[[Any], list[Outcome]], Any]] = [
            (chunk, (n, min(CHUNK, files - n), seeds, str(keep))) for n in range(0, files, CHUNK)
        ]
        jobs += [(programs, (n, min(BATCH, many - n))) for n in range(0, many, BATCH)]
        context = multiprocessing.get_context("spawn")
        with context.Pool(workers, maxtasksperchild=8) as pool:
            waiting = [pool.apply_async(work, (job,)) for work, job in jobs]
            for number, result in enumerate(waiting, start=1):
                outcomes += result.get(timeout=3600)
                print(f"\r{number} of {len(waiting)} parts", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    outcomes += interrupts(stops)
    return outcomes


def good(outcome: Outcome) -> bool:
    """Whether the case ended as documented."""
    ends = ("read", "refused", "named errors only")
    return outcome.end in ends or outcome.end.startswith("exit code")


def page(outcomes: list[Outcome], seconds: float) -> str:
    """docs/reliability.md."""
    lines = [
        "# Reliability",
        "",
        "Written by `make reliability`, a part of `make test-all`: damaged files in processes of",
        f"{MEMORY >> 30} GiB of address space and {SECONDS} s of processor time a file, programs of",
        "random words, and interrupts. A case is good when it is read, refused as bad input, or",
        "ends by a documented exit code without a traceback ([SECURITY.md](../SECURITY.md)).",
        "",
        "| cases | number | ends | slowest |",
        "|---|---|---|---|",
    ]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        ends = Counter(o.end if good(o) else "not documented" for o in mine)
        text = ", ".join(f"{end} {count}" for end, count in sorted(ends.items()))
        lines.append(f"| {kind} | {len(mine)} | {text} | {max(o.seconds for o in mine):.1f} s |")
    bad = [outcome for outcome in outcomes if not good(outcome)]
    lines += ["", f"{len(outcomes)} cases in {seconds / 60:.0f} minutes, {len(bad)} of them bad."]
    lines += [f"- {o.kind}: {o.end}" for o in bad[:20]]
    lines += [
        "",
        "Not counted here: damage to the cache (`tests/jit`), and less memory than the 500 MB",
        "that a tile takes (`tests/cli/test_hostile_input.py`).",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--interrupts", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=ROOT / "out" / "hostile")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    chosen = parser.parse_args()
    begin = time.monotonic()
    outcomes = campaign(
        chosen.files, chosen.programs, chosen.interrupts, chosen.keep, chosen.workers
    )
    text = page(outcomes, time.monotonic() - begin)
    if chosen.write:
        REPORT.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(good(outcome) for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
