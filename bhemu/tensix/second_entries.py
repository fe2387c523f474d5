"""Second entries: parts of an instruction that are compiled only when a program uses them.

An instruction with many modes keeps the common ones in its own entry and hands the word to second
entries for the others.  `s.second` is the pointer table; compile.py fills it like that of the
opcodes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.bits import Word
from bhemu.jit.calls import call_entry
from bhemu.jit.subset import JIT, njit
from bhemu.tensix.state import SECOND_SLOTS

# Slots; their numbers are part of compiled code.
UNPACK_STAGES, PACK_STAGES, UNPACK_ZEROS, PACK_ACCUMULATE, UNPACK_DATUM_STREAM = range(5)
UNPACK_EXPONENTS, UNPACK_DST_16, FPU_STOCHASTIC = 5, 6, 7
NAMES = {
    UNPACK_STAGES: "UNPACR, stage by stage",
    PACK_STAGES: "PACR, stage by stage",
    UNPACK_ZEROS: "UNPACR, zeros",
    PACK_ACCUMULATE: "PACR, L1 accumulation",
    UNPACK_DATUM_STREAM: "UNPACR, datum by datum",
    UNPACK_EXPONENTS: "UNPACR, 5-bit exponents",
    UNPACK_DST_16: "UNPACR, 16-bit datums to Dst",
    FPU_STOCHASTIC: "matrix unit, stochastic rounding",
}
ENTRIES: dict[int, tuple[Callable[..., Any], type[Word]]] = {}


def second_entry(slot: int, function: Callable[..., Any], layout: type[Word]) -> Any:
    """Declare `function(s, t, f) -> status` for `slot`; returns what others call instead.

    That takes the word whose Fields, as `layout` says, `f` will be: (s, t, word) -> status.
    """
    assert slot not in ENTRIES, slot
    assert slot < SECOND_SLOTS, slot
    ENTRIES[slot] = function, layout
    if not JIT:
        return lambda s, t, word: function(s, t, layout.decoded(int(word)))

    @njit
    def call(s: Any, t: Any, word: Any) -> Any:
        return call_entry(s.second[slot], s, t, np.uint32(word))

    return call
