"""A sweep of a checkout with tt-llk's shape: files shared out, kernels compiled once."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from llk_sweep.command import command
from llk_sweep.kernels import Kernels, _Command, _without_unused

SUITE = '''
"""Stands for tt-llk's helpers/test_config.py: compiles a kernel per parameter."""
import subprocess, sys
from pathlib import Path

class TestConfig:
    DEFAULT_ARTEFACTS_PATH = Path("/nowhere")

def run_shell_command(command, cwd=None, stdin_data=None, text=True):
    done = subprocess.run(command, cwd=cwd, input=stdin_data, text=text, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr)

def build(name, header, source):
    variant = TestConfig.DEFAULT_ARTEFACTS_PATH / name
    (variant / "elf").mkdir(parents=True, exist_ok=True)
    (variant / "build.h").write_text(header)
    out = variant / "elf" / "k.elf"
    root = Path(__file__).parents[2]
    words = [str(root / "sfpi" / "g++"), f"-I{variant}", "-O3", "-Wl,x", "-o", str(out)]
    run_shell_command(words, None, source)
    return out.read_text()
'''
COMPILER = f"""#!{sys.executable}
import os, re, sys
args, text = sys.argv[1:], sys.stdin.read()
folder = next((word[2:] for word in args if word.startswith("-I")), "")
header = {{}}
if "-fpreprocessed" not in args:
    written = open(os.path.join(folder, "build.h")).read()
    text, header = text.replace("HEADER", written), dict(re.findall(r"(\\w+)=(\\w+)", written))
if "broken" in text or "refused" in text and "-E" not in args:
    sys.exit("no such thing")
text = re.sub(r"\\w+", lambda word: header.get(word[0], word[0]), text)
out = args[args.index("-o") + 1]
if "-E" in args:
    sys.stdout.write(text)
else:
    with open(os.environ["COMPILED"], "a") as log:
        log.write(text + "\\n")
    open(out, "w").write("ELF of " + text)
"""
TESTS = """
import os, pytest
from helpers.test_config import build

@pytest.mark.parametrize("n", range(20))
def test_one(n):
    if n % 4 == 3:
        pytest.skip("not on this chip")
    assert build(f"{__name__}-{n}", f"A=alpha N={n}", "kernel A") == "ELF of kernel alpha"
    assert build(f"{__name__}-{n}-own", f"N={n}", f"kernel N") == f"ELF of kernel {n}"
"""
ENDS = """
import os, pytest
from pathlib import Path

@pytest.mark.parametrize("n", range(6))
def test_ends(n):
    assert n != 2
    if n == 4:
        os._exit(9)

def test_not_compiled():
    from helpers.test_config import build
    build("broken", "", "broken")
"""
INI = "[pytest]\npython_functions = test\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tests = tmp_path / "tt-llk" / "tests" / "python_tests"
    (tests / "helpers").mkdir(parents=True)
    (tests / "helpers" / "__init__.py").touch()
    (tests / "helpers" / "test_config.py").write_text(SUITE)
    (tests / "pytest.ini").write_text(INI)
    (tests / "conftest.py").touch()
    for name in "abc":
        (tests / f"test_{name}.py").write_text(TESTS)
    tool = tests.parent / "sfpi" / "g++"
    tool.parent.mkdir()
    tool.write_text(COMPILER)
    tool.chmod(0o755)
    monkeypatch.setenv("COMPILED", str(tmp_path / "compiled.log"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tt-llk"


def sweep(checkout: Path, *more: object) -> Result:
    words = [str(checkout), *map(str, more)]
    return CliRunner().invoke(command, words)


def records(folder: str = "llk-results") -> list[dict[str, object]]:
    return [json.loads(line) for line in (Path(folder) / "runs.jsonl").read_text().splitlines()]


def compiled() -> list[str]:
    return sorted(Path(os.environ["COMPILED"]).read_text().split("\n")[:-1])


def test_a_sample_of_each_file_runs_and_a_kernel_is_compiled_once(checkout: Path) -> None:
    result = sweep(checkout, "--sample", 12, "--workers", 2)
    assert result.exit_code == 0, result.output
    found = records()
    ran = Counter(r["file"] for r in found if r["outcome"] != "skip")
    assert ran == {"test_a.py": 4, "test_b.py": 4, "test_c.py": 4}
    assert {r["outcome"] for r in found} <= {"host", "skip"}  # they ask for no device
    texts = compiled()
    assert texts.count("kernel alpha") <= 2  # workers may begin with the same one
    numbers = {text for text in texts if text != "kernel alpha"}
    assert len(numbers) > 1
    assert max(Counter(texts).values()) <= 2
    before = len(texts)
    again = sweep(checkout, "--sample", 12, "--workers", 1, "--resume")
    assert again.exit_code == 0 and "12" in again.output
    assert [r["test"] for r in records()] == [r["test"] for r in found]
    assert len(compiled()) == before  # nothing ran again
    for old in Path("llk-results").glob("test_*.jsonl"):
        old.unlink()
    assert sweep(checkout, "--sample", 12, "--workers", 1).exit_code == 0
    assert len(compiled()) == before  # all ran again, and no kernel was compiled again
    assert [r["test"] for r in records()] == [r["test"] for r in found]


def test_a_worker_that_dies_is_replaced_and_the_test_is_named(checkout: Path) -> None:
    tests = checkout / "tests" / "python_tests"
    (tests / "test_ends.py").write_text(ENDS)
    result = sweep(checkout, "test_ends.py", "--sample", 100, "--workers", 1)
    assert result.exit_code == 1
    found = {str(r["test"]).partition("::")[2]: r for r in records()}
    outcomes = {name: r["outcome"] for name, r in found.items()}
    own = {f"test_ends[{n}]": "host" for n in (0, 1, 3, 5)}
    wrong = {"test_ends[2]": "mismatch", "test_ends[4]": "crash", "test_not_compiled": "compile"}
    assert outcomes == {**own, **wrong}
    assert "1 x compile: RuntimeError no such thing" in result.output
    assert "1 x crash" in result.output


def test_mistakes_are_named(checkout: Path, tmp_path: Path) -> None:
    assert "has no tests/python_tests" in sweep(tmp_path).output
    result = sweep(checkout, "test_aa.py")
    assert result.exit_code == 2
    assert "no test file test_aa.py" in result.output and "test_a.py" in result.output
    (checkout / "tests" / "python_tests" / "conftest.py").write_text("import nothing_of_that_name")
    result = sweep(checkout, "--workers", 1)
    assert result.exit_code == 2
    assert "pytest does not begin" in result.output


HEADER = """#pragma once
constexpr int USED = 1;
constexpr int OF_ANOTHER = 2;
constexpr auto UNUSED = OF_ANOTHER;
constexpr int LOOKS_USED = 3;
"""


def test_only_constants_that_nothing_names_are_left_out_of_a_kernels_key() -> None:
    def key(header: str, kernel: str = "int f() { return USED + LOOKS_USED; }") -> str:
        return _without_unused(f"\n{header}{kernel}\n", header)[0]

    assert key(HEADER) == key(HEADER.replace("OF_ANOTHER = 2", "OF_ANOTHER = 5"))
    assert key(HEADER) != key(HEADER.replace("USED = 1", "USED = 5"))
    assert key(HEADER) != key(HEADER.replace("LOOKS_USED = 3", "LOOKS_USED = 5"))
    both = "int f() { return UNUSED; }"
    assert key(HEADER, both) != key(HEADER.replace("OF_ANOTHER = 2", "OF_ANOTHER = 5"), both)


def test_of_very_many_cases_a_choice_is_made(checkout: Path) -> None:
    tests = checkout / "tests" / "python_tests"
    many = "import pytest\n@pytest.mark.parametrize('n', range(5000))\ndef test_many(n): pass\n"
    (tests / "test_many.py").write_text(
        f"{many}@pytest.mark.parametrize('n', range(9))\ndef test_few(n): pass\n"
    )
    made = checkout / "made"
    note = f"open({str(made)!r}, 'a').write(f'{{len(session.items)}} ')"
    (tests / "conftest.py").write_text(f"def pytest_collection_finish(session):\n    {note}\n")
    found = []
    for out in "xyz":
        more = ("--seed", 5) if out == "z" else ("--workers", 1)
        assert sweep(checkout, "test_many.py", "--sample", 30, "--out", out, *more).exit_code == 0
        found.append([r["test"] for r in records(out)])
        first = (Path(out) / "test_many.py.jsonl").read_text().split("\n")[0]
        assert json.loads(first) == {"total": 5009}
    assert made.read_text().split() == ["1509"] * 3
    assert found[0] == found[1] != found[2]
    assert len({str(test).partition("[")[2] for test in found[0]}) == 30


def test_a_kernel_that_is_not_compiled_is_not_tried_again(checkout: Path, tmp_path: Path) -> None:
    tried: list[object] = []

    def plainly(*command: object) -> None:
        tried.append(command)
        raise RuntimeError("k.cpp:1: error: no such thing" if len(tried) > 1 else "out of memory")

    def kernel(text: str, header: str) -> str:
        out = tmp_path / header / "elf" / "k.elf"
        out.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / header / "build.h").write_text(header)
        compiler = str(checkout / "tests" / "sfpi" / "g++")
        words = [compiler, f"-I{tmp_path / header}", "-o", str(out)]
        with pytest.raises(RuntimeError) as problem:
            Kernels(tmp_path / "kernels", [], plainly)(words, tmp_path, text)
        return str(problem.value)

    assert kernel("refused", "N=1") == "out of memory"  # which says nothing of the kernel
    assert kernel("refused", "N=1").endswith("no such thing") and len(tried) == 2
    assert kernel("refused", "N=2").endswith("no such thing") and len(tried) == 2
    assert kernel("refused too", "N=1") and len(tried) == 3


def test_a_changed_source_makes_new_kernels(checkout: Path, tmp_path: Path) -> None:
    sources = checkout / "tests" / "helpers"
    sources.mkdir()

    def kernel(header: str = "", text: str = "text") -> str:
        out = tmp_path / "v" / "elf" / "k.elf"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.unlink(missing_ok=True)
        (tmp_path / "v" / "build.h").write_text(header)
        compiler = str(checkout / "tests" / "sfpi" / "g++")
        words = [compiler, f"-I{tmp_path / 'v'}", "-o", str(out)]
        Kernels(tmp_path / "kernels", [sources], fail)(words, sources, text)
        return out.read_text()

    def fail(*_: object) -> None:
        raise AssertionError("what compiles needs not the suite's own way")

    assert [kernel(), kernel(), kernel("N=1")] == ["ELF of text"] * 3
    assert compiled() == ["text"]
    (sources / "header.h").write_text("new")
    kernel()
    assert compiled() == ["text", "text"]


def test_only_the_source_that_a_kernel_includes_makes_it_new(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests write sources of their own, whose kernels alone are new."""
    asked: list[str] = []
    plain = _Command.preprocessed
    monkeypatch.setattr(_Command, "preprocessed", lambda self: asked.append("") or plain(self))
    sources = checkout / "tests" / "sources"
    sources.mkdir()
    (sources / "own.cpp").write_text("int own;")
    out = tmp_path / "v" / "elf" / "k.elf"
    out.parent.mkdir(parents=True)
    words = [str(checkout / "tests" / "sfpi" / "g++"), f"-I{tmp_path / 'v'}", "-o", str(out)]
    (tmp_path / "v" / "build.h").touch()

    def kernel() -> int:
        kernels = Kernels(tmp_path / "kernels", [sources], lambda *_: None)
        kernels(words, checkout / "tests", "#include  <sources/own.cpp>\n")
        return len(asked)

    assert (kernel(), kernel()) == (1, 1)
    (sources / "other.cpp").write_text("int other;")
    assert kernel() == 1
    (sources / "own.cpp").write_text("int changed;")
    assert kernel() == 2


def test_the_preprocessor_is_not_asked_again_for_what_a_kernel_does_not_use(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = _Command.preprocessed
    monkeypatch.setattr(
        _Command, "preprocessed", lambda self: asked.append(self.header) or plain(self)
    )
    kernels = Kernels(tmp_path / "kernels", [], lambda *_: None)

    def kernel(used: int, other: int) -> str:
        out = tmp_path / f"{used}{other}" / "elf" / "k.elf"
        out.parent.mkdir(parents=True)
        header = f"\nconstexpr int USED = {used};\nconstexpr int OTHER = {other};\n"
        (out.parent.parent / "build.h").write_text(header)
        compiler = str(checkout / "tests" / "sfpi" / "g++")
        kernels([compiler, f"-I{out.parent.parent}", "-o", str(out)], None, "\nHEADER\nUSED\n")
        return out.read_text()

    first, other = kernel(1, 1), kernel(2, 1)
    assert first != other and len(asked) == 2
    assert (kernel(1, 2), kernel(2, 3)) == (first, other)
    assert len(asked) == 2
