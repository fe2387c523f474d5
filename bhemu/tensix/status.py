"""Status numbers of compiled code, and the sentence, category and rule id that each one stands for.

Compiled code returns numbers only: 0 = done; > 0 = blocked on that condition, nothing changed, try
again; < 0 = error, nothing more may run.  Every number is handed out here, beside its sentence, so
that no second table of messages exists.  `{0}` .. `{3}` in a sentence are the words of `s.detail`.
"""

import zlib
from dataclasses import dataclass

DONE = 0
ESCAPE = -1  # the opcode has no compiled entry yet: the caller provides one and runs on
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
    """One error (number < 0): rule id, category, sentence, and the ISA or simulator source."""

    number: int
    rule: str
    category: str
    text: str
    hint: str


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


def error(rule: str, category: str, text: str, hint: str = "") -> int:
    """Register an error sentence under a unique rule id; returns its negative number."""
    number = -_FIRST_RULE - _stable(rule)
    assert number not in RULES, f"{rule} is registered twice, or collides with another rule id"
    RULES[number] = Rule(number, rule, category, text, hint)
    return number


RESERVED_BITS = error(
    "ENC-RESERVED", UB, "reserved bits {0:#010x} are set in the encoding", "check the encoder"
)
UNKNOWN_OPCODE = error("ENC-OPCODE", UB, "opcode {0:#04x} is no Tensix instruction of Blackhole")
NOT_EXECUTED = error(
    "ISA-REFUSED",
    MISSING,
    "this instruction is refused",
    "nothing says what it does; bhemu isa lists what is modelled",
)
