"""Breakpoints on Tensix words: the thread stops before a word of which some bits are as asked.

A row of `s.word_break` is (mask, value, threads as a mask, number). A thread that stopped at a word
does not stop at it again: `s.word_break_seen` tells how many it had executed then.
"""

from typing import Any

from bhemu.jit.subset import njit

MASK, VALUE, WHOSE, NUMBER = range(4)  # columns


@njit
def stands(s: Any, t: Any, word: Any) -> Any:
    """True when thread `t` must stop before `word`, which is about to execute."""
    if s.word_break_seen[t] == s.executed[t] + 1:
        return False
    for i in range(s.word_break_count[0]):
        differs = (s.word_break[i, VALUE] ^ word) & s.word_break[i, MASK]
        if differs == 0 and (s.word_break[i, WHOSE] >> t) & 1:
            s.word_break_seen[t] = s.executed[t] + 1
            s.word_break_hit[0] = s.word_break[i, NUMBER]
            return True
    return False
