"""What a Tensix word computed from: it is tried on states in which some inputs are changed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bhemu.machine.watchpoints import Span
from bhemu.tensix import compiled
from bhemu.tensix.insn import decode
from bhemu.tensix.state import MEMBERS, OFFSET, State

_CHANGES = (0x00, 0x55)  # bytes become 0; bytes change some of their bits
_MOST = 2  # inputs of a kind that are named


@dataclass(frozen=True)
class Input:
    """Bytes of one member of the record that decide the result."""

    member: str
    at: int  # in the record
    length: int

    @property
    def span(self) -> Span:
        """The same, to be watched."""
        return Span(self.at, self.length)

    @property
    def text(self) -> str:
        """For example "dst:12", as watch takes it; L1 by address."""
        if self.member == "l1":
            return f"{self.at:#x}:{self.length}"
        member = next(m for m in MEMBERS if m.name == self.member)
        left, indices = self.at - OFFSET[self.member], []
        size = int(np.dtype(member.dtype).itemsize * np.prod(member.shape))
        for n in member.shape:
            size //= n
            if size < self.length:
                break
            indices.append(left // size)
            left %= size
        return ":".join([self.member, *map(str, indices)])


class Words:
    """Tries the word that is about to execute on the state of a tile, which is put back."""

    def __init__(self, state: State, thread: int, word: int, result: tuple[Span, ...]) -> None:
        self._state, self._thread, self._word = state, thread, word
        self._result = result
        self._kept = state.buffer.copy()
        self._plain = self._run()

    @property
    def followed(self) -> bool:
        """Whether the inputs of such words are looked for."""
        cls = decode(self._word)
        return cls is not None and cls.unit != "front"

    def _run(self) -> tuple[int, ...]:
        state = self._state
        state.trace[0] = 0
        status = compiled.execute(state, self._thread, self._word)
        seen = tuple(span.value(state.buffer) for span in self._result)
        state.buffer[:] = self._kept
        return *seen, status

    def inputs(self) -> Iterator[Input]:
        """The inputs that decide the result, of each kind the first few."""
        cls = decode(self._word)
        for member in cls.inputs() if cls else ():
            array = getattr(self._state, member)
            length = 4 if member == "l1" else int(array.itemsize)  # bytes that go together
            for at in self._deciding(OFFSET[member], int(array.nbytes), length):
                yield Input(member, at, length)

    def _decides(self, low: int, high: int) -> bool:
        for change in _CHANGES:
            part = self._state.buffer[low:high]
            part[:] = 0 if change == 0 else part ^ change
            if self._run() != self._plain:
                return True
        return False

    def _deciding(self, start: int, size: int, length: int) -> list[int]:
        """Where the groups of `length` bytes begin that decide, found by halving."""
        found: list[int] = []
        parts = [(start, start + size)]
        while parts and len(found) < _MOST:
            low, high = parts.pop()
            if not self._decides(low, high):
                continue
            if high - low <= length:
                found.append(low)
                continue
            middle = low + (high - low) // 2 // length * length
            parts += [(middle, high), (low, middle)]
        return found
