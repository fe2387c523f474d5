"""The property that matters: what has no mark does not depend on what the doubtful lanes hold."""

from itertools import islice

import pytest
from lane_doubt_programs import Pair, differences, words

from bhemu.tensix.insn import assemble, disassemble

SEEDS = 12


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("macro", [False, True])
def test_what_has_no_mark_is_the_same(seed: int, macro: bool) -> None:
    pair, done = Pair(seed, macro), 0
    assert differences(*pair.states) == []
    for word in islice(words(1000 + seed, macro), 150):
        first, second = pair.run(word)
        assert first == second, disassemble(word)
        assert differences(*pair.states) == [], disassemble(word)
        done += first == 0
        if first and pair.states[0].route[0] and any(pair.run(assemble("SFPNOP"))):
            pair.forget()
    assert done > 40
    first, second = pair.idle()
    assert first == second
    assert first or differences(*pair.states) == []
