"""Changes one token of the instruction units at a time and asks whether a test notices.

python scripts/mutate.py                    200 changes drawn with seed 1, docs/mutation.md written
python scripts/mutate.py --count 60 --seed 2 --out results.json

A change is an operator, a comparison, a constant one off, or a name taken for another of the same
function.  The tests of the changed module run first, interpreted, then the golden cases on compiled
code.  Survivors are explained in scripts/mutation_notes.toml.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNITS = ROOT / "bhemu" / "tensix" / "units"
PAGE = ROOT / "docs" / "mutation.md"
NOTES = ROOT / "scripts" / "mutation_notes.toml"
STAGE_SECONDS = 600

OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
BOOLEANS: dict[type[ast.boolop], tuple[str, str]] = {
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
# Test files of modules and units that no file name leads to; the others have a file of their own.
_MATRIX = ["test_matrix_elw", "test_matrix_mul", "test_matrix_pool"]
TESTS = {
    "bhemu/tensix/formats.py": ["test_formats", "test_pack*", "test_unpack*"],
    "bhemu/tensix/fma.py": ["test_fma", "test_vector_arith"],
    **{
        f"bhemu/tensix/units/matrix/{name}.py": _MATRIX
        for name in ("accumulate", "element", "integer", "matmul", "operands", "prepare", "product")
    },
    **{
        f"bhemu/tensix/units/vector/{name}.py": ["test_vector_macro*"]
        for name in ("cycle", "macro", "schedule")
    },
    "bhemu/tensix/units/vector/datums.py": [
        *("test_vector_collide", "test_vector_loadstore", "test_vector_rounding")
    ],
    "bhemu/tensix/units/pack/modes.py": ["test_pack*"],
    "bhemu/tensix/units/unpack/modes.py": ["test_unpack*"],
    "bhemu/tensix/units/matrix/transfer.py": ["test_matrix_move", "test_matrix_debug_move"],
    "bhemu/tensix/units/matrix/legacy.py": ["test_matrix_conv", "test_matrix_pool"],
    "bhemu/tensix/units/front.py": ["test_frontend"],
    "bhemu/tensix/units/memory.py": ["test_memory", "test_scalar", "test_streams"],
    "bhemu/tensix/units/scalar.py": ["test_scalar", "test_flop"],
}


SHARED = {"vector": ["test_vector_sentences"]}  # about every module of a unit


@dataclass(frozen=True)
class Mutant:
    """One changed token: where (1-based line, 0-based column) and by what it is replaced."""

    path: str
    line: int
    column: int
    old: str
    new: str
    before: str  # the line as it was
    after: str

    @property
    def key(self) -> str:
        """Names the change without its line number, for the notes."""
        return f"{self.path}: {self.before} -> {self.after}"


def targets() -> list[Path]:
    """The modules that are changed."""
    tensix = ROOT / "bhemu" / "tensix"
    return [*sorted(UNITS.rglob("*.py")), tensix / "formats.py", tensix / "fma.py"]


def mutants(path: Path) -> list[Mutant]:
    """Every one-token change of a module, in the order of the text."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    name = str(path.relative_to(ROOT))
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for (line, column), old, new in _changes(function, tokens):
                text = lines[line - 1]
                after = text[:column] + new + text[column + len(old) :]
                found.append(Mutant(name, line, column, old, new, text.strip(), after.strip()))
    return sorted(set(found), key=lambda m: (m.line, m.column, m.new))


Change = tuple[tuple[int, int], str, str]


def _changes(function: ast.FunctionDef, tokens: list[tokenize.TokenInfo]) -> Iterator[Change]:
    names = sorted(_locals(function))
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
                yield from _between(tokens, node.left, node.right, *OPERATORS[type(node.op)])
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
                pair = COMPARISONS[type(node.ops[0])]
                yield from _between(tokens, node.left, node.comparators[0], *pair)
            elif isinstance(node, ast.BoolOp):
                yield from _between(tokens, *node.values[:2], *BOOLEANS[type(node.op)])
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                place = (node.lineno, node.col_offset)
                for token in tokens:  # none inside an f-string
                    if token.start == place:
                        yield place, token.string, str(node.value + 1)
                        yield place, token.string, str(node.value - 1)
            elif isinstance(node, ast.Name) and node.id in names and len(names) > 1:
                if isinstance(node.ctx, ast.Load):
                    other = names[(names.index(node.id) + 1) % len(names)]
                    yield (node.lineno, node.col_offset), node.id, other


def _locals(function: ast.FunctionDef) -> set[str]:
    """Parameters and variables but the record and the thread."""
    found = {argument.arg for argument in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found - {"s", "t", "self", "cls"}


def _between(
    tokens: list[tokenize.TokenInfo], left: ast.expr, right: ast.expr, old: str, new: str
) -> Iterator[Change]:
    low = (left.end_lineno or 0, left.end_col_offset or 0)
    high = (right.lineno, right.col_offset)
    for token in tokens:
        if low <= token.start < high and token.string == old:
            yield token.start, old, new
            return


def tests_for(name: str) -> list[list[str]]:
    """The stages of tests for a module: its own, or else its unit's; then the golden cases."""
    path = Path(name)
    unit = path.parent.name if path.parent.name != "units" else path.stem
    listed = TESTS.get(name)
    own = _files(*listed) if listed else _files(f"test_{unit}_{path.stem}", f"test_{path.stem}")
    shared = _files(*SHARED.get(unit, ()))
    return [[*shared, *(own or _files(f"test_{unit}*"))], ["tests/test_golden.py"]]


def _files(*patterns: str) -> list[str]:
    found = {test for p in patterns for test in (ROOT / "tests" / "tensix").glob(f"{p}.py")}
    return sorted(str(test.relative_to(ROOT)) for test in found)


def survives(mutant: Mutant, tree: Path) -> tuple[bool, str]:
    """(whether no test noticed, the stage that did); the tree is as before afterwards."""
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    text = lines[mutant.line - 1]
    end = mutant.column + len(mutant.old)
    lines[mutant.line - 1] = text[: mutant.column] + mutant.new + text[end:]
    path.write_text("".join(lines), encoding="utf-8")
    try:
        for stage in tests_for(mutant.path):
            if not _passes(stage, tree):
                return False, " ".join(Path(test).stem for test in stage)
        return True, ""
    finally:
        path.write_text(source, encoding="utf-8")


def _passes(stage: list[str], tree: Path) -> bool:
    """Unit tests run interpreted: nothing is compiled for a change; the golden cases compiled."""
    interpreted = "0" if stage == ["tests/test_golden.py"] else "1"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *stage]
    environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_DISABLE_JIT": interpreted}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=STAGE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def copy_tree(folder: Path) -> Path:
    """What the tests need, to be changed at will."""
    for name in ("bhemu", "tests", "elfs", "scripts"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def draw(count: int, seed: int) -> list[Mutant]:
    """`count` changes, every module by its number of places."""
    every = [mutant for path in targets() for mutant in mutants(path)]
    return random.Random(seed).sample(every, min(count, len(every)))


def run(chosen: list[Mutant], results: Path) -> list[dict[str, object]]:
    """Try every change; results are kept as they come, and a rerun goes on behind them."""
    rows: list[dict[str, object]] = json.loads(results.read_text()) if results.exists() else []
    with tempfile.TemporaryDirectory() as scratch:
        tree = copy_tree(Path(scratch))
        for number, mutant in enumerate(chosen[len(rows) :], start=len(rows) + 1):
            begin = time.monotonic()
            alive, stage = survives(mutant, tree)
            rows.append({**asdict(mutant), "survived": alive, "killed_by": stage})
            results.write_text(json.dumps(rows, indent=1) + "\n")
            how = "SURVIVED" if alive else f"killed by {stage}"
            spent = time.monotonic() - begin
            print(f"{number}/{len(chosen)} {how} ({spent:.0f} s): {mutant.key}", flush=True)
    return rows


def again(results: Path) -> None:
    """Try those that survived once more, after a test was added."""
    rows = json.loads(results.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        tree = copy_tree(Path(scratch))
        for row in rows:
            if row["survived"]:
                fields = {name: row[name] for name in Mutant.__dataclass_fields__}
                row["survived"], row["killed_by"] = survives(Mutant(**fields), tree)
                print(f"{row['survived']}: {row['path']}: {row['after']}", flush=True)
    results.write_text(json.dumps(rows, indent=1) + "\n")


def page(rows: list[dict[str, object]], seed: int) -> str:
    """docs/mutation.md."""
    notes: dict[str, str] = tomllib.loads(NOTES.read_text(encoding="utf-8"))["notes"]
    alive = [row for row in rows if row["survived"]]
    killed = len(rows) - len(alive)
    lines = [
        "<!-- Written by scripts/mutate.py; do not edit. -->",
        "# Mutation of the units",
        "",
        f"{len(rows)} changes of one token in `bhemu/tensix/units/`, `formats.py` and `fma.py`,"
        f" drawn with seed {seed} from {sum(len(mutants(p)) for p in targets())} possible ones:",
        f"**{killed} were noticed by a test ({100 * killed / max(len(rows), 1):.1f} %)**,"
        f" {len(alive)} were not. `make mutate` repeats it.",
        "",
        "| where | change | why no test notices |",
        "|---|---|---|",
    ]
    for row in alive:
        key = f"{row['path']}: {row['before']} -> {row['after']}"
        note = notes.get(key, "**not explained yet**")
        change = f"`{row['before']}` -> `{row['after']}`".replace("|", "\\|")
        lines.append(f"| {row['path']} | {change} | {note} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutation.json")
    parser.add_argument("--page-only", action="store_true", help="write the page from --out")
    parser.add_argument("--again", action="store_true", help="try the survivors of --out again")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    if arguments.again:
        again(arguments.out)
    elif not arguments.page_only:
        run(draw(arguments.count, arguments.seed), arguments.out)
    rows = json.loads(arguments.out.read_text())
    PAGE.write_text(page(rows, arguments.seed), encoding="utf-8")
    killed = sum(not row["survived"] for row in rows)
    print(f"{killed} of {len(rows)} killed")
    return int(killed < 0.95 * len(rows))


if __name__ == "__main__":
    sys.exit(main())
