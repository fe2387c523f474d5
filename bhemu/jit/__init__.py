"""How code compiles and loads; modules that are imported when something of them is asked for."""

import importlib
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """A module that is imported when something of it is asked for.

    For modules of which a run takes machine code only, while that is kept: so it begins sooner.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)
