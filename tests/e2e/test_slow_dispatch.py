"""The slow-dispatch firmware of firmware/slow_dispatch: boot, launches, signals, as a host sees it.

The protocol is ABI A: mailbox at L1 0x60, kernels at kernel_config_base, sync bytes at 0x68.
"""

import struct
from pathlib import Path

import pytest

from bhemu.launch import launch
from bhemu.machine.tile import Tile
from bhemu.program.schema import load_program
from bhemu.riscv.assembly import A0, A1, A2, RA, ZERO, addi, code, jalr, li, lw, sw, tt

ROOT = Path(__file__).parents[2]
BASE = 0x82B0  # kernel_config_base
SYNC, READ_POINTER, LAUNCH, GO = 0x68, 0x6C, 0x70, 0x370
SILENT, START = 0xE0, 0x80
STREAM = 0xFFB40000
RTA = {0: 0xFFB00018, 1: 0xFFB00038, 2: 0xFFB00014, 3: 0xFFB00010, 4: 0xFFB00014}
CB = {0: 0xFFB00048, 1: 0xFFB00414, 2: 0xFFB00020, 4: 0xFFB00020}
CORES = ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2")
RET = jalr(ZERO, RA)
RESULTS = 0x40000
BOOT_WORDS = (
    *(0x10180000, 0x8A00300A, 0x02000000, 0x7100BF80, 0x910000B0),
    *(0xA3100008, 0xA3100010, 0xA3100200),
)


def signal(tile: Tile, value: int) -> None:
    tile.write(GO, bytes((0, 0, 0, value)))


def booted() -> Tile:
    program = load_program(ROOT / "elfs" / "slow_dispatch")
    tile = launch(program)
    tile.state.trace[0] = 1
    assert tile.run().reason == "until"
    tile.drain_log()
    return tile


def kernel(core: int) -> bytes:
    """Add 1 to the word that the first runtime argument names; a TRISC does it on its thread.

    The second argument is stored beside it, so that each core shows which arguments it got.
    """
    arguments = [*li(A0, RTA[core]), lw(A0, A0), lw(A1, A0), lw(A2, A0, 4)]
    count = [lw(A0, A1), addi(A0, A0, 1), sw(A0, A1), sw(A2, A1, 4)]
    return code(arguments, count, RET)


def message(texts: list[int], enables: int, *, mode: int = 1, cb_mask: int = 0) -> bytes:
    """A launch message: arguments of core i at BASE + 8 i, circular buffers at BASE + 0x40."""
    args = b"".join(struct.pack("<HH", 8 * i, 8 * i) for i in range(5))
    head = struct.pack("<3I3HHH", BASE, BASE, BASE, 0, 0, 0, 0x40, 0x40) + args
    head += struct.pack("<BB5II", mode, 0, *texts, cb_mask)
    head += struct.pack("<4BII", 0, 0, 32, 0, 0, enables)
    return head.ljust(96, b"\0")


def place(tile: Tile, kernels: dict[int, bytes]) -> list[int]:
    """Arguments and texts behind BASE; the text offsets by core."""
    offsets = [0] * 5
    for core, text in kernels.items():
        offsets[core] = 0x200 + 0x100 * core
        tile.write(BASE + offsets[core], text)
        tile.write(BASE + 8 * core, struct.pack("<2I", RESULTS + 16 * core, 100 + core))
    return offsets


def go(tile: Tile) -> None:
    """Signal GO and run until DONE."""
    signal(tile, START)
    assert tile.run([(GO, 0)], timeout_s=20).reason == "until"


def results(tile: Tile) -> list[tuple[int, int]]:
    return [struct.unpack("<2I", tile.read(RESULTS + 16 * i, 8)) for i in range(5)]


def test_boot() -> None:
    tile = booted()
    assert tile.read32(0xFFB121B0) == 0
    for address, entry in zip(
        (0x228, 0x22C, 0x230, 0x238), (0x5A40, 0x6040, 0x6640, 0x5440), strict=True
    ):
        assert tile.read32(0xFFB12000 + address) == entry
    assert tuple(word for t, word, *_ in tile.log if t == 0) == BOOT_WORDS
    assert tile.read(SYNC, 4) in (bytes((0, 3, 0, 0)), bytes(4))
    assert tile.read32(READ_POINTER) == 0
    assert [core.state for core in tile.core.values()] == ["running"] * 5


def test_a_kernel_on_every_core_launched_twice() -> None:
    tile = booted()
    texts = place(tile, {i: kernel(i) for i in range(5)})
    tile.write(LAUNCH, message(texts, 0x1F))
    for launches in (1, 2):
        go(tile)
        assert results(tile) == [(launches, 100 + i) for i in range(5)]
        assert tile.read32(READ_POINTER) == 0, "in host mode the read pointer stays"
        assert tile.read(SYNC, 4) in (bytes((0, 3, 0, 0)), bytes(4))


@pytest.mark.parametrize("enables", [0, 1, 0b10, 0b00100, 0b11000])
def test_only_enabled_cores_run(enables: int) -> None:
    tile = booted()
    texts = place(tile, {i: kernel(i) for i in range(5)})
    tile.write(LAUNCH, message(texts, enables))
    for launches in (1, 2, 3):
        go(tile)
        assert [n for n, _ in results(tile)] == [launches * (enables >> i & 1) for i in range(5)]


def test_a_compute_kernel_pushes_words_and_is_waited_for() -> None:
    """TRISC1 counts stream 8 up by its thread; DONE comes after the word has executed."""
    tile = booted()
    count = [tt("SETDMAREG", payload_sig_sel=77, reg_index_16b=8)]
    store = tt("STOREREG", reg_addr=(STREAM + 0x8028 - 0xFFB00000) // 4, tdma_data_reg_index=4)
    texts = place(tile, {3: code(count, store, RET)})
    tile.write(LAUNCH, message(texts, 0b01000))
    go(tile)
    assert tile.read32(STREAM + 0x8028) == 77


def test_trisc0_clears_the_stream_counters_after_a_launch() -> None:
    tile = booted()
    tile.write32(STREAM + 0x8020, 5)
    tile.write32(STREAM + 31 * 0x1000 + 0x8028, 6)
    tile.write(LAUNCH, message([0] * 5, 0))
    go(tile)
    assert tile.run([(SYNC, 0)], timeout_s=20).reason == "until"
    assert tile.read32(STREAM + 0x8020) == tile.read32(STREAM + 31 * 0x1000 + 0x8028) == 0


def test_circular_buffers_in_bytes_and_in_units_of_16() -> None:
    tile = booted()
    texts = place(tile, dict.fromkeys((0, 1, 2, 4), code(RET)))
    tables = {0: (0x37000, 4096, 2, 2048), 31: (0x39000, 8192, 4, 2048)}
    for n, table in tables.items():
        tile.write(BASE + 0x40 + 16 * n, struct.pack("<4I", *table))
    # the texts begin at 0x200, behind the 32 entries: only the tested ones are written
    moved = [offset + 0x200 if offset else 0 for offset in texts]
    for core in (0, 1, 2, 4):
        tile.write(BASE + moved[core], code(RET))
    tile.write(LAUNCH, message(moved, 0b10111, cb_mask=1 | 1 << 31))
    go(tile)
    for core, at in CB.items():
        shift = 0 if core < 2 else 4
        for n, (address, size, pages, page) in tables.items():
            words = [tile.core[CORES[core]].read32(at + 32 * n + 4 * i) for i in range(8)]
            a = address >> shift
            assert words == [size >> shift, a + (size >> shift), page >> shift, pages, a, a, 0, 0]


def test_device_mode_advances_the_read_pointer_and_wraps() -> None:
    tile = booted()
    texts = place(tile, {0: kernel(0)})
    for i in range(8):
        tile.write(LAUNCH + 96 * i, message(texts, i & 1, mode=0))
    for i in range(10):
        assert tile.read32(READ_POINTER) == i % 8
        go(tile)
    assert results(tile)[0][0] == 5


@pytest.mark.parametrize("value", [0xC0, 0xF0])
def test_a_reset_of_the_read_pointer_is_answered(value: int) -> None:
    tile = booted()
    tile.write32(READ_POINTER, 5)
    signal(tile, value)
    assert tile.run([(GO, 0)], timeout_s=20).reason == "until"
    assert tile.read32(READ_POINTER) == 0


def test_the_silent_reset_is_not_answered() -> None:
    tile = booted()
    tile.write32(READ_POINTER, 5)
    signal(tile, SILENT)
    assert tile.run(limit=20_000).reason == "limit"
    assert tile.read32(READ_POINTER) == 0
    assert tile.read(GO, 4)[3] == SILENT
