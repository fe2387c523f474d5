"""Compiled helper functions are callable from the tests (see bhemu/tensix/subset.py)."""

import os

os.environ["BHEMU_PYTHON_WRAPPERS"] = "1"
