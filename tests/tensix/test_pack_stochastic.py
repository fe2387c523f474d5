"""PACR with stochastic rounding switched on: done where nothing rounds, refused elsewhere.

What rounds: the tables of FormatConversion (Packers, Wormhole ISA). The early conversion is that of
the gasket, the late one that of the packer (tt-llk, StochRndType).
"""

from dataclasses import replace

import pytest
from pack_model import BFP, BFP_A, PAIRS, RAW, ROUNDED, Pack
from pack_runner import execute, setup
from test_pack import step
from test_pack_rules import change

from bhemu.machine import sentences

FP32, INT32, INT16 = 0, 8, 9
MODES = [
    *(Pack(wide=w, fmt=f, out=o) for w, f, o in PAIRS),
    *(Pack(wide=w, fmt=f, out=o, round_fp16=1) for w, f, o in ROUNDED),
    *(Pack(wide=w, fmt=f, out=o, raw=1) for w, f, o in RAW),
]


def identity(p: Pack) -> bool:
    """Whether the table of early conversions says identity, bitcast or truncation."""
    if p.fmt == INT16:  # from INT32 it names no way
        return not p.wide
    return bool(p.raw) or (p.wide == 1 and p.fmt in (FP32, INT32))


EARLY, LATE = "ALU_ROUNDING_MODE_Gasket_srnd_en", "ALU_ROUNDING_MODE_Packer_srnd_en"


def outcome(p: Pack, *switches: str) -> str:
    """The rule PACR ends with; where it is done, L1 holds what it holds without the switches."""
    for seed in range(3):
        s, model = setup(p, seed)
        for switch in switches:
            change(switch, 1)(s)
        s.adc[0, 2, 1, 0] = 15
        before = s.buffer.copy()
        number = execute(s, last=1)
        if number:
            assert s.l1.tobytes() == bytes(model.l1)
            return sentences.RULES[number].rule
        s.buffer[:] = before
        step(s, model, p)
    return ""


def name_of(p: Pack) -> str:
    return f"{p.wide}-{p.fmt}-{p.out}" + "-round" * p.round_fp16 + "-raw" * p.raw


@pytest.mark.parametrize("p", MODES, ids=name_of)
def test_every_pair(p: Pack) -> None:
    first = "" if identity(p) else f"PACR-{EARLY}"
    second = f"PACR-{LATE}" if p.out in (*BFP, *BFP_A) else ""
    assert outcome(p, EARLY) == first
    assert outcome(p, LATE) == second
    assert outcome(p, EARLY, LATE) == (first or second)


def test_both_classes_are_there() -> None:
    """fp32 and raw bf16 are identities; bf16 to bf16 is called rounding: denormals become zero."""
    assert [identity(Pack(wide=1, fmt=0, out=0)), identity(Pack(raw=1))] == [True, True]
    assert [identity(Pack()), identity(Pack(wide=1))] == [False, False]
    assert outcome(Pack(), EARLY) == f"PACR-{EARLY}"
    assert outcome(Pack(wide=1, fmt=0, out=5), EARLY, LATE) == ""


@pytest.mark.parametrize("switch", [EARLY, LATE])
def test_accumulation_is_refused(switch: str) -> None:
    """What rounds the sum in L1 is not said."""
    p = Pack(wide=1, fmt=0, out=5)
    assert outcome(p, switch) == ""
    assert outcome(replace(p, accumulate=1), switch) == f"PACR-{switch}"
