"""A tile that nothing holds any more is freed at once, without the garbage collector."""

import copy
import copyreg
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from bhemu.debug.trace import Coverage
from bhemu.errors import BhemuError, NoProgress
from bhemu.launch import launch
from bhemu.machine.tile import Tile
from bhemu.program.schema import load_program

ELFS = Path(__file__).parents[1] / "elfs"


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(references: list[weakref.ref[object]]) -> int:
    return sum(reference() is not None for reference in references)


def test_dropped_tiles_are_freed() -> None:
    references: list[weakref.ref[object]] = []
    for _ in range(20):
        tile = Tile()
        tile.write32(0, 0x0000006F)  # jump to itself
        tile.core["brisc"].release()
        assert tile.run(timeout_s=60).reason == "idle"
        references += [weakref.ref(tile), weakref.ref(tile.state), weakref.ref(tile.backend)]
        del tile
    assert alive(references) == 0


def test_a_program_leaves_nothing() -> None:
    program = load_program(ELFS / "add1")
    tile = launch(program)
    assert tile.run().reason == "until"
    references = [weakref.ref(tile), weakref.ref(tile.state), weakref.ref(tile.core["trisc1"])]
    del tile
    assert alive(references) == 0


def test_coverage_keeps_its_notes_only() -> None:
    """What $BHEMU_COVERAGE makes of every tile."""
    tile = Tile()
    notes = Coverage(tile).notes
    reference = weakref.ref(tile)
    del tile
    assert reference() is None
    assert notes.executed == {}


def test_nor_does_an_error() -> None:
    program = load_program(ELFS / "hang_cycle")
    tile = launch(program)
    for _ in range(2):  # raised again until reset()
        with pytest.raises(BhemuError, match="deadlock"):
            tile.run()
    assert tile.error is not None
    references = [weakref.ref(tile), weakref.ref(tile.state)]
    del tile
    assert alive(references) == 0


def test_a_core_keeps_its_tile() -> None:
    core = Tile().core["trisc0"]
    core.release()
    assert core.state == "running"
    image = core.load_elf(ELFS / "add1" / "trisc0.elf")
    assert core.locate(image.entry)[0] is not None


def test_a_copied_error_has_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a package (dask) has registered copies of exceptions that keep it."""

    def kept(problem: BaseException) -> tuple[object, ...]:
        return (lambda: problem), ()

    monkeypatch.setitem(copyreg.dispatch_table, NoProgress, kept)
    with pytest.raises(NoProgress) as caught:
        raise NoProgress("text", rule="RULE", hint="hint")
    copied = copy.copy(caught.value)
    assert copied.__traceback__ is None
    assert (str(copied), copied.rule, copied.hint) == (str(caught.value), "RULE", "hint")
