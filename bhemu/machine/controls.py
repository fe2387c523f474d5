"""What a user does with a machine: runs, steps, breakpoints, traces, where everything stands.

A tile and a chip have the same calls, and each drives the whole machine. Calls that are about one
tile take `tile`: a coordinate; of a chip it may be left out where the program is on one tile.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from bhemu import arguments
from bhemu.errors import BhemuError, InputError, UnknownName
from bhemu.jit import Later
from bhemu.machine.breakpoints import ALL, Breakpoint, Condition, WordBreakpoint, checked
from bhemu.machine.resolve import resolve
from bhemu.machine.run import RunLoop
from bhemu.machine.stop import Stop, Until
from bhemu.machine.watchpoints import Watchpoint

if TYPE_CHECKING:
    from bhemu.machine import callbacks
    from bhemu.machine.callbacks import AccessEvent, InstructionEvent, WordEvent
    from bhemu.machine.error_text import WhereReport
    from bhemu.machine.history import History
    from bhemu.machine.tile import Tile
    from bhemu.machine.word_text import TracedWord
    from bhemu.program.outputs import OutputResult
    from bhemu.program.specs import OutputSpec
    from bhemu.riscv import core_loop
else:
    callbacks = Later("bhemu.machine.callbacks")
    core_loop = Later("bhemu.riscv.core_loop")

XY = tuple[int, int]


class Controls:
    """The part of Tile and Chip that drives their machine, each of the thread that made it.

    INTERNAL: names that dir() leaves out.
    """

    NOUN: ClassVar[str]
    INTERNAL: ClassVar[frozenset[str]]
    timing: str
    chosen: Callable[[object], Tile]  # what a call is about; InputError where that cannot be told
    tiles_made: Callable[[], tuple[Tile, ...]]  # that exist and can be seen from here
    tile_at_index: Callable[[int], Tile]  # in the order of the grid, made when it is not there yet
    output: Callable[[OutputSpec], tuple[int, bytes]]  # its address and its bytes

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def check_thread(self) -> None:
        """InputError in another thread than the one that made the object."""
        if threading.get_ident() != self._thread:
            raise InputError(
                f"a {self.NOUN} belongs to the thread that made it",
                hint=f"make a {self.NOUN} in each thread, or run in processes",
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        noun = self.NOUN
        raise InputError(
            f"a {noun} cannot be copied or pickled",
            hint=f"{noun}.snapshot() can, and another {noun} can restore() it",
        )

    def __dir__(self) -> list[str]:
        names = super().__dir__()
        return sorted(
            n for n in names if n not in self.INTERNAL and (n[:1] != "_" or n[:2] == "__")
        )

    @property
    def loop(self) -> RunLoop:
        """The run loop of the machine."""
        raise NotImplementedError

    def _check_not_running(self, call: str) -> None:
        self.check_thread()
        self.loop.check_not_running(call)

    def _standing(self, call: str, tile: XY | None) -> Tile:
        """The tile that a call is about, which no run goes on with."""
        self._check_not_running(call)
        return self.chosen(tile)

    def run(
        self,
        until: Until = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
        rounds: int | None = None,
    ) -> Stop:
        """Run all tiles until `until`, until nothing can move, or until a limit.

        until: a callable (of the object whose run() this is) -> bool, asked once per round; or
        words of L1 that must all hold, exact at the store or Tensix word that completes them, as
        (address, value), ((x, y), address, value) or {"word": address, "equals": value} with or
        without "tile", addresses being integers or symbols; or "idle"; or "polling": every core
        that runs only polls, so that nothing changes until a host writes.
        limit: in units of the clock of this object; rounds: at most so many. What is not given is
        as the launched program says. Errors: BhemuError; again raised until reset() or
        run(resume=True).
        """
        self.check_thread()
        return self.loop.run(until, limit, timeout_s, resume, rounds)

    @property
    def error(self) -> BhemuError | None:
        """The error that stopped the last run."""
        return self.loop.error

    @property
    def stop(self) -> Stop | None:
        """How the last run or step ended; None when none did, or with an error."""
        return self.loop.last

    def step(self, core: str, n: int = 1, *, hold: bool = False, tile: XY | None = None) -> Stop:
        """Normal schedule until `core` retired `n` instructions; hold freezes its tile's others.

        Ends with "until" when the core executes nothing more, and at a breakpoint of any core.
        """
        one = self._standing("step", tile)
        return one.stepping.step(one.core[core], n, hold)

    def next(self, core: str, *, tile: XY | None = None) -> Stop:
        """One instruction of `core`; a call runs until it has returned."""
        one = self._standing("next", tile)
        return one.stepping.next(one.core[core])

    def finish(self, core: str, *, tile: XY | None = None) -> Stop:
        """Until the function that `core` is in has returned."""
        one = self._standing("finish", tile)
        return one.stepping.finish(one.core[core])

    def run_to(self, core: str, place: int | str, *, tile: XY | None = None) -> Stop:
        """Until `core` is at an address, symbol or FILE:LINE."""
        one = self._standing("run_to", tile)
        return one.stepping.run_to(one.core[core], [checked(one.core[core].address(place))])

    def tstep(self, thread: int, n: int = 1, *, tile: XY | None = None) -> Stop:
        """Normal schedule until Tensix thread 0-2 executed `n` words, past any breakpoint.

        n = 0: until a word of the thread stands at the wait gate.
        """
        return self._standing("tstep", tile).stepping.tstep(arguments.thread(thread), n)

    def tnext(self, thread: int, *, tile: XY | None = None) -> Stop:
        """One pushed Tensix word of a thread, with all that MOP or REPLAY makes of it."""
        return self._standing("tnext", tile).stepping.tnext(arguments.thread(thread))

    def break_at(
        self,
        core: str,
        place: int | str,
        *,
        condition: Condition | None = None,
        ignore: int = 0,
        tile: XY | None = None,
    ) -> int:
        """Stop before `core` executes `place`: an address, function or FILE:LINE; its number.

        Also wherever that function or line is inlined. Only if condition(tile) holds, and not the
        first `ignore` times that it does.
        """
        one = self._standing("break_at", tile)
        number = one.stepping.break_at(one.core[core], place).number
        self.loop.conditions.ask(number, condition, ignore)
        return number

    def break_word(
        self,
        name: str,
        thread: int | None = None,
        *,
        condition: Condition | None = None,
        ignore: int = 0,
        tile: XY | None = None,
        **fields: int,
    ) -> int:
        """Stop before a Tensix word executes, as in break_word("PACR", 2, last=1); its number.

        thread: 0-2, None for any; fields: those that must have a value. Else as break_at.
        """
        points = self._standing("break_word", tile).stepping.points
        threads = ALL if thread is None else (arguments.thread(thread),)
        number = points.add_word(name, threads, **fields).number
        self.loop.conditions.ask(number, condition, ignore)
        return number

    def watch(
        self,
        place: int | str,
        core: str = "brisc",
        access: str = "w",
        *,
        condition: Condition | None = None,
        ignore: int = 0,
        tile: XY | None = None,
    ) -> int:
        """Stop after the instruction or Tensix word that changes `place`; its number.

        access: "w" changes, "r" reads, "rw" both. A core reads what it loads; a Tensix word or a
        device access reads a place if it would have done anything else with other bits there.

        place: an L1 address or symbol, with a length in bytes as in "0x20000:16" (default 4); an
        address of `core`'s local memory; a Config or ThreadConfig field (any bank, any thread); a
        part of the state with its indices, as in "sem:1", "gpr:0:5", "lreg:3", "dst:12"; of a tile
        on a chip, bytes of a DRAM bank, as in "dram:0:0x40:4": the run stops after the request
        that reached them. What a host writes is no change. Stop.change tells what was there
        before, and what changed it.
        condition, ignore: as break_at.
        """
        one = self._standing("watch", tile)
        if not isinstance(place, str):
            place = f"{arguments.integer('place', place):#x}"
        number = one.stepping.watch(one.core[core], place, access).number
        self.loop.conditions.ask(number, condition, ignore)
        return number

    def on_word(
        self,
        name: str | None,
        function: Callable[[WordEvent], object],
        *,
        thread: int | None = None,
        tile: XY | None = None,
        **fields: int,
    ) -> int:
        """Call `function` before each Tensix word `name` (None: any) executes; its number.

        fields: those that must have a value; thread: 0-2; without `tile` all tiles of the machine.
        A word that must wait is told once. What raises in `function` ends the run as InputError.
        """
        self._check_not_running("on_word")
        threads = (0, 1, 2) if thread is None else (arguments.thread(thread),)
        pattern = callbacks.word_rule(name, fields)
        return self._call(function, tile, lambda _: {**pattern, "threads": frozenset(threads)})

    def on_pc(
        self,
        core: str | None,
        place: int | str | tuple[int, int],
        function: Callable[[InstructionEvent], object],
        *,
        tile: XY | None = None,
    ) -> int:
        """Call `function` before each instruction at `place` that `core` (None: any) executes.

        place: as of break_at, or first address and the one after the last; else as on_word.
        """
        self._check_not_running("on_pc")

        def rule(one: Tile | None) -> dict[str, Any]:
            span = callbacks.span(place, one, lambda t, at: t.core[core or "brisc"].address(at))
            return {**span, "kinds": core_loop.PC, "cores": callbacks.cores(core)}

        return self._call(function, tile, rule)

    def on_access(
        self,
        place: int | str | tuple[int, int],
        function: Callable[[AccessEvent], object],
        *,
        access: str = "rw",
        core: str | None = None,
        tile: XY | None = None,
    ) -> int:
        """Call `function` after each load or store of a core that touches `place`; its number.

        place: the address of a word, as a number, register or symbol, or first address and the one
        after the last. access: "r" loads, "w" stores, "rw" both. Else as on_word. Words that
        `.ttinsn` pushes, requests of the NoC and what the coprocessor accesses are no accesses.
        """
        self._check_not_running("on_access")
        if access not in callbacks.ACCESSES:
            raise InputError(f"access = {access!r}: want one of {', '.join(callbacks.ACCESSES)}")

        def rule(one: Tile | None) -> dict[str, Any]:
            span = callbacks.span(place, one, lambda t, at: resolve(t, at, core))
            return {**span, "kinds": callbacks.ACCESSES[access], "cores": callbacks.cores(core)}

        return self._call(function, tile, rule)

    def _call(
        self,
        function: Callable[[Any], object],
        tile: XY | None,
        rule: Callable[[Tile | None], dict[str, Any]],
    ) -> int:
        """Add what calls a function: one rule, or one of each tile where names differ."""
        if not callable(function):
            raise InputError(f"function = {function!r} must be callable")
        made: tuple[Tile | None, ...] = self.tiles_made() or (None,)
        tiles = made if tile is None else (self.chosen(tile),)
        found: dict[tuple[Any, ...], set[XY]] = {}
        missing: UnknownName | None = None
        for one in tiles:
            try:
                xys = found.setdefault(tuple(rule(one).items()), set())
                xys |= set() if one is None else {one.xy}
            except UnknownName as problem:
                missing = problem
        if missing is not None and not found:
            raise missing
        number = next(self.loop.numbers)
        everywhere = tile is None and missing is None and len(found) == 1
        self.loop.callbacks.add(
            callbacks.Rule(number, function, None if everywhere else frozenset(xys), **dict(what))
            for what, xys in found.items()
        )
        return number

    def delete(self, n: int | None = None) -> None:
        """Remove breakpoint or watchpoint `n`, or what calls a function, or all."""
        self._check_not_running("delete")
        number = None if n is None else arguments.integer("n", n)
        places: list[Any] = [self.loop.callbacks, *(one.stepping for one in self.tiles_made())]
        holding = [place for place in places if number is None or number in place.numbers]
        for place in holding:
            place.delete(number)
        if not holding:
            known = [point.number for point in (*self.breakpoints, *self.watchpoints)]
            hint = ", ".join(map(str, known)) or "there are none"
            raise InputError(f"no breakpoint {number}", hint=hint)

    @property
    def watchpoints(self) -> tuple[Watchpoint, ...]:
        """The watchpoints that are set."""
        made = self.tiles_made()
        return tuple(p for tile in made for p in tile.stepping.watched.points.values())

    @property
    def breakpoints(self) -> tuple[Breakpoint | WordBreakpoint, ...]:
        """The breakpoints that are set, those on Tensix words last."""
        points = [tile.stepping.points for tile in self.tiles_made()]
        at: list[Breakpoint] = [p for own in points for p in own.points.values()]
        return (*at, *(p for own in points for p in own.words.values()))

    @property
    def cycles(self) -> int:
        """Cycles of modelled time so far; InputError without timing "model"."""
        if self.timing != "model":
            raise InputError('cycles are those of timing = "model", which this machine has not')
        return self.loop.rounds.clock

    def trace(self, limit: int | None = None, *, tile: XY | None = None) -> list[TracedWord]:
        """Run as run() does, or until a tile executed `limit` Tensix words; its words in order.

        An error is raised as by run(); the words before it are in `traced` of the tile.
        """
        stepping = self._standing("trace", tile).stepping
        stepping.trace(limit)
        return stepping.traced

    @property
    def traced(self) -> list[TracedWord]:
        """The words of the last trace()."""
        return self.chosen(None).stepping.traced

    def keep_history(self, *, tile: XY | None = None) -> History:
        """Leave marks from now on, so that runs can go back (History); the same one if it is kept.

        The moments of the whole machine are named by the clock of a tile. A mark of one tile costs
        about 3 ms and up to 2 MB, every 2^20 clock units at first; at most 64 stay.
        """
        from bhemu.machine.history import Marks

        self._check_not_running("keep_history")
        if self.loop.observer is None:
            self.loop.observer = Marks(self.loop)
        return self.loop.observer.history(self.chosen(tile))

    @property
    def history(self) -> History:
        """What keep_history() began; InputError when it was not called."""
        self.check_thread()
        if self.loop.observer is None:
            raise InputError("no history is kept", hint="call keep_history() before the run")
        return self.loop.observer.history(self.chosen(None))

    def where(self) -> WhereReport:
        """Where every core and thread stands and what it waits for; prints as lines."""
        from bhemu.machine import error_text

        made = self.tiles_made()
        return error_text.WhereReport(
            f"({tile.xy[0]},{tile.xy[1]}) {line}" if len(made) > 1 else line
            for tile in made
            for line in error_text.where_lines(tile)
        )

    def check(self) -> list[OutputResult]:
        """The outputs of the launched program: saved where it says so, and compared."""
        from bhemu.program.outputs import collect

        return collect(self._launched(), self.output)

    def why(
        self, place: str | None = None, core: str = "brisc", *, tile: XY | None = None
    ) -> list[Any]:
        """What is wrong with the launched program, or what made `place` what it is at its end.

        The program runs once more from its launch, beside this machine; the findings are those of
        `bhemu why` (bhemu.why.findings.Finding, in the order of docs/why.md), none for a right
        program. place: an element of an output, an address, a field, a part of the state, as in
        "y[0,2]", "0x20000:4", "sem:1"; core: whose local memory it lies in.
        """
        self._check_not_running("why")
        question = importlib.import_module("bhemu.why.question")  # above the machine, much code
        one = self.chosen(tile)
        times = {"late": None if one.late is None else str(one.late), "timing": one.timing}
        given = {name: value for name, value in times.items() if value not in (None, "off")}
        found: list[Any] = question.of_program(
            self._launched(), place, core, int(one.state.quantum[0]), one.xy, given
        )
        return found

    def _launched(self) -> Any:
        if self.loop.program is None:
            raise InputError("no program was launched", hint="Program.load(path).launch()")
        return self.loop.program
