"""Runs of a program from launches with other bytes: which decide its end, and who uses them."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.errors import BhemuError, Where
from bhemu.jit.subset import JIT
from bhemu.machine.error_text import where_thread
from bhemu.machine.hang.waits import PAGES
from bhemu.machine.saved import HOSTS
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Span
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.metal.kernels import AFTER_DONE
from bhemu.noc.grid import BANKS
from bhemu.noc.record import MEMORY_SHIFT
from bhemu.program import loader
from bhemu.tensix import config, spaces
from bhemu.tensix.insn import decode
from bhemu.tensix.state import DTYPE, LOCAL_SIZE, MEMBERS, OFFSET
from bhemu.why.chain import Chain, Input, last_change
from bhemu.why.check import BYTE, RUN, TILE, Context, Outcome, executed
from bhemu.why.order.conflicts import observed
from bhemu.why.order.observe import data_end
from bhemu.why.order.tiles import Sent
from bhemu.why.origin import last_sent, with_history
from bhemu.why.steps import Word, where

Offsets = npt.NDArray[np.int64]
_PARTS = 16  # into which bytes are cut again and again
_THREAD_WORDS = next(member.shape[1] for member in MEMBERS if member.name == "thread_cfg")


ITEM = {member.name: np.dtype(member.dtype).itemsize for member in MEMBERS}
STRIDE = 1 << 32  # between the tiles of a chip and the pages of its DRAM, as a Fill numbers bytes


@dataclass(frozen=True)
class Fill:
    """Bytes that are changed before a run, of the records of tiles and then of pages of DRAM.

    at: in rising order.
    """

    at: Offsets
    values: npt.NDArray[np.uint8]

    def some(self, low: int, high: int) -> "Fill":
        """A part of it."""
        return Fill(self.at[low:high], self.values[low:high])

    def parts(self) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
        """(tile or page, offsets within, values) of each tile or page that has some."""
        low = 0
        while low < self.at.size:
            number = int(self.at[low]) // STRIDE
            high = int(np.searchsorted(self.at, (number + 1) * STRIDE))
            yield number, self.at[low:high] - number * STRIDE, self.values[low:high]
            low = high


def together(fills: Iterable[Fill]) -> Fill:
    """All of them as one."""
    parts = list(fills)
    at = np.concatenate([one.at for one in parts])
    order = np.argsort(at)
    return Fill(at[order], np.concatenate([one.values for one in parts])[order])


NOTHING = Fill(np.empty(0, np.int64), np.empty(0, np.uint8))


def member_of(at: int) -> tuple[str, int]:
    """The member of the record that a byte belongs to, and its offset within."""
    name = max((m.name for m in MEMBERS if OFFSET[m.name] <= at), key=lambda one: OFFSET[one])
    return name, at - OFFSET[name]


def place_name(at: int) -> str:
    """A byte of the record in words: `L1 0x20000`, `gpr:0:5`."""
    name, rest = member_of(at)
    if name == "l1":
        return f"L1 {rest:#x}"
    return Input(name, at, ITEM[name]).text


def field_names(at: int) -> str:
    """The first fields of a word of Config or ThreadConfig, in brackets; "" for another byte."""
    name, rest = member_of(at)
    words = {"cfg": config.CONFIG_WORDS, "thread_cfg": _THREAD_WORDS}.get(name)
    if words is None:
        return ""
    fields = spaces.fields_named("CFG" if name == "cfg" else "THREAD_CFG", ("*",))
    known = [title for title, field in fields.items() if field.word == rest // 4 % words]
    return f" ({', '.join(known[:2])})" if known else ""


_WATCHED = 8  # bytes that differ, of which one is seen to change
_PLACED = (  # spaces of which a word writes a part
    *(spaces.DST, spaces.L1, spaces.CFG, spaces.GPR, spaces.LREG, spaces.THREAD_CFG),
    *(spaces.ADC, spaces.SEM, spaces.SRC, spaces.BANK),
)
Run = Callable[[int], object]


class Reader(NamedTuple):
    """The step that uses a value, its clock, and whether that is a request to the NoC."""

    clock: int
    where: Where
    by_noc: bool


class Trials:
    """A launched program that is run again and again from its beginning.

    `machine`: its tile or chip; `tiles`: all that it has; `pages`: those of DRAM that it touches;
    `ground`: bytes that every run begins with.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.machine: Any = context.launch(engine="compiled", **context.alone)
        self.tiles: Sequence[Tile] = self.machine.tiles_made()
        self.pages: list[tuple[int, int]] = []
        self._pasts: dict[int, Tile] = {}  # with their history
        self._start = self.machine.snapshot()
        if (network := self.machine.network) is not None:  # what it touches, from its beginning
            context.finish(self.machine, limit=context.most)
            self.pages = sorted(key for key in network.pages if key[0] < BANKS)
            self.machine.restore(self._start)
            self.bytes()
            self._start = self.machine.snapshot()
        self.stand_on(NOTHING)
        seen = context.symptom  # of a hang the limit of a trial may end otherwise
        self.plain = seen if seen.fine else self.result(NOTHING)

    def stand_on(self, ground: Fill) -> None:
        """Begin every run with these bytes changed; `plain` is then to be run again."""
        self.ground = ground
        self.begin(NOTHING)
        self._laid = self.context.outputs(self.machine)

    def bytes(self, machine: Any = None) -> list[npt.NDArray[np.uint8]]:
        """The records and pages as they are, of the machine or of another one."""
        machine = machine or self.machine
        records = [machine.tile[tile.xy].state.buffer for tile in self.tiles]
        for key in self.pages:
            if key not in machine.network.pages:
                machine.network.make_page(*key)
        return records + [machine.network.pages[key] for key in self.pages]

    def name(self, at: int) -> str:
        """A byte in words."""
        number, rest = divmod(at, STRIDE)
        if number >= len(self.tiles):
            bank, page = self.pages[number - len(self.tiles)]
            return f"DRAM bank {bank} {(page << MEMORY_SHIFT) + rest:#x}"
        x, y = self.tiles[number].xy
        return place_name(rest) + ("" if self.machine.network is None else f" of tile ({x},{y})")

    def begin(self, fill: Fill) -> None:
        """Go back to the launch, with the ground and then these bytes changed."""
        changed = self.ground.at.size + fill.at.size
        self.context.work += TILE * len(self.tiles) + BYTE * changed
        self.machine.restore(self._start)
        held = self.bytes() if changed else []
        for number, at, values in (*self.ground.parts(), *fill.parts()):
            held[number][at] = values

    def result(self, fill: Fill) -> Outcome:
        """How the program ends when these bytes are changed before it begins."""
        self.begin(fill)
        return self.context.finish(self.machine, limit=self.context.most)

    def differs(self, fill: Fill) -> bool:
        """Whether the end or an output is then different; untouched bytes do not count."""
        self.begin(fill)
        laid = self.context.outputs(self.machine)
        seen = self.context.finish(self.machine, limit=self.context.most)
        if seen.same(self.plain):
            return False
        if seen.ending != self.plain.ending or seen.reads != self.plain.reads:
            return True
        for parts in zip(seen.outputs, self.plain.outputs, laid, self._laid, strict=True):
            got, was, held, first = (np.frombuffer(data, np.uint8) for data in parts)
            if ((got != was) & ((got != held) | (held == first))).any():
                return True
        return False

    def needed(self, parts: Sequence[Fill]) -> list[int]:
        """The numbers of the first parts that together make a difference, all of them needed."""
        found, high = list[int](), len(parts)
        while high and not (found and self.differs(together(parts[n] for n in found))):
            low = 0
            while high - low > 1:
                middle = (low + high) // 2
                some = together(parts[n] for n in (*found, *range(middle)))
                low, high = (low, middle) if self.differs(some) else (middle, high)
            high -= 1
            found.append(high)
        return found

    def deciding(self, fill: Fill, size: int = 4) -> Fill:
        """The fewest bytes of `fill`, in groups of `size`, that together make a difference."""
        while len(fill.at) > size:
            step = -(-len(fill.at) // (_PARTS * size)) * size
            parts = [fill.some(low, low + step) for low in range(0, len(fill.at), step)]
            less = together(parts[n] for n in self.needed(parts))
            if len(less.at) == len(fill.at):
                break
            fill = less
        return fill

    def tile_of(self, where: Where) -> Tile | None:
        """The tile of a place."""
        return next((tile for tile in self.tiles if tile.xy == where.tile), None)

    # Who uses bytes: the first step after which two runs differ. One run begins with these bytes as
    # they are, the other with other ones there. Up to that step both are the same but for these.

    def reader(self, fill: Fill) -> Reader | None:
        """The step that uses these bytes first; None without compiled code."""
        if not JIT:
            return None
        both: list[Any] = []
        for one in (fill, NOTHING):
            self.begin(one)
            both.insert(0, self.machine.snapshot())
        held = self.bytes()
        self._before = [held[number][at] for number, at, _ in fill.parts()]
        number, rest, most = 0, 0, self.context.end
        if self.machine.network is not None:
            rounds = self.context.symptom.machine.loop.rounds.count
            both, differ = self._apart(both, fill, self._rounds, int(rounds))
            if not differ.size:
                return None
            number, rest = divmod(int(differ[0]), STRIDE)
            if number >= len(self.tiles):
                return self._sent(int(differ[0]), self.context.end)
            self.machine.restore(both[0])  # in the long run what differs may be overwritten
            begun = now(self.tiles[number].state)
            self._rounds(1)
            most = now(self.tiles[number].state) - begun
        tile = self.tiles[number]
        both, differ = self._apart(both, fill, partial(self._clocks, tile), most, number)
        own = differ % STRIDE
        if {member_of(int(at))[0] for at in own} == {"gate_word"}:  # it comes to the gate now
            self.machine.restore(both[1])
            self._clocks(tile, 1)
            gate = where_thread(tile, member_of(int(own[0]))[1] // 4)
            return Reader(now(tile.state), gate, by_noc=False)
        for at in own[:_WATCHED].tolist() or [rest]:
            for start in both[::-1]:
                self.machine.restore(start)
                with tile.stepping.watched.alone("it", (Span(at, 1),)):
                    by = self._clocks(tile, 1)
                if by is not None:
                    clock = now(tile.state)
                    if by.tile == tile.xy and (by.thread is not None or by.word is not None):
                        return Reader(clock, by, by_noc=False)
                    return self._sent(number * STRIDE + at, clock)
        return self._sent(number * STRIDE + rest, self.context.end) if rest else None

    def _rounds(self, n: int) -> None:
        with suppress(BhemuError):
            self.machine.run("idle", rounds=n)

    def _clocks(self, tile: Tile, n: int) -> Where | None:
        """Run on; who has changed what is watched, or was refused."""
        try:
            change = tile.stepping.run("idle", limit=n).change
        except BhemuError as problem:
            return problem.where
        return None if change is None else change.where

    def _apart(
        self, both: list[Any], fill: Fill, run: Run, most: int, only: int | None = None
    ) -> tuple[list[Any], Offsets]:
        """A moment at which both are the same, and the bytes that differ one unit later.

        After `most` units they differ; later what differs may be overwritten. only: on this tile;
        others have run on by a whole round.
        """
        found = NOTHING.at
        for bit in range(most.bit_length(), -1, -1):
            if (step := 1 << bit) > most:
                continue
            after, held, done = [], [], executed(self.machine)
            for start in both:
                self.machine.restore(start)
                run(step)
                after.append(self.machine.snapshot())
                held.append([one.copy() for one in self.bytes()])
                self.context.work += RUN + max(executed(self.machine) - done, 0)
            for (number, at, values), before in zip(fill.parts(), self._before, strict=True):
                left = (held[0][number][at] == before) & (held[1][number][at] == values)
                held[0][number][at[left]] = values[left]  # what is left of the fill
            differ = [NOTHING.at]
            for number, (one, other) in enumerate(zip(*held, strict=True)):
                apart = one != other
                for name in HOSTS if number < len(self.tiles) else ():
                    apart[OFFSET[name] : OFFSET[name] + DTYPE[name].itemsize] = False
                if only in (None, number):
                    differ.append(number * STRIDE + np.flatnonzero(apart))
            places = np.concatenate(differ)
            if places.size:
                found = places
            else:
                both, most = after, most - step
        return both, found

    def _sent(self, at: int, clock: int, after: int = 0) -> Reader | None:
        """The request that has brought a byte up to a clock, or what ends up to `after` before."""
        number, at = divmod(at, STRIDE)
        tiles = [one.tile for one in observed(self.context)]
        bank, xy = None, None
        if number >= len(self.tiles):
            bank, page = self.pages[number - len(self.tiles)]
            at += page << MEMORY_SHIFT
        else:
            at, xy = at - OFFSET["l1"], self.tiles[number].xy

        def brings(one: Sent) -> bool:
            low, high = one.own if one.reads else one.remote
            if xy is None:
                here = not one.reads and one.bank == bank
            else:
                to = [one.tile] if one.reads else one.reached
                moves = one.reads or one.takes_data or not after
                here = moves and xy in [tiles[n].xy for n in to]
            is_near = high <= at < high + after if after else low <= at < high
            return here and is_near and one.step.clock <= clock

        if (found := last_sent(self.context, brings)) is None:
            return None
        return Reader(found.step.clock, where(tiles[found.tile], found.step), by_noc=True)

    def brought_up_to(self, at: int, most: int) -> tuple[Where, int] | None:
        """The last request that brought what ends at most so many bytes before a byte."""
        found = self._sent(at, self.context.end, most)
        return None if found is None else (found.where, found.clock)

    def maker(self, at: int, before: int | None = None) -> tuple[Where, int] | None:
        """The last step up to a clock, not a request, that wrote a byte of a tile; its clock."""
        number, rest = divmod(at, STRIDE)
        if not JIT:
            return None
        if (last := self._last_word(number, member_of(rest)[0])) is not None:
            return last
        if number not in self._pasts:
            tile, context = self.tiles[number], self.context
            self._pasts[number] = context.past or with_history(context, tile.xy)
        past = Chain(self._pasts[number])
        end = now(past.tile.state)
        with suppress(BhemuError):  # in which the run has ended
            past.go_to(end if before is None else min(before, end))
        change, clock = last_change(past.tile, Span(rest & ~3, 4))
        with suppress(BhemuError):
            past.go_to(end)
        if change is None or (change.where.thread is None and change.where.word is None):
            return None
        return change.where, clock

    def _last_word(self, number: int, member: str) -> tuple[Where, int] | None:
        """The last word that writes a member of a tile as a whole, changed or not."""
        tile = self.tiles[number]
        if member in {name for space in _PLACED for name in space.members}:
            return None
        self.begin(NOTHING)
        with tile.stepping.recording() as entries:
            self.context.finish(self.machine, limit=self.context.most)
        for thread, word, pc, _, clock in reversed(entries):
            cls = decode(word)
            terms = () if cls is None else cls.writes.of(cls.operands(word))
            if any(member in term.space.members for term in terms):
                known = (c for c in (thread + 1, 0) if tile.locate(c, pc)[0] is not None)
                step = Word(clock, thread, word, pc, next(known, thread + 1), pc)
                return where(tile, step), clock
        return None

    def made(self, at: Offsets, number: int) -> Offsets:
        """The bytes of a tile among these that a run changes."""
        self.begin(NOTHING)
        before = self.bytes()[number][at]
        self.result(NOTHING)
        changed: Offsets = at[self.bytes()[number][at] != before]
        return changed


_STORES = ("gpr", "dst", "src", "mop_cfg", "replay")
_LREGS = 8  # those that a program writes
_TILES = 12  # of a chip
_FROM = (0, 0x10000, 0x20000, 0x40000)  # L1 below: production firmware relies on zeros there
_KEPT = (
    *("cfg", "thread_cfg", "gpr", "adc", "adc_cr", "unpack_row", "unpack_context", "rwc", "rwc_cr"),
    *("src", "src_valid", "src_fmt", "unpack_bank", "matrix_bank", "dst", "dst_valid", "lreg"),
    *("cc", "cc_en", "cc_stack", "cc_stack_en", "cc_depth", "lane_config", "macro_template"),
    *("macro_sequence", "macro_misc", "prng", "mop_cfg", "mop_zmask_hi", "replay", "pack_open"),
    *("pack_data", "pack_exp", "pack_datum", "pack_row", "pack_plane", "pack_histogram"),
    *("sem", "sem_max", "mutex", "stream", "mailbox", "mailbox_read", "mailbox_write"),
)
"""State that no reset of a core clears; of streams what firmware leaves at the end."""
MAIL = ("mailbox_write", "mailbox_read", "mailbox")


def unwritten_bytes(trials: Trials) -> npt.NDArray[np.int64]:
    """Bytes of records and pages that nothing has written when the program begins."""
    context = trials.context
    chosen = {tile.xy for tile in context.first(trials.machine, _TILES)}
    pages = range(len(trials.tiles), len(trials.tiles) + len(trials.pages))
    looked = [n for n, tile in enumerate(trials.tiles) if tile.xy in chosen] + [*pages]

    def bytes_of(machine: Any) -> list[npt.NDArray[np.uint8]]:
        held = trials.bytes(machine)  # a chip of 140 tiles takes 400 MB
        return [held[n].copy() for n in looked]

    plain = bytes_of(context.launch(engine="compiled", poison="zero", **context.alone))
    other = bytes_of(_filled_launch(context))
    at = []
    for n, one, two in zip(looked, plain, other, strict=True):
        held = one != two
        if n not in pages:
            there = np.zeros(len(one), bool)
            for low, high in _places():
                there[low:high] = True
            held &= there
            for c in range(len(CORE_NAMES)):
                held[_local(context, trials.tiles[n], c)] = True
        at.append(n * STRIDE + np.flatnonzero(held))
    return np.concatenate(at).astype(np.int64)


def _filled_launch(context: Context) -> Any:
    """A launch with other contents of all unwritten bytes, as far as firmware boots with them."""

    def fill(low: int, tile: Tile) -> None:
        tile.state.l1[:low] = 0
        for first, end in list(_places())[1:]:
            tile.state.buffer[first:end] = 0xFF

    for low in _FROM:
        with suppress(BhemuError):
            own = {"prepare": partial(fill, low), **context.alone}
            return context.launch(engine="compiled", poison="ff", **own)
    return context.launch(engine="compiled", poison="zero", **context.alone)


def _places() -> Iterator[tuple[int, int]]:
    """The ranges of a record that are looked at."""
    yield OFFSET["l1"], OFFSET["l1"] + L1_SIZE
    for name in _STORES:
        yield OFFSET[name], OFFSET[name] + DTYPE[name].itemsize
    yield OFFSET["lreg"], OFFSET["lreg"] + _LREGS * 32 * 4


def _local(context: Context, tile: Tile, c: int) -> npt.NDArray[np.int64]:
    """Bytes of a core's local memory that no ELF has filled; with firmware those of its stack."""
    program, name, free = context.program, CORE_NAMES[c], np.zeros(LOCAL_SIZE, bool)
    if program.kind == "tt-metal" and program.firmware is not None:
        core = tile.core[name]
        low, sp = data_end(core) - LOCAL_BASE, int(core.regs[2]) - LOCAL_BASE
        if core.images and low < sp <= LOCAL_SIZES[c]:
            free[low:sp] = True
    elif program.kind == "elf":
        part = context.part(tile)
        spec = part.cores.get(name)
        free[: LOCAL_SIZES[c]] = not any(one.core == name for one in part.sets)  # the host's
        if spec is not None and spec.elf is not None:
            image = loader.read_elf(spec.elf)
            for one in loader.place(image, local=spec.local, core=spec.name, offset=0):
                if one.space != "l1":
                    free[one.address : one.address + len(one.data)] = False
    return OFFSET["local"] + c * LOCAL_SIZE + np.flatnonzero(free)


def filled(at: npt.NDArray[np.int64], number: int) -> Fill:
    """Other values for bytes: the random ones of `number`."""
    random = np.random.default_rng(zlib.crc32(b"uninit") + number)
    return Fill(at, random.integers(0, 256, at.size, dtype=np.uint8))


def without(trials: Trials, fill: Fill, at: int, near: int) -> Fill:
    """The fill without what is less than `near` bytes from a byte in memory; else the whole member.

    near: at most half of STRIDE.
    """
    number, rest = divmod(at, STRIDE)
    name = "page" if number >= len(trials.tiles) else member_of(rest)[0]
    low, high = at - near, at + near
    if name not in ("l1", "local", "page"):
        low = number * STRIDE + OFFSET[name]
        high = low + DTYPE[name].itemsize
    keep = (fill.at < low) | (fill.at >= high)
    return Fill(fill.at[keep], fill.values[keep])


def left_bytes(trials: Trials) -> dict[tuple[int, str], Fill]:
    """By tile and member of its record, the bytes that the program leaves changed."""
    trials.begin(NOTHING)
    before = [{name: getattr(tile.state, name).copy() for name in _KEPT} for tile in trials.tiles]
    trials.plain = trials.result(NOTHING)
    if not trials.context.program.is_alone:
        with suppress(BhemuError):  # its firmware puts its counters back
            trials.machine.run("polling", limit=AFTER_DONE)
    found: dict[tuple[int, str], Fill] = {}
    for n, (tile, old) in enumerate(zip(trials.tiles, before, strict=True)):
        for name, was in old.items():
            differ = np.flatnonzero(was != getattr(tile.state, name)).astype(np.int64)
            if name == "stream" and trials.context.program.kind == "tt-metal":
                # its firmware clears counts of circular buffers before it launches kernels
                differ = differ[~np.isin(differ % was.shape[-1], [*PAGES])]
            at = OFFSET[name] + differ[:, None] * was.itemsize + np.arange(was.itemsize)
            if at.size:
                at = at.reshape(-1)
                found[n, name] = Fill(n * STRIDE + at, tile.state.buffer[at].copy())
        # counts of mailboxes mean something together only
        if mail := [found.pop((n, name)) for name in MAIL if (n, name) in found]:
            found[n, MAIL[0]] = together(mail)
    return found
