"""Runs vector words through the loop of a thread, so that scheduled instructions execute."""

import ctypes
from typing import Any

from bhemu.jit.build import load
from bhemu.jit.subset import JIT
from bhemu.tensix import compiled, loop
from bhemu.tensix.state import FIFO_DEPTH, State

_STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


class Thread:
    """Thread 1 of a state: words go in, `status` says what stopped it (0 = nothing)."""

    def __init__(self, s: State, t: int = 1) -> None:
        self.s, self.t = s, t
        self.table = compiled.Table(s, lambda name, seconds: None)
        if not JIT:
            s.py = self

    def push(self, words: list[int]) -> int:
        """Execute the words; 0, or the status that stopped the thread."""
        for i in range(0, len(words), FIFO_DEPTH):
            for word in words[i : i + FIFO_DEPTH]:
                at = self.s.fifo_write[self.t] % FIFO_DEPTH
                self.s.fifo[self.t, at] = word
                self.s.fifo_write[self.t] += 1
            self._step()
            if self.s.status[0]:
                return int(self.s.status[0])
        return 0

    def _step(self) -> None:
        if JIT:
            _STEP(load(compiled.LOOP["thread"]).address)(self.s.base, self.t)
        else:
            loop.thread_entry(self.s, self.t)

    def idle(self) -> Any:
        """Nothing more comes: time passes as it does when a round makes no progress."""
        if JIT:
            _STEP(load(compiled.LOOP["rounds"]).address)(self.s.base, 2)
        else:
            loop.run_rounds(self.s, 2)
        return int(self.s.status[0])
