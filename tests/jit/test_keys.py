"""What an edit compiles again: what its machine code is made from, and nothing else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import bhemu
from bhemu.errors import Internal
from bhemu.jit import keys
from bhemu.jit.subset import JIT, Compiled, External, intrinsic, njit, signature
from bhemu.machine.precompile import every_entry

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled in the interpreted mode")

PACKAGE = Path(bhemu.__file__).parent
NUMBERS = signature("int64", "int64")
ALL = """
import json, sys
from bhemu.machine.precompile import every_entry
from bhemu.jit import keys
made = {f"{e.module} {e.name}": keys.key(e.signature, e.resolved()) for e in every_entry()}
print(json.dumps(made))
assert "numba" not in sys.modules
"""


class Tree:
    """A copy of the package, in which one edit at a time is made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(PACKAGE, root / "bhemu", ignore=shutil.ignore_patterns("__pycache__"))
        self.before = self.keys()

    def keys(self) -> dict[str, str]:
        command = [sys.executable, "-B", "-c", ALL]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def recompiled(self, file: str, old: str, new: str) -> set[str]:
        """Names of the entries whose keys an edit changes."""
        return self.recompiled_by((file, old, new))

    def recompiled_by(self, *edits: tuple[str, str, str]) -> set[str]:
        """Names of the entries whose keys edits change: (file, text, the text instead of it)."""
        before: dict[Path, str] = {}
        try:
            for file, old, new in edits:
                path = self.root / "bhemu" / file
                text = path.read_text()
                assert text.count(old) == 1, f"{file}: {old}"
                before.setdefault(path, text)
                path.write_text(text.replace(old, new))
            after = self.keys()
        finally:
            for path, text in before.items():
                path.write_text(text)
        assert after.keys() == self.before.keys()
        return {name.split()[1] for name in after if after[name] != self.before[name]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("tree"))


def test_every_entry_has_a_key(tree: Tree) -> None:
    names = {name.split()[1] for name in tree.before}
    assert {"SEMPOST", "run_rounds", "load_entry", "profiled_word", "trap"} <= names
    assert len(tree.before) > 130
    assert tree.keys() == tree.before, "keys differ between two processes"


WITHOUT_EFFECT = {
    "a new register": (
        "memmap.py",
        "RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE = 0x23C\n",
        "RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE = 0x23C\nRISCV_DEBUG_REG_NEW = 0x24C\n",
    ),
    "hint of a rule": ("tensix/lanes.py", "leave the immediate 0", "leave it 0"),
    "its sentence": ("tensix/lanes.py", "has no meaning in mode", "means nothing in mode"),
    "other line numbers": (
        "tensix/semaphores.py",
        "\nLIMIT = 15  #",
        "\n\n# A comment.\n\n\nLIMIT = 15  #",
    ),
    "docstring of a function": (
        "tensix/lanes.py",
        '"""LReg[dest] = s.lane_tmp[VALUE] in the enabled lanes; `dest` 0-15."""',
        '"""Reworded."""',
    ),
}


def test_nothing_is_compiled_again(tree: Tree) -> None:
    """After edits that no machine code shows: all at once, one by one where that is not so."""
    first = (tree.root / "bhemu" / "memmap.py").read_text()[:60]
    edits = {"docstring of memmap": ("memmap.py", first, first.replace('"""', '"""Reworded. ', 1))}
    edits |= WITHOUT_EFFECT
    if tree.recompiled_by(*edits.values()):
        assert not {name for name, edit in edits.items() if tree.recompiled_by(edit)}
        pytest.fail("all at once compile again what none of them does")


def test_a_constant_compiles_its_users_again(tree: Tree) -> None:
    found = tree.recompiled("tensix/semaphores.py", "LIMIT = 15", "LIMIT = 14")
    assert "SEMPOST" in found and len(found) <= 3
    found = tree.recompiled("tensix/units/pack/pacr.py", "_GUARD = 30", "_GUARD = 31")
    assert "_accumulate" in found and len(found) <= 2


def test_a_new_register_compiles_its_window_again(tree: Tree) -> None:
    old = '        window.debug_register("DISABLE_RESET"),\n'
    found = tree.recompiled(
        "devices/debug_regs.py",
        old,
        old + '        window.Register("RISCV_DEBUG_REG_NEW", 0x24C),\n',
    )
    window = "tile_control_debug_status"
    assert found == {f"load_{window}", f"store_{window}"}


def test_an_edited_callee_in_another_file_compiles_its_callers_again(tree: Tree) -> None:
    found = tree.recompiled("tensix/semaphores.py", "s.sem[i & 7] += 1", "s.sem[i & 7] += 3")
    assert "SEMPOST" in found and not {"SEMGET", "SETADC", "run_rounds"} & found


def test_a_callee_of_a_callee_counts(tree: Tree) -> None:
    """SFPADD writes through lanes.write, which asks lanes.target."""
    old = "return s.macro_dest[0] - 1 if s.macro_dest[0] else dest"
    found = tree.recompiled("tensix/lanes.py", old, old.replace("- 1", "- 2"))
    assert {"SFPADD", "SFPMAD", "SFPIADD"} <= found and not {"SEMPOST", "MVMUL"} & found


def test_an_option_of_compilation_counts(tree: Tree) -> None:
    found = tree.recompiled(
        "tensix/lanes.py",
        '@njit(inline="always")\ndef target(',
        "@njit\ndef target(",
    )
    assert "SFPADD" in found and "SEMPOST" not in found


def test_what_compiles_is_in_every_key(tree: Tree) -> None:
    """But for its docstrings and comments."""
    entries = {name.split()[1] for name in tree.before}
    assert tree.recompiled("jit/emit.py", "opt=3", "opt=2") == entries
    assert tree.recompiled("jit/emit.py", '"""Compiling an', '"""A comment. Compiling an') == set()


def test_the_layout_of_the_record_is_in_every_key(tree: Tree) -> None:
    member = "profile_part i64[1] the present part\n"
    found = tree.recompiled(
        "data/tile_record.txt", member, member + member.replace("profile_part", "profile_more")
    )
    entries = {name.split()[1] for name in tree.before}
    assert entries == found


def key(function: Any) -> str:
    return keys.key(NUMBERS, function)


def build(text: str, **names: Any) -> Any:
    """The function `f` of a text, marked, with these global values."""
    exec(text, names)
    return njit(names["f"])


class Pair(NamedTuple):
    a: int
    b: int = 2


class Other(NamedTuple):
    a: int
    b: int = 3


VALUES: list[tuple[Any, Any]] = [
    (1, 2),
    (1, 1.0),
    (1, True),
    ("a", "b"),
    ((1, 2), (1, 3)),
    ((1, 2), [1, 2]),
    (np.int32(1), np.int64(1)),
    (np.array([1, 2]), np.array([1, 3])),
    (np.array([1, 2]), np.array([[1, 2]])),
    (np.zeros((2, 2), order="C"), np.zeros((2, 2), order="F")),
    (np.dtype([("a", "i4")]), np.dtype([("a", "i8")])),
    (Pair, Other),
    (Pair(1, 2), Pair(1, 3)),
    (np.uint8, np.uint16),
    (External("sin", NUMBERS), External("cos", NUMBERS)),
    (External("sin", NUMBERS), External("sin", signature("int32", "int64"))),
    (njit(lambda x: x), njit(lambda x: x + 1)),
    (njit(lambda x: x), njit(inline="always")(lambda x: x)),
    (intrinsic(lambda typing: 1), intrinsic(lambda typing: 2)),
]


@pytest.mark.parametrize(("one", "other"), VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return V",
        "def f(x, y=V):\n    return x",
        "def outer(v):\n    def f(x):\n        return v\n    return f\nf = outer(V)",
        "def f(x):\n    return (lambda: V)()",
    ],
    ids=["global", "default", "closure", "inner"],
)
def test_values_are_told_apart(text: str, one: Any, other: Any) -> None:
    assert key(build(text, V=one)) == key(build(text, V=one))
    assert key(build(text, V=one)) != key(build(text, V=other))


@pytest.mark.parametrize("value", [object(), {1: object()}, SimpleNamespace(a=1), {1, 2}, Path])
def test_a_value_of_an_unknown_kind_is_refused(value: Any) -> None:
    with pytest.raises(Internal, match="key"):
        key(build("def f(x):\n    return V", V=value))


def test_a_module_of_the_package_as_a_value_is_refused() -> None:
    with pytest.raises(Internal, match="as a value"):
        key(build("def f(x):\n    return V", V=keys))


def test_who_calls_whom_counts() -> None:
    """The same two functions, called in the other order."""
    a, b = njit(lambda x: x), njit(lambda x: -x)
    text = "def f(x):\n    return A(x) - 2 * B(x)"
    assert key(build(text, A=a, B=b)) != key(build(text, A=b, B=a))
    assert key(build(text, A=a, B=a)) != key(build(text, A=a, B=njit(lambda x: -x)))


def test_a_function_is_its_own_callee() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return f(x - 1) if x else 0", names)
    names["f"] = f = njit(names["f"])
    assert isinstance(f, Compiled) and key(f)


def test_no_two_entries_have_one_path() -> None:
    """Keys are noted by these."""
    paths = [entry.path for entry in every_entry()]
    assert len(set(paths)) == len(paths)
