"""Compiled helper functions are callable from the tests (see bhemu/jit/subset.py).

Hypothesis tries the same examples in every run, new ones with BHEMU_LONG=1; however slow a machine
is, no example is too late.
"""

import os

os.environ["BHEMU_PYTHON_WRAPPERS"] = "1"

import numba
from hypothesis import settings

from bhemu.jit import cache

# functions that tests compile by themselves: kept apart for every version of the sources
numba.config.CACHE_DIR = str(cache.root() / f"tests-{cache.key(cache.closure('bhemu.backend'))}")

settings.register_profile(
    "bhemu", deadline=None, database=None, derandomize=not os.environ.get("BHEMU_LONG")
)
settings.load_profile("bhemu")
