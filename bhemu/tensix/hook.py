"""Words that are told to compiled functions of a user before they execute.

An entry stands in the table for the opcodes that are asked for. It calls the functions whose rule
the word matches, then the entry that stood there.
"""

from typing import Any

import numpy as np

from bhemu.jit.build import function
from bhemu.jit.intrinsics import call_access, call_entry, record_at
from bhemu.jit.record import Member, Record, layout
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import ENTRY, THREADS
from bhemu.tensix.thread import taker

RULES = 32
MASK, VALUE, WHOSE, AT = range(4)  # columns of a rule; WHOSE: threads as a mask, AT: see plugin.py
PLACE = 257  # of `profile_table`: that of a part that is wrapped while time is profiled

MEMBERS = (
    Member("entry", np.uint64, (256,), "what executes the words of an opcode"),
    Member("rules", np.int64, (1,), "how many"),
    Member("rule", np.int64, (RULES, 4), "bits that count, their values, threads, arrays"),
    Member("call", np.uint64, (RULES,), "ACCESS entry of each rule's function"),
    Member("told", np.int64, (THREADS,), "the word that was told and waits, -1 = none"),
    Member("failed", np.uint64, (1,), "ENTRY that is called when a function has failed"),
    Member("failing", np.int64, (1,), "the rule of that function"),
    Member("detail", np.int64, (6,), "the tile's, meanwhile"),
)
HOOK_DTYPE = layout(MEMBERS)
_at: Any = record_at(HOOK_DTYPE)


class HookRecord(Record):
    """What is asked of the words of one tile."""

    MEMBERS = MEMBERS
    DTYPE = HOOK_DTYPE


@njit
def _tell(s: Any, h: Any, t: Any, word: Any) -> Any:
    """Call the functions of a word; False where one has failed."""
    for i in range(h.rules[0]):
        if h.rule[i, WHOSE] >> t & 1 == 0 or (word ^ h.rule[i, VALUE]) & h.rule[i, MASK]:
            continue
        h.detail[:] = s.detail
        status = call_access(h.call[i], s, h.rule[i, AT], t, word, np.int64(0))
        s.detail[:] = h.detail
        if status != DONE:
            h.failing[0] = i
            return False
    return True


def hooked_word(s: Any, t: Any, word: Any) -> Any:
    """ENTRY: tell a word of thread `t` once, before the first attempt; then execute it."""
    h = _at(s.profile_table[PLACE])
    w = np.int64(word)
    if t >= 0 and h.told[t] != w:
        h.told[t] = w
        if not _tell(s, h, t, w):
            return call_entry(h.failed[0], s, t, word)
    status = call_entry(h.entry[taker(s, w >> 24)], s, t, word)
    if t >= 0 and status == DONE:
        h.told[t] = -1
    return status


WORD = function(ENTRY, hooked_word)
