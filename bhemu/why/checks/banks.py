"""The check "banks": rows of Dst that are packed, cleared or written while another owns them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.jit.record import plain
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Pack, transfer_of
from bhemu.tensix.dest import LOW_HALF, adj32
from bhemu.tensix.insn import decode
from bhemu.tensix.units.pack.modes import PackWord
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, HandOver, merged, place
from bhemu.why.walk import Walk, Word, where

_FREE, _WRITTEN, _HANDED, _PACKED = range(4)
_UNPACK, _MATH, _PACK = range(3)  # threads
_TILE = 64  # rows
_TEXT = {
    "unwritten": (
        "packs Dst rows {rows}, which nobody has written since they were cleared",
        "pack the half that math has filled: its row offset, and what it waits for",
    ),
    "early": (
        "packs Dst rows {rows} before math has handed them over",
        "wait for the semaphore that math posts behind its last row",
    ),
    "cleared": (
        "clears Dst rows {rows}, which are written and not packed",
        "clear the half that was packed, behind its last PACR",
    ),
    "overwritten": (
        "writes Dst rows {rows}, which are handed over and not packed",
        "wait until pack has released the half (SEMWAIT while the semaphore is at its maximum)",
    ),
}


class Rows:
    """Who owns each row of Dst while a tile runs."""

    def __init__(self, tile: Tile) -> None:
        self._tile, s = tile, tile.state
        self._state = np.zeros(len(s.dst), np.int8)
        self._writer: dict[int, Word] = {}
        self._computed = False  # math has written rows since it last handed over
        self._seen = self._rows()
        self.posts = False
        self.found: dict[tuple[str, int], Finding] = {}

    def walk(self) -> Walk:
        """Every word."""
        return Walk(self._tile, before=self.before, after=self.after)

    def known(self) -> list[Finding]:
        """What was found; nobody is too early where nobody hands over."""
        return [one for (kind, _), one in self.found.items() if self.posts or kind != "early"]

    def _rows(self) -> npt.NDArray[Any]:
        s = self._tile.state
        return np.concatenate([s.dst.reshape(len(s.dst), -1), s.dst_valid.reshape(-1, 1)], axis=1)

    def before(self, step: Word) -> list[int]:
        """The rows that a PACR reads."""
        does = transfer_of(self._tile.state, step.thread, step.word)
        if not isinstance(does, Pack) or PackWord.zero_write.get(step.word):
            return []
        rows = [row for row in does.rows if row < len(self._state)]
        if not does.mode.wide:
            return rows
        high = [int(plain(adj32)(row)) for row in rows]
        return [*high, *(row + LOW_HALF for row in high)]

    def after(self, step: Word, packed: list[int]) -> None:
        """What a word did to Dst."""
        cls = decode(step.word)
        name = "" if cls is None else cls.name
        if packed:
            self._packs(step, np.array(packed))
            return
        if name == "SEMPOST" and step.thread != _PACK:
            self.posts = True
            self._used(step.thread)
            self._state[self._state == _WRITTEN] = _HANDED
            return
        if cls is None or cls.unit not in ("matrix", "vector", "unpack"):
            return
        now = self._rows()
        rows = np.flatnonzero((now != self._seen).any(axis=1))
        self._seen = now
        if not rows.size:
            return
        if name == "ZEROACC":
            if step.thread == _PACK:
                lost = rows[np.isin(self._state[rows], (_WRITTEN, _HANDED))]
                self._report("cleared", step, lost)
            self._state[rows] = _FREE
            return
        if step.thread != _PACK:
            handed = rows[self._state[rows] == _HANDED]
            if step.thread == _MATH:  # what unpack hands over is for math to overwrite
                handed = handed[~self._of_unpack(handed)]
            self._report("overwritten", step, handed)
        self._computed |= step.thread == _MATH
        self._state[rows] = _WRITTEN
        self._writer.update(dict.fromkeys(rows.tolist(), step))

    def _of_unpack(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which rows an unpacker has written."""
        writers = [self._writer.get(row) for row in rows.tolist()]
        return np.array([one is not None and one.thread == _UNPACK for one in writers], bool)

    def _used(self, thread: int) -> None:
        """A thread hands over: math, which has computed with them, is done with unpack's rows."""
        if thread == _MATH and self._computed:
            handed = np.flatnonzero(self._state == _HANDED)
            self._state[handed[self._of_unpack(handed)]] = _PACKED
            self._computed = False

    def _packs(self, step: Word, rows: npt.NDArray[Any]) -> None:
        self._report("unwritten", step, self._alone(rows[self._state[rows] == _FREE]))
        self._report("early", step, rows[self._state[rows] == _WRITTEN])
        self._state[rows] = _PACKED

    def _alone(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Those of tiles in which nobody has written a row: the others are zeros on purpose."""
        tiles = self._state.reshape(-1, _TILE)
        untouched: npt.NDArray[np.bool_] = (tiles == _FREE).all(axis=1)
        chosen: npt.NDArray[Any] = rows[untouched[rows // _TILE]]
        return chosen

    def _report(self, kind: str, step: Word, rows: npt.NDArray[Any]) -> None:
        if not rows.size or (kind, step.thread) in self.found:
            return  # what else the thread does so is a consequence
        other = self._writer.get(int(rows[0]))
        victim = {} if other is None else place(where(self._tile, other), other.clock)
        text, advice = _TEXT[kind]
        shown = f"{rows[0]}-{rows[-1]}" if len(rows) > 1 else str(rows[0])
        who = where(self._tile, step)
        self.found[kind, step.thread] = Finding(
            "banks",
            "warning",
            f"{who.core} {text.format(rows=shown)}",
            place(who, step.clock),
            victim,
            (),
            advice,
            HandOver(frozenset((step.thread, (other or step).thread, _PACK))),
        )


def _applies(seen: Outcome) -> int:
    return 0 if seen.fine else 3


def _run(context: Context) -> Sequence[Finding]:
    if context.symptom.fine:
        return []
    _, looks = context.walked(Rows)
    return merged(rows.known() for rows in looks)


CHECK = Check(
    name="banks",
    proves="that rows of Dst were packed unwritten or before math handed them over (SEMPOST), or"
    " cleared or written anew before they were packed",
    misses="rows written with the values that they held; kernels that leave rows unpacked on"
    " purpose look the same, so that it is a warning, and only where a run went wrong; the banks of"
    " Src, whose misuse is refused or hangs",
    cost="one more run, in which every Tensix word passes through Python (60 us each)",
    applies=_applies,
    run=_run,
)
