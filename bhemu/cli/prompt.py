"""The prompt of `bhemu step`: line editing, Tab, and a history that outlives the session."""

import atexit
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bhemu.debug.stepper import Stepper

_KEPT = 2000  # lines of history


def history_file() -> Path:
    """Where commands are kept: $BHEMU_HISTORY ("" for nowhere), else the user's state folder."""
    given = os.environ.get("BHEMU_HISTORY")
    if given is not None:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME")
    home = Path(state) if state else Path.home() / ".local" / "state"
    return home / "bhemu" / "step_history"


def reader(stepper: "Stepper") -> Callable[[str], str]:
    """input(), with line editing, completion and history where the system has them."""
    try:
        import readline
    except ImportError:
        return input
    found: list[str] = []

    def complete(text: str, n: int) -> str | None:
        if n == 0:
            found[:] = stepper.completions(readline.get_line_buffer(), text)
        return found[n] if n < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t")
    readline.parse_and_bind("tab: complete")
    _keep(readline, history_file())
    return input


def _keep(readline: Any, path: Path) -> None:
    """Read the history, and write it when the process ends."""
    with contextlib.suppress(OSError):
        readline.read_history_file(path)

    def write() -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(_KEPT)
            readline.write_history_file(path)

    atexit.register(write)
