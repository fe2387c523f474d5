"""Every end-to-end test runs with both engines of the RISC-V cores."""

import pytest


@pytest.fixture(autouse=True)
def _engines(both_engines: None) -> None:
    """See tests/conftest.py."""
