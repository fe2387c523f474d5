"""Writes bhemu/data/golden_coverage.json: which instructions golden cases and vectors execute.

Runs every case of tests/golden that bhemu executes to the end with equal bytes, and notes each
opcode that was executed; the vectors of tests/vectors list theirs, and their equality is a test.
`bhemu isa` calls these instructions "golden".
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import golden_case  # noqa: E402

from bhemu.errors import BhemuError  # noqa: E402
from bhemu.oracle import vectors  # noqa: E402
from bhemu.tensix.insn import REGISTRY  # noqa: E402

TARGET = ROOT / "bhemu" / "data" / "golden_coverage.json"


def coverage() -> dict[str, list[str]]:
    """Instruction name -> golden cases that execute it and come out equal."""
    found: dict[str, list[str]] = {}
    for path in sorted(golden_case.GOLDEN.glob("*.npz")):
        case = golden_case.load(path.stem)
        tile = golden_case.start(case)
        try:
            tile.run(golden_case.DONE, timeout_s=60)
        except BhemuError as problem:
            print(f"{case.name}: {problem.rule}", file=sys.stderr)
            continue
        if case.differences(tile.l1):
            print(f"{case.name}: differs", file=sys.stderr)
            continue
        for opcode, cls in REGISTRY.items():
            if tile.state.op_count[:, opcode].any():
                found.setdefault(cls.name, []).append(case.name)
    for name, _, _ in vectors.coverage(ROOT / "tests" / "vectors"):
        if "vectors" not in found.setdefault(name, []):
            found[name].append("vectors")
    return dict(sorted(found.items()))


def main() -> int:
    """Write the file, or with --check compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    text = json.dumps(coverage(), indent=1) + "\n"
    if parser.parse_args().check:
        return int(TARGET.read_text() != text)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
