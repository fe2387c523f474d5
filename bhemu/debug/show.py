"""Stepper commands that show memory, registers, expressions and the way to an instruction."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.arguments import did_you_mean
from bhemu.debug import dump, places
from bhemu.debug.decoded import View
from bhemu.debug.dump import Selection
from bhemu.debug.places import Commands, Read, Sources, Value, address, evaluate, number
from bhemu.devices.bus.address_map import block_name, device_name, find
from bhemu.errors import InputError, UnknownName
from bhemu.machine import error_text, saved
from bhemu.machine.breakpoints import Condition
from bhemu.machine.core import Core
from bhemu.machine.hang import explore
from bhemu.machine.sentences import CONDITIONS
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import spans
from bhemu.memmap import L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.program.variables import Frame, Gone, locate, owners, type_of, visible

# Memory as a core sees it, looked at without any effect.


def look(tile: Tile, core: Core, address: int, size: int) -> bytes:
    """Bytes of L1 or local RAM, or an access of 1, 2 or 4 bytes to a device; InputError."""
    s, c = tile.state, core.index
    if 0 <= address <= L1_SIZE - size:
        return s.l1[address : address + size].tobytes()
    offset = address - LOCAL_BASE
    if 0 <= offset <= LOCAL_SIZES[c] - size:
        return s.local[c, offset : offset + size].tobytes()
    if size > 4:
        parts = range(0, size, 4)
        return b"".join(look(tile, core, address + i, min(4, size - i)) for i in parts)
    place = f"{address:#010x} ({block_name(address)})"
    try:
        value = explore.load(tile, c, address, size)
    except explore.Waits as wait:
        text = CONDITIONS[wait.condition].text
        raise InputError(f"a load from {place} would wait for {text}") from None
    except explore.Escape:
        raise InputError(
            f"{core.name} cannot look at {place}: the load is refused, or has effects",
            hint="read32 makes the access all the same",
        ) from None
    if value is None:  # it changes by itself
        value = core.read32(address)
    return value.to_bytes(4, "little")[:size]


def word_of(address: int, core: int | None = None) -> str:
    """The name of what stands at a device address, with blanks before it; "" for memory."""
    return f"  {device_name(address, core)}" if find(address) is not None else ""


# The stepper's commands on C: print, x, list, frames, info locals.

_EXAMINE = re.compile(r"(\d*)([xduotcfis]?)([bhw]?)")
_SIZES = {"b": 1, "h": 2, "w": 4, "": 4}
_LIST = 10  # lines of source
_MOST = 1024
_NAMED = 3  # functions that have a variable


class NoFrame(InputError):  # noqa: N818 (as its sisters)
    """Nothing is known of the variables of where a core stands."""


class CFrame(NamedTuple):
    """A function or inlined copy that a core is in."""

    function: str
    file: str | None
    line: int | None


def _form(args: list[str]) -> tuple[str, list[str]]:
    """What follows the slash of the command, and the rest."""
    if args and args[0].startswith("/"):
        return args[0][1:], args[1:]
    return "", args


def items(read: Read, start: int, count: int, form: str, size: int) -> Iterable[str]:
    """Items of memory, 16 bytes to a line."""
    row = 16 // size
    for first in range(0, count, row):
        at = start + first * size
        raws = [read(at + i * size, size) for i in range(min(row, count - first))]
        name = word_of(at) if len(raws) == 1 else ""
        yield f"  {at:08x}:  " + "  ".join(_item(raw, form) for raw in raws) + name


def _item(raw: bytes, form: str) -> str:
    value: Any = int.from_bytes(raw, "little", signed=form == "d")
    if form == "x":
        return f"{value:0{2 * len(raw)}x}"
    if form == "c":
        return repr(chr(value & 0xFF))
    return f"{value:0{8 * len(raw)}b}" if form == "t" else str(value)


# The stepper's commands that show registers, state and memory.

_LOOKING_MOST = 4096  # words, instructions or lines of one command
_DUMPED_MOST = 8  # names of one command: a range of L1 looks at all of it


def _too_much(text: str) -> InputError:
    return InputError(text, hint="a range, as in l1:0x100-0x1ff; bhemu dump shows all")


class Looking(Commands):
    """regs, print and their sisters; the rest of the stepper is stepper.py."""

    _regs: dict[str, npt.NDArray[np.uint32]]
    _sources: Sources
    _selected: int
    _listed: tuple[str, str, int] | None

    def do_regs(self, args: list[str]) -> None:
        """regs [CORE]: registers; * marks what changed since the last dump."""
        core = self._one_core(args)
        self._print(places.regs(core, self._regs.get(core.name)))
        self._regs[core.name] = core.regs

    def do_gpr(self, args: list[str]) -> None:
        """gpr [THREAD]: the 64 Tensix GPRs."""
        self._show(Selection("gpr", part=f"t{self._thread(args)} "))

    def do_cfg(self, args: list[str]) -> None:
        """cfg [NAME|WORD]: configuration, by (part of) a field name or word index."""
        number = bool(args) and args[0][0].isdigit()
        try:
            found = dump.select([f"cfg:{args[0]}"] if number else args or ["cfg", "thread_cfg"])
        except InputError as unknown:
            if number:
                raise
            raise InputError(f"no configuration field {args[0]!r}", hint=unknown.hint) from None
        self._show(*found, places=bool(args))
        for word in range(found[0].low or 0, (found[0].high or 0) + 1) if number else ():
            held = [f"bank {n} {int(bank[word]):#x}" for n, bank in enumerate(self.tile.state.cfg)]
            self._print([f"  word {word}  {'  '.join(held)}"])

    def do_rwc(self, args: list[str]) -> None:
        """rwc: row counters."""
        self._show(*dump.select(["rwc:0-2"]))

    def do_adc(self, args: list[str]) -> None:
        """adc: address counters of unpackers and packer."""
        self._show(*dump.select(["adc:0-2"]))

    def do_dst(self, args: list[str]) -> None:
        """dst [ROW|ROW-ROW [FORMAT]]: Dst decoded; bf16 fp16 fp32 int32."""
        if args:
            self._show(*dump.select([f"dst:{args[0]}"]), fmt=args[1] if len(args) > 1 else "")
        else:
            self._show(Selection("dst_valid"))
            self._print(self._used("dst"))

    def do_src(self, args: list[str]) -> None:
        """src [a|b [ROW|ROW-ROW]]: SrcA and SrcB."""
        if args and args[0].lower() not in ("a", "b"):
            raise InputError(f"no source register {args[0]!r}", hint="a or b")
        self._show(Selection("src_banks"))
        if args:
            rows = args[1] if len(args) > 1 else "0-63"
            self._show(*dump.select([f"src{args[0].lower()}:{rows}"]))
        else:
            self._print((*self._used("srca"), *self._used("srcb")))

    def do_lreg(self, args: list[str]) -> None:
        """lreg [N]: LRegs of the vector unit."""
        if args:
            for fmt in ("raw", "fp32"):
                self._show(*dump.select([f"lreg:{args[0]}"]), fmt=fmt)
        else:
            self._show(Selection("lreg"))

    def do_sem(self, args: list[str]) -> None:
        """sem: semaphores and mutexes."""
        s = self.tile.state
        held = [f"mutex {i}: T{int(owner) - 1}" for i, owner in enumerate(s.mutex) if owner]
        self._out("  ".join(f"sem{i} {int(s.sem[i])}/{int(s.sem_max[i])}" for i in range(8)))
        self._out(f"mutexes: {', '.join(held) or 'all free'}")

    def _show(self, *chosen: Selection, fmt: str = "", places: bool = False) -> None:
        """State of this tile as bhemu dump shows it; places: of fields the word and the shift."""
        shown = dump.text(saved.take(self.tile), chosen, View(fmt))
        lines = list(islice(shown, _LOOKING_MOST + 1))
        if len(lines) > _LOOKING_MOST:
            raise _too_much(f"dump shows {_LOOKING_MOST} lines at most")
        self._print(map(dump.with_place, lines) if places else lines)

    def _used(self, name: str) -> Iterator[str]:
        """Which rows of a register hold something."""
        found: dict[str, list[int]] = {}
        for row in Selection(name).rows(saved.take(self.tile), View()):
            found.setdefault(row.label.partition(" row")[0], []).append(row.index or 0)
        for part, rows in found.items():
            yield f"{name} {part}: rows that are not 0: {_spans(rows)}"
        if not found:
            yield f"{name}: all rows are 0"

    def do_mem(self, args: list[str]) -> None:
        """mem ADDRESS [N] [CORE]: N words (8) of L1, local RAM or a device, as the core sees it."""
        n, core = self._count_and_core(args[1:], default=8)
        start = address(self.tile, core, args[0])
        if start % 4:
            raise InputError(f"{start:#x} is not aligned to 4 bytes")
        if n > _LOOKING_MOST:
            hint = "bhemu dump shows all of L1"
            raise InputError(f"mem shows 1 to {_LOOKING_MOST} words", hint=hint)
        self._print(items(self._memory(core), start, n, "x", 4))

    def do_read32(self, args: list[str]) -> None:
        """read32 ADDRESS [CORE]: load a word as the core does, with what else the load does."""
        core = self._one_core(args[1:])
        at = address(self.tile, core, args[0])
        self._out(f"  {at:08x}:  {core.read32(at):08x}{word_of(at, core.index)}")

    def do_dump(self, args: list[str]) -> None:
        """dump NAME[:RANGE]...: any state as bhemu dump shows it (stream:8, niu, dst:0-3)."""
        if not args:
            hint = "bhemu dump --list lists the names"
            raise InputError("usage: dump NAME[:RANGE]...", hint=hint)
        if len(args) > _DUMPED_MOST:
            raise _too_much(f"dump shows {_DUMPED_MOST} names at most")
        self._show(*dump.select(args))

    def do_dis(self, args: list[str]) -> None:
        """dis [ADDRESS [N]]: N instructions (10) from an address (pc)."""
        start = address(self.tile, self.core, args[0]) if args else self.core.pc
        if start % 4 or not 0 <= start < L1_SIZE:
            raise InputError(f"{start:#x} is no code address (a multiple of 4 in L1)")
        count = number(args[1]) if len(args) > 1 else 10
        if not 1 <= count <= _LOOKING_MOST:
            raise InputError(f"dis shows 1 to {_LOOKING_MOST} instructions")
        self._print(places.listing(self.tile, self.core, start, count))

    # C: print, x, list, frames, info locals

    # Frames

    def _frames(self) -> list[CFrame]:
        """The innermost first."""
        core = self.core
        symbol, file, line = core.locate(core.pc)
        function, calls = core.inlined(core.pc)
        return [CFrame(function or symbol or "?", file, line), *(CFrame(*call) for call in calls)]

    def _chosen(self) -> CFrame:
        frames = self._frames()
        return frames[min(self._selected, len(frames) - 1)]

    def do_up(self, args: list[str]) -> None:
        """up: select the caller: list, print and info locals are about it."""
        self._select(self._selected + 1)

    def do_down(self, args: list[str]) -> None:
        """down: select the inlined function inside, as far as the pc's."""
        self._select(self._selected - 1)

    def _select(self, wanted: int) -> None:
        frames = self._frames()
        if wanted < 0:
            raise InputError("this is the innermost function")
        if wanted >= len(frames):
            hint = "bt shows the return address; break there and continue to inspect the caller"
            raise InputError("the calls that were inlined end here", hint=hint)
        self._selected, self._listed = wanted, None
        frame = frames[wanted]
        self._out(f"#{wanted}  {frame.function} ({frame.file}:{frame.line})")
        if frame.file and frame.line:
            self._source_lines(frame.file, frame.line, frame.line, frame.line)

    def do_frame(self, args: list[str]) -> None:
        """frame: the selected function."""
        self._select(min(self._selected, len(self._frames()) - 1))

    # Source

    def do_list(self, args: list[str]) -> None:
        """list [LINE|FILE:LINE|FUNCTION]: ten lines of source around it; again: the next ten."""
        if args:
            file, line = self._named_line(args[0])
            first = max(line - _LIST // 2, 1)
        elif self._listed is not None and self._listed[0] == self.core.name:
            _, file, first = self._listed
            line = 0
        else:
            frame = self._chosen()
            if frame.file is None or frame.line is None:
                raise InputError(f"{self.core.name}: no source line is known here", hint="dis")
            file, line = frame.file, frame.line
            first = max(line - _LIST // 2, 1)
        if not self._source_lines(file, first, first + _LIST - 1, line):
            raise InputError(f"{file} is not there, or ends before line {first}", hint="--source")
        self._listed = (self.core.name, file, first + _LIST)

    def _named_line(self, text: str) -> tuple[str, int]:
        file, colon, line = text.rpartition(":")
        if line.isdecimal():
            here = self._frames()[0].file
            if not colon and here is None:
                raise InputError(f"{self.core.name}: no source file is known here")
            return (file or here or ""), int(line)
        _, found, line_number = self.core.locate(address(self.tile, self.core, text))
        if found is None or line_number is None:
            raise InputError(f"no source line is known of {text}")
        return found, line_number

    def _source_lines(self, file: str, first: int, last: int, current: int) -> bool:
        shown = False
        for line_number in range(first, last + 1):
            text = self._sources.line(self.core.name, file, line_number)
            if text is not None:
                shown = True
                mark = "=>" if line_number == current and first != last else "  "
                self._out(f"{mark}{line_number:>4}  {text.rstrip()}")
        return shown

    # Values

    def _memory(self, core: Core) -> Read:
        """Memory as a core sees it."""
        return partial(look, self.tile, core)

    def _frame(self) -> Frame:
        core = self.core
        symbols = next((one for one in core.images if one.lookup(core.pc) is not None), None)
        if symbols is None:
            raise NoFrame(f"{core.name} pc {core.pc:#x} lies in no ELF that is loaded for it")
        if symbols.debug.problem:
            raise NoFrame(symbols.debug.problem, hint="mem, x and regs show the machine")
        linked = next((a for a in symbols.linked(core.pc) if symbols.debug.at(a)), core.pc)
        registers = [int(value) for value in core.regs]

        def symbol(name: str) -> int | None:
            return symbols.address(name) if name in symbols.names else None

        return Frame(symbols.debug, linked, registers, self._memory(core), symbol)

    def do_print(self, args: list[str]) -> None:
        """print[/x] EXPRESSION: a variable of C, $REGISTER, sem:1, p->m, a[2], *p, &v, a+b."""
        form, args = _form(args)
        if not args:
            raise InputError("usage: print[/FORMAT] EXPRESSION")
        value = evaluate("".join(args), self._lookup, self._memory(self.core))
        self._out(f"{''.join(args)} = {value.text(form)}")

    def _lookup(self, name: str) -> Value:
        """A register ($a0), a variable in scope, or a symbol of the ELFs."""
        if ":" in name:
            value = spans(self.tile, self.core.name, name)[0].value(self.tile.state.buffer)
            return Value.lane(value) if name.startswith("lreg") else Value.number(value)
        if name.startswith("$"):
            return Value.number(address(self.tile, self.core, name))
        with suppress(NoFrame):
            if (found := Value.variable(self._frame(), name, self._selected)) is not None:
                return found
        try:
            return Value.word(address(self.tile, self.core, name), self._memory(self.core))
        except UnknownName as unknown:
            raise self._out_of_scope(name, unknown) from unknown

    def _out_of_scope(self, name: str, unknown: UnknownName) -> InputError:
        """Why a name stands for nothing where the core is: no variable, no symbol, no register."""
        try:
            debug = self._frame().debug
            known = [one for one, _, _ in visible(debug, self.core.pc, self._selected)]
        except NoFrame:
            return self._elsewhere(name) or unknown
        here = self._chosen().function
        near = did_you_mean(name, known)
        if not near and unknown.hint.startswith("did you mean"):
            near = unknown.hint
        return self._elsewhere(name) or UnknownName(
            f"{name} is not in scope here, in {here}, and no symbol or register has that name",
            hint=near or "info locals lists what is; up selects the caller",
        )

    def _elsewhere(self, name: str) -> InputError | None:
        """That a name is a variable of other functions, where a core has one of that name."""
        around = self._frames()[self._selected + 1 :]
        for core in (self.core, *self.tile.core.values()):
            for symbols in core.images:
                with suppress(InputError):  # of debug information that is damaged, or too much
                    if functions := list(dict.fromkeys(owners(symbols.debug, name))):
                        of = f"{', '.join(functions[:_NAMED])} ({core.name})"
                        text = f"{name} is not in scope here; it is a variable of {of}"
                        hint = f"break {functions[0]} {core.name}; continue; print {name}"
                        if core is self.core and {one.function for one in around} & {*functions}:
                            hint = f"up selects the caller: up; print {name}"
                        return UnknownName(text, hint=hint)
        return None

    def _condition(self, core: Core, text: str) -> Condition:
        """What a breakpoint asks: the expression, as `core` sees it where it stands then."""

        def holds(_: object) -> bool:
            kept, selected = self.core, self._selected
            self.core, self._selected = core, 0
            try:
                return bool(evaluate(text, self._lookup, self._memory(core)).integer)
            finally:
                self.core, self._selected = kept, selected

        return holds

    def _info_locals(self) -> None:
        frame = self._frame()
        shown = False
        for name, entry, block in visible(frame.debug, frame.pc, self._selected):
            shown = True
            try:
                value = Value.at(type_of(entry), locate(frame, entry, block), frame).text("")
            except Gone as reason:
                value = f"<{reason}>"
            self._out(f"{name} = {value}")
        if not shown:
            self._out("no variables here")

    def do_x(self, args: list[str]) -> None:
        """x/NFS ADDRESS: N items of memory; F x d u t c i s, S b h w (x/4x, x/8i, x/s)."""
        spec, args = _form(args)
        if not spec and len(args) > 1:
            self.do_mem(args)
            return
        if (found := _EXAMINE.fullmatch(spec)) is None or len(args) not in (0, 1):
            raise InputError("usage: x/NFS ADDRESS", hint="x/4x 0x20000, x/8i main, x/16b $sp")
        count = int(found[1] or 1)
        if not 1 <= count <= _MOST:
            raise InputError(f"x shows 1 to {_MOST} items")
        start = address(self.tile, self.core, args[0]) if args else self.core.pc
        if found[2] == "i":
            lines = [places.instruction(self.tile, self.core, start + 4 * i) for i in range(count)]
            self._print(f"  {line}" for line in lines)
        elif found[2] == "s":
            raw = look(self.tile, self.core, start, 256)
            self._out(f"  {start:08x}:  {raw.partition(bytes(1))[0].decode(errors='replace')!r}")
        else:
            form, size = found[2] or "x", _SIZES[found[3]]
            self._print(items(self._memory(self.core), start, count, form, size))

    def do_bt(self, args: list[str]) -> None:
        """bt [CORE]: the functions a core is in, inlined ones too."""
        self._print(error_text.backtrace(self._one_core(args)))


def _spans(numbers: list[int]) -> str:
    """`0-7, 12` for sorted numbers."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
