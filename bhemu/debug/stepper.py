"""The stepper: an interactive session on a machine, with completion."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bhemu.arguments import did_you_mean
from bhemu.debug import places
from bhemu.debug.places import Command, Commands, Pushes, Sources, address, number, position
from bhemu.debug.show import Looking
from bhemu.devices.bus.address_map import fields_of
from bhemu.errors import InputError, UnknownName
from bhemu.machine import error_text
from bhemu.machine.breakpoints import ALL, Breakpoint, WordBreakpoint, code_places
from bhemu.machine.core import Core
from bhemu.machine.resolve import core_name, registers
from bhemu.machine.saved import Snapshot
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import ACCESS
from bhemu.memmap import CORE_NAMES
from bhemu.program import files
from bhemu.program.coordinates import At
from bhemu.program.schema import Program
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.insn import disassemble, instructions
from bhemu.tensix.views import NAMED

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


# The stepper's commands that go back, and those for saved states.


@dataclass(frozen=True)
class StateFiles:
    """Which files save and load touch: where a name of a command stands, what is not overwritten.

    `place` raises InputError for a name that a command may not use.
    """

    kept: tuple[Path, ...] = ()
    place: Callable[[str], Path] = Path


class GoingBack(Commands):
    """reverse-step and its sisters, goto, save, load; the rest of the stepper is Stepper."""

    _stopped: Callable[[Stop, Core], None]
    _files: StateFiles
    show: Callable[[], None]

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
        if (name := self.tile.stepping.stopped_core(stop)) is not None:
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

    def do_save(self, args: list[str]) -> None:
        """save FILE.npz: write the state of all tiles; bhemu step FILE.npz begins there."""
        path = self._files.place(args[0])
        files.check_writable(path, "save", self._files.kept)
        self.tile.machine.snapshot().save(path)
        self._out(f"saved: {path}, clock {self.tile.clock}")

    def do_load(self, args: list[str]) -> None:
        """load FILE.npz: go to a saved state; the past begins there."""
        self.tile.machine.restore(Snapshot.load(self._files.place(args[0])))
        self._out(f"clock {self.tile.clock}")
        self.show()


# What Tab offers in the stepper: commands, cores, symbols, fields, names of state.

_MOST = 200
_T = ("T0", "T1", "T2")


def candidates(command: str, before: Sequence[str], text: str, core: Core) -> Iterable[str]:
    """What may follow `before`, the arguments of a command so far; `text` begins it."""
    if command in ("break", "tbreak"):
        # What a breakpoint takes: code and a core, or a Tensix instruction, its fields, a thread
        if not before:
            return [*_code(core), *(one.name for one in instructions().values())]
        cls = next((one for one in instructions().values() if one.name == before[0]), None)
        if cls is None:
            return (*CORE_NAMES, "if")
        if before[-1] == "on":
            return _T
        return [*(f"{field.name}=" for field in cls.fields), "on", "if"]
    if command in ("until", "list", "dis"):
        return _code(core) if not before else CORE_NAMES
    if command in ("save", "load"):
        # Folders, and files of saved states
        found = sorted(Path(text).parent.glob("*") if text[-1:] != "/" else Path(text).glob("*"))
        folder = text.rpartition("/")[0] + "/" if "/" in text else ""
        shown = [path for path in found if path.is_dir() or path.suffix == ".npz"]
        return [f"{folder}{path.name}" + ("/" if path.is_dir() else "") for path in shown]
    if command in ("mem", "x", "read32", "print"):
        return [*_code(core), *registers(), *(f"${name}" for name in ABI_NAMES)]
    if command in ("core", "regs", "bt", "step", "reverse-step", "reverse-next"):
        return CORE_NAMES
    if command in ("gpr", "tnext", "tstep"):
        return _T
    if command in ("dump", "watch", "rwatch", "awatch"):
        return [named.name for named in NAMED] + [*_fields()]
    return {"cfg": _fields(), "info": _INFO, "src": ("a", "b")}.get(command, ())


def _fields() -> tuple[str, ...]:
    return (*fields_of(config_fields), *fields_of(thread_fields))


def _code(core: Core) -> list[str]:
    """Symbols, functions and source files of a core."""
    found: set[str] = set()
    for symbols in core.images:
        found.update(symbols.names)
        found.update(block.name for block in symbols.debug.blocks if block.name)
        found.update(symbols.debug.globals)
        found.update(f"{row.file}:" for row in symbols.rows)
    return sorted(found)


def matching(names: Iterable[str], text: str) -> list[str]:
    """Those that begin with `text`, else those that hold it, whatever the case."""
    wanted = text.lower()
    unique = dict.fromkeys(names)
    begin = [name for name in unique if name.lower().startswith(wanted)]
    return (begin or [name for name in unique if wanted in name.lower()])[:_MOST]


# The stepper: commands in tt-exalens' words over one tile; prints through a callable.

_MOST_SHOWN = 20  # single steps of one command that are shown one by one
_SHORT = "s step, n next, c continue, cont continue, b break, bkpt break, d delete, u until"
_SHORT += ", fin finish, r regs, ts tstep, tn tnext, h help, q quit, exit quit, tb tbreak"
_SHORT += ", l list, p print, disas dis, disassemble dis, i info, f frame, backtrace bt"
_SHORT += ", rs reverse-step, rn reverse-next, rc reverse-continue, rts reverse-tstep"
_WITH_FORMAT = re.compile(r"^\s*(x|mem|p|print)/(\S*)")
_MOVES = ("step", "next", "until", "finish", "continue", "tstep", "tnext", "core", "goto", "load")
_ALIASES = dict(pair.split() for pair in _SHORT.split(", "))


class Stepper(GoingBack, Looking):
    """The commands on a launched tile. `out` takes each line; `core` is the selected core.

    `states`: which files save and load touch.
    """

    def __init__(
        self,
        tile: Tile,
        program: Program,
        sources: Sources,
        out: Callable[[str], None],
        states: StateFiles | None = None,
    ) -> None:
        self._files = StateFiles(tuple(program.files())) if states is None else states
        self.tile, self._stepping = tile, tile.stepping
        self._sources, self._out = sources, out
        self._regs = {name: core.regs for name, core in self.tile.core.items()}
        released = [spec.name for spec in program.cores.values() if spec.release]
        begun = [core.name for core in tile.core.values() if core.state != "reset"]
        self.core: Core = self.tile.core[[*released, *begun, "brisc"][0]]
        self.last: Stop | None = None
        self._temporary: set[int] = set()
        self._defining: int | None = None  # the breakpoint whose commands are being entered
        self._scripts: dict[int, list[str]] = {}  # commands at stops, by its number
        self._due: list[str] = []  # commands of the breakpoint that was hit
        self._selected, self._listed = 0, None

    @property
    def prompt(self) -> str:
        """For example "(trisc0) "."""
        return f"({self.core.name}) " if self._defining is None else "> "

    def execute(self, line: str) -> bool:
        """Execute one command; False for quit. InputError for a mistake in it."""
        if self._defining is not None:
            if line.strip() == "end":
                self._defining = None
            elif line.strip():
                self._scripts[self._defining].append(line.strip())
            return True
        self._due = []
        going = self._execute(line)
        while going and self._due:
            going = self._execute(self._due.pop(0))
        return going

    def _execute(self, line: str) -> bool:
        words = _WITH_FORMAT.sub(r"\1 /\2", line, count=1).split()
        if not words:
            return True
        name = _ALIASES.get(words[0], words[0])
        command, args = COMMANDS.get(name), words[1:]
        if command is None:
            hint = f"{did_you_mean(name, COMMANDS)} commands: {', '.join(COMMANDS)}".lstrip()
            raise InputError(f"unknown command {words[0]!r}", hint=hint)
        if not command.least <= len(args) <= command.most:
            raise InputError(f"usage: {command.usage}")
        command.run(self, args)
        if name in _MOVES or name.startswith("reverse"):
            self._selected, self._listed = 0, None
        return name != "quit"

    def completions(self, line: str, text: str) -> list[str]:
        """What may stand at the end of `line` in place of `text`, its last word."""
        before = line[: len(line) - len(text)].split()
        if not before:
            return matching((*COMMANDS, *_ALIASES), text)
        name = _ALIASES.get(before[0], before[0]).partition("/")[0]
        return matching(candidates(name, before[1:], text, self.core), text)

    def show(self) -> None:
        """Where the selected core stands."""
        self._print(position(self.tile, self.core, self._sources))

    # Running

    def do_step(self, args: list[str]) -> None:
        """step [N] [CORE]: execute N RISC-V instructions (1)."""
        n, core = self._count_and_core(args)
        shown, left = n <= _MOST_SHOWN, n
        while left > 0:
            before, pushes = core.retired, Pushes(self.tile, core.index)
            stop = self._stepping.step(core, 1 if shown else left)
            self._print(pushes.lines())
            left -= max(core.retired - before, 0)
            if not (left and shown and core.retired > before and stop.reason == "step"):
                break
            self._print(position(self.tile, core, self._sources))
        self._stopped(stop, core)

    def do_next(self, args: list[str]) -> None:
        """next [N]: as step, over calls."""
        for _ in range(self._at_least_one(number(args[0]) if args else 1)):
            pushes = Pushes(self.tile, self.core.index)
            stop = self._stepping.next(self.core)
            self._print(pushes.lines())
            if stop.reason not in ("step", "breakpoint"):
                break
        self._stopped(stop, self.core)

    def do_until(self, args: list[str]) -> None:
        """until ADDRESS|SYMBOL|FILE:LINE: run until the selected core is there."""
        target = address(self.tile, self.core, args[0])
        self._stopped(self._stepping.run_to(self.core, [target]), self.core)

    def do_finish(self, args: list[str]) -> None:
        """finish: run until the current function has returned."""
        self._stopped(self._stepping.finish(self.core), self.core)

    def do_continue(self, args: list[str]) -> None:
        """continue: run to a breakpoint or to the end of the program."""
        stop = self._stepping.run()
        name = self._stepping.stopped_core(stop)
        if stop.breakpoint in self._stepping.points.words and stop.where is not None:
            name = f"trisc{stop.where.thread}"  # so that tstep goes on with this thread
        if name is not None:
            self.core = self.tile.core[name]
        self._stopped(stop, self.core, whole=True)

    def do_tstep(self, args: list[str]) -> None:
        """tstep [N] [THREAD]: execute N Tensix words of a thread (1, the core's)."""
        n = number(args[0]) if args else 1
        self._tensix(self._thread(args[1:]), lambda t: self._stepping.tstep(t, n))

    def do_tnext(self, args: list[str]) -> None:
        """tnext [THREAD]: one pushed Tensix word, over a whole MOP or REPLAY."""
        self._tensix(self._thread(args), self._stepping.tnext)

    def _tensix(self, thread: int, run: Callable[[int], Stop]) -> None:
        with self._stepping.recording() as entries:
            stop = run(thread)
        words = [entry for entry in entries if entry[0] == thread]
        if len(words) > _MOST_SHOWN:
            self._out(f"  ... {len(words) - _MOST_SHOWN} words, then")
        for _, word, pc, origin, _ in words[-_MOST_SHOWN:]:
            self._out(
                f"  T{thread} {disassemble(word)}{error_text.origin(origin)}  from pc {pc:#x}"
            )
        if not words:
            self._out(f"  T{thread} executed nothing")
        self.last = stop
        if stop.reason not in ("step", "until"):
            self._out(f"stopped: {stop.reason}, clock {stop.clock}")
        self._out(error_text.where_thread_line(self.tile, thread))

    def _stopped(self, stop: Stop, core: Core, *, whole: bool = False) -> None:
        """Say why it stopped, unless it is the step that was asked for, and where it stands.

        whole: the program was to run, not one core.
        """
        self.last = stop
        name = self._stepping.stopped_core(stop)
        stopped = core if name is None else self.tile.core[name]
        point = self._stepping.points.at(stopped.index, stopped.pc)
        n = stop.breakpoint if stop.change is None else stop.change.watchpoint.number
        self._due = list(self._scripts.get(n or 0, ()))
        if (word := self._stepping.points.words.get(stop.breakpoint or 0)) is not None:
            self._hit(word)
            self._out(f"  at {stop.where}")
        elif name is not None and point is not None:
            self._hit(point)
        elif not whole and stop.reason == "until" and core.state not in ("running", "blocked"):
            self._out(f"{core.name} is {core.state}")
        elif stop.change is not None:
            self._out(stop.change.watchpoint.with_verb("hit"))
            self._out(f"  {stop.change}, clock {stop.clock}")
            self._out(f"  by {stop.change.where}")
        elif stop.reason not in ("step", "breakpoint"):
            self._out(f"stopped: {stop.reason}, clock {stop.clock}")
        if stopped.index != core.index:
            self._print(position(self.tile, stopped, self._sources))
        self._print(position(self.tile, core, self._sources))

    # Looking

    def do_core(self, args: list[str]) -> None:
        """core NAME: select a core."""
        self.core = self.tile.core[core_name(args[0])]
        self.show()

    def do_where(self, args: list[str]) -> None:
        """where: every core and thread."""
        self._print(error_text.where_lines(self.tile))

    def do_check(self, args: list[str]) -> None:
        """check: compare the program's outputs as they are now."""
        results = self.tile.check()
        self._print([str(result) for result in results] or ["the program names no output"])

    def do_help(self, args: list[str]) -> None:
        """help [COMMAND]: this list, or one line of it."""
        for name, command in COMMANDS.items():
            if not args or name == _ALIASES.get(args[0], args[0]):
                self._out(f"  {command.usage}: {command.help}")

    def do_quit(self, args: list[str]) -> None:
        """quit: end the session."""

    # Breakpoints: break, watch, condition, ignore, commands, delete, info

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
        self._print(error_text.where_lines(self.tile))
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
        if not self._list_points(self._stepping.watched.points):
            self._out("no watchpoints")

    def _info_registers(self) -> None:
        self._print(places.regs(self.core, None))

    def _info_threads(self) -> None:
        self._print(error_text.where_lines(self.tile))

    def _info_source(self) -> None:
        for symbols in self.core.images:
            self._out(f"{self.core.name}: {symbols.path}")
            self._out(f"  code from {', '.join(sorted({row.file for row in symbols.rows}))}")
            for problem in (symbols.line_problem, symbols.debug.problem):
                if problem:
                    self._out(f"  {problem}")


COMMANDS = {
    name.removeprefix("do_").replace("_", "-"): Command.of(run)
    for part in (Stepper, Looking, GoingBack)
    for name, run in vars(part).items()
    if name.startswith("do_")
}
