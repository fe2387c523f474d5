"""The stepper's breakpoints: break, tbreak, delete, and what `info` lists."""

from collections.abc import Callable, Iterable

from bhemu.core import Core
from bhemu.debug import registers
from bhemu.debug.places import number
from bhemu.errors import InputError
from bhemu.machine import status
from bhemu.machine.breakpoints import Breakpoint
from bhemu.machine.code import code_places
from bhemu.machine.stepping import Machine
from bhemu.names import core_name
from bhemu.program.address import At
from bhemu.tile import Tile

_INFO = ("breakpoints", "locals", "registers", "source", "threads", "all")


class Breaking:
    """break and its sisters; the rest of the stepper is stepper.py."""

    tile: Tile
    core: Core
    _machine: Machine
    _out: Callable[[str], None]
    _temporary: set[int]

    def _print(self, lines: Iterable[str]) -> None:
        raise NotImplementedError

    def _need(self, args: list[str], least: int, most: int, usage: str) -> None:
        raise NotImplementedError

    def do_break(self, args: list[str]) -> None:
        """break [ADDRESS|FUNCTION|FILE:LINE [CORE]]: set a breakpoint (here)."""
        self._need(args, 0, 2, "break ADDRESS|FUNCTION|FILE:LINE [CORE]")
        for point in self._set(args):
            self._out(f"breakpoint {point.number} set: {point.place}")

    def do_tbreak(self, args: list[str]) -> None:
        """tbreak [ADDRESS|FUNCTION|FILE:LINE [CORE]]: as break, for one stop."""
        self._need(args, 0, 2, "tbreak ADDRESS|FUNCTION|FILE:LINE [CORE]")
        for point in self._set(args):
            self._temporary.add(point.number)
            self._out(f"temporary breakpoint {point.number} set: {point.place}")

    def _set(self, args: list[str]) -> list[Breakpoint]:
        core = self.tile.core[core_name(args[1])] if len(args) > 1 else self.core
        at: At = self._written(core, args[0]) if args else core.pc
        places = code_places(self.tile, core, at, own=len(args) > 1)
        points = []
        for place in places:
            text = args[0] if args else "here"
            points.append(self._machine.points.add(place.core.index, place.address, text))
        for note in dict.fromkeys(place.note for place in places if place.note):
            self._out(f"note: {note}")
        return points

    def _written(self, core: Core, text: str) -> At:
        raise NotImplementedError

    def do_delete(self, args: list[str]) -> None:
        """delete [N]: remove breakpoint or watchpoint N, or all."""
        self._need(args, 0, 1, "delete [N]")
        self._machine.delete(number(args[0]) if args else None)

    def _hit(self, point: Breakpoint) -> None:
        """Say that a breakpoint stopped a core; forget a temporary one."""
        kind = "temporary breakpoint" if point.number in self._temporary else "breakpoint"
        self._out(f"{kind} {point.number} hit: {point.place}")
        if point.number in self._temporary:
            self._temporary.discard(point.number)
            self._machine.points.delete(point.number)

    # info

    def do_info(self, args: list[str]) -> None:
        """info [breakpoints|locals|registers|source|threads]: all there is to say, or one part."""
        self._need(args, 0, 1, f"info [{'|'.join(_INFO[:-1])}]")
        wanted = args[0] if args else "all"
        named = [name for name in _INFO if name.startswith(wanted)]
        if len(named) != 1:
            raise InputError(f"no info {wanted!r}", hint=", ".join(_INFO))
        getattr(self, f"_info_{named[0]}")()

    def _info_all(self) -> None:
        self._out(f"clock {self.tile.clock}, round {int(self.tile.state.round[0])}")
        self._print(status.where(self.tile))
        self._print(registers.sem(self.tile))
        self._list_points()
        for at, value in self._machine.end.words:
            self._out(f"ends when word {at:#x} is {value:#x} (now {self.tile.read32(at):#x})")

    def _info_breakpoints(self) -> None:
        if not self._list_points():
            self._out("no breakpoints or watchpoints")

    def _list_points(self) -> bool:
        watched = self._machine.watched.points.values()
        lines = [str(point) for point in (*self._machine.points.points.values(), *watched)]
        self._print(lines)
        return bool(lines)

    def _info_registers(self) -> None:
        self._print(registers.regs(self.core, None))

    def _info_threads(self) -> None:
        self._print(status.where(self.tile))

    def _info_source(self) -> None:
        for symbols in self.core.images:
            self._out(f"{self.core.name}: {symbols.path}")
            self._out(f"  code from {', '.join(sorted({row.file for row in symbols.rows}))}")
            for problem in (symbols.line_problem, symbols.debug.problem):
                if problem:
                    self._out(f"  {problem}")

    def _info_locals(self) -> None:
        raise NotImplementedError
