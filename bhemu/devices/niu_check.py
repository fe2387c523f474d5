"""What must hold for a request before it has any effect: NOC_CTRL, coordinates, addresses.

Where the ISA text says what silicon does with a forbidden request, the rule is tolerated as other
undefined behaviour is; a request that no text describes is refused in every mode.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices import niu_rules as rules
from bhemu.devices import noc_map
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, refuse, violated

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
        return np.int64(refuse(s, rules.KIND, control=control))
    if control & request.RESERVED:
        bits = control & request.RESERVED
        return np.int64(refuse(s, rules.RESERVED, control=control, bits=bits))
    if control & request.ACCUMULATE:
        return np.int64(refuse(s, rules.ACCUMULATE, control=control))
    if control & request.DROP_ACK:
        return np.int64(refuse(s, rules.DROP_ACK, control=control))
    many = request.is_multicast(control)
    if many and request.kind(control) == request.READ:
        return np.int64(refuse(s, rules.MULTICAST_READ))
    class_bits = (control >> 14) & 3
    if control & request.STATIC_CHANNEL and (class_bits == 2) != many:
        return np.int64(violated(s, rules.CHANNEL, class_bits=class_bits))
    return np.int64(DONE)


@njit
def _others(s: Any, row: Any) -> Any:
    """The tag, the exclusion, and who has a linked transaction open."""
    noc, i = row[request.NOC], row[request.INITIATOR]
    if row[request.TAG] & _OVERLAY:
        return np.int64(refuse(s, rules.OVERLAY, tag=row[request.TAG]))
    exclude = np.int64(s.niu_command[noc, i, _EXCLUDE])
    if exclude and request.is_multicast(row[request.CONTROL]):
        return np.int64(refuse(s, rules.EXCLUDE, value=exclude))
    linked = s.niu_linked[noc]
    if linked[0] and linked[1] != row[request.GIVEN]:
        core, pc = linked[2], linked[3]
        return np.int64(violated(s, rules.LINKED, linked=linked[1], core=core, pc=pc))
    return np.int64(DONE)


@njit
def _nowhere(s: Any, row: Any, given: Any) -> Any:
    x, y = given & 63, (given >> 6) & 63
    return np.int64(refuse(s, rules.COORDINATE, x=x, y=y, noc=row[request.NOC]))


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
        return np.int64(refuse(s, rules.ENDPOINT, x=x, y=y, noc=noc, kind=kind))
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
        register = (
            np.int64(mm.NOC_TARG_ADDR_LO if request.takes_data(control) else mm.NOC_RET_ADDR_LO) + 8
        )
        x, y = given & 63, (given >> 6) & 63
        return np.int64(refuse(s, rules.THIRD_TILE, x=x, y=y, register=register))
    n, at = request.size(row), row[request.LOCAL]
    if request.has_enables(control):
        at &= ~15
    if at < 0 or at > mm.L1_SIZE - n:
        return np.int64(refuse(s, rules.LOCAL, address=at, length=n))
    return np.int64(DONE)


@njit
def is_register(row: Any) -> Any:
    """Whether the other end is a register of a Tensix tile."""
    tensix = noc_map.kind(row[request.ENDPOINT]) == noc_map.TENSIX
    if request.is_multicast(row[request.CONTROL]):
        tensix = True
    return tensix and mm.LOCAL_BASE <= row[request.REMOTE] < _ADDRESSES


@njit
def _remote_end(row: Any) -> Any:
    """First address behind the memory at the other end, and where that memory begins."""
    kind = noc_map.kind(row[request.ENDPOINT])
    if request.is_multicast(row[request.CONTROL]) or kind == noc_map.TENSIX:
        return np.int64(0), np.int64(mm.L1_SIZE)
    if kind == noc_map.DRAM:
        return np.int64(0), np.int64(noc_map.DRAM_SIZE)
    if kind == noc_map.PCIE:
        return np.int64(noc_map.PCIE_HOST), np.int64(noc_map.PCIE_HOST + noc_map.PCIE_SIZE)
    if kind == noc_map.ETHERNET:
        return np.int64(0), np.int64(noc_map.ETHERNET_L1_SIZE)
    return np.int64(0), np.int64(_ADDRESSES)


@njit
def _remote(s: Any, row: Any) -> Any:
    """The address at the other end."""
    at, n = row[request.REMOTE], request.size(row)
    if is_register(row):
        exact = n == 4 or request.has_enables(row[request.CONTROL])
        if not exact or at & 3:
            return np.int64(refuse(s, rules.MMIO, address=at, length=n))
        return np.int64(DONE)
    if request.has_enables(row[request.CONTROL]):
        at &= ~15
    low, high = _remote_end(row)
    if at < low or at > high - n:
        return np.int64(refuse(s, rules.REMOTE, address=at, length=n))
    return np.int64(DONE)


@njit
def _alignment(s: Any, row: Any) -> Any:
    """Both addresses, modulo what the transfer needs."""
    control, modulo = row[request.CONTROL], np.int64(16)
    kind = noc_map.kind(row[request.ENDPOINT])
    if request.kind(control) == request.READ:
        if is_register(row):
            modulo = np.int64(4)
        elif kind == noc_map.DRAM or kind == noc_map.PCIE:
            modulo = np.int64(_READ_MODULO)
    local, remote = row[request.LOCAL], row[request.REMOTE]
    if (local ^ remote) & (modulo - 1):
        return np.int64(refuse(s, rules.ALIGNMENT, local=local, remote=remote, modulo=modulo))
    return np.int64(DONE)


@njit
def _inline(s: Any, row: Any) -> Any:
    """An inline write: a register of a Tensix tile, or any of an Ethernet tile."""
    kind, at = noc_map.kind(row[request.ENDPOINT]), row[request.REMOTE]
    if not request.is_multicast(row[request.CONTROL]):
        if kind != noc_map.TENSIX and kind != noc_map.ETHERNET:
            return np.int64(refuse(s, rules.INLINE_ENDPOINT))
    if not is_register(row):
        return np.int64(refuse(s, rules.INLINE_L1, address=at))
    return np.int64(DONE)


@njit
def _atomic(s: Any, row: Any) -> Any:
    """An atomic: what it does, in whose L1, where the old value goes."""
    kind, at = noc_map.kind(row[request.ENDPOINT]), row[request.REMOTE]
    known = kind == noc_map.TENSIX or kind == noc_map.ETHERNET
    if is_register(row) or not (known or request.is_multicast(row[request.CONTROL])):
        return np.int64(refuse(s, rules.ATOMIC_ENDPOINT, address=at))
    operands = row[request.LENGTH]
    opcode = request.atomic_opcode(operands)
    if opcode not in _ATOMICS:
        return np.int64(refuse(s, rules.ATOMIC_OPCODE, opcode=opcode, operands=operands))
    if row[request.LOCAL] & 3:
        return np.int64(refuse(s, rules.ATOMIC_ANSWER, address=row[request.LOCAL]))
    return np.int64(DONE)


@njit
def _length(s: Any, row: Any) -> Any:
    """1 to 16384 bytes, where a length is given."""
    control = row[request.CONTROL]
    given = request.kind(control) == request.READ or request.takes_data(control)
    if given and not request.has_enables(control):
        n = row[request.LENGTH]
        if n < 1 or n > request.LONGEST:
            return np.int64(refuse(s, rules.LENGTH, length=n))
    return np.int64(DONE)


@njit
def check(s: Any, row: Any) -> Any:
    """DONE, or the rule that the request breaks."""
    status = _control(s, row)
    if status == DONE:
        status = _others(s, row)
    if status == DONE:
        status = _endpoint(s, row)
    if status == DONE:
        status = _length(s, row)
    if status == DONE:
        status = _own(s, row)
    control = row[request.CONTROL]
    if status != DONE:
        return status
    if request.kind(control) == request.ATOMIC:
        status = _atomic(s, row)
    elif request.is_inline(control):
        status = _inline(s, row)
    else:
        status = _alignment(s, row)
    return status if status != DONE else _remote(s, row)
