"""The tests of the cores: Unicorn executes everything itself, unless a test says otherwise."""

import pytest


@pytest.fixture(autouse=True)
def translated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No instruction of the Unicorn engine runs in the loop of the compiled one."""
    monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", "0")
