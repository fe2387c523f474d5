"""Writes docs/coverage.md: golden vectors per instruction, mode and format, empty cells shown."""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bhemu.tensix.insn import Instruction  # noqa: E402
from random_programs import vectors  # noqa: E402
from random_programs.plan import INSTRUCTIONS  # noqa: E402

TARGET = ROOT / "docs" / "coverage.md"
EMPTY = "**0**"
# Fields whose value is a mode of the instruction.
MODES = (
    *("instr_mod0", "instr_mod1", "instr_mod", "movb2d_instr_mod", "instr_mod19"),
    *("clear_mode", "operation", "op_sel", "wait_sem_cond", "read_intf_sel"),
)
HEAD = """<!-- Written by scripts/make_coverage.py; do not edit. -->
# Coverage by golden vectors

How many instructions of the programs in `tests/vectors` exercise each instruction, mode and format.
A program's whole L1 is compared with what ttsim left, so one instruction of the vector unit stands
for 32 lanes, one MVMUL for 128 results, one PACR for up to 64 datums. **0** is an empty cell: no
vector, either because no second opinion exists or because no generator makes it. The cases of
`tests/golden` and the tests of single rules are not counted.
"""


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def cell(n: int) -> str:
    """A count, or an empty cell that can be seen."""
    return str(n) if n else EMPTY


def without(cls: type[Instruction], modes: set[str]) -> str:
    """Values of the instruction's mode field that no vector has."""
    for field in cls.fields:
        if field.name in MODES and field.width <= 4:
            seen = {int(m.split()[1]) for m in modes if m.startswith(("mod ", "mode "))}
            if seen:
                missing = [str(v) for v in range(field.max + 1) if v not in seen]
                return f"{field.name} {', '.join(missing)}" if missing else ""
    return ""


def why(cls: type[Instruction], total: int) -> str:
    """Why an instruction has no vectors."""
    if total:
        return ""
    if cls.refused:
        return f"refused: {cls.refused}"
    return (
        "no step of its own in the generated programs"
        if cls.oracle
        else "ttsim refuses it: no second opinion"
    )


def summary(counts: Counter[vectors.Key]) -> list[str]:
    """One row for each instruction."""
    rows = []
    for name, cls in sorted(INSTRUCTIONS.items(), key=lambda item: item[1].opcode):
        own = {key: n for key, n in counts.items() if key[0] == name}
        total = sum(own.values())
        modes = sorted({key[1] for key in own if key[1]})
        shown = str(len(own)) if own else ""
        rows.append([name, cls.unit, cell(total), shown, without(cls, set(modes)), why(cls, total)])
    head = ["instruction", "unit", "vectors", "cells", "mode values without vectors", "remark"]
    return table(head, rows)


def matrix(counts: Counter[vectors.Key], name: str) -> list[str]:
    """Formats down, modes across."""
    own = {key: n for key, n in counts.items() if key[0] == name}
    modes = sorted({key[1] for key in own})
    formats = sorted({key[2] for key in own})
    rows = [
        [form or "any", *(cell(own.get((name, mode, form), 0)) for mode in modes)]
        for form in formats
    ]
    return ["", f"### {name}", "", *table(["format", *(mode or "plain" for mode in modes)], rows)]


def lists(counts: Counter[vectors.Key]) -> list[str]:
    """Instructions with one format: their modes in a line."""
    rows = []
    for name in sorted(INSTRUCTIONS):
        own = {key: n for key, n in counts.items() if key[0] == name}
        if own and not many(own):
            shown = [
                f"{' '.join(part for part in key[1:] if part) or 'plain'}: {n}"
                for key, n in sorted(own.items())
            ]
            rows.append([name, ", ".join(shown)])
    return table(["instruction", "mode: vectors"], rows)


def many(own: dict[vectors.Key, int]) -> bool:
    """Whether an instruction has several formats, so that it gets a table of its own."""
    return len({key[2] for key in own}) > 4


def text() -> str:
    """The whole page."""
    counts = vectors.coverage(ROOT / "tests" / "vectors")
    lines = [HEAD, "## Instructions", "", *summary(counts), "", "## Modes", "", *lists(counts)]
    lines += ["", "## Modes and formats", "", "Formats by number: docs of the ISA's data formats;"]
    lines += ["26 is fp8 e4m3, 30 is uint8. `A x B DstN`: formats of SrcA, SrcB and the width of"]
    lines += ["Dst. `a -> b`: L1 as a, Src or Dst as b (UNPACR); Dst as a, L1 as b (PACR)."]
    for name in sorted(INSTRUCTIONS):
        own = {key: n for key, n in counts.items() if key[0] == name}
        if own and many(own):
            lines += matrix(counts, name)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    page = text()
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text(encoding="utf-8") != page)
    TARGET.write_text(page, encoding="utf-8")
