"""Where bhemu and ttsim are known to disagree: what, whom bhemu follows, and why.

Everything that is not in this table counts as a difference. Each row has a program that shows it
(instructions of thread 1 in the state that units/accept.py prepares).
"""

import re
from dataclasses import dataclass
from typing import Any, Protocol

from bhemu.oracle.libttsim import Outcome
from random_programs.plan import Step, step

ALWAYS, LLK, SILICON = "always", 'reference = "llk"', 'ub = "silicon"'


class _Pair(Protocol):
    @property
    def bhemu(self) -> Outcome: ...
    @property
    def ttsim(self) -> Outcome: ...


@dataclass(frozen=True)
class Divergence:
    """One known disagreement.

    `when` says under which setting of bhemu it shows. `example` is a program of thread 1; an
    instruction named in `instructions` is the first after which the models differ, and the runs
    end as (bhemu's, ttsim's) kind of `ends`; `says` is a pattern of what ttsim then prints.
    """

    id: str
    when: str
    what: str
    follows: str
    why: str
    instructions: tuple[str, ...]
    ends: tuple[str, str]
    example: tuple[tuple[str, dict[str, int]], ...]
    says: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """Options of Tile under which it shows."""
        return {LLK: {"reference": "llk"}, SILICON: {"ub": "silicon"}}.get(self.when, {})

    def steps(self) -> tuple[Step, ...]:
        """The example as steps."""
        return tuple(step(name, "", "", **fields) for name, fields in self.example)


_ONES = (
    ("SETDMAREG", {"reg_index_16b": 8, "payload_sig_sel": 0x3FFF, "payload_sig_sel_size": 3}),
    ("SETDMAREG", {"reg_index_16b": 9, "payload_sig_sel": 0x3FFF, "payload_sig_sel_size": 3}),
)

TABLE: tuple[Divergence, ...] = (
    Divergence(
        "CONFIG-UNUSED-BITS",
        ALWAYS,
        "bits of a Config word that belong to no field: bhemu keeps what was written, ttsim reads"
        " them as 0",
        "ISA text (BackendConfiguration: Config is an array of 32-bit words)",
        "no text says that a write drops bits",
        ("WRCFG", "RMWCIB0", "RMWCIB1", "RMWCIB2", "RMWCIB3", "CFGSHIFTMASK"),
        ("done", "done"),
        (
            *_ONES,
            ("WRCFG", {"cfg_reg": 18, "gpr_address": 4}),
            ("RDCFG", {"cfg_reg": 18, "gpr_address": 20}),
        ),
    ),
    Divergence(
        "WAIT-LATCH",
        ALWAYS,
        "SEMWAIT and STALLWAIT that hold some classes of instructions: bhemu lets the others pass,"
        " ttsim holds the whole thread",
        "ISA text (STALLWAIT, Blackhole: the wait is latched at the gate)",
        "a thread that posts its own semaphore behind the wait goes on, in ttsim it never ends",
        ("SEMWAIT", "STALLWAIT", "SEMPOST"),
        ("done", "unfinished"),
        (
            ("SEMINIT", {"sem_sel": 2, "max_value": 3}),
            ("SEMWAIT", {"sem_sel": 2, "wait_sem_cond": 1, "stall_res": 64}),
            ("SEMPOST", {"sem_sel": 2}),
        ),
    ),
    Divergence(
        "STALLWAIT-C12",
        ALWAYS,
        "STALLWAIT with condition C12 (configuration unit busy): bhemu waits for it, ttsim calls"
        " bit 12 an unused bit of the encoding",
        "ISA text (STALLWAIT, Blackhole: conditions C0 to C12)",
        "the condition has a name and a meaning",
        ("STALLWAIT",),
        ("done", "error"),
        (("STALLWAIT", {"wait_res": 0x1000, "stall_res": 1}),),
        r"stallwait: invalid opcode bits",
    ),
    Divergence(
        "STOCH-RND-BIT-3",
        ALWAYS,
        "SFP_STOCH_RND modes 8 to 11, 14 and 15: bhemu does what modes 0 to 3, 6 and 7 do, ttsim"
        " calls them undefined",
        "ISA text (SFPSTOCHRND, Blackhole: the mode has three bits, bit 3 is UseImm5)",
        "only modes 4 and 5 shift, so only they read UseImm5; tt-llk's exponential uses mode 14",
        ("SFP_STOCH_RND",),
        ("done", "error"),
        (("SFP_STOCH_RND", {"instr_mod1": 14, "lreg_dest": 1}),),
        r"sfp_stoch_rnd: instr_mod1=(8|9|10|11|14|15)\b",
    ),
    Divergence(
        "MOVB2D-WIDE",
        LLK,
        "MOVB2D with ALU_ACC_CTRL_Fp32_enabled: bhemu writes a 32-bit datum, ttsim a 16-bit one"
        " unless the format is tf32",
        "tt-llk's own tests (row and scalar broadcast with a 32-bit Dst)",
        "silicon is presumed to agree with the suite; the default reference is ttsim",
        ("MOVB2D",),
        ("done", "done"),
        (
            ("RMWCIB3", {"cfg_reg_addr": 1, "mask": 0x20, "data": 0x20}),
            ("MOVB2D", {"movb2d_instr_mod": 2, "dst": 16}),
        ),
    ),
    Divergence(
        "SFPU-BF16-WIDE",
        LLK,
        "SFPLOAD and SFPSTORE mode 2 with ALU_ACC_CTRL_SFPU_Fp32_enabled: bhemu uses the high half"
        " of the 32-bit datum, ttsim a 16-bit datum",
        "tt-llk's own tests (reduce on the vector unit with a 32-bit Dst)",
        "silicon is presumed to agree with the suite; the default reference is ttsim",
        ("SFPLOAD", "SFPSTORE"),
        ("done", "done"),
        (
            ("RMWCIB3", {"cfg_reg_addr": 1, "mask": 0x40, "data": 0x40}),
            ("SFPLOAD", {"lreg_ind": 1, "instr_mod0": 2, "dest_reg_addr": 16}),
        ),
    ),
    Divergence(
        "SEMPOST-AT-MAX",
        SILICON,
        "SEMPOST of a semaphore at Max: bhemu counts on up to 15, ttsim stops",
        "ISA text (SEMPOST, Blackhole)",
        'Max is only a condition of SEMWAIT; with the default ub = "error" both stop',
        ("SEMPOST",),
        ("done", "error"),
        (("SEMPOST", {"sem_sel": 1}),) * 3,
    ),
    Divergence(
        "SEMGET-AT-ZERO",
        SILICON,
        "SEMGET of a semaphore that is 0: bhemu leaves it 0, ttsim stops",
        "ISA text (SEMGET, Blackhole)",
        'the instruction saturates; with the default ub = "error" both stop',
        ("SEMGET",),
        ("done", "error"),
        (("SEMGET", {"sem_sel": 1}),) * 2,
    ),
)


def match(pair: _Pair, first: str, reference: str) -> Divergence | None:
    """The row that explains a difference which begins at instruction `first`, else None."""
    allowed = (ALWAYS, LLK) if reference == "llk" else (ALWAYS,)
    ends = (pair.bhemu.kind, pair.ttsim.kind)
    for one in TABLE:
        shown = one.when in allowed and first in one.instructions and ends == one.ends
        if shown and re.search(one.says, pair.ttsim.text):
            return one
    return None
