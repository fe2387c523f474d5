"""Watchpoints on reads: the run stops after the load, Tensix word or device access that reads."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu import InputError, Program
from bhemu.jit.subset import JIT
from bhemu.machine.resolve import resolve
from bhemu.memmap import LOCAL_BASE
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, lh, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble, decode

ROOT = Path(package.__file__).parent.parent
PLACE, START = 0x20000, 0x10000
SEMAPHORE_1 = 0xFFE80024  # pc_buf window of trisc0: semaphore 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quantum", [1, 3, 1000])
def test_a_load_is_seen_at_its_instruction(tile, engine, quantum) -> None:
    words = [
        *li(A1, PLACE),
        addi(A0, ZERO, 7),
        sw(A0, A1, 0),
        lw(A0, A1, 4),
        lw(A0, A1, -4),
        lw(A0, A1, 0),
        PARK,
    ]
    mine = tile(*words, engine=engine)
    mine.state.quantum[0] = quantum
    mine.watch(f"{PLACE:#x}", access="r")
    stop = mine.run()
    load = START + 4 * words.index(lw(A0, A1, 0))
    assert (stop.reason, stop.where.core, stop.where.pc) == ("watchpoint", "trisc0", load)
    assert (stop.change.read, stop.change.before, stop.change.after) == (True, 7, 7)
    assert str(stop.change) == "0x20000: read, 0x7"
    assert mine.core["trisc0"].pc == load + 4
    assert mine.run().reason == "idle"


@pytest.mark.parametrize("engine", ENGINES)
def test_reads_and_changes(tile, engine) -> None:
    words = [*li(A1, PLACE), addi(A0, ZERO, 7), sw(A0, A1, 0), lh(A0, A1, 2), PARK]
    mine = tile(*words, engine=engine)
    number = mine.watch(f"{PLACE:#x}", access="rw")
    assert str(mine.watchpoints[0]) == f"watchpoint {number}: 0x20000 (reads and changes)"
    seen = [mine.run().change for _ in range(2)]
    assert [(one.read, one.before, one.after) for one in seen] == [(False, 0, 7), (True, 7, 7)]
    assert mine.run().reason == "idle"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_load_from_local_memory(tile, engine) -> None:
    words = [*li(A1, LOCAL_BASE + 0x40), sw(ZERO, A1, 0), lw(A0, A1, 0), PARK]
    mine = tile(*words, engine=engine)
    mine.watch(f"{LOCAL_BASE + 0x42:#x}:1", core="trisc0", access="r")
    other = mine.watch(f"{LOCAL_BASE + 0x40:#x}", core="trisc1", access="r")
    assert mine.run().where.pc == START + 4 * words.index(lw(A0, A1, 0))
    assert mine.run().reason == "idle"
    assert other == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_device_load_reads_the_semaphore_of_its_address(tile, engine) -> None:
    words = [*li(A1, SEMAPHORE_1), lw(A0, A1, 4), lw(A0, A1, 0), PARK]
    mine = tile(*words, engine=engine)
    mine.watch("sem:1", access="r")
    stop = mine.run()
    assert (stop.reason, stop.where.pc) == ("watchpoint", START + 4 * words.index(lw(A0, A1, 0)))
    assert mine.run().reason == "idle"


WORDS = {
    "gpr:0:5": [
        assemble("SETDMAREG", reg_index_16b=10, payload_sig_sel=0x123),
        assemble("ADDDMAREG", result_reg_index=6, op_a_reg_index=5, op_b_reg_index=7),
    ],
    "sem:3": [
        assemble("SEMINIT", sem_sel=0b1000, init_value=2, max_value=4),
        assemble("SEMPOST", sem_sel=0b1000),
    ],
    "ALU_ROUNDING_MODE_Padding": [
        assemble("WRCFG", cfg_reg=1, gpr_address=4),
        assemble("RDCFG", cfg_reg=1, gpr_address=4),
    ],
}


@pytest.mark.parametrize("place", WORDS)
def test_a_word_that_writes_is_passed_and_one_that_reads_is_seen(tile, place) -> None:
    writes, reads = WORDS[place]
    mine = tile(ttinsn(writes), ttinsn(reads), PARK)
    through_python = mine.state.table[0xFF]  # no instruction has this opcode
    number = mine.watch(place, access="r")
    stop = mine.run()
    assert (stop.reason, stop.where.word, stop.change.read) == ("watchpoint", reads, True)
    assert mine.run().reason == "idle"
    assert mine.state.table[reads >> 24] == through_python
    mine.delete(number)
    assert not JIT or mine.state.table[reads >> 24] != through_python


@pytest.mark.parametrize("engine", ENGINES)
def test_watching_reads_changes_nothing(engine) -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    plain, watched = program.launch(engine=engine), program.launch(engine=engine)
    place = resolve(watched, program.inputs[0].at)
    watched.watch(f"{place:#x}:4", access="r")
    watched.watch("THCON_SEC0_REG1_Out_data_format", access="r")
    end = plain.run()
    readers = set()
    while (stop := watched.run()).reason == "watchpoint":
        assert stop.change.read
        readers.add((stop.change.watchpoint.number, decode(stop.where.word).name))
    assert readers == {(1, "UNPACR"), (2, "PACR")}
    assert (stop.clock, stop.reason) == (end.clock, end.reason)
    assert (plain.l1 == watched.l1).all()
    assert plain.state.retired.tolist() == watched.state.retired.tolist()
    assert plain.state.op_count.tolist() == watched.state.op_count.tolist()


def test_reads_are_gone_back_to() -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    tile = program.launch()
    place = resolve(tile, program.inputs[0].at)
    tile.keep_history()
    tile.run()
    tile.watch(f"{place:#x}:4", access="r")
    stop = tile.history.reverse_continue()
    assert (stop.reason, decode(stop.where.word).name) == ("watchpoint", "UNPACR")


def test_an_access_that_does_not_exist(tile) -> None:
    with pytest.raises(InputError, match="access = 'x'"):
        tile(PARK).watch("sem:1", access="x")
