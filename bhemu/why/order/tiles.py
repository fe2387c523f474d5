"""The tiles of a chip, observed together: requests arrive at the end of each round."""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import memmap as mm
from bhemu.devices import niu, niu_check, noc_map
from bhemu.devices import niu_request as request
from bhemu.jit.record import plain
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc.grid import TILES, XY
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.ttinsn import TTINSN
from bhemu.tensix import insn
from bhemu.tensix.state import NOC_FIELDS
from bhemu.why.check import Name
from bhemu.why.order import cores
from bhemu.why.order import record as r
from bhemu.why.order.observe import Observer
from bhemu.why.steps import Instruction, Step

# Requests that observed tiles have sent, and the tiles that they reach.

_WORD = 4


@dataclass(eq=False)
class Sent:
    """Request `number` of tile `tile`, sent by core `core`; row: as niu_request.py defines it.

    epoch: the core's clock then. known: what came before it, by columns of all tiles (record.py).
    value: the first four bytes. reached: the observed tiles at which it has arrived.
    """

    tile: int
    number: int
    core: int
    epoch: int
    step: Instruction
    row: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]
    value: int
    arrived: bool = False
    reached: list[int] = field(default_factory=list)

    @property
    def kind(self) -> int:
        """READ, ATOMIC or WRITE."""
        return int(self.row[request.CONTROL]) & 3

    @property
    def reads(self) -> bool:
        """Whether it is a read."""
        return self.kind == request.READ

    @property
    def transaction(self) -> int:
        """Its transaction id."""
        return int(plain(request.transaction)(self.row))

    @property
    def increments(self) -> bool:
        """Whether it adds to a word."""
        opcode = plain(request.atomic_opcode)(int(self.row[request.LENGTH]))
        return self.kind == request.ATOMIC and opcode == request.INCREMENT

    @property
    def own(self) -> tuple[int, int]:
        """Its range of the sender's L1: first byte, byte after the last."""
        low = int(self.row[request.LOCAL])
        return low, low + int(plain(request.size)(self.row))

    @property
    def remote(self) -> tuple[int, int]:
        """Its range at the other end."""
        low = int(self.row[request.REMOTE])
        if plain(request.has_enables)(int(self.row[request.CONTROL])):
            mask, line = int(self.row[request.LENGTH]), low & ~15
            first = (mask & -mask).bit_length() - 1
            return line + max(first, 0), line + mask.bit_length()
        return low, low + int(plain(request.size)(self.row))

    @property
    def bank(self) -> int | None:
        """The DRAM bank at the other end, None elsewhere."""
        endpoint = int(self.row[request.ENDPOINT])
        goes_there = endpoint & 15 == noc_map.DRAM and not self.is_multicast
        return endpoint >> 4 & 0xFF if goes_there else None

    @property
    def is_multicast(self) -> bool:
        """Whether it goes to all tiles of a rectangle."""
        return bool(int(self.row[request.CONTROL]) & request.MULTICAST)

    @property
    def takes_data(self) -> bool:
        """Whether it reads its source in L1."""
        return bool(plain(request.takes_data)(int(self.row[request.CONTROL])))

    @property
    def is_flag(self) -> bool:
        """Whether it changes a single word, as flags and counts are changed."""
        return not self.reads and self.remote[1] - self.remote[0] <= _WORD

    @property
    def is_register(self) -> bool:
        """Whether it accesses a device of another tile."""
        return bool(plain(niu_check.is_register)(self.row))


def targets(chip: Any, masks: Any, sent: Sent, number: int) -> list[int]:
    """The numbers on the chip of the tiles that a request of tile `number` reaches.

    masks: by number the columns and rows that a tile leaves out, of each NoC.
    """
    row, state = sent.row, chip.network.state
    if not sent.is_multicast:
        endpoint = int(row[request.ENDPOINT])
        is_tile = endpoint & 15 == noc_map.TENSIX
        return [endpoint >> 4 & 0xFF] if is_tile else []
    found = []
    for u in range(TILES):
        x, y = int(state.column[u]), int(state.row[u])
        if x < 0 or (u == number and not int(row[request.CONTROL]) & request.SELF):
            continue
        if _within(row, x, y) and not (u in masks and _left_out(masks[u], row, x, y)):
            found.append(u)
    return found


def _within(row: Any, x: int, y: int) -> bool:
    box, noc = int(row[request.RECTANGLE]), int(row[request.NOC])
    if noc == 1:
        x, y = noc_map.WIDTH - 1 - x, noc_map.HEIGHT - 1 - y
    return _spans(box & 63, box >> 12 & 63, x) and _spans(box >> 6 & 63, box >> 18 & 63, y)


def _spans(first: int, last: int, at: int) -> bool:
    return first <= at <= last if first <= last else at <= last or at >= first


def _left_out(masks: Any, row: Any, x: int, y: int) -> bool:
    columns, rows = masks[int(row[request.NOC])]
    return bool(int(columns) >> x & 1 or int(rows) >> y & 1)


NEAR, FAR = "pair", "far"  # accesses of one tile, of two tiles
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
            for kind, count in (
                (NEAR, int(one.record.pairs[0])),
                (FAR, int(one.record.far_pairs[0])),
            ):
                for number in range(self._counts.get((n, kind), 0), count):
                    for home in _homes(one, number) | {n} if kind == FAR else {n}:
                        if home not in now:
                            now[home] = zlib.compress(
                                self._observers[home].tile.state.l1.tobytes(), 1
                            )
                        self._kept[n, kind, number, home] = now[home]
                self._counts[n, kind] = count

    def stand(self, pair: tuple[int, str, int], steps: Iterable[tuple[int, Step]]) -> list[str]:
        """Restore the code that made a pair, and name the places of its steps (tile, step).

        Returns a line for each ELF that holds one of them.
        """
        by_tile: dict[int, list[Step]] = {}
        told: list[str] = []
        for home, step in steps:
            by_tile.setdefault(home, []).append(step)
        for home, of_tile in by_tile.items():
            tile = self._observers[home].tile
            l1 = np.frombuffer(zlib.decompress(self._kept[*pair, home]), np.uint8)
            tile.state.l1[:] = l1
            gone = {step.core for step in of_tile if not _stands(tile, step)}
            places = {
                (step.core, pc) for step in of_tile if step.core not in gone for pc in _pcs(step)
            }
            self._name(tile, places)
            for c in sorted({c for c, _ in places}):
                (x, y), core = tile.xy, tile.core[CORE_NAMES[c]]
                for image in core.images:
                    known = self._libraries.get((tile.xy, core.name), frozenset())
                    self._libraries[tile.xy, core.name] = known | image.library
                    told.append(f"tile ({x},{y}) {core.name} runs {image.path}")
        return told


def _homes(one: Observer, number: int) -> set[int]:
    """The tiles that made the accesses of a pair of two tiles."""
    row = one.record.far_pair[number]
    events = [int(row[k]) for k in (r.FP_FIRST, r.FP_SECOND)]
    return {int(one.record.far_event[at, r.F_HOME]) for at in events if at}


def _pcs(step: Step) -> set[int]:
    return {step.pc} if isinstance(step, Instruction) else {step.pc, step.pushed}


def _stands(tile: Tile, step: Step) -> bool:
    """Whether L1 holds the instruction of a step, as far as its word tells."""
    if not 0 <= (at := max(_pcs(step))) <= L1_SIZE - 4:
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
_COLUMNS, _ROWS = (at - mm.NIU_CFG_0 >> 2 for at in (mm.ROUTER_CFG_1, mm.ROUTER_CFG_3))
_TAGS = 3  # of `answer`
_COUNTERS = {
    request.ATOMIC: niu.ATOMIC_ANSWERS,
    request.WRITE: niu.ACKS,
    request.READ: niu.READ_ANSWERS,
}
Known = npt.NDArray[np.int64]


class Channels:
    """The agents that let requests arrive.

    Requests of one kind from one tile to one place, on one NoC and static virtual channel, form a
    channel and arrive in order. A linked request comes before the next one of any kind. A read
    comes after the writes of its channel. An increment does not: no source says that it waits.
    Source: NoC Ordering, ISA.
    """

    def __init__(self, tiles: int) -> None:
        self._first = (r.SHARED + r.SOURCES) * tiles
        self._numbers: dict[Any, int] = {}
        self._last: dict[Any, Known] = {}
        self._linked: dict[Any, Known] = {}
        self._counts = np.zeros(r.FAR, np.int64)
        self._next = 0

    def arrival(self, tile: int, row: Any, known: Known) -> tuple[int, Known]:
        """A request arrives: its agent's column, and what came before it with its own clock."""
        control, kind = int(row[request.CONTROL]), int(row[request.CONTROL]) & 3
        way = tile, int(row[request.NOC]), int(row[request.GIVEN])
        static = bool(control & request.STATIC_CHANNEL)
        key = (*way, control & (_VIRTUAL | request.MULTICAST), kind)
        before = [known]
        if static:
            before += self._of(key)
            if kind == request.READ:
                before += self._of((*key[:-1], request.WRITE))
        before += [self._linked[way]] if way in self._linked else []
        column = self._column(key if static else (*key, self._next))
        clock: Known = np.maximum.reduce(before)
        self._counts[column] += 1
        clock[column] = self._counts[column]
        self._last[key] = clock
        self._linked.pop(way, None)
        if control & request.LINKED:
            self._linked[way] = clock
        return column, clock

    def _of(self, key: Any) -> list[Known]:
        return [self._last[key]] if key in self._last else []

    def _column(self, key: Any) -> int:
        """The column of a channel; too many channels share columns, which only hides findings."""
        if key not in self._numbers:
            self._numbers[key] = self._first + self._next % r.CHANNELS
            self._next += 1
        return self._numbers[key]


class Tiles:
    """The observers of a program's tiles; each gets the requests that the others send.

    few: not all tiles are observed. code: of a session, keeps the code of pairs.
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
        self._under_way: list[list[Sent]] = [[] for _ in observers]
        self._numbers = [chip.number_of(one.tile.xy) for one in observers]
        self._places = {number: n for n, number in enumerate(self._numbers)}
        self._channels = Channels(len(observers))
        for n, one in enumerate(observers):
            o = one.record
            o.tiles[0], o.number[0], o.far_events[0] = len(observers), n, 1
            o.far[0] = (r.SHARED + r.SOURCES) * len(observers) + r.CHANNELS

    def round_is_over(self) -> None:
        """Take the requests that were sent, and let those arrive that have left the tiles.

        If one tile is no longer followed, the others miss what it orders, so all are given up.
        """
        if any(one.full for one in self.observers):
            for one in self.observers:
                one.record.full[0] = 1
            return
        for n, one in enumerate(self.observers):
            self._leave(n, one)
        for n, one in enumerate(self.observers):
            if self._under_way[n]:
                s = one.tile.state
                rows = s.noc_request[: int(s.noc_requests[0]), request.SEQUENCE]
                waiting = set(rows.tolist())
                for sent in self._under_way[n]:
                    if int(sent.row[request.SEQUENCE]) not in waiting:
                        self._arrive(sent)
                self._under_way[n] = [sent for sent in self._under_way[n] if not sent.arrived]
        if self.code is not None:
            self.code.look()

    def stand(self, pair: tuple[int, str, int], steps: Iterable[tuple[int, Step]]) -> list[str]:
        """See CodeThen.stand; nothing for a program, whose code never changes."""
        return [] if self.code is None else self.code.stand(pair, steps)

    def unanswered(self, n: int) -> list[Sent]:
        """The last requests of tile `n`, by core, NoC and kind, whose answers nothing looks for."""
        last: dict[Any, Sent] = {}
        for one in self.sent[n]:
            if one.reads or int(one.row[request.CONTROL]) & request.ANSWERED:
                last[one.core, int(one.row[request.NOC]), one.kind] = one
        seen = self.observers[n].record.counter_seen
        found = []
        for (core, noc, kind), one in last.items():
            counters = _COUNTERS[kind], niu.OUTSTANDING + one.transaction
            if all(int(seen[core, noc, at]) <= one.epoch for at in counters):
                found.append(one)
        return found

    def _leave(self, n: int, one: Observer) -> None:
        o = one.record
        for i in range(int(o.sents[0])):
            row = o.sent[i].copy()
            core, epoch, pc, word, time, value = row[NOC_FIELDS:].tolist()
            step = Instruction(time, core, pc, word)
            known = o.sent_known[i].copy()
            sent = Sent(n, len(self.sent[n]), core, epoch, step, row[:NOC_FIELDS], known, value)
            self.sent[n].append(sent)
            self._under_way[n].append(sent)
        o.sents[0] = 0

    def _arrive(self, sent: Sent) -> None:
        column, clock = self._channels.arrival(sent.tile, sent.row, sent.known)
        sent.arrived = True
        reached = targets(self._chip, self._masks(sent), sent, self._numbers[sent.tile])
        sent.reached = [n for u in reached if (n := self._places.get(u)) is not None]
        for n in sent.reached:
            if not (sent.reads and sent.is_register):
                self._reach(n, sent, column, clock)
        if sent.reads:
            self._access(sent.tile, sent, column, clock, cores.WRITES, sent.own)
        held = self.observers[sent.tile].record.answer[int(sent.row[request.NOC])]
        for kind in (sent.kind, _TAGS + sent.transaction):
            np.maximum(held[kind], clock, out=held[kind])

    def _reach(self, n: int, sent: Sent, column: int, clock: Known) -> None:
        """A request reads or writes at tile `n`."""
        if sent.reads:
            self._access(n, sent, column, clock, cores.LEAVES, sent.remote)
            return
        received = self.observers[n].record.value_known[r.HERE]
        np.maximum(received, clock, out=received)
        does = cores.WRITES
        if sent.is_register:
            does = cores.REGISTER
        elif sent.is_flag:
            does = cores.ADDS if sent.increments else cores.SETS
        self._access(n, sent, column, clock, does, sent.remote)

    def _access(
        self, n: int, sent: Sent, column: int, clock: Known, does: int, area: tuple[int, int]
    ) -> None:
        s, o = self.observers[n].tile.state, self.observers[n].record
        o.arrival[:] = (
            *(column, clock[column], sent.tile, int(does != cores.LEAVES), *area),
            *(sent.number, sent.step.pc, int(s.clock[0]), sent.value),
        )
        o.arrived[:] = clock
        self.observers[n].arrives(does)
        if does in (cores.SETS, cores.ADDS):
            word = area[0] >> 2
            slot = int(o.slot[word]) - 1
            if slot >= 0:
                self.flags[n].setdefault(word, {})[int(o.values[slot]) - 1] = sent

    def _masks(self, sent: Sent) -> dict[int, list[tuple[int, int]]]:
        """By tile and NoC the columns and rows that the tile leaves out of multicasts."""
        if not sent.is_multicast:
            return {}
        return {
            number: [
                (int(config[_COLUMNS]), int(config[_ROWS])) for config in one.tile.state.niu_config
            ]
            for number, one in zip(self._numbers, self.observers, strict=True)
        }
