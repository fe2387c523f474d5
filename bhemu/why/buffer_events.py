"""What a tile does to its circular buffers, in order: counts, requests, UNPACR and PACR."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bhemu import memmap as mm
from bhemu.devices.bus.naming import FIRST_BUFFER_STREAMS
from bhemu.machine.operands import Pack, transfer_of
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.tensix.insn import decode
from bhemu.tensix.mmio import REMOTE_DEST_BUF_SIZE, REMOTE_DEST_BUF_START
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.tensix.rules import DONE
from bhemu.why.network.requests import Requests
from bhemu.why.walk import MOST

_STREAM = 0x1000  # bytes of the registers of one
COUNT_REGISTERS = {REMOTE_DEST_BUF_START: "acked", REMOTE_DEST_BUF_SIZE: "received"}
COUNTS = tuple(COUNT_REGISTERS.values())  # kinds of events that change a count


@dataclass(frozen=True)
class Event:
    """One access to a buffer: by an instruction of `core` at `pc`, in thread `thread` if any."""

    core: int
    thread: int | None
    pc: int
    kind: str  # "received", "acked", "writes", "reads"
    low: int  # or the new count
    high: int = 0  # of a count the stream
    clock: int | None = None

    @property
    def who(self) -> str:
        """For example "trisc2"."""
        return mm.CORE_NAMES[self.core]


class Recorder:
    """Notes what a tile's words touch, and its log of stores, while it runs."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self._first = int(tile.state.log_write[0])
        self._words: dict[int, Event] = {}  # by number in the log
        self._left = MOST
        tile.log = []
        tile.state.trace[0] = WORDS_AND_STORES
        tile.backend.table.observe(self._before, self._after)

    def _before(self, t: int, word: int) -> tuple[int, Event | None]:
        s = self._tile.state
        self._left -= 1
        if not self._left:
            s.limit[0] = now(s)  # the run ends: what it does for ever is not looked at for ever
        return int(s.log_write[0]) - self._first, self._event(s, t, word)

    def _event(self, s: Any, t: int, word: int) -> Event | None:
        cls = decode(word)
        core, pc = int(s.gate_core[t]), int(s.gate_pc[t])
        if cls is not None and cls.name == "STOREREG":
            values = cls.operands(word)
            address = mm.LOCAL_BASE + 4 * values["reg_addr"]
            value = int(s.gpr[t, values["tdma_data_reg_index"]])
            return Event(core, t, pc, "store", address, value)
        does = transfer_of(s, t, word)
        if does is None or cls is None or cls.operands(word).get("zero_write2"):
            return None
        kind = "writes" if isinstance(does, Pack) else "reads"
        return Event(core, t, pc, kind, does.first, does.end)

    def _after(self, seen: tuple[int, Event | None], status: int) -> None:
        number, event = seen
        if status == DONE and event is not None:
            self._words[number] = event

    def events(self) -> Iterator[Event]:
        """In the order in which they took place."""
        self._tile.drain_log()
        requests = Requests()
        for number, entry in enumerate(self._tile.log):
            for event in self._of(number, entry, requests):
                yield replace(event, clock=entry[4])

    def _of(self, number: int, entry: Entry, requests: Requests) -> Iterator[Event]:
        """What one entry of the log does."""
        if number in self._words:
            event = self._words[number]
            if event.kind == "store":
                yield from _counter(event.core, event.thread, event.pc, event.low, event.high)
            else:
                yield event
        elif entry[0] >= FIRST_CORE:
            core, value, pc, address = entry[0] - FIRST_CORE, *entry[1:4]
            yield from _counter(core, None, pc, address, value)
            for one in requests.stored(entry):
                kind = "writes" if one.reads else "reads"
                yield Event(one.core, None, one.pc, kind, one.low, one.high)


def _counter(core: int, thread: int | None, pc: int, address: int, value: int) -> Iterator[Event]:
    """A store to a counter of a buffer."""
    stream, offset = divmod(address - mm.OVERLAY_BASE, _STREAM)
    kind = COUNT_REGISTERS.get(offset >> 2)
    if mm.OVERLAY_BASE <= address < mm.OVERLAY_END and kind and not offset & 3:
        yield Event(core, thread, pc, kind, value & 0xFFFF, stream)


def first_stream(events: Sequence[Event], buffers: Collection[int]) -> int | None:
    """The stream that counts buffer 0 of a build, by what is counted; None: it cannot be told."""
    counted = {one.high for one in events if one.kind in COUNTS and one.low}
    fits = {first: sum(one - first in buffers for one in counted) for first in FIRST_BUFFER_STREAMS}
    best = [first for first, number in fits.items() if number == max(fits.values())]
    return best[0] if len(best) == 1 or not counted else None
