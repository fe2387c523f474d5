"""Preprocessed texts of kernels: system headers moved to the front, other generated headers."""

from collections.abc import Sequence
from pathlib import Path

import gxx
import pytest
from gxx import GCC

from llk_sweep.beginnings import Beginnings
from llk_sweep.preprocessed import Header, Library, Text, parsed

OPTIONS = ("-O2", "-std=c++17", "-g0")
needs_gcc = pytest.mark.skipif(not GCC, reason="no g++ here")

HEADER = """#pragma once
#include "kinds.h"
// of this test
constexpr int WIDTH = 4;
constexpr auto KIND = Kind::Small;
#define PLACE 7
"""
KINDS = """#pragma once
enum class Kind { Small, Large };
inline int both(Kind a) { return a == Kind::Large ? 3 : 5; }
#define MACRO 99
#define CALL(x) ((x) + 1)
"""


def preprocessed(folder: Path, source: str, name: str = "kernel") -> Text:
    """What g++ -E makes of a kernel in a folder."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / f"{name}.cpp").write_text(source)
    text, said = gxx.preprocessed(folder, OPTIONS, name)
    assert str(text) == said
    return text


def assembly(text: str | Text) -> str:
    return gxx.assembly(text, OPTIONS)


def with_header(folder: Path, header: str) -> tuple[Header, Text]:
    folder.mkdir(exist_ok=True)
    (folder / "kinds.h").write_text(KINDS)
    (folder / "build.h").write_text(header)
    body = 'int own;\n#include "build.h"\nint run() { return WIDTH * both(KIND) + PLACE; }\n'
    return Header(str(folder / "build.h"), header), preprocessed(folder, body)


def instead(folder: Path, header: str) -> str | None:
    """The text with another header in place of HEADER, checked against the preprocessor's own."""
    before, text = with_header(folder / "before", HEADER)
    other, own = with_header(folder / "other", header)
    found = other.instead(before, text)
    if found is None:
        return None
    assert found.bare == own.bare
    assert assembly(found) == assembly(own)
    return found.bare


@needs_gcc
def test_a_header_with_other_values_needs_no_preprocessor(tmp_path: Path) -> None:
    more = HEADER.replace("WIDTH = 4", "WIDTH = 8").replace("Small;", "Large;")
    found = instead(tmp_path, more + "constexpr int a = 1; // own\n")
    assert found is not None and "WIDTH = 8" in found and "Kind::Large;" in found
    assert instead(tmp_path, more + "constexpr int other = 1;\n") is None  # it may be a macro


@needs_gcc
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("WIDTH = 4", "WIDTH = MACRO"),
        ("WIDTH = 4", "WIDTH = CALL(4)"),
        ("WIDTH = 4", "WIDTH = both (Kind::Large)"),
        ("PLACE 7", "PLACE 8"),
        ("// of this test", "#define more"),
        ("WIDTH = 4", 'WIDTH = sizeof("\'")'),
        ("WIDTH = 4", "WIDTH = 4 /* four */"),
        ('#include "kinds.h"', '#include "./kinds.h"'),
    ],
)
def test_a_header_that_the_preprocessor_may_change_is_left_to_it(
    tmp_path: Path, old: str, new: str
) -> None:
    before, text = with_header(tmp_path / "before", HEADER)
    path = str(tmp_path / "other" / "build.h")
    assert Header(path, HEADER).instead(before, text) is not None
    assert Header(path, HEADER.replace(old, new)).instead(before, text) is None


@needs_gcc
def test_a_header_whose_lines_the_preprocessor_changes_gives_no_pattern(tmp_path: Path) -> None:
    before, text = with_header(tmp_path, HEADER.replace("WIDTH = 4", "WIDTH = MACRO"))
    other = before._replace(text=before.text.replace("Small;", "Large;"))
    assert other.instead(before, text) is None


def test_a_text_without_markers_gives_no_pattern() -> None:
    before, other = Header("build.h", "constexpr int A = 1;"), Header("b/build.h", "")
    assert other.instead(before, parsed("int f();\n")) is None
    text = parsed('# 1 "k.cpp"\nint f();\n')
    assert other.instead(before, text) is text  # which does not have the header


FIRST = "#include <vector>\nint a;\n#include <algorithm>\n"
OTHER = "int b;\n#include <algorithm>\nint c;\n#include <vector>\n#include <map>\n"
RUN = "int run(std::vector<int>& v) { std::sort(v.begin(), v.end()); return v[2]; }\n"


@needs_gcc
def test_the_library_of_one_kernel_is_that_of_another_in_any_order(tmp_path: Path) -> None:
    first = preprocessed(tmp_path, FIRST + RUN, "first")
    other = preprocessed(tmp_path, OTHER + RUN, "other")
    library = Library.of(first)
    assert library.fits(other) and not Library.of(other).fits(first)
    for text in (first, other):
        rest = text.without(library.contents)
        assert "std::sort" in rest and len(rest) < len(str(text)) / 3
        assert assembly(library.text + rest) == assembly(text)
    assert "_Rb_tree" in other.without(library.contents)  # what it has alone stays
    assert preprocessed(tmp_path, "\n" + FIRST + RUN, "first").bare == first.bare
    assert preprocessed(tmp_path, OTHER.replace("int c;\n", "") + RUN, "other").bare != other.bare


def shortened(
    once: Beginnings, texts: Sequence[Text], answer: bool | None
) -> tuple[list[bool], list[str]]:
    """Whether each text was shortened, and what the proof was asked about."""
    asked: list[str] = []

    def proof(given: str) -> bool | None:
        asked.append(given)
        return answer

    found = []
    for text in texts:
        given = once.shortened([str(GCC), *OPTIONS], text, proof)
        found.append(given is not None)
        if given is not None:
            assert assembly(given) == assembly(text)
    return found, asked


@needs_gcc
def test_the_library_is_compiled_at_once_and_proved_once(tmp_path: Path) -> None:
    texts = [preprocessed(tmp_path, each + RUN, "k") for each in (FIRST, OTHER)]
    once = Beginnings(tmp_path / "yes")
    found, asked = shortened(once, texts, True)
    assert found == [True, True] and len(asked) == 1
    assert asked[0].startswith("#pragma GCC pch_preprocess")
    found, asked = shortened(Beginnings(tmp_path / "yes"), texts[::-1], None)
    assert found == [True, True] and not asked  # another process finds it


@needs_gcc
def test_a_library_that_changes_code_is_not_moved(tmp_path: Path) -> None:
    texts = [preprocessed(tmp_path, each + RUN, "k") for each in (FIRST, OTHER)]
    once = Beginnings(tmp_path / "no")
    assert shortened(once, [*texts, *texts], False)[0] == [False] * 4
    assert [p.stat().st_size for p in (tmp_path / "no").glob("*.gch")] == [0]
    found, asked = shortened(Beginnings(tmp_path / "open"), texts, None)
    assert found == [False, False] and len(asked) == 2  # a kernel that compiles decides
    assert not list((tmp_path / "open").glob("*.gch"))


@needs_gcc
def test_kernels_of_several_files_share_what_they_include(tmp_path: Path) -> None:
    """Whatever the files are called, and in which of their lines they include it."""
    own = "\n".join(f"inline int own{i}(int x) {{ return x * {i}; }}" for i in range(20_000))
    (tmp_path / "own.h").write_text(own)
    texts = []
    for i in range(12):
        source = f"// {i}\n" + "\n" * i + "#include <vector>\n"
        source += '#include "own.h"\n#include <algorithm>\n'
        texts.append(preprocessed(tmp_path, f"{source}{RUN}int k{i};\n", f"k{i}"))
    once = Beginnings(tmp_path / "compiled")
    assert all(shortened(once, texts, True)[0])
    assert len(list((tmp_path / "compiled").glob("*.gch"))) == 2
    given = once.shortened([str(GCC), *OPTIONS], texts[0], lambda _: True)
    assert given is not None and "own7(" not in given
