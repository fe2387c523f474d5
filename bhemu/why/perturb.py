"""Runs of a program from states that differ in few bytes: what decides the end, who reads it."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu import report, snapshot
from bhemu.errors import BhemuError, Where
from bhemu.machine.stop import now
from bhemu.machine.watching import spans
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, config_fields, thread_fields
from bhemu.tensix.insn import disassemble
from bhemu.tensix.recording import WORDS
from bhemu.tensix.state import CORES, DTYPE, MEMBERS, OFFSET, POINTERS
from bhemu.tile import Tile
from bhemu.why.check import Context, Outcome

_NEAR = 64  # bytes: what belongs together
Offsets = npt.NDArray[np.int64]
_NO_STATE = (
    *snapshot.HOSTS,
    *POINTERS,
    *("src_prepared", "src_exponent", "src_slice", "src_wide", "term_sum", "term_exponent"),
    *("term_magnitude", "doubt_row", "lane_tmp", "pack_tmp", "pack_cells", "unpack_tmp"),
    *("unpack_weight", "scratch", "detail", "loaded", "sem_by", "sem_pc", "dst_doubt_pc"),
)
"""Members that hold nothing a program can see."""
_THREAD_WORDS = next(member.shape[1] for member in MEMBERS if member.name == "thread_cfg")


@dataclass(frozen=True)
class Fill:
    """Bytes of the record that are changed before a run."""

    at: Offsets
    values: npt.NDArray[np.uint8]

    def some(self, low: int, high: int) -> "Fill":
        """Part of it."""
        return Fill(self.at[low:high], self.values[low:high])


def together(fills: Iterable[Fill]) -> Fill:
    """All of them as one."""
    parts = list(fills)
    return Fill(
        np.concatenate([one.at for one in parts]), np.concatenate([one.values for one in parts])
    )


NOTHING = Fill(np.empty(0, np.int64), np.empty(0, np.uint8))


def member_of(at: int) -> tuple[str, int]:
    """The member of the record that a byte belongs to, and its distance within."""
    name = max((m.name for m in MEMBERS if OFFSET[m.name] <= at), key=lambda one: OFFSET[one])
    return name, at - OFFSET[name]


def place_name(at: int) -> str:
    """A byte of the record in words: `L1 0x20000`, `gpr:0:5`."""
    name, rest = member_of(at)
    if name == "l1":
        return f"L1 {rest:#x}"
    member = next(m for m in MEMBERS if m.name == name)
    index = np.unravel_index(rest // np.dtype(member.dtype).itemsize, member.shape)
    return ":".join([name, *(str(int(n)) for n in index)])


def field_names(at: int) -> str:
    """The first fields of a word of Config or ThreadConfig, in brackets; "" for another byte."""
    name, rest = member_of(at)
    fields = {"cfg": config_fields, "thread_cfg": thread_fields}.get(name)
    if fields is None:
        return ""
    word = rest // 4 % (config.CONFIG_WORDS if name == "cfg" else _THREAD_WORDS)
    known = [
        title
        for title, field in vars(fields).items()
        if isinstance(field, config_fields.Field) and field.word == word
    ]
    return f" ({', '.join(known[:2])})" if known else ""


class Trials:
    """One launched tile that is run again and again from its beginning."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.tile: Tile = context.launch(engine="compiled")
        self._start = self.tile.snapshot()
        self.runs = 0
        self.plain = self.result(NOTHING)
        self.clock = now(self.tile.state)

    def _begin(self, fill: Fill) -> None:
        self.runs += 1
        self.tile.restore(self._start)
        self.tile.state.buffer[fill.at] = fill.values

    def result(self, fill: Fill) -> Outcome:
        """How the program ends when these bytes are changed before it begins."""
        self._begin(fill)
        return self._context.finish(self.tile, limit=self._context.most)

    def differs(self, fill: Fill) -> bool:
        """Whether that is another end or another output; bytes that are left alone do not count."""
        seen = self.result(fill)
        if seen.same(self.plain):
            return False
        if seen.ending != self.plain.ending:
            return True
        laid = np.full(L1_SIZE, -1, np.int16)  # what the fill put there
        chosen = fill.at < L1_SIZE
        laid[fill.at[chosen]] = fill.values[chosen]
        for result, new, old in zip(seen.results, seen.outputs, self.plain.outputs, strict=True):
            got, was = (np.frombuffer(data, np.uint8) for data in (new, old))
            if ((got != was) & (got != laid[result.address : result.address + len(new)])).any():
                return True
        return False

    def ends(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """The record before and after the plain run."""
        self._begin(NOTHING)
        before = self.tile.state.buffer.copy()
        self.result(NOTHING)
        return before, self.tile.state.buffer.copy()

    def deciding(self, fill: Fill, size: int = 4) -> Fill | None:
        """As few bytes of `fill`, `size` together, as make the same difference alone."""
        if not self.differs(fill):
            return None
        low, high = 0, len(fill.at)
        while high - low > size:
            middle = low + (high - low) // 2 // size * size or low + size
            if self.differs(fill.some(low, middle)):
                high = middle
            elif self.differs(fill.some(middle, high)):
                low = middle
            else:
                break  # it takes some of both
        return fill.some(low, high)

    # Who reads it

    def _at(self, fill: Fill, clock: int) -> npt.NDArray[np.uint8]:
        self._begin(fill)
        if clock > 0:
            with contextlib.suppress(BhemuError):  # how the run ended is its state too
                self.tile.run(limit=clock)
        buffer = self.tile.state.buffer.copy()
        left = buffer[fill.at] == fill.values
        record = buffer.view(DTYPE)
        for name in _NO_STATE:
            record[name] = 0
        buffer[fill.at[left]] = 0  # the difference itself, where nothing has touched it
        return buffer

    def reader(self, fill: Fill) -> tuple[Where, int] | None:
        """The instruction or word through which a difference spreads, and its clock."""
        self._begin(NOTHING)
        first = now(self.tile.state)
        plain = Fill(fill.at, self.tile.state.buffer[fill.at].copy())
        low, high = 0, max(self.clock - first, 1)
        while high - low > 1:
            middle = (low + high) // 2
            if np.array_equal(self._at(plain, middle), self._at(fill, middle)):
                low = middle
            else:
                high = middle
        return self._step(fill, low), first + high

    # Who writes next to it

    def neighbour(self, whole: Fill, at: int) -> tuple[Where, int] | None:
        """Who fills the bytes of L1 next to those at `at` that stay as `whole` has laid them."""
        self.result(whole)
        laid = whole.at < L1_SIZE
        places, values = whole.at[laid], whole.values[laid]
        changed = places[self.tile.state.l1[places] != values]
        after = changed[(changed > at) & (changed < at + _NEAR)]
        before = changed[(changed < at) & (changed > at - _NEAR)]
        near = [*after[:1], *before[-1:]]
        return self._first_change(whole, int(near[0]) & ~3) if near else None

    def _first_change(self, fill: Fill, at: int) -> tuple[Where, int] | None:
        self._begin(fill)
        watched = self.tile.machine.watched
        text = f"{at:#x}:4"
        with watched.alone(text, spans(self.tile, "brisc", text)):
            stop = None
            with contextlib.suppress(BhemuError):
                stop = self.tile.run(limit=self._context.most)
        change = None if stop is None else stop.change
        return None if change is None else (change.where, now(self.tile.state))

    def _step(self, fill: Fill, clock: int) -> Where:
        """Who goes on at `clock` of a run from `fill`."""
        self._at(fill, clock)
        s, tile = self.tile.state, self.tile
        retired, pcs = s.retired.copy(), s.pc.copy()
        tile.log.clear()
        s.trace[0] = WORDS
        try:
            tile.run(limit=1)
        except BhemuError as error:
            if error.where is not None:
                return error.where
        finally:
            s.trace[0] = 0
            tile.drain_log()
        for t, word, pc, *_ in tile.log:
            more = {"thread": t, "word": word, "decoded": disassemble(word)}
            return report.where_core(tile, int(s.gate_core[t]), pc, **more)
        for c in range(CORES):
            if s.retired[c] != retired[c]:
                pc = int(pcs[c])
                return report.where_core(tile, c, pc, **report.instruction(tile, pc))
        return Where(tile=tile.xy)


def of_record(
    before: npt.NDArray[np.uint8], after: npt.NDArray[np.uint8], names: tuple[str, ...]
) -> dict[str, Fill]:
    """By member, what record `after` holds otherwise than `before`."""
    old, new = before.view(DTYPE), after.view(DTYPE)
    found = {}
    for name in names:
        size = np.dtype(old[name].dtype).itemsize
        differ = np.flatnonzero((old[name] != new[name]).reshape(-1))
        at = (OFFSET[name] + differ[:, None] * size + np.arange(size)).reshape(-1).astype(np.int64)
        if at.size:
            found[name] = Fill(at, after[at].copy())
    return found
