"""Runs a command, and says every two seconds that it is still at work and what it said last.

    scripts/shown.py TEXT COMMAND...

On a terminal that is one line, which the next one replaces. What the command has written is shown
where it fails. Exit code: that of the command.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence

_PERIOD = 2.0  # seconds
_WIDTH = 100


def main(arguments: Sequence[str]) -> int:
    """Run the command."""
    text, *command = arguments
    begin, lines, over = time.monotonic(), [""], threading.Event()
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def show() -> None:
        while True:
            say(f"{text}, {time.monotonic() - begin:.0f} s  {lines[-1].strip()}"[:_WIDTH])
            if over.wait(_PERIOD):
                return

    shown = threading.Thread(target=show)
    shown.start()
    assert done.stdout is not None
    lines += done.stdout
    code = done.wait()
    over.set()
    shown.join()
    say(f"{text}: {'done' if code == 0 else 'failed'}, {time.monotonic() - begin:.0f} s", end="\n")
    if code:
        sys.stderr.write("".join(lines))
    return code


def say(text: str, end: str = "") -> None:
    """A line; on a terminal in place of the last one."""
    terminal = sys.stderr.isatty()
    sys.stderr.write(f"\r\x1b[K{text}{end}" if terminal else f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
