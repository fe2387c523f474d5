"""The check "slots": replay slots that nothing has recorded, or that another line has replaced."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bhemu.jit.record import plain
from bhemu.jit.subset import JIT
from bhemu.machine.tile import Tile
from bhemu.program.schema import SESSION
from bhemu.tensix.frontend import MOP, MOP_CFG, REPLAY, issued
from bhemu.tensix.insn import decode as decode_word
from bhemu.tensix.units import sync
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, merged
from bhemu.why.order import record as r
from bhemu.why.order.conflicts import observed
from bhemu.why.order.shadow import PUSHED
from bhemu.why.steps import Act, Instruction, maker

_SLOTS = 32


@dataclass
class _Thread:
    """The replay buffer of a thread: by slot the push that began its recording."""

    slots: dict[int, Instruction] = field(default_factory=dict)
    under: dict[int, Instruction] = field(default_factory=dict)  # what a recording replaced
    recording: Instruction | None = None
    at: int = 0
    left: int = 0


class Slots:
    """Follows the pushes of a tile's cores; template: of the MOPs of each thread, at the start."""

    def __init__(self, tile: Tile, template: Any = None) -> None:
        self._tile, self._template = tile, template
        self._zmask = [0] * 3
        self._threads = [_Thread() for _ in range(3)]
        self.found: dict[tuple[int, int], Finding] = {}

    def follow(self, notes: Any) -> "Slots":
        """Follow all notes of an observer (shadow.py)."""
        for what, t, value, pc, core, time in notes[:, : r.N_TIME + 1].tolist():
            if what == PUSHED:
                self._pushed(t, value, Instruction(time, core, pc, 0))
            elif what < PUSHED:
                self._template[t, what] = value
        return self

    def _pushed(self, t: int, word: int, step: Instruction) -> None:
        thread, opcode = self._threads[t], word >> 24
        if opcode == MOP_CFG:
            self._zmask[t] = sync.MOP_CFG.zmask_hi16.get(word)
        if opcode == MOP:
            for held in self._issued(t, word):
                if held >> 24 == REPLAY:
                    self._replay(t, held, step)
        elif thread.left:
            if thread.slots.get(thread.at) not in (None, thread.recording):
                thread.under[thread.at] = thread.slots[thread.at]
            assert thread.recording is not None
            thread.slots[thread.at] = thread.recording
            thread.at, thread.left = (thread.at + 1) % _SLOTS, thread.left - 1
        elif opcode == REPLAY:
            self._replay(t, word, step)

    def _issued(self, t: int, word: int) -> Iterator[int]:
        """The words of its configuration that a MOP issues."""
        template, low = self._template[t], sync.MOP.zmask_lo16_or_loop_count.get(word)
        mask = np.int64(low | self._zmask[t] << 16)
        steps = sync.MOP.loop_count.get(word) + 1
        given = int(plain(issued)(template, sync.MOP.mop_type.get(word), mask, steps))
        return (int(held) for k, held in enumerate(template) if given >> k & 1)

    def _replay(self, t: int, word: int, step: Instruction) -> None:
        cls = decode_word(word)
        assert cls is not None
        f, thread = cls.operands(word), self._threads[t]
        first, count = f["start_idx"], f["len"] or 64
        if f["load_mode"]:
            thread.recording, thread.at, thread.left = step, first % _SLOTS, min(count, _SLOTS)
            return
        slots = [(first + k) % _SLOTS for k in range(min(count, _SLOTS))]
        held = {k: thread.slots[k] for k in slots if k in thread.slots}
        missing = [k for k in slots if k not in held]
        if missing and held:
            self._report(
                next(iter(held.values())),
                step,
                f"records too few replay slots: slot {', '.join(map(str, missing[:4]))} of T{t} is"
                " played and was never recorded",
                "record what is played: the same first slot and number of words",
            )
        for k, new in held.items():
            old = thread.under.get(k)
            if old is not None and old.pc != new.pc and old in held.values():
                self._report(
                    new,
                    step,
                    f"records over replay slot {k} of T{t}, which is played as a part of what was"
                    " recorded before",
                    "record to other slots, or record all of it again",
                )
                return

    def _report(self, by: Instruction, victim: Instruction, text: str, advice: str) -> None:
        who, other = Act(self._tile, by).placed(), Act(self._tile, victim).placed()
        found = Finding("slots", "error", f"{maker(by)} {text}", who, other, (), advice)
        self.found.setdefault((by.core, by.pc), found)


def _run(context: Context) -> Sequence[Finding]:
    if context.program.kind == SESSION:  # a kernel sets anew what one before it has set
        return []
    return merged(
        Slots(seen.tile, seen.template).follow(seen.notes).found.values()
        for seen in observed(context)
    )


CHECK = Check(
    name="slots",
    proves="that a replay slot is played that nothing has recorded, or that was recorded over by"
    " another line while the rest of what was recorded with it is still played",
    misses="recorded sessions; what a MOP records; what comes after 262,144 acts of a tile; of a"
    " chip of more than 64 tiles all but 32",
    cost="the observed run of `races`, where the run went wrong",
    applies=lambda seen: 7 if JIT and not seen.fine else 0,
    run=_run,
)
