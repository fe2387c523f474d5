"""Status numbers of compiled code, and the sentence, category and rule id that each one stands for.

Compiled code returns numbers only: 0 = done; > 0 = blocked on that condition, nothing changed, try
again; < 0 = error, nothing more may run.  Every number is handed out here, beside its sentence, so
that no second table of messages exists.  What a sentence names, as in "row {row} of {rows}", stands
in `s.detail` in the order of the names (`quirks.refuse(s, RULE, row=row, rows=rows)`).
"""

import string
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

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


RESERVED_BITS = error(
    "ENC-RESERVED", UB, "reserved bits {bits:#010x} are set in the encoding", "check the encoder"
)
UNKNOWN_OPCODE = error(
    "ENC-OPCODE", UB, "opcode {opcode:#04x} is no Tensix instruction of Blackhole"
)
NOT_EXECUTED = error(
    "ISA-REFUSED",
    MISSING,
    "this instruction is refused",
    "nothing says what it does; bhemu isa lists what is modelled",
)
