"""A temporary folder that goes with the process that made it, even when that one is killed."""

import base64
import os
import shutil
import subprocess
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

# Its input ends when the process that writes there does; a session of its own, so that what is
# sent to the terminal's processes does not reach it.
_GUARD = ("/bin/sh", "-c", 'trap "" HUP INT TERM; read -r _; rm -rf -- "$1"', "bhemu")


class Temporary:
    """The folder `path`, whose name begins with `prefix`; `close` removes it."""

    def __init__(self, prefix: str) -> None:
        name = base64.b32encode(os.urandom(5)).decode().lower()
        self.path = Path(tempfile.gettempdir()) / f"{prefix}{name}"
        guard: subprocess.Popen[bytes] | None = None
        none = subprocess.DEVNULL
        with suppress(OSError):  # without a shell it stays behind when the process is killed
            guard = subprocess.Popen(
                [*_GUARD, str(self.path)],
                stdin=subprocess.PIPE,
                stdout=none,
                stderr=none,
                cwd="/",
                start_new_session=True,
            )
        try:
            self.path.mkdir(mode=0o700)
        except OSError:  # what stands there is not for the guard to remove
            if guard is not None:
                guard.kill()
                guard.communicate()
            raise
        self.close = weakref.finalize(self, _remove, self.path, guard, os.getpid())


def _remove(path: Path, guard: "subprocess.Popen[bytes] | None", maker: int) -> None:
    if os.getpid() != maker:  # a copy of the process by fork: it is the maker's
        return
    shutil.rmtree(path, ignore_errors=True)
    if guard is not None:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
