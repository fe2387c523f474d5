"""How long a campaign is: short in every run of the suite, long with BHEMU_LONG=1."""

import os

from hypothesis import HealthCheck, settings

LONG = bool(os.environ.get("BHEMU_LONG"))


def campaign(short: int, long: int) -> settings:
    """Settings of a campaign of that many examples; bounds.py runs it without conftest.py."""
    return settings(
        max_examples=long if LONG else short,
        derandomize=not LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
