"""Time production firmware on bhemu and on ttsim: boot, and add1 fed page by page by its host.

BHEMU_FIRMWARE_DIR, BHEMU_KERNEL_DIR and BHEMU_TTSIM name the ELFs, the listings of the add1 kernels
and libttsim.so, as for tests/e2e/test_real_firmware.py; without them there is nothing to measure.
Both sides do the same work in turns, in processes of their own, in CPU seconds; the least of
several samples counts. Usage: PYTHONPATH=. python scripts/firmware_rate.py [samples]
"""

import os
import struct
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests")]
TILES, POLL = 64, 200  # pages that add1 is fed with; clocks of ttsim between two looks of its host
VARIABLES = ("BHEMU_FIRMWARE_DIR", "BHEMU_KERNEL_DIR", "BHEMU_TTSIM")
Memory = Any  # what has write(address, bytes), read(address, size) and write32(address, value)


class Host:
    """Feeds two pages on either side; `step` is asked now and then and says when all is done."""

    def __init__(self, device: Memory, fed: Any) -> None:
        self._device, self._fed = device, fed
        import numpy as np

        random = np.random.default_rng(4)
        self._data = random.integers(0, 1 << 16, (TILES, 1024), np.uint16)
        self.sent = 0
        self.out: list[bytes] = []

    def _count(self, register: int) -> int:
        return int.from_bytes(self._device.read(register, 4), "little")

    def _fetch(self) -> None:
        at = 0x39000 + len(self.out) % 2 * self._fed.PAGE
        self.out.append(self._device.read(at, self._fed.PAGE))

    def step(self) -> bool:
        """Move what can be moved; True when the firmware has announced DONE and all is fetched."""
        device, fed = self._device, self._fed
        if self.sent == TILES and device.read(fed.GO, 4) == bytes(4):
            while len(self.out) < TILES:  # the firmware has cleared the counters
                self._fetch()
            return True
        if self.sent < TILES and self.sent - self._count(fed.ACKED[fed.CB_IN]) < 2:
            page = self._data[self.sent].tobytes()
            device.write(0x37000 + self.sent % 2 * fed.PAGE, page)
            self.sent += 1
            device.write32(fed.RECEIVED[fed.CB_IN], self.sent)
        if self._count(fed.RECEIVED[fed.CB_OUT]) > len(self.out):
            self._fetch()
            device.write32(fed.ACKED[fed.CB_OUT], len(self.out))
        return False

    def check(self) -> None:
        """All pages have come back, plus one."""
        import numpy as np

        got = np.frombuffer(b"".join(self.out), np.uint16).reshape(TILES, 1024)
        assert (got == self._fed.expected(self._data, 0x3F800000)).all()


def _cpu(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


class _Registers:
    """A tile, whose registers are read as bytes too."""

    def __init__(self, tile: Any) -> None:
        self._tile, self.write, self.write32 = tile, tile.write, tile.write32

    def read(self, address: int, size: int) -> bytes:
        if address < 1 << 24:
            return bytes(self._tile.read(address, size))
        return int(self._tile.read32(address)).to_bytes(4, "little")


def _release(device: Memory, image: bytes) -> None:
    """What a host does to boot: the image, the parameters, brisc out of reset."""
    import test_boot

    device.write(0, image)
    for address, pc in test_boot.PARAMETERS.items():
        device.write32(address, pc)
    device.write32(0xFFB121B0, 0x47000)


def ours(engine: str, image: bytes) -> tuple[float, float]:
    """(boot, add1) on a new tile."""
    import test_real_firmware as fed

    from bhemu.machine.tile import Tile

    tile = Tile(livelock=0, engine=engine)

    def boot() -> None:
        _release(tile, image)
        assert tile.run([(fed.GO, 0)], limit=1_000_000).reason == "until"

    def work() -> None:
        buffers = {fed.CB_IN: (0x37000, 2), fed.CB_OUT: (0x39000, 2)}
        fed.add1(tile, TILES, 0x3F800000, buffers)
        assert tile.run(lambda _: host.step()).reason == "until"

    spent = _cpu(boot)
    fed.settled(tile)
    host = Host(_Registers(tile), fed)
    result = spent, _cpu(work)
    host.check()
    return result


def several(engine: str, image: bytes, samples: int) -> list[tuple[float, float]]:
    """Samples of one process; the first, which loads what was compiled, does not count."""
    return [ours(engine, image) for _ in range(samples + 1)][1:]


class _Simulated:
    """ttsim's tile, with the methods that a host needs."""

    def __init__(self, simulator: Any) -> None:
        self.simulator = simulator
        self.read = simulator.read

    def write(self, address: int, data: bytes) -> None:
        self.simulator.write(address, data)

    def write32(self, address: int, value: int) -> None:
        self.simulator.write(address, struct.pack("<I", value))

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.simulator.clock(POLL)


def _image(fed: Any) -> bytes:
    """What a host writes to L1 before it releases brisc, taken from a tile."""
    import numpy as np
    import test_boot

    from bhemu.machine.tile import Tile

    tile = Tile()
    for name, base in test_boot.STAGING.items():
        tile.core[name].load_elf(Path(fed.FOLDER) / f"{name}.elf", local=base)
    tile.write32(0, test_boot.JUMP_TO_BRISC)
    tile.write(fed.GO, bytes([0, 0, 0, 0x40]))
    test_boot.bank_tables(tile)
    used = int(np.flatnonzero(tile.l1)[-1])
    return tile.read(0, used // 16 * 16 + 16)


def theirs(image: bytes) -> tuple[float, float]:
    """(boot, add1) on ttsim: one sample per process."""
    import test_real_firmware as fed

    from bhemu.oracle import libttsim

    simulator = libttsim.Simulator(Path(os.environ["BHEMU_TTSIM"]))
    device: Any = _Simulated(simulator)

    def boot() -> None:
        _release(device, image)
        device.until(lambda: device.read(fed.GO, 4) == bytes(4))

    def work() -> None:
        buffers = {fed.CB_IN: (0x37000, 2), fed.CB_OUT: (0x39000, 2)}
        fed.add1(device, TILES, 0x3F800000, buffers)
        device.until(host.step)

    spent = _cpu(boot)
    simulator.clock(20_000)
    device.until(lambda: device.read(fed.SYNC, 4) == bytes(4))
    host = Host(device, fed)
    result = spent, _cpu(work)
    host.check()
    return result


def main() -> None:
    """Print one line per part."""
    if any(name not in os.environ for name in VARIABLES):
        print(f"nothing measured: {', '.join(VARIABLES)} are not all set")
        return
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    import test_real_firmware as fed

    image = _image(fed)
    found: dict[str, list[tuple[float, float]]] = {"ttsim": [], "unicorn": [], "compiled": []}
    fresh = get_context("spawn")
    for _ in range(samples):
        with fresh.Pool(1) as pool:
            found["ttsim"].append(pool.apply(theirs, (image,)))
        for engine in ("unicorn", "compiled"):
            with fresh.Pool(1) as pool:
                found[engine] += pool.apply(several, (engine, image, 3))
    for i, part in enumerate(("boot", f"add1, {TILES} pages fed by the host")):
        best = {name: min(sample[i] for sample in kept) for name, kept in found.items()}
        rates = ", ".join(
            f"{name} {1e3 * seconds:.2f} ms ({best['ttsim'] / seconds:.2f}x)"
            for name, seconds in best.items()
        )
        print(f"{part}: {rates}")


if __name__ == "__main__":
    main()
