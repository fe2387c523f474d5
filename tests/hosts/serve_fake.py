"""`bhemu` with a fake chip in place of bhemu.chip: what a test starts in a process of its own."""

import sys
import types

from hosts.fake_chip import FakeChip

from bhemu.__main__ import main


class Slow(FakeChip):
    """Never idle; a write to SLEEP makes every later run take seconds; a snapshot is a file."""

    SLEEP = 0x51EE9000

    @property
    def idle(self) -> bool:
        return super().idle and not self._sleeps()

    def _sleeps(self) -> bool:
        return any(address == self.SLEEP for _, address in self.memory)

    def run(self, *, rounds: int) -> None:
        super().run(rounds=rounds)
        if self._sleeps():
            import time

            time.sleep(3600)

    def snapshot(self) -> "Slow":
        return self

    def save(self, path: str) -> None:
        with open(path, "w") as file:
            file.write(f"{len(self.memory)} bytes")


stand_in = types.ModuleType("bhemu.chip")
stand_in.Chip = Slow  # type: ignore[attr-defined]
sys.modules["bhemu.chip"] = stand_in
main()
