"""Repeats published probes of cards in modelled time, and writes the tables of docs/timing.md.

A probe is an unrolled body of 64 instructions that a loop runs 32, 64, 96 and 128 times; its figure
is the slope of the cycles over the number of instructions, less that of the empty loop. The figures
of the cards stand in timing_anchors.toml, with their sources. Transfers: noc_probes.py. Tiles are
not run here: both figures of each row stand in tile_costs.csv. `--check`: is the page up to date?
"""

import argparse
import csv
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal

import noc_probes
import numpy as np

from bhemu import Tile
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_WALL_CLOCK_0
from bhemu.noc import times
from bhemu.riscv import assembly as asm
from bhemu.tensix.insn import instructions
from bhemu.timing import cycles

ROOT = Path(__file__).parent.parent
PAGE, ANCHORS = ROOT / "docs" / "timing.md", Path(__file__).with_name("timing_anchors.toml")
TILES = Path(__file__).with_name("tile_costs.csv")
BEGIN, END = "<!-- generated: {} -->", "<!-- end: {} -->"
UNROLL, TIMES = 64, (32, 64, 96, 128)
CORES = ("trisc0", "trisc1", "trisc2")
RESULT, CODE, DATA = 0x100, 0x10000, 0x60000
CLOCK = DEBUG_BASE + RISCV_DEBUG_REG_WALL_CLOCK_0
A4, A5, S0, S1 = 14, 15, 8, 9


RING = 64  # lines of 16 bytes, each the address of the next: more than the L0 cache holds


def _chase(i: int) -> int:
    return asm.lw(A4, A4, 0)


CORE_BODIES: dict[str, Any] = {
    "rv_addi_indep": lambda i: asm.addi(20 + i % 8, asm.ZERO, i),
    "rv_addi_dep": lambda i: asm.addi(A5, A5, 1),
    "rv_mul_indep": lambda i: asm.word("mul", 20 + i % 8, S0, S1),
    "rv_mul_dep": lambda i: asm.word("mul", A5, A5, S1),
    "rv_div": lambda i: asm.word("divu", 20 + i % 8, S0, S1),
    "rv_load_chase": _chase,
    "rv_load_indep": lambda i: asm.lw(20 + i % 8, A4, 4 * i),
    "rv_store_spread": lambda i: asm.sw(S0, A4, 16 * i),
    "rv_store_coalesce": lambda i: asm.sw(S0, A4, 4 * (i % 4)),
    "rv_load_stack": lambda i: asm.lw(asm.SP, asm.SP, 0),
    "rv_store_stack": lambda i: asm.sw(S0, asm.SP, 4 * (i % 16)),
    "c_nt": lambda i: asm.bne(asm.ZERO, asm.ZERO, 8),
    "c_jal": lambda i: asm.jal(asm.ZERO, 4),
}
TENSIX_BODIES = {
    **{name: {} for name in ("NOP", "DMANOP", "SFPNOP", "INCRWC", "SETRWC", "SFPABS", "SFPMOV")},
    **{name: {} for name in ("SETDMAREG", "ADDDMAREG", "CMPDMAREG", "MULDMAREG", "SHIFTDMAREG")},
    **{
        name: {"lreg_src_a": 10, "lreg_src_b": 10, "lreg_src_c": 9}
        for name in ("SFPMAD", "SFPADD", "SFPMUL")
    },
    "RDCFG": {},
}


def _body(probe: str) -> list[int]:
    if probe == "loop_overhead":
        return []
    if probe in CORE_BODIES:
        return [CORE_BODIES[probe](i) for i in range(UNROLL)]
    cls = next(cls for cls in instructions().values() if cls.name == probe)
    known = {field.name for field in cls.fields}
    values = {k: v for k, v in TENSIX_BODIES[probe].items() if k in known}
    return [asm.ttinsn(cls.assemble(**values))] * UNROLL


def _program(probe: str, n: int, result: int) -> bytes:
    body = _body(probe)
    loop = [*body, asm.addi(asm.A0, asm.A0, -1)]
    return asm.code(
        asm.li(asm.T0, CLOCK), asm.li(asm.A0, n), asm.li(A4, DATA), asm.li(S0, 0x12345678),
        asm.li(S1, 3), asm.li(A5, 7), asm.li(asm.SP, 0xFFB00400),
        asm.sw(asm.SP, asm.SP, 0),
        asm.lw(asm.T1, asm.T0, 0), asm.add(asm.T1, asm.T1, asm.ZERO),
        [*loop, asm.bne(asm.A0, asm.ZERO, -4 * len(loop))],
        asm.lw(asm.T2, asm.T0, 0), asm.word("sub", asm.T2, asm.T2, asm.T1),
        asm.li(asm.A1, result), asm.sw(asm.T2, asm.A1, 0), asm.jal(asm.ZERO, 0),
    )  # fmt: skip


def run(
    probe: str, n: int, threads: int, ring: int = RING, l0: Literal["off", "model"] = "model"
) -> list[int]:
    """Cycles of `n` passes on each of some cores, between its readings of the clock.

    ring: lines of 16 bytes that rv_load_chase goes round.
    """
    tile = Tile(timing="model", l0=l0, ub="silicon")
    for i in range(ring):
        tile.write32(DATA + 16 * i, DATA + 16 * ((i + 1) % ring))
    cores = CORES[1:2] if threads == 1 else CORES[:threads]
    for i, core in enumerate(cores):
        at = CODE + i * 0x8000
        tile.write(at, _program(probe, n, RESULT + 4 * i))
        tile.core[core].set_reset_pc(at)
        tile.core[core].release()
    done = [(RESULT + 4 * i, lambda value: value) for i in range(len(cores))]
    tile.run(lambda t: all(t.read32(at) for at, _ in done), limit=10_000_000)
    return [tile.read32(at) for at, _ in done]


def slope(probe: str, threads: int) -> float:
    """Cycles an instruction."""
    found = []
    for name in (probe, "loop_overhead"):
        last = [max(run(name, n, threads)) for n in TIMES]
        found.append(float(np.polyfit(TIMES, last, 1)[0]))
    return (found[0] - found[1]) / UNROLL


def anchors() -> str:
    """The table of probes: a card, the model, the error."""
    lines = ["| probe | threads | card | model | error | |", "|---|---:|---:|---:|---:|---|"]
    errors: dict[bool, list[float]] = {True: [], False: []}
    for one in tomllib.loads(ANCHORS.read_text())["anchor"]:
        model = slope(one["probe"], one["threads"])
        error = model / one["cycles"] - 1
        errors[one["calibrates"]].append(abs(error))
        used = "calibrates" if one["calibrates"] else ""
        row = f"| {one['probe']} | {one['threads']} | {one['cycles']:.3f} | {model:.3f} |"
        lines.append(f"{row} {100 * error:+.1f} % | {used} |")
    for calibrates, of in errors.items():
        which = "the figures were set by" if calibrates else "nothing was set by"
        median, worst = 100 * float(np.median(of)), 100 * max(of)
        lines += ["", f"{len(of)} probes that {which}: median {median:.1f} %, worst {worst:.1f} %."]
    return "\n".join(lines)


def figures() -> str:
    """The table of cycles by instruction, alike ones in one row."""
    rows: dict[cycles.Cycles, list[str]] = {}
    for _, cls in sorted(instructions().items()):
        if one := cycles.of(cls):
            rows.setdefault(one, []).append(cls.name)
    lines = ["| busy | latency | kind | source | instructions |", "|---:|---:|---|---|---|"]
    for one, names in rows.items():
        shown = f"{one.busy:g} | {one.latency:g} | {one.kind} | {one.source}"
        lines.append(f"| {shown} | {', '.join(names)} |")
    guessed = sum(len(names) for one, names in rows.items() if one.kind == cycles.ESTIMATE)
    total = sum(map(len, rows.values()))
    return "\n".join([*lines, "", f"{guessed} of {total} are estimates."])


def noc() -> str:
    """The error of transfers, by family; then of all of the NoC and of DRAM."""
    found = noc_probes.points()
    lines = ["| transfers | | points | median error | worst |", "|---|---|---:|---:|---:|"]
    for family, calibrates, n, median, worst in noc_probes.summary(found):
        used = "calibrates" if calibrates else ""
        lines.append(f"| {family} | {used} | {n} | {100 * median:.1f} % | {100 * worst:.1f} % |")
    for name, dram in (("NoC", False), ("DRAM", True)):
        of = [point for point in found if ("DRAM" in point.family) == dram]
        parts = []
        for calibrates, which in ((True, "points that set figures"), (False, "others")):
            errors = [100 * abs(point.error) for point in of if point.calibrates == calibrates]
            median = f"median {np.median(errors):.1f} %, worst {max(errors):.1f} %"
            parts.append(f"{len(errors)} {which}: {median}")
        lines += ["", f"{name}: {'; '.join(parts)}."]
    return "\n".join(lines)


def tiles() -> str:
    """The table of tiles that one unit works on, and what the errors are."""
    lines = ["| tile | unit | from, to | Dst | card | model | error | |"]
    lines += ["|---|---|---|---|---:|---:|---:|---|"]
    errors: dict[bool, list[float]] = {True: [], False: []}
    text = [line for line in TILES.read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(text):
        card, model, used = float(row["card"]), float(row["model"]), row["calibrates"] == "1"
        error = 100 * (model / card - 1)
        errors[used].append(abs(error))
        name = f"{row['op']} {row['fidelity']}".rstrip()
        dst = f"{32 if row['dst_32'] == '1' else 16} bits{', to Dst' * (row['to_dst'] == '1')}"
        cells = [name, row["unit"], f"{row['from']}, {row['to']}", dst, row["card"], row["model"]]
        lines.append(f"| {' | '.join([*cells, f'{error:+.1f} %', 'calibrates' * used])} |")
    for which, used in (("that set figures", True), ("others", False)):
        found = f"median {np.median(errors[used]):.1f} %, worst {max(errors[used]):.1f} %"
        lines += ["", f"{len(errors[used])} rows {which}: {found}."]
    return "\n".join(lines)


def noc_figures() -> str:
    """The table of the times of NoC and DRAM."""
    lines = ["| what | cycles | kind | source |", "|---|---:|---|---|"]
    for name, one in times.FIGURES.items():
        lines.append(f"| {name} | {one.cycles:g} | {one.kind} | {one.source} |")
    return "\n".join(lines)


def main() -> None:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    before = text = PAGE.read_text()
    tables = {
        "anchors": anchors,
        "tiles": tiles,
        "figures": figures,
        "noc": noc,
        "noc figures": noc_figures,
    }
    for name, make in tables.items():
        head, rest = text.split(BEGIN.format(name))
        text = (
            f"{head}{BEGIN.format(name)}\n{make()}\n{END.format(name)}"
            + rest.split(END.format(name))[1]
        )
    if given.check and text != before:
        sys.exit(f"{PAGE.name} is not what {Path(__file__).name} writes")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
