"""Settings of all tests.

Hypothesis tries the same examples in every run, new ones with BHEMU_LONG=1; however slow a machine
is, no example is too late. A single test has a bound of its own all the same.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import settings
from selected import Selected

from bhemu.jit import cache, host
from bhemu.program.schema import ENGINES

# Functions that tests call from Python (njit(cache=True)): numba keeps them, and does not notice
# edits of what they call.
_APART = "bench cli debug hosts launch llk metal oracle pictures program sweeps why".split()


def _compiled() -> str:
    """Hash of all modules but those of rooms that compiled code cannot import (test_imports.py)."""
    digest = hashlib.sha256()
    for path in sorted(host.PACKAGE.rglob("*.py")):
        name = path.relative_to(host.PACKAGE)
        if name.parts[0] not in _APART:
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


_KEPT = f"tests-{_compiled() if host.fingerprint() else os.getpid()}"
os.environ["NUMBA_CACHE_DIR"] = str(cache.root() / _KEPT)

settings.register_profile(
    "bhemu", deadline=None, database=None, derandomize=not os.environ.get("BHEMU_LONG")
)
settings.load_profile("bhemu")

_SECONDS = 600  # for one test, on a busy machine with nothing compiled


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make test` says."""
    parser.addoption("--selected", action="store_true", help="tests of what differs from main")


def pytest_configure(config: pytest.Config) -> None:
    """See selected.py."""
    if config.getoption("--selected"):
        config.pluginmanager.register(Selected(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that hangs is named and shows where; campaigns (BHEMU_LONG=1) take their time.

    A thread watches: compiled code that does not end never comes to a signal's handler. It ends
    the process; pytest -n names the test and goes on with another process.
    """
    if not os.environ.get("BHEMU_LONG"):
        for item in items:
            item.add_marker(pytest.mark.timeout(_SECONDS, method="thread"))


@pytest.fixture(params=(*ENGINES, "translated"))
def all_engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As both_engines, and once more with everything translated by Unicorn from the beginning."""
    if request.param == "translated":
        monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", "0")
    monkeypatch.setenv(
        "BHEMU_ENGINE", ENGINES[0] if request.param == "translated" else request.param
    )


@pytest.fixture(params=ENGINES)
def both_engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: every tile that does not name its engine gets one, then the other."""
    monkeypatch.setenv("BHEMU_ENGINE", request.param)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """firmware/build.py over a copy of the sources, the generated header beside them."""
    from test_firmware import toolchain

    build = toolchain()
    own, root = build.ROOT, tmp_path_factory.mktemp("sources")
    shutil.copytree(own / "firmware", root / "firmware")
    build.write_header(root / "firmware")
    build.ROOT = root  # the module is that of every other test, too
    yield build
    build.ROOT = own
