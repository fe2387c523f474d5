"""Writes bhemu/data/golden_coverage.json and mode_coverage.json: what has a second opinion.

Runs every case of tests/golden and every program of tests/vectors that bhemu executes to the end
with equal bytes, and notes each opcode, and each mode and format of it, that was executed: `bhemu
isa` calls these "golden".  Every other mode is tried by scripts/probe_modes.py.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import golden_case  # noqa: E402

from bhemu.debug import trace as modes  # noqa: E402
from bhemu.errors import BhemuError  # noqa: E402
from bhemu.oracle.libttsim import Emulator  # noqa: E402
from bhemu.tensix.insn import instructions  # noqa: E402
from random_programs import vectors  # noqa: E402
from random_programs.units import generate  # noqa: E402

TARGET = ROOT / "bhemu" / "data" / "golden_coverage.json"
MODES = TARGET.with_name("mode_coverage.json")
PROBE = ROOT / "scripts" / "probe_modes.py"


def coverage() -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
    """(instruction name -> golden cases that execute it and come out equal, the modes they use)."""
    found: dict[str, list[str]] = {}
    covers = []
    for path in sorted(golden_case.GOLDEN.glob("*.npz")):
        case = golden_case.load(path.stem)
        tile = golden_case.start(case)
        cover = modes.Coverage(tile)
        try:
            tile.run(golden_case.DONE, timeout_s=600)
        except BhemuError as problem:
            print(f"{case.name}: {problem.rule}", file=sys.stderr)
            continue
        if case.differences(tile.l1):
            print(f"{case.name}: differs", file=sys.stderr)
            continue
        covers.append(cover.notes)
        for opcode, cls in instructions().items():
            if tile.state.op_count[:, opcode].any():
                found.setdefault(cls.name, []).append(case.name)
    for name, _, _ in vectors.coverage(ROOT / "tests" / "vectors"):
        if "vectors" not in found.setdefault(name, []):
            found[name].append("vectors")
    return dict(sorted(found.items())), list(modes.rows([*covers, *of_vectors()]))


def of_vectors() -> Iterator[modes.Notes]:
    """What each program of tests/vectors executes that comes out as ttsim's did."""
    emulator = Emulator()
    for unit in vectors.CHOICES:
        _, programs = vectors.load(ROOT / "tests" / "vectors" / f"{unit}.npz")
        for vector in programs:
            cover = modes.Coverage(emulator.tile)
            outcome = emulator.run(generate(unit, vectors.SEED, vector.index).case())
            cover.stop()
            if outcome.l1 is not None and vectors.digest(outcome.l1) == vector.digest:
                yield cover.notes


def statuses(golden: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Mnemonic -> its modes: golden, else what a probe finds: isa-text, refused (reason)."""
    probed = subprocess.run(
        [sys.executable, str(PROBE)], capture_output=True, text=True, check=True
    )
    known: dict[str, dict[str, Any]] = {}
    for row in [*golden, *json.loads(probed.stdout)]:
        key = json.dumps([row["mnemonic"], row["fields"], row["formats"]])
        mode = {"mnemonic": row["mnemonic"], "fields": row["fields"], "formats": row["formats"]}
        if row.get("count"):
            known[key] = {**mode, "status": "golden"}
        elif row["rule"]:
            known.setdefault(key, {**mode, "status": "refused", "reason": row["rule"]})
        else:
            known.setdefault(key, {**mode, "status": "isa-text"})
    result: dict[str, list[dict[str, Any]]] = {}
    for key in sorted(known):
        mode = known[key]
        result.setdefault(mode.pop("mnemonic"), []).append(mode)
    return result


def main() -> int:
    """Write the files, or with --check compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    cases, golden = coverage()
    lines = [
        f"{json.dumps(name)}: [\n " + ",\n ".join(json.dumps(mode) for mode in own) + "\n]"
        for name, own in statuses(golden).items()
    ]
    texts = {
        TARGET: json.dumps(cases, indent=1) + "\n",
        MODES: "{" + ",\n".join(lines) + "}\n",
    }
    if check:
        return int(any(path.read_text() != text for path, text in texts.items()))
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
