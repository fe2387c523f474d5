"""What the debug daisychain presents: 128 bits for each chain and signal, in words of 32.

Sources: DebugDaisychain (Wormhole ISA) for where the cores stand; tt-exalens for the positions of
RWC and ADC counters on Blackhole. Nothing is on its way in a pipeline here: what a core fetches,
decodes and retires next is one and the same, and the matrix unit's pipeline is empty.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.state import THREADS

UNKNOWN = -1
_CORES, _RWC, _ADC = 7, 3, 6  # chains
_FIRST, _LAST, _NCRISC = 10, 17, 24  # group A of brisc, group B of trisc2, group A of ncrisc
_SOURCES, _DST, _FIDELITY = 2, 3, 4  # signals of the RWC chain
_ADCS = 6  # unpacker 0, unpacker 1 of T0, packer of T2; each with two channels
_PC_BITS = (1 << 30) - 1
# First bits of [SrcA SrcB][thread][counter, carriage-return value] and of [thread][...] of Dst
_SOURCE_AT = (((0, 10), (24, 30), (40, 50)), ((60, 70), (84, 90), (100, 110)))
_DST_AT = ((120 - 128, 2), (12, 22), (32, 42))
_ADC_AT = ((0, 18), (64, 80), (96, 104), (112, 120))  # [X Y Z W]
_FIDELITY_AT, _EMPTY_AT = 60, 73
_EMPTY = 7  # no thread has an instruction in a buffer


@njit
def _in_word(value: Any, at: Any, part: Any) -> Any:
    """What a field whose first bit is `at` adds to word `part`."""
    shift = at - 32 * part
    if shift <= -32 or shift >= 32:
        return np.int64(0)
    return (value << shift if shift >= 0 else value >> -shift) & 0xFFFFFFFF


@njit
def _core(s: Any, c: Any, second_group: Any, part: Any) -> Any:
    """Where core `c` stands: groups A and B."""
    pc = np.int64(s.pc[c])
    if second_group:
        return np.int64((0, pc & _PC_BITS | 1 << 31, 0, 1 << 7)[part])
    return np.int64((pc & 0x7FFFFFFF | 1 << 31, 0, pc & _PC_BITS, 0)[part])


@njit
def _rwc(s: Any, signal: Any, part: Any) -> Any:
    """The row counters of the threads."""
    word = np.int64(0)
    for t in range(THREADS):
        if signal == _SOURCES:
            for i in range(2):
                word |= _in_word(s.rwc[t, i], _SOURCE_AT[i][t][0], part)
                word |= _in_word(s.rwc_cr[t, i], _SOURCE_AT[i][t][1], part)
        elif signal == _DST:
            word |= _in_word(s.rwc[t, 2], _DST_AT[t][0], part)
            word |= _in_word(s.rwc_cr[t, 2], _DST_AT[t][1], part)
        else:
            word |= _in_word(s.rwc[t, 3] & 3, _FIDELITY_AT + 2 * t, part)
    if signal == _SOURCES:
        word |= _in_word(s.rwc[0, 2], _DST_AT[0][0] + 128, part)
    return word | _in_word(np.int64(_EMPTY), _EMPTY_AT, part) if signal == _FIDELITY else word


@njit
def _adc(s: Any, signal: Any, part: Any) -> Any:
    """The address counters of an unpacker for T0, or of the packer for T2."""
    unit, channel, word = signal >> 1, signal & 1, np.int64(0)
    t = 2 if unit == 2 else 0
    for i in range(4):
        word |= _in_word(s.adc[t, unit, channel, i], _ADC_AT[i][0], part)
        word |= _in_word(s.adc_cr[t, unit, channel, i], _ADC_AT[i][1], part)
    return word


@njit
def present(s: Any, chain: Any, signal: Any, part: Any) -> Any:
    """Word `part` (0-3) of the signals, or UNKNOWN."""
    if chain == _CORES and _FIRST <= signal <= _LAST:
        return _core(s, (signal - _FIRST) >> 1, signal & 1, part)
    if chain == _CORES and signal >> 1 == _NCRISC >> 1:
        return _core(s, np.int64(4), signal & 1, part)
    if chain == _RWC and _SOURCES <= signal <= _FIDELITY:
        return _rwc(s, signal, part)
    if chain == _ADC and signal < _ADCS:
        return _adc(s, signal, part)
    return np.int64(UNKNOWN)
