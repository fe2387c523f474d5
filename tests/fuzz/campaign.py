"""How long a campaign is: short in every run of the suite, long with BHEMU_LONG=1.

A campaign is not given to bhemu.sweeps: hypothesis draws the next example from what came of the
last ones, and shrinks the first that fails, in one process. pytest -n shares campaigns out.
"""

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
