"""Work in a child process, watched: when a signal ends it, somebody is left who can say so."""

import os
import signal
from collections.abc import Callable


def guarded(work: Callable[[], int], lost: Callable[[str], int]) -> int:
    """The exit code of `work`, done in a child process, which returns from here too.

    When a signal ends the child, `lost` is called in this process with the signal's name. SIGTERM
    goes on to the child. The child does not need this process.
    """
    child = os.fork()
    if child == 0:
        return work()
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child's to answer
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else lost(signal.Signals(-code).name)
