"""Status numbers of compiled code: rules with their sentences, reasons to stop, time slices."""

import string
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.jit.intrinsics import ticks
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


def unmodelled(word: str, field: str, why: str) -> int:
    """The rule of a field of Config that must be 0 for a word."""
    text = f"{word} with {field}={{value:#x}} is not modelled"
    return error(f"{word}-{field}", UNSUPPORTED, text, why)


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


# Why compiled code stops or returns to Python: what the user asked for, a limit, its time slice.
#
# Whatever a program does, every so many words and instructions (a look) compiled code compares the
# processor's time with the end of its time slice. Where that is over it returns, in the middle of a
# round if need be: the position is in the record, and the next call goes on there.


# Reasons to stop that are no error: positive statuses of `run`, outside the condition numbers.
STOP_STEP = 1001  # an executed_limit or retired_limit was reached
STOP_BREAKPOINT = 1002
STOP_UNTIL = 1003
STOP_LIMIT = 1004
STOP_IDLE = 1005
STOP_DEADLOCK = 1006
STOP_ASSERT = 1007
STOP_LOG = 1008  # the trace ring is nearly full
STOP_ENGINE = 1009  # the engine stopped by itself: detail[0] = its error, detail[1] = core
STOP_FLUSH = 1010  # translated code of detail[0] must be dropped before it runs on
STOP_CODE_PAGE = 1011  # a page is executed for the first time: detail[0] = core
STOP_QUIET = 1012  # no Tensix word for many rounds: can anything still move?
STOP_WATCH = 1013  # what a watchpoint watches has changed
STOP_TIME = 1014  # the time slice is over, or a slice of a core's turn: nothing shows of it

LOOK = 1  # attention: the cores stop before their next instruction
TIME_SLICE = 20_000_000  # ticks: 4 to 20 ms
LOOK_EVERY = 64  # words, the slowest of which takes some 50 us
INSTRUCTIONS = 128  # of a core, between looks: so many times the words
_ROUND = 64  # instructions and words of a round that count as one word


@njit
def stop(s: Any, t: Any, status: Any) -> None:
    """Stop everything at thread `t`."""
    s.status[0] = status
    s.status_thread[0] = t
    s.status_core[0] = -1
    s.attention[0] |= 1


@njit
def clock_reached(s: Any) -> Any:
    """The clock, with what the open turn has retired; an access that lets threads run has not."""
    if s.turn_open[0] == 0:
        return s.clock[0]
    c = s.agent[0]
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c] - 1


@njit
def open_time_slice(s: Any) -> None:
    """Compiled code was called: it may run for TIME_SLICE from now on."""
    s.leave_at[0] = ticks() + s.time_slice[0]
    s.look_left[0] = s.look_every[0]


@njit
def time_is_over(s: Any) -> Any:
    """True when compiled code must return, else the next look is as far away as can be.

    Without an open time slice (a test, or a host, that lets threads run) it need not.
    """
    s.look_left[0] = s.look_every[0]
    return s.leave_at[0] != 0 and ticks() >= s.leave_at[0]


@njit
def close_time_slice(s: Any) -> None:
    """Compiled code returns; nothing remains of when it did."""
    s.leave_at[0] = s.look_left[0] = 0


@njit
def round_passed(s: Any, progress: Any) -> None:
    """A round counts as some words."""
    s.look_left[0] -= 1 + progress // _ROUND


@njit
def near_limit(s: Any) -> None:
    """Let the next look be no later than the word that reaches the clock limit."""
    if s.limit[0] >= 0:
        s.look_left[0] = min(s.look_left[0], s.limit[0] - clock_reached(s))


@njit
def leaves(s: Any) -> Any:
    """A look is due while threads run: True when they must stop here, as `s.status` says."""
    status = np.int64(0)
    if s.limit[0] >= 0 and clock_reached(s) >= s.limit[0]:
        status = np.int64(STOP_LIMIT)
    elif time_is_over(s):
        status = np.int64(STOP_TIME)
    near_limit(s)
    if status == 0:
        return False
    s.status[0] = status
    if s.turn_open[0]:
        s.attention[0] |= 1  # of the core whose access lets them run
    return True


@njit
def cut_turn(s: Any) -> None:
    """Words within an access of a core brought its clock limit nearer."""
    if s.limit[0] < 0 or s.turn_open[0] == 0:
        return
    c = s.agent[0]
    over = s.fuel[c] - (s.limit[0] - clock_reached(s) - 1)
    if over > 0:
        s.fuel[c] -= over
        s.fuel_given[c] -= over
