"""pytest --bhemu, as somebody's own tests use it; docs/pytest.md is one of them."""

import os
import re
from pathlib import Path

import pytest

from bhemu.jit import cache

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CACHE = str(cache.root())
PAGE = (ROOT / "docs" / "pytest.md").read_text()
WHERE = re.compile(r"brisc +running +pc 0x[0-9A-F]{8}")


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("BHEMU_CACHE_DIR", CACHE)  # pytester has a home of its own


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """In a process of its own, with the plugin of this checkout, however bhemu was installed."""
    plugin = ("-p", "no:bhemu", "-p", "bhemu.pytest_plugin", "-p", "no:cacheprovider")
    return pytester.runpytest_subprocess(*plugin, *options)


def test_the_page_s_example_fails_as_the_page_shows(pytester: pytest.Pytester) -> None:
    example, shown = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)[:2]
    pytester.makepyfile(test_kernel=example.replace("elfs/", f"{ROOT}/elfs/"))
    result = run(pytester, "--bhemu")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str().replace(f"{ROOT}/", "")
    for line in shown.splitlines():
        assert line == "..." or line in text, line


def test_without_the_option_who_asks_for_hardware_is_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_tile(bhemu_tile): pass
        def test_chip(bhemu_chip): pass
        def test_other(): pass
        """
    )
    run(pytester).assert_outcomes(skipped=2, passed=1)


def test_options_come_from_marks_and_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.bhemu(poison="ff", ub="warn")
        class TestMarked:
            @pytest.mark.bhemu(poison="zero")
            def test_nearer_marks_win(self, bhemu_tile):
                assert bhemu_tile.engine == "compiled"
                assert bhemu_tile.read32(0) == 0 and bhemu_tile.state.ub_mode[0] == 1

            def test_marked(self, bhemu_tile):
                assert bhemu_tile.read32(0) == 0xFFFFFFFF

        def test_a_tile_of_its_own(bhemu_tile):
            assert bhemu_tile.read32(0) == 0
        """
    )
    result = run(pytester, "--bhemu", "--bhemu-engine", "compiled", "--strict-markers")
    result.assert_outcomes(passed=3)


def test_every_tile_that_ran_is_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from bhemu.riscv.assembly import PARK, A0, addi, code, jal

        def test_chip(bhemu_chip):
            for at in (1, 2), (2, 2):
                bhemu_chip.tile[at].write(0, code(addi(A0, A0, 1), jal(0, -4)))
                bhemu_chip.tile[at].core["brisc"].release()
            bhemu_chip.tile[3, 2].write(0, code(PARK))
            bhemu_chip.run(rounds=3)
            assert False
        """
    )
    text = run(pytester, "--bhemu").stdout.str()
    assert [xy in text for xy in ("tile (1,2) -", "tile (2,2) -", "tile (3,2) -")] == [
        True,
        True,
        False,
    ]
    assert len(WHERE.findall(text)) == 2


def test_many_tiles_are_counted_and_a_passing_test_shows_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from bhemu import Tile

        def test_passes(bhemu_tile):
            bhemu_tile.core["brisc"].release()

        def test_fails(bhemu_tile):
            made = [Tile(engine="compiled") for _ in range(10)]
            for tile in made:
                tile.core["brisc"].release()
            assert False
        """
    )
    text = run(pytester, "--bhemu").stdout.str()
    assert len(WHERE.findall(text)) == 8
    assert "2 more tiles" in text


COVERED = f"""
import pytest
from bhemu import Program, Tile

@pytest.mark.parametrize("times", [1, 2])
def test_program(times):
    for _ in range(times):
        assert Program.load("{ROOT}/elfs/add1").launch().run().reason == "until"

@pytest.fixture(scope="module")
def tile():
    return Tile()

@pytest.mark.parametrize("part", [1, 2])
def test_one_tile_that_is_reset(tile, part):
    tile.reset()
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        elf = tile.core[name].load_elf(f"{ROOT}/elfs/add1/{{name}}.elf")
    args = elf.symbols.address("runtime_args")
    for i, value in enumerate((1, 0x3F800000, 0x40000, 0xC0000)):
        tile.write32(args + 4 * i, value)
    tile.core["brisc"].release()
    assert tile.run([(0x100, 0xD0E0)], timeout_s=10).reason == "until"
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_lines_that_tests_execute_add_up(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    """Five runs of add1 in four tests, on three tiles that are freed and one that is kept."""
    pytester.makepyfile(COVERED)
    more = ("-p", "xdist", *workers) if workers else ()
    result = run(pytester, "--bhemu-coverage", "out.info", *more)
    result.assert_outcomes(passed=4)
    text = (pytester.path / "out.info").read_text()
    record = next(one for one in text.split("end_of_record") if "/add1/math.c" in one)
    assert "FNDA:5,main" in record
    result.stdout.fnmatch_lines(
        ["bhemu coverage: * of * lines of kernels were executed: *out.info"]
    )


def test_a_tracefile_that_cannot_be_written_is_a_mistake(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test(): pass")
    result = run(pytester, "--bhemu-coverage", "nowhere/out.info")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "nowhere" in result.stderr.str()
