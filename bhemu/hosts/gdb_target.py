"""What gdb asks of a tile, without the protocol: descriptions, registers, memory, stops, steps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.sax.saxutils import quoteattr

from bhemu.debug.places import Sources
from bhemu.debug.stepper import StateFiles, Stepper
from bhemu.errors import BhemuError, GuestFault, InputError, NoProgress, Undefined
from bhemu.launch import Launched
from bhemu.machine.core import Core
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import files
from bhemu.riscv import csr
from bhemu.riscv.assembly import ABI_NAMES
from bhemu.tensix.state import LOCAL_SIZE

# What gdb is told about the target: registers, threads, loaded ELFs, as XML.

PC = 32  # gdb's number of the program counter; x0-x31 come before it
CSRS: tuple[int, ...] = tuple(csr.NAMES)  # from number PC + 1 on
_VECTOR = 16  # bytes at the beginning of L1 that hold a jump, not a program


def registers() -> str:
    """The target description: RV32, its registers and CSRs."""
    general = "".join(
        f'<reg name="{name}" bitsize="32" type="{_TYPES.get(name, "int")}" regnum="{i}"/>'
        for i, name in enumerate((*ABI_NAMES, "pc"))
    )
    special = "".join(
        f'<reg name="{csr.NAMES[number]}" bitsize="32" type="uint32" regnum="{PC + 1 + i}"'
        ' group="csr" save-restore="no"/>'
        for i, number in enumerate(CSRS)
    )
    return (
        '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">'
        "<architecture>riscv:rv32</architecture><osabi>none</osabi>"
        f'<feature name="org.gnu.gdb.riscv.cpu">{general}</feature>'
        f'<feature name="org.bhemu.csr">{special}</feature></target>'
    )


_TYPES = {"ra": "code_ptr", "sp": "data_ptr", "gp": "data_ptr", "tp": "data_ptr", "pc": "code_ptr"}


def threads(tile: Tile) -> str:
    """The cores as threads: number, name, state."""
    rows = "".join(
        f'<thread id="{core.index + 1}" name={quoteattr(core.name)}>{extra(core)}</thread>'
        for core in tile.core.values()
    )
    return f'<?xml version="1.0"?><threads>{rows}</threads>'


def extra(core: Core) -> str:
    """What `info threads` shows beside a thread."""
    return f"{core.state}, {core.retired} retired"


def _programs(tile: Tile) -> dict[str, int]:
    """The ELFs whose code lies in L1, and where it begins."""
    starts: dict[str, int] = {}
    for low, _, name in tile.ranges:
        text = Path(name)
        if low >= _VECTOR and text.is_file():
            starts.setdefault(str(text.resolve()), low)
    return starts


def executable(tile: Tile) -> str:
    """The first ELF, which gdb takes for the program; the others are its libraries."""
    return next(iter(_programs(tile)), "")


def libraries(tile: Tile) -> str:
    """The other ELFs, for gdb to read symbols from by itself."""
    rows = "".join(
        f'<library name={quoteattr(path)}><segment address="{at:#x}"/></library>'
        for path, at in list(_programs(tile).items())[1:]
    )
    return f'<?xml version="1.0"?><library-list version="1.0">{rows}</library-list>'


_PIECE_S = 0.05  # of a run between two looks for Ctrl-C
_WATCH = {"w": "watch", "r": "rwatch", "rw": "awatch"}  # as stop replies name them
SIGNAL_NONE, SIGNAL_INT, SIGNAL_TRAP, SIGNAL_ABORT, SIGNAL_SEGV = 0, 2, 5, 6, 11


@dataclass(frozen=True)
class Report:
    """A stop as gdb hears of it: signal, core, more of the stop reply, lines for the console."""

    signal: int
    core: int
    more: str = ""
    text: str = ""


class Target:
    """One tile as a process with a thread per core; of a chip the one that is looked at."""

    def __init__(self, launched: Launched, folder: Path | None = None) -> None:
        """`folder`: the one whose files save and load may touch, if any."""
        self.tile = tile = launched.tile
        program = launched.part(tile.xy)
        launched.keep_history()
        self._lines: list[str] = []
        sources = Sources(program, named_only=True)
        states = StateFiles(tuple(launched.program.files()), partial(_inside, folder))
        self._stepper = Stepper(tile, program, sources, self._lines.append, states)
        self._points: dict[tuple[int, int, str], list[int]] = {}  # by address, length, access

    def core(self, index: int) -> Core:
        """Core 0-4."""
        return self.tile.core[CORE_NAMES[index]]

    @property
    def selected(self) -> int:
        """The core that a program's user wants to see first."""
        return self._stepper.core.index

    # Registers

    def registers(self, core: int) -> bytes:
        """x0-x31 and pc, little-endian."""
        own = self.core(core)
        return b"".join(int(n).to_bytes(4, "little") for n in (*own.regs, own.pc))

    def register(self, core: int, number: int) -> bytes | None:
        """One register; None for a CSR that the core does not have, b"" for no register at all."""
        value: int | None
        if number < PC:
            value = int(self.core(core).regs[number])
        elif number == PC:
            value = self.core(core).pc
        elif number <= PC + len(CSRS):
            value = self.tile.backend.csr(core, CSRS[number - PC - 1])
        else:
            return b""
        return None if value is None else value.to_bytes(4, "little")

    def set_register(self, core: int, number: int, value: int) -> bool:
        """Write one; False where that cannot be written."""
        if number < PC:
            self.tile.backend.engine.write_register(core, number, value)
            return True
        if number == PC:
            if value & 3 or value >= L1_SIZE:
                return False
            self.tile.state.pc[core] = value
            return True
        if number <= PC + len(CSRS):
            return self.tile.backend.set_csr(core, CSRS[number - PC - 1], value)
        return False

    # Memory

    def read(self, core: int, address: int, length: int) -> bytes:
        """Memory as the core sees it, as far as it can be read; a device is looked at only."""
        if address < L1_SIZE:
            return self.tile.read(address, min(length, L1_SIZE - address))
        local = address - LOCAL_BASE
        if 0 <= local < LOCAL_SIZES[core]:
            return self.tile.state.local[core, local : min(local + length, LOCAL_SIZE)].tobytes()
        # Device registers; what the load changes is put back
        kept = self.tile.state.buffer.copy()
        words = b""
        try:
            for at in range(address & ~3, address + length, 4):
                words += self.core(core).read32(at).to_bytes(4, "little")
        except BhemuError:
            pass
        finally:
            self.tile.state.buffer[:] = kept
        return words[address & 3 : (address & 3) + length]

    def write(self, core: int, address: int, data: bytes) -> bool:
        """Memory as the core writes it; False where it cannot."""
        try:
            if address < L1_SIZE:
                self.tile.write(address, data)
                return True
            local = address - LOCAL_BASE
            if local >= 0 and local + len(data) <= LOCAL_SIZES[core]:
                self.tile.state.local[core, local : local + len(data)] = list(data)
                return True
            if (address | len(data)) & 3:
                return False
            for i in range(0, len(data), 4):
                self.core(core).write32(address + i, int.from_bytes(data[i : i + 4], "little"))
        except BhemuError:
            return False
        return True

    # Breakpoints and watchpoints

    def set_point(self, core: int, address: int, length: int, access: str) -> bool:
        """Stop before code on every core, with access "": they share L1, one of them runs it.

        Else after a change of these bytes, or where they are read.
        """
        key = address, length if access else 0, access
        if key in self._points:
            return True
        numbers = []
        try:
            if access:
                numbers.append(self.tile.watch(f"{address:#x}:{length}", CORE_NAMES[core], access))
            for name in () if access else CORE_NAMES:
                numbers.append(self.tile.break_at(name, address))
        except InputError:
            for number in numbers:
                self.tile.delete(number)
            return False
        self._points[key] = numbers
        return True

    def remove_point(self, address: int, length: int, access: str) -> bool:
        """True also where there is none."""
        for number in self._points.pop((address, length if access else 0, access), ()):
            self.tile.delete(number)
        return True

    # Running

    def resume(self, core: int, interrupted: Callable[[], bool]) -> Report:
        """Run until something stops it, or Ctrl-C."""
        run = partial(self.tile.loop.run, timeout_s=_PIECE_S, resume=True, view=self.tile)
        while True:
            stop = self._guarded(core, run)
            if isinstance(stop, Report):
                return stop
            if stop.reason != "timeout":
                return self._report(stop, core)
            if interrupted():
                return Report(SIGNAL_INT, core)

    def step(self, core: int, low: int, high: int, interrupted: Callable[[], bool]) -> Report:
        """Instructions of `core`, at least one, until its pc has left [low, high)."""
        own = self.core(core)
        if own.state in ("parked", "held", "assert", "reset"):
            return Report(SIGNAL_NONE, core, text=f"{own.name} is {own.state}: it does not step\n")
        while True:
            stop = self._guarded(core, lambda: self.tile.stepping.step(self.core(core)))
            if isinstance(stop, Report):
                return stop
            goes = own.state in ("running", "blocked")
            if stop.reason == "until" and not goes:
                text = f"{own.name} is {own.state}: it steps no further, clock {stop.clock}\n"
                return Report(SIGNAL_NONE, core, text=text)
            inside = low <= own.pc < high and goes
            if stop.reason != "step" or not inside:
                return self._report(stop, core)
            if interrupted():
                return Report(SIGNAL_INT, core)

    def _guarded(self, core: int, run: Callable[[], Stop]) -> Stop | Report:
        """The stop; of an error of the program its report."""
        try:
            return run()
        except InputError:
            raise
        except BhemuError as error:
            where, by = error.where, core
            if where and where.tile in (None, self.tile.xy) and where.core in CORE_NAMES:
                by = CORE_NAMES.index(where.core)
            faults = SIGNAL_SEGV if isinstance(error, GuestFault | Undefined) else SIGNAL_ABORT
            signal = SIGNAL_NONE if isinstance(error, NoProgress) else faults
            return Report(signal, by, text=f"{error}\n")

    def reverse_step(self, core: int) -> Report:
        """One instruction of `core` back."""
        try:
            self.tile.history.reverse_step(self.core(core))
        except InputError:
            return Report(SIGNAL_NONE, core, "replaylog:begin;")
        return Report(SIGNAL_TRAP, core)

    def reverse_resume(self, core: int) -> Report:
        """Back to the last breakpoint or watchpoint, else to the beginning."""
        stop = self.tile.history.reverse_continue()
        if stop.reason == "step":
            return Report(SIGNAL_NONE, core, "replaylog:begin;")
        return self._report(stop, core)

    def _report(self, stop: Stop, core: int) -> Report:
        if stop.change is not None:
            where = stop.change.where
            by = CORE_NAMES.index(where.core) if where.core in CORE_NAMES else core
            # One that the user set by a monitor command is nothing that gdb knows.
            reason = "".join(
                f"{_WATCH[access]}:{at:x};"
                for (at, _, access), numbers in self._points.items()
                if access and numbers == [stop.change.watchpoint.number]
            )
            return Report(SIGNAL_TRAP, by, reason, f"{stop.change}, by {where}\n")
        if stop.reason == "breakpoint":
            name = self.tile.stepping.stopped_core(stop)
            by = CORE_NAMES.index(name) if name in CORE_NAMES else core
            return Report(SIGNAL_TRAP, by)
        if stop.reason == "step":
            return Report(SIGNAL_TRAP, core)
        ended = {"interrupt": SIGNAL_INT}.get(stop.reason, SIGNAL_NONE)
        return Report(ended, core, text=f"the run has ended: {stop.reason}, clock {stop.clock}\n")

    # Words for the emulator

    def monitor(self, line: str, core: int) -> str:
        """A command of the stepper; what it prints."""
        self._lines.clear()
        self._stepper.core = self.core(core)
        try:
            self._stepper.execute(line)
        except BhemuError as error:
            self._lines.append(f"error: {error}")
        return "".join(f"{text}\n" for text in self._lines)


def _inside(folder: Path | None, name: str) -> Path:
    """The file of a saved state in `folder`; InputError for every other one."""
    if folder is None:
        hint = "bhemu gdb --allow-save FOLDER allows files FILE.npz of that folder"
        raise InputError("a client of the port may not save or load", hint=hint)
    path = folder / name
    if path.suffix != ".npz" or not files.is_inside(path, folder):
        raise InputError(f"{name} is no FILE.npz in {folder}", hint="--allow-save names the folder")
    return path
