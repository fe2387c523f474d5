"""Processes that are killed while they write; what they leave is read by the project's own readers.

`python killed_writers.py FOLDER KILLS SEED` prints how often each file was found whole.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from bhemu import Snapshot, Tile
from bhemu.jit import cache
from bhemu.program import files, input_files
from bhemu.sweeps import api as results

STATE, ARRAY, ENTRY = "state.npz", "y.npy", "entry"
MOMENT = 0.03  # seconds within which a writer is killed


def entry(turn: int) -> bytes:
    return hashlib.sha256(b"%d" % turn).digest() * 20_000


def write_for_ever(folder: Path, snapshots: list[Snapshot]) -> None:
    """States, arrays, cache entries and journals, one after the other."""
    turn = random.randrange(1000)
    while True:
        turn += 1
        snapshots[turn % 2].save(folder / STATE)
        array = np.full(100_000, turn, np.int64)
        files.write_whole(folder / ARRAY, lambda file, a=array: np.save(file, a), "test")
        cache.write(ENTRY, turn.to_bytes(4, "little") + entry(turn))
        journal = results.Journal(folder / "runs", replace=True)
        journal.begin([row(n) for n in range(turn % 50)])
        for n in range(turn % 50, turn % 50 + 20):
            journal.add(row(n))


def row(number: int) -> dict[str, object]:
    return {"key": f"{number}", "rule": None, "digest": hashlib.sha256(b"%d" % number).hexdigest()}


def look(folder: Path, snapshots: list[Snapshot]) -> Counter[str]:
    """What is there; an AssertionError or InputError for what is there in part."""
    found: Counter[str] = Counter()
    if (folder / STATE).exists():
        loaded = Snapshot.load(folder / STATE)
        assert any((loaded.l1 == one.l1).all() for one in snapshots)
        found["states"] += 1
    if (folder / ARRAY).exists():
        array = input_files.from_npy(files.read_bytes(folder / ARRAY, "ARRAY_BYTES"))
        assert len(array) == 100_000 and (array == array[0]).all()
        found["arrays"] += 1
    if (kept := cache.read(ENTRY)) is not None:
        assert kept[4:] == entry(int.from_bytes(kept[:4], "little"))
        found["entries"] += 1
    elif (cache.root() / ENTRY).exists():
        raise AssertionError("half an entry")
    if (folder / "runs" / results.LINES).exists():
        done = results.Journal(folder / "runs", resume=True).done
        assert all(held == row(int(key)) for key, held in done.items())
        found["journals"] += 1
    return found


def complete(folder: Path) -> bool:
    """Whether each kind of file has been written once."""
    places = (folder / STATE, folder / ARRAY, cache.root() / ENTRY, folder / "runs" / results.LINES)
    return all(path.exists() for path in places)


def scratches(*folders: Path) -> list[str]:
    return [n for f in folders if f.exists() for n in os.listdir(f) if n.startswith(".")]


def main(folder: Path, kills: int, seed: int) -> None:
    dice, tile, snapshots = random.Random(seed), Tile(), []
    for value in (1, 2):
        tile.state.l1[:] = value
        snapshots.append(tile.snapshot())
    os.environ["BHEMU_CACHE_DIR"] = str(folder / "cache")  # the tile's code is in the usual one
    cache.root.cache_clear()
    found: Counter[str] = Counter()
    places = (folder, folder / "runs", cache.root())
    for number in range(kills):
        child = os.fork()
        if child == 0:
            try:
                write_for_ever(folder, snapshots)
            finally:
                os._exit(1)
        while number == 0 and not complete(folder):  # on a busy machine, whatever that takes
            time.sleep(MOMENT)
        time.sleep(dice.random() * MOMENT * (10 if dice.random() < 0.3 else 1))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        left = scratches(*places)
        assert len(left) <= len(places) + 1, left
        found["scratches"] += bool(left)
        found += look(folder, snapshots)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
