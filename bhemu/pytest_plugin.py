"""pytest --bhemu: a fresh tile or chip for a test, and where everything stood when it failed.

pytest loads this file wherever bhemu is installed, so the emulator is imported when a test asks.
"""

import pickle
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    pass

_MOST = 8  # tiles that a report shows
_BUDGET = 100_000  # instructions that are followed to find out what a polling core waits for
_MADE = pytest.StashKey[list[Any]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our options."""
    group = parser.getgroup("bhemu", "emulated Blackhole tiles and chips")
    group.addoption(
        "--bhemu",
        action="store_true",
        help="run tests that use bhemu_tile or bhemu_chip, and report where tiles stood",
    )
    group.addoption("--bhemu-engine", metavar="NAME", help="what runs the RISC-V cores")
    group.addoption(
        "--bhemu-coverage",
        metavar="FILE.info",
        help="write which lines of kernels the tests execute, as an LCOV tracefile",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Our marker."""
    config.addinivalue_line(
        "markers", "bhemu(**options): options of the Tile or Chip that the test gets"
    )
    if config.getoption("--bhemu-coverage"):
        config.pluginmanager.register(_Coverage(config), "bhemu coverage")


def _new_machine(request: pytest.FixtureRequest, kind: str) -> Any:
    if not request.config.getoption("--bhemu"):
        pytest.skip("needs --bhemu")
    import bhemu

    engine = request.config.getoption("--bhemu-engine")
    options: dict[str, Any] = {} if engine is None else {"engine": engine}
    for mark in reversed(list(request.node.iter_markers("bhemu"))):
        options.update(mark.kwargs)
    return getattr(bhemu, kind)(**options)


@pytest.fixture
def bhemu_tile(request: pytest.FixtureRequest) -> Any:
    """A Tile, powered up; `@pytest.mark.bhemu(poison="ff")` gives it options."""
    return _new_machine(request, "Tile")


@pytest.fixture
def bhemu_chip(request: pytest.FixtureRequest) -> Any:
    """A Chip, powered up; options as for bhemu_tile."""
    return _new_machine(request, "Chip")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the tiles that the test makes, those of programs that it launches too."""
    if not item.config.getoption("--bhemu"):
        return (yield)
    from bhemu.machine.tile import of_new_tiles

    with of_new_tiles(lambda tile: tile) as made:
        item.stash[_MADE] = made
        try:
            return (yield)
        finally:
            made.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach where its tiles stand to the report of a test that failed."""
    report = yield
    if report.failed and _MADE in item.stash:
        from bhemu.machine.hang.explore import livelock
        from bhemu.machine.hang.graph import wait_for_graph

        tiles = [tile for tile in item.stash[_MADE] if (tile.state.core_state != 0).any()]
        for tile in tiles[:_MOST]:
            # Cores and threads, and what each waits for, also where the test did not let it run on
            graph = str(wait_for_graph(tile, livelock(tile, _BUDGET)))
            lines = [str(tile.where()), *(["wait-for graph:", graph] if graph else [])]
            report.sections.append((f"bhemu tile ({tile.xy[0]},{tile.xy[1]})", "\n".join(lines)))
        if len(tiles) > _MOST:
            report.sections.append(("bhemu", f"{len(tiles) - _MOST} more tiles"))
    return report


class _Coverage:
    """Counts what all tiles of a session execute, and writes it at its end (--bhemu-coverage)."""

    def __init__(self, config: pytest.Config) -> None:
        from bhemu.debug.line_coverage import LineCoverage
        from bhemu.errors import InputError
        from bhemu.program import files

        self._config, self._path = config, Path(config.getoption("--bhemu-coverage")).absolute()
        try:
            files.check_writable(self._path, "--bhemu-coverage")
        except InputError as problem:
            raise pytest.UsageError(str(problem)) from None
        self._total, self._watched = LineCoverage(), list[Any]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Watch tiles while tests run."""
        from bhemu.debug.line_coverage import watching

        with watching() as self._watched:
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """After each test count what those tiles executed that nothing else will count."""
        result = yield
        self._collect([one for one in self._watched if one.tile() is None])
        return result

    def _collect(self, watched: list[Any]) -> None:
        for one in watched:
            self._watched.remove(one)
            self._total.add(one.coverage())

    def pytest_sessionfinish(self) -> None:
        """Write what all tests have executed; a worker of xdist gives it to the controller."""
        self._collect(list(self._watched))
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["bhemu"] = pickle.dumps(self._total)
        else:
            self._total.write(self._path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of xdist has ended."""
        found = getattr(node, "workeroutput", {}).get("bhemu")
        if found is not None:
            self._total.add(pickle.loads(found))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How much it is, and where it stands."""
        from bhemu.debug.line_coverage import sums

        found = sums(self._total.sources.values())
        told = f"{found['lines_hit']} of {found['lines']} lines of kernels were executed"
        terminalreporter.write_line(f"bhemu coverage: {told}: {self._path}")
        for path, problem in sorted(self._total.without.items()):
            terminalreporter.write_line(f"bhemu coverage: {path}: not counted: {problem}")
