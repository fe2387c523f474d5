"""Early looks at the outputs of a changed run."""

from fractions import Fraction

import planted
import pytest

from bhemu import Program
from bhemu.why.repair import looks as looks_module
from bhemu.why.repair.bench import TileBench
from bhemu.why.repair.looks import Looks

_MATMUL = planted.ROOT / "elfs" / "matmul"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> tuple[TileBench, Looks]:
    """Of elfs/matmul, with a look when most of its time is over: it packs late."""
    monkeypatch.setattr(looks_module, "_SHORTEST", 0)
    monkeypatch.setattr(looks_module, "_SLOWER", 1)
    monkeypatch.setattr(looks_module, "_TIMES", (Fraction(5, 4),))
    program = Program.load(_MATMUL)
    bench = TileBench(program, 1000)
    assert bench.ends(100_000)
    end = bench.tile.clock
    return bench, Looks(program, bench, end)


def at_the_last_look(bench: TileBench, looks: Looks) -> int:
    """Run there; the number of the look."""
    bench.begin()
    assert bench.reaches(looks.clocks[-1]) is None
    return len(looks.clocks) - 1


def test_a_right_run_is_never_refuted(looks: tuple[TileBench, Looks]) -> None:
    bench, seen = looks
    assert seen.clocks
    bench.begin()
    for number, clock in enumerate(seen.clocks):
        assert bench.reaches(clock) is None
        assert not seen.refutes(number)


def test_a_word_that_is_written_wrongly_refutes(looks: tuple[TileBench, Looks]) -> None:
    bench, seen = looks
    number = at_the_last_look(bench, seen)
    output, word = seen._looks[number].words[0]
    assert output == 0
    bench.tile.write32(0xC0000 + 4 * word, 0x12345678)
    assert seen.refutes(number)


def test_what_is_not_written_yet_does_not(looks: tuple[TileBench, Looks]) -> None:
    bench, seen = looks
    number = at_the_last_look(bench, seen)
    for _, word in seen._looks[number].words:
        bench.tile.write32(0xC0000 + 4 * word, 0)
    assert not seen.refutes(number)


def test_a_short_run_has_no_looks() -> None:
    program = Program.load(_MATMUL)
    assert not Looks(program, TileBench(program, 1000), 4000).clocks
