"""Finds the generators of random programs: they belong to the source checkout, not to the wheel."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import bhemu
from bhemu.errors import InputError

PACKAGE = "random_programs"
_INIT = Path(bhemu.__file__).resolve().parents[1] / "tests" / PACKAGE / "__init__.py"


def present() -> bool:
    """Whether bhemu runs from a checkout."""
    return _INIT.is_file()


def load(name: str) -> ModuleType:
    """The module `name` of tests/random_programs; InputError when bhemu runs without a checkout."""
    if PACKAGE not in sys.modules:
        _register()
    return importlib.import_module(f"{PACKAGE}.{name}")


def _register() -> None:
    """Make the package importable, and nothing else of tests/."""
    if not present():
        raise InputError(
            "the generators of random programs belong to bhemu's source checkout;"
            " this is an installed package",
            hint="clone bhemu's repository and run `pip install -e .` there",
        )
    spec = importlib.util.spec_from_file_location(PACKAGE, _INIT)
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
