"""What an Ethernet tile has besides NIUs and streams: its cores' control, queues to the other end.

Two cores, in the places of brisc and ncrisc. A command of a TX queue stands in its register until
the end of the round, in which the other end gets it (machine/ethernet.py). Source: golden model,
and tt-metal's headers for the PTP timer.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import memmap as mm
from bhemu.devices import debug_regs, niu
from bhemu.devices.bus import window
from bhemu.devices.bus.window import WORD, Register, Window, access_error
from bhemu.devices.debug_regs import overlay_load, overlay_store
from bhemu.devices.noc_map import ETHERNET_L1_SIZE
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, UNIMPLEMENTED, condition, error, refuse
from bhemu.tensix.state import RESET, State

CORES = (0, 4)  # erisc 0 and 1, as the record counts cores
CORE_STREAMS = 32
FIRST_SP = mm.DEVICE_BASE  # the end of local memory: what the chip's firmware leaves in sp
_SOFT_RESET = mm.RISCV_DEBUG_REG_SOFT_RESET_0 >> 2
_BITS = (1 << 11, 1 << 12)
_IGNORED = 0x80046000  # bits of SOFT_RESET_0 that hosts write and that hold nothing here

# Words of the record's `ethernet`
QUEUES, _QUEUE_WORDS = 3, 34
CONTROL, COMMAND, STATUS, START, SIZE, TO = 0, 1, 2, 5, 6, 7  # of a TX queue
DATA, _ACCEPT_AHEAD, _HEADER_OF_SOFTWARE, _HEADER_OF_HARDWARE = 0x11, 0x1B, 0x20, 0x21
_KNOWN = (
    *(CONTROL, COMMAND, STATUS, START, SIZE, TO),
    *(DATA, _ACCEPT_AHEAD, _HEADER_OF_SOFTWARE, _HEADER_OF_HARDWARE),
)
TAKEN = 8  # START, SIZE, TO and DATA of the command that is under way, from here on
_RX_CONTROL, _RX_ROUTING, _RX_ADDRESS = 102, 105, 106
_HEADERS, _HEADER_COUNT = 107, 10  # each: low and high word of the address of the other end
LINKED, RESET_PC = 127, 128  # 1 = the tile has a link; where the two cores start
COMMANDS = [queue * _QUEUE_WORDS + COMMAND for queue in range(QUEUES)]
_ONGOING = 16  # bit of STATUS: a command is not carried out
COPY, STORE = 2, 4  # commands: bytes of L1 to L1 of the other end, a word to its register

TXQ_COMMAND = error("ETH-TXQ-COMMAND", UNIMPLEMENTED, "command {value} of TX queue {queue}: 2 (bytes of L1) and 4 (a register of the other end; of queues 0 and 1) are modelled")  # fmt: skip
BUSY = condition("the TX queue to be done with its last command")
TXQ_PLACE = error("ETH-TXQ-PLACE", UNIMPLEMENTED, "TX queue {queue} is to send {length} bytes from {address:#x} to {remote:#x}: L1 has 0x80000 bytes, addresses and length are multiples of 16; a register is a word")  # fmt: skip
NO_LINK = access_error("ETH-NO-LINK", UNIMPLEMENTED, "a command of a TX queue of an Ethernet tile without a link")  # fmt: skip


Words = npt.NDArray[np.uint32]


def queue(number: int) -> slice:
    """The words of a TX queue."""
    return slice(number * _QUEUE_WORDS, (number + 1) * _QUEUE_WORDS)


@njit
def _slot(offset: Any) -> Any:
    """The word of `ethernet` that a register is kept in, -1 where there is no register."""
    queue, at = offset >> 12, (offset & 0xFFF) >> 2
    if queue < QUEUES:
        for known in _KNOWN:
            if at == known:
                return queue * _QUEUE_WORDS + at
    elif 4 <= queue < 4 + QUEUES and at == 0:
        return _RX_CONTROL + queue - 4
    elif offset == 0x8150:
        return np.int64(_RX_ROUTING)
    elif offset == 0x8154:
        return np.int64(_RX_ADDRESS)
    elif 0x8200 <= offset < 0x8200 + 0x80 * _HEADER_COUNT and (at & 31) >> 1 == 3:
        return _HEADERS + 2 * ((offset - 0x8200) >> 7) + (at & 1)
    return np.int64(-1)


@njit
def _is_kept(slot: Any) -> Any:
    """Whether a load gives what the register keeps; the others are write-only."""
    at = slot % _QUEUE_WORDS
    queue = slot < _RX_CONTROL and at <= STATUS
    return queue or _RX_CONTROL <= slot < _RX_ROUTING or slot == _RX_ADDRESS


@njit
def _load(s: Any, offset: Any) -> Any:
    """Load a register of the controller."""
    slot = _slot(offset)
    if offset == 0x800C:  # PCS status: the link is up
        s.loaded[0] = 1
    elif offset == 0x8850 or offset == 0x8854:  # the PTP timer counts as the tile's clock does
        s.loaded[0] = (debug_regs.now(s) >> (32 if offset & 4 else 0)) & 0xFFFFFFFF
        s.load_acted[0] = 1
    elif slot < 0:
        return np.int64(window.NOT_MODELLED)
    elif not _is_kept(slot):
        return np.int64(window.WRITE_ONLY)
    elif slot < _RX_CONTROL and slot % _QUEUE_WORDS == STATUS:
        s.loaded[0] = (1 << _ONGOING) if s.ethernet[slot - 1] else 0
        s.load_acted[0] = 1
    else:
        s.loaded[0] = s.ethernet[slot]
        s.load_acted[0] = 1
    return np.int64(DONE)


@njit
def _command(s: Any, queue: Any, value: Any) -> Any:
    """Whether a command of a queue can go out."""
    word = s.ethernet[queue * _QUEUE_WORDS : (queue + 1) * _QUEUE_WORDS]
    start, size, to = np.int64(word[START]), np.int64(word[SIZE]), np.int64(word[TO])
    if value != COPY and (value != STORE or queue == 2):
        return np.int64(refuse(s, TXQ_COMMAND, value=value, queue=queue))
    if s.ethernet[LINKED] == 0:
        return np.int64(NO_LINK)
    if word[COMMAND]:
        return np.int64(BUSY)
    wrong = to & 3 if value == STORE else (start | size | to) & 15
    end = max(start, to) + size
    if wrong or (value == COPY and (size == 0 or end > ETHERNET_L1_SIZE)):
        return np.int64(refuse(s, TXQ_PLACE, queue=queue, length=size, address=start, remote=to))
    return np.int64(DONE)


@njit
def _is_field(slot: Any, value: Any) -> Any:
    """Whether the value of a register asks for what is not modelled."""
    at = slot % _QUEUE_WORDS if slot < _RX_CONTROL else np.int64(-1)
    if at == CONTROL:
        return value != 1
    if at == _HEADER_OF_SOFTWARE or at == _HEADER_OF_HARDWARE:
        return max(value & 15, (value >> 4) & 15, value >> 8) >= _HEADER_COUNT
    if _RX_CONTROL <= slot < _RX_ROUTING:
        return value != 2
    if slot == _RX_ROUTING:
        return value != 0
    return slot >= _HEADERS and (slot - _HEADERS) & 1 == 1 and value > 0xFFFF


@njit
def _store(s: Any, offset: Any, value: Any) -> Any:
    """Store a register of the controller."""
    slot = _slot(offset)
    if slot < 0:
        return np.int64(window.NOT_MODELLED)
    if slot < _RX_CONTROL and slot % _QUEUE_WORDS == STATUS:
        return np.int64(window.READ_ONLY)
    if _is_field(slot, value):
        return np.int64(window.FIELD)
    if slot < _RX_CONTROL and slot % _QUEUE_WORDS == COMMAND:
        status = _command(s, slot // _QUEUE_WORDS, value)
        if status != DONE:
            return status
        first = slot - COMMAND
        for i in range(3):
            s.ethernet[first + TAKEN + i] = s.ethernet[first + START + i]
        s.ethernet[first + TAKEN + 3] = s.ethernet[first + DATA]
    s.ethernet[slot] = np.uint32(value)
    return np.int64(DONE)


def link(s: State) -> None:
    """The tile has a link, which the chip's firmware keeps up: the first core is not held."""
    s.ethernet[LINKED] = 1
    s.debug[_SOFT_RESET] &= ~np.uint32(_BITS[0])


def _power_up(s: State, xy: tuple[int, int]) -> None:
    """Both cores in reset, queues that take commands, the addresses of their headers."""
    s.first_sp[list(CORES)] = FIRST_SP
    s.debug[_SOFT_RESET] = sum(_BITS)
    words = s.ethernet
    for queue in (0, 1):
        words[queue * _QUEUE_WORDS] = 1
        words[_RX_CONTROL + queue] = 2
    words[_RX_ADDRESS] = 0xA00
    words[_QUEUE_WORDS + _HEADER_OF_SOFTWARE], words[_QUEUE_WORDS + _HEADER_OF_HARDWARE] = 0x111, 1
    words[_HEADERS : _HEADERS + 4] = 0xFFFFFFFF, 0xFFFF, 1, 0x100


CONTROLLER = Window(
    *("Ethernet controller", mm.ETHERNET_BASE, mm.ETHERNET_END, _load, _store),
    loads=WORD,
    power_up=_power_up,
)


# The cores: where they start, and what holds them.


@njit
def _store_soft_reset(s: Any, value: Any) -> Any:
    """SOFT_RESET_0: a core that is not held starts where its register says, once that says it."""
    value &= ~_IGNORED
    if value & 0xFFFFFFFF & ~(_BITS[0] | _BITS[1]):
        return np.int64(window.FIELD)
    s.debug[_SOFT_RESET] = np.uint32(value)
    for i in range(2):
        c = CORES[i]
        if value & _BITS[i]:
            s.core_state[c] = RESET
            s.attention[0] |= 1
        elif s.core_state[c] == RESET and s.ethernet[RESET_PC + i]:
            debug_regs.release(s, np.int64(c), np.int64(s.ethernet[RESET_PC + i]))
    return np.int64(DONE)


@njit
def _store_interrupt_mode(value: Any) -> Any:
    return np.int64(window.FIELD if value else DONE)


_RESET_PC = f"ethernet[{RESET_PC} + (offset >> 3)]"
_TIMES = ("WALL_CLOCK_0", "WALL_CLOCK_1_LIVE", "WALL_CLOCK_1")
DEBUG = Window(
    *("Ethernet tile control", mm.DEBUG_BASE, mm.PIC_BASE),
    storage="debug",
    registers=tuple(
        replace(register, store=_store_soft_reset) if "SOFT" in register.name else register
        for register in debug_regs.WINDOW.registers
        if register.name.removeprefix("RISCV_DEBUG_REG_") in ("SOFT_RESET_0", *_TIMES)
    ),
)
RISC_CONTROL = Window(
    *("Ethernet core control", mm.ETHERNET_RISC_BASE, mm.ETHERNET_RISC_END),
    registers=(
        Register("ETH_RISC_RESET_PC", 0x0, place=_RESET_PC),
        Register("ETH_SUBORDINATE_RISC_RESET_PC", 0x8, place=_RESET_PC),
        Register("ETH_RISC_INTERRUPT_MODE", 0x20, None, _store_interrupt_mode, words=5),
    ),
)
STREAMS = Window(
    *("Ethernet overlay streams", mm.OVERLAY_BASE, mm.OVERLAY_BASE + CORE_STREAMS * mm.STREAM_SIZE),
    *(overlay_load, overlay_store),
    loads=WORD,
)
WINDOWS = (DEBUG, RISC_CONTROL, niu.NOC0, niu.NOC1, STREAMS, CONTROLLER)
"""What the cores and the NoC find on an Ethernet tile, in the order of addresses."""
