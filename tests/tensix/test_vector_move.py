"""Copies, swaps, transposition, lane shifts and SFPCONFIG (SFPMOV, SFPSWAP, ..., Blackhole ISA)."""

import pytest
from sfpu_formats import LANES, M32
from sfpu_runner import EDGES, MASKS, fresh, refused, same
from unit_runner import run

from bhemu.jit.subset import JIT
from bhemu.tensix import lanes
from bhemu.tensix.rules import REFERENCE_LLK, RULES, counted
from bhemu.tensix.state import DTYPE, State

DEST_INDEX, EXCHANGE = 4, 0x100
SEEDS = range(4)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_copies(mode: int) -> None:
    for mask in MASKS:
        for d, c in ((1, 2), (3, 3), (7, 15)):
            same(fresh(d, mask), "SFPMOV", instr_mod1=mode, lreg_dest=d, lreg_c=c)


def test_random_state_is_read_before_it_steps() -> None:
    for mask in MASKS:
        s = fresh(6, mask)
        for d in (1, 2, 3):
            same(s, "SFPMOV", instr_mod1=8, lreg_dest=d, lreg_c=9)


def test_seeding() -> None:
    """32 steps, then two steps for each lane, lane 31 first."""

    def step(state: int) -> int:
        taps = sum(state >> bit & 1 for bit in (0, 1, 21, 31))
        return state >> 1 | (taps + 1) % 2 << 31

    s, state = State(), 0x12345678
    lanes.seed_random(s.buffer.view(DTYPE)[0] if JIT else s, state)
    want = [0] * 32
    for _ in range(32):
        state = step(state)
    for i in LANES:
        state = want[31 - i] = step(step(state))
    assert s.prng.tolist() == want


@pytest.mark.parametrize("exchange", [0, EXCHANGE])
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 9])
def test_swaps(mode: int, exchange: int) -> None:
    """LaneConfig.EXCHANGE_SRCB_SRCC inverts the choice, constants keep their value."""
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lane_config[:] = exchange
            s.lreg[1], s.lreg[2] = (EDGES * 2)[seed : seed + 32], (EDGES * 3)[9 * seed :][:32]
            s.lreg[2, ::4] = s.lreg[1, ::4]
            for d, c in ((1, 2), (2, 1), (3, 10), (8, 4), (11, 13), (5, 5)):
                same(s, "SFPSWAP", instr_mod1=mode, lreg_dest=d, lreg_src_c=c)


@pytest.mark.parametrize("config", [DEST_INDEX, DEST_INDEX | EXCHANGE])
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 9])
def test_indices_travel_with_their_values(mode: int, config: int) -> None:
    for mask in MASKS:
        s = fresh(mode, mask)
        s.lane_config[:] = config
        for d, c in ((0, 1), (3, 0), (2, 2)):
            same(s, "SFPSWAP", instr_mod1=mode, lreg_dest=d, lreg_src_c=c)


def test_minimum_and_maximum_by_position() -> None:
    s = fresh(1)
    s.lreg[1], s.lreg[2] = 5, 0x80000005  # -5 as sign and magnitude
    out = same(s, "SFPSWAP", instr_mod1=3, lreg_dest=1, lreg_src_c=2).reg
    assert out[1] == ([0x80000005] * 8 + [5] * 8) * 2
    assert out[2] == ([5] * 8 + [0x80000005] * 8) * 2


def test_transposition() -> None:
    for mask in MASKS:
        for seed in SEEDS:
            same(fresh(seed, mask), "SFPTRANSP")


def test_transposition_twice_is_nothing() -> None:
    s = fresh(1)
    s.lreg[:8] = [[100 * i + lane for lane in LANES] for i in range(8)]
    before = s.lreg.copy()
    same(s, "SFPTRANSP")
    assert s.lreg[0, 8] == 100 and s.lreg[1, 0] == 8 and s.lreg[7, 16] == 624
    same(s, "SFPTRANSP")
    assert (s.lreg == before).all()


@pytest.mark.parametrize("mode", [3, 4])
def test_lane_shifts(mode: int) -> None:
    for mask in MASKS:
        for d, c in ((1, 2), (3, 3), (4, 15)):
            same(fresh(d, mask), "SFPSHFT2", instr_mod1=mode, lreg_dest=d, lreg_src_c=c)


def test_shifts_of_a_third_register() -> None:
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[1] = (EDGES * 2)[seed : seed + 32]
            for source in (0, 1, 7, 13, 15):
                same(s, "SFPSHFT2", instr_mod1=5, lreg_dest=6, lreg_src_c=1, imm12_math=source)


REFUSED = [
    ("SFPMOV", "VECTOR-MOV-MODE", {"instr_mod1": 4}),
    ("SFPMOV", "VECTOR-MOV-MODE", {"instr_mod1": 12}),
    ("SFPMOV", "VECTOR-DEST", {"lreg_dest": 8}),
    ("SFPSWAP", "VECTOR-SWAP-MODE", {"instr_mod1": 10}),
    ("SFPTRANSP", "VECTOR-DEST-ZERO", {"lreg_dest": 1}),
    ("SFPSHFT2", "VECTOR-MODE-UNDEFINED", {"instr_mod1": 7}),
    ("SFPSHFT2", "VECTOR-IMMEDIATE", {"instr_mod1": 2, "imm12_math": 1}),
    ("SFPSHFT2", "VECTOR-DEST", {"instr_mod1": 6, "lreg_dest": 9}),
    ("SFPSHFT2", "VECTOR-IMMEDIATE", {"instr_mod1": 3, "imm12_math": 1}),
    ("SFPSHFT2", "VECTOR-SHIFT2-SOURCE", {"instr_mod1": 5, "imm12_math": 16}),
    ("SFPSHFT2", "VECTOR-DEST", {"instr_mod1": 3, "lreg_dest": 8}),
    ("SFPCONFIG", "VECTOR-IMMEDIATE", {"instr_mod1": 6, "config_dest": 4, "imm16_math": 1}),
    ("SFPCONFIG", "VECTOR-CONFIG-CONSTANT", {"instr_mod1": 1, "config_dest": 10}),
    ("SFPCONFIG", "VECTOR-CONFIG-LANES", {"config_dest": 5}),
    ("SFPCONFIG", "VECTOR-CONFIG-DEFAULT", {"instr_mod1": 1, "config_dest": 12}),
    ("SFPCONFIG", "VECTOR-CONFIG-VALUE", {"instr_mod1": 1, "config_dest": 15, "imm16_math": 1}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


def test_swap_mode_15_is_mode_9_as_production_kernels_use_it() -> None:
    """Conversions to uint16 take the maximum with it; other modes above 9 stay refused."""
    s, plain = fresh(1), fresh(1)
    s.reference[0] = REFERENCE_LLK
    fields = {"lreg_dest": 1, "lreg_src_c": 9}
    assert run(s, "SFPSWAP", instr_mod1=15, **fields) == 0
    assert run(plain, "SFPSWAP", instr_mod1=9, **fields) == 0
    assert (s.lreg == plain.lreg).all()
    assert [RULES[n].rule for n in counted(s)] == ["VECTOR-SWAP-MODE"]
    assert refused("SFPSWAP", s, instr_mod1=14) == "VECTOR-SWAP-MODE"


def test_config_writes_constants_from_lane_0() -> None:
    s = fresh(1)
    s.lreg[0] = 0x12345678
    for register in (11, 12, 13, 14):
        assert run(s, "SFPCONFIG", config_dest=register) == 0
        assert s.lreg[register].tolist() == [0x12345678] * 32
    assert run(s, "SFPCONFIG", config_dest=11, instr_mod1=1) == 0
    assert s.lreg[11].tolist() == [0xBF800000] * 32
    assert s.lreg[15].tolist() == [2 * i for i in LANES]


def test_config_writes_macro_and_lane_registers() -> None:
    s = fresh(1)
    s.lreg[0] = M32 - 5
    for register in range(8):
        assert run(s, "SFPCONFIG", config_dest=register) == 0
    assert s.macro_template.tolist() == s.macro_sequence.tolist() == [M32 - 5] * 4
    for register, value in ((6, 0xABCD), (8, 0xFFF), (15, DEST_INDEX | EXCHANGE)):
        assert run(s, "SFPCONFIG", config_dest=register, instr_mod1=1, imm16_math=value) == 0
    assert s.macro_sequence[2] == 0xABCD and s.macro_misc[0] == 0xFFF
    assert s.lane_config.tolist() == [DEST_INDEX | EXCHANGE] * 32


def test_config_exchanges_lane_by_lane() -> None:
    """As kernels of top-k do: DEST_INDEX in all lanes, the exchange in every fourth column."""
    s = fresh(1)
    s.lane_config[:] = DEST_INDEX
    s.lreg[0] = DEST_INDEX | EXCHANGE
    assert run(s, "SFPCONFIG", config_dest=15, instr_mod1=8, imm16_math=0x4444) == 0
    assert (
        s.lane_config.tolist()
        == [DEST_INDEX | EXCHANGE * (i in (1, 3, 5, 7)) for i in range(8)] * 4
    )
    assert run(s, "SFPCONFIG", config_dest=15, instr_mod1=1, imm16_math=DEST_INDEX) == 0
    assert s.lane_config.tolist() == [DEST_INDEX] * 32


@pytest.mark.parametrize("lane", [0, 1, 3, 7])
def test_config_that_would_differ_between_lanes_is_refused(lane: int) -> None:
    s = fresh(1)
    s.cc[lane] = 0
    fields = {"config_dest": 15, "instr_mod1": 1}
    assert refused("SFPCONFIG", s, imm16_math=DEST_INDEX, **fields) == "VECTOR-CONFIG-LANES"
    assert run(s, "SFPCONFIG", **fields) == 0  # nothing changes


def test_nop_changes_nothing() -> None:
    s = fresh(1, "some")
    before = s.buffer.copy()
    assert run(s, "SFPNOP") == 0
    assert (s.buffer == before).all()
