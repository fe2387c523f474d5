"""The command `bhemu`, and `python -m bhemu`: Ctrl-C is no traceback, from the first import on."""

import sys

try:
    import signal

    from bhemu import interrupts
except KeyboardInterrupt:
    sys.stderr.write("interrupted\n")
    sys.exit(130)


def main() -> None:
    """Import and run the command; exit code 130 when interrupted meanwhile."""
    try:
        interrupts.watch()
        from bhemu.cli import main as command

        command(prog_name="bhemu")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:  # the exit code is decided
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
