"""Who reads a watched place beside the loads of cores: Tensix words and device accesses, tried out.

A word or access reads a place if it would have done anything else with other bits there. It is
tried on the record, which is put back; code that names no member of a place is not tried.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus import entries
from bhemu.devices.bus.window import Window
from bhemu.jit import graph
from bhemu.machine.watching import READS, Span, Watchpoints
from bhemu.memmap import HOST
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.state import MEMBERS, OFFSET, State
from bhemu.tensix.status import DONE

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile
    from bhemu.tensix.compile import Table


_PATTERNS = (0xFF, 0x55)  # bits that are changed
_L1 = {"l1", "l1_word", "member_as", "load"}  # what code that reads L1 names
_WORD = np.uint64  # compared at once
_Bytes = npt.NDArray[np.uint8]


def _member(span: Span) -> str:
    """The member of the record that holds a span."""
    return max((m.name for m in MEMBERS if OFFSET[m.name] <= span.at), key=OFFSET.__getitem__)


def _names(code: Any, member: str) -> bool:
    found = graph.names(code)
    return member in found or (member == "l1" and bool(found & _L1))


class Reading:
    """Marks the row of a watchpoint that a word or device access reads, while any asks for that."""

    def __init__(self, tile: Tile, watched: Watchpoints) -> None:
        self._s: State = tile.state
        self._backend, self._watched = weakref.ref(tile.backend), watched
        self._on = False
        self._room: tuple[_Bytes, _Bytes]  # the record before, and after what is tried

    def follow(self) -> None:
        """The watchpoints have changed."""
        backend = self._backend()
        assert backend is not None
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
            if point.access & READS and _names(code, _member(span)):
                yield row, span

    def _before(self, t: int, word: int) -> int:
        """1 + the row that a word reads, 0 = none."""
        cls = REGISTRY.get(int(self._s.route[0]) or word >> 24)
        if cls is None or cls.execute is None:
            return 0
        rows = list(self._rows(cls.execute))
        return self._read(rows, lambda: self._table.unobserved(t, word)) if rows else 0

    @property
    def _table(self) -> Table:
        backend = self._backend()
        assert backend is not None
        return backend.table

    def _after(self, row: int, status: int) -> None:
        if status == DONE and row:
            self._s.watch_read[0] = row

    def _access(self, core: int, window: Window, store: bool, access: Callable[[], int]) -> int:
        rows = [] if core == HOST else list(self._rows(entries.interpreted(window, store)))
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
            change = (mask & int.from_bytes(bytes([pattern]) * span.length)).to_bytes(
                span.length, "little"
            )
            buffer[:] = kept
            self._s.trace[0] = 0
            buffer[here] ^= np.frombuffer(change, np.uint8)
            changed = buffer[here].copy()
            status = run()
            kept_bits = ~(buffer[here] ^ changed | after[here] ^ kept[here])
            if (kept_bits | ~(buffer[here] ^ after[here]) == 0xFF).all():
                buffer[here] = after[here]  # bits that were left alone, or written as such
            if status != done or (buffer.view(_WORD) != after.view(_WORD)).any():
                return True
        return False
