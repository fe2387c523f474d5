"""The changes of one token: operators, comparisons, constants one off, names of one function.

Left out is s.x[-1] for s.x[0] where the member x of the record has one element, the same.
"""

import ast
import random
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bhemu.tensix.state import MEMBERS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "bhemu"
TENSIX = PACKAGE / "tensix"
COMPILED = ("tensix", "devices", "noc", "riscv")  # rooms of compiled code, tried interpreted
UNITS = TENSIX / "units"
SHARED = ("thread", "banks", "frontend", "semaphores", "mmio", "dest", "lanes")

SINGLE = {member.name for member in MEMBERS if member.shape == (1,)}

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
    def place(self) -> str:
        """Names the change within one version of the sources."""
        return f"{self.path}:{self.line}:{self.column}: {self.old} -> {self.new}"

    @property
    def interpreted(self) -> bool:
        """Whether the code is compiled, so that tests notice a change only without the compiler."""
        return self.path.split("/")[1] in COMPILED

    @property
    def key(self) -> str:
        """Names the change without its line number, for the notes."""
        return f"{self.path}: {self.before} -> {self.after}"


def targets(group: str = "units") -> list[Path]:
    """The modules that are changed: units and formats, what all units share, or all there are."""
    if group == "package":
        return sorted(PACKAGE.rglob("*.py"))
    if group == "shared":
        return [TENSIX / f"{name}.py" for name in SHARED]
    return [*sorted(UNITS.rglob("*.py")), TENSIX / "formats.py"]


def every(paths: Iterable[Path]) -> list[Mutant]:
    """All changes of the modules, in the order of the text."""
    return [mutant for path in paths for mutant in mutants(path)]


def draw(paths: Iterable[Path], count: int, seed: int) -> list[Mutant]:
    """`count` changes: a module's share is its number of places."""
    population = every(paths)
    return random.Random(seed).sample(population, min(count, len(population)))


def changed(source: str, mutant: Mutant) -> str:
    """The module's text with the change."""
    lines = source.splitlines(keepends=True)
    text = lines[mutant.line - 1]
    end = mutant.column + len(mutant.old)
    lines[mutant.line - 1] = text[: mutant.column] + mutant.new + text[end:]
    return "".join(lines)


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
    single = set(_single(function))
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
                yield from _between(tokens, node.left, node.right, *OPERATORS[type(node.op)])
            elif isinstance(node, ast.Compare):
                operands = pairwise([node.left, *node.comparators])
                for kind, (left, right) in zip(node.ops, operands, strict=True):
                    if type(kind) in COMPARISONS:
                        yield from _between(tokens, left, right, *COMPARISONS[type(kind)])
            elif isinstance(node, ast.BoolOp):
                for left, right in pairwise(node.values):
                    yield from _between(tokens, left, right, *BOOLEANS[type(node.op)])
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                place = (node.lineno, node.col_offset)
                for token in tokens:  # none inside an f-string
                    if token.start == place:
                        yield place, token.string, str(node.value + 1)
                        if place not in single:
                            yield place, token.string, str(node.value - 1)
            elif isinstance(node, ast.Name) and node.id in names and len(names) > 1:
                if isinstance(node.ctx, ast.Load):
                    other = names[(names.index(node.id) + 1) % len(names)]
                    yield (node.lineno, node.col_offset), node.id, other


def _single(function: ast.FunctionDef) -> Iterator[tuple[int, int]]:
    """Places of the index 0 of members with one element."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            if node.value.attr in SINGLE and isinstance(node.slice, ast.Constant):
                yield node.slice.lineno, node.slice.col_offset


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
