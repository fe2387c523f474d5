"""Beginnings of kernels that are compiled once: by whom, how often, and what comes out."""

import re
from pathlib import Path

import gxx
import pytest
from gxx import GCC

from llk_sweep import beginnings
from llk_sweep.beginnings import Beginnings, cuts
from llk_sweep.preprocessed import Text

LONG = "\n".join(f"inline int library{i}(int x) {{ return x * {i}; }}" for i in range(3000))
OPTIONS = ("-O1", "-g", "-Wall", "-Werror")


def kernel(folder: Path, name: str, body: str, own: str = "") -> Text:
    """The preprocessed text of a kernel that includes the library, then a header of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "library.h").write_text(LONG)
    (folder / "own.h").write_text(own)
    source = folder / f"{name}.cpp"
    source.write_text(f'#include "library.h"\n#include "own.h"\n\n{body}\n')
    return gxx.preprocessed(folder, (), name)[0]


def assembly(text: str | Text) -> str:
    return gxx.assembly(text, OPTIONS)


def unasked(_: str) -> bool:
    raise AssertionError("no system headers are moved here")


def test_a_text_is_cut_behind_headers_of_the_kernel_itself() -> None:
    text = (
        '# 0 "<stdin>"\n# 1 "<stdin>"\n# 1 "k.cpp" 1\n# 1 "a.h" 1\n# 1 "inner.h" 1\nint inner;\n'
        '# 2 "a.h" 2\nint a;\n# 2 "k.cpp" 2\n# 1 "b.h" 1\nint b;\n# 3 "k.cpp" 2\nint k;\n'
        '# 2 "<stdin>" 2\n'
    )
    assert [(cut.file, cut.line) for cut in cuts(text)] == [("k.cpp", 2), ("k.cpp", 3)]
    assert [text[: cut.at].splitlines()[-2] for cut in cuts(text)] == ["int a;", "int b;"]


@pytest.mark.skipif(not GCC, reason="no g++ here")
def test_a_kernel_with_a_compiled_beginning_comes_out_the_same(tmp_path: Path) -> None:
    once = Beginnings(tmp_path / "compiled")
    found = []
    for i in range(10):
        body = f"int run(int n) {{\n  return library{i + 7}(n) + library2999(n) + N;\n}}"
        text = kernel(tmp_path / "sources", f"k{i}", body, f"constexpr int N = {i};\n")
        given = once.shortened([str(GCC), *OPTIONS], text, unasked)
        found.append(given is not None)
        if given is not None:
            assert len(given) < len(str(text)) / 10
            assert assembly(given) == assembly(text)
            assert f"k{i}.cpp" in assembly(given)
    assert found == [False] * 3 + [True] * 7
    assert len(list((tmp_path / "compiled").glob("*.gch"))) == 1


@pytest.mark.skipif(not GCC, reason="no g++ here")
def test_a_beginning_that_ends_in_a_namespace_is_tried_once(tmp_path: Path) -> None:
    once = Beginnings(tmp_path / "compiled")
    found = []
    for i in range(10):
        body = f"int run() {{ return library{i}(1); }} }}"
        text = kernel(tmp_path / "sources", f"k{i}", body, "namespace open {")
        given = once.shortened([str(GCC), *OPTIONS], text, unasked)
        found.append(given is not None)
        if given is not None:
            assert "namespace open" in given
            assert assembly(given) == assembly(text)
    assert found == [False] * 4 + [True] * 6
    sizes = sorted(path.stat().st_size for path in (tmp_path / "compiled").glob("*.gch"))
    assert sizes[0] == 0 < sizes[1] and len(sizes) == 2


@pytest.mark.skipif(not GCC, reason="no g++ here")
def test_other_options_have_beginnings_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = Beginnings(tmp_path / "compiled")
    text = kernel(tmp_path / "sources", "k", "int run() { return library5(1); }")
    for _ in range(8):
        given = once.shortened([str(GCC), *OPTIONS], text, unasked)
    assert given is not None
    assert re.match(r'#pragma GCC pch_preprocess ".*\.gch"\n', given)
    assert once.shortened([str(GCC), "-O2"], text, unasked) is None
    monkeypatch.setattr(beginnings, "_MOST", 1)
    for _ in range(8):
        assert once.shortened([str(GCC), "-O2"], text, unasked) is None
