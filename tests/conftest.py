"""Compiled helper functions are callable from the tests (see bhemu/tensix/subset.py)."""

import os

os.environ["BHEMU_PYTHON_WRAPPERS"] = "1"

import numba

from bhemu.tensix import cache

# functions that tests compile by themselves: kept apart for every version of the sources
numba.config.CACHE_DIR = str(cache.root() / f"tests-{cache.key(cache.closure('bhemu.backend'))}")
