"""Transfers of published measurements of cards, sent again in modelled time.

A probe issues its requests one by one, `pace` cycles apart, and waits for all answers; its figure
is the time between two readings of the wall clock. Programs are unrolled. The figures of the cards
stand in noc_anchors.toml; scripts/make_timing.py writes the tables.
"""

import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bhemu import Chip
from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.riscv import assembly as asm

ANCHORS = Path(__file__).with_name("noc_anchors.toml")
CLOCK = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_WALL_CLOCK_0
CHANNEL = 13  # the first bit of the static virtual channel in NOC_CTRL
RESULT, DATA, DRAM_DATA = 0x160000, 0x100000, 0x100000
LONGEST = 16384
HARVEST = (7, 10)  # of the card of the flows
BASE, VALUE = 11, 12
HERE, COLUMN, BOTH = (1, 2), (1, 5), (3, 5)
BANKS = tuple((17 + bank // 4, 12 + 3 * (bank % 4)) for bank in range(8))
XY = tuple[int, int]
READER_PACE = 22  # as of reads of DRAM
READERS = 16  # of more the run takes minutes
CAST_PACE = 23  # as of linked multicasts: 2060 cycles for 64 of 64 bytes, 6475 for 256
PACE = 34.5  # of the program of the flows: 2534 cycles for 64 requests of 64 bytes


class Flow(NamedTuple):
    """Requests of a tile to some places, one after the other."""

    at: XY
    to: tuple[XY, ...]
    kind: str
    noc: int
    requests: int
    size: int
    pace: float
    channel: int = 1
    step: int = 0  # bytes between two requests at the target
    cast: "Cast | None" = None


class Cast(NamedTuple):
    """A multicast: from its sender's corner to the other one, of how many tiles."""

    receivers: int
    itself: bool  # whether the sender is one of them
    linked: bool  # all of a burst but the last one


class Point(NamedTuple):
    """A figure of a card and of the model."""

    family: str
    name: str
    card: float
    model: float
    calibrates: bool

    @property
    def error(self) -> float:
        """Of the model, as a part of the card's figure."""
        return self.model / self.card - 1


def _store(at: int, value: int) -> list[int]:
    return [*asm.li(VALUE, value), asm.sw(VALUE, BASE, at)]


def _hi(xy: XY) -> int:
    return xy[0] | xy[1] << 6


def program(flow: Flow) -> bytes:
    """The code of a flow: the two readings of the clock go to RESULT."""
    reads = flow.kind == "read"
    far, near = mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO
    if not reads:
        far, near = near, far
    control = request.READ if reads else request.WRITE
    control |= request.ANSWERED | request.STATIC_CHANNEL | flow.channel << CHANNEL
    place, linked = _hi(flow.to[0]), 0
    if flow.cast:
        control |= request.MULTICAST | (request.SELF if flow.cast.itself else 0)
        place |= _hi(flow.at) << 12
        linked = request.LINKED if flow.cast.linked else 0
    parts = max(flow.size // LONGEST, 1)
    dram = flow.to[0] in BANKS
    words = [
        *asm.li(BASE, mm.NOC0_BASE + flow.noc * mm.NOC_SIZE), *asm.li(asm.T0, CLOCK),
        *_store(near, DATA), *_store(near + 8, _hi(flow.at)),
        *_store(mm.NOC_CTRL, control | linked),
        *_store(far, DRAM_DATA if dram else DATA), *_store(far + 4, 0),
        *_store(far + 8, place), *_store(mm.NOC_AT_LEN_BE, min(flow.size, LONGEST)),
        *asm.li(13, 1), asm.lw(8, asm.T0, 0), asm.add(8, 8, asm.ZERO),
    ]  # fmt: skip
    due = [round(t) for t in accumulate([flow.pace] * flow.requests)]
    last = 0
    for i in range(flow.requests):
        body: list[int] = []
        if len(flow.to) > 1:
            body += _store(far + 8, _hi(flow.to[i % len(flow.to)]))
        if flow.step:
            body += _store(far, DRAM_DATA + i * flow.step)
        if linked and i == flow.requests - 1:
            body += _store(mm.NOC_CTRL, control)
        body += [asm.sw(13, BASE, mm.NOC_CMD_CTRL)] * parts
        words += body + [asm.addi(asm.ZERO, asm.ZERO, 0)] * (due[i] - last - len(body))
        last = due[i]
    receivers = flow.cast.receivers if flow.cast else 1
    counter = mm.NIU_COUNTERS + 4 * (niu.READ_ANSWERS if reads else niu.ACKS)
    words += [
        *asm.li(VALUE, flow.requests * parts * receivers), asm.lw(10, BASE, counter),
        asm.bne(10, VALUE, -4), asm.lw(9, asm.T0, 0),
        *asm.li(BASE, RESULT), asm.sw(8, BASE, 0), asm.sw(9, BASE, 4),
    ]  # fmt: skip
    return asm.code(words, asm.PARK)


def run(flows: list[Flow], harvest: tuple[int, ...] = ()) -> list[int]:
    """Cycles of each flow, all begun at once."""
    chip = Chip(timing="model", harvest=harvest)
    for flow in flows:
        chip.tile[flow.at].write(0, program(flow))
    for flow in flows:
        chip.tile[flow.at].core["brisc"].release()
    chip.run(timeout_s=None)
    read = chip.tile
    return [read[f.at].read32(RESULT + 4) - read[f.at].read32(RESULT) for f in flows]


def bursts(anchors: dict[str, Any]) -> Iterator[Point]:
    """A tile and another tile, or DRAM: by size and number of requests."""
    for one in anchors["burst"]:
        kind, where = one["family"].split(" ", 1)
        to: tuple[XY, ...] = (COLUMN if one["one_axis"] else BOTH,)
        if where != "L1":
            to = BANKS if where.endswith("banks") else BANKS[:1]
        n = one["requests"]
        for i, card in enumerate(one["cycles"]):
            size = 64 << i
            flow = Flow(HERE, to, kind, one["noc"], n, size, one["pace"])
            sets = (size == 64 and n in (1, 64, 256)) or (size == LONGEST and n == 64)
            if where == "DRAM":  # the rates of a bank, and what it keeps
                sets = sets or (size >= 2048 and n in ((64,) if kind == "read" else (4, 64)))
            yield Point(one["family"], f"{n} of {size}", card, run([flow])[0], sets)


def multicasts(anchors: dict[str, Any]) -> Iterator[Point]:
    """A tile and those of a rectangle of which it is a corner: by size and number of requests.

    The tiles of the card are not published: they are taken to be the first of the grid, and the
    sender no receiver where it is no loopback.
    """
    columns, rows = range(1, 15), range(2, 12)
    grid = [x for x in columns if x not in (8, 9)]
    for one in anchors["multicast"]:
        wide, high = one["grid"]
        n, linked = one["requests"], one["linked"]
        cast = Cast(wide * high - (not one["loopback"]), one["loopback"], linked)
        family = f"{'linked ' if linked else ''}multicast"
        for i, card in enumerate(one["cycles"]):
            to = (grid[wide - 1], rows[high - 1])
            flow = Flow(HERE, (to,), "write", 0, n, 64 << i, CAST_PACE, 4, cast=cast)
            yield Point(
                family,
                f"{n} of {64 << i} to {wide}x{high}",
                card,
                run([flow])[0],
                i == 0 and one["sets"],
            )


def flows(anchors: dict[str, Any]) -> Iterator[Point]:
    """Flows of a card, some of which share links: the mean of each point."""
    for one in anchors["flows"]:
        made = [
            Flow(
                (x, y), ((u, v),), one["kind"], one["noc"], one["requests"], one["bytes"], PACE, vc
            )
            for x, y, u, v, vc, _ in one["flows"]
        ]
        for i, model in enumerate(run(made, HARVEST)):
            family = f"flows: {one['family']}"
            sets = one["family"] == "hops" or one["point"] == "64B"
            yield Point(family, f"{one['point']} {i}", one["flows"][i][-1], model, sets)


def readers(anchors: dict[str, Any]) -> Iterator[Point]:
    """Tiles that read DRAM at once, of one bank or of all."""
    grid = [(x, y) for y in range(2, 12) for x in (*range(1, 8), *range(10, 15))]
    for one in anchors["readers"]:
        n = one["readers"]
        if n > READERS:
            continue
        banks = BANKS if one["family"] == "fanchan" else BANKS[:1]
        made = [
            Flow(at, (banks[i % len(banks)],), "read", 0, 256, 4096, READER_PACE, step=4096)
            for i, at in enumerate(grid[:n])
        ]
        yield Point(
            f"DRAM: {one['family']}",
            f"{n} readers",
            one["cycles"],
            max(run(made, HARVEST)),
            one["family"] == "onechan",
        )


def points() -> list[Point]:
    """All of them."""
    anchors = tomllib.loads(ANCHORS.read_text())
    return [*bursts(anchors), *multicasts(anchors), *flows(anchors), *readers(anchors)]


def summary(found: list[Point]) -> list[tuple[str, bool, int, float, float]]:
    """(family, whether it calibrates, points, median error, worst error), in order of family."""
    rows = []
    for family in dict.fromkeys(point.family for point in found):
        for calibrates in (True, False):
            of = [abs(p.error) for p in found if p.family == family and p.calibrates == calibrates]
            if of:
                rows.append((family, calibrates, len(of), float(np.median(of)), max(of)))
    return rows
