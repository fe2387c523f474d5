"""The tiles of a chip, observed together: requests arrive at the end of each round."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu import memmap as mm
from bhemu.devices import niu, niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.jit.record import plain
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.noc.delivery import receives
from bhemu.noc.grid import TILES, XY
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import TTINSN
from bhemu.tensix import insn
from bhemu.why import order as r
from bhemu.why.check import Name
from bhemu.why.order import cores, polls
from bhemu.why.order.observe import Observer
from bhemu.why.steps import Instruction, Step, made_step

# Requests that observed tiles have sent.

_WORD = 4


@dataclass(eq=False)
class Sent:
    """A request of tile `tile`, sent by core `core`; row: as niu_request.py defines it.

    event: the row of the sending (record.py). known: what came before it, as other tiles read it.
    value: the first four bytes. reached: the observed tiles at which it has arrived. kind: READ,
    ATOMIC or WRITE. own, remote: the ranges of the sender's L1 and at the other end. bank: of DRAM
    at the other end. takes_data: it reads its source in L1. is_flag: it changes a single word, as
    flags and counts are changed. is_register: it accesses a device of another tile.
    """

    tile: int
    event: list[int]
    row: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]
    value: int
    reached: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.core, self.epoch = self.event[r.CORE], self.event[r.OWNER_CLOCK]
        self.step = made_step(*self.event[r.PC : r.PC + 6])
        row = self.row.tolist()
        control, endpoint, low, at = (row[k] for k in _DECIDING)
        length, size = row[request.LENGTH], int(plain(request.size)(row))
        self.kind, self.transaction = control & 3, int(plain(request.transaction)(row))
        self.reads, self.is_multicast = self.kind == request.READ, bool(control & request.MULTICAST)
        self.takes_data = bool(plain(request.takes_data)(control))
        opcode = plain(request.atomic_opcode)(length)
        self.increments = self.kind == request.ATOMIC and opcode == request.INCREMENT
        self.own, self.remote = (low, low + size), (at, at + size)
        if plain(request.has_enables)(control):
            first = max((length & -length).bit_length() - 1, 0)
            self.remote = (at & ~15) + first, (at & ~15) + length.bit_length()
        goes_there = endpoint & 15 == noc_map.DRAM and not self.is_multicast
        self.bank = endpoint >> 4 & 0xFF if goes_there else None
        self.is_flag = not self.reads and self.remote[1] - self.remote[0] <= _WORD
        self.is_register = bool(plain(niu_check.is_register)(row))


Known = npt.NDArray[np.int64]


class Landed(NamedTuple):
    """A request that has accessed DRAM: its agent, the agent's clock, and the last write before."""

    sent: Sent
    column: int
    clock: int
    before: Landed | None


_GRAIN, _READERS = 64, 4  # bytes of DRAM that are looked at together, their readers
_DECIDING = (request.CONTROL, request.ENDPOINT, request.LOCAL, request.REMOTE)
_EXPANDED = ("MOP", "REPLAY")  # one pushed word gives many


class CodeThen:
    """Copies of L1 of a session's tiles, from the end of the round in which each pair was found."""

    def __init__(
        self,
        observers: Sequence[Observer],
        name: Name,
        libraries: dict[tuple[XY, str], frozenset[str]],
    ) -> None:
        """libraries: gets the header files that kernels call, by tile and core."""
        self._observers, self._name, self._libraries = observers, name, libraries
        self._counts: dict[Any, int] = {}
        self._kept: dict[Any, bytes] = {}

    def look(self) -> None:
        """A round is over: keep L1 of the tiles of new pairs."""
        now: dict[int, bytes] = {}
        for n, one in enumerate(self._observers):
            count = int(one.record.pairs[0])
            for number in range(self._counts.get(n, 0), count):
                row = one.record.pair[number]
                for home in {int(row[r.HOME]), int(row[r.EVENT + r.HOME])}:
                    if home not in now:
                        now[home] = zlib.compress(self._observers[home].tile.state.l1.tobytes(), 1)
                    self._kept[n, number, home] = now[home]
            self._counts[n] = count

    def stand(self, pair: tuple[int, int], steps: Iterable[tuple[int, Step]]) -> list[str]:
        """Restore the code that made a pair, and name the places of its steps (tile, step).

        Returns a line for each ELF that holds one of them.
        """
        by_tile: dict[int, list[Step]] = {}
        told: list[str] = []
        for home, step in steps:
            by_tile.setdefault(home, []).append(step)
        for home, of_tile in by_tile.items():
            tile = self._observers[home].tile
            tile.state.l1[:] = np.frombuffer(zlib.decompress(self._kept[*pair, home]), np.uint8)
            gone = {step.core for step in of_tile if not _stands(tile, step)}
            stay = [step for step in of_tile if step.core not in gone]
            places = {(step.core, pc) for step in stay for pc in _pcs(step)}
            self._name(tile, places)
            for c in sorted({c for c, _ in places}):
                (x, y), core = tile.xy, tile.core[mm.CORE_NAMES[c]]
                for image in core.images:
                    known = self._libraries.get((tile.xy, core.name), frozenset())
                    self._libraries[tile.xy, core.name] = known | image.library
                    told.append(f"tile ({x},{y}) {core.name} runs {image.path}")
        return told


def _pcs(step: Step) -> set[int]:
    return {step.pc} if isinstance(step, Instruction) else {step.pc, step.pushed}


def _stands(tile: Tile, step: Step) -> bool:
    """Whether L1 holds the instruction of a step, as far as its word tells."""
    if not 0 <= (at := max(_pcs(step))) <= mm.L1_SIZE - 4:
        return False
    there = tile.read32(at)
    if isinstance(step, Instruction):
        return step.word in (0, there)
    cls: Any = decode(there)
    if cls is not TTINSN:
        return cls is not None and issubclass(cls, Store)
    pushed = TTINSN.pushed(there)
    opcode = insn.decode(pushed)
    return pushed == step.word or (opcode is not None and opcode.name in _EXPANDED)


_VIRTUAL = 7 << 13 | request.STATIC_CHANNEL
_LEFT_OUT = [at - mm.NIU_CFG_0 >> 2 for at in (mm.ROUTER_CFG_1, mm.ROUTER_CFG_3)]  # columns, rows


class Channels:
    """The agents that let requests arrive.

    Requests of one kind from one tile to one place, on one NoC and static virtual channel, form a
    channel and arrive in order. A linked request comes before the next one of any kind. A read
    comes after the writes of its channel. An increment does not: no source says that it waits.
    Source: NoC Ordering, ISA.
    """

    def __init__(self, tiles: int) -> None:
        self._first = r.PLAIN + (r.OWNERS + r.SOURCES) * tiles
        self._numbers: dict[Any, int] = {}
        self._last: dict[Any, Known] = {}
        self._linked: dict[Any, Known] = {}
        self._counts = np.zeros(r.VECTOR, np.int64)
        self._next = 0

    def arrival(self, tile: int, row: Any, known: Known) -> tuple[int, Known]:
        """A request arrives: its agent, and what came before it with its own clock."""
        control, kind = int(row[request.CONTROL]), int(row[request.CONTROL]) & 3
        way = tile, int(row[request.NOC]), int(row[request.GIVEN])
        static = bool(control & request.STATIC_CHANNEL)
        key = (*way, control & (_VIRTUAL | request.MULTICAST), kind)
        earlier = [key] if static else []
        earlier += [(*key[:-1], request.WRITE)] if static and kind == request.READ else []
        before = [known, *(self._last[one] for one in earlier if one in self._last)]
        before += [self._linked.pop(way)] if way in self._linked else []
        channel = key if static else (*key, self._next)
        if channel not in self._numbers:  # too many share columns, which only hides findings
            self._numbers[channel] = self._first + self._next % r.CHANNELS
            self._next += 1
        column, clock = self._numbers[channel], np.maximum.reduce(before)
        self._counts[column] += 1
        clock[column] = self._counts[column]
        self._last[key] = clock
        if control & request.LINKED:
            self._linked[way] = clock
        return column, clock


class Tiles:
    """The observers of a program's tiles; each gets the requests that the others send.

    few: not all tiles are observed. code: of a session, keeps the code of pairs. in_dram: pairs of
    requests of two tiles that nothing orders, as they happened, not of a session.
    """

    def __init__(
        self,
        chip: Chip,
        observers: Sequence[Observer],
        *,
        few: bool = False,
        code: CodeThen | None = None,
    ) -> None:
        self._chip, self.observers, self.few, self.code = chip, observers, few, code
        self.sent: list[list[Sent]] = [[] for _ in observers]
        self.flags: list[dict[int, dict[int, Sent]]] = [{} for _ in observers]  # word: number: by
        self.in_dram: dict[tuple[int, ...], tuple[Landed, Landed]] = {}
        self._dram: dict[tuple[int, int], tuple[Landed | None, tuple[Landed, ...]]] = {}
        self._under_way: list[list[Sent]] = [[] for _ in observers]
        self._numbers = [chip.number_of(one.tile.xy) for one in observers]
        self._places = {number: n for n, number in enumerate(self._numbers)}
        self._channels = Channels(len(observers))
        for n, one in enumerate(observers):
            o = one.record
            o.tiles[0], o.number[0] = len(observers), n
            o.mine[0] = r.PLAIN + r.OWNERS * n
            o.columns[0] = (r.OWNERS + r.SOURCES) * len(observers) + r.CHANNELS

    def round_is_over(self, *, last: bool = False) -> None:
        """Take the requests that were sent, and let those arrive that have left the tiles; of the
        last round all.

        If one tile is no longer followed, the others miss what it orders, so all are given up.
        """
        if any(one.full for one in self.observers):
            for one in self.observers:
                one.record.full[0] = 1
            return
        for n, o in enumerate(one.record for one in self.observers):
            for i in range(int(o.sents[0])):
                row, known, value = o.sent[i].copy(), o.sent_known[i].copy(), int(o.sent[i, -1])
                sent = Sent(n, row[: r.EVENT].tolist(), row[r.S_ROW : r.S_VALUE], known, value)
                self.sent[n].append(sent)
                self._under_way[n].append(sent)
            o.sents[0] = 0
        for n, one in enumerate(self.observers):
            if under_way := self._under_way[n]:
                s = one.tile.state
                rows = s.noc_request[: int(s.noc_requests[0]), request.SEQUENCE]
                waiting = set(rows.tolist())
                self._under_way[n] = []
                for sent in under_way:
                    if int(sent.row[request.SEQUENCE]) in waiting and not last:
                        self._under_way[n].append(sent)
                    else:
                        self._arrive(sent)
        if self.code is not None:
            self.code.look()

    def unanswered(self, n: int) -> list[Sent]:
        """The last requests of tile `n`, by core, NoC and kind, whose answers nothing looks for."""
        last: dict[Any, Sent] = {}
        for one in self.sent[n]:
            if one.reads or int(one.row[request.CONTROL]) & request.ANSWERED:
                last[one.core, int(one.row[request.NOC]), one.kind] = one
        seen = self.observers[n].record.counter_seen
        found = []
        for (core, noc, kind), one in last.items():
            counters = dict(polls.ANSWERS)[kind], niu.OUTSTANDING + one.transaction
            if all(int(seen[core, noc, at]) <= one.epoch for at in counters):
                found.append(one)
        return found

    def _arrive(self, sent: Sent) -> None:
        column, clock = self._channels.arrival(sent.tile, sent.row, sent.known)
        sent.reached = self._receivers(sent)
        if sent.bank is not None and self.code is None:
            self._lands(sent, sent.bank, column, clock)
        does = cores.REGISTER if sent.is_register else cores.ACCESSES
        if sent.is_flag and not sent.is_register:
            does = cores.ADDS if sent.increments else cores.SETS
        for n in sent.reached:
            if not sent.reads:
                received = self.observers[n].record.value_known[r.HERE]
                np.maximum(received, clock[r.PLAIN :], out=received)
            if not (sent.reads and sent.is_register):
                self._access(n, sent, column, clock, does, there=True)
        if sent.reads:
            self._access(sent.tile, sent, column, clock, cores.ACCESSES, there=False)
        held = self.observers[sent.tile].record.answer[int(sent.row[request.NOC])]
        for kind in (sent.kind, polls.TAGS + sent.transaction):
            np.maximum(held[kind], clock[r.PLAIN :], out=held[kind])

    def _lands(self, sent: Sent, bank: int, column: int, clock: Known) -> None:
        """A request has accessed a bank of DRAM; what comes after a read comes after the write that
        it has read: that may be of a flag."""
        for grain in range(sent.remote[0] // _GRAIN, -(-sent.remote[1] // _GRAIN)):
            writer, readers = self._dram.get((bank, grain), (None, ()))
            one = Landed(sent, column, int(clock[column]), writer)
            for old in (writer, *(() if sent.reads else readers)):
                if old is None or old.sent.tile == sent.tile or clock[old.column] >= old.clock:
                    continue
                (low, high), (first, end) = old.sent.remote, sent.remote
                if low < end and first < high:
                    key = (old.sent.core, old.sent.step.pc, sent.core, sent.step.pc)
                    self.in_dram.setdefault(key, (old, one))
            if sent.reads and writer is not None and clock[writer.column] < writer.clock:
                np.maximum(clock, writer.sent.known, out=clock)
                clock[writer.column] = writer.clock
            held = (writer, (*readers, one)[-_READERS:]) if sent.reads else (one, ())
            self._dram[bank, grain] = held

    def _receivers(self, sent: Sent) -> list[int]:
        """The observed tiles that a request goes to."""
        if sent.is_multicast:
            state, noc, found = self._chip.network.state, int(sent.row[request.NOC]), []
            unmade = SimpleNamespace(column=state.column, row=state.row, tile=np.zeros(TILES))
            for u, n in sorted(self._places.items()):
                columns, rows = self.observers[n].tile.state.niu_config[noc][_LEFT_OUT].tolist()
                left_out = columns >> int(state.column[u]) & 1 or rows >> int(state.row[u]) & 1
                there = plain(receives)(unmade, self._numbers[sent.tile], u, sent.row)
                found += [n] if there and not left_out else []
            return found
        kind, u = int(sent.row[request.ENDPOINT]) & 15, int(sent.row[request.ENDPOINT]) >> 4 & 0xFF
        return [self._places[u]] if kind == noc_map.TENSIX and u in self._places else []

    def _access(
        self, n: int, sent: Sent, column: int, clock: Known, does: int, *, there: bool
    ) -> None:
        o, area = self.observers[n].record, sent.remote if there else sent.own
        o.arrival[:] = (*sent.event, *area, sent.value)
        agent = (r.AGENT, column), (r.CLOCK, clock[column])
        write = r.ADDS if does == cores.ADDS else sent.reads != there
        for at, value in (*agent, (r.WRITE, write), (r.THERE, there)):
            o.arrival[at] = value
        o.arrived[:] = clock
        self.observers[n].arrives(does)
        if does in (cores.SETS, cores.ADDS):
            word = area[0] >> 2
            slot = int(o.slot[word]) - 1
            if slot >= 0:
                self.flags[n].setdefault(word, {})[int(o.values[slot]) - 1] = sent
