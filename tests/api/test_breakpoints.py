"""Breakpoints on Tensix words; conditions and stops to ignore of any breakpoint."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu import InputError, Program
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, bne, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble, decode

ROOT = Path(package.__file__).parent.parent
PLACE, START = 0x20000, 0x10000
ADD1 = ROOT / "elfs" / "add1"


def counted(n: int) -> list[int]:
    """A loop that stores 1 to n; the store is at START + 12 + 4."""
    loop = [addi(A0, A0, 1), sw(A0, A1, 0), lw(A0, A1, 0)]
    return [*li(A1, PLACE), *li(5, n), addi(A0, ZERO, 0), *loop, bne(A0, 5, -12), PARK]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_word_is_stopped_at_before_it_executes(tile, engine) -> None:
    words = [assemble("SETDMAREG", reg_index_16b=i, payload_sig_sel=i) for i in (2, 4, 2)]
    mine = tile(*map(ttinsn, words), PARK, engine=engine)
    number = mine.break_word("SETDMAREG", reg_index_16b=2)
    assert str(mine.breakpoints[0]) == f"breakpoint {number}: SETDMAREG reg_index_16b=2"
    for done in (0, 2):
        stop = mine.run()
        assert (stop.reason, stop.breakpoint, stop.where.word) == ("breakpoint", number, words[0])
        assert (stop.where.thread, mine.state.executed[0]) == (0, done)
    assert mine.run().reason == "idle"
    assert mine.state.executed[0] == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_stops_at_words_change_nothing(engine) -> None:
    program = Program.load(ADD1)
    plain, stopped = program.launch(engine=engine), program.launch(engine=engine)
    stopped.break_word("PACR", 2)
    stopped.break_word("STALLWAIT")
    end, names = plain.run(), []
    while (stop := stopped.run()).reason == "breakpoint":
        names.append(decode(stop.where.word).name)
    assert names.count("PACR") == plain.state.op_count[2, 0x41]
    assert names.count("STALLWAIT") == plain.state.op_count[:, 0xA2].sum()
    assert (stop.clock, stop.reason) == (end.clock, end.reason)
    assert (plain.l1 == stopped.l1).all()
    assert plain.state.op_count.tolist() == stopped.state.op_count.tolist()


def test_only_the_named_thread_stops(tile) -> None:
    mine = tile(ttinsn(assemble("NOP")), PARK)
    mine.break_word("NOP", 1)
    assert mine.run().reason == "idle"


def test_a_word_is_gone_back_to() -> None:
    tile = Program.load(ADD1).launch()
    tile.keep_history()
    tile.run()
    total = int(tile.state.op_count[2, 0x41])
    number = tile.break_word("PACR")
    for left in (1, 2):
        stop = tile.history.reverse_continue()
        assert (stop.breakpoint, tile.state.op_count[2, 0x41]) == (number, total - left)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition_and_stops_to_ignore(tile, engine) -> None:
    words = counted(9)
    store = START + 4 * words.index(sw(A0, A1, 0))

    def fives(mine) -> bool:
        return int(mine.core["trisc0"].regs[A0]) >= 5

    mine = tile(*words, engine=engine)
    mine.break_at("trisc0", store, condition=fives, ignore=1)
    values = []
    while mine.run().reason == "breakpoint":
        values.append(int(mine.core["trisc0"].regs[A0]))
    assert values == [6, 7, 8, 9]


def test_a_watchpoint_has_a_condition_too(tile) -> None:
    mine = tile(*counted(9))
    mine.watch(f"{PLACE:#x}", condition=lambda one: one.read32(PLACE) % 4 == 0, ignore=1)
    assert mine.run().change.after == 8
    assert mine.run().reason == "idle"


def test_run_to_stops_where_a_condition_does_not_hold(tile) -> None:
    words = counted(3)
    store = START + 4 * words.index(sw(A0, A1, 0))
    mine = tile(*words)
    mine.break_at("trisc0", store, condition=lambda _: False)
    mine.run_to("trisc0", store)
    assert mine.core["trisc0"].pc == store
    assert mine.run().reason == "idle"


def test_steps_pass_no_word_breakpoint_twice(tile) -> None:
    mine = tile(ttinsn(assemble("NOP")), PARK)
    mine.break_word("NOP")
    assert mine.run().reason == "breakpoint"
    mine.tstep(0)
    assert mine.state.executed[0] == 1
    assert mine.run().reason == "idle"


def test_what_is_no_word(tile) -> None:
    mine = tile(PARK)
    for name, fields, sentence in (
        ("PACRR", {}, "did you mean PACR"),
        ("PACR", {"lst": 1}, "has no field lst"),
        ("PACR", {"last": 2}, "does not fit"),
    ):
        with pytest.raises(InputError) as caught:
            mine.break_word(name, **fields)
        assert sentence in f"{caught.value} {caught.value.hint}"
    with pytest.raises(InputError, match="no Tensix thread 3"):
        mine.break_word("PACR", 3)
    for _ in range(16):
        mine.break_word("NOP")
    with pytest.raises(InputError, match="room for 16"):
        mine.break_word("NOP")
    mine.delete()
    assert mine.breakpoints == ()


def test_a_function_that_is_inlined_stops_in_every_copy() -> None:
    mine = Program.load(ADD1).launch()
    number = mine.break_at("trisc1", "add_32")
    places = set()
    for _ in range(9):
        assert mine.run().reason == "breakpoint"
        places.add(mine.core["trisc1"].pc)
    assert len(places) == 8
    mine.delete(number)
    assert mine.run().reason == "until"
