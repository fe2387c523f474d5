"""`python -m bhemu` is the command `bhemu`."""

from bhemu.cli import main

main(prog_name="bhemu")
