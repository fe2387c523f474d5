"""The check "transfers": an order that goes from tile to tile with what they send."""

import os
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import planted
import pytest
from corpus import checked
from order_walk.looks import Look
from order_walk.steps import Executed

from bhemu.devices import niu_request as request
from bhemu.riscv.assembly import addi, branch
from bhemu.tensix.state import NOC_FIELDS
from bhemu.why.order import EVENT, VECTOR
from bhemu.why.order.tiles import Channels, Sent

TILES = (
    "relay",
    "collect",
    "pull",
    "votes",
    "shelf",
    "all_gather",
    "credits",
    "scatter",
    "matmul_mcast",
)
NAMES = {
    one["name"]
    for one in tomllib.loads((planted.PROGRAMS.parent / "planted/tiles.toml").read_text())["bug"]
}
BUGS = [bug for bug in planted.bugs() if bug.name in NAMES and bug.points == 2]
STATIC = request.STATIC_CHANNEL | 1 << 13
BLTU = 6


@pytest.mark.parametrize(
    "bug",
    BUGS if os.environ.get("BHEMU_LONG") else BUGS[::4],
    ids=lambda bug: bug.name.replace(" ", "-"),
)
def test_a_bug_between_tiles(bug: planted.Bug, compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(bug, tmp_path / "bug", compiler)
    found = checked(made.folder, "transfers")
    assert planted.rank(made, found) == 1, [one["text"] for one in found]


@pytest.mark.parametrize("name", TILES)
def test_the_twin_is_silent(name: str, compiler: ModuleType, tmp_path: Path) -> None:
    path = planted.ROOT / "elfs" / name
    if not path.is_dir():
        path = tmp_path / "twin"
        planted.own(name, path, compiler)
    assert checked(path, "transfers") == []


# What a look at a word proves


def step(word: int, pc: int = 0, **registers: int) -> Executed:
    regs = np.zeros(32, np.uint32)
    for name, value in registers.items():
        regs[int(name[1:])] = value
    return Executed(0, 0, pc, word, regs)


def look(least: int, value: int, *behind: int) -> Look:
    """lw x5; what is between; bltu x5, x6: below `least` it goes round again."""
    held, steps = value, []
    for word in behind:
        steps.append(step(word, x5=held, x6=least))
        held += 2
    steps.append(step(branch(BLTU, 5, 6, -8), x5=held, x6=least))
    return Look(0x100, step(0x00002283), steps)


def test_a_look_ends_as_it_would_with_another_value() -> None:
    plain = look(3, 7)
    assert not plain.ended
    assert [plain.ends(n) for n in (0, 2, 3, 9)] == [True, True, False, False]
    more = look(3, 7, addi(5, 5, 2))
    assert [more.ends(n) for n in (0, 1, 2)] == [True, False, False]


# In which order requests arrive


def arrivals(*controls: int, nocs: tuple[int, ...] = (0, 0)) -> list[bool]:
    """Whether each request but the first is known to arrive after the one before it."""
    channels, found, last = Channels(2), [], None
    for noc, control in zip(nocs, controls, strict=True):
        row = np.zeros(NOC_FIELDS, np.int64)
        row[request.NOC], row[request.CONTROL], row[request.GIVEN] = noc, control, 0x82
        agent, clock = channels.arrival(0, row, np.zeros(VECTOR, np.int64))
        if last is not None:
            found.append(bool(clock[last[0]] >= last[1][last[0]]))
        last = agent, clock
    return found


def test_requests_of_one_channel_arrive_in_order_and_an_increment_may_overtake() -> None:
    write, atomic = request.WRITE | STATIC, request.ATOMIC | STATIC
    assert arrivals(write, write) == [True]
    assert arrivals(atomic, atomic) == [True]
    assert arrivals(write, request.READ | STATIC) == [True]
    assert arrivals(write, atomic) == [False]
    assert arrivals(request.WRITE, request.WRITE) == [False]
    assert arrivals(write, write ^ 3 << 13) == [False]
    assert arrivals(write, write, nocs=(0, 1)) == [False]
    assert arrivals(write | request.LINKED, atomic) == [True]


def test_a_write_with_byte_enables_reaches_from_the_first_to_the_last_of_them() -> None:
    row = np.zeros(NOC_FIELDS, np.int64)
    row[request.CONTROL] = request.WRITE | request.BYTE_ENABLES
    row[request.REMOTE], row[request.LENGTH] = 0x20010, 0xF0
    sent = Sent(0, [0] * EVENT, row, np.zeros(1, np.int64), 0)
    assert sent.remote == (0x20014, 0x20018)
    assert sent.is_flag
