"""What a request is refused for: the rule, both ends and the whole request in the message."""

from typing import Any

import noc_program as p
import pytest

from bhemu.errors import BhemuError
from bhemu.machine.machine import Chip
from bhemu.riscv.assembly import A0, A1, li, sw

OWN, OTHER = (1, 2), (3, 4)
HOME, AWAY = p.hi(OWN), p.hi(OTHER)
DRAM, PCIE, L2CPU, NOWHERE = p.hi((17, 12)), p.hi((19, 24)), p.hi((8, 3)), p.hi((30, 30))
L1 = 0x20000
REGISTER = 0xFFB48020


def read(source: tuple[int, int], local: int = L1, n: int = 16, **more: int) -> list[int]:
    return p.send(p.READ, source, (local, HOME), n, **more)


def write(target: tuple[int, int], local: int = L1, n: int = 16, **more: int) -> list[int]:
    control = more.pop("control", p.WRITE)
    return p.send(control, (local, HOME), target, n, **more)


def atomic(target: tuple[int, int], operands: int = p.INCREMENT, answer: int = 4) -> list[int]:
    return p.send(p.ATOMIC, target, (answer, HOME), operands)


def configure(offset: int, value: int) -> list[int]:
    return [*li(A1, p.NIU[0] + offset), *li(A0, value), sw(A0, A1)]


CASES: dict[str, tuple[str, list[int]]] = {
    "type 3": ("NOC-KIND", write((L1, AWAY), control=0x93)),
    "reserved": ("NOC-RESERVED", write((L1, AWAY), control=p.WRITE | 1 << 20)),
    "accumulate": ("NOC-L1-ACCUMULATE", write((L1, AWAY), control=p.WRITE | 1 << 31)),
    "drop": ("NOC-DROP-ACK", write((L1, AWAY), control=p.WRITE | 1 << 9)),
    "class of unicast": ("NOC-CHANNEL", write((L1, AWAY), control=p.WRITE | 4 << 13)),
    "class of multicast": ("NOC-CHANNEL", write((L1, p.box(OWN, OTHER)), control=0x1B2)),
    "multicast read": ("NOC-MULTICAST-READ", p.send(0x81B0, (L1, p.box(OWN, OTHER)), (L1, HOME))),
    "exclude": (
        "NOC-EXCLUDE",
        write((L1, p.box(OWN, OTHER)), control=p.WRITE | p.MULTICAST, exclude=1),
    ),
    "overlay": ("NOC-OVERLAY", write((L1, AWAY), tag=1 << 6)),
    "header store": ("NOC-OVERLAY", write((L1, AWAY), tag=1 << 9)),
    "no tile": ("NOC-COORDINATE", write((L1, NOWHERE))),
    "no tile, read": ("NOC-COORDINATE", read((L1, NOWHERE))),
    "no corner": (
        "NOC-COORDINATE",
        write((L1, p.box(OWN, (30, 30))), control=p.WRITE | p.MULTICAST),
    ),
    "no own tile": ("NOC-COORDINATE", p.send(p.READ, (L1, AWAY), (L1, NOWHERE))),
    "L2CPU": ("NOC-ENDPOINT", write((L1, L2CPU))),
    "third tile": ("NOC-THIRD-TILE", p.send(p.READ, (L1, AWAY), (L1, AWAY))),
    "nothing": ("NOC-LENGTH", read((L1, AWAY), n=0)),
    "too long": ("NOC-LENGTH", read((L1, AWAY), n=16385)),
    "own address": ("NOC-LOCAL", read((0x17FFF0, AWAY), local=0x17FFF0, n=32)),
    "own register": ("NOC-LOCAL", write((REGISTER, AWAY), local=REGISTER, n=4)),
    "other address": ("NOC-REMOTE", write((0x17FFF0, AWAY), n=32)),
    "between L1 and registers": ("NOC-REMOTE", write((0x200000, AWAY))),
    "end of DRAM": ("NOC-REMOTE", write((0xFEFFFFF0, DRAM), n=32)),
    "beyond 32 bits": ("NOC-REMOTE", write((1 << 32 | L1, AWAY))),
    "near the end of 64 bits": ("NOC-REMOTE", write((0x7FFFFFFF_FFFFFFF0, AWAY), n=32)),
    "own, near the end": ("NOC-LOCAL", write((L1, AWAY), local=0x7FFFFFFF_FFFFFFF0, n=32)),
    "negative": ("NOC-REMOTE", read((0xFFFFFFFF_FFFFFFC0, DRAM), n=32)),
    "host without bit 60": ("NOC-REMOTE", write((L1, PCIE))),
    "L1 to L1": ("NOC-ALIGNMENT", write((L1 + 4, AWAY))),
    "DRAM modulo 64": ("NOC-ALIGNMENT", read((L1 + 16, DRAM))),
    "PCIe modulo 64": ("NOC-ALIGNMENT", read((1 << 60 | L1 + 32, PCIE))),
    "register modulo 16": ("NOC-ALIGNMENT", write((REGISTER, AWAY), local=L1 + 4, n=4)),
    "register modulo 4": ("NOC-ALIGNMENT", read((REGISTER, AWAY), local=L1 + 2, n=4)),
    "half a register": ("NOC-MMIO", read((REGISTER, AWAY), n=2)),
    "two registers": ("NOC-MMIO", write((REGISTER, AWAY), n=8)),
    "inline to L1": ("NOC-INLINE-L1", p.send(p.INLINE, (L1, AWAY), (0, HOME))),
    "inline to DRAM": ("NOC-INLINE-ENDPOINT", p.send(p.INLINE, (L1, DRAM), (0, HOME))),
    "atomic on a register": ("NOC-ATOMIC-ENDPOINT", atomic((REGISTER, AWAY))),
    "atomic on DRAM": ("NOC-ATOMIC-ENDPOINT", atomic((L1, DRAM))),
    "atomic 5": ("NOC-ATOMIC-OPCODE", atomic((L1, AWAY), 0x5000)),
    "atomic answer": ("NOC-ATOMIC-ANSWER", atomic((L1, AWAY), answer=6)),
    "another destination": (
        "NOC-LINKED",
        [*write((L1, AWAY), control=p.WRITE | p.LINKED), *write((L1, HOME))],
    ),
    "translation table": (
        "NOC-TRANSLATION-TABLE",
        [*li(A1, p.NIU[0] + 0x118), *li(A0, 0x1234), sw(A0, A1)],
    ),
    "clock off": ("NOC-CLOCK", configure(0x100, 1 << 14 | 1 << 12)),
    "request FIFO": ("NOC-REQUEST-FIFO", configure(0x100, 1 << 14 | 1 << 16)),
    "reserved bits of the NIU": ("NOC-CFG-RESERVED", configure(0x100, 1 << 14 | 1 << 3)),
    "reserved bits of the router": ("NOC-CFG-RESERVED", configure(0x104, 1 << 18)),
    "interrupts": ("NOC-INTERRUPT", configure(0x178, 1)),
}


def stopped(words: list[int], **options: Any) -> BhemuError:
    """The error that a chip stops with when brisc of (1,2) runs these words."""
    chip = Chip(**options)
    p.put(chip, OWN, words)
    with pytest.raises(BhemuError) as caught:
        chip.run(limit=100_000)
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_request_is_refused_by_name(name: str) -> None:
    rule, words = CASES[name]
    error = stopped(words)
    assert error.rule == rule, error
    assert error.where is not None
    assert (error.where.tile, error.where.core) == (OWN, "brisc")


def test_the_message_holds_the_whole_request() -> None:
    message = stopped(write((L1 + 4, AWAY), noc=1, initiator=2, tag=5 << 10)).message
    for part in (
        *("local address 0x20000", "remote address 0x20004", "differ modulo 16"),
        *("write of 16 bytes", "Tensix tile (3,4)", "NoC 1 initiator 2", "id 5", "sent by brisc"),
    ):
        assert part in message, message


def test_what_the_target_refuses_names_sender_target_and_request() -> None:
    error = stopped(p.send(p.INLINE, (0xFFB121E0, AWAY), (0, HOME), data=7))
    assert error.rule == "MMIO-NOT-MODELLED"
    assert error.where is not None
    assert (error.where.tile, error.where.core) == (OWN, "brisc")
    for part in ("tile (3,4) refuses", "0xffb121e0", "inline write of 0x7"):
        assert part in error.message, error.message


def test_silicons_way_is_counted_where_the_golden_model_has_another() -> None:
    """NOC-POSTED-ATOMIC and NOC-WRITE-BACK are noted: they stop nothing."""
    chip = Chip()
    posted = p.send(0x81, (L1, AWAY), (4, HOME), p.INCREMENT, data=3)
    p.put(chip, OWN, posted, read((L1, DRAM)))
    chip.run()
    assert chip.tile[OTHER].read32(L1) == 3
    rules = {chip.tile[OWN].state.rule_number[i] for i in range(256)}
    from bhemu.devices.niu_check import POSTED_ATOMIC, WRITE_BACK

    assert {POSTED_ATOMIC, WRITE_BACK} <= rules
