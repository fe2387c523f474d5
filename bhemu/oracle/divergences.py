"""Where bhemu and ttsim are known to disagree: what, whom bhemu follows, and why.

Everything that is not in this table counts as a difference.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from bhemu.oracle.case import Outcome


class _Pair(Protocol):
    @property
    def bhemu(self) -> Outcome: ...
    @property
    def ttsim(self) -> Outcome: ...


@dataclass(frozen=True)
class Divergence:
    """One known disagreement.

    `follows` names the source that bhemu follows. `ttsim_error` and `bhemu_error` are patterns of
    the error that one of them reports where the other goes on ("" when both finish).
    """

    id: str
    what: str
    follows: str
    why: str
    ttsim_error: str = ""
    bhemu_error: str = ""


TABLE: tuple[Divergence, ...] = (
    Divergence(
        "SEMPOST-AT-MAX",
        "SEMPOST of a semaphore that is at Max: bhemu counts on up to 15, ttsim stops with"
        " NonContractualBehavior",
        "ISA text (SEMPOST, Blackhole)",
        "Max is only the condition of SEMWAIT; the instruction saturates at 15",
        ttsim_error=r"tensix_execute_SEMPOST",
    ),
    Divergence(
        "SEMGET-AT-ZERO",
        "SEMGET of a semaphore that is 0: bhemu leaves it 0, ttsim stops with"
        " NonContractualBehavior",
        "ISA text (SEMGET, Blackhole)",
        "the instruction saturates at 0",
        ttsim_error=r"tensix_execute_SEMGET",
    ),
)


def match(pair: _Pair) -> Divergence | None:
    """The known divergence that explains a pair of outcomes, else None."""
    for one in TABLE:
        if _explains(one.ttsim_error, pair.ttsim) and pair.bhemu.done:
            return one
        if _explains(one.bhemu_error, pair.bhemu) and pair.ttsim.done:
            return one
    return None


def _explains(pattern: str, outcome: Outcome) -> bool:
    found = re.search(pattern, outcome.text, re.IGNORECASE) if pattern else None
    return outcome.kind == "error" and found is not None
