"""`python -m bhemu.cli`, where the command itself is not installed."""

from bhemu.cli import main

if __name__ == "__main__":
    main(prog_name="bhemu")
