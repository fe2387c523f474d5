"""A tile as tt-llk's tests see a device: words and bytes over the NoC, resets, ELFs, ebreak.

A test polls by reading words, or bytes among the mailboxes; the tile runs inside those reads, by
clock units and never by wall time, so a run gives the same values on any machine (docs/llk.md).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bhemu import memmap
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.devices.debug_regs import reset_pc
from bhemu.errors import BhemuError, GuestFault, InputError, Limit
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.program import loader
from bhemu.program.options import Options, SeedOr, Whole, declared

OPTIONS: Final = "BHEMU_LLK"  # name=value,...: as Tile takes them
SLICE: Final = 5_000  # clock units every read of a word lets pass: several polls of BRISC
BUDGET: Final = 5_000_000  # clock units a read waits for what it reads to change
_FOR_HOST: Final = (".device_print_strings", ".device_print_strings_info", ".profiler_meta")
_DEFAULTS: Final = {"reference": "llk"}
_NCRISC: Final = "ncrisc"
_QUIET: Final = ("parked", "reset", "assert")
_STARTS: Final = (*(f"TRISC{i}_RESET_PC" for i in range(3)), "TRISC_RESET_PC_OVERRIDE")


def options(text: str | None = None) -> dict[str, Any]:
    """Keyword arguments of Tile from $BHEMU_LLK; InputError for what is not name=value."""
    chosen: dict[str, Any] = dict(_DEFAULTS)
    kinds = {n: option.kind for n, option in declared(Options).items() if "flag" in option.where}
    for part in filter(None, (os.environ.get(OPTIONS, "") if text is None else text).split(",")):
        name, equals, value = part.partition("=")
        kind = kinds.get(name) if equals else None
        if kind is None:
            hint = "for example BHEMU_LLK=reference=ttsim,stochastic=1,quantum=100"
            raise InputError(f"{OPTIONS}: {part!r} is not an option", hint=hint)
        if isinstance(kind, Whole) and not value.isdecimal():
            raise InputError(f"{OPTIONS}: {part!r}: {name} is a number")
        number = isinstance(kind, Whole | SeedOr) and value.isdecimal()
        chosen[name] = int(value) if number else value
    return chosen


@dataclass(frozen=True)
class FileLine:
    """A line of a source file, as tt-exalens' DwarfFileLine."""

    file: str
    line: int | None
    column: int | None = None


@dataclass(frozen=True)
class Frame:
    """Where a core stands: the fields of tt-exalens' CallstackEntry that the tests read.

    Up to version 0.3.28 an entry has file, line and column itself, later in `file_info`.
    """

    pc: int
    function_name: str | None
    file: str | None
    line: int | None
    column: int | None = None

    @property
    def file_info(self) -> FileLine | None:
        """The source line, or None where the ELF names none."""
        return None if self.file is None else FileLine(self.file, self.line, self.column)


class Device:
    """One tile and what the host has done with it."""

    def __init__(self) -> None:
        self.tile = Tile(**options())
        self._commands = 0  # that the host has sent to BRISC
        self._failed = False
        self._entries: dict[str, int] = {}  # start addresses of the ELFs in place

    # Memory and registers

    def read_words(self, address: int, count: int = 1) -> list[int]:
        """Words as the host reads them while it polls: the tile runs first."""
        self._wait(address, 4)
        data = self.tile.read(address, 4 * count)
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]

    def read(self, address: int, size: int) -> bytes:
        """Bytes of L1 as they are; words of the harness are polled this way too."""
        if address in WORDS and address + size - 1 in WORDS:
            self._wait(address, size)
        return self.tile.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Bytes into L1."""
        self.tile.write(address, data)

    def write_words(self, address: int, words: Sequence[int]) -> None:
        """Words into L1; a command to BRISC first makes a tile that failed usable again."""
        if address in COMMANDS and any(words):
            if self._failed or not self._quiet():
                # A fresh tile with this one's L1 and start addresses; BRISC boots and counts on
                l1 = self.tile.read(0, memmap.L1_SIZE)
                starts = {name: self.read_register(name) for name in _STARTS}
                images = {name: list(core.images) for name, core in self.tile.core.items()}
                self.tile.reset()
                self.tile.write(0, l1)
                for name, value in starts.items():
                    self.write_register(name, value)
                for name, kept in images.items():
                    self.tile.core[name].images[:] = kept
                boot(self.tile)
                for _ in range(self._commands):
                    command(self.tile, RESET_TRISCS)
                self._failed = False
            self._commands += 1
        self.tile.write(address, b"".join(word.to_bytes(4, "little") for word in words))

    def read_register(self, name: str) -> int:
        """A debug register by its full name."""
        return self.tile.read32(_register(name))

    def write_register(self, name: str, value: int) -> None:
        """Store to a debug register, as the host.

        When that releases BRISC, the call returns once BRISC listens: a command that came before
        would be lost, and only on hardware BRISC is faster than the host.
        """
        address, brisc = _register(name), 1 << memmap.SOFT_RESET_BITS[0]
        held = self.tile.core["brisc"].state == "reset"
        if address == REGISTERS["SOFT_RESET_0"] and held and not value & brisc:
            self.tile.write32(address, value | brisc)
            self._commands = 0
            boot(self.tile)
        else:
            self.tile.write32(address, value)

    # Programs

    def load_elf(self, path: str | Path, core: str) -> int:
        """Load as the test suite does, over what was there; returns the start address.

        Sections that only the host reads, from the file, stand at addresses that no tile has.
        """
        image = loader.read_elf(path)
        for_host = {image.sections[name] for name in _FOR_HOST if name in image.sections}
        segments = tuple(part for part in image.segments if part.vaddr not in for_host)
        image = replace(image, segments=segments)
        for placed in loader.place(image, local="loader_init", core=core):
            self.tile.write(placed.address, placed.data)
        chosen = self.tile.core[core]
        chosen.set_reset_pc(image.entry)
        chosen.images[:] = [image.symbols]
        self._entries[core] = image.entry
        return image.entry

    def is_ebreak_hit(self, core: str) -> bool:
        """Whether the core stands on `ebreak`."""
        return self.tile.core[core].state == "assert"

    def frame(self, core: str) -> Frame:
        """The function and line the core stands at."""
        pc = self.tile.core[core].pc
        return Frame(pc, *self.tile.core[core].locate(pc))

    # Running

    def _wait(self, address: int, size: int) -> None:
        """Run until the bytes change, every kernel has ended, or BUDGET has passed."""
        before = self.tile.read(address, size)
        end = self.tile.clock + SLICE

        def over(tile: Tile) -> bool:
            return tile.read(address, size) != before or (tile.clock >= end and self._quiet())

        self._run(over, BUDGET)

    def _run(self, until: Any, limit: int) -> None:
        livelock = self.tile.state.livelock
        rounds = int(livelock[0])

        def over(tile: Tile) -> bool:
            # When no kernel runs, brisc polls for the next command, which the host may give.
            livelock[0] = 0 if self._quiet() else rounds
            return bool(until(tile))

        try:
            if not self._failed:
                self._run_kernels(over, limit)
        except BhemuError as problem:
            self._failed = True
            self._check_starts(problem)
            if problem.category != "Assert":  # the tests ask for ebreak when they time out
                raise
        else:
            self._check_starts(None)
        finally:
            livelock[0] = rounds

    def _run_kernels(self, over: Any, limit: int) -> None:
        """Run, but for NCRISC, of which the suite knows nothing.

        A dump that ends writes 0 to SOFT_RESET_0 and so releases it, onto whatever lies there.
        """
        try:
            self.tile.run(over, limit=limit)
        except BhemuError as problem:
            if problem.where is None or problem.where.core != _NCRISC:
                raise
            held = 1 << memmap.SOFT_RESET_BITS[memmap.CORE_NAMES.index(_NCRISC)]
            register = REGISTERS["SOFT_RESET_0"]
            self.tile.write32(register, self.tile.read32(register) | held)
            self.tile.run(over, limit=limit, resume=True)

    def _check_starts(self, problem: BhemuError | None) -> None:
        """GuestFault when a kernel runs from elsewhere than where its ELF starts.

        Such a kernel executes whatever lies there; `problem` is what came of it.
        """
        for name in KERNELS:
            core = self.tile.core[name]
            start, entry = reset_pc(self.tile.state, core.index), self._entries.get(name)
            if core.state != "reset" and start != entry:
                wanted = "no ELF was loaded" if entry is None else f"its ELF starts at {entry:#x}"
                self._failed = True
                raise GuestFault(
                    f"{name} was released at {start:#x}, but {wanted}",
                    rule="LLK-START",
                    where=core.where(),
                    hint="the reset PC registers are set by load_elf, or by BRISC before START",
                ) from problem

    def _quiet(self) -> bool:
        return all(self.tile.core[core].state in _QUIET for core in KERNELS)


def _register(name: str) -> int:
    if name in REGISTERS:
        return REGISTERS[name]
    raise InputError(f"no register {name}", hint="names as in tt-exalens' register store")


# The host side of tt-llk's BRISC boot protocol: mailboxes and commands in L1 (docs/llk.md).
#
# BRISC polls two command words in turn and counts what it has carried out; each kernel ends by
# storing COMPLETE in its mailbox (tests/helpers/src/brisc.cpp, trisc.cpp, in tt-llk's own checkout
# and in tt-metal's, tt_metal/tt-llk). Once it listens, the counter is 0 in the former, READY in the
# latter, until the first command is carried out.

KERNELS: Final = {"trisc0": "unpack", "trisc1": "math", "trisc2": "pack"}
MAILBOXES: Final = {"trisc0": 0x1FFB8, "trisc1": 0x1FFBC, "trisc2": 0x1FFC0}
COMMANDS: Final = (0x1FFC4, 0x1FFC8)
COUNTER: Final = 0x1FFCC
WORDS: Final = range(0x1FFB8, 0x1FFD8)  # mailboxes, commands, counter, and BRISC's two echoes
READY: Final = 0xB001_CAFE
COMPLETE: Final = 0xFF
START_TRISCS: Final = 1
RESET_TRISCS: Final = 2

BOOT_LIMIT: Final = 1_000_000  # clock units; BRISC polls every 1350
_NAMES: Final = {START_TRISCS: "START_TRISCS", RESET_TRISCS: "RESET_TRISCS"}
_STALE: Final = 0xFFFF_FFFF  # in the counter until BRISC sets it
_HINT: Final = "is this the brisc.elf of tt-llk's tests, for BRISC boot mode, without coverage?"


def _late(tile: Tile, rule: str, text: str) -> Limit:
    return Limit(text, rule=rule, where=tile.core["brisc"].where(), hint=_HINT)


def _came(stop: Stop) -> bool:
    """Whether a run came to what was waited for; KeyboardInterrupt where the user ended it."""
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    return stop.reason == "until"


def boot(tile: Tile) -> None:
    """Release brisc and run until it listens; Limit (rule LLK-BOOT) when it never does."""
    tile.write32(COUNTER, _STALE)
    tile.core["brisc"].release()
    if not _came(tile.run(lambda one: one.read32(COUNTER) in (0, READY), limit=BOOT_LIMIT)):
        text = f"brisc did not set the command counter at {COUNTER:#x} to 0 or {READY:#x} within"
        text += f" {BOOT_LIMIT} clock units: its program does not listen to the harness"
        raise _late(tile, "LLK-BOOT", text)


def _carried_out(tile: Tile) -> int:
    """How many commands brisc has carried out."""
    count = tile.read32(COUNTER)
    return 0 if count == READY else count


def send(tile: Tile, command: int) -> None:
    """Give brisc its next command, to be carried out when the tile runs."""
    tile.write32(COMMANDS[_carried_out(tile) % 2], command)


def command(tile: Tile, command: int) -> None:
    """Send and run until brisc has carried it out; Limit (rule LLK-COMMAND) when it does not."""
    count = _carried_out(tile)
    send(tile, command)
    if not _came(tile.run([(COUNTER, count + 1)], limit=BOOT_LIMIT)):
        name = _NAMES.get(command, str(command))
        text = (
            f"brisc did not carry out command {name} within {BOOT_LIMIT} clock units: the counter"
        )
        text += f" at {COUNTER:#x} is {tile.read32(COUNTER)}, not {count + 1}"
        raise _late(tile, "LLK-COMMAND", text)


def start(tile: Tile) -> None:
    """Boot brisc, reset the TRISCs and send START_TRISCS; the next run carries that out.

    The ELFs are in place and every core is in reset. The mailboxes are 0 on return.
    """
    for mailbox in MAILBOXES.values():
        tile.write32(mailbox, 0)
    boot(tile)
    command(tile, RESET_TRISCS)
    send(tile, START_TRISCS)


def done_words() -> list[tuple[int, int]]:
    """The end condition: every mailbox holds COMPLETE."""
    return [(mailbox, COMPLETE) for mailbox in MAILBOXES.values()]


def word_name(address: int) -> str:
    """How a message calls a word of L1: the kernel whose mailbox it is, or its address."""
    for core, mailbox in MAILBOXES.items():
        if mailbox == address:
            return f"the mailbox of {core} ({KERNELS[core]}) at {address:#x}"
    return f"word {address:#x}"
