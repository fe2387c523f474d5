"""UNPACR where tolerating undefined behaviour ends (UNPACR_Regular, Wormhole ISA; LLK)."""

import pytest
from test_unpack import fresh
from unit_runner import run
from unpack_model import BITS, Unpack

from bhemu.tensix import rules
from bhemu.tensix.rules import UB_SILICON

# Pairs of the text, those that LLK's inference adds, and those its checks admit beyond that.
TEXT = {(f, f) for f in (1, 5, 6, 7, 15, 2, 3, 11, 9, 10, 14)} | {(0, 1), (0, 5), (0, 4)}
WIDER = {(7, 6), (15, 6), (3, 2), (11, 2)}
ADMITTED = {(5, 4), (6, 5), (7, 5), (15, 5), (6, 4), (7, 4), (15, 4), (2, 1), (3, 1), (11, 1)}
ADMITTED |= {(10, 1)}
TO_DST = {(0, 0), (4, 4), (8, 8)}


@pytest.mark.parametrize("to_dst", [0, 1])
def test_other_pairs_of_formats_are_refused_even_when_undefined_behaviour_is_tolerated(
    to_dst: int,
) -> None:
    s = fresh()
    s.ub_mode[0] = UB_SILICON
    known = TEXT | WIDER | (TO_DST if to_dst else set())
    known |= {(fmt, out) for fmt, out in ADMITTED if not (to_dst and out == 4)}
    for fmt in range(16):
        for out in range(16):
            s.cfg[:], s.thread_cfg[:], s.src_valid[:] = 0, 0, 0
            case = Unpack(fmt=fmt, out=out, to_dst=to_dst, count=16, forced=20)
            case.program(s)
            number = run(s, "UNPACR", **case.operands())
            assert (number == rules.DONE) == ((fmt, out) in known), (fmt, out)
            assert fmt in BITS or number < 0
