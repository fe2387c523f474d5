"""The vector instructions behind a value that an SFPSTORE brought into Dst, back to the first.

Each question is a run of the program up to a word, which is then tried on copies of the state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bhemu.debug.trial import Cells, Trial
from bhemu.machine.word_text import TracedWord
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.state import State
from bhemu.tensix.units.vector.sfpu import Sfpu, Writes

MOST = 12  # links of a chain
_TRIES = 16  # words looked at for one link
_EXPONENT, _SIGN = 0x7F800000, 0x80000000
_POISON = (0x3F8ACE11, 0x40C0FFEE)
_LANES_OF_ROW, _COLUMNS_OF_LANE = 8, 2
_MACRO = "SFPLOADMACRO had instructions scheduled: what they computed is not followed"
_EARLIER = "no vector instruction before gave it that value"
_LONG = f"and so on: only {MOST} instructions are shown"


@dataclass(frozen=True)
class Register:
    """One lane of an LReg."""

    number: int
    lane: int


@dataclass(frozen=True)
class Link:
    """A word, and the lane of an LReg that it made a NaN, an infinity or what became one."""

    word: TracedWord
    register: Register

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "register": self.register.number,
            "lane": self.register.lane,
            **self.word.as_dict(),
        }


class Chain:
    """`words`: all vector words of the run; `stopped(word)`: the state before that word."""

    def __init__(self, words: list[TracedWord], stopped: Callable[[TracedWord], State]) -> None:
        self._words, self._stopped = words, stopped

    def behind(self, store: TracedWord, cell: tuple[int, int]) -> tuple[tuple[Link, ...], str]:
        """Links from the value that `store` put into a Dst cell back to the first, and a note.

        The last word has no non-finite LReg as input; an SFPLOAD took its value from Dst.
        """
        lane = _LANES_OF_ROW * (cell[0] & 3) + cell[1] // _COLUMNS_OF_LANE
        register: Register | None = Register(_field(store, "lreg_ind"), lane)
        links: list[Link] = []
        before = store.number
        while register is not None and len(links) < MOST:
            found = self._maker(register, before)
            if isinstance(found, str):
                return tuple(links), found
            word, source = found
            links.append(Link(word, register))
            register, before = source, word.number
        return tuple(links), "" if register is None else _LONG

    def _maker(self, register: Register, before: int) -> tuple[TracedWord, Register | None] | str:
        """(the last word that wrote the register, its own non-finite input), or why not."""
        for word in self._candidates(register.number, before):
            state = self._stopped(word)
            if state.route[0] or word.word >> 24 == _opcode("SFPLOADMACRO"):
                return _MACRO
            trial = Trial(state, word, lambda s: int(s.lreg[register.number, register.lane]))
            if _writes(trial, register):
                inputs = np.argwhere((state.lreg & _EXPONENT) == _EXPONENT)
                return word, _worst(state, trial.deciding("lreg", inputs))
        return _EARLIER

    def _candidates(self, number: int, before: int) -> Iterator[TracedWord]:
        left = _TRIES
        for word in reversed(self._words):
            if left and word.number < before and _may_write(word, number):
                left -= 1
                yield word


def _worst(state: State, inputs: Cells) -> Register | None:
    """A NaN among the inputs before an infinity, None when there are none."""
    values = state.lreg[inputs[:, 0], inputs[:, 1]] & ~np.uint32(_SIGN)
    found = [Register(int(inputs[i, 0]), int(inputs[i, 1])) for i in np.argsort(values)]
    return found[-1] if found else None


def _writes(trial: Trial, register: Register) -> bool:
    """Whether the word writes the lane at all: what stood there before must not remain."""

    def remains(poison: int) -> bool:
        def put(state: State) -> None:
            state.lreg[register.number, register.lane] = poison

        return trial.result(put) == poison

    return not all(remains(poison) for poison in _POISON)


def _opcode(name: str) -> int:
    return next(opcode for opcode, cls in REGISTRY.items() if cls.name == name)


def _field(word: TracedWord, name: str) -> int:
    return REGISTRY[word.word >> 24].operands(word.word)[name]


def _may_write(word: TracedWord, number: int) -> bool:
    """False when the fields of the word exclude that it writes the LReg."""
    cls = REGISTRY[word.word >> 24]
    facts: Sfpu = cls.facts
    if facts.writes in (Writes.NONE, Writes.SEVERAL):
        return facts.writes == Writes.SEVERAL
    fields = cls.operands(word.word)
    named = [fields[name] for name in ("lreg_dest", "lreg_ind", "config_dest") if name in fields]
    return bool(word.word & facts.indirect_dest) or number in named
