"""Writes docs/models.md: what is modelled, inert, refused and unverified, and every rule."""

import ast
import importlib
import inspect
import itertools
import pkgutil
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]

from models_text import CONFLICTS, REACHED, SHORT  # noqa: E402

import bhemu.devices  # noqa: E402
import bhemu.riscv.core_loop  # noqa: E402
import bhemu.tensix  # noqa: E402
from bhemu.cli.isa import modes_of, row  # noqa: E402
from bhemu.devices.bus.address_map import BLOCKS, INERT, NAMED, find  # noqa: E402
from bhemu.devices.bus.window import EVERYONE, WORD, Window  # noqa: E402
from bhemu.machine.sentences import RULES  # noqa: E402
from bhemu.memmap import CORE_NAMES  # noqa: E402
from bhemu.tensix import insn  # noqa: E402
from random_programs.divergences import TABLE  # noqa: E402

TARGET = ROOT / "docs" / "models.md"


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    """A markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(c) for c in r) + " |" for r in rows]


def mode_rows() -> list[tuple[object, ...]]:
    """Number of modes of each instruction by status, and the rules that refuse some."""
    rows: list[tuple[object, ...]] = []
    for opcode in sorted(insn.instructions()):
        modes = modes_of(insn.instructions()[opcode])
        counts = Counter(mode["status"] for mode in modes)
        rules = sorted({mode["reason"] for mode in modes if mode["status"] == "refused"})
        numbers = [counts[status] or "" for status in ("golden", "isa-text", "refused")]
        if modes:
            rows.append((insn.instructions()[opcode].name, *numbers, ", ".join(rules)))
    return rows


def block_rows() -> list[tuple[object, ...]]:
    """Range and name of each block, who may access it and in which widths."""
    rows: list[tuple[object, ...]] = []
    for low, high, name in BLOCKS:
        window = find(low)
        who, ways = "all", ("1, 2, 4", "1, 2, 4")
        if window is not None:
            who, ways = agents(window), (widths(window, False), widths(window, True))
        elif low:
            who = "each core its own"
        rows.append((f"{low:#010x}", f"{high - 1:#010x}", name, who, *ways))
    return rows


def agents(window: Window) -> str:
    """Names of those that may access a window."""
    if window.agents == EVERYONE:
        return "all"
    return ", ".join((*CORE_NAMES, "host")[agent] for agent in window.agents)


def widths(window: Window, store: bool) -> str:
    """Bytes that a load or store may have."""
    if all(window.refuses(store, agent) for agent in window.agents):
        return "-"
    return "4" if (window.stores if store else window.loads) == WORD else "1, 2, 4"


def severity(number: int) -> str:
    """What breaking a rule does: "error", "selectable" where Tile(ub=...) may let it pass, "noted"
    where it is counted only."""
    if number in handed_to("undefined") | handed_to("undefined_unless_llk"):
        return "selectable"
    return "noted" if number in handed_to("note_rule") else "error"


@cache
def handed_to(function: str) -> frozenset[int]:
    """Numbers of the rules that some unit or device passes to a function of rules.py, directly."""
    found = set()
    rooms = tuple((r, f"{r.__name__}.") for r in (bhemu.tensix, bhemu.devices, bhemu.riscv))
    for module in itertools.chain(*(pkgutil.walk_packages(r.__path__, name) for r, name in rooms)):
        loaded = importlib.import_module(module.name)
        for node in ast.walk(ast.parse(inspect.getsource(loaded))):
            called = node.func if isinstance(node, ast.Call) else None
            if function in (getattr(called, "id", ""), getattr(called, "attr", "")):
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                values = {vars(loaded).get(name) for name in names}
                values |= {
                    getattr(vars(loaded).get(n.value.id), n.attr, None)
                    for n in ast.walk(node)
                    if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
                }
                found |= {v for v in values if isinstance(v, int) and v in RULES}
    return frozenset(found)


def instructions() -> list[str]:
    """The sections of instructions and modes."""
    entries = [row(cls) for _, cls in sorted(insn.instructions().items())]
    counts = Counter(e["status"] for e in entries)
    return [
        "<!-- Written by scripts/make_models.py; do not edit. -->",
        "# What is modelled",
        "",
        f"{len(entries)} Tensix instructions:"
        f" {counts['golden']} golden (executed by a golden case),"
        f" {counts['isa-text']} after the ISA text, {counts['refused']} refused,"
        f" {counts['unimplemented']} not implemented yet (refused by name).",
        "",
        SHORT,
        "## Instructions",
        "",
        *table(
            ("mnemonic", "opcode", "unit", "status", "what it does"),
            [
                (
                    e["mnemonic"],
                    f"{e['opcode']:#04x}",
                    e["unit"],
                    e["status"] + (f": {e['reason']}" if "reason" in e else ""),
                    e["summary"],
                )
                for e in entries
            ],
        ),
        "",
        "## Modes",
        "",
        "A mode is the value of the fields that select behaviour, with the formats in force."
        " Golden: a golden case or vector executes it. ISA text: it executes, without one of those."
        " `bhemu explain NAME --json` lists them, `bhemu explain --coverage RUN` says which ones a"
        " program uses.",
        "",
        *table(("mnemonic", "golden", "ISA text", "refused", "refused by"), mode_rows()),
        "",
    ]


def registers() -> list[str]:
    """The sections of address blocks and registers."""
    return [
        "## Address blocks",
        "",
        "Who may access a block, and in which widths (bytes); `-`: refused.",
        "",
        *table(("from", "to", "block", "who", "loads", "stores"), block_rows()),
        "",
        "## Registers by name",
        "",
        *table(
            ("address", "name", "access"),
            [
                (f"{address:#010x}", register.name, register.access)
                for address, register in NAMED.items()
                if register.modelled
            ],
        ),
        "",
        "## Inert registers",
        "",
        *table(
            ("address", "name", "why it may be inert"),
            [(f"{a:#010x}", register.name, register.inert) for a, register in INERT.items()],
        ),
        "",
    ]


def disagreements() -> list[str]:
    """The sections of what sources, models and kernels disagree on, and of the rules."""
    return [
        "## Known divergences from ttsim",
        "",
        "Everything else that `bhemu diff` finds counts as a difference.",
        "",
        *table(
            ("id", "when", "what", "bhemu follows", "why"),
            [(d.id, d.when, d.what, d.follows, d.why) for d in TABLE],
        ),
        "",
        "## Where production kernels and the ISA text disagree",
        "",
        "ttsim executes none of this, so nothing else decides.",
        "",
        *table(("what", "the ISA text", "production kernels", "bhemu follows"), CONFLICTS),
        "",
        "## What kernels of tt-llk reach of the refusals",
        "",
        "From the sources of tt_llk_blackhole: each place where a kernel uses what some rule"
        " refuses by default, and what is done.",
        "",
        *table(("kernel", "rule", "decision"), REACHED),
        "",
        "## Rules",
        "",
        "Severity: `error` stops the program; `selectable` does so unless `ub` is `warn` or"
        " `silicon`, which go on with what the ISA says silicon does; `noted` is counted only: the"
        " golden model's way was taken, silicon has another (PACR-COMPRESSION), or that of tt-llk's"
        " kernels, where the ISA text has none.",
        "",
        *table(
            ("rule", "category", "severity", "sentence"),
            [
                (r.rule, r.category, severity(r.number), r.pattern("`{}`").replace("|", "\\|"))
                for r in sorted(RULES.values(), key=lambda r: r.rule)
                if r.category != "Internal"  # of no program
            ],
        ),
        "",
    ]


def text() -> str:
    """The whole page."""
    from bhemu.devices.bus import entries
    from bhemu.riscv import turn

    assert entries.STORE
    assert turn.NONE == 0
    return "\n".join([*instructions(), *registers(), *disagreements()])


README = ROOT / "README.md"
MARKS = ("<!-- models: scripts/make_models.py -->\n", "<!-- end of models -->\n")
STATUSES = ("golden", "isa-text", "refused", "unimplemented")


def readme() -> str:
    """README.md with its table of units renewed."""
    page = README.read_text(encoding="utf-8")
    head, rest = page.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    units_of = Counter(
        (row(cls)["unit"], row(cls)["status"]) for cls in insn.instructions().values()
    )
    names = sorted({unit for unit, _ in units_of})
    rows = [(name, *(units_of[name, status] or "" for status in STATUSES)) for name in names]
    total = (
        f"all {len(insn.instructions())}",
        *(sum(units_of[n, status] for n in names) for status in STATUSES),
    )
    head_row = ("unit", "golden", "ISA text", "refused", "not yet")
    lines = table(head_row, [*rows, total])
    return head + MARKS[0] + "\n".join(lines) + "\n" + MARKS[1] + tail


if __name__ == "__main__":
    pages = {TARGET: text(), README: readme()}
    if "--check" in sys.argv:
        sys.exit(any(path.read_text(encoding="utf-8") != page for path, page in pages.items()))
    for path, page in pages.items():
        path.write_text(page, encoding="utf-8")
