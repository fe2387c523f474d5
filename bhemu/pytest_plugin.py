"""pytest --bhemu: a fresh tile or chip for a test, and where everything stood when it failed.

pytest loads this file wherever bhemu is installed, so the emulator is imported when a test asks.
"""

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from bhemu.machine.machine import Chip
    from bhemu.machine.tile import Tile

_T = TypeVar("_T")
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


def pytest_configure(config: pytest.Config) -> None:
    """Our marker."""
    config.addinivalue_line(
        "markers", "bhemu(**options): options of the Tile or Chip that the test gets"
    )


def _made(request: pytest.FixtureRequest, kind: Callable[[], Callable[..., _T]]) -> _T:
    if not request.config.getoption("--bhemu"):
        pytest.skip("needs --bhemu")
    engine = request.config.getoption("--bhemu-engine")
    options: dict[str, Any] = {} if engine is None else {"engine": engine}
    for mark in reversed(list(request.node.iter_markers("bhemu"))):
        options.update(mark.kwargs)
    return kind()(**options)


def _tile() -> "type[Tile]":
    from bhemu.machine.tile import Tile

    return Tile


def _chip() -> "type[Chip]":
    from bhemu.machine.machine import Chip

    return Chip


@pytest.fixture
def bhemu_tile(request: pytest.FixtureRequest) -> "Tile":
    """A Tile, powered up; `@pytest.mark.bhemu(poison="ff")` gives it options."""
    return _made(request, _tile)


@pytest.fixture
def bhemu_chip(request: pytest.FixtureRequest) -> "Chip":
    """A Chip, powered up; options as for bhemu_tile."""
    return _made(request, _chip)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the tiles that the test makes, those of programs that it launches too."""
    if not item.config.getoption("--bhemu"):
        return (yield)
    from bhemu.machine.tile import tile_created

    made = item.stash[_MADE] = list[Any]()
    tile_created.append(made.append)
    try:
        return (yield)
    finally:
        tile_created.remove(made.append)
        made.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach where its tiles stand to the report of a test that failed."""
    report = yield
    if report.failed and _MADE in item.stash:
        tiles = [tile for tile in item.stash[_MADE] if (tile.state.core_state != 0).any()]
        for tile in tiles[:_MOST]:
            report.sections.append((f"bhemu tile ({tile.xy[0]},{tile.xy[1]})", _standing(tile)))
        if len(tiles) > _MOST:
            report.sections.append(("bhemu", f"{len(tiles) - _MOST} more tiles"))
    return report


def _standing(tile: "Tile") -> str:
    """Cores and threads, and what each waits for."""
    return "\n".join([str(tile.where()), *_waits(tile)])


def _waits(tile: "Tile") -> Iterator[str]:
    """The wait-for graph, also of a program that the test did not let run to its end."""
    from bhemu.machine.hang.explore import livelock
    from bhemu.machine.hang.graph import wait_for_graph

    graph = str(wait_for_graph(tile, livelock(tile, _BUDGET)))
    if graph:
        yield "who waits for whom:"
        yield graph
