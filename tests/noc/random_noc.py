"""Random programs that send requests among tiles and DRAM, with a result that timing cannot change.

Every core writes only to places that are its own, reads only what nobody writes, adds to words that
nobody reads, and ends with the counters of both NIUs in L1.
"""

import random
from dataclasses import dataclass, field

import noc_program as p
import numpy as np

from bhemu.devices.noc_map import COLUMNS, ROWS
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import A0, A1, A2, PARK, ZERO, addi, bne, code, jal, li, lw, sw

SOURCE, SOURCES = 0x40000, 0x8000  # random bytes that nobody changes
LANDING, TARGETS, MANY = 0x60000, 0xA0000, 0x100000  # of reads, of writes, of multicasts
CHUNK = 0x8000  # of each core at each of them
COUNTERS_AT, FLAG, DONE, SCRATCH = 0x4A000, 0x310, 0x300, 0x3F0
ADDED, ADDED_SHARED = 0x30000, 0x38000  # words that atomics change: of one core; of all
NCRISC_START, BRISC_START = 0x8000, 0x1000
DRAM_SOURCE, DRAM_TARGET = 0x10000, 0x4000_0000
KNOWN = (0, 1, 2, 7, 10, 11, *range(16, 32))  # counters that the golden model has too
STREAMS = 0xFFB40000
DONE_WORD, FLAG_WORD = 0xD0E8, 0xD0E9


@dataclass
class Core:
    """One core's program while it is made: `number` tells it from all others."""

    xy: XY
    number: int
    second: bool  # ncrisc, with initiators 2 and 3
    words: list[int] = field(default_factory=list)
    registers: dict[tuple[int, int, int], int] = field(default_factory=dict)
    used: dict[object, int] = field(default_factory=dict)  # of each chunk
    answers: dict[tuple[int, int], int] = field(default_factory=dict)  # NoC, counter: how many

    def place(self, kind: object, base: int, n: int, like: int, modulo: int) -> int:
        """A fresh address of `n` bytes in its chunk that equals `like` modulo `modulo`."""
        at = self.used.get(kind, 0)
        at += (like - at) % modulo
        self.used[kind] = at + n
        return base + CHUNK * self.number + at

    def room(self, kind: object, n: int) -> bool:
        return self.used.get(kind, 0) + n + 64 < CHUNK


class Generator:
    """One random program; the attributes are what a simulator is to be given."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.tiles = self._choose(self.dice.randint(1, 4))
        self.banks = self.dice.sample(range(8), 2)
        numbers = range(2 * len(self.tiles))
        self.cores = [Core(self.tiles[n // 2], n, n % 2 == 1) for n in numbers]
        self.data = np.random.default_rng(seed).integers(0, 256, SOURCES, np.uint8).tobytes()
        for core in self.cores:
            for _ in range(self.dice.randint(3, 14)):
                self._request(core)
        for xy in self.tiles:
            self._finish(*(core for core in self.cores if core.xy == xy))
        self.images = {xy: self._image(xy) for xy in self.tiles}

    def _choose(self, n: int) -> list[XY]:
        return self.dice.sample([(x, y) for y in ROWS for x in COLUMNS], n)

    def _image(self, xy: XY) -> dict[int, bytes]:
        """What stands in L1 of a tile at first, by address."""
        first, second = (core for core in self.cores if core.xy == xy)
        return {
            0: code(jal(ZERO, BRISC_START)),
            BRISC_START: code(first.words, PARK),
            NCRISC_START: code(second.words, PARK),
            SOURCE: self.data,
        }

    # Requests

    def _length(self) -> int:
        return min(int(2 ** self.dice.uniform(0, 14.01)), 16384)

    def _send(self, core: Core, noc: int, values: dict[int, int]) -> None:
        """Store the registers that differ, or all; send; wait until the initiator is free."""
        i = 2 * core.second + self.dice.randrange(2)
        base, every = p.NIU[noc] + 0x800 * i, self.dice.random() < 0.3
        core.words += li(A1, base)
        for at, value in values.items():
            if every or core.registers.get((noc, i, at)) != value:
                core.words += [*li(A0, value), sw(A0, A1, at)]
                core.registers[noc, i, at] = value
        core.words += [*li(A0, 1), sw(A0, A1, p.CMD), lw(A0, A1, p.CMD), bne(A0, ZERO, -4)]

    def _values(
        self, control: int, target: tuple[int, int], answer: tuple[int, int], length: int
    ) -> dict[int, int]:
        return {
            p.TARG: target[0],
            p.TARG + 4: 0,
            p.TARG + 8: target[1],
            p.RET: answer[0],
            p.RET + 4: 0,
            p.RET + 8: answer[1],
            p.TAG: self.dice.randrange(16) << 10,
            p.CTRL: control | self.dice.randrange(2) << 13,
            p.LEN: length,
            p.DATA: self.dice.getrandbits(32),
        }

    def _expect(self, core: Core, noc: int, counter: int, n: int) -> None:
        core.answers[noc, counter] = core.answers.get((noc, counter), 0) + n

    def _request(self, core: Core) -> None:
        kinds = (self._read, self._write, self._write, self._atomic, self._inline, self._multicast)
        self.dice.choice(kinds)(core, self.dice.randrange(2), p.hi(core.xy))

    def _bank(self) -> int:
        bank, port = self.dice.choice(self.banks), self.dice.randrange(3)
        return p.hi((17 + bank // 4, 12 + 3 * (bank % 4) + port))

    def _read(self, core: Core, noc: int, home: int) -> None:
        n = self._length()
        offset = self.dice.randrange(SOURCES - n)
        if not core.room("read", n):
            return
        if self.dice.random() < 0.4:
            source = DRAM_SOURCE + offset, self._bank()
            modulo = 64
        else:
            source, modulo = (SOURCE + offset, p.hi(self.dice.choice(self.tiles))), 16
        local = core.place("read", LANDING, n, source[0], modulo)
        self._send(core, noc, self._values(0x90, source, (local, home), n))
        self._expect(core, noc, 2, 1)

    def _write(self, core: Core, noc: int, home: int) -> None:
        n, posted = self._length(), self.dice.random() < 0.3
        local = SOURCE + self.dice.randrange(SOURCES - n)
        if self.dice.random() < 0.4:
            base, where = DRAM_TARGET, self._bank()
        else:
            base, where = TARGETS, p.hi(self.dice.choice(self.tiles))
        if not core.room("write", n):
            return
        at = core.place("write", base, n, local, 16)
        control = 0x82 if posted else 0x92
        self._send(core, noc, self._values(control, (local, home), (at, where), n))
        self._expect(core, noc, 1, 0 if posted else 1)

    def _atomic(self, core: Core, noc: int, home: int) -> None:
        posted, shared = self.dice.random() < 0.3, self.dice.random() < 0.5
        where = p.hi(self.dice.choice(self.tiles))
        if shared:
            at, answer = ADDED_SHARED + 16 * self.dice.randrange(4), SCRATCH
        else:
            count = core.used["atomic"] = core.used.get("atomic", 0) + 1
            at, answer = ADDED + 0x400 * core.number + 16 * count, SCRATCH
            if not posted:
                answer = core.place("read", LANDING, 4, 0, 4)
        control = 0x81 if posted else 0x91
        self._send(core, noc, self._values(control, (at, where), (answer, home), p.INCREMENT))
        self._expect(core, noc, 0, 0 if posted else 1)

    def _inline(self, core: Core, noc: int, home: int) -> None:
        """To a register of a stream of its own, once each."""
        count = core.used["inline"] = core.used.get("inline", -1) + 1
        if count > 7:
            return
        register = self.dice.choice((0x20, 0x28))
        at = STREAMS + 0x1000 * (8 * core.number + count) + register
        where = p.hi(self.dice.choice(self.tiles))
        posted = self.dice.random() < 0.3
        control = 0x8A if posted else 0x9A
        self._send(core, noc, self._values(control, (at, where), (4, home), 4))
        self._expect(core, noc, 1, 0 if posted else 1)

    def _multicast(self, core: Core, noc: int, home: int) -> None:
        n, posted = min(self._length(), 2048), self.dice.random() < 0.3
        loop = self.dice.random() < 0.4
        if not core.room("many", n):
            return
        xs = sorted(self.dice.choice(COLUMNS) for _ in range(2))
        ys = sorted(self.dice.choice(ROWS) for _ in range(2))
        corners = [(xs[0], ys[0]), (xs[1], ys[1])]
        box = p.box(*(corners if noc == 0 else corners[::-1]))
        columns = [x for x in COLUMNS if xs[0] <= x <= xs[1]]
        receivers = len(columns) * (ys[1] - ys[0] + 1)
        inside = core.xy[0] in columns and ys[0] <= core.xy[1] <= ys[1]
        receivers -= inside and not loop
        local = SOURCE + self.dice.randrange(SOURCES - n)
        at = core.place("many", MANY, n, local, 16)
        values = self._values(0, (local, home), (at, box), n)
        values[p.CTRL] = (0x1A2 if posted else 0x1B2) | 4 << 13 | (p.LOOPBACK if loop else 0)
        self._send(core, noc, values)
        self._expect(core, noc, 1, 0 if posted else receivers)

    # The end

    def _poll(self, core: Core, at: int, value: int) -> None:
        core.words += [*li(A1, at), *li(A2, value), lw(A0, A1), 0x0FF0000F, bne(A0, A2, -8)]

    def _finish(self, first: Core, second: Core) -> None:
        """ncrisc flags that all is sent; brisc waits for every answer and stores the counters."""
        second.words += [*li(A1, FLAG), *li(A0, FLAG_WORD), sw(A0, A1)]
        self._poll(first, FLAG, FLAG_WORD)
        for noc in (0, 1):
            for counter in (0, 1, 2):
                total = sum(core.answers.get((noc, counter), 0) for core in (first, second))
                self._poll(first, p.NIU[noc] + 0x200 + 4 * counter, total)
        for noc in (0, 1):
            first.words += [*li(A1, p.NIU[noc] + 0x200), *li(A2, COUNTERS_AT + 0x100 * noc)]
            for counter in KNOWN:
                first.words += [lw(A0, A1, 4 * counter), sw(A0, A2), addi(A2, A2, 4)]
        first.words += [*li(A1, DONE), *li(A0, DONE_WORD), sw(A0, A1)]
