"""`bhemu` with a fake chip in place of bhemu.chip: what a test starts in a process of its own.

MAKING is how many seconds it takes to make the chip.
"""

import os
import sys
import time
import types
from types import SimpleNamespace

from hosts.fake_chip import FakeChip

from bhemu.__main__ import main


class Slow(FakeChip):
    """A write to SLEEP makes the next run last for ever; a snapshot is a text."""

    SLEEP = 0x51EE9000

    def __init__(self, **options: object) -> None:
        time.sleep(float(os.environ.get("MAKING", 0)))
        super().__init__(**options)

    def run(self, until: str, *, rounds: int, resume: bool = False) -> SimpleNamespace:
        stop = super().run(until, rounds=rounds, resume=resume)
        if any(address == self.SLEEP for _, address in self.memory):
            time.sleep(3600)
        return stop

    def snapshot(self) -> "Slow":
        return self

    def save(self, path: str) -> None:
        with open(path, "w") as file:
            file.write(f"{len(self.memory)} bytes")


stand_in = types.ModuleType("bhemu.machine.machine")
stand_in.Chip = Slow  # type: ignore[attr-defined]
sys.modules["bhemu.machine.machine"] = stand_in
main()
