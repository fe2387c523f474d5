"""End-to-end tests run with the default engines; with BHEMU_LONG=1 with each engine."""

import os

import pytest

from bhemu.program.schema import ENGINES


@pytest.fixture(autouse=True, params=ENGINES if os.environ.get("BHEMU_LONG") else ["default"])
def _engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param in ENGINES:
        monkeypatch.setenv("BHEMU_ENGINE", request.param)
