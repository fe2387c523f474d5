"""Functions that compiled code calls: the same events as in Python, on every machine."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu import InputError, Program
from bhemu.jit import interpreted
from bhemu.jit.subset import JIT
from bhemu.machine import plugin

ELFS = Path(__file__).parents[2] / "elfs"
PROGRAMS = ["add1", "matmul", "reduce", "matmul_mcast"]
ENGINES = ["unicorn", "compiled"]
pytestmark = pytest.mark.skipif(not JIT, reason="interpreted: both forms are Python")


def any_word(event, seen, bits):
    seen[0] += 1
    at = (event.word * 31 + event.thread * 7 + event.pc + event.core + event.clock) % 1024
    bits[at] += event.x + 100 * event.y


def transfer(event, seen, bits):
    seen[0] += event.end - event.first
    bits[event.l1_format] += event.datums
    bits[32 + event.first % 512] += event.clock
    bits[600] += event.fields.word % 97 + event.x


def step(event, seen, bits):
    seen[0] += 1
    at = (event.word + event.pc + event.clock + event.core * 3) % 1024
    bits[at] += event.x + 100 * event.y


def access(event, seen, bits):
    seen[0] += event.size
    at = (event.address + 3 * event.value + event.clock + event.pc) % 1024
    bits[at] += event.stores + 2 * event.core + 10 * event.x + event.y


def run(name: str, engine: str, *, is_compiled: bool, **options: Any) -> tuple[str, list[Any]]:
    """A run with all kinds of functions: its end, and what they have noted."""
    machine = Program.load(ELFS / name).launch(engine=engine, **options)
    kept = []

    def told(function: Any) -> Any:
        arrays = np.zeros(1, np.int64), np.zeros(1024, np.int64)
        kept.append(arrays)
        made = bhemu.compiled(*arrays)(function)
        if not is_compiled:
            made.entry = lambda kinds, name: 0
        return made

    machine.on_word(None, told(any_word), thread=1)
    machine.on_word("UNPACR", told(transfer))
    machine.on_word("PACR", told(transfer), last=1)
    machine.on_pc("trisc0", (0, 1 << 20), told(step))
    machine.on_access((0, 0xFFFFFFFF), told(access), core="brisc")
    machine.on_access((0xFFB00000, 0xFFFFFFFF), told(access), access="w")
    end = repr(machine.run())
    counts = [int(seen[0]) for seen, _ in kept]
    assert all(counts), (name, counts)
    return end, [array.tolist() for arrays in kept for array in arrays]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_note_the_same(name: str, engine: str) -> None:
    plain = run(name, engine, is_compiled=False)
    assert run(name, engine, is_compiled=True) == plain


def divides(event, a):
    a[0] += 1 // (event.thread - 2)


def outside(event, a):
    a[event.word] += 1


def text(event, a):
    a[0] = len(str(event.word))


def unknown(event, a):
    a[0] += event.nothing


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno) + 1


@pytest.mark.parametrize(
    ("function", "said"), [(divides, "ZeroDivisionError"), (outside, "IndexError")]
)
def test_what_fails_while_it_runs_names_the_line(function: Any, said: str) -> None:
    tile = Program.load(ELFS / "add1").launch()
    tile.on_word("PACR", bhemu.compiled(np.zeros(4, np.int64))(function))
    with pytest.raises(InputError, match=f"test_compiled_plugins.py:{line_of(function)}: .*{said}"):
        tile.run()


def test_an_access_that_fails_names_the_line() -> None:
    tile = Program.load(ELFS / "add1").launch()

    def fails(event, a):
        a[event.size] += 1

    tile.on_access((0, 0x100000), bhemu.compiled(np.zeros(1, np.int64))(fails))
    with pytest.raises(InputError, match=f"py:{line_of(fails)}: fails: IndexError"):
        tile.run()


@pytest.mark.parametrize(
    ("function", "said"), [(text, "makes a list, string"), (unknown, "nothing")]
)
def test_what_is_not_of_the_subset_is_told_at_the_call(function: Any, said: str) -> None:
    tile = Program.load(ELFS / "add1").launch()
    with pytest.raises(InputError) as caught:
        tile.on_word("PACR", bhemu.compiled(np.zeros(4, np.int64))(function))
    line = re.search(r"test_compiled_plugins.py:(\d+): (\w+): ", str(caught.value))
    assert line is not None and line[2] == function.__name__ and said in str(caught.value)
    assert line_of(function) - 1 <= int(line[1]) <= line_of(function)
    assert repr(tile.run()) == "<Stop until, clock 2688>"


@pytest.mark.parametrize("array", [[0], np.zeros((2, 2))[:, 0], np.zeros(2, object), np.float64(0)])
def test_what_is_no_array_of_numbers_is_refused(array: Any) -> None:
    with pytest.raises(InputError, match="compiled: "):
        bhemu.compiled(array)


def counting(event, a):
    a[0] += 1


def test_compiled_and_python_functions_go_together_and_end() -> None:
    """More than the record of ranges holds, too: then all are called in Python."""
    tile, seen = Program.load(ELFS / "add1").launch(), np.zeros((4, 1), np.int64)
    last: list[Any] = []
    both = [tile.on_word("PACR", bhemu.compiled(seen[0])(counting), last=1)]
    both.append(tile.on_word("PACR", last.append, last=1))
    gone = tile.on_word(None, bhemu.compiled(seen[1])(counting))
    for n in range(40):
        tile.on_pc(None, (4 * n, 4 * n + 4), bhemu.compiled(seen[2])(counting))
    tile.on_pc("trisc1", "main", bhemu.compiled(seen[3])(counting))
    tile.delete(gone)
    assert repr(tile.run()) == "<Stop until, clock 2688>"
    assert seen.ravel().tolist() == [1, 0, seen[2, 0], 1] and len(last) == 1


def test_words_compiled_while_they_are_told_are_told_on() -> None:
    """Coverage observes in Python what a compiled function is told; each ends by itself."""
    from bhemu.debug.trace import Coverage

    tile, seen = Program.load(ELFS / "add1").launch(), np.zeros(1, np.int64)
    cover = Coverage(tile)
    number = tile.on_word("PACR", bhemu.compiled(seen)(counting))
    tile.run(limit=tile.clock + 1500)
    cover.stop()
    tile.run()
    noted = sum(n for mode, n in cover.notes.executed.items() if mode.mnemonic == "PACR")
    assert seen[0] == 16 and 0 <= noted <= 16
    tile.delete(number)


def test_without_a_compiler_it_is_called_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(plugin.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(interpreted, "tell", told.append)
    tile, seen = Program.load(ELFS / "add1").launch(), np.zeros(1, np.int64)
    tile.on_word("PACR", bhemu.compiled(seen)(counting))
    tile.run()
    assert seen[0] == 16 and tile.backend.table.hook is None
    assert told == [f"counting is called in Python; {interpreted.COMPILER} compiles it"]


def test_tiles_of_several_threads_lose_no_count() -> None:
    counts = []
    for threads in (1, 2):
        seen = np.zeros(1, np.int64)
        chip = Program.load(ELFS / "matmul_mcast").launch(threads=threads)
        chip.on_word(None, bhemu.compiled(seen)(counting))
        chip.run()
        counts.append(int(seen[0]))
    assert counts[0] == counts[1] > 0
