"""Watchpoints: the run stops after the instruction or Tensix word that changes a place."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu import InputError, Program
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble

ROOT = Path(package.__file__).parent.parent
PLACE = 0x20000
START = 0x10000


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quantum", [1, 3, 1000])
def test_a_store_is_seen_at_its_instruction(tile, engine, quantum) -> None:
    words = [
        *li(A1, PLACE),
        addi(A0, ZERO, 7),
        sw(A0, A1, 4),
        sw(A0, A1, 1, width=0),
        sw(ZERO, A1, 0),
        PARK,
    ]
    mine = tile(*words, engine=engine)
    mine.state.quantum[0] = quantum
    number = mine.watch(f"{PLACE:#x}")
    stop = mine.run()
    store = START + 4 * words.index(sw(A0, A1, 1, width=0))
    assert (stop.reason, stop.change.before, stop.change.after) == ("watchpoint", 0, 0x700)
    assert (stop.where.core, stop.where.pc) == ("trisc0", store)
    assert "sb" in stop.where.decoded
    assert mine.core["trisc0"].pc == store + 4
    stop = mine.run()
    assert (stop.change.before, stop.change.after, stop.where.pc) == (0x700, 0, store + 4)
    assert str(mine.watchpoints[0]) == f"watchpoint {number}: {PLACE:#x}"
    mine.delete(number)
    assert mine.run().reason == "idle"
    assert mine.watchpoints == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_watching_changes_nothing(engine) -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    plain, watched = program.launch(engine=engine), program.launch(engine=engine)
    watched.watch("sem:1")
    end = plain.run()
    stops = 0
    while (stop := watched.run()).reason == "watchpoint":
        stops += 1
        assert stop.where.decoded.startswith(("SEMPOST", "SEMGET", "SEMINIT"))
    assert stops >= 2
    assert (stop.clock, stop.reason) == (end.clock, end.reason)
    assert (plain.l1 == watched.l1).all()
    assert plain.state.retired.tolist() == watched.state.retired.tolist()
    assert plain.state.op_count.tolist() == watched.state.op_count.tolist()


PLACES = {
    "sem:3": (assemble("SEMINIT", sem_sel=0b1000, init_value=2, max_value=4), 0, 2),
    "gpr:0:5": (assemble("SETDMAREG", reg_index_16b=10, payload_sig_sel=0x123), 0, 0x123),
    "mutex:2": (assemble("ATGETM", mutex_index=2), None, None),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_word_is_seen(tile, place) -> None:
    word, before, after = PLACES[place]
    mine = tile(ttinsn(word), PARK)
    mine.watch(place)
    stop = mine.run()
    assert stop.reason == "watchpoint"
    assert stop.where.word == word
    if before is not None:
        assert (stop.change.before, stop.change.after) == (before, after)


def test_a_field_shows_its_own_bits_alone(tile) -> None:
    set_word = assemble(
        "SETDMAREG", reg_index_16b=8, payload_sig_sel=0x3FFF, payload_sig_sel_size=3
    )
    write = assemble("WRCFG", cfg_reg=1, gpr_address=4)
    mine = tile(ttinsn(set_word), ttinsn(write), PARK)
    mine.watch("ALU_ROUNDING_MODE_Padding")
    stop = mine.run()
    assert (stop.change.before, stop.change.after) == (0, 0x3FF)
    assert stop.where.word == write


def test_what_the_host_writes_is_no_change(tile) -> None:
    mine = tile(*li(A1, PLACE), lw(A0, A1, 0), PARK)
    mine.watch(f"{PLACE:#x}:8")
    mine.write32(PLACE, 5)
    assert mine.run().reason == "idle"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("sem:8", "there is no 8"),
        ("sem:1:1", "1 indices"),
        ("dst", "at most 128"),
        ("gpr:x", "are numbers"),
        ("0x20000:0", "1 to 128 bytes"),
        ("0x20000:4:4", "one length"),
        ("0x17ffff", "cannot be watched"),
        ("0xffe80004", "cannot be watched"),
        ("ALU_ROUNDING_MODE_Paddin", "ALU_ROUNDING_MODE_Padding"),
        ("nonsense", "no symbol or register"),
    ],
)
def test_what_cannot_be_watched(tile, place, sentence) -> None:
    mine = tile(PARK)
    with pytest.raises(InputError) as caught:
        mine.watch(place)
    assert sentence in str(caught.value)
    assert mine.watchpoints == ()


def test_sixteen_places(tile) -> None:
    mine = tile(PARK)
    for n in range(16):
        mine.watch(f"{PLACE + 4 * n:#x}")
    with pytest.raises(InputError, match="16 places"):
        mine.watch("sem:1")
    mine.delete()
    assert mine.watch("sem:1") == 17


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (0xFFB48028, "stream:8:10"),
        (0xFFB20800, "niu_command:0:1:0"),
        (0xFFB30000, "niu_command:1:0:0"),
    ],
)
def test_registers_of_streams_and_niu_by_address(tile, address: int, place: str) -> None:
    mine = tile(*li(A1, address), addi(A0, ZERO, 9), sw(A0, A1), PARK)
    mine.watch(f"{address:#x}:4")
    change = mine.run().change
    assert (change.before, change.after, change.where.core) == (0, 9, "trisc0")
    mine.delete()
    mine.watch(place)
    assert mine.run().reason == "idle", "nothing changes it any more"


def test_a_register_of_the_niu_that_is_not_kept(tile) -> None:
    with pytest.raises(InputError, match="cannot be watched by its address"):
        tile(PARK).watch("0xFFB2037C:4")
