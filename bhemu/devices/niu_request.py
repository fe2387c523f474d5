"""A request to the NoC: what an initiator's registers ask for, as one row of numbers and in words.

The row stands in the record (`noc_request`) from the store to NOC_CMD_CTRL until the request is
delivered. Source: NIU Memory Map, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import noc_map
from bhemu.jit.subset import njit

# Members of a row. CONTROL: NOC_CTRL; ENDPOINT: the target (noc_map.py); RECTANGLE: of a multicast,
# start x, y, end x, y of 6 bits each, on this NoC; LENGTH: bytes, or byte enables, or what an
# atomic does; DATA: where its bytes stand in `noc_data`; DUE: round of its delivery, 0 = the next
# (in modelled time its next stage: noc/timed.py); GIVEN: the target as software gave it.
NOC, INITIATOR, CONTROL, ENDPOINT, RECTANGLE, REMOTE, LOCAL, LENGTH = range(8)
DATA, TAG, CORE, PC, SEQUENCE, DUE, OPERAND, GIVEN = range(8, 16)

READ, ATOMIC, WRITE, ILLEGAL = range(4)  # the request type of NOC_CTRL
KIND_NAMES = ("read", "atomic", "write")
BYTE_ENABLES, INLINE, ANSWERED, MULTICAST, LINKED = 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6
STATIC_CHANNEL, DROP_ACK, SELF, ACCUMULATE = 1 << 7, 1 << 9, 1 << 17, 1 << 31
RESERVED = 7 << 10 | 0x1FF << 18

_LO, _MID, _HI = 0, 1, 2  # words of an address
_TARG, _RET = mm.NOC_TARG_ADDR_LO >> 2, mm.NOC_RET_ADDR_LO >> 2
_TAG, _CTRL = mm.NOC_PACKET_TAG >> 2, mm.NOC_CTRL >> 2
_LEN, _OPERAND = mm.NOC_AT_LEN_BE >> 2, mm.NOC_AT_DATA >> 2
BE_BYTES = 64  # that a write with byte enables may touch
LONGEST = 16384  # bytes of one transfer
GONE = -1  # SEQUENCE of a row that was delivered
# What an atomic does: bits 15:12 of NOC_AT_LEN_BE
INCREMENT, SWAP, COMPARE_AND_SWAP, SWAP_INDEX_LOW, SWAP_INDEX_HIGH = 1, 3, 4, 6, 7


@njit
def kind(control: Any) -> Any:
    """READ, ATOMIC, WRITE or ILLEGAL."""
    return control & 3


@njit
def is_inline(control: Any) -> Any:
    """A write whose datum is NOC_AT_DATA."""
    return kind(control) == WRITE and control & INLINE != 0


@njit
def has_enables(control: Any) -> Any:
    """A write whose NOC_AT_LEN_BE is a mask of bytes."""
    return kind(control) == WRITE and control & (INLINE | BYTE_ENABLES) == BYTE_ENABLES


@njit
def is_answered(control: Any) -> Any:
    """Whether an answer or acknowledgement comes."""
    return kind(control) == READ or control & ANSWERED != 0


@njit
def is_multicast(control: Any) -> Any:
    """Whether it goes to all tiles of a rectangle."""
    return control & MULTICAST != 0


@njit
def takes_data(control: Any) -> Any:
    """Whether it carries bytes of the own L1."""
    return kind(control) == WRITE and control & INLINE == 0


@njit
def size(row: Any) -> Any:
    """Bytes that it moves, of L1 at most."""
    control = row[CONTROL]
    if kind(control) == ATOMIC or is_inline(control):
        return np.int64(4)
    return np.int64(BE_BYTES) if has_enables(control) else row[LENGTH]


@njit
def _address(registers: Any, first: Any) -> Any:
    return np.int64(registers[first + _LO]) | np.int64(registers[first + _MID]) << 32


@njit
def coordinate(registers: Any, remote: Any, control: Any) -> Any:
    """The HI word of the other tile's address, or of the own.

    NOC_TARG_ADDR is the other tile's, but the own tile's for a write with data.
    """
    target = remote != takes_data(control)
    return np.int64(registers[(_TARG if target else _RET) + _HI])


@njit
def rectangle(s: Any, noc: Any, given: Any, physical: Any) -> Any:
    """Both corners on this NoC: start x, y, end x, y; -1 when one names no tile."""
    start = noc_map.look_up(s, noc, (given >> 12) & 0xFFF, physical)
    end = noc_map.look_up(s, noc, given & 0xFFF, physical)
    if noc_map.kind(start) == noc_map.NOTHING or noc_map.kind(end) == noc_map.NOTHING:
        return np.int64(-1)
    return noc_map.place(start) | noc_map.place(end) << 12


@njit
def decode(s: Any, c: Any, noc: Any, i: Any, row: Any) -> None:
    """Put into `row` what initiator `i` asks for; `c` stored to its NOC_CMD_CTRL."""
    registers = s.niu_command[noc, i]
    control = np.int64(registers[_CTRL])
    physical = np.int64(translates(s, noc) == 0)
    given = coordinate(registers, True, control)
    row[NOC], row[INITIATOR], row[CONTROL], row[GIVEN] = noc, i, control, given
    row[ENDPOINT] = noc_map.look_up(s, noc, given, physical)
    row[RECTANGLE] = rectangle(s, noc, given, physical) if is_multicast(control) else 0
    row[REMOTE] = _address(registers, _RET if takes_data(control) else _TARG)
    row[LOCAL] = _address(registers, _TARG if takes_data(control) else _RET)
    row[LENGTH] = np.int64(registers[_LEN])
    if has_enables(control) or kind(control) != ATOMIC:
        row[LENGTH] |= np.int64(registers[_LEN + 1]) << 32
    row[TAG] = np.int64(registers[_TAG])
    row[OPERAND] = np.int64(registers[_OPERAND])
    row[CORE], row[PC] = c, np.int64(s.pc[c]) if c < mm.HOST else np.int64(0)
    row[SEQUENCE], row[DUE], row[DATA] = s.noc_issued[0], 0, s.noc_data_used[0]


@njit
def atomic_opcode(operands: Any) -> Any:
    """What an atomic does, of its NOC_AT_LEN_BE."""
    return (operands >> 12) & 15


@njit
def transaction(row: Any) -> Any:
    """The transaction id, 0-15."""
    return (row[TAG] >> 10) & 15


@njit
def translates(s: Any, noc: Any) -> Any:
    """Bit 14 of NIU_CFG_0: whether coordinates are translated."""
    return (np.int64(s.niu_config[noc, 0]) >> 14) & 1


# A request in words, for messages.

_ATOMICS = {INCREMENT: "increment", COMPARE_AND_SWAP: "compare and swap"}
_ATOMICS |= dict.fromkeys((SWAP, SWAP_INDEX_LOW, SWAP_INDEX_HIGH), "swap")


def at(coordinate: int) -> str:
    """A coordinate as (x,y)."""
    return f"({coordinate & 63},{coordinate >> 6 & 63})"


def _request_text(row: Any) -> str:
    control, n = int(row[CONTROL]), int(row[LENGTH])
    kind = control & 3
    if kind == READ:
        return f"read of {n} bytes"
    how = "acknowledged" if control & ANSWERED else "posted"
    if control & MULTICAST:
        how += " multicast"
    if kind == ATOMIC:
        return f"{how} {_ATOMICS.get(n >> 12 & 15, 'atomic')} ({n:#x}, {row[OPERAND]:#x})"
    if control & INLINE:
        return f"{how} inline write of {row[OPERAND]:#x}"
    if control & BYTE_ENABLES:
        return f"{how} write with byte enables {n & (1 << 64) - 1:#x}"
    return f"{how} write of {n} bytes"


def _where(row: Any) -> str:
    control, given = int(row[CONTROL]), int(row[GIVEN])
    kind, remote = control & 3, f"{row[REMOTE]:#x} of "
    if control & MULTICAST:
        remote += f"the tiles {at(given >> 12)} to {at(given)}"
    else:
        to = int(row[ENDPOINT])
        ethernet = to & 15 == noc_map.TENSIX and to >> 4 & 0xFF >= noc_map.TILES
        remote += noc_map.KIND_NAMES[noc_map.ETHERNET if ethernet else to & 15]
        remote += f" {at(given)}"
    local = f"own {row[LOCAL]:#x}"
    if kind == WRITE and control & INLINE:
        return f"to {remote}"
    if kind == READ:
        return f"from {remote} to {local}"
    if kind == ATOMIC:
        return f"at {remote}, old value to {local}"
    return f"from {local} to {remote}"


def describe(row: Any) -> str:
    """One line: what it does, between which addresses, by which initiator."""
    control, core = int(row[CONTROL]), int(row[CORE])
    marks = [
        f"NoC {row[NOC]} initiator {row[INITIATOR]}",
        f"id {int(row[TAG]) >> 10 & 15}",
        f"channel {control >> 13 & 7}" if control & STATIC_CHANNEL else "",
        "linked" if control & LINKED else "",
        f"NOC_CTRL {control:#x}",
        "sent over the NoC" if core == mm.HOST else f"sent by {mm.CORE_NAMES[core]}",
    ]
    return f"{_request_text(row)} {_where(row)} ({', '.join(mark for mark in marks if mark)})"
