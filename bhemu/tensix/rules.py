"""Rules: status numbers of compiled code, their sentences, and tolerated undefined behaviour."""

import string
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.jit.subset import by_name, njit

# Status numbers of compiled code, and the sentence, category and rule id that each one stands for.
#
# Compiled code returns numbers only: 0 = done; > 0 = blocked on that condition, nothing changed,
# try again; < 0 = error, nothing more may run.  Every number is registered here with its sentence,
# so there is no second table of messages.  The values that a sentence names, as in "row {row} of
# {rows}", are in `s.detail` in the order of the names (`refuse(s, RULE, row=row, rows=rows)`).

DONE = 0
IDLE = -2  # the thread has no word to execute

UB = "UndefinedBehavior"
NCB = "NonContractualBehavior"
UNSUPPORTED = "Unsupported"
UNIMPLEMENTED = "Unimplemented"
MISSING = "MissingSpecification"
GUEST = "GuestFault"


@dataclass(frozen=True)
class Condition:
    """One blocked-on condition (number > 0): what the thread or core waits for, in words."""

    number: int
    text: str


@dataclass(frozen=True)
class Rule:
    """One error (number < 0): rule id, category, sentence, hint, and the order of `s.detail`."""

    number: int
    rule: str
    category: str
    text: str
    hint: str
    names: tuple[str, ...]

    def details(self, values: Iterable[int]) -> dict[str, int]:
        """The words of `s.detail` by the names of the sentence."""
        return dict(zip(self.names, (int(value) for value in values), strict=False))

    def pattern(self, mark: str = "<{}>") -> str:
        """The sentence for readers: the name of each of its numbers, marked, in place of it."""
        parts = string.Formatter().parse(self.text)
        return "".join(text + (mark.format(name) if name else "") for text, name, _, _ in parts)

    def sentence(self, values: Iterable[int]) -> str:
        """The sentence with the words of `s.detail`."""
        return self.text.format(**self.details(values))


CONDITIONS: dict[int, Condition] = {}
RULES: dict[int, Rule] = {}
_FIRST_CONDITION = 10_000  # above the stop reasons of the loop
_FIRST_RULE = 10
_RANGE = 1 << 29  # below the marks that units use inside (lanes.GO)


def _stable(text: str) -> int:
    """A number that depends on the text alone.

    Compiled code holds these numbers as constants and outlives the process in the cache, so they
    must not depend on the order in which modules are imported.
    """
    return zlib.crc32(text.encode()) % _RANGE


def condition(text: str) -> int:
    """Register a blocked-on condition; returns its positive number."""
    number = _FIRST_CONDITION + _stable(text)
    assert number not in CONDITIONS, text
    CONDITIONS[number] = Condition(number, text)
    return number


def error(
    rule: str, category: str, text: str, hint: str = "", names: tuple[str, ...] | None = None
) -> int:
    """Register an error sentence under a unique rule id; returns its negative number.

    `names`: those of the words of `s.detail`, when these are not what the sentence names, sorted.
    """
    number = -_FIRST_RULE - _stable(rule)
    assert number not in RULES, f"{rule} is registered twice, or collides with another rule id"
    named = {name for _, name, _, _ in string.Formatter().parse(text) if name}
    RULES[number] = Rule(number, rule, category, text, hint, names or tuple(sorted(named)))
    return number


RESERVED_BITS = error("ENC-RESERVED", UB, "reserved bits {bits:#010x} are set in the encoding", "check the encoder")  # fmt: skip
UNKNOWN_OPCODE = error("ENC-OPCODE", UB, "opcode {opcode:#04x} is no Tensix instruction of Blackhole")  # fmt: skip
NOT_EXECUTED = error("ISA-REFUSED", MISSING, "this instruction is refused", "nothing says what it does; bhemu isa lists what is modelled")  # fmt: skip


# Tolerated undefined behaviour, and the rules on which the references disagree.
#
# `ub_mode` of the state record: 0 = every violated rule is an error, 1 = warn, 2 = silicon.  In
# modes 1 and 2 the rule is counted and the instruction goes on as the ISA text says (`undefined`).
# A rule for which the ISA says nothing returns its number directly and is an error in every mode.
# Where silicon differs from the golden model, which is followed, the rule is counted and never an
# error (`note_rule`).
#
# `reference`: 0 = ttsim, 1 = llk, 2 = isa.  Where the golden tests of tt-llk contradict ttsim,
# `llk` follows the tests: MOVB2D with ALU_ACC_CTRL_Fp32_enabled writes 32-bit Dst datums, and
# SFPLOAD and SFPSTORE mode 2 on a 32-bit Dst use the high half of the datum.  `isa` follows the
# ISA text in the rows that edge masks apply to (pack/addresses.py), and ttsim in everything else.

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
    """`rule` (a number of `error`); the values that its sentence names are kept."""
    return rule


@by_name(note)
def undefined(s: Any, rule: Any) -> Any:
    """As `refuse` when undefined behaviour is an error, else 0 after counting the rule.

    Only for rules where the ISA text says what the silicon does; call it once per instruction and
    rule, before any effect.
    """
    if s.ub_mode[0] == UB_ERROR:
        return np.int64(rule)
    count(s, rule)
    return np.int64(0)


@by_name(note)
def undefined_unless_llk(s: Any, rule: Any) -> Any:
    """As `undefined`, but counted and 0 with reference llk too: production kernels do this."""
    if s.ub_mode[0] == UB_ERROR and s.reference[0] != REFERENCE_LLK:
        return np.int64(rule)
    count(s, rule)
    return np.int64(0)


@by_name(note)
def note_rule(s: Any, rule: Any) -> None:
    """Count `rule`, in every mode: the golden model is followed, silicon differs."""
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
