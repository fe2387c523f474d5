"""The command `bhemu`, and `python -m bhemu`: Ctrl-C is no traceback, from its first line on."""

import _signal  # what `signal` is made of: that one imports enum, which takes milliseconds
import gc
import os
import sys

_OBJECTS = 200_000  # new ones between two collections: what is imported stays, and nothing is found

# Threads of numpy's BLAS, which get no work here, must not wait for it busily: a third of a short
# run's time.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def _leave(number: int, frame: object) -> None:
    """Ctrl-C while this very file's imports are under way: there is nothing to clean up."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def main() -> None:
    """Import and run the command; exit code 130 when interrupted meanwhile."""
    gc.set_threshold(_OBJECTS)
    ours = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if ours:
        _signal.signal(_signal.SIGINT, _leave)
    try:
        from bhemu.system import interrupts

        if ours:
            interrupts.watch()
        from bhemu.cli import main as command

        command(prog_name="bhemu")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:  # the exit code is decided; Python's own end would let a late alarm kill the process
        for number in (_signal.SIGINT, _signal.SIGALRM):
            _signal.signal(number, _signal.SIG_IGN)
        gc.freeze()  # nor need it look for cycles in all that goes now


if __name__ == "__main__":
    main()
