"""The driver of libttsim.so: what needs no library first, then cases when the user has one."""

import os
from pathlib import Path

import golden_case
import numpy as np
import pytest

from bhemu.errors import InputError
from bhemu.oracle.libttsim import ENVIRONMENT, Case, Library, find
from bhemu.riscv.assembly import PARK, code, tt

needs_library = pytest.mark.skipif(
    not os.environ.get(ENVIRONMENT), reason="the library is the user's own"
)


def one_line(problem: InputError) -> str:
    assert "\n" not in problem.message
    return problem.message


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        find(tmp_path / "libttsim.so")
    assert "no such library" in one_line(caught.value)


def test_no_library_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with pytest.raises(InputError, match=r"no libttsim\.so named"):
        find(None)


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    other = tmp_path / "libttsim.so"
    other.write_text("not an ELF")
    with pytest.raises(InputError) as caught:
        Library(other)
    assert "not a libttsim.so of Blackhole" in one_line(caught.value)


def test_a_name_without_a_folder_is_a_file_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader of libraries would look for such a name elsewhere."""
    monkeypatch.chdir(tmp_path)
    Path("libttsim.so").write_text("not an ELF")
    with pytest.raises(InputError) as caught:
        Library("libttsim.so")
    assert "no such file" not in one_line(caught.value).lower()


@needs_library
@pytest.mark.parametrize("name", ["gpr_cfg", "mm_hifi4_fp32"])
def test_a_golden_case_gives_its_golden_image(name: str) -> None:
    case = golden_case.load(name)
    outcome = find(None).run(Case(case.before.tobytes()))
    assert outcome.done
    assert outcome.l1 is not None
    assert np.array_equal(outcome.l1, case.after)
    assert outcome.seconds > 0


@needs_library
def test_an_error_has_a_category_and_a_deadlock_is_unfinished() -> None:
    library = find(None)

    def image(*words: int) -> bytes:
        return bytes(0x10000) + code(*words, PARK)

    started = {"trisc0": 0x10000}
    refused = library.run(Case(image(tt("SUBDMAREG")), started))
    assert (refused.kind, refused.category) == ("error", "UnsupportedFunctionality")
    assert library.run(Case(image(), started), clocks=5000).kind == "unfinished"
