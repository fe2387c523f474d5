"""Which window a device access goes to; checks of width and alignment; Python devices last.

Before a TRISC's access to anything but its instruction push, its own thread may run until its head
blocks (brisc: all threads it has pushed to); then the access takes place at once.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import (
    auto_sync,
    cfg_window,
    debug_regs,
    gpr_window,
    insn_fifo,
    local_ram,
    mailbox,
    mop_cfg,
    niu,
    own_thread,
    pcbuf,
    rare,
    rules,
    tdma,
)
from bhemu.jit.calls import call_access
from bhemu.jit.subset import njit
from bhemu.tensix import streams

WRITE = 0x100  # added to the size when a Python device is asked to store
_TENSIX = mm.GPR_BASE
_HOST = mm.HOST


_BLOCKS = tuple((low, high) for low, high, _ in mm.BLOCKS if low >= mm.DEVICE_BASE)


@njit
def _in_a_block(address: Any, rule: Any) -> Any:
    """The rule that an access of a block breaks; between the blocks there is nothing to access."""
    for low, high in _BLOCKS:
        if low <= address < high:
            return rule
    return np.int64(rules.UNMAPPED)


@njit
def _tensix_read(s: Any, c: Any, address: Any) -> Any:
    if c == _HOST:
        s.access[0] = _in_a_block(address, np.int64(rules.WRONG_CORE))
        return np.int64(0)
    if address < mm.GPR_END:
        return gpr_window.read(s, c, address - mm.GPR_BASE)
    if mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_END:
        return cfg_window.read(s, c, address - mm.TENSIX_CFG_BASE)
    if mm.PC_BUF_BASE <= address < mm.PC_BUF_END:
        return pcbuf.read(s, c, address - mm.PC_BUF_BASE)
    if mm.MAILBOX_BASE <= address < mm.MAILBOX_END:
        return mailbox.read(s, c, address - mm.MAILBOX_BASE)
    pushes = mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END
    s.access[0] = rules.WRITE_ONLY if pushes else rules.UNMAPPED
    return np.int64(0)


@njit
def _tensix_write(s: Any, c: Any, address: Any, value: Any) -> None:
    if c == _HOST:
        s.access[0] = _in_a_block(address, np.int64(rules.WRONG_CORE))
    elif mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
        insn_fifo.write(s, c, address - mm.INSTRN_BUF_BASE, value)
    elif address < mm.GPR_END:
        gpr_window.write(s, c, address - mm.GPR_BASE, value)
    elif mm.TENSIX_CFG_BASE <= address < mm.TENSIX_CFG_END:
        cfg_window.write(s, c, address - mm.TENSIX_CFG_BASE, value)
    elif mm.PC_BUF_BASE <= address < mm.PC_BUF_END:
        pcbuf.write(s, c, address - mm.PC_BUF_BASE, value)
    elif mm.MAILBOX_BASE <= address < mm.MAILBOX_END:
        mailbox.write(s, c, address - mm.MAILBOX_BASE, value)
    else:
        s.access[0] = rules.UNMAPPED


@njit
def _python(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    return call_access(s.device[0], s, c, address, size, value)


@njit
def _stream_read(s: Any, offset: Any) -> Any:
    value = streams.stream_read(s, offset >> 12, (offset & 0xFFF) >> 2)
    s.access[0] = min(value, 0)
    return max(value, 0)


@njit
def _stream_write(s: Any, offset: Any, value: Any) -> None:
    s.access[0] = streams.stream_write(s, offset >> 12, (offset & 0xFFF) >> 2, value)


@njit
def _word(s: Any, c: Any, address: Any, size: Any) -> Any:
    """The aligned 32-bit word at `address` of any device."""
    if address >= _TENSIX:
        return _tensix_read(s, c, address)
    if mm.DEBUG_BASE <= address < mm.PIC_BASE:
        value = debug_regs.read(s, c, address - mm.DEBUG_BASE)
        return value if value != debug_regs.ELSEWHERE else _python(s, c, address, size, 0)
    if mm.TDMA_BASE <= address < mm.DEBUG_BASE:
        value = tdma.read(s, c, address - mm.TDMA_BASE)
        return value if value != tdma.ELSEWHERE else _python(s, c, address, size, 0)
    if mm.LOCAL_SLOW_BASE <= address < mm.LOCAL_SLOW_END:
        return local_ram.read(s, c, address - mm.LOCAL_SLOW_BASE)
    if mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        return _stream_read(s, address - mm.OVERLAY_BASE)
    if mm.NOC0_BASE <= address < mm.OVERLAY_BASE:
        return niu.read(s, (address - mm.NOC0_BASE) // mm.NOC_SIZE, address % mm.NOC_SIZE)
    if mm.PC_SNAPSHOT_BASE <= address < mm.PC_SNAPSHOT_END:
        order = (0, 4, 1, 2, 3)
        return np.int64(s.pc[order[(address - mm.PC_SNAPSHOT_BASE) >> 2]])
    if mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        s.access[0] = rules.WRITE_ONLY
        return np.int64(0)
    return _python(s, c, address, size, 0)


@njit
def _before(s: Any, c: Any, address: Any, store: Any) -> None:
    """The core's thread may run first; Auto TTSync may make the access wait."""
    own_thread.offer(s, c)
    if s.access[0] == 0 and 1 <= c <= 3:
        if auto_sync.tracks(s, c):
            rare.call(s, rare.SYNC, c, address, np.int64(4), np.int64(store))


@njit
def read(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """Load 1, 2 or 4 bytes; status in s.access[0]."""
    s.access[0] = 0
    s.detail[0], s.detail[1], s.detail[2], s.detail[3] = address, value, size, c
    if c < _HOST:
        s.core_address[c] = np.uint32(address)
        _before(s, c, address, False)
        if s.access[0] != 0:
            return np.int64(0)
    if address & (size - 1):
        s.access[0] = rules.MISALIGNED
        return np.int64(0)
    if mm.DST_WINDOW_BASE <= address < mm.DST_WINDOW_END:
        return rare.call(s, rare.DST_READ, c, address, size, value)
    if size != 4 and mm.NOC0_BASE <= address < mm.GPR_BASE:
        s.access[0] = _in_a_block(address, np.int64(rules.LOAD_SIZE))
        return np.int64(0)
    word = _word(s, c, address & ~3, size)
    return (word >> (8 * (address & 3))) & ((1 << (8 * size)) - 1)


@njit
def _store_word(s: Any, c: Any, address: Any, size: Any, value: Any) -> None:
    if address >= _TENSIX:
        _tensix_write(s, c, address, value)
    elif mm.OVERLAY_BASE <= address < mm.OVERLAY_END:
        _stream_write(s, address - mm.OVERLAY_BASE, value)
    elif mm.NOC0_BASE <= address < mm.OVERLAY_BASE:
        niu.write(s, (address - mm.NOC0_BASE) // mm.NOC_SIZE, address % mm.NOC_SIZE, value)
    elif mm.MOP_CFG_BASE <= address < mm.MOP_CFG_END:
        mop_cfg.write(s, c, address - mm.MOP_CFG_BASE, value)
    elif mm.TDMA_BASE <= address < mm.DEBUG_BASE:
        if rare.call(s, rare.TDMA_WRITE, c, address, size, value):
            _python(s, c, address, size | WRITE, value & tdma.kept(address - mm.TDMA_BASE))
    elif mm.PC_SNAPSHOT_BASE <= address < mm.PC_SNAPSHOT_END:
        s.access[0] = rules.READ_ONLY
    elif not (mm.DEBUG_BASE <= address < mm.PIC_BASE) or not debug_regs.write(
        s, c, address - mm.DEBUG_BASE, value
    ):
        _python(s, c, address, size | WRITE, value)


@njit
def write(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """Store 1, 2 or 4 bytes; status in s.access[0], refused before any effect."""
    s.access[0] = 0
    s.detail[0], s.detail[1], s.detail[2], s.detail[3] = address, value, size, c
    push = mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END
    if c < _HOST:
        s.core_address[c] = np.uint32(address)
        if not push:
            _before(s, c, address, True)
            if s.access[0] != 0:
                return np.int64(0)
    if address & (size - 1):
        s.access[0] = rules.MISALIGNED
    elif mm.LOCAL_SLOW_BASE <= address < mm.LOCAL_SLOW_END:
        local_ram.write(s, c, address - mm.LOCAL_SLOW_BASE, value, size)
    elif mm.DST_WINDOW_BASE <= address < mm.DST_WINDOW_END:
        rare.call(s, rare.DST_WRITE, c, address, size, value)
    elif size != 4:
        s.access[0] = _in_a_block(address, np.int64(rules.STORE_SIZE))
    else:
        _store_word(s, c, address, size, value)
    return np.int64(0)


def read_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry of loads."""
    return read(s, c, address, size, value)


def write_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry of stores."""
    return write(s, c, address, size, value)
