"""Time what cores that only poll cost: a tile by round and in bulk, and a chip of such tiles.

Least of several samples, CPU time. Usage: PYTHONPATH=. python scripts/polling_cost.py [tiles]
"""

import sys
import time
from collections.abc import Callable

from bhemu import Chip, Tile
from bhemu import memmap as mm
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, ZERO, bne, code, li, lw

SAMPLES, ROUNDS = 15, 2000
STREAM = mm.OVERLAY_BASE + 0x8028
POLLED = {
    "L1": [0x8000] * 5,
    "stream registers": [STREAM + 0x1000 * i for i in range(5)],
    "L1, streams, local memory": [0x8000, STREAM, 0x8004, STREAM + 0x1000, mm.LOCAL_BASE],
}


def polling(tile: Tile, addresses: list[int]) -> None:
    """Release five cores that poll these addresses."""
    for i, (core, address) in enumerate(zip(CORE_NAMES, addresses, strict=True)):
        at = 0x10000 * i
        tile.write(at, code(li(A1, address), lw(A0, A1), bne(A1, ZERO, -4)))
        tile.core[core].set_reset_pc(at)
        tile.core[core].release()


def least(action: Callable[[], object]) -> float:
    """Seconds of the fastest sample."""
    found = []
    for _ in range(SAMPLES):
        begin = time.process_time()
        action()
        found.append(time.process_time() - begin)
    return min(found)


def one_tile(engine: str, addresses: list[int]) -> tuple[float, float]:
    """Seconds per round: one round per call, and as many as there can be."""
    tile = Tile(engine=engine, livelock=0)
    polling(tile, addresses)
    tile.run(limit=50_000)
    tile.state.limit[0] = -1

    def single() -> None:
        for _ in range(ROUNDS):
            tile.backend.rounds(1)

    before = int(tile.state.round[0])
    many = least(lambda: tile.run(limit=10**9)) * SAMPLES
    rounds = int(tile.state.round[0]) - before
    tile.state.limit[0] = -1
    return least(single) / ROUNDS, many / rounds


def chip(tiles: int) -> float:
    """Seconds per round of a chip on which so many tiles poll."""
    whole = Chip(livelock=0)
    for place in list(whole.tile)[:tiles]:
        polling(whole.tile[place], POLLED["L1, streams, local memory"])
    whole.run(rounds=100)
    return least(lambda: whole.run(rounds=ROUNDS // 10)) / (ROUNDS // 10)


def main() -> None:
    """Print one line per engine and kind of poller, and one for the chip."""
    for engine in ENGINES:
        for name, addresses in POLLED.items():
            single, many = one_tile(engine, addresses)
            print(
                f"{engine}, five cores poll {name}: {1e6 * single:.2f} us a round, called one by"
                f" one; {1e9 * many:.1f} ns in bulk"
            )
    tiles = int(sys.argv[1]) if len(sys.argv) > 1 else 140
    print(f"a chip with {tiles} such tiles: {1e6 * chip(tiles):.0f} us a round of all")


if __name__ == "__main__":
    main()
