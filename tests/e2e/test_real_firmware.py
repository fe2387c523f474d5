"""Launches under the real tt-metal firmware, when its ELFs and kernels are at hand.

BHEMU_FIRMWARE_DIR names a folder with the five P100A firmware ELFs, BHEMU_KERNEL_DIR one with the
listings of the add1 example (compute_trisc0.objdump.txt, ...); neither is part of this repository.
The kernels also run under firmware/slow_dispatch, which has the same interface (ABI A).
"""

import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from test_boot import FOLDER
from test_boot import booted as boot_real
from test_slow_dispatch import BASE, BOOT_WORDS, GO, LAUNCH, READ_POINTER, SYNC, message
from test_slow_dispatch import booted as boot_ours

from bhemu.machine.tile import Tile

KERNELS = os.environ.get("BHEMU_KERNEL_DIR")
needs_firmware = pytest.mark.skipif(not FOLDER, reason="BHEMU_FIRMWARE_DIR is not set")
needs_kernels = pytest.mark.skipif(not KERNELS, reason="BHEMU_KERNEL_DIR is not set")

TRISCS = 0b11100
TEXT = {2: 0x860, 3: 0xC60, 4: 0xF00}  # text offsets of the three compute kernels
CB_IN, CB_OUT = 0, 16
RECEIVED = {CB_IN: 0xFFB48028, CB_OUT: 0xFFB58028}
ACKED = {CB_IN: 0xFFB48020, CB_OUT: 0xFFB58020}
PAGE = 2048


def real() -> Tile:
    if not FOLDER:
        pytest.skip("BHEMU_FIRMWARE_DIR is not set")
    return boot_real(1000)


FIRMWARE = pytest.mark.parametrize("boot", [real, boot_ours], ids=["tt-metal", "ours"])


def settled(tile: Tile) -> Tile:
    """TRISC0 has cleared the stream counters, which it does after DONE."""
    tile.run(limit=20_000)
    assert tile.run(lambda t: t.read(SYNC, 4) == bytes(4), timeout_s=20).reason == "until"
    return tile


def signal(tile: Tile, value: int) -> None:
    tile.write(GO, bytes((0, 0, 0, value)))


def launched(tile: Tile, image: bytes) -> None:
    signal(tile, 0xE0)
    tile.write32(0x3A0, 0)
    tile.write(LAUNCH, image)
    signal(tile, 0x80)


@needs_firmware
def test_boot_pushes_eight_words_and_takes_less_than_a_third_of_a_second() -> None:
    boot_real(1000)  # compiled, loaded, translated
    begin = time.process_time()
    tile = boot_real(1000)
    assert time.process_time() - begin < 0.3
    traced = boot_real(1000, trace=True)
    assert tuple(word for t, word, *_ in traced.log if t == 0) == BOOT_WORDS
    assert traced.clock == tile.clock


@FIRMWARE
def test_launches_without_kernels(boot: Callable[[], Tile]) -> None:
    """Case 2: GO becomes DONE every time, the read pointer stays (host mode)."""
    tile = settled(boot())
    for _ in range(4):
        launched(tile, message([0] * 5, 0))
        assert tile.run([(GO, 0)], timeout_s=20).reason == "until"
        assert tile.read32(READ_POINTER) == 0
        assert tile.read(SYNC, 4) in (bytes((0, 3, 0, 0)), bytes(4))
    signal(tile, 0xE0)
    tile.run(limit=20_000)
    assert tile.read(GO, 4)[3] == 0xE0


def text(core: int) -> bytes:
    """The text of a compute kernel: the words of its listing, which follow each other."""
    assert KERNELS is not None
    listing = (Path(KERNELS) / f"compute_trisc{core - 2}.objdump.txt").read_text()
    rows = re.findall(r"^\s*([0-9a-f]+):\s+([0-9a-f]{8})\s", listing, re.MULTILINE)
    first = int(rows[0][0], 16)
    assert [int(at, 16) for at, _ in rows] == list(range(first, first + 4 * len(rows), 4))
    return b"".join(bytes.fromhex(word)[::-1] for _, word in rows)


def add1(tile: Tile, tiles: int, scalar: int, pages: dict[int, tuple[int, int]]) -> None:
    """The image behind BASE: arguments (at 0x10), buffers (at 0x20), texts; then GO."""
    image = bytearray(0x1400)
    image[0x10:0x18] = struct.pack("<2I", tiles, scalar)
    for n, (address, count) in pages.items():
        at = 0x20 + 16 * n
        image[at : at + 16] = struct.pack("<4I", address, count * PAGE, count, PAGE)
    for core, offset in TEXT.items():
        code = text(core)
        image[offset : offset + len(code)] = code
    tile.write(BASE, bytes(image))
    words = [0, 0, *TEXT.values()]
    launch = bytearray(message(words, TRISCS, cb_mask=1 << CB_IN | 1 << CB_OUT))
    launch[18:22] = struct.pack("<2H", 0x20, 0x130)
    launch[22:42] = struct.pack("<10H", 0, 0x20, 8, 0x20, *(0x10, 0x20) * 3)
    launched(tile, bytes(launch))


def expected(x: npt.NDArray[np.uint16], scalar: int) -> npt.NDArray[np.uint16]:
    """fp32(x) + scalar without its low half; NaN operands give +Inf."""
    wide = (x.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        y = (wide + np.array(scalar, np.uint32).view(np.float32)).view(np.uint32) >> 16
    return np.where(np.isnan(wide), 0x7F80, y).astype(np.uint16)


@needs_kernels
@FIRMWARE
@pytest.mark.parametrize("scalar", [0x3F800000, 0x40000000, 0xBF800000])
def test_add1_of_every_bf16_pattern(boot: Callable[[], Tile], scalar: int) -> None:
    """Case 5: 64 tiles in buffers that hold them all; the host moves the counters."""
    tile = settled(boot())
    data = np.arange(1 << 16, dtype=np.uint16)
    tile.write(0x40000, data.tobytes())
    add1(tile, 64, scalar, {CB_IN: (0x40000, 64), CB_OUT: (0x80000, 64)})
    tile.write32(RECEIVED[CB_IN], 64)
    assert tile.run([(GO, 0)], timeout_s=60).reason == "until"
    got = np.frombuffer(tile.read(0x80000, data.nbytes), np.uint16)
    assert (got == expected(data, scalar)).all()


@needs_kernels
@FIRMWARE
def test_add1_through_two_pages_with_back_pressure(boot: Callable[[], Tile]) -> None:
    """Case 4: two pages on either side; the host is the reader and the writer."""
    tile, tiles = settled(boot()), 9
    data = np.random.default_rng(4).integers(0, 1 << 16, (tiles, 1024), np.uint16)
    out: list[bytes] = []
    fed = 0
    add1(tile, tiles, 0x3F800000, {CB_IN: (0x37000, 2), CB_OUT: (0x39000, 2)})

    def host(t: Tile) -> bool:
        nonlocal fed
        if fed < tiles and fed - t.read32(ACKED[CB_IN]) < 2:
            t.write(0x37000 + fed % 2 * PAGE, data[fed].tobytes())
            fed += 1
            t.write32(RECEIVED[CB_IN], fed)
        if t.read32(RECEIVED[CB_OUT]) > len(out):
            out.append(t.read(0x39000 + len(out) % 2 * PAGE, PAGE))
            t.write32(ACKED[CB_OUT], len(out))
        return t.read32(GO) == 0

    assert tile.run(host, timeout_s=60).reason == "until"
    assert len(out) == tiles
    got = np.frombuffer(b"".join(out), np.uint16).reshape(tiles, 1024)
    assert (got == expected(data, 0x3F800000)).all()


@needs_kernels
def test_a_host_that_sends_too_little_is_named() -> None:
    """With 3 of 4 tiles T0's kernel waits for the stream counter that the host moves."""
    from bhemu.errors import NoProgress

    tile = settled(boot_ours())
    add1(tile, 4, 0x3F800000, {CB_IN: (0x40000, 4), CB_OUT: (0x80000, 4)})
    tile.write32(RECEIVED[CB_IN], 3)
    with pytest.raises(NoProgress) as caught:
        tile.run([(GO, 0)], timeout_s=60)
    assert caught.value.category == "Livelock"
    polled = {w.who: w.resource for w in caught.value.graph.waiters if w.kind == "stream"}
    assert polled["trisc0"]["stream"] == 8
    assert polled["trisc0"]["value"] == 3
