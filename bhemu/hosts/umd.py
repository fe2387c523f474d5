"""A chip as UMD's simulation device, its messages; sessions whose process dies or looks ahead."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import select
import signal
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from bhemu import errors
from bhemu import memmap as mm
from bhemu.errors import Assert, BhemuError, InputError, NoProgress, NotModelled
from bhemu.program import files
from bhemu.program.recorded import READ, WRITE, Recorder

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine


# Sessions whose process dies or cannot begin, and looks ahead in a process of their own.

_GRACE = 5.0  # seconds that a chip may take to stop when its host is gone


def guarded(work: Callable[[], int], lost: Callable[[str], int]) -> int:
    """The exit code of `work`, done in a child process, which returns from here too.

    When a signal ends the child, `lost` is called in this process with the signal's name. SIGTERM
    goes on to the child. The child does not need this process.
    """
    child = os.fork()
    if child == 0:
        return work()
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child's to answer
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else lost(signal.Signals(-code).name)


def end_soon(code: Callable[[], int] = lambda: 0) -> None:
    """End this process within a few seconds, whatever it does: its host is gone."""
    timer = threading.Timer(_GRACE, lambda: os._exit(code()))
    timer.daemon = True
    timer.start()


# Tells a host that waits for its simulator that none comes, with nothing but Python's sockets.

_PAIR = b"\0SP\0\0\x11\0\0"  # the greeting of NNG's pair protocol, version 1, on both sides
_EMPTY = struct.pack(">QI", 4, 1)  # a message of a hop count and no bytes: a host gives up at it
_SECONDS = 5.0


def decline(address: str) -> None:
    """Send the host at tcp://HOST:PORT an empty message where a greeting belongs, if it listens."""
    with contextlib.suppress(OSError, ValueError):
        parts = urlsplit(address)
        place = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(place, timeout=_SECONDS) as line:
            line.sendall(_PAIR)
            if line.recv(len(_PAIR)) == _PAIR:
                line.sendall(_EMPTY)
                line.shutdown(socket.SHUT_WR)
                line.recv(1)


# What a chip would do next, seen in a child process, so that nothing of it happens here.

_PATIENCE = 5.0  # seconds


def seen_ahead(look: Callable[[], BhemuError | None]) -> BhemuError | None:
    """What `look` gives in a child process, which then ends; None where it takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            found = look()
            os.write(writer, b"" if found is None else json.dumps(found.as_dict()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        said = b""
        while select.select([reader], [], [], _PATIENCE)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                break
            said += part
        else:
            os.kill(child, signal.SIGKILL)
            return None
    finally:
        os.close(reader)
        os.waitpid(child, 0)
    return errors.from_dict(json.loads(said)) if said else None


# The messages of UMD's simulation protocol (directory mode): one FlatBuffers table each.
#
# The package flatbuffers reads without checking any offset against the length of the buffer, and
# it takes four times as long: requests are read here, whole or not at all. Replies are written
# with it.

# EXIT from (0, 0), as `write` writes it: at hand before NumPy is, because a host waits for it.
GREETING = bytes.fromhex(
    "140000000000000000000a0020001f00180004000a00000000000000"
    "00000000000000000000000000000000080000000000000500000000"
)
_U16, _U32, _I32 = Struct("<H"), Struct("<I"), Struct("<i")
_I8, _U64, _XY = Struct("<b"), Struct("<Q"), Struct("<QQ")
_WORD = 4
_SLOTS, _WIDTHS = Struct("<5H"), (1, 4, 16, 8, 4)  # command, data, core, address, size
_NO_FIELDS = (0, 0, 0, 0, 0)


Command = IntEnum(
    "Command",
    "WRITE READ ALL_TENSIX_RESET_DEASSERT ALL_TENSIX_RESET_ASSERT START EXIT"
    " ALL_NEO_DMS_RESET_DEASSERT ALL_NEO_DMS_RESET_ASSERT NEO_DM_RESET_ASSERT NEO_DM_RESET_DEASSERT"
    " AXI_RAM_WRITE_NOTIFICATION AXI_RAM_READ_NOTIFICATION SMN_WRITE SMN_READ"
    " ALL_NEO_DMS_UNCORE_RESET_DEASSERT ALL_NEO_DMS_UNCORE_RESET_ASSERT"
    " NEO_DM_UNCORE_RESET_ASSERT NEO_DM_UNCORE_RESET_DEASSERT",
    start=0,
)
"""What a message asks for; the names are those of UMD's schema."""


class Message(NamedTuple):
    """One message: `command` may be a number that Command lacks; `data` are whole words.

    `core` is the (x, y) of the descriptor, None when the message names none; `size` is in bytes.
    """

    command: int
    core: tuple[int, int] | None = None
    address: int = 0
    size: int = 0
    data: bytes = b""


class MalformedMessage(ValueError):  # noqa: N818 - as the errors of bhemu
    """The bytes are no message of this protocol."""


def read(buffer: bytes) -> Message:
    """The message in `buffer`; MalformedMessage when an offset leads out of it."""
    # The position of the table, and the offsets of its five fields in it (0: absent)
    end = len(buffer)
    table = _at(_U32, buffer, 0)
    vtable = table - _at(_I32, buffer, table)
    slots, length = (_at(_U16, buffer, vtable) - _WORD) // 2, _at(_U16, buffer, vtable + 2)
    if slots < 0 or vtable + _WORD + 2 * slots > end or table + length > end:
        raise MalformedMessage("the table does not lie within the message")
    found = _NO_FIELDS
    if slots >= 5:
        found = _SLOTS.unpack_from(buffer, vtable + _WORD)
    elif slots:
        given = (_U16.unpack_from(buffer, vtable + _WORD + 2 * n)[0] for n in range(slots))
        found = (*given, *_NO_FIELDS)[:5]
    command, data, core, address, size = found
    if max(command + 1, data + 4, core + 16, address + 8, size + 4) > length:
        for offset, width in zip(found, _WIDTHS, strict=True):
            if offset and offset + width > length:
                raise MalformedMessage("a field does not lie within its table")
    return Message(
        _I8.unpack_from(buffer, table + command)[0] if command else 0,
        _XY.unpack_from(buffer, table + core) if core else None,
        _U64.unpack_from(buffer, table + address)[0] if address else 0,
        _U32.unpack_from(buffer, table + size)[0] if size else 0,
        _vector(buffer, table + data) if data else b"",
    )


def _at(kind: Struct, buffer: bytes, position: int) -> int:
    if not 0 <= position <= len(buffer) - kind.size:
        raise MalformedMessage("an offset leads out of the message")
    value: int = kind.unpack_from(buffer, position)[0]
    return value


def _vector(buffer: bytes, position: int) -> bytes:
    start = position + _at(_U32, buffer, position)
    count = _at(_U32, buffer, start)
    begin = start + _WORD
    if begin + _WORD * count > len(buffer):
        raise MalformedMessage("the data are longer than the message")
    return buffer[begin : begin + _WORD * count]


def write(message: Message) -> bytes:
    """The bytes of a message; data are padded to whole words."""
    import flatbuffers
    import numpy as np

    words = np.frombuffer(message.data + bytes(-len(message.data) % _WORD), "<u4")
    builder = flatbuffers.Builder(words.nbytes + 128)
    vector = builder.CreateNumpyVector(words)
    builder.StartObject(5)
    builder.PrependInt8Slot(0, message.command, 0)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    x, y = message.core or (0, 0)
    builder.Prep(8, 16)
    builder.PrependUint64(y)
    builder.PrependUint64(x)
    builder.PrependStructSlot(2, builder.Offset(), 0)
    builder.PrependUint64Slot(3, message.address, 0)
    builder.PrependUint32Slot(4, message.size, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


ROUNDS = 200
_STANDS = ("idle", "polling")  # the reasons for which a run ends where only a host can go on
_SMALL = 1 << 20  # bytes that no limit forbids
# Reads of one place with no write between: more are a wait for what cannot come.
_LOOKS = 100  # of a chip that an error stopped
_WAITS = 5000  # of one whose cores only poll, or that has refused a write
_SOFT_RESET = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_SOFT_RESET_0
_DEBUGGERS = tuple(
    mm.DEBUG_BASE + register
    for register in (mm.RISCV_DEBUG_REG_RISC_DBG_CNTL_0, mm.RISCV_DEBUG_REG_DBG_BUS_CNTL_REG)
)
_BRISC_RUNS = mm.SOFT_RESET_ALL & ~(1 << mm.SOFT_RESET_BITS[0])

XY = tuple[int, int]


class Device:
    """What UMD asks of a device, on a chip; `core` is (x, y) as in the soc descriptor.

    The chip runs before a read, until nothing can change that no host writes, at most `rounds`
    rounds, and at no other time: what a host sees depends on what it sent and never on when. A host
    waits by reading, so the chip moves on for as long as anybody waits for it.

    `failure` is the error that stopped the chip. The chip still answers then, so that users can
    look, but not a host that waits. An ebreak fails no read, for debuggers look at such a core: it
    is reported, and with the first use of the tile's debug port the core is halted behind it, as on
    hardware. Before something is told, `look` is called with the tile, and the error if there is
    one already; `on_failure` then with the error and the tile, also of a host that waits in vain.

    No host shares its memory with a simulator, so a host whose kernels want it waits for ever: the
    first such request is reported. While such a host waits it may ask nothing of the device, and
    then the chip does not run. So `silent`, which is called when a host has said nothing for a
    while, reports what the next rounds would do.
    """

    def __init__(self, chip: Machine, rounds: int = ROUNDS) -> None:
        self.chip = chip
        self.failure: BhemuError | None = None
        self.on_failure: Callable[[BhemuError, XY | None], object] = lambda error, tile: None
        self.look: Callable[[XY | None, BhemuError | None], object] = lambda tile, error: None
        self.report: Callable[[BhemuError], object] = lambda error: None
        self.recorder: Recorder | None = None  # of what the host asks and gets
        self._rounds = rounds
        self._ended = "idle"  # how the last run did; "" when the host has written since
        self._looks: Counter[tuple[XY, int]] = Counter()
        self._refused: InputError | None = None  # the last write that was
        self._told: NoProgress | None = None  # what a host that waits in vain has heard
        self._told_of_memory = False

    def write(self, core: XY, address: int, data: bytes) -> None:
        """Store `data`; InputError where the host may not."""
        self._looks.clear()
        self._ended, self._told = "", None
        try:
            self.chip.write(*core, address, data)
        except InputError as problem:
            self._refused = problem
            raise
        if self.recorder is not None:
            self.recorder.act(WRITE, self.chip.round, core, address, bytes(data))
        if self.failure is not None and address in _DEBUGGERS:
            where = self.failure.where if isinstance(self.failure, Assert) else None
            if where is not None and where.tile == core:
                self.failure = None

    def read(self, core: XY, address: int, size: int) -> bytes:
        """`size` bytes, after the chip had its rounds; any BhemuError when it stops with one."""
        if size > _SMALL:
            files.check_limit("MESSAGE_BYTES", size, "bytes to read")
        if self.failure is None and self._ended not in _STANDS:
            try:
                stop = self.chip.run("polling", rounds=self._rounds, resume=True)
            except BhemuError as error:
                self.failure = error
                self.look(_tile(error), error)
                self.on_failure(error, _tile(error))
                if not isinstance(error, Assert):
                    raise
                self.report(error)
            else:
                self._ended = stop.reason
            finally:
                self._tell_of_memory(self._host_memory())
        else:
            # NoProgress for a host that reads one place again and again, where nothing can change
            self._looks[core, address] += 1
            looks = self._looks[core, address]
            if self.failure is not None and looks > _LOOKS:
                raise NoProgress(
                    f"the chip has stopped: {address:#x} of ({core[0]},{core[1]}) will not change",
                    rule="STOPPED",
                    hint="start the host again",
                )
            if self._ended == "polling" and looks > _WAITS:
                self._looks.clear()
                # The error of a host that waits in vain, told once until it writes again
                if self._told is None:
                    self.look(core, None)
                    self._told = self.chip.standstill(core)
                    self.on_failure(self._told, core)
                raise copy.copy(self._told)
            if self._refused is not None and looks > _WAITS:
                self._looks.clear()
                raise NoProgress(f"the host waits; {self._refused}", rule="REFUSED")
        data = self.chip.read(*core, address, size)
        if self.recorder is not None:
            self.recorder.act(READ, self.chip.round, core, address, data)
        return data

    def silent(self) -> None:
        """The host has said nothing for a while: report if its memory is what comes next."""
        idle = self.failure is not None or self._ended in _STANDS
        if not idle and not self._told_of_memory:
            self._tell_of_memory(seen_ahead(self._ahead))

    def _ahead(self) -> BhemuError | None:
        self.chip.run("polling", rounds=self._rounds, resume=True)
        return self._host_memory()

    def _host_memory(self) -> BhemuError | None:
        access = self.chip.host_access
        if access is None:
            return None
        return NotModelled(
            "a kernel wants the host's memory, which no host shares with a simulator: the host will"
            f" wait for ever; {access.request}",
            rule="HOST-MEMORY",
            where=access.where,
            hint="with fast dispatch set TT_METAL_DRAM_BACKED_CQ=1, so that the command queues are"
            " in DRAM; or TT_METAL_SLOW_DISPATCH_MODE=1",
        )

    def _tell_of_memory(self, found: BhemuError | None) -> None:
        if found is not None and not self._told_of_memory:
            self._told_of_memory = True
            self.look(_tile(found), found)
            self.report(found)

    def deassert_reset(self, core: XY) -> None:
        """UMD says all of Tensix; hosts mean BRISC, whose firmware releases the other cores."""
        self.write(core, _SOFT_RESET, _BRISC_RUNS.to_bytes(4, "little"))

    def assert_reset(self, core: XY) -> None:
        """Hold all five cores in reset."""
        self.write(core, _SOFT_RESET, mm.SOFT_RESET_ALL.to_bytes(4, "little"))

    def answer(self, message: Message) -> bytes | None:
        """Do what a message asks; the data of its reply, None where it gets none.

        InputError for what the chip cannot do; any BhemuError when the chip stops with an error.
        """
        command, core, address, size, data = message
        if command == Command.START:  # nothing to start: every core is in reset
            return None
        if core is None:
            raise InputError(f"{name(command)} names no core")
        if command == Command.WRITE:
            self.write(core, address, data[:size] if size else data)
        elif command == Command.READ:
            return self.read(core, address, size)
        elif command == Command.ALL_TENSIX_RESET_DEASSERT:
            self.deassert_reset(core)
        elif command == Command.ALL_TENSIX_RESET_ASSERT:
            self.assert_reset(core)
        else:
            raise InputError(f"{name(command)} is no request for a Blackhole chip")
        return None


def _tile(error: BhemuError) -> XY | None:
    """Whose error it is, where that is known."""
    xy = None if error.where is None else error.where.tile
    return xy if isinstance(xy, tuple) else None


def name(command: int) -> str:
    """The command as UMD's schema calls it."""
    return Command(command).name if command in set(Command) else f"command {command}"
