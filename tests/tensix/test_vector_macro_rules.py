"""SFPLOADMACRO: random macros against the literal scheduler, hazards, and what is refused.

Sources: SFPLOADMACRO, SFPMAD, SFPSWAP, SFPSHFT2, Blackhole ISA.
"""

import random

import pytest
from fuzz.campaign import LONG
from macro_reference import Scheduler
from macro_runner import Thread
from matrix_reference import rule
from test_vector_macro import CYCLES, NOP, WORDS, byte, macro, prepared, refused, same, sequence

from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State

OPEN = ("VECTOR-MACRO-PORT", "VECTOR-MACRO-ROUND", "VECTOR-MACRO-PRNG", "VECTOR-MACRO-DST")
OPEN += (
    "VECTOR-MACRO-BUSY",
    "VECTOR-MACRO-SWAP",
    "VECTOR-MACRO-SWAP-READ",
    "VECTOR-MACRO-SWAP-OTHER",
    "VECTOR-MACRO-SWAP-LOAD",
    "VECTOR-MACRO-KINDS",
    "VECTOR-MACRO-OPERAND",
)
NOT = assemble("SFPNOT", lreg_dest=12)
MAD = assemble("SFPMAD", lreg_src_a=3, lreg_src_b=4, lreg_dest=13)


def some_template(rng: random.Random, unit: int) -> int:
    """A template for the simple, MAD or round sub-unit with random registers."""
    a, b, c, d = (rng.randrange(8) for _ in range(4))
    simple = [
        assemble("SFPNOT", lreg_c=c, lreg_dest=d),
        assemble("SFPIADD", lreg_c=c, lreg_dest=12 + d % 4, instr_mod1=4),
        assemble("SFPSETSGN", lreg_c=c, lreg_dest=d),
        assemble("SFPABS", lreg_c=c, lreg_dest=12, instr_mod1=1),
        assemble("SFPSHFT", lreg_c=c, lreg_dest=d, instr_mod1=5, imm12_math=0xFF0),
        assemble("SFPSWAP", lreg_src_c=rng.choice((9, 10, c)), lreg_dest=15, instr_mod1=1),
        assemble(
            "SFPSWAP", lreg_src_c=c, lreg_dest=rng.choice((d, 9, 10)), instr_mod1=1 + 8 * (a & 1)
        ),
    ]
    mad = [
        assemble("SFPMAD", lreg_src_a=a, lreg_src_b=b, lreg_src_c=c, lreg_dest=12),
        assemble("SFPADDI", imm16_math=0x3F80, lreg_dest=d),
    ]
    rounding = [
        assemble("SFP_STOCH_RND", lreg_src_c=c, lreg_dest=14, instr_mod1=1, rnd_mode=a % 3),
        assemble("SFPSHFT2", lreg_src_c=c, imm12_math=b, lreg_dest=14, instr_mod1=5),
    ]
    return rng.choice((simple, mad, rounding)[unit])


def some_macros(rng: random.Random) -> State:
    templates = [some_template(rng, unit) for unit in (0, 1, 2, rng.randrange(3))]
    sequences = []
    for _ in range(4):
        parts = [byte(0, 7)] * 4
        for unit in range(4):
            if rng.random() < 0.6:
                choice = 3 if unit == 3 else 4 + unit
                flags = {"vb": rng.random() < 0.5, "bonus": rng.random() < 0.5}
                parts[unit] = byte(choice, rng.randrange(6), **flags)
        sequences.append(sequence(*parts))
    s = prepared(templates, sequences, rng.choice((WORDS, CYCLES)), rng.randrange(1 << 20))
    s.cc[:] = [rng.random() < 0.8 for _ in range(32)]
    s.dst_valid[:] = 1
    return s


def some_word(rng: random.Random, row: int) -> int:
    kind = rng.randrange(8)
    if kind < 4:
        return macro(rng.randrange(4), rng.randrange(8), 4 * row, rng.choice((4, 6)))
    others = {"lreg_c": rng.randrange(8), "lreg_dest": rng.randrange(8)}
    word = {4: assemble("SFPLOADI", imm16=row, instr_mod0=2, lreg_ind=rng.randrange(8))}
    word[5] = assemble("SFPXOR", **others)
    word[6] = assemble("NOP") if rng.random() < 0.4 else NOP
    return word.get(kind, NOP)


def test_random_macros() -> None:
    """Whatever is accepted equals the literal scheduler; what is refused has a named reason."""
    accepted, rng = 0, random.Random(38)
    tries = 500 if LONG else 50
    for _ in range(tries):
        s = some_macros(rng)
        words = [some_word(rng, row) for row in range(10)] + [NOP] * 9
        want = Scheduler.of(s)
        thread = Thread(s)
        for word in words:
            status = thread.push([word])
            if status:
                assert rule(status) in OPEN
                break
            want.cycle(word if word >> 24 != 0x02 else 0)
            assert want.model.differences(s) == []
            assert s.lreg16[0].tolist() == want.bonus
            accepted += 1
    assert accepted > 6 * tries


def test_a_regular_mad_holds_the_word_that_reads_it() -> None:
    """One cycle passes: what counts cycles executes a word earlier."""
    mad = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=3)
    reader = assemble("SFPABS", lreg_c=3, lreg_dest=4)
    other = assemble("SFPABS", lreg_c=2, lreg_dest=4)
    for word, early in ((reader, True), (other, False)):
        s = prepared([NOT], [sequence(simple=byte(4, 2, bonus=True))], CYCLES)
        assert Thread(s).push([macro(0, 0, 0), mad, word]) == 0
        assert bool((s.lreg16[0] == ~s.lreg[0]).all()) == early
        s = prepared([NOT], [sequence(simple=byte(4, 5))], WORDS)
        assert Thread(s).push([macro(0, 0, 0), mad, word, NOP]) == 0
        product = s.lreg[3].copy()
        alone = prepared([], [])
        assert Thread(alone).push([mad, word]) == 0
        assert product.tolist() == alone.lreg[3].tolist()
        assert s.lreg[4].tolist() == alone.lreg[4].tolist()


def test_a_scheduled_mad_does_not_hold_its_reader() -> None:
    """The reader gets the older value; a word later it gets the product."""
    seq = sequence(mad=byte(5, 0, vb=True))
    copy = assemble("SFPMOV", lreg_c=0, lreg_dest=5)
    s = prepared([NOT, MAD], [seq])
    same(s, [macro(0, 0, 0), NOP, copy])
    older = s.lreg[5].copy()
    s = prepared([NOT, MAD], [seq])
    want = same(s, [macro(0, 0, 0), NOP, NOP, copy])
    assert want.model.reg[5] == want.model.reg[0] != older.tolist()


def test_a_regular_swap_holds_every_word_but_sfpnop() -> None:
    swap = assemble("SFPSWAP", lreg_dest=2, lreg_src_c=3, instr_mod1=1)
    load = assemble("SFPLOADI", imm16=1, instr_mod0=2, lreg_ind=6)
    for word, early in ((load, True), (NOP, False)):
        s = prepared([NOT, MAD], [sequence(mad=byte(5, 2, bonus=True))], CYCLES)
        before = s.lreg16[0].copy()
        assert Thread(s).push([macro(0, 0, 0), swap, word, NOP]) == 0
        assert bool((s.lreg16[0] != before).any()) == early


HIDDEN = [
    assemble("SFPIADD", lreg_c=2, lreg_dest=3, instr_mod1=4),
    assemble("SFPSHFT", lreg_c=2, lreg_dest=3),
    assemble("SFPAND", lreg_c=2, lreg_dest=5, instr_mod1=1, imm12_math=3),
    assemble("SFPSWAP", lreg_src_c=2, lreg_dest=3, instr_mod1=1),
    assemble("SFPSHFT2", lreg_src_c=2, lreg_dest=5, imm12_math=3, instr_mod1=5),
    assemble("SFPSHFT2", lreg_src_c=3, lreg_dest=5, instr_mod1=3),
]


@pytest.mark.parametrize("word", HIDDEN)
def test_reads_that_the_hardware_does_not_notice(word: int) -> None:
    mad = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=3)
    s = prepared([NOT], [sequence(simple=byte(4, 6))])
    assert refused(s, [macro(0, 0, 0), mad, word]) == "VECTOR-MACRO-HAZARD"
    s = prepared([NOT], [sequence(simple=byte(4, 6))])
    assert Thread(s).push([macro(0, 0, 0), mad, NOP, word]) == 0


def test_a_wait_lets_cycles_pass() -> None:
    """A vector word held by STALLWAIT: what counts cycles is complete before it executes."""
    wait = assemble("STALLWAIT", stall_res=1 << 8, wait_res=1 << 7)
    for kind, done in ((CYCLES, True), (WORDS, False)):
        s = prepared([NOT], [sequence(simple=byte(4, 6, bonus=True))], kind)
        assert Thread(s).push([macro(0, 0, 0), wait, NOP]) == 0
        assert s.gate_full[1] == 1
        assert (s.route[0] == 0) == done


def test_a_semaphore_is_posted_after_the_stores() -> None:
    """Words of other threads take no cycles; the thread's own sync words let time pass first."""
    s = prepared([], [sequence(store=byte(3, 6, vb=True))], CYCLES)
    s.lreg[0], s.sem_max[:] = range(500, 532), 15
    assert Thread(s).push([macro(0, 1, 0, 6)]) == 0
    for t in (0, 2):
        assert Thread(s, t).push([assemble("SETRWC"), assemble("SEMPOST", sem_sel=1)]) == 0
        assert s.route[0] != 0
    assert Thread(s).push([assemble("SEMPOST", sem_sel=2)]) == 0
    assert s.route[0] == 0
    assert s.dst[0, 0::2].tolist() == list(range(500, 508))


def test_reserved_bits_of_a_routed_word() -> None:
    s = prepared([NOT], [sequence(simple=byte(4, 3))])
    assert refused(s, [macro(0, 0, 0), macro(0, 0, 0) | 0x400]) == "ENC-RESERVED"


SWAP = assemble("SFPSWAP", lreg_src_c=10, lreg_dest=15, instr_mod1=1)
ROUND = assemble("SFP_STOCH_RND", lreg_dest=14, instr_mod1=1)
CAST = assemble("SFPCAST", lreg_dest=12, instr_mod1=1)
CONFIG = assemble("SFPCONFIG", config_dest=15, instr_mod1=1)
AND = assemble("SFPAND", lreg_c=1, lreg_dest=2)
LOAD = assemble("SFPLOAD", instr_mod0=4, lreg_ind=1)
ALL_FOUR = [NOT, MAD, ROUND, SWAP]

REFUSED = [
    ("VECTOR-MACRO-SELECTOR", ALL_FOUR, sequence(mad=1), [macro(0, 0, 0)]),
    ("VECTOR-MACRO-STORE", ALL_FOUR, sequence(store=byte(2)), [macro(0, 0, 0)]),
    ("VECTOR-MACRO-STORE", ALL_FOUR, sequence(store=byte(4)), [macro(0, 0, 0)]),
    ("VECTOR-MACRO-CONFIG", [CONFIG], sequence(simple=byte(4)), [macro(0, 0, 0)]),
    (
        "VECTOR-MACRO-MIRROR",
        ALL_FOUR,
        sequence(byte(4, 4)),
        [macro(0, 0, 0), assemble("SFPLUTFP32", instr_mod1=8, lreg_dest=1)],
    ),
    ("VECTOR-MACRO-OPERAND", [AND], sequence(simple=byte(4, bonus=True)), [macro(0, 0, 0)]),
    ("VECTOR-MACRO-ROUND", ALL_FOUR, sequence(byte(4), rounding=byte(6)), [macro(0, 0, 0), NOP]),
    (
        "VECTOR-MACRO-PRNG",
        [CAST, MAD, ROUND],
        sequence(byte(4), rounding=byte(6, bonus=True)),
        [macro(0, 0, 0), NOP],
    ),
    ("VECTOR-MACRO-SWAP", ALL_FOUR, sequence(byte(7), mad=byte(5)), [macro(0, 0, 0), NOP]),
    (
        "VECTOR-MACRO-BUSY",
        ALL_FOUR,
        sequence(byte(7), rounding=byte(6, 1)),
        [macro(0, 0, 0), NOP, NOP],
    ),
    ("VECTOR-MACRO-SWAP-READ", ALL_FOUR, sequence(byte(7)), [macro(0, 1, 0), LOAD]),
    ("VECTOR-MACRO-PORT", ALL_FOUR, sequence(byte(4)), [macro(0, 1, 0), LOAD]),
    ("VECTOR-MACRO-DST", ALL_FOUR, sequence(store=byte(3)), [macro(0, 2, 0), LOAD]),
    ("VECTOR-STACK", ALL_FOUR, 0, [macro(0, 0, 0, 10)]),
    ("VECTOR-MODE", [assemble("SFPENCC", instr_mod1=4)], byte(4), [macro(0, 0, 0), NOP]),
]


@pytest.mark.parametrize(
    "sequence_0",
    [
        sequence(byte(7), mad=byte(2), rounding=byte(2, 1)),
        sequence(byte(7), mad=byte(2, 1)),
        sequence(byte(2), rounding=byte(6)),
        sequence(byte(4), rounding=byte(2)),
        sequence(byte(2), mad=byte(5), rounding=byte(2), store=byte(3)),
    ],
)
def test_a_scheduled_nop_is_no_instruction(sequence_0: int) -> None:
    """SFPSWAP wants it beside it and behind it; a simple or round instruction is alone with it."""
    s = prepared(ALL_FOUR, [sequence_0])
    same(s, [macro(0, 3, 0), NOP, NOP, NOP, NOP])


@pytest.mark.parametrize(("name", "templates", "sequence_0", "words"), REFUSED)
def test_refused(name: str, templates: list[int], sequence_0: int, words: list[int]) -> None:
    assert refused(prepared(templates, [sequence_0]), words) == name


def test_the_error_shows_the_scheduled_instruction() -> None:
    word = assemble("SFPENCC", instr_mod1=4)
    s = prepared([word], [byte(4)])
    assert refused(s, [macro(0, 3, 0), NOP]) == "VECTOR-MODE"
    assert int(s.gate_word[1]) >> 24 == word >> 24


def test_kinds_that_mix() -> None:
    """After the last delay that counts words only delays that count cycles are left."""
    seq = sequence(simple=byte(4, 0, bonus=True), mad=byte(5, 4))
    s = prepared([NOT, MAD], [seq], 0b0001)
    assert refused(s, [macro(0, 0, 0), assemble("NOP")]) == "VECTOR-MACRO-KINDS"
    s = prepared([NOT, MAD], [seq], 0b0001)
    same(s, [macro(0, 0, 0), NOP, assemble("NOP"), assemble("NOP"), NOP, NOP])


@pytest.mark.parametrize("unit", range(4))
def test_kinds_that_mix_in_each_sub_unit(unit: int) -> None:
    """The last delay that counts words may be that of any sub-unit."""
    parts = [byte(4, 4, bonus=True), byte(5, 4), byte(6, 4), byte(3, 4)]
    parts[unit] = (byte(4, bonus=True), byte(5), byte(6), byte(3))[unit]
    if unit != 2:
        parts[2] = 0
    for other in range(4):
        chosen = [part if i in (unit, other) else 0 for i, part in enumerate(parts)]
        s = prepared(ALL_FOUR, [sequence(*chosen)], 1 << unit)
        if other != unit and chosen[other]:
            assert refused(s, [macro(0, 0, 0), assemble("NOP")]) == "VECTOR-MACRO-KINDS"
        else:
            assert Thread(s).push([macro(0, 0, 0), assemble("NOP")]) == 0


def test_an_overwritten_product_while_cycles_count() -> None:
    mad = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=3)
    load = assemble("SFPLOADI", imm16=1, instr_mod0=2, lreg_ind=3)
    s = prepared([NOT], [sequence(simple=byte(4, 6))], CYCLES)
    assert refused(s, [macro(0, 0, 0), mad, load]) == "VECTOR-MACRO-STALL"
    s = prepared([NOT], [sequence(simple=byte(4, 6))], WORDS)
    assert Thread(s).push([macro(0, 0, 0), mad, load]) == 0
    assert s.lreg[3].tolist() == [1] * 32
