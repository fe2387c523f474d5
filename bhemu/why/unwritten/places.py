"""Where in a tile's record the places are that a word is declared to read and write."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bhemu.tensix import spaces
from bhemu.tensix.insn import decode
from bhemu.tensix.spaces import Term, Values
from bhemu.tensix.state import DTYPE, OFFSET, THREADS
from bhemu.why.order.record import TOUCHED

Range = tuple[int, int, int, int]  # place, bytes, bytes between threads, 1 = nothing else is left

_APART = (spaces.DST, spaces.L1, spaces.CFG)  # a word's place says too little: words.py
_BY_PLACE = {  # members, whether each thread has its own
    spaces.GPR: (("gpr",), True),
    spaces.LREG: (("lreg",), False),
    spaces.THREAD_CFG: (("thread_cfg",), True),
    spaces.ADC: (("adc", "adc_cr"), True),
    spaces.SEM: (("sem", "sem_max"), False),
    spaces.SRC: (("src",), False),
}
_RWC = ("rwc", "rwc_cr")
_WRITABLE = 8  # LRegs
_WHOLE = (spaces.GPR, spaces.LREG)  # whose places a word writes whole


@lru_cache(1 << 14)
def touched(word: int) -> npt.NDArray[np.int64]:
    """[reads, writes][TOUCHED][4]: a Range each, 0 bytes behind the last one."""
    found = np.zeros((2, TOUCHED, 4), np.int64)
    cls = decode(word)
    if cls is not None:
        values = cls.operands(word)
        for way, clause in enumerate((cls.reads, cls.writes)):
            ranges = {one for term in clause.of(values) for one in _ranges(term, values)}
            for k, one in enumerate(_joined(sorted(ranges))[:TOUCHED]):
                found[way, k] = one
    return found


def _joined(ranges: list[Range]) -> list[Range]:
    """The same, those that follow one another as one."""
    found = ranges[:1]
    for one in ranges[1:]:
        place, size, *alike = found[-1]
        if place + size == one[0] and alike == [*one[2:]]:
            found[-1] = place, size + one[1], one[2], one[3]
        else:
            found.append(one)
    return found


def _ranges(term: Term, values: Values) -> Iterator[Range]:
    if term.space in _APART or term.own or term.awaited:
        return
    if term.space not in _BY_PLACE:
        for name in term.space.members:
            own = name in _RWC
            size = DTYPE[name].itemsize // (THREADS if own else 1)
            yield OFFSET[name], size, size if own else 0, 0
        return
    members, own = _BY_PLACE[term.space]
    for name in members:
        yield from _parts(name, term, values, own=own)


def _parts(name: str, term: Term, values: Values, *, own: bool) -> Iterator[Range]:
    """Of a member that has a part for each place."""
    shape = DTYPE[name].shape[1:] if own else DTYPE[name].shape
    of_thread = DTYPE[name].itemsize // THREADS if own else 0
    part = DTYPE[name].base.itemsize * int(np.prod(shape[1:]))
    places = term.places(values)
    if term.space == spaces.THREAD_CFG and term.fields:
        places = frozenset(bit // 32 for bit in places or ())
    most = _WRITABLE if term.space == spaces.LREG else shape[0]
    whole = term.space in _WHOLE and not (term.keeps and spaces.value(term.keeps, values))
    for place in range(most) if places is None else sorted(places):
        if place < most:
            yield OFFSET[name] + part * place, part, of_thread, int(whole)
