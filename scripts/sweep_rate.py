"""How fast a sweep is: the same 2,000 runs of add1 and matmul with one worker and with several.

    python scripts/sweep_rate.py [--runs N] [--workers N] [--rounds N]

Prints runs per second, the ratio, and the overhead: seconds of a worker per run, without those of
the run itself (launch, run, comparison). The rounds take turns, and the best of each counts.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main() -> None:
    """Command line."""
    import bhemu
    from bhemu.sweeps.api import Results

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = [ROOT / "elfs" / name for name in ("add1", "matmul")]
    quanta = range(100, 100 + options.runs // 2)

    def measure(workers: int) -> Results:
        values = {"quantum": quanta, "engine": ["compiled"]}
        return bhemu.sweep(programs, values, workers=workers)

    measure(options.workers)  # compiles what is not in the cache
    best: dict[int, Results] = {}
    for _ in range(options.rounds):
        for workers in (1, options.workers):
            found = measure(workers)
            if workers not in best or found.seconds < best[workers].seconds:
                best[workers] = found
    for workers, found in best.items():
        own = sum(row["seconds"] for row in found.rows)
        overhead = (workers * found.seconds - own) / len(found)
        print(
            f"{workers} worker{'s' if workers > 1 else ''}: {found.seconds:.2f} s for"
            f" {len(found)} runs, {len(found) / found.seconds:.0f} runs/s, a run"
            f" {1e3 * own / len(found):.2f} ms, overhead {1e3 * overhead:.2f} ms a run"
        )
    ratio = best[1].seconds / best[options.workers].seconds
    print(f"{options.workers} workers / one: {ratio:.2f}")


if __name__ == "__main__":
    main()
