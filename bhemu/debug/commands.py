"""What the stepper's commands share: the tile, the selected core, printing, arguments."""

import re
from collections.abc import Callable, Iterable

from bhemu.debug.places import address, number
from bhemu.errors import InputError
from bhemu.machine.core import Core
from bhemu.machine.resolve import LINE, core_name
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import At


class Commands:
    """A part of the stepper (stepper.py): `do_NAME` is a command; `_out` takes each line."""

    tile: Tile
    core: Core
    _out: Callable[[str], None]

    def _written(self, core: Core, text: str) -> At:
        """A place as code_places takes it: a name, FILE:LINE or a number."""
        if re.fullmatch(r"[A-Za-z_]\w*", text) and text != "pc":
            return text
        return text if LINE.fullmatch(text) else address(self.tile, core, text)

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._out(line)

    @staticmethod
    def _need(args: list[str], least: int, most: int, usage: str) -> None:
        if not least <= len(args) <= most:
            raise InputError(f"usage: {usage}")

    def _count_and_core(self, args: list[str], default: int = 1) -> tuple[int, Core]:
        self._need(args, 0, 2, "[N] [CORE]")
        n, core = default, self.core
        for arg in args:
            if arg in CORE_NAMES:
                core = self.tile.core[arg]
            else:
                n = number(arg, "count or core")
        if n < 1:
            raise InputError("the count must be 1 or more")
        return n, core

    def _one_count(self, args: list[str], usage: str) -> int:
        self._need(args, 0, 1, usage)
        n = number(args[0]) if args else 1
        if n < 1:
            raise InputError("the count must be 1 or more")
        return n

    def _one_core(self, args: list[str], usage: str) -> Core:
        self._need(args, 0, 1, usage)
        return self.tile.core[core_name(args[0])] if args else self.core

    def _thread(self, args: list[str]) -> int:
        """The named thread, or the one of the selected core (brisc, ncrisc: 0)."""
        if not args:
            return self.core.index - 1 if 1 <= self.core.index <= 3 else 0
        text = args[0].upper().removeprefix("T")
        if text not in ("0", "1", "2"):
            raise InputError(f"no Tensix thread {args[0]!r}", hint="0, 1 or 2")
        return int(text)
