"""Tolerated undefined behaviour, and the rules on which the references disagree.

`ub_mode` of the state record: 0 = every violated rule is an error, 1 = warn, 2 = silicon; in the
last two the rule is counted and the instruction goes on as the ISA text says.  A rule for which the
ISA says nothing returns its number directly and stays an error in every mode.  Where silicon has
another way than the golden model, whose way is taken, the rule is `noted`: counted, never an error.

`reference`: 0 = ttsim, 1 = llk, 2 = isa.  Where the golden tests of tt-llk contradict ttsim, `llk`
follows the tests: MOVB2D with ALU_ACC_CTRL_Fp32_enabled writes 32-bit Dst datums, and SFPLOAD and
SFPSTORE mode 2 on a 32-bit Dst use the high half of the datum.  `isa` follows the ISA text in the
rows that edge masks apply to (pack/edge_mask.py), and ttsim in everything else.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import by_name, njit

RULE_SLOTS = 256  # rules that can be counted at once
UB_ERROR, UB_WARN, UB_SILICON = 0, 1, 2
REFERENCE_TTSIM, REFERENCE_LLK, REFERENCE_ISA = 0, 1, 2


@njit
def count(s: Any, rule: Any) -> None:
    """Count a tolerated rule: `rule_number` and `rule_count` are a small hash table."""
    slot = rule & (RULE_SLOTS - 1)
    for _ in range(RULE_SLOTS):
        if s.rule_number[slot] == rule or s.rule_number[slot] == 0:
            s.rule_number[slot] = rule
            s.rule_count[slot] += 1
            return
        slot = (slot + 1) & (RULE_SLOTS - 1)


def note(s: Any, i: Any, value: Any) -> None:
    """Keep one of the values that a sentence names."""
    s.detail[i] = value


@by_name(note)
def refuse(s: Any, rule: Any) -> Any:
    """`rule` (a status.error number), with the values that its sentence names noted."""
    return rule


@by_name(note)
def violated(s: Any, rule: Any) -> Any:
    """As `refuse` when undefined behaviour is an error, else 0 after counting the rule.

    Only for rules where the ISA text says what the silicon does; call it once per instruction and
    rule, before any effect.
    """
    if s.ub_mode[0] == UB_ERROR:
        return np.int64(rule)
    count(s, rule)
    return np.int64(0)


@by_name(note)
def excused(s: Any, rule: Any) -> Any:
    """As `violated`, but counted and 0 with reference llk too: production kernels do this."""
    if s.ub_mode[0] == UB_ERROR and s.reference[0] != REFERENCE_LLK:
        return np.int64(rule)
    count(s, rule)
    return np.int64(0)


@by_name(note)
def noted(s: Any, rule: Any) -> None:
    """Count `rule`, in every mode: here the golden model's way was taken, silicon has another."""
    count(s, rule)


@njit
def follows_llk(s: Any) -> Any:
    """True when tt-llk's golden tests decide where they contradict ttsim."""
    return s.reference[0] == REFERENCE_LLK


@njit
def follows_isa(s: Any) -> Any:
    """True when the ISA text decides where it contradicts ttsim."""
    return s.reference[0] == REFERENCE_ISA


def counted(s: Any) -> dict[int, int]:
    """How often each rule number was tolerated (Python side)."""
    return {
        int(number): int(times)
        for number, times in zip(s.rule_number, s.rule_count, strict=True)
        if number
    }
