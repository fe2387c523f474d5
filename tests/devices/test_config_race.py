"""Stores to Config words that a queued UNPACR or PACR of the core's own thread reads."""

import random

import pytest

from bhemu.devices.bus import access_order
from bhemu.errors import Undefined
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.memmap import MOP_CFG_BASE, TENSIX_CFG_BASE
from bhemu.riscv.assembly import A0, A1, PARK, code, li, sw, ttinsn
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import CONFIG_WORDS, SECTION_WORDS
from bhemu.tensix.insn import Instruction, assemble, instructions
from bhemu.tensix.rules import counted

START = 0x10000
DONE = (0x100, 1)
BASE = cf.THCON_SEC0_REG3_Base_address.word
BASE_1 = cf.THCON_SEC0_REG3_Base_cntx1_address.word
BASE_OF_B = cf.THCON_SEC1_REG3_Base_address.word
DESCRIPTOR = cf.THCON_SEC0_REG0_TileDescriptor.word
FORMATS = cf.THCON_SEC0_REG2_Out_data_format.word
PACK_BASE = cf.THCON_SEC0_REG1_L1_Dest_addr.word
PACK_FORMATS = cf.THCON_SEC0_REG1_Out_data_format.word
UNRELATED = cf.STACC_RELU_ApplyRelu.word

# Everything but the sync unit waits for a semaphore that nobody posts.
STOP = assemble("SEMWAIT", stall_res=0x1FF, sem_sel=1, wait_sem_cond=1)
UNPACR = assemble("UNPACR", ovrd_thread_id=1)
UNPACR_1 = assemble("UNPACR", ovrd_thread_id=1, cfg_context_id=1)
UNPACR_B = assemble("UNPACR", ovrd_thread_id=1, unpack_block_selection=1)
SINGLE = assemble("UNPACR")
COUNTED = assemble("UNPACR", ovrd_thread_id=1, auto_inc_context_id=1)
FLUSH_CACHE = assemble("UNPACR", search_cache_flush=1)
PACR = assemble("PACR")
FLUSH = assemble("PACR", flush=1)
CONTEXT_1 = assemble("SETC16", setc16_reg=41, setc16_value=1)
OTHER_BANK = assemble("SETC16", setc16_reg=tf.CFG_STATE_ID_StateID.word, setc16_value=1)
MOP = assemble("MOP", mop_type=1)
MOP_USED = assemble("MOP")  # template 0, one step, which is not skipped
MOP_SKIPPED = assemble("MOP", zmask_lo16_or_loop_count=1)
MOP_SKIPPED_ONCE = assemble("MOP", zmask_lo16_or_loop_count=1, loop_count=1)
RECORD = assemble("REPLAY", load_mode=1, len=1)
RECORD_TWO = assemble("REPLAY", load_mode=1, len=2)
RECORD_AND_EXECUTE = assemble("REPLAY", load_mode=1, execute_while_loading=1, len=1)


def run(
    words: list[int], index: int, value: int = 5, ub: str = "error", skip: int = UNPACR
) -> Tile:
    """trisc0 pushes the words behind one that waits, then stores to word `index` of Config.

    Every word of its MOP configuration is UNPACR, those of skipped steps are `skip`.
    """
    tile = Tile(ub=ub)
    pushes = [ttinsn(word) for word in (STOP, *words)]
    mop = [*li(A1, MOP_CFG_BASE), *li(A0, 1), sw(A0, A1), sw(A0, A1, 4)]
    mop += [*li(A0, UNPACR), *(sw(A0, A1, 4 * i) for i in range(2, 7))]
    mop += [*li(A0, skip), *(sw(A0, A1, 4 * i) for i in range(7, 9))]
    store = [*li(A1, TENSIX_CFG_BASE + 4 * index), *li(A0, value), sw(A0, A1)]
    done = [*li(A1, DONE[0]), *li(A0, DONE[1]), sw(A0, A1)]
    tile.write(START, code(mop, pushes, store, done, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    assert tile.run([DONE], limit=3000).reason == "until"
    return tile


RACES = [
    ([UNPACR], BASE),
    ([UNPACR], 2 * CONFIG_WORDS + BASE),
    ([UNPACR], DESCRIPTOR),
    ([UNPACR], DESCRIPTOR + 1),
    ([UNPACR], FORMATS),
    ([SINGLE], BASE),
    ([UNPACR_1], BASE_1),
    ([CONTEXT_1, UNPACR], BASE_1),
    ([UNPACR_B], BASE_OF_B),
    ([COUNTED], DESCRIPTOR),
    ([PACR], PACK_BASE),
    ([PACR], PACK_FORMATS),
    ([FLUSH, CONTEXT_1, UNPACR_1, UNPACR], BASE_1),
    ([UNPACR], cf.THCON_SEC0_REG5_Dest_cntx0_address.word),
    ([UNPACR_B], cf.THCON_SEC1_REG7_Offset_address.word),
    ([UNPACR], cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride.word),
    ([PACR], cf.STACC_RELU_ApplyRelu.word),
    ([MOP], BASE),
    ([MOP_USED], BASE),
    ([MOP_SKIPPED], BASE),
    ([PACR, RECORD, UNPACR, UNPACR], BASE),
    ([PACR, RECORD_AND_EXECUTE, UNPACR], BASE),
    ([RECORD, PACR, UNPACR], BASE),
]


@pytest.mark.parametrize(("words", "index"), RACES)
def test_a_store_to_a_word_that_a_queued_instruction_reads(words: list[int], index: int) -> None:
    with pytest.raises(Undefined, match="is queued, which reads it") as caught:
        run(words, index)
    assert caught.value.rule == "CFG-IN-USE"
    tile = run(words, index, ub="warn")
    assert tile.tensix.cfg[0, index % CONFIG_WORDS] == 5
    assert {RULES[number].rule: n for number, n in counted(tile.state).items()}["CFG-IN-USE"] == 1


FINE = [
    ([], BASE),
    ([UNPACR], UNRELATED),
    ([UNPACR], BASE_1),
    ([UNPACR], BASE_OF_B),
    ([UNPACR_1], BASE),
    ([CONTEXT_1, UNPACR], BASE),
    ([UNPACR], CONFIG_WORDS + BASE),  # the other bank
    ([OTHER_BANK, UNPACR], BASE),
    ([COUNTED], BASE),  # the counter is not followed
    ([UNPACR], cf.ALU_FORMAT_SPEC_REG2_Dstacc.word),  # other bits of a word that UNPACR reads
    ([UNPACR], cf.THCON_SEC0_REG7_Offset_cntx2_address.word),
    ([UNPACR], cf.THCON_SEC1_REG2_Out_data_format.word),
    ([PACR], cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride.word),
    ([FLUSH_CACHE], BASE),
    ([FLUSH], PACK_BASE),
    ([PACR], BASE),
    ([MOP], BASE_1),
    ([PACR, RECORD, UNPACR], BASE),  # recorded, not executed
    ([PACR, RECORD_TWO, PACR, UNPACR, FLUSH], BASE),
    ([RECORD_TWO, PACR, UNPACR], BASE),
]


@pytest.mark.parametrize(("words", "index"), FINE)
def test_a_store_to_another_word(words: list[int], index: int) -> None:
    tile = run(words, index)
    assert tile.tensix.cfg[index // CONFIG_WORDS % 2, index % CONFIG_WORDS] == 5


def test_the_zero_mask_says_which_words_a_mop_has() -> None:
    """Template 0 gives one set of words in steps that are skipped, another in those that are not:
    tt-llk's kernels have one per context (MOPExpander, ISA)."""
    assert run([MOP_USED], BASE_1, skip=UNPACR_1).tensix.cfg[0, BASE_1] == 5
    assert run([MOP_SKIPPED], BASE, skip=UNPACR_1).tensix.cfg[0, BASE] == 5
    for words, index in (([MOP_SKIPPED], BASE_1), ([MOP_SKIPPED_ONCE], BASE)):
        with pytest.raises(Undefined, match="is queued, which reads it"):
            run(words, index, skip=UNPACR_1)


def _read(cls: type[Instruction], **values: int) -> list[int]:
    """Words of Config that a word reads: what a table by hand said before."""
    u = SECTION_WORDS * values.get("unpack_block_selection", 0)
    if cls.name == "PACR":
        return [] if values["flush"] else [PACK_BASE, PACK_FORMATS]
    if cls.name != "UNPACR" or values["cfg_context_cnt_inc"] or values["search_cache_flush"]:
        return []
    context = values["cfg_context_id"] if values["ovrd_thread_id"] else 0
    counted = values["ovrd_thread_id"] and values["auto_inc_context_id"]
    fixed = [u + DESCRIPTOR, u + DESCRIPTOR + 1, u + FORMATS]
    return fixed + ([] if counted else [u + BASE + context])


@pytest.mark.parametrize(
    "cls", [instructions()[0x41], instructions()[0x42]], ids=lambda cls: cls.name
)
def test_what_is_known_to_be_read_is_declared(cls: type[Instruction]) -> None:
    modes = [field for field in cls.fields if field.width <= 3]
    rng = random.Random(1)
    for _ in range(2000):
        word = cls.assemble(**{field.name: rng.getrandbits(field.width) for field in modes})
        index = rng.choice([BASE + i for i in range(8)] + [DESCRIPTOR, DESCRIPTOR + 1, FORMATS])
        index += SECTION_WORDS * rng.getrandbits(1)
        index = rng.choice((index, index, PACK_BASE, PACK_FORMATS))
        known = index in _read(cls, **cls.operands(word))
        for bits in (1, 0xFFFFFFFF):
            found = bool(access_order._reads(word, bits << 8 | index, 0))
            assert found >= (known and bits != 1), hex(word)
        unused = (index - BASE) % SECTION_WORDS < 8 and not known
        assert not (unused and cls.name == "UNPACR" and found), hex(word)


def test_words_of_other_instructions_are_not_followed() -> None:
    for cls in instructions().values():
        if cls.name not in ("PACR", "UNPACR"):
            word = cls.opcode << 24 | sum(field.mask for field in cls.fields)
            for index in range(CONFIG_WORDS):
                assert not access_order._reads(word, 0xFFFFFFFF << 8 | index, 0), cls.name


def test_a_store_of_the_same_value() -> None:
    run([UNPACR], BASE, value=0)


def test_a_word_that_waits_for_a_bank_is_at_the_wait_gate() -> None:
    """Both SrcB banks belong to the matrix unit, so UNPACR cannot start."""
    hand_over = assemble("UNPACR_NOP", unpacker_select=1) | 7
    tile = Tile()
    pushes = [ttinsn(word) for word in (hand_over, hand_over, UNPACR_B)]
    store = [*li(A1, TENSIX_CFG_BASE + 4 * BASE_OF_B), *li(A0, 5), sw(A0, A1)]
    tile.write(START, code(pushes, store, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    with pytest.raises(Undefined, match="CFG-IN-USE"):
        tile.run(limit=3000)
