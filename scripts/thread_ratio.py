"""Time two tiles in two threads of Python against the same two one after another.

The best of several tries, as wall-clock time needs a machine with two free processors.
Usage: PYTHONPATH=. python scripts/thread_ratio.py [engine]
"""

import sys
import threading
import time
from functools import partial

from bhemu import Tile
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, T1, ZERO, addi, bne, code, li, lw, sw

TRIES, TURNS = 9, 4_000_000
START = 0x10000


def work(engine: str) -> None:
    """A tile whose core loads, adds and stores for some tenths of a second."""
    tile = Tile(engine=engine)
    body = [lw(T1, A1), addi(T1, T1, 1), sw(T1, A1), addi(A0, A0, -1), bne(A0, ZERO, -16)]
    tile.write(START, code(li(A0, TURNS), li(A1, 0x8000), body, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    assert tile.run().reason == "idle"
    assert tile.read32(0x8000) == TURNS


def alone(engine: str) -> float:
    """Seconds for two tiles, one after the other."""
    begin = time.perf_counter()
    work(engine)
    work(engine)
    return time.perf_counter() - begin


def together(engine: str) -> float:
    """Seconds for two tiles at once."""
    threads = [threading.Thread(target=partial(work, engine)) for _ in range(2)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def main() -> None:
    """Print the ratio of each engine."""
    for engine in sys.argv[1:] or ENGINES:
        work(engine)
        one, two = (min(f(engine) for _ in range(TRIES)) for f in (alone, together))
        print(f"{engine}: {one:.3f} s one after another, {two:.3f} s at once, {one / two:.2f}x")


if __name__ == "__main__":
    main()
