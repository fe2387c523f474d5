"""Stepper commands for breakpoints, reverse steps and saved states."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bhemu.debug import places
from bhemu.debug.places import Commands, number
from bhemu.debug.show import Inspecting
from bhemu.errors import InputError, UnknownName
from bhemu.machine import where
from bhemu.machine.breakpoints import ALL, Breakpoint, WordBreakpoint, code_places
from bhemu.machine.core import Core
from bhemu.machine.resolve import core_name
from bhemu.machine.saved import Snapshot
from bhemu.machine.stepping import Stepping
from bhemu.machine.stop import Stop
from bhemu.machine.watchpoints import ACCESS
from bhemu.memmap import CORE_NAMES
from bhemu.program import files
from bhemu.program.coordinates import At
from bhemu.tensix.insn import instructions

# The stepper's breakpoints: break, watch, condition, ignore, commands, delete, info.

_INFO = ("breakpoints", "watchpoints", "locals", "registers", "source", "threads", "all")
_PLACES = (
    "an address or a symbol with its length (0x20000:4), sem:1, lreg:3:7, dst:12, a Config field,"
    " an element of an output (y[3,5]); of a variable of C print &NAME gives the address"
)
_MNEMONICS = {cls.name for cls in instructions().values()}


def _asked(args: list[str]) -> tuple[list[str], str]:
    """What stands before `if`, and the expression after it."""
    if "if" not in args:
        return list(args), ""
    at = args.index("if")
    if not args[at + 1 :]:
        raise InputError("an expression is missing after if")
    return args[:at], " ".join(args[at + 1 :])


class Breaking(Inspecting):
    """break and its sisters; the rest of the stepper is stepper.py."""

    _stepping: Stepping
    do_sem: Callable[[list[str]], None]
    _temporary: set[int]
    _defining: int | None  # the breakpoint whose commands are being entered
    _scripts: dict[int, list[str]]  # commands at stops, by its number

    def do_break(self, args: list[str]) -> None:
        """break [PLACE [CORE]] [if EXPRESSION]: a function, FILE:LINE, PACR last=1 on T2."""
        for point in self._set_all(args):
            self._out(f"breakpoint {point.number} set: {point.place}")

    def do_tbreak(self, args: list[str]) -> None:
        """tbreak [PLACE [CORE]] [if EXPRESSION]: as break, for one stop."""
        for point in self._set_all(args):
            self._temporary.add(point.number)
            self._out(f"temporary breakpoint {point.number} set: {point.place}")

    def _set_all(self, args: list[str]) -> list[Breakpoint | WordBreakpoint]:
        args, text = _asked(args)
        points: list[Breakpoint | WordBreakpoint]
        points = [self._set_word(args)] if args and args[0] in _MNEMONICS else [*self._set(args)]
        for point in points:
            core = self.core
            if isinstance(point, Breakpoint):
                core = self.tile.core[CORE_NAMES[point.core]]
            self._ask(point.number, core, text)
        return points

    def _ask(self, number: int, core: Core, text: str) -> None:
        """A breakpoint stops only where the expression is not 0; without one always."""
        asked = self._stepping.loop.conditions
        condition = self._condition(core, text) if text else None
        asked.ask(number, condition, asked.of(number).ignore, text)

    def _set_word(self, args: list[str]) -> WordBreakpoint:
        name, *rest = args
        threads = ALL
        if rest[-2:-1] == ["on"]:
            threads = (self._thread(rest[-1:]),)
            rest = rest[:-2]
        fields = {}
        for pair in rest:
            field, equals, value = pair.partition("=")
            if not equals:
                raise InputError(f"usage: {name} FIELD=VALUE... [on T0|T1|T2] [if EXPRESSION]")
            fields[field] = number(value, "value")
        return self._stepping.points.add_word(name, threads, **fields)

    def do_watch(self, args: list[str]) -> None:
        """watch PLACE [r|w|rw] [if EXPRESSION]: stop where PLACE (sem:1, y[0,3]) changes."""
        args, text = _asked(args)
        access = args.pop() if args and args[-1] in ACCESS else "w"
        if not args:
            raise InputError("usage: watch PLACE [r|w|rw] [if EXPRESSION]")
        from bhemu.debug.numerics import watched_text

        try:
            point = self._stepping.watch(self.core, watched_text(self.tile, "".join(args)), access)
        except UnknownName as unknown:
            near = unknown.hint if unknown.hint.startswith("did you mean") else _PLACES
            raise UnknownName(unknown.message, hint=near) from None
        self._ask(point.number, self.core, text)
        self._out(point.with_verb("set"))

    def do_rwatch(self, args: list[str]) -> None:
        """rwatch PLACE [if EXPRESSION]: stop where PLACE is read."""
        self._watch(args, "r")

    def do_awatch(self, args: list[str]) -> None:
        """awatch PLACE [if EXPRESSION]: stop where PLACE is read or changes."""
        self._watch(args, "rw")

    def _watch(self, args: list[str], access: str) -> None:
        at = args.index("if") if "if" in args else len(args)
        self.do_watch([*args[:at], access, *args[at:]])

    def do_condition(self, args: list[str]) -> None:
        """condition N [EXPRESSION]: stop at N only where it is not 0; without one always."""
        if not args:
            raise InputError("usage: condition N [EXPRESSION]")
        self._ask(self._known(args[0]), self.core, " ".join(args[1:]))

    def do_ignore(self, args: list[str]) -> None:
        """ignore N COUNT: pass breakpoint or watchpoint N COUNT times."""
        self._stepping.loop.conditions.of(self._known(args[0])).ignore = number(args[1], "count")

    def do_commands(self, args: list[str]) -> None:
        """commands N: what follows, up to `end`, is executed at each stop at N."""
        self._defining = self._known(args[0])
        self._scripts[self._defining] = []

    def _known(self, text: str) -> int:
        """The number of a breakpoint or watchpoint that is there."""
        points, n = self._stepping.points, number(text)
        known = [*points.points, *points.words, *self._stepping.watched.points]
        if n not in known:
            raise InputError(f"no breakpoint {n}", hint=", ".join(map(str, known)) or "none is set")
        return n

    def _set(self, args: list[str]) -> list[Breakpoint]:
        if len(args) > 2:
            raise InputError("usage: break ADDRESS|FUNCTION|FILE:LINE [CORE] [if EXPRESSION]")
        core = self.tile.core[core_name(args[1])] if len(args) > 1 else self.core
        at: At = self._written(core, args[0]) if args else core.pc
        places = code_places(self.tile, core, at, own=len(args) > 1)
        points = []
        for place in places:
            text = args[0] if args else "here"
            points.append(self._stepping.points.add(place.core.index, place.address, text))
        for note in dict.fromkeys(place.note for place in places if place.note):
            self._out(f"note: {note}")
        return points

    def do_delete(self, args: list[str]) -> None:
        """delete [N]: remove breakpoint or watchpoint N, or all."""
        self._stepping.delete(number(args[0]) if args else None)

    def _hit(self, point: Breakpoint | WordBreakpoint) -> None:
        """Say that a breakpoint stopped something; forget a temporary one."""
        kind = "temporary breakpoint" if point.number in self._temporary else "breakpoint"
        self._out(f"{kind} {point.number} hit: {point.place}")
        if point.number in self._temporary:
            self._temporary.discard(point.number)
            self._stepping.delete(point.number)

    # info

    def do_info(self, args: list[str]) -> None:
        """info [PART]: breakpoints, watchpoints, locals, registers, source, threads, or all."""
        wanted = args[0] if args else "all"
        named = [name for name in _INFO if name.startswith(wanted)]
        if len(named) != 1:
            raise InputError(f"no info {wanted!r}", hint=", ".join(_INFO))
        getattr(self, f"_info_{named[0]}")()

    def _info_all(self) -> None:
        self._out(f"clock {self.tile.clock}, round {int(self.tile.state.round[0])}")
        self._print(where.lines(self.tile))
        self.do_sem([])
        self._list_points()
        for xy, at, value in self._stepping.loop.end.words:
            of = "" if xy == self.tile.xy else f" of tile ({xy[0]},{xy[1]})"
            now = self.tile.tile_at(xy).read32(at)
            self._out(f"ends when word {at:#x}{of} is {value:#x} (now {now:#x})")

    def _info_breakpoints(self) -> None:
        if not self._list_points():
            self._out("no breakpoints or watchpoints")

    def _list_points(self, *kinds: Mapping[int, Any]) -> bool:
        stepping, lines = self._stepping, list[str]()
        every = (stepping.points.points, stepping.points.words, stepping.watched.points)
        for points in kinds or every:
            for n, point in points.items():
                lines += [str(point), *stepping.loop.conditions.of(n).lines()]
                lines += [f"  {line}" for line in self._scripts.get(n, ())]
        self._print(lines)
        return bool(lines)

    def _info_watchpoints(self) -> None:
        points = self._stepping.watched.points
        if not self._list_points(points):
            self._out("no watchpoints")

    def _info_registers(self) -> None:
        self._print(places.regs(self.core, None))

    def _info_threads(self) -> None:
        self._print(where.lines(self.tile))

    def _info_source(self) -> None:
        for symbols in self.core.images:
            self._out(f"{self.core.name}: {symbols.path}")
            self._out(f"  code from {', '.join(sorted({row.file for row in symbols.rows}))}")
            for problem in (symbols.line_problem, symbols.debug.problem):
                if problem:
                    self._out(f"  {problem}")


# The stepper's commands that go back.


class GoingBack(Commands):
    """reverse-step and its sisters, goto; the rest of the stepper is stepper.py."""

    _stopped: Callable[[Stop, Core], None]

    def do_reverse_step(self, args: list[str]) -> None:
        """reverse-step [N] [CORE]: back to where the core had executed N instructions fewer."""
        n, core = self._count_and_core(args)
        self._back(self.tile.history.reverse_step(core, n), core)

    def do_reverse_next(self, args: list[str]) -> None:
        """reverse-next [CORE]: one instruction back, over calls."""
        _, core = self._count_and_core(args)
        self._back(self.tile.history.reverse_next(core), core)

    def do_reverse_tstep(self, args: list[str]) -> None:
        """reverse-tstep [N] [THREAD]: back by N Tensix words of a thread."""
        n = number(args[0]) if args else 1
        self._back(self.tile.history.reverse_tstep(self._thread(args[1:]), n), self.core)

    def do_reverse_continue(self, args: list[str]) -> None:
        """reverse-continue: back to the last breakpoint or watchpoint, else to the beginning."""
        stop = self.tile.history.reverse_continue()
        name = self.tile.stepping.stopped_core(stop)
        if name is not None:
            self.core = self.tile.core[name]
        if stop.reason == "step":
            self._out("the history begins here")
        self._back(stop, self.core)

    def do_goto(self, args: list[str]) -> None:
        """goto CLOCK: to the moment at which the clock was CLOCK, or will be."""
        self._back(self.tile.history.goto(number(args[0], "clock")), self.core)

    def _back(self, stop: Stop, core: Core) -> None:
        self._out(f"clock {stop.clock}")
        self._stopped(stop, core)


# The stepper's commands for saved states.


@dataclass(frozen=True)
class StateFiles:
    """Which files save and load touch: where a name of a command stands, what is not overwritten.

    `place` raises InputError for a name that a command may not use.
    """

    kept: tuple[Path, ...] = ()
    place: Callable[[str], Path] = Path


class States(Commands):
    """save, load; the rest of the stepper is stepper.py."""

    _files: StateFiles
    show: Callable[[], None]

    def do_save(self, args: list[str]) -> None:
        """save FILE.npz: write the state of all tiles; bhemu step FILE.npz begins there."""
        path = self._files.place(args[0])
        files.check_writable(path, "save", self._files.kept)
        self.tile.machine.snapshot().save(path)
        self._out(f"saved: {path}, clock {self.tile.clock}")

    def do_load(self, args: list[str]) -> None:
        """load FILE.npz: go to a saved state; the past begins there."""
        path = self._files.place(args[0])
        self.tile.machine.restore(Snapshot.load(path))
        self._out(f"clock {self.tile.clock}")
        self.show()
