"""`python -m bhemu.cli`, where the command itself is not installed."""

from bhemu.cli import main

main(prog_name="bhemu")
