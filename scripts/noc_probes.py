"""Published transfers of cards, repeated in modelled time: bursts over the NoC up to their barrier.

Brisc of tile (1,2) asks for all transfers of a burst, then polls the counter of answers. The loop
is shorter than that of tt-metal's kernels: where transfers are so small that their loop decides,
from four on, a row compares two loops, and is marked so.
"""

import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from bhemu import Chip
from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.devices import niu_request as request
from bhemu.riscv import assembly as asm

ANCHORS = Path(__file__).with_name("noc_anchors.toml")
OWN, DATA, RESULT = (1, 2), 0x20000, 0x1000
CLOCK = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_WALL_CLOCK_0
TARGETS = {("L1", True): (1, 5), ("L1", False): (5, 6), ("DRAM", False): (17, 13)}
LOOP = 2048  # bytes up to which the loop decides in a burst of several transfers
Row = dict[str, Any]


def program(row: Row, size: int, at: tuple[int, int], target: tuple[int, int]) -> bytes:
    """The code of brisc of tile `at`: a burst of `row`, then its cycles are stored at RESULT."""
    reads = row["direction"] == "read"
    control = request.READ if reads else request.WRITE | request.ANSWERED
    remote, own = target[1] << 6 | target[0], at[1] << 6 | at[0]
    there, back = (remote, own) if reads else (own, remote)
    counter = mm.NIU_COUNTERS + 4 * (niu.READ_ANSWERS if reads else niu.ACKS)
    t0, t1, t2, a0, a1, s0 = asm.T0, asm.T1, asm.T2, asm.A0, asm.A1, 8
    target_lo, back_lo = mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO
    body = [
        asm.lw(a1, t0, mm.NOC_CMD_CTRL), asm.bne(a1, asm.ZERO, -4),
        asm.sw(s0, t0, back_lo), asm.sw(s0, t0, target_lo),
        asm.sw(14, t0, target_lo + 8), asm.sw(15, t0, mm.NOC_AT_LEN_BE),
        asm.sw(9, t0, mm.NOC_CMD_CTRL), asm.addi(a0, a0, -1),
    ]  # fmt: skip
    return asm.code(
        asm.li(t0, mm.NOC0_BASE), asm.li(s0, DATA), asm.li(9, 1), asm.li(a0, row["transfers"]),
        asm.li(14, there), asm.li(15, size),
        asm.li(a1, control), asm.sw(a1, t0, mm.NOC_CTRL),
        asm.li(a1, back), asm.sw(a1, t0, back_lo + 8),
        asm.li(13, CLOCK), asm.li(12, row["transfers"]),
        asm.lw(t1, 13, 0), asm.add(t1, t1, asm.ZERO),
        [*body, asm.bne(a0, asm.ZERO, -4 * len(body))],
        [asm.lw(a1, t0, counter), asm.bne(a1, 12, -4)],
        asm.lw(t2, 13, 0), asm.word("sub", t2, t2, t1),
        asm.li(a1, RESULT), asm.sw(t2, a1, 0), asm.jal(asm.ZERO, 0),
    )  # fmt: skip


def cycles(row: Row, size: int) -> int:
    """Cycles of a burst of transfers of `size` bytes, up to its barrier."""
    chip = Chip(timing="model")
    tile = chip.tile[OWN]
    target = TARGETS[row["memory"], row["same_axis"]]
    tile.write(0, program(row, size, OWN, target))
    tile.core["brisc"].release()
    chip.run(lambda _: tile.read32(RESULT) != 0, limit=2_000_000)
    return tile.read32(RESULT)


def table() -> str:
    """The page's table: card and model for each burst, and the errors by family."""
    lines = ["| burst | bytes | card | model | error | |", "|---|---:|---:|---:|---:|---|"]
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in tomllib.loads(ANCHORS.read_text())["burst"]:
        axis = "one axis" if row["same_axis"] else "two axes"
        name = f"{row['transfers']} x {row['direction']}, {row['memory']}, {axis}"
        for size, card in row["cycles"].items():
            loop = row["transfers"] > 1 and int(size) <= LOOP
            calibrates = int(size) in row["calibrates"]
            model = cycles(row, int(size))
            error = model / card - 1
            used = "calibrates" if calibrates else "another loop" if loop else ""
            errors[row["memory"], used].append(abs(error))
            lines.append(f"| {name} | {size} | {card} | {model} | {100 * error:+.1f} % | {used} |")
    for (memory, used), of in errors.items():
        median, worst = 100 * float(np.median(of)), 100 * max(of)
        which = {"calibrates": "that calibrate", "": "others"}.get(used, f"with {used}")
        lines += ["", f"{memory}, {len(of)} {which}: median {median:.1f} %, worst {worst:.1f} %."]
    return "\n".join(lines)
