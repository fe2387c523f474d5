"""What requests do: memory at both ends, every counter, receivers of multicasts, atomics."""

from typing import Any

import noc_program as p
import numpy as np
import pytest

from bhemu.machine.machine import Chip
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import A0, A1, A2, ZERO, li, lw, sw

OWN, OTHER = (1, 2), (3, 4)
HOME, AWAY, DRAM = p.hi(OWN), p.hi(OTHER), p.hi((17, 12))
L1, FAR = 0x20000, 0x30000
DATA = bytes(range(1, 201))
both_nocs = pytest.mark.parametrize("noc", [0, 1])


def counters(chip: Chip, xy: XY, noc: int = 0) -> dict[int, int]:
    """The counters that are not 0."""
    base = p.NIU[noc] + 0x200
    values = {n: chip.read32(*xy, base + 4 * n) for n in range(62)}
    return {n: value for n, value in values.items() if value}


def run(*words: Any, data: bytes = DATA, **options: Any) -> Chip:
    """brisc of (1,2) runs these words, with `data` at L1 of its tile and of (3,4)."""
    chip = Chip(**options)
    for xy in (OWN, OTHER):
        chip.write(*xy, L1, data)
    p.put(chip, OWN, *words)
    assert chip.run(limit=1_000_000).reason == "idle"
    return chip


@both_nocs
def test_a_read_and_all_its_counters(noc: int) -> None:
    chip = run(p.send(p.READ, (L1 + 3, AWAY), (FAR + 3, HOME), 130, noc=noc))
    assert chip.read(*OWN, FAR, 140) == bytes(3) + DATA[3:133] + bytes(7)
    assert counters(chip, OWN, noc) == {2: 1, 3: 3, 4: 1, 5: 1, 14: 1}
    assert counters(chip, OTHER, noc) == {50: 1, 51: 3, 52: 1, 53: 1}
    assert counters(chip, OWN, 1 - noc) == counters(chip, OTHER, 1 - noc) == {}


@both_nocs
def test_a_write_and_all_its_counters(noc: int) -> None:
    chip = run(p.send(p.WRITE, (L1, HOME), (FAR, AWAY), 65, noc=noc))
    assert chip.read(*OTHER, FAR, 70) == DATA[:65] + bytes(5)
    assert counters(chip, OWN, noc) == {1: 1, 4: 1, 8: 2, 10: 1, 12: 1}
    assert counters(chip, OTHER, noc) == {49: 1, 52: 1, 56: 2, 58: 1, 60: 1}


def test_a_posted_write_has_no_acknowledgement() -> None:
    chip = run(p.send(p.POSTED, (L1, HOME), (FAR, AWAY), 64, tag=3 << 10))
    assert chip.read(*OTHER, FAR, 64) == DATA[:64]
    assert counters(chip, OWN) == {4: 1, 9: 1, 11: 1, 13: 1}
    assert counters(chip, OTHER) == {52: 1, 57: 1, 59: 1, 61: 1}


def test_an_inline_write_goes_to_a_register_whatever_its_length() -> None:
    chip = run(p.send(p.INLINE, (0xFFB48020, AWAY), (0, HOME), 0, data=0x12345))
    assert chip.read32(*OTHER, 0xFFB48020) == 0x12345
    assert counters(chip, OWN) == {1: 1, 4: 1, 10: 1, 12: 1}
    assert counters(chip, OTHER) == {49: 1, 52: 1, 56: 1, 58: 1, 60: 1}


def test_an_atomic_and_all_its_counters() -> None:
    chip = run(p.send(p.ATOMIC, (FAR, AWAY), (L1, HOME), p.INCREMENT, data=5), data=b"\x09" * 16)
    assert (chip.read32(*OTHER, FAR), chip.read32(*OWN, L1)) == (5, 0)
    assert counters(chip, OWN) == {0: 1, 4: 1, 6: 1, 15: 1}
    assert counters(chip, OTHER) == {48: 1, 52: 1, 54: 1}


@pytest.mark.parametrize(
    ("operands", "operand", "old", "new"),
    [
        (0x1000 | 31 << 2 | 2, 1, 2, "00000000 11111111 22222223 33333333"),  # increment, offset 2
        (0x1000 | 7 << 2 | 1, 0xF0, 1, "00000000 11111101 22222222 33333333"),  # 8 bits, wraps
        (0x3000 | 0b0110 << 2, 0xAAAABBBB, 0, "AAAA0000 1111BBBB 22222222 33333333"),  # swap
        (0x4000 | 0 << 2 | 9 << 6, 0, 0, "00000009 11111111 22222222 33333333"),  # equal: set
        (0x4000 | 5 << 2 | 9 << 6 | 3, 0, 3, "00000000 11111111 22222222 33333333"),  # not equal
        (0x6000 | 1, 7, 1, "00000000 00000007 22222222 33333333"),  # swap, index in bits 1:0
        (0x7000 | 3 << 2, 7, 3, "00000000 11111111 22222222 00000007"),  # in bits 3:2
    ],
)
def test_atomics_of_the_isa_text(operands: int, operand: int, old: int, new: str) -> None:
    line = [0x11111111 * i for i in range(4)]
    chip = run(
        p.send(p.ATOMIC, (L1, AWAY), (FAR, HOME), operands, data=operand),
        data=np.array(line, "<u4").tobytes(),
    )
    after = np.frombuffer(chip.read(*OTHER, L1, 16), "<u4")
    assert [f"{word:08X}" for word in after] == new.split()
    assert chip.read32(*OWN, FAR) == line[old]


def test_byte_enables_choose_among_64_bytes_of_whole_lines() -> None:
    mask = 1 | 1 << 17 | 1 << 63
    chip = run(p.send(p.WRITE | p.ENABLES, (L1 + 5, HOME), (FAR + 5, AWAY), mask))
    want = bytearray(64)
    for i in (0, 17, 63):
        want[i] = DATA[i]
    assert chip.read(*OTHER, FAR, 64) == want


def test_byte_enables_do_not_count_for_a_register() -> None:
    send = p.send(p.WRITE | p.ENABLES, (L1 + 4, HOME), (0xFFB48024, AWAY), 0)
    with pytest.raises(Exception, match="STREAM-REGISTER"):
        run(send)
    send = p.send(p.WRITE | p.ENABLES, (L1, HOME), (0xFFB48020, AWAY), 0)
    chip = run(send, data=(0x1234).to_bytes(4, "little"))
    assert chip.read32(*OTHER, 0xFFB48020) == 0x1234


def receivers(start: XY, end: XY, noc: int = 0, control: int = 0, **setup: int) -> set[XY]:
    """Who gets a multicast from (1,2) to a rectangle."""
    chip = Chip()
    for register, value in setup.items():
        chip.write32(*OTHER, p.NIU[noc] + int(register[1:], 16), value)
    chip.write(*OWN, L1, DATA)
    control |= p.WRITE | p.MULTICAST
    p.put(chip, OWN, p.send(control, (L1, HOME), (FAR, p.box(start, end)), 16, noc=noc))
    chip.run()
    got = {tile.xy for tile in chip.tiles() if tile.read(FAR, 16) == DATA[:16]}
    sent = counters(chip, OWN, noc)
    assert sent.get(1, 0) == len(got)
    assert sent.get(16, 0) == (1 - len(got)) % 256
    return got


def rectangle(columns: Any, rows: Any) -> set[XY]:
    return {(x, y) for x in columns for y in rows}


def test_a_multicast_goes_to_the_tensix_tiles_of_a_rectangle_but_not_to_the_sender() -> None:
    assert receivers((1, 2), (3, 3)) == rectangle((1, 2, 3), (2, 3)) - {OWN}
    assert receivers((1, 2), (3, 3), control=p.LOOPBACK) == rectangle((1, 2, 3), (2, 3))
    assert receivers((6, 2), (11, 3)) == rectangle((6, 7, 10, 11), (2, 3))
    assert receivers((1, 2), (1, 2)) == set()


def test_noc_1_counts_backwards() -> None:
    assert receivers((3, 3), (2, 2), noc=1) == rectangle((2, 3), (2, 3))


def test_a_span_whose_start_is_behind_its_end_wraps_around() -> None:
    assert receivers((15, 10), (2, 2)) == rectangle((15, 16, 1, 2), (10, 11, 2)) - {OWN}
    assert receivers((2, 3), (3, 2), noc=1) == rectangle(
        {*range(1, 8), *range(10, 17)} - set(), (2, 3)
    ) - {OWN}


def test_a_tile_that_has_opted_out_receives_nothing() -> None:
    """Its own masks count, by its own column and row; the golden model looks at the sender's."""
    assert receivers((2, 3), (4, 4), r108=0x301 | 1 << 3) == rectangle((2, 3, 4), (3, 4)) - {OTHER}
    assert receivers((2, 3), (4, 4), r110=0x3 | 1 << 4) == rectangle((2, 3, 4), (3, 4)) - {OTHER}
    assert receivers((2, 3), (4, 4), r108=0x301 | 1 << 4) == rectangle((2, 3, 4), (3, 4))


def test_a_multicast_atomic_happens_at_every_receiver() -> None:
    control = p.ATOMIC | p.MULTICAST
    send = p.send(control, (FAR, p.box((2, 3), (3, 4))), (L1, HOME), p.INCREMENT, data=2)
    chip = run(send)
    assert [chip.read32(*xy, FAR) for xy in ((2, 3), (3, 3), (2, 4), (3, 4))] == [2] * 4
    assert counters(chip, OWN) == {0: 4, 4: 1, 6: 1, 15: 1, 16: 253}


def test_a_multicast_inline_write_goes_to_registers() -> None:
    control = p.INLINE | p.MULTICAST
    chip = run(p.send(control, (0xFFB48020, p.box((2, 3), (3, 3))), (0, HOME), data=9))
    assert [chip.read32(*xy, 0xFFB48020) for xy in ((2, 3), (3, 3))] == [9, 9]


def test_the_ports_of_a_bank_are_one_memory_by_every_coordinate() -> None:
    chip = Chip()
    chip.dram[0].write(0x1000, DATA)
    coordinates = [((17, 12), 0), ((17, 13), 1), ((17, 14), 0), ((0, 0), 0), ((0, 1), 1)]
    coordinates += [((0, 11), 0), ((22, 23), 1)]  # (39 - x, 35 - y) of the first port
    words = []
    for i, (xy, noc) in enumerate(coordinates):
        words += p.send(p.READ, (0x1000, p.hi(xy)), (FAR + 0x40 * i, HOME), 32, noc=noc)
    p.put(chip, OWN, words)
    chip.run()
    for i in range(len(coordinates)):
        assert chip.read(*OWN, FAR + 0x40 * i, 32) == DATA[:32], coordinates[i]


def test_without_translation_each_noc_has_its_own_physical_coordinates() -> None:
    """NIU_CFG_0 bit 14 clear: NoC 1 counts both ways backwards, row and column."""
    chip = Chip()
    chip.write(*OTHER, L1, DATA)
    chip.write32(*OWN, p.NIU[1] + 0x100, 0)
    mirrored = (p.hi((16 - 3, 11 - 4)), p.hi((16 - 1, 11 - 2)))
    p.put(chip, OWN, p.send(p.READ, (L1, mirrored[0]), (FAR, mirrored[1]), 16, noc=1))
    chip.run()
    assert chip.read(*OWN, FAR, 16) == DATA[:16]


@pytest.mark.parametrize("poison", [None, "ff", "random"])
def test_untouched_dram_holds_the_poison(poison: str | None) -> None:
    chip = Chip(poison=poison, seed=4)
    before = chip.dram[5].read(0x3FFF0, 64)
    p.put(chip, OWN, p.send(p.READ, (0x3FFC0, p.hi((18, 15))), (FAR, HOME), 128))
    chip.run()
    assert chip.read(*OWN, FAR + 48, 64) == before
    assert before == {None: bytes(64), "ff": b"\xff" * 64}.get(poison, before)
    assert len(set(before)) > 10 or poison != "random"
    assert bool(chip.dram[5].pages) == (poison == "random")


def test_host_memory_behind_pcie() -> None:
    chip = Chip()
    place = 1 << 60 | 0x1000
    chip.write(19, 24, place, DATA)
    p.put(chip, OWN, p.send(p.READ, (place, p.hi((19, 24))), (FAR, HOME), 64))
    chip.run()
    assert chip.read(*OWN, FAR, 64) == DATA[:64]


@pytest.mark.parametrize("kind", [p.READ, p.WRITE])
def test_the_first_request_for_host_memory_is_known(kind: int) -> None:
    """Whoever serves a host must say that nobody shares its memory; poison must not hide it."""
    chip = Chip(poison="ff")
    place, far = (1 << 60 | 0x1000, p.hi((19, 24))), (FAR, HOME)
    ends = (place, far) if kind == p.READ else (far, place)
    p.put(chip, OWN, p.send(kind, *ends, 64))
    assert chip.host_access is None
    chip.run()
    assert chip.host_access is not None
    assert "of 64 bytes" in chip.host_access.request and "PCIe tile" in chip.host_access.request
    assert chip.host_access.where.tile == OWN
    if kind == p.READ:
        assert chip.read(*OWN, FAR, 64) == b"\xff" * 64
    chip.reset()
    assert chip.host_access is None


def test_a_remote_niu_sends_what_its_registers_are_made_to_hold() -> None:
    """Initiator 1 of (3,4) is programmed from (1,2): the packet leaves from (3,4) later."""
    third = p.hi((5, 6))
    values = {0x00: L1, 0x08: AWAY, 0x0C: FAR, 0x14: third, 0x1C: p.WRITE, 0x20: 32, 0x40: 1}
    words = []
    for register, value in values.items():
        at = p.NIU[0] + 0x800 + register
        words += p.send(p.INLINE, (at, AWAY), (0, HOME), data=value)
    chip = run(words)
    assert chip.read(5, 6, FAR, 32) == DATA[:32]
    assert counters(chip, OTHER)[1] == counters(chip, OTHER)[10] == 1


def test_a_full_queue_makes_the_store_wait_and_loses_nothing() -> None:
    count = 40  # of 16 KiB: more than the sender can have under way
    loop = p.send(p.WRITE, (L1, HOME), (FAR, DRAM), 16384)
    again = [*li(A0, FAR), sw(A0, A1, 0x0C), *li(A0, 1), sw(A0, A1, 0x40), lw(A0, A1, 0x40)]
    chip = run([*loop, *(again * (count - 1))], data=bytes(range(256)) * 64)
    assert counters(chip, OWN)[1] == count
    assert chip.dram[0].read(FAR, 16384) == bytes(range(256)) * 64


def test_the_source_may_change_once_the_request_is_sent() -> None:
    words = p.send(p.WRITE, (L1, HOME), (FAR, AWAY), 16)
    chip = run([*words, *li(A1, L1), *li(A0, 0), sw(A0, A1)])
    assert chip.read(*OTHER, FAR, 16) == DATA[:16]
    assert chip.read32(*OWN, L1) == 0


@both_nocs
def test_a_multicast_to_its_own_tile_arrives_before_the_next_instruction(noc: int) -> None:
    """Kernels send a flag to all tiles of a row, their own too, and clear it for the next block."""
    control = p.WRITE | p.MULTICAST | p.LOOPBACK
    send = p.send(control, (L1, HOME), (FAR, p.box(*((OWN, OTHER)[:: 1 - 2 * noc]))), 16, noc=noc)
    chip = run([*send, *li(A1, FAR), lw(A2, A1), sw(ZERO, A1), sw(A2, A1, 16)])
    assert chip.read(*OTHER, FAR, 16) == DATA[:16]
    assert chip.read(*OWN, FAR, 20) == bytes(4) + DATA[4:16] + DATA[:4]
