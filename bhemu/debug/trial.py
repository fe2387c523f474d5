"""Which inputs decide what one word makes: it is executed again with some of them set to zero."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.machine.word_text import TracedWord
from bhemu.tensix import compiled
from bhemu.tensix.state import State

Cells = NDArray[Any]


class Trial:
    """Executes one word on copies of a state that stands before it; `read` gives its result."""

    def __init__(self, state: State, word: TracedWord, read: Callable[[State], int]) -> None:
        self._state, self._word, self._read = state, word, read
        self._kept = state.buffer.copy()

    def result(self, change: Callable[[State], None] = lambda state: None) -> int:
        """The result after `change` of the state before the word."""
        state = self._state
        change(state)
        state.trace[0] = 0
        compiled.execute(state, self._word.thread, self._word.word)
        result = self._read(state)
        state.buffer[:] = self._kept
        return result

    def deciding(self, member: str, cells: Cells) -> Cells:
        """The fewest of `cells` (n, 2) of the member without which the result would be another.

        Empty when not even without all of them.
        """
        plain = self.result()

        def decide(some: Cells) -> bool:
            def zero(state: State) -> None:
                getattr(state, member)[some[:, 0], some[:, 1]] = 0

            return self.result(zero) != plain

        if not decide(cells):
            return cells[:0]
        size = len(cells)
        while size > 1:
            size = (size + 1) // 2
            at = 0
            while at < len(cells) > 1:
                rest = np.delete(cells, slice(at, at + size), axis=0)
                if len(rest) and decide(rest):
                    cells = rest
                else:
                    at += size
        return cells
