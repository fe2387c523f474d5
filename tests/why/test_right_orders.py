"""Orders that audits have called races and hardware keeps: no late run and no check shows one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import alarm_programs
import numpy as np
import pytest
from script_module import script

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.launch import Program
from bhemu.riscv.assembly import (
    A0,
    A1,
    PARK,
    RA,
    RET,
    T1,
    ZERO,
    bne,
    code,
    jal,
    li,
    lw,
    sw,
)

SEEDS = range(50 if os.environ.get("BHEMU_LONG") else 12)
ALARMS = script("scripts/check_alarms.py")
PAYLOAD, FLAG, ONE, ZEROS, DONE, BEGUN = range(0x20000, 0x20600, 0x100)  # in L1
OLD, NEW = 0x01010101, 0x1234
USED = 0x00637033  # and x0, t1, t1
FENCE = 0x0FF0000F
SENDER, RECEIVER, OTHER = (1, 2), (2, 2), (3, 2)
XY = tuple[int, int]
Kernels = dict[tuple[XY, str], list[int]]


def at(xy: XY) -> int:
    return xy[1] << 6 | xy[0]


def store(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), sw(A1, A0)]


def wait(address: int, value: int, between: Sequence[int] = ()) -> list[int]:
    """Poll a word; `between`: executed before each load."""
    back = -4 * (len(between) + 1)
    return [*li(A0, address), *li(A1, value), *between, lw(T1, A0), bne(T1, A1, back)]


def ended(payload: int) -> list[int]:
    """The word at `payload` goes to the result: a load that is used, then a store."""
    return [*li(A0, payload), lw(T1, A0), *li(A0, DONE + 4), sw(T1, A0), *store(DONE, 1)]


def ask(
    control: int, target: tuple[int, int], back: tuple[int, int], n: int, tag: int
) -> list[int]:
    """A request of NoC 0: control, (address, coordinate) at both ends, bytes."""
    words = [
        (mm.NOC_CTRL, control), (mm.NOC_PACKET_TAG, tag), (mm.NOC_AT_LEN_BE, n),
        (mm.NOC_TARG_ADDR_LO, target[0]), (mm.NOC_TARG_ADDR_LO + 8, target[1]),
        (mm.NOC_RET_ADDR_LO, back[0]), (mm.NOC_RET_ADDR_LO + 8, back[1]), (mm.NOC_CMD_CTRL, 1),
    ]  # fmt: skip
    free = wait(mm.NOC0_BASE + mm.NOC_CMD_CTRL, 0)
    return [*free, *(w for place, value in words for w in store(mm.NOC0_BASE + place, value))]


def counter(number: int) -> int:
    return mm.NOC0_BASE + mm.NIU_COUNTERS + 4 * number


def flag_behind_payload() -> Kernels:
    """Payload, then flag, by multicast on one virtual channel of one NoC."""
    channel = request.STATIC_CHANNEL | 4 << 13
    control = request.WRITE | request.ANSWERED | request.MULTICAST | channel
    both = RECEIVER[0] << 12 | RECEIVER[1] << 18 | at(OTHER)
    sends = [
        ask(control, (ONE, at(SENDER)), (to, both), n, 0) for to, n in ((PAYLOAD, 16), (FLAG, 4))
    ]
    barrier = wait(counter(niu.ACKS), 4)
    receive = [*wait(FLAG, NEW), *ended(PAYLOAD)]
    kernels = {(xy, "brisc"): receive for xy in (RECEIVER, OTHER)}
    return {**kernels, (SENDER, "brisc"): [*sends[0], *sends[1], *barrier, *ended(ONE)]}


def zeros_read() -> Kernels:
    """Zeros are written by a read of the own zeros: its barrier is that of reads."""
    read = ask(request.READ | request.ANSWERED, (ZEROS, at(SENDER)), (PAYLOAD, at(SENDER)), 64, 0)
    return {(SENDER, "brisc"): [*read, *wait(counter(niu.READ_ANSWERS), 1), *ended(PAYLOAD)]}


def drained_by_transaction() -> Kernels:
    """An atomic, waited for by its transaction id; then a flag says that it is done."""
    add = request.INCREMENT << 12 | 31 << 2
    atomic = ask(
        request.ATOMIC | request.ANSWERED, (PAYLOAD, at(RECEIVER)), (0, at(SENDER)), add, 3 << 10
    )
    increment = [*store(mm.NOC0_BASE + mm.NOC_AT_DATA, 1), *atomic]
    drained = wait(counter(niu.OUTSTANDING + 3), 0)
    flag = ask(request.WRITE | request.ANSWERED, (ONE, at(SENDER)), (FLAG, at(RECEIVER)), 4, 0)
    send = [*increment, *drained, *flag, *wait(counter(niu.ACKS), 1), *ended(ONE)]
    return {(SENDER, "brisc"): send, (RECEIVER, "brisc"): [*wait(FLAG, NEW), *ended(PAYLOAD)]}


def fence_in_a_function() -> Kernels:
    """A poll whose fence is in a function that it calls; both lines were loaded before."""
    kept = [w for place in (PAYLOAD, FLAG) for w in (*li(A0, place), lw(T1, A0), USED)]
    begin = [*kept, *store(BEGUN, 1), jal(ZERO, 12), FENCE, RET]
    poll = wait(FLAG, NEW, [jal(RA, -4 * (2 + 4))])
    found = [*li(A0, PAYLOAD), lw(T1, A0), USED]
    give = [*store(PAYLOAD, NEW), *found, *store(FLAG, NEW)]
    mine = [*begin, *poll, *ended(PAYLOAD)]
    return {(SENDER, "brisc"): mine, (SENDER, "trisc0"): [*wait(BEGUN, 1, [FENCE]), *give]}


class Order(NamedTuple):
    kernels: Kernels
    left: dict[XY, int]  # results
    run: str = ""


ORDERS = {
    "flag after payload": Order(flag_behind_payload(), {SENDER: NEW, RECEIVER: NEW, OTHER: NEW}),
    "zeros by a read": Order(zeros_read(), {SENDER: 0}),
    "transaction id": Order(drained_by_transaction(), {SENDER: NEW, RECEIVER: OLD + 1}),
    "fence in a function": Order(fence_in_a_function(), {SENDER: NEW}, 'l0 = "model"'),
}


def program(order: Order, folder: Path) -> Path:
    """A chip of tiles that are told apart by their kernels; what each of them has found."""
    folder.mkdir()
    lines, done = ["bhemu = 1", 'kind = "image"'], []
    for n, xy in enumerate(order.left):
        l1 = np.zeros(mm.L1_SIZE, np.uint8)
        place = f"{xy[0]},{xy[1]}"
        lines += ["[[tile]]", f'at = "{place}"', f'image = {{ file = "l1_{n}.npz" }}']
        lines += ["[tile.cores]"]
        for (where, core), words in order.kernels.items():
            if where == xy:
                first = alarm_programs._STARTS[core]
                text = np.frombuffer(code(words, PARK), np.uint8)
                l1[first : first + len(text)] = text
                lines += [alarm_programs._core(core)]
        l1[PAYLOAD : PAYLOAD + 64] = 1
        l1[ONE : ONE + 4].view(np.uint32)[0] = NEW
        alarm_programs.image(folder / f"l1_{n}.npz", l1)
        np.array([order.left[xy]], np.uint32).tofile(folder / f"left_{n}.bin")
        where_left = f'at = {DONE + 4:#x}\ntile = "{place}"'
        lines += alarm_programs.output(f"left_{n}", f"left_{n}.bin", where_left)
        done.append(alarm_programs.word(DONE, 1, f', tile = "{place}"'))
    lines += ["[run]", f"until = [{', '.join(done)}]", order.run]
    return alarm_programs.written(folder, lines)


@pytest.mark.parametrize("name", ORDERS)
def test_no_late_run_shows_it(name: str, tmp_path: Path) -> None:
    path = program(ORDERS[name], tmp_path / "program")
    for late in (None, *SEEDS):
        machine = Program.load(path).launch(**({} if late is None else {"late": late}))
        assert machine.run(limit=1_000_000).reason == "until", late
        assert [one.name for one in machine.check() if not one.equal] == [], late


@pytest.mark.parametrize("name", ORDERS)
def test_no_check_of_order_tells_of_it(name: str, tmp_path: Path) -> None:
    path = program(ORDERS[name], tmp_path / "program")
    result = ALARMS.checked(path, "races,barriers,transfers,stale")
    assert result["error"] is None and result["exit_code"] == 0, result
    assert result["findings"] == []
