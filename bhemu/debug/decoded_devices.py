"""The rows of the devices and of memory: one function per name of `views.NAMED`."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bhemu.debug.rows import Row, Value, View, eights, ints, values
from bhemu.devices.bus.address_map import INERT, NAMED
from bhemu.devices.bus.naming import INITIATOR_REGISTERS, STREAM_REGISTERS, niu_register
from bhemu.machine.saved import TileState
from bhemu.memmap import CORE_NAMES, DEBUG_BASE, LOCAL_BASE, LOCAL_SIZES, NIU_CFG_0

_BYTES = 32  # of memory in a row


def mailbox(s: TileState, view: View) -> Iterator[Row]:
    """Queued entries by writer and reader."""
    for w in range(4):
        for r in range(4):
            entries, low, high = s.mailbox[w, r], int(s.mailbox_read[w, r]), s.mailbox_write[w, r]
            cells = values([int(entries[i % len(entries)]) for i in range(low, int(high))])
            label = f"{CORE_NAMES[w]} to {CORE_NAMES[r]}"
            yield Row(label, {"queued": " ".join(f"{v:#x}" for v in cells.values())}, index=w)


def pcbuf(s: TileState, view: View) -> Iterator[Row]:
    """Queued entries of each TRISC."""
    for t in range(3):
        entries = s.pcbuf[t]
        held = range(int(s.pcbuf_read[t]), int(s.pcbuf_write[t]))
        text = " ".join(f"{int(entries[i % len(entries)]):#x}" for i in held)
        yield Row(f"T{t}", {"queued": text}, index=t)


def debug(s: TileState, view: View) -> Iterator[Row]:
    """Every register by address and, where it has one, name."""
    for i, value in enumerate(ints(s.debug)):
        address = DEBUG_BASE + 4 * i
        register = NAMED.get(address)
        name = "" if register is None else register.name.removeprefix("RISCV_DEBUG_REG_")
        label = f"0x{address:08X} {name}".rstrip()
        yield Row(label, {"value": value}, "#010x", names=False, index=address, span=4)


def inert(s: TileState, view: View) -> Iterator[Row]:
    """Every inert register: its value and how often it was accessed."""
    for i, (address, register) in enumerate(INERT.items()):
        cells: dict[str, Value] = {"value": f"{int(s.inert[i]):#010x}"}
        cells["accesses"] = int(s.inert_count[i])
        yield Row(f"0x{address:08X} {register.name}", cells, index=address, span=4)


def niu(s: TileState, view: View) -> Iterator[Row]:
    """Registers of both NoCs: those with a name one by one, the others eight to a row."""
    for noc in range(2):
        for i, words in enumerate(s.niu_command[noc]):
            cells = {INITIATOR_REGISTERS[4 * r]: int(word) for r, word in enumerate(words)}
            yield Row(f"NoC {noc} initiator {i}", cells, "#x", index=noc)
        for r, word in enumerate(ints(s.niu_config[noc])):
            name = niu_register(NIU_CFG_0 + 4 * r) or f"config {r}"
            yield Row(f"NoC {noc} {name}", {"value": word}, "#x", names=False, index=noc)
        yield from eights(f"NoC {noc} counters", s.niu_counter[noc], index=noc)


def tdma(s: TileState, view: View) -> Iterator[Row]:
    """Parameters of the next command, base address of each core."""
    yield Row("parameters", values(ints(s.tdma_param)), "#x")
    for c in range(4):
        yield Row(f"XMOV_L1_BASE_ADDR of {CORE_NAMES[c]}", {"value": int(s.tdma_base[c])}, "#x")


def stream(s: TileState, view: View) -> Iterator[Row]:
    """The registers of every stream that bhemu models, by name."""
    for n, registers in enumerate(s.stream):
        for number, name in STREAM_REGISTERS.items():
            label = f"stream {n:>2} {number:>3} {name}"
            yield Row(label, {"value": int(registers[number])}, "#x", names=False, index=n)


def memory(
    label: str,
    base: int,
    now: npt.NDArray[np.uint8],
    other: npt.NDArray[np.uint8] | None,
    every: bool,
) -> Iterator[Row]:
    """Rows of 32 bytes: those that are not 0, all of them, or those that differ from `other`."""
    lines = now.reshape(-1, _BYTES)
    shown = (
        lines.any(axis=1) | every
        if other is None
        else (lines != other.reshape(-1, _BYTES)).any(axis=1)
    )
    for i in np.flatnonzero(shown):
        address = base + int(i) * _BYTES
        words = lines[i].view("<u4").tolist()
        cells: dict[str, Value] = {f"{address + 4 * j:#x}": word for j, word in enumerate(words)}
        title = f"{label}{address:08x}: "
        yield Row(title, cells, "08x", names=False, index=address, span=_BYTES)


def local(s: TileState, view: View) -> Iterator[Row]:
    """Core-local memory, each to its size."""
    for c, name in enumerate(CORE_NAMES):
        size = LOCAL_SIZES[c]
        other = None if view.other is None else view.other.local[c, :size]
        yield from memory(f"{name:<7} ", LOCAL_BASE, s.local[c, :size], other, view.every)


def l1(s: TileState, view: View) -> Iterator[Row]:
    """L1."""
    yield from memory("", 0, s.l1, None if view.other is None else view.other.l1, view.every)
