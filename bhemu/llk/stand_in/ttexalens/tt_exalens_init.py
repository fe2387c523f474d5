"""Start and end of a session: there is one context per process, made when first asked for."""

from typing import Any

from .context import Context

_active: list[Context] = []


def active() -> Context:
    """The context of this process."""
    if not _active:
        _active.append(Context())
    return _active[0]


def init_ttexalens(**options: Any) -> Context:
    """A new context; tt-exalens' options choose how to reach hardware and mean nothing here."""
    cleanup_global_context()
    return active()


def init_ttexalens_remote(**options: Any) -> Context:
    """As init_ttexalens: there is no server to reach."""
    return init_ttexalens(**options)


def cleanup_global_context() -> None:
    """Forget the context and its tiles."""
    _active.clear()
