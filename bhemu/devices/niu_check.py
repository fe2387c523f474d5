"""What must hold for a request to the NoC before it has any effect, and the rules it may break."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, NCB, UB, UNIMPLEMENTED, condition, error, refuse, undefined

# What a request to the NoC may be refused for; every sentence ends with the whole request.

TRANSFER = error("NOC-TRANSFER", UNIMPLEMENTED, "the store to NOC_CMD_CTRL at {address:#010x} starts a NoC transfer, which a tile alone does not model: NOC_CTRL {control:#x}, target address {target:#x}, return address {answer:#x}", "make a Chip, whose tiles send to each other; or let the host write inputs into L1")  # fmt: skip
KIND = error("NOC-KIND", UB, "NOC_CTRL {control:#x} has request type 3, which is reserved", "0, 1 or 2")  # fmt: skip
RESERVED = error("NOC-RESERVED", UB, "NOC_CTRL {control:#x} has reserved bits set: {bits:#x}", "bits 12:10 and 26:18 are written as 0")  # fmt: skip
ACCUMULATE = error("NOC-L1-ACCUMULATE", UB, "NOC_CTRL {control:#x} asks for accumulation in L1, which does not work on Blackhole")  # fmt: skip
DROP_ACK = error("NOC-DROP-ACK", UNIMPLEMENTED, "NOC_CTRL {control:#x} has NOC_CMD_MEM_RD_DROP_ACK set, a notice to the overlay")  # fmt: skip
CHANNEL = error("NOC-CHANNEL", UB, "the static virtual channel has class {class_bits}; unicast takes 0 or 1, multicast 2", "bits 15:13 of NOC_CTRL: 0 to 3 for unicast, 4 or 5 for multicast")  # fmt: skip
MULTICAST_READ = error("NOC-MULTICAST-READ", UB, "a read cannot be a multicast")
EXCLUDE = error("NOC-EXCLUDE", UNIMPLEMENTED, "NOC_BRCST_EXCLUDE is {value:#x}: only rectangles are modelled")  # fmt: skip
OVERLAY = error("NOC-OVERLAY", UNIMPLEMENTED, "NOC_PACKET_TAG {tag:#x} asks for delivery to the overlay (bit 6) or header store (bit 9)")  # fmt: skip
COORDINATE = error("NOC-COORDINATE", UB, "({x},{y}) is the coordinate of no tile on NoC {noc}", "Tensix tiles are at x 1-7 and 10-16, y 2-11; DRAM at x 17-18, y 12-23")  # fmt: skip
ENDPOINT = error("NOC-ENDPOINT", UNIMPLEMENTED, "the tile at ({x},{y}) of NoC {noc} is of a kind ({kind}) that is not modelled as a target", "is the coordinate meant? Tensix tiles are at x 1-7 and 10-16, y 2-11, DRAM banks at x 17-18, y 12-23")  # fmt: skip
THIRD_TILE = error("NOC-THIRD-TILE", UNIMPLEMENTED, "({x},{y}), the own coordinate in the register at offset {register:#x}, is not the tile that sends: answers and acknowledgements to a third tile are not modelled", "put the own coordinate there: NOC_ID_LOGICAL has it")  # fmt: skip
LENGTH = error("NOC-LENGTH", UNIMPLEMENTED, "NOC_AT_LEN_BE is {length}: a request has 1 to 16384 bytes", "split longer transfers into requests of at most 16384 bytes")  # fmt: skip
LOCAL = error("NOC-LOCAL", UB, "{length} bytes at {address:#x} of the own tile are not within L1 (0..0x180000)")  # fmt: skip
REMOTE = error("NOC-REMOTE", UB, "{length} bytes at {address:#x} are not within the memory of the other tile", "L1 of a Tensix tile ends at 0x180000, its registers begin at 0xFFB11000; a DRAM bank has 0xFF000000 bytes")  # fmt: skip
ALIGNMENT = error("NOC-ALIGNMENT", UB, "local address {local:#x} and remote address {remote:#x} differ modulo {modulo}", "L1 and every write: equal modulo 16; reads of DRAM and PCIe: modulo 64; of registers: 4")  # fmt: skip
MMIO = error("NOC-MMIO", UB, "{length} bytes to or from the register at {address:#010x}: exactly 4 bytes, aligned, are possible")  # fmt: skip
INLINE_L1 = error("NOC-INLINE-L1", UB, "an inline write to L1 ({address:#x}), which a hardware bug of Blackhole forbids", "store the word to L1 and write it from there")  # fmt: skip
INLINE_ENDPOINT = error("NOC-INLINE-ENDPOINT", UB, "an inline write must go to a Tensix or Ethernet tile")  # fmt: skip
ATOMIC_ENDPOINT = error("NOC-ATOMIC-ENDPOINT", UB, "an atomic must go to L1 of a Tensix or Ethernet tile, not to {address:#x}")  # fmt: skip
ATOMIC_OPCODE = error("NOC-ATOMIC-OPCODE", UNIMPLEMENTED, "atomic opcode {opcode} (NOC_AT_LEN_BE {operands:#x}) is not modelled", "1 increment, 3 swap, 4 compare and swap, 6 and 7 swap with index are")  # fmt: skip
ATOMIC_ANSWER = error("NOC-ATOMIC-ANSWER", UB, "the address {address:#x} for the old value is not aligned to 4 bytes")  # fmt: skip
LINKED = error("NOC-LINKED", UB, "this request is not to the destination {linked:#x} of the linked request that core {core} sent at pc {pc:#010x}, and that none has closed", "the last request of a linked transaction has NOC_CMD_VC_LINKED clear")  # fmt: skip
TABLES = error("NOC-TRANSLATION-TABLE", UNIMPLEMENTED, "{value:#x} stored to the translation register at offset {offset:#x} changes it: coordinates are translated as the chip's firmware set it up")  # fmt: skip
INTERRUPT = error("NOC-INTERRUPT", UNIMPLEMENTED, "{value:#x} stored to NIU_TRANS_COUNT_RTZ_CFG enables interrupts, which are not modelled")  # fmt: skip
CLOCK = error("NOC-CLOCK", UNIMPLEMENTED, "{value:#x} stored to NIU_CFG_0 has bit 12 set, which stops the clock of the tile", "keep bit 12 clear")  # fmt: skip
REQUEST_FIFO = error("NOC-REQUEST-FIFO", UNIMPLEMENTED, "{value:#x} stored to NIU_CFG_0 has bit 16 set: the request FIFO is not modelled", "keep bit 16 clear; NOC_CMD_CTRL then says when an initiator is free")  # fmt: skip
CFG_RESERVED = error("NOC-CFG-RESERVED", UB, "{value:#x} stored to the NIU register at offset {offset:#x} changes reserved bits: {bits:#x}", "read the register and change other bits only")  # fmt: skip
POSTED_ATOMIC = error("NOC-POSTED-ATOMIC", NCB, "a posted atomic: its old value is written to the answer address, silicon sends none")  # fmt: skip
WRITE_BACK = error("NOC-WRITE-BACK", NCB, "coordinate {given:#x} of initiator {initiator} is kept, silicon replaces it by the translated one")  # fmt: skip
FULL = condition("room for another NoC request")
REQUEST_RULES = frozenset(
    (
        *(KIND, RESERVED, ACCUMULATE, DROP_ACK, CHANNEL, MULTICAST_READ, EXCLUDE, OVERLAY),
        *(COORDINATE, ENDPOINT, THIRD_TILE, LENGTH, LOCAL, REMOTE, ALIGNMENT, MMIO, INLINE_L1),
        *(INLINE_ENDPOINT, ATOMIC_ENDPOINT, ATOMIC_OPCODE, ATOMIC_ANSWER, LINKED),
    )
)
"""Rules about a whole request, which the message then decodes."""


# What must hold for a request before it has any effect: NOC_CTRL, coordinates, addresses.
#
# Where the ISA text says what silicon does with a forbidden request, the rule is tolerated as
# other undefined behaviour is; a request that no text describes is refused in every mode.

_OVERLAY = 1 << 6 | 1 << 9  # delivery to the overlay, header store
_ADDRESSES = 1 << 32
_READ_MODULO = 64  # of DRAM and PCIe
_EXCLUDE, _CTRL, _TAG = mm.NOC_BRCST_EXCLUDE >> 2, mm.NOC_CTRL >> 2, mm.NOC_PACKET_TAG >> 2
_ATOMICS = (
    *(request.INCREMENT, request.SWAP, request.COMPARE_AND_SWAP),
    *(request.SWAP_INDEX_LOW, request.SWAP_INDEX_HIGH),
)


@njit
def _control(s: Any, row: Any) -> Any:
    """The bits of NOC_CTRL."""
    control = row[request.CONTROL]
    if request.kind(control) == request.ILLEGAL:
        return np.int64(refuse(s, KIND, control=control))
    if control & request.RESERVED:
        bits = control & request.RESERVED
        return np.int64(refuse(s, RESERVED, control=control, bits=bits))
    if control & request.ACCUMULATE:
        return np.int64(refuse(s, ACCUMULATE, control=control))
    if control & request.DROP_ACK:
        return np.int64(refuse(s, DROP_ACK, control=control))
    many = request.is_multicast(control)
    if many and request.kind(control) == request.READ:
        return np.int64(refuse(s, MULTICAST_READ))
    class_bits = (control >> 14) & 3
    if control & request.STATIC_CHANNEL and (class_bits == 2) != many:
        return np.int64(undefined(s, CHANNEL, class_bits=class_bits))
    return np.int64(DONE)


@njit
def _others(s: Any, row: Any) -> Any:
    """The tag, the exclusion, and the initiator that has a linked transaction open."""
    noc, i = row[request.NOC], row[request.INITIATOR]
    if row[request.TAG] & _OVERLAY:
        return np.int64(refuse(s, OVERLAY, tag=row[request.TAG]))
    exclude = np.int64(s.niu_command[noc, i, _EXCLUDE])
    if exclude and request.is_multicast(row[request.CONTROL]):
        return np.int64(refuse(s, EXCLUDE, value=exclude))
    linked = s.niu_linked[noc]
    if linked[0] and linked[1] != row[request.GIVEN]:
        core, pc = linked[2], linked[3]
        return np.int64(undefined(s, LINKED, linked=linked[1], core=core, pc=pc))
    return np.int64(DONE)


@njit
def _nowhere(s: Any, row: Any, given: Any) -> Any:
    x, y = given & 63, (given >> 6) & 63
    return np.int64(refuse(s, COORDINATE, x=x, y=y, noc=row[request.NOC]))


@njit
def _endpoint(s: Any, row: Any) -> Any:
    """The coordinate of the other end."""
    given = row[request.GIVEN]
    if request.is_multicast(row[request.CONTROL]):
        if row[request.RECTANGLE] >= 0:
            return np.int64(DONE)
        physical = np.int64(request.translates(s, row[request.NOC]) == 0)
        end = noc_map.look_up(s, row[request.NOC], given, physical)
        start = noc_map.kind(end) != noc_map.NOTHING
        return _nowhere(s, row, given >> 12 if start else given)
    kind = noc_map.kind(row[request.ENDPOINT])
    if kind == noc_map.NOTHING:
        return _nowhere(s, row, given)
    if kind > noc_map.ETHERNET:
        x, y = given & 63, (given >> 6) & 63
        noc = row[request.NOC]
        return np.int64(refuse(s, ENDPOINT, x=x, y=y, noc=noc, kind=kind))
    return np.int64(DONE)


@njit
def _own(s: Any, row: Any) -> Any:
    """The own end: the tile that sends, an address in its L1."""
    noc, control = row[request.NOC], row[request.CONTROL]
    if request.is_inline(control):
        return np.int64(DONE)
    registers = s.niu_command[noc, row[request.INITIATOR]]
    given = request.coordinate(registers, False, control)
    physical = np.int64(request.translates(s, noc) == 0)
    word = noc_map.look_up(s, noc, given, physical)
    if noc_map.kind(word) == noc_map.NOTHING:
        return _nowhere(s, row, given)
    if noc_map.place(word) != np.int64(s.niu_node[noc]) & 0xFFF:
        register = np.int64(mm.NOC_RET_ADDR_LO + 8)
        if request.takes_data(control):
            register = np.int64(mm.NOC_TARG_ADDR_LO + 8)
        x, y = given & 63, (given >> 6) & 63
        return np.int64(refuse(s, THIRD_TILE, x=x, y=y, register=register))
    n, at = request.size(row), row[request.LOCAL]
    if request.has_enables(control):
        at &= ~15
    if at < 0 or at > noc_map.l1_end(s) - n:
        return np.int64(refuse(s, LOCAL, address=at, length=n))
    return np.int64(DONE)


@njit
def is_register(row: Any) -> Any:
    """Whether the other end is a register of a Tensix tile."""
    tensix = noc_map.kind(row[request.ENDPOINT]) == noc_map.TENSIX
    tensix = tensix or request.is_multicast(row[request.CONTROL])
    return tensix and mm.LOCAL_BASE <= row[request.REMOTE] < _ADDRESSES


@njit
def _remote(s: Any, row: Any) -> Any:
    """The address at the other end."""
    at, n = row[request.REMOTE], request.size(row)
    if is_register(row):
        exact = n == 4 or request.has_enables(row[request.CONTROL])
        if not exact or at & 3:
            return np.int64(refuse(s, MMIO, address=at, length=n))
        return np.int64(DONE)
    if request.has_enables(row[request.CONTROL]):
        at &= ~15
    kind, low, high = noc_map.kind(row[request.ENDPOINT]), np.int64(0), np.int64(_ADDRESSES)
    if request.is_multicast(row[request.CONTROL]) or kind == noc_map.TENSIX:
        ethernet = kind == noc_map.TENSIX and noc_map.index(row[request.ENDPOINT]) >= noc_map.TILES
        high = np.int64(noc_map.ETHERNET_L1_SIZE if ethernet else mm.L1_SIZE)
    elif kind == noc_map.DRAM:
        high = np.int64(noc_map.DRAM_SIZE)
    elif kind == noc_map.PCIE:
        low, high = np.int64(noc_map.PCIE_HOST), np.int64(noc_map.PCIE_HOST + noc_map.PCIE_SIZE)
    elif kind == noc_map.ETHERNET:
        high = np.int64(noc_map.ETHERNET_L1_SIZE)
    if at < low or at > high - n:
        return np.int64(refuse(s, REMOTE, address=at, length=n))
    return np.int64(DONE)


@njit
def _atomic(s: Any, row: Any) -> Any:
    """An atomic: what it does, in whose L1, where the old value goes."""
    kind, at = noc_map.kind(row[request.ENDPOINT]), row[request.REMOTE]
    known = kind == noc_map.TENSIX or kind == noc_map.ETHERNET
    if is_register(row) or not (known or request.is_multicast(row[request.CONTROL])):
        return np.int64(refuse(s, ATOMIC_ENDPOINT, address=at))
    operands = row[request.LENGTH]
    opcode = request.atomic_opcode(operands)
    if opcode not in _ATOMICS:
        return np.int64(refuse(s, ATOMIC_OPCODE, opcode=opcode, operands=operands))
    if row[request.LOCAL] & 3:
        return np.int64(refuse(s, ATOMIC_ANSWER, address=row[request.LOCAL]))
    return np.int64(DONE)


@njit
def check(s: Any, row: Any) -> Any:
    """DONE, or the rule that the request breaks."""
    status = _control(s, row) or _others(s, row) or _endpoint(s, row)
    if status != DONE:
        return status
    control, kind = row[request.CONTROL], noc_map.kind(row[request.ENDPOINT])
    local, remote = row[request.LOCAL], row[request.REMOTE]
    reads = request.kind(control) == request.READ
    if (reads or request.takes_data(control)) and not request.has_enables(control):
        n = row[request.LENGTH]
        if n < 1 or n > request.LONGEST:
            return np.int64(refuse(s, LENGTH, length=n))
    status = _own(s, row)
    if status != DONE:
        return status
    if request.kind(control) == request.ATOMIC:
        status = _atomic(s, row)
    elif request.is_inline(control):  # a register of a Tensix tile, or any of an Ethernet tile
        known = kind == noc_map.TENSIX or kind == noc_map.ETHERNET
        if not known and not request.is_multicast(control):
            return np.int64(refuse(s, INLINE_ENDPOINT))
        if not is_register(row):
            return np.int64(refuse(s, INLINE_L1, address=remote))
    else:
        modulo = np.int64(16)  # of both addresses
        if reads and is_register(row):
            modulo = np.int64(4)
        elif reads and (kind == noc_map.DRAM or kind == noc_map.PCIE):
            modulo = np.int64(_READ_MODULO)
        if (local ^ remote) & (modulo - 1):
            return np.int64(refuse(s, ALIGNMENT, local=local, remote=remote, modulo=modulo))
    return status if status != DONE else _remote(s, row)
