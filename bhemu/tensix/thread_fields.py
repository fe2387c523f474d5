"""Fields of the 68 ThreadConfig values by name, which SETC16 writes (data/cfg_fields.json)."""

from bhemu.tensix.config_fields import Field, declared

globals().update(declared("thread"))


def __getattr__(name: str) -> Field:
    """No field: the names that exist are attributes already. Type checkers read its return type."""
    raise AttributeError(f"no field of ThreadConfig is called {name!r}")
