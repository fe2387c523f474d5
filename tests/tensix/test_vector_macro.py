"""SFPLOADMACRO: what it schedules and when that executes (SFPLOADMACRO, Blackhole ISA)."""

import pytest
from fuzz.campaign import LONG
from macro_reference import Scheduler
from macro_runner import Thread
from matrix_reference import rule
from sfpu_runner import fresh

from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State

NOP = assemble("SFPNOP")
WORDS, CYCLES = 0xF, 0  # UnitDelayKind


def template(name: str, **fields: int) -> int:
    return assemble(name, **fields)


def byte(choice: int, delay: int = 0, *, vb: bool = False, bonus: bool = False) -> int:
    """Byte of a sequence; choice 2 SFPNOP, 3 SFPSTORE, 4-7 templates."""
    return vb << 7 | bonus << 6 | delay << 3 | choice


def sequence(simple: int = 0, mad: int = 0, rounding: int = 0, store: int = 0) -> int:
    return simple | mad << 8 | rounding << 16 | store << 24


def macro(index: int, reg: int, address: int, mode: int = 4) -> int:
    """The SFPLOADMACRO word: two bits of the register in lreg_ind, one in the address."""
    fields = {"lreg_ind": index << 2 | reg & 3, "dest_reg_addr": address | reg >> 2}
    return assemble("SFPLOADMACRO", instr_mod0=mode, sfpu_addr_mode=0, **fields)


def prepared(
    templates: list[int], sequences: list[int], kind: int = WORDS, seed: int = 1, mask: str = "all"
) -> State:
    """A state with macros configured; stores use the mode of the load."""
    s = fresh(seed, mask)
    s.macro_template[: len(templates)] = templates
    s.macro_sequence[: len(sequences)] = sequences
    s.macro_misc[0] = kind << 8 | 0xF << 4
    return s


def same(s: State, words: list[int], *, idle: bool = False) -> Scheduler:
    """Execute on state and literal scheduler; registers, flags, Dst and PRNG must agree."""
    want = Scheduler.of(s)
    thread = Thread(s)
    assert thread.push(words) == 0, rule(int(s.status[0]))
    for word in words:
        want.cycle(word if word >> 24 >= 0x70 and word >> 24 < 0x9A else 0)
    if idle:
        assert thread.idle() == 0
        want.drain()
    assert want.model.differences(s) == []
    assert s.lreg16[0].tolist() == want.bonus
    assert bool(s.route[0]) == bool(want.scheduled or want.writes)
    return want


def refused(s: State, words: list[int]) -> str:
    status = Thread(s).push(words)
    assert status < 0
    return rule(status)


RECIPROCAL = template("SFPARECIP", lreg_dest=12)


@pytest.mark.parametrize("kind", [WORDS, CYCLES])
@pytest.mark.parametrize("mask", ["all", "some", "none"])
def test_a_chain_of_sub_units_one_row_per_cycle(kind: int, mask: str) -> None:
    """Simple writes LReg[16], which the store reads a cycle later: one row per word."""
    seq = sequence(simple=byte(4, 0, bonus=True), store=byte(3, 1, bonus=True))
    s = prepared([RECIPROCAL], [seq], kind, mask=mask)
    words = [macro(0, 0, 4 * i) for i in range(8)] + [NOP, NOP]
    same(s, words)
    assert s.route[0] == 0


def test_the_store_takes_place_two_words_later() -> None:
    seq = sequence(simple=byte(4, 0, bonus=True), store=byte(3, 1, bonus=True))
    s = prepared([RECIPROCAL], [seq])
    before = s.dst.copy()
    thread = Thread(s)
    for words, changed in (([macro(0, 0, 0), NOP], False), ([NOP], True)):
        assert thread.push(words) == 0
        assert bool((s.dst != before).any()) == changed


@pytest.mark.parametrize("reg", [2, 5])
@pytest.mark.parametrize("address", [0, 2, 508, 1020])
def test_the_store_goes_where_the_load_was(address: int, reg: int) -> None:
    """Although the load moves the counters; bit 0 of the address is bit 2 of the register."""
    s = prepared([], [sequence(store=byte(3, 4, vb=True))], seed=2)
    s.thread_cfg[1, 28] = 8  # DestIncr of section 0
    s.lreg[0] = range(100, 132)  # the store's own VD is 0
    assert Thread(s).push([macro(0, reg, address, 6), *[NOP] * 5]) == 0
    assert s.rwc[1, 2] == 8
    first, odd = address & 0x3FC, address >> 1 & 1
    assert s.dst[first : first + 4, odd::2].ravel().tolist() == list(range(100, 132))
    loaded = fresh(2).dst[first : first + 4, odd::2].ravel()
    assert s.lreg[reg].tolist() == loaded.tolist()


def test_a_mad_takes_two_cycles_and_a_store_after_it_reads_the_older_result() -> None:
    """One product per word through LReg[16]: each store reads what began two cycles before."""
    square = template("SFPMAD", lreg_src_c=9, lreg_dest=12, lreg_src_a=1)
    seq = sequence(mad=byte(4, 0, vb=True, bonus=True), store=byte(3, 2, bonus=True))
    s = prepared([square], [seq])
    want = same(s, [macro(0, 0, 4 * i) for i in range(6)] + [NOP] * 3)
    assert len({tuple(want.model.dst[2 * r]) for r in range(0, 24, 4)}) == 6


def test_select_by_condition_in_three_words_per_row() -> None:
    """The flags of a scheduled SFPSETCC act on the load after the one it meets; SFPENCC ends it."""
    setcc = template("SFPSETCC", lreg_dest=12, instr_mod1=6)
    encc = template("SFPENCC", lreg_dest=13, instr_mod1=0)
    first = sequence(simple=byte(4, 0), store=byte(3, 2))
    s = prepared([setcc, encc], [first, 0, sequence(simple=byte(5, 0))])
    s.dst[0:64:3] = 0
    load = assemble("SFPLOAD", instr_mod0=4, lreg_ind=0, dest_reg_addr=256)
    words = []
    for row in range(0, 16, 4):
        words += [macro(0, 0, row), macro(2, 0, 128 + row), load + row]
    same(s, [*words, NOP, NOP])


def test_an_indirect_mad_and_a_bitwise_correction() -> None:
    """Three macros and LReg[7] as index, the pattern of a reciprocal with one correction."""
    templates = [
        RECIPROCAL,
        template("SFPMAD", lreg_src_a=9, lreg_src_b=9, lreg_dest=13, instr_mod1=8),
        template("SFPMAD", lreg_src_a=1, lreg_src_c=11, lreg_dest=14),
        template("SFPIADD", lreg_c=1, lreg_dest=15, instr_mod1=4),
    ]
    sequences = [
        sequence(byte(4), byte(5), store=byte(3, vb=True)),
        sequence(byte(7, 5, vb=True, bonus=True), byte(6, vb=True), store=byte(3, 2)),
        sequence(store=byte(3, 1, bonus=True)),
    ]
    s = prepared(templates, sequences, 7)
    s.lreg[0], s.lreg[7] = 0x80000000, 1
    words = []
    for d in range(5):
        y = 3 + d % 3
        middle = macro(2, 1, 4 * (d - 2), 6) if d > 1 else NOP
        words += [macro(0, y, 4 * d, 6), middle, macro(1, y, 4 * d, 6)]
    same(s, [*words, NOP, macro(2, 1, 12, 6), NOP, NOP, macro(2, 1, 16, 6), NOP, NOP])


def test_a_swap_reads_in_two_cycles() -> None:
    """Minimum with a constant, then a shift: results two words after each SFPSWAP."""
    swap = template("SFPSWAP", lreg_src_c=10, lreg_dest=12, instr_mod1=1)
    shift = template("SFPSHFT2", lreg_src_c=12, lreg_dest=14, instr_mod1=5)
    seq = sequence(
        byte(4, vb=True), rounding=byte(5, 2, vb=True, bonus=True), store=byte(3, 3, bonus=True)
    )
    s = prepared([swap, shift], [seq])
    s.lreg[12] = 0xFFFFFFF0
    words = [w for i in range(4) for w in (macro(0, i & 1, 4 * i), NOP)]
    same(s, [*words, NOP, NOP, NOP])


def test_rounding_draws_when_the_instruction_executes() -> None:
    rnd = template("SFP_STOCH_RND", lreg_dest=14, instr_mod1=1, rnd_mode=1)
    seq = sequence(rounding=byte(4, 1, bonus=True), store=byte(3, 2, bonus=True))
    s = prepared([rnd], [seq], mask="some")
    same(s, [macro(0, i & 3, 4 * i) for i in range(8)] + [NOP] * 3)


def test_a_scheduled_instruction_displaces_the_regular_one() -> None:
    seq = sequence(simple=byte(4, 1))
    s = prepared([template("SFPNOT", lreg_c=0)], [seq])
    absolute = assemble("SFPABS", lreg_dest=3, lreg_c=4)
    want = same(s, [macro(0, 0, 0), NOP, absolute])
    assert want.model.reg[3] == fresh(1).lreg[3].tolist()
    s = prepared([template("SFPNOT", lreg_c=0)], [seq])
    assert same(s, [macro(0, 0, 0), absolute, NOP]).model.reg[3] != fresh(1).lreg[3].tolist()


def test_a_scheduled_nop_displaces_too() -> None:
    """Choice 2, and a template that the sub-unit cannot execute, which becomes SFPNOP."""
    absolute = assemble("SFPABS", lreg_dest=3, lreg_c=4)
    for choice in (2, 4):
        s = prepared([assemble("SFPMAD", lreg_dest=12)], [sequence(simple=byte(choice, 0))])
        same(s, [macro(0, 0, 0), absolute])
        assert s.lreg[3].tolist() == fresh(1).lreg[3].tolist()


def test_words_of_other_units_take_cycles_only() -> None:
    """Delays that count words wait for vector words; delays that count cycles do not."""
    seq = sequence(simple=byte(4, 2, bonus=True))
    other = assemble("NOP")
    for kind, done in ((CYCLES, True), (WORDS, False)):
        s = prepared([template("SFPNOT", lreg_c=0)], [seq], kind)
        same(s, [macro(0, 0, 0), other, other, other])
        assert (s.route[0] == 0) == done


def test_what_counts_cycles_completes_when_no_word_comes() -> None:
    seq = sequence(simple=byte(4, 5, bonus=True), store=byte(3, 6, bonus=True))
    for kind, done in ((CYCLES, True), (WORDS, False)):
        s = prepared([RECIPROCAL], [seq], kind)
        same(s, [macro(0, 2, 8)], idle=True)
        assert (s.route[0] == 0) == done


@pytest.mark.parametrize(
    ("templates", "seq"),
    [
        ([template("SFPNOT", lreg_c=0)], sequence(simple=byte(4))),
        ([template("SFPMAD", lreg_dest=12)], sequence(mad=byte(4))),
        ([template("SFPSHFT2", instr_mod1=5, lreg_dest=12)], sequence(rounding=byte(4))),
        ([], sequence(store=byte(3))),
    ],
)
def test_what_has_no_delay_left_executes_when_no_word_comes(templates: list[int], seq: int) -> None:
    """Delays that count words too: in each sub-unit."""
    s = prepared(templates, [seq])
    want = same(s, [macro(0, 2, 8)], idle=True)
    assert s.route[0] == 0
    assert not want.scheduled


def test_scheduling_forgets_what_would_execute_at_the_same_time() -> None:
    late, keep = sequence(simple=byte(4, 2)), 0
    templates = [template("SFPNOT", lreg_c=0), template("SFPABS")]
    results = []
    for sequence_1 in (sequence(simple=byte(5, 1)), keep):
        s = prepared(templates, [late, sequence_1])
        words = [macro(0, 0, 0), macro(1, 1, 4), NOP, NOP]
        results.append(same(s, words).model.reg[0])
    assert results[0] == [v ^ 0xFFFFFFFF for v in results[1]]


@pytest.mark.parametrize("llk", [False, True])
@pytest.mark.parametrize("unit", range(4))
def test_a_byte_that_schedules_nothing_forgets_nothing(unit: int, llk: bool) -> None:
    """Not even what is due in the cycle that its delay names: kernels leave bytes 0."""
    for delay in range(1, 7) if LONG else (1, 2, 6):
        mad = template("SFPMAD", lreg_src_a=10, lreg_src_b=10, lreg_src_c=9, lreg_dest=13)
        rounding = template("SFPSHFT2", lreg_src_c=0, imm12_math=2, lreg_dest=14, instr_mod1=5)
        parts = [byte(4 + i, delay, bonus=True) for i in range(3)] + [byte(3, delay, vb=True)]
        alone = sequence(*[part if i == unit else 0 for i, part in enumerate(parts)])
        seen = []
        for k in range(delay + 1):
            empty = sequence(*[(delay - k) << 3] * 4)
            s = prepared([RECIPROCAL, mad, rounding], [alone, empty])
            s.reference[0] = llk
            before = s.dst[0].tolist()
            words = [NOP if not k or i != k else macro(1, 5, 512) for i in range(1, delay + 1)]
            same(s, [macro(0, 1, 0), *words, NOP, NOP, NOP])
            seen.append((s.lreg16[0].tolist(), s.dst[0].tolist()))
            assert any(s.lreg16[0]) or s.dst[0].tolist() != before
        assert all(x == seen[0] for x in seen)


def test_a_delay_of_n_executes_after_n_words() -> None:
    for delay in range(8):
        s = prepared([template("SFPNOT", lreg_c=0)], [sequence(simple=byte(4, delay))])
        same(s, [macro(0, 1, 0), *[NOP] * (delay + 1)])
        assert s.route[0] == 0


@pytest.mark.parametrize("bonus", [False, True])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("SFPIADD", {"lreg_c": 5, "lreg_dest": 13, "instr_mod1": 4}),
        ("SFPSETSGN", {"lreg_c": 4, "lreg_dest": 6}),
        ("SFPSETEXP", {"lreg_c": 4, "lreg_dest": 6}),
        ("SFPSETMAN", {"lreg_c": 4, "lreg_dest": 6}),
        ("SFPXOR", {"lreg_c": 3, "lreg_dest": 14}),
        ("SFPSHFT", {"lreg_c": 3, "lreg_dest": 2}),
        ("SFPSHFT", {"lreg_c": 3, "lreg_dest": 2, "instr_mod1": 5, "imm12_math": 15}),
        ("SFPAND", {"lreg_c": 3, "lreg_dest": 2, "instr_mod1": 1, "imm12_math": 6}),
        ("SFPOR", {"lreg_c": 3, "lreg_dest": 2, "instr_mod1": 1, "imm12_math": 6}),
        ("SFPCAST", {"lreg_src_c": 3, "lreg_dest": 2, "instr_mod1": 3}),
        ("SFPGT", {"lreg_c": 3, "lreg_dest": 2, "instr_mod1": 8}),
        ("SFPMUL", {"lreg_src_a": 3, "lreg_src_b": 2, "lreg_src_c": 9}),
        ("SFPMAD", {"lreg_src_a": 3, "lreg_src_b": 2, "lreg_src_c": 5, "instr_mod1": 3}),
        ("SFPMAD", {"lreg_src_a": 3, "lreg_src_b": 2, "lreg_src_c": 5, "instr_mod1": 12}),
        ("SFPADDI", {"lreg_dest": 6, "imm16_math": 0x3FC0}),
        ("SFPMULI", {"lreg_dest": 6, "imm16_math": 0x3FC0}),
        ("SFPMUL24", {"lreg_src_a": 3, "lreg_src_b": 2, "lreg_src_c": 9}),
        ("SFPARECIP", {"lreg_c": 5, "lreg_dest": 2}),
        ("SFPSHFT2", {"lreg_src_c": 5, "imm12_math": 3, "instr_mod1": 5}),
        ("SFP_STOCH_RND", {"lreg_src_c": 5, "lreg_src_b": 3, "instr_mod1": 4}),
    ],
)
def test_operands_are_replaced(name: str, fields: dict[str, int], bonus: bool) -> None:
    """The loaded register becomes VB or VC; the other implied operand is the template's VD."""
    for vb in (False, True):
        replaces_addend = name in ("SFPMUL", "SFPMUL24") and not vb
        word = assemble(name, **fields)
        unit = 1 if "MUL" in name or "MAD" in name or name == "SFPADDI" else 0
        unit = 2 if name in ("SFPSHFT2", "SFP_STOCH_RND") else unit
        s = prepared([word], [byte(4, 0, vb=vb, bonus=bonus) << 8 * unit])
        s.lreg[7] = [i % 8 for i in range(32)]
        if replaces_addend:
            expected = "VECTOR-MUL-ZERO" if name == "SFPMUL" else "VECTOR-MUL24-ADDEND"
            assert refused(s, [macro(0, 1, 0), NOP]) == expected
        else:
            same(s, [macro(0, 1, 0), NOP, NOP, NOP])


def test_the_mode_of_the_store() -> None:
    """That of the load, or StoreMod0 where UsesLoadMod0ForStore is 0."""
    for uses, mode in ((1, 4), (0, 6)):
        s = prepared([], [sequence(store=byte(3, 0))])
        s.macro_misc[0] = 0xF00 | uses << 4 | 6
        want = same(s, [macro(0, 2, 4, 4), NOP])
        assert want.model.dst == s.dst.tolist(), mode
