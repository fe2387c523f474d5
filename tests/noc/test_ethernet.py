"""Ethernet tiles of linked chips: memory, two cores, requests of the NoC, links."""

from collections.abc import Callable

import noc_program as p
import pytest

from bhemu.devices.ethernet import FIRST_SP
from bhemu.errors import BhemuError, InputError, NotModelled
from bhemu.machine.ethernet import Links
from bhemu.machine.machine import Chip, LinkedChip
from bhemu.noc.grid import XY, links
from bhemu.riscv.assembly import A0, A1, A2, PARK, SP, ZERO, beq, code, jalr, li, lw, sw

OWN, HOME = (1, 2), p.hi((1, 2))
LINKED, ALONE = (22, 25), (20, 25)  # channels 2 and 0 of chip 0
OTHER = (29, 25)  # channel 9 of chip 1
SOFT_RESET, RESET_PCS = 0xFFB121B0, (0xFFB14000, 0xFFB14008)
TXQ, START, DATA = 0xFFB90000, 0x1000, 0x8000
STREAM = 0xFFB48020  # a counter of stream 8
CONTROL, CMD, STATUS, FROM, SIZE, TO, WORD = 0x0, 0x4, 0x8, 0x14, 0x18, 0x1C, 0x44


def start(chip: Chip, xy: XY, *words: int | list[int], core: int = 1) -> None:
    """Let a core of an Ethernet tile run these words, then park."""
    at = START * (core + 1)
    chip.write(*xy, at, code(*words, PARK))
    chip.write32(*xy, RESET_PCS[core], at)
    chip.write32(*xy, SOFT_RESET, 0x1800 & ~(0x800 << core))


def store(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), sw(A1, A0)]


def load(address: int, to: int) -> list[int]:
    return [*li(A0, address), lw(A1, A0), *li(A0, to), sw(A1, A0)]


def jump(address: int) -> list[int]:
    return [*li(A0, address), jalr(ZERO, A0, 0)]


def command(kind: int, start: int = DATA, size: int = 64, to: int = DATA, **more: int) -> list[int]:
    """A command of a TX queue, whole."""
    queue = TXQ + 0x1000 * more.get("queue", 0)
    values = {FROM: start, SIZE: size, TO: to, WORD: more.get("word", 0), CMD: kind}
    return [word for at, value in values.items() for word in store(queue + at, value)]


def rounds(chips: list[Chip], links: Links, n: int) -> None:
    for _ in range(n):
        for chip in chips:
            chip.run(rounds=1)
        links.carry()


@pytest.fixture
def pair() -> tuple[list[Chip], Links]:
    chips = [LinkedChip(0), LinkedChip(1)]
    return chips, Links(chips)


def test_a_host_finds_what_the_firmware_left() -> None:
    chip = LinkedChip(1)
    for n in range(14):
        up = (1, n) in links(2)
        assert chip.read32(20 + n, 25, 0x7CC00) == 0xC0DEA000
        assert chip.read32(20 + n, 25, 0x7CC04) == (1 if up else 2)
    assert chip.read(29, 25, 0x7CFC0, 32)[1:4] == bytes((1, 9, 9))
    assert chip.read(29, 25, 0x7CFE0, 32)[1:4] == bytes((0, 2, 2))
    assert chip.read32(29, 25, 0xFFB20148) == 29 | 25 << 6
    assert chip.read32(29, 25, 0xFFB20044) & 0xFFF == 12 | 1 << 6  # channel 9 is at (12, 1)
    assert chip.read32(29, 25, 0xFFB20048) == 0x0200 << 8 | 9
    assert chip.read(12, 1, 0x7CC00, 8) == chip.read(29, 25, 0x7CC00, 8)


def test_its_l1_ends_at_512_kib() -> None:
    chip = LinkedChip(0)
    chip.write(*LINKED, 0x7FFFC, b"last")
    assert chip.read(*LINKED, 0x7FFFC, 4) == b"last"
    with pytest.raises(InputError):
        chip.write(*LINKED, 0x7FFFC, b"too far")


@pytest.mark.parametrize("at", [0x7FFFC, 0x80000, 0x17FFFC])
@pytest.mark.parametrize("act", [lambda at: load(at, DATA), lambda at: store(at, 0x6F), jump])
def test_a_core_beyond_its_l1_is_refused(act: Callable[[int], list[int]], at: int) -> None:
    chip = LinkedChip(0)
    chip.write(*LINKED, 0x7FFFC, code(PARK))
    start(chip, LINKED, act(at))
    if at < 0x80000:
        chip.run(rounds=20)
        return
    with pytest.raises(BhemuError, match=f"0x0?0?0?0*{at:x}"):
        chip.run(rounds=20)


def test_a_chip_alone_has_no_ethernet_cores() -> None:
    chip = Chip()
    chip.write32(*LINKED, RESET_PCS[1], START)
    chip.write32(*LINKED, SOFT_RESET, 0)
    assert chip.run(rounds=3).reason == "idle"
    assert len(chip.tiles_made()) == 0


@pytest.mark.parametrize("core", [0, 1])
def test_each_core_runs_with_the_end_of_its_memory_in_sp(core: int) -> None:
    chip = LinkedChip(0)
    up = [*li(A0, FIRST_SP - 4), *li(A1, 0x55), sw(A1, A0), lw(A2, SP, -4)]
    start(chip, ALONE, up, [*li(A0, 0x100), sw(A2, A0), sw(SP, A0, 4)], core=core)
    chip.run(rounds=3)
    assert chip.read(*ALONE, 0x100, 8) == bytes((0x55, 0, 0, 0)) + FIRST_SP.to_bytes(4, "little")


def test_a_core_starts_once_its_register_says_where() -> None:
    chip = LinkedChip(0)
    chip.write(*LINKED, 2 * START, code(store(0x100, 7), PARK))
    chip.write32(*LINKED, SOFT_RESET, 0)
    chip.run(rounds=3)
    assert chip.read32(*LINKED, 0x100) == 0
    chip.write32(*LINKED, RESET_PCS[1], 2 * START)
    chip.run(rounds=3)
    assert chip.read32(*LINKED, 0x100) == 0
    chip.write32(*LINKED, SOFT_RESET, 0)
    chip.run(rounds=3)
    assert chip.read32(*LINKED, 0x100) == 7


def test_tensix_and_ethernet_tiles_reach_each_other_over_both_nocs() -> None:
    chip = LinkedChip(0)
    chip.write(*LINKED, DATA, bytes(range(64)))
    read = p.send(p.READ, (DATA, p.hi(LINKED)), (0x20000, HOME), 64, noc=1)
    p.put(chip, OWN, read, p.send(p.INLINE, (STREAM, p.hi(LINKED)), (0, HOME), data=9))
    write = p.send(p.WRITE, (DATA, p.hi(LINKED)), (0x30000, HOME), 32, noc=1)
    start(chip, LINKED, write)
    chip.run()
    assert chip.read(*OWN, 0x20000, 64) == bytes(range(64))
    assert chip.read(*OWN, 0x30000, 32) == bytes(range(32))
    assert chip.read32(*LINKED, STREAM) == 9


def test_a_multicast_leaves_ethernet_tiles_out() -> None:
    chip = LinkedChip(0)
    many = p.send(p.WRITE | p.MULTICAST, (DATA, HOME), (DATA, p.box((1, 1), (2, 3))), 16)
    chip.write(*OWN, DATA, b"to all of them, ")
    p.put(chip, OWN, many)
    chip.run()
    assert chip.read(2, 3, DATA, 16) == b"to all of them, "
    assert chip.read(*ALONE, DATA, 16) == bytes(16)
    assert chip.read(*LINKED, DATA, 16) == bytes(16)


def test_a_write_beyond_its_l1_is_refused() -> None:
    chip = LinkedChip(0)
    p.put(chip, OWN, p.send(p.WRITE, (DATA, HOME), (0x80000, p.hi(LINKED)), 16))
    with pytest.raises(BhemuError) as caught:
        chip.run()
    assert caught.value.rule == "NOC-REMOTE"


def test_a_queue_copies_l1_to_the_other_end(pair: tuple[list[Chip], Links]) -> None:
    chips, links = pair
    chips[0].write(*LINKED, DATA, bytes(range(64)))
    start(chips[0], LINKED, command(2, to=0x9000), load(TXQ + STATUS, 0x100))
    rounds(chips, links, 2)
    assert chips[1].read(*OTHER, 0x9000, 64) == bytes(range(64))
    assert chips[0].read32(*LINKED, 0x100) == 1 << 16  # it was under way
    assert chips[0].read32(*LINKED, TXQ + CMD) == 0


def test_commands_of_a_queue_go_one_after_the_other(pair: tuple[list[Chip], Links]) -> None:
    """The register is written after the bytes, and what the core does meanwhile waits."""
    chips, links = pair
    chips[0].write(*LINKED, DATA, b"first bytes 1234")
    both = command(2, size=16) + command(4, to=STREAM, word=5) + command(4, to=0x9000, word=6)
    start(chips[0], LINKED, both, store(0x100, 1))
    rounds(chips, links, 1)
    assert chips[1].read(*OTHER, DATA, 16) == b"first bytes 1234"
    assert chips[1].read32(*OTHER, STREAM) == 0
    assert chips[0].read32(*LINKED, 0x100) == 0
    rounds(chips, links, 3)
    assert chips[1].read32(*OTHER, STREAM) == 5
    assert chips[1].read32(*OTHER, 0x9000) == 6
    assert chips[0].read32(*LINKED, 0x100) == 1


def test_both_ends_send_at_once_and_see_what_came(pair: tuple[list[Chip], Links]) -> None:
    chips, links = pair
    wait = [*li(A0, 0x9000), lw(A1, A0), beq(A1, ZERO, -4)]
    for n, (chip, xy) in enumerate(zip(chips, (LINKED, OTHER), strict=True)):
        chip.write(*xy, DATA, bytes([n + 1] * 16))
        start(chip, xy, command(2, size=16, to=0x9000), wait, store(0x100, n + 1))
    rounds(chips, links, 4)
    assert chips[0].read(*LINKED, 0x9000, 16) == bytes([2] * 16)
    assert chips[1].read(*OTHER, 0x9000, 16) == bytes([1] * 16)
    assert chips[0].read32(*LINKED, 0x100) == 1
    assert chips[1].read32(*OTHER, 0x100) == 2


REFUSED: dict[str, tuple[str, list[int]]] = {
    "command": ("ETH-TXQ-COMMAND", command(1)),
    "register of queue 2": ("ETH-TXQ-COMMAND", command(4, to=STREAM, queue=2)),
    "start": ("ETH-TXQ-PLACE", command(2, start=DATA + 4)),
    "size": ("ETH-TXQ-PLACE", command(2, size=8)),
    "nothing": ("ETH-TXQ-PLACE", command(2, size=0)),
    "end": ("ETH-TXQ-PLACE", command(2, to=0x7FFF0, size=32)),
    "half a word": ("ETH-TXQ-PLACE", command(4, to=STREAM + 2)),
    "mode": ("MMIO-FIELD", store(TXQ + CONTROL, 3)),
    "header": ("MMIO-FIELD", store(TXQ + 0x84, 10)),
    "RX": ("MMIO-FIELD", store(0xFFB94000, 1)),
    "routing": ("MMIO-FIELD", store(0xFFB98150, 1)),
    "interrupt": ("MMIO-FIELD", store(0xFFB14020, 1)),
    "status": ("MMIO-READ-ONLY", store(TXQ + STATUS, 1)),
    "start is write-only": ("MMIO-WRITE-ONLY", load(TXQ + FROM, 0x100)),
    "no register": ("MMIO-NOT-MODELLED", store(0xFFB98000, 1)),
    "no coprocessor": ("MMIO-UNMAPPED", load(0xFFEF0000, 0x100)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_modelled_is_refused_by_name(name: str) -> None:
    rule, words = REFUSED[name]
    chip = LinkedChip(0)
    start(chip, LINKED, words)
    with pytest.raises(BhemuError) as caught:
        chip.run(rounds=3)
    assert caught.value.rule == rule, caught.value
    assert caught.value.where is not None
    assert caught.value.where.tile == LINKED


def test_a_tile_without_a_link_sends_nothing() -> None:
    chip = LinkedChip(0)
    start(chip, ALONE, command(2))
    with pytest.raises(BhemuError) as caught:
        chip.run(rounds=3)
    assert caught.value.rule == "ETH-NO-LINK"


def test_what_the_other_end_refuses_names_the_link(pair: tuple[list[Chip], Links]) -> None:
    chips, links = pair
    start(chips[0], LINKED, command(4, to=0xFFB98000))
    with pytest.raises(NotModelled) as caught:
        rounds(chips, links, 2)
    assert caught.value.rule == "ETH-REMOTE"
    assert "(22, 25) to (29, 25)" in caught.value.message


def test_a_call_of_the_chip_s_firmware_is_refused() -> None:
    with pytest.raises(NotModelled) as caught:
        LinkedChip(0).write32(*LINKED, 0x7D000, 0xCA110002)
    assert caught.value.rule == "ETH-MAILBOX"


def test_time_passes_for_the_cores() -> None:
    chip = LinkedChip(0)
    start(chip, ALONE, load(0xFFB98850, 0x100), load(0xFFB98850, 0x104), load(0xFFB9800C, 0x108))
    chip.run(rounds=3)
    first, second, up = (chip.read32(*ALONE, at) for at in (0x100, 0x104, 0x108))
    assert 0 < first < second < 1000
    assert up == 1
