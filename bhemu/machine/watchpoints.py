"""Watchpoints: named places of a record, what changed one, and what reads one, found by trying."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu import memmap
from bhemu.arguments import did_you_mean
from bhemu.devices.bus import entries
from bhemu.devices.bus.address_map import block_name, find
from bhemu.devices.bus.window import Window
from bhemu.devices.noc_map import DRAM_SIZE
from bhemu.errors import InputError, UnknownName, Where
from bhemu.jit import Later
from bhemu.machine import resolve
from bhemu.noc.grid import tile_at
from bhemu.noc.memory import DramWatches, Place
from bhemu.noc.record import DRAM_WATCH_BYTES, DRAM_WATCHES
from bhemu.tensix import config_fields, observe, state, thread_fields
from bhemu.tensix.insn import instructions
from bhemu.tensix.rules import DONE

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.backend import Backend
    from bhemu.machine.tile import Tile
else:
    error_text = Later("bhemu.machine.error_text")

_INDEX = re.compile(r"(?:0[xX][0-9a-fA-F]+|\d+)")
_MEMBERS = {m.name: m for m in state.MEMBERS if m.name not in (*state.POINTERS, "regs")}
READS, CHANGES = observe.READS, observe.CHANGES
ACCESS = {"r": READS, "w": CHANGES, "rw": READS | CHANGES}
_SHOWN = {READS: " (reads)", CHANGES: "", READS | CHANGES: " (reads and changes)"}
_ALIASES = {"local": "", "config": "cfg", "threadconfig": "thread_cfg", "semaphore": "sem"}
_FORMS = (
    "an L1 address or symbol (0x20000, counter:4), a configuration field, or a part of the state"
    " with its indices (sem:1, gpr:0:5, lreg:3, dst:12, cfg:0:40), or of a chip"
    " dram:BANK:ADDRESS:LENGTH"
)
_DRAM = "dram"


@dataclass(frozen=True)
class Span:
    """Bytes of the record; `mask` tells the bits of a little-endian word, None = all."""

    at: int
    length: int
    mask: int | None = None

    @property
    def first(self) -> int:
        """The byte with the lowest bit."""
        return self.at + (0 if self.mask is None else _lowest(self.mask) // 8)

    def value(self, buffer: npt.NDArray[np.uint8]) -> int:
        """What is there, little-endian; of a mask its bits alone, moved down."""
        value = int.from_bytes(buffer[self.at : self.at + self.length].tobytes(), "little")
        return self.bits(value)

    def bits(self, value: int) -> int:
        """The bits of the mask, moved down."""
        if self.mask is None:
            return value
        return (value & self.mask) >> _lowest(self.mask)


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


@dataclass(frozen=True, repr=False)
class Watchpoint:
    """One watchpoint: its number, what the user wrote, where that is, READS or CHANGES or both."""

    number: int
    text: str
    spans: tuple[Span, ...]
    access: int = CHANGES
    dram: Place | None = None

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return self.with_verb("")

    def with_verb(self, verb: str) -> str:
        """As str, with what is to be said of it: "set", "hit"."""
        after = f" {verb}" if verb else ""
        return f"watchpoint {self.number}{after}: {self.text}{_SHOWN[self.access]}"


@dataclass(frozen=True)
class Change:
    """What a watchpoint saw: values before and after (little-endian, a field's bits alone).

    `where` is the instruction or Tensix word that did it, for a core `pc` is that of the store or
    load. Of a `read` both values are the same.
    """

    watchpoint: Watchpoint
    before: int
    after: int
    where: Where
    read: bool = False

    def __str__(self) -> str:
        if self.read:
            return f"{self.watchpoint.text}: read, {self.after:#x}"
        return f"{self.watchpoint.text}: {self.before:#x} -> {self.after:#x}"


def _member_span(text: str, name: str, indices: list[int]) -> Span:
    member = _MEMBERS[name]
    for index, size in zip(indices, member.shape, strict=False):
        if index >= size:
            shape = " x ".join(str(n) for n in member.shape)
            raise InputError(f"{text}: {name} is {shape}; there is no {index}")
    if len(indices) > len(member.shape):
        raise InputError(f"{text}: {name} has {len(member.shape)} indices")
    item = np.dtype(member.dtype).itemsize
    at, rest = 0, item * int(np.prod(member.shape))
    length = rest
    for index, size in zip(indices, member.shape, strict=False):
        length //= size
        at += index * length
    return Span(state.OFFSET[name] + at, length)


def _field_spans(name: str) -> tuple[Span, ...]:
    """A field of Config in both banks, or of ThreadConfig in all threads; none for another name."""
    for fields, member in ((config_fields, "cfg"), (thread_fields, "thread_cfg")):
        field = config_fields.fields_of(fields).get(name)
        if field is not None:
            owners, words = _MEMBERS[member].shape
            first = state.OFFSET[member] + 4 * field.word
            mask = field.mask << field.shift
            return tuple(Span(first + 4 * words * owner, 4, mask) for owner in range(owners))
    return ()


def _register(address: int) -> tuple[str, list[int]] | None:
    """The member, and the indices in it, of a register of a stream or NIU; None for others."""
    if memmap.OVERLAY_BASE <= address < memmap.OVERLAY_END:
        number, offset = divmod(address - memmap.OVERLAY_BASE, memmap.STREAM_SIZE)
        return "stream", [number, offset // 4]
    noc, offset = divmod(address - memmap.NOC0_BASE, memmap.NOC_SIZE)
    if noc not in (0, 1):
        return None
    initiator, at = divmod(offset, memmap.NOC_CMD_BUF_OFFSET)
    if memmap.NIU_COUNTERS <= offset < memmap.NIU_COUNTERS_END:
        return "niu_counter", [noc, (offset - memmap.NIU_COUNTERS) // 4]
    if initiator < 4 and at <= memmap.NOC_BRCST_EXCLUDE:
        return "niu_command", [noc, initiator, at // 4]
    return None


def _address_span(text: str, core: str, address: int, length: int) -> Span:
    c = memmap.CORE_NAMES.index(core)
    if address >= 0 and address + length <= memmap.L1_SIZE:
        return Span(address, length)
    if (
        address >= memmap.LOCAL_BASE
        and address + length <= memmap.LOCAL_BASE + memmap.LOCAL_SIZES[c]
    ):
        return Span(
            state.OFFSET["local"] + c * state.LOCAL_SIZE + address - memmap.LOCAL_BASE, length
        )
    window = find(address)
    if window is not None and window.storage in state.DTYPE.fields:  # type: ignore[operator]
        return Span(state.OFFSET[window.storage] + (address - window.low & ~3), 4)
    if found := _register(address & ~3):
        return _member_span(text, *found)
    raise InputError(
        f"{text}: {address:#010x} ({block_name(address)}) cannot be watched by its address",
        hint=_FORMS,
    )


def spans(tile: Tile, core: str, text: str) -> tuple[Span, ...]:
    """Where in the record the place is that a user wrote; InputError for what is no place."""
    name, *rest = text.split(":")
    name = name.strip()
    found = _field_spans(name)
    if found and not rest:
        return found
    if any(_INDEX.fullmatch(part.strip()) is None for part in rest):
        raise InputError(f"{text!r}: indices and lengths are numbers", hint=_FORMS)
    indices = [int(part, 0) for part in rest]
    member = _ALIASES.get(name) or name
    if member in _MEMBERS and member not in ("l1", "local"):
        return (_member_span(text, member, indices),)
    if len(indices) > 1:
        raise InputError(f"{text!r}: an address has one length", hint=_FORMS)
    length = indices[0] if indices else 4
    if not 1 <= length <= state.WATCH_BYTES:
        raise InputError(f"{text!r}: 1 to {state.WATCH_BYTES} bytes can be watched", hint=_FORMS)
    return (_address_span(text, core, _address(tile, name), length),)


def _address(tile: Tile, name: str) -> int:
    if _INDEX.fullmatch(name):
        return int(name, 0)
    try:
        return resolve.resolve(tile, name)
    except UnknownName as unknown:
        known = [*_MEMBERS, *vars(config_fields), *vars(thread_fields)]
        near = did_you_mean(name, known)
        raise UnknownName(str(unknown.message), hint=near or unknown.hint) from None


def dram_place(text: str) -> Place | None:
    """The bytes of DRAM that dram:BANK:ADDRESS[:LENGTH] names; None for another place."""
    name, *rest = (part.strip() for part in text.split(":"))
    if name != _DRAM:
        return None
    if not 2 <= len(rest) <= 3 or any(_INDEX.fullmatch(part) is None for part in rest):
        raise InputError(f"{text!r} is no place in DRAM", hint="as in dram:0:0x40:4")
    bank, at, length = (int(part, 0) for part in (*rest, "4")[:3])
    if at + length > DRAM_SIZE:
        raise InputError(f"{text!r}: a bank ends at {DRAM_SIZE:#x}")
    if not 1 <= length <= DRAM_WATCH_BYTES:
        raise InputError(f"{text!r}: 1 to {DRAM_WATCH_BYTES} bytes can be watched")
    return Place(bank, at, length)


class Watchpoints:
    """The watchpoints of a tile, kept in the record where the compiled loop compares them."""

    def __init__(self, s: state.State, numbers: Iterator[int]) -> None:
        self._s, self._numbers = s, numbers
        self.points: dict[int, Watchpoint] = {}
        self.dram: tuple[DramWatches, int] | None = None  # of the chip, and the tile's number

    def rows(self) -> list[tuple[Watchpoint, Span]]:
        """The places, as the record numbers them."""
        return [(point, span) for point in self.points.values() for span in point.spans]

    def add(self, text: str, found: tuple[Span, ...], access: int = CHANGES) -> Watchpoint:
        """Set one; InputError when it is too large or all places are taken."""
        used = sum(len(point.spans) for point in self.points.values())
        if used + len(found) > state.WATCHPOINTS:
            raise InputError(f"{state.WATCHPOINTS} places can be watched", hint="delete one first")
        if any(span.length > state.WATCH_BYTES for span in found):
            size = max(span.length for span in found)
            raise InputError(
                f"{text} is {size} bytes, at most {state.WATCH_BYTES} can be watched",
                hint="add an index",
            )
        point = Watchpoint(next(self._numbers), text, found, access)
        self.points[point.number] = point
        self._write()
        return point

    def add_dram(self, text: str, place: Place, access: int = CHANGES) -> Watchpoint:
        """Set one on DRAM; InputError for a tile that is alone or when all places are taken."""
        if self.dram is None:
            raise InputError(f"{text}: this tile is alone", hint="a chip has DRAM")
        banks = self.dram[0].banks()
        if place.bank >= banks:
            raise InputError(f"{text}: there are banks 0 to {banks - 1}")
        point = Watchpoint(next(self._numbers), text, (), access, place)
        self.points[point.number] = point
        if not self._write():
            del self.points[point.number]
            raise InputError(
                f"{DRAM_WATCHES} places of DRAM can be watched", hint="delete one first"
            )
        return point

    def delete(self, number: int | None) -> None:
        """Remove one, or all."""
        if number is None:
            self.points.clear()
        else:
            del self.points[number]
        self._write()

    @contextmanager
    def alone(self, text: str, found: tuple[Span, ...]) -> Iterator[Watchpoint]:
        """One watchpoint in place of all others, for as long as the context lasts."""
        kept = self.points
        self.points = {}
        try:
            yield self.add(text, found)
        finally:
            self.points = kept
            self._write()

    def _write(self) -> bool:
        """Put all into the records; False when there are too many on DRAM."""
        s = self._s
        rows = self.rows()
        s.watch_count[0] = len(rows)
        for i, (point, span) in enumerate(rows):
            s.watchpoint[i] = span.at, span.length, point.number, point.access
            mask = b"\xff" * span.length
            if not point.access & CHANGES:
                mask = bytes(span.length)
            elif span.mask is not None:
                mask = span.mask.to_bytes(span.length, "little")
            s.watch_mask[i, : span.length] = np.frombuffer(mask, np.uint8)
        observe.refresh(s)
        if self.dram is None:
            return True
        watches, owner = self.dram
        wanted = {p.number: (p.dram, p.access) for p in self.points.values() if p.dram}
        return watches.replace(owner, wanted)

    def change(self, tile: Tile, agent: int) -> Change:
        """What stopped the run, `agent` as the scheduler says whose turn it was."""
        s = self._s
        row = int(s.watch_hit[0])
        at, length, number, _ = (int(n) for n in s.watchpoint[row])
        before = int.from_bytes(s.watch_old[:length].tobytes(), "little")
        after = int.from_bytes(s.watched[row, :length].tobytes(), "little")
        span = next(
            one for one in self.points[number].spans if (one.at, one.length) == (at, length)
        )
        before, after = span.bits(before), span.bits(after)
        read, where = bool(s.watch_read[1]), self._where(tile, agent, row)
        if read:
            before = after
        return Change(self.points[number], before, after, where, read)

    def _sender(self, tile: Tile, row: int) -> Where | None:
        """The sender of a NoC request that changed a row before the turn began, if one did."""
        s = self._s
        at, length = int(s.watchpoint[row, observe.AT]), int(s.watchpoint[row, 1])
        last = int(s.noc_arrivals[0])
        for k in range(last - 1, max(last - state.NOC_ARRIVED, 0) - 1, -1):
            low, n, t, core, pc, _ = (int(word) for word in s.noc_arrived[k % state.NOC_ARRIVED])
            if low < at + length and at < low + n:
                if core == memmap.HOST:
                    return Where(tile=tile_at(t))
                sender = tile if tile_at(t) == tile.xy else tile.tile_at(tile_at(t))
                return error_text.where_core(sender, core, pc)
        return None

    def _where(self, tile: Tile, agent: int, row: int) -> Where:
        t = int(self._s.status_thread[0])
        if t >= 0:
            return error_text.where_thread(tile, t)
        if agent < state.CORES and self._s.left[agent] == self._s.turn_given[0]:
            sender = self._sender(tile, row)
            if sender is not None:
                return sender
        return error_text.where_instruction(tile, agent, int(self._s.watch_pc[agent]))


_PATTERNS = (0xFF, 0x55)  # bits that are changed
_L1 = {"l1", "l1_word", "member_as", "load"}  # what code that reads L1 names
_WORD = np.uint64  # compared at once
_Bytes = npt.NDArray[np.uint8]


def _names(code: Any, member: str) -> bool:
    from bhemu.jit import keys  # looks into code, which few runs need

    found = keys.names(code)
    return member in found or (member == "l1" and bool(found & _L1))


class ReadWatch:
    """Marks the row of a watchpoint that a word or device access reads, while any asks for that."""

    def __init__(self, tile: Tile, watched: Watchpoints) -> None:
        self._s: state.State = tile.state
        self._backend_of, self._watched = weakref.ref(tile.backend), watched
        self._on = False
        self._room: tuple[_Bytes, _Bytes]  # the record before, and after what is tried

    def follow(self) -> None:
        """The watchpoints have changed."""
        backend = self._backend
        wanted = any(point.access & READS for point, _ in self._watched.rows())
        if wanted == self._on:
            return
        self._on = wanted
        if wanted:
            self._room = np.empty_like(self._s.buffer), np.empty_like(self._s.buffer)
            backend.table.observe(self._before, self._after)
            backend.observe(self._access)
        else:
            backend.table.forget(self._before)
            backend.observe(None)

    def _rows(self, code: Any) -> Iterator[tuple[int, Span]]:
        """The watched rows that `code` can read."""
        if not self._s.watch_count[0]:
            return
        for row, (point, span) in enumerate(self._watched.rows()):
            # The member of the record that holds it
            begun = (m.name for m in state.MEMBERS if state.OFFSET[m.name] <= span.at)
            held = max(begun, key=lambda name: state.OFFSET[name])
            if point.access & READS and _names(code, held):
                yield row, span

    def _before(self, t: int, word: int) -> int:
        """1 + the row that a word reads, 0 = none."""
        cls = instructions().get(int(self._s.route[0]) or word >> 24)
        if cls is None or cls.execute is None:
            return 0
        rows = list(self._rows(cls.execute))
        return self._read(rows, lambda: self._backend.table.unobserved(t, word)) if rows else 0

    @property
    def _backend(self) -> Backend:
        backend = self._backend_of()
        assert backend is not None
        return backend

    def _after(self, row: int, status: int) -> None:
        if status == DONE and row:
            self._s.watch_read[0] = row

    def _access(self, core: int, window: Window, store: bool, access: Callable[[], int]) -> int:
        rows = [] if core == memmap.HOST else list(self._rows(entries.interpreted(window, store)))
        row = self._read(rows, access) if rows else 0
        status = access()
        self._after(row, status)
        return status

    def _read(self, rows: list[tuple[int, Span]], run: Callable[[], int]) -> int:
        """1 + the first of the rows on which what `run` does depends; nothing of it remains."""
        buffer, (kept, after) = self._s.buffer, self._room
        kept[:] = buffer
        traced = int(self._s.trace[0])
        self._s.trace[0] = 0
        status, after[:] = run(), buffer
        found = next((row + 1 for row, span in rows if self._depends(span, run, status)), 0)
        buffer[:] = kept
        self._s.trace[0] = traced
        return found

    def _depends(self, span: Span, run: Callable[[], int], done: int) -> bool:
        kept, after = self._room
        buffer, here = self._s.buffer, slice(span.at, span.at + span.length)
        whole = (1 << 8 * span.length) - 1
        mask = whole if span.mask is None else span.mask
        for pattern in _PATTERNS:
            change = mask & int.from_bytes(bytes([pattern]) * span.length)
            buffer[:] = kept
            self._s.trace[0] = 0
            buffer[here] ^= np.frombuffer(change.to_bytes(span.length, "little"), np.uint8)
            changed = buffer[here].copy()
            status = run()
            kept_bits = ~(buffer[here] ^ changed | after[here] ^ kept[here])
            if (kept_bits | ~(buffer[here] ^ after[here]) == 0xFF).all():
                buffer[here] = after[here]  # bits that were left alone, or written as such
            if status != done or (buffer.view(_WORD) != after.view(_WORD)).any():
                return True
        return False
