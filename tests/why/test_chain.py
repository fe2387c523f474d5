"""The chain of causes behind a place: who changed it last, from what, back to the host's input."""

from pathlib import Path

import pytest

import bhemu as package
from bhemu import InputError, Program
from bhemu.program.schema import ENGINES, CoreSpec, RunSpec
from bhemu.riscv.assembly import A0, A1, A2, PARK, ZERO, add, addi, bne, code, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble
from bhemu.why.chain import Chain, element, find, links_behind

ROOT = Path(package.__file__).parent.parent
START, SECOND = 0x10000, 0x12000
INPUT, MIDDLE, OUTPUT = 0x20000, 0x20100, 0x20200


@pytest.fixture
def launched(tmp_path):
    """A tile with two small programs, trisc0 at START and ncrisc at SECOND, history kept."""

    def make(first, second=(PARK,), engine=None):
        data = bytearray(0x30000)
        for at, words in ((START, first), (SECOND, second)):
            text = code(*words)
            data[at : at + len(text)] = text
        data[INPUT : INPUT + 4] = (1234).to_bytes(4, "little")
        (tmp_path / "l1.bin").write_bytes(data)
        cores = {"trisc0": CoreSpec("trisc0", pc=START), "ncrisc": CoreSpec("ncrisc", pc=SECOND)}
        run = RunSpec(limit=100_000)
        program = Program("p", "image", cores, image=tmp_path / "l1.bin", run=run)
        tile = program.launch(engine=engine)
        tile.keep_history()
        tile.run()
        return tile, program

    return make


def links(tile, program, place):
    return links_behind(tile, program, "brisc", place)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_is_followed_through_memory_to_the_input(launched, engine) -> None:
    first = [*li(A0, INPUT), lw(A1, A0), addi(A1, A1, 1), sw(A1, A0, MIDDLE - INPUT), PARK]
    second = [
        *li(A0, MIDDLE), lw(A1, A0), addi(A2, ZERO, 1235), bne(A1, A2, -8), add(A1, A1, A1),
        sw(A1, A0, OUTPUT - MIDDLE), PARK,
    ]  # fmt: skip
    tile, program = launched(first, second, engine)
    found = links(tile, program, f"{OUTPUT:#x}")
    assert [(one.depth, one.place, one.after) for one in found] == [
        (0, f"{OUTPUT:#x}", 2470),
        (1, f"{MIDDLE:#x}:4", 1235),
        (2, f"{INPUT:#x}:4", 1234),
    ]
    assert (found[0].where.core, found[0].where.pc) == ("ncrisc", SECOND + 4 * 6)
    assert (found[1].where.core, found[1].where.pc) == ("trisc0", START + 4 * 4)
    assert found[2].where is None


def test_who_overwrote_it_is_the_first_link(launched) -> None:
    first = [*li(A0, OUTPUT), addi(A1, ZERO, 7), sw(A1, A0), PARK]
    second = [*li(A0, OUTPUT), *[addi(ZERO, ZERO, 0)] * 40, sw(ZERO, A0), PARK]
    tile, program = launched(first, second)
    found = links(tile, program, f"{OUTPUT:#x}")
    assert (found[0].where.core, found[0].before, found[0].after) == ("ncrisc", 7, 0)
    assert len(found) == 1


def test_a_constant_is_said(launched) -> None:
    tile, program = launched([*li(A0, OUTPUT), addi(A1, ZERO, 7), sw(A1, A0), PARK])
    assert "a constant of the code" in str(links(tile, program, f"{OUTPUT:#x}")[0])


def test_a_place_that_nothing_wrote(launched) -> None:
    tile, program = launched([PARK])
    (only,) = links(tile, program, f"{OUTPUT:#x}")
    assert (only.where, only.clock, only.before) == (None, None, None)
    (only,) = links(tile, program, "sem:1")
    assert "since power-up" in str(only)


def test_a_configuration_field_goes_back_to_the_gpr_and_its_immediate(launched) -> None:
    value = assemble("SETDMAREG", reg_index_16b=8, payload_sig_sel=0x155)
    write = assemble("WRCFG", cfg_reg=1, gpr_address=4)
    tile, program = launched([ttinsn(value), ttinsn(write), PARK])
    found = links(tile, program, "ALU_ROUNDING_MODE_Padding")
    assert [one.place for one in found[:2]] == ["ALU_ROUNDING_MODE_Padding", "gpr:0:4"]
    assert (found[0].where.word, found[1].where.word) == (write, value)
    assert found[1].after == 0x155


def test_the_last_word_that_wrote_a_register_counts_if_it_left_the_value(launched) -> None:
    """LReg 0 gets the same number three times; what changed it is the first of these words."""
    load = ttinsn(assemble("SFPLOADI", lreg_ind=0, instr_mod0=0, imm16=0x3F80))
    tile, program = launched([load, ttinsn(assemble("NOP")), load, load, PARK])
    (only,) = links(tile, program, "lreg:0:0")
    assert (only.where.pc, only.before, only.after) == (START + 12, 0x3F800000, 0x3F800000)
    assert "which it was before" in str(only)


def test_add1_from_the_output_to_the_input() -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    tile = program.launch(engine="compiled")
    tile.keep_history()
    tile.run()
    end = tile.clock
    found = links(tile, program, "y[0,2]")
    assert tile.clock == end
    mnemonics = [one.where.decoded.split()[0] for one in found if one.where is not None]
    assert mnemonics[:6] == ["PACR", "SFPSTORE", "SFPADD", "SFPLOAD", "MOVA2D", "UNPACR"]
    assert [one.depth for one in found[:7]] == list(range(7))
    assert found[6].place == "0x40004:4"
    assert "input in.npy" in found[6].text
    assert found[0].where.file == "pack.c"
    assert all(one.clock is None or one.clock <= end for one in found)
    assert "SFPLOADI" in str(found[7])  # the 1 that is added


def test_a_product_goes_back_to_both_of_its_operands() -> None:
    program = Program.load(ROOT / "elfs" / "matmul")
    tile = program.launch(engine="compiled")
    tile.keep_history()
    tile.run()
    found = links(tile, program, "C[0,0]")
    banks = [one.place for one in found if one.place.startswith("src:")]
    assert {place[:6] for place in banks} == {"src:0:", "src:1:"}


def test_asking_changes_nothing() -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    plain, asked = program.launch(), program.launch()
    end = plain.run()
    asked.keep_history()
    asked.run("idle", limit=1700)
    Chain(asked).why("dst:0:2", find(asked, program, "brisc", "dst:0:2"))
    asked.history.goto(1700)
    assert asked.run() == end
    assert (asked.l1 == plain.l1).all()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [("y[0]", "y is 32 x 32"), ("y[0,32]", "y is 32 x 32"), ("z[0,0]", "no output is called"),
     ("sem:9", "there is no 9")],
)  # fmt: skip
def test_a_place_that_is_none(place, sentence) -> None:
    program = Program.load(ROOT / "elfs" / "add1")
    tile = program.launch()
    with pytest.raises(InputError, match=sentence):
        find(tile, program, "brisc", place)


def test_an_element_outside_is_told_how_one_is_named() -> None:
    with pytest.raises(InputError) as raised:
        element(Program.load(ROOT / "elfs" / "add1"), "y[0,32]")
    assert raised.value.hint == "y[0, 0]"


def test_words_of_the_sync_unit_and_of_the_address_counters(launched) -> None:
    words = [
        assemble("SEMINIT", sem_sel=2, init_value=3, max_value=5),
        assemble("SEMPOST", sem_sel=2),
        assemble("SETADCXX", cnt_set_mask=1, x_start=3, x_end2=4),
    ]
    tile, program = launched([*map(ttinsn, words), PARK])
    found = links(tile, program, "sem:1")
    assert [(one.place, one.where.decoded.split()[0]) for one in found] == [
        ("sem:1", "SEMPOST"),
        ("sem:1", "SEMINIT"),
        ("sem_max:1", "SEMINIT"),
    ]
    assert (found[1].before, found[1].after) == (0, 3)
    tile, program = launched([*map(ttinsn, words), PARK])
    (counter,) = links(tile, program, "adc:0:0:0:0")
    assert (counter.after, counter.where.word) == (3, words[2])
    assert counter.text == ""


def test_a_lane_flag_is_a_cause_where_a_condition_has_set_it(launched) -> None:
    """LReg 1 is loaded where LReg 0 is negative: it was set before already."""
    words = [
        assemble("SFPENCC", imm12_math=3, instr_mod1=10),
        assemble("SFPLOADI", lreg_ind=0, imm16=0xBF80),
        assemble("SFPSETCC", lreg_c=0),
        assemble("SFPLOADI", lreg_ind=1, imm16=0x3F80),
    ]
    tile, program = launched([*map(ttinsn, words), PARK])
    found = links(tile, program, "lreg:1:0")
    assert [(one.place, one.mnemonic) for one in found] == [
        ("lreg:1:0", "SFPLOADI"),
        ("cc:0", "SFPSETCC"),
        ("lreg:0:0", "SFPLOADI"),
    ]
    assert (found[1].before, found[1].after) == (1, 1)
    tile, program = launched([ttinsn(words[0]), ttinsn(words[3]), PARK])
    assert [one.mnemonic for one in links(tile, program, "lreg:1:0")] == ["SFPLOADI"]
