"""What a chip would do next, seen in a child process, so that nothing of it happens here."""

import json
import os
import select
import signal
from collections.abc import Callable

from bhemu import errors
from bhemu.errors import BhemuError

_PATIENCE = 5.0  # seconds


def seen_ahead(look: Callable[[], BhemuError | None]) -> BhemuError | None:
    """What `look` gives in a child process, which then ends; None where it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            found = look()
            os.write(writer, b"" if found is None else json.dumps(found.as_dict()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        said = b""
        while select.select([reader], [], [], _PATIENCE)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                break
            said += part
        else:
            os.kill(child, signal.SIGKILL)
            return None
    finally:
        os.close(reader)
        os.waitpid(child, 0)
    return errors.from_dict(json.loads(said)) if said else None
