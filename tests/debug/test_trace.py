"""The trace ring handed on word by word: order, origins, bounded memory, unchanged schedule."""

import pytest

from bhemu.debug.trace import Tracer
from bhemu.errors import Undefined
from bhemu.launch import launch
from bhemu.machine.word_text import TracedWord
from bhemu.program.schema import CoreSpec, Program, RunSpec
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, bne, code, li, sw, tt, ttinsn
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import LOG_SIZE

START = 0x10000
MOP_CFG = 0xFFB80000


@pytest.fixture
def image(tmp_path):
    def make(*words: int | list[int], core: str = "trisc0", **how: object) -> Program:
        path = tmp_path / "l1.bin"
        path.write_bytes(bytes(START) + code(*words))
        spec = CoreSpec(core, pc=START)
        return Program("p", "image", {core: spec}, image=path, run=RunSpec(**how))

    return make


def traced(program: Program, **options: int) -> tuple[Tracer, list[TracedWord]]:
    words: list[TracedWord] = []
    tracer = Tracer(launch(program), program, words.append, **options)
    tracer.stop = tracer.run()
    return tracer, words


def test_pushed_words_come_in_order_with_their_pc(image) -> None:
    _, words = traced(image(tt("SEMINIT", sem_sel=1), addi(A0, ZERO, 1), tt("NOP"), PARK))
    assert [(w.number, w.thread, w.pc, w.origin, w.slot, w.text) for w in words] == [
        (0, 0, START, "push", None, "SEMINIT sem_sel=0x1"),
        (1, 0, START + 8, "push", None, "NOP"),
    ]
    assert words[0].place == ""
    assert "function" not in words[0].as_dict()


def test_a_mop_is_traced_as_the_words_it_expands_to(image) -> None:
    """Template 1 with 2 x 1 iterations and nothing around: words 5 and 8, 7 (MOPExpander)."""
    nop, loop = assemble("NOP"), assemble("SETC16", setc16_reg=12)
    last = assemble("SETC16", setc16_reg=13)
    words = [2, 1, nop, nop, nop, nop, nop, last, loop]
    setup = [part for i, w in enumerate(words) for part in (*li(A1, w), sw(A1, A0, 4 * i))]
    mop = assemble("MOP", mop_type=1)
    program = image([*li(A0, MOP_CFG), *setup], tt("MOP", mop_type=1), PARK)
    _, shown = traced(program)
    assert mop >> 24 == 1
    assert [(w.word, w.origin) for w in shown] == [(loop, "mop"), (last, "mop")]
    assert {w.pc for w in shown} == {START + 4 * (2 + len(setup))}


def test_replayed_words_name_their_slot_and_where_they_were_recorded(image) -> None:
    """REPLAY in load mode without execution records; the second one plays (REPLAY, ISA)."""
    record = tt("REPLAY", start_idx=3, len=2, load_mode=1)
    body = [tt("SETC16", setc16_reg=12), tt("NOP")]
    _, words = traced(image(record, body, tt("REPLAY", start_idx=3, len=2), PARK))
    assert [(w.origin, w.slot, w.pc) for w in words] == [
        ("replay", 3, START + 4),
        ("replay", 4, START + 8),
    ]


def long(n: int) -> list[int]:
    """`n` times 8 words in a loop."""
    body = [tt("SETC16", setc16_reg=12, setc16_value=i) for i in range(8)]
    return [*li(A0, n), *body, addi(A0, A0, -1), bne(A0, ZERO, -4 * 9), PARK]


def test_more_words_than_the_ring_holds_are_all_there_and_none_is_kept(image) -> None:
    program = image(*long(LOG_SIZE // 4))
    plain = launch(program)
    plain.run()
    tracer, words = traced(program)
    tile = tracer._tile
    assert len(words) == int(plain.state.executed[0]) == 2 * LOG_SIZE
    assert [w.word & 7 for w in words] == [i % 8 for i in range(len(words))]
    assert [w.number for w in words] == list(range(len(words)))
    assert tile.log == []
    assert tile.clock == plain.clock, "the schedule is that of a run without trace"
    assert int(tile.state.retired[1]) == int(plain.state.retired[1])


def test_the_words_of_one_thread_and_at_most_so_many(image) -> None:
    program = image(*long(1000))
    tracer, words = traced(program, most=11)
    assert (tracer.full, len(words), tracer.stop.reason) == (True, 11, "until")
    assert int(tracer._tile.state.executed[0]) < 8000, "it does not run on"
    assert traced(program, thread=1)[1] == []


def test_words_before_an_error_are_shown_and_the_error_is_raised(image) -> None:
    wrong = ttinsn(assemble("SEMPOST") | 1 << 12)
    program = image(tt("SETC16", setc16_reg=12), wrong, PARK)
    words: list[TracedWord] = []
    tracer = Tracer(launch(program), program, words.append)
    with pytest.raises(Undefined, match="reserved bits"):
        tracer.run()
    assert [(w.number, w.text, w.refused) for w in words] == [
        (0, "SETC16 setc16_reg=0xc", None),
        (1, "SEMPOST reserved bits 0x1000", "ENC-RESERVED"),
    ]
    assert words[1].pc == START + 4
    assert words[1].as_text().endswith("refused: [ENC-RESERVED]")
    assert len(traced(program, most=1)[1]) == 1, "what comes behind the last word does not matter"


def test_a_drain_that_was_interrupted_goes_on_where_it_was(image) -> None:
    program, words = image(*long(4)), []

    def show(word: TracedWord) -> None:
        words.append(word.number)
        if len(words) == 5:
            raise KeyboardInterrupt

    tracer = Tracer(launch(program), program, show)
    assert tracer.run().reason == "interrupt"
    assert words == list(range(32))


def test_limit_ends_a_trace(image) -> None:
    loop = [tt("NOP"), addi(A0, A0, 1), bne(A0, ZERO, -8)]
    tracer, words = traced(image(*loop, limit=3000))
    assert tracer.stop.reason == "limit"
    assert len(words) > 100
