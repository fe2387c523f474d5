"""Stochastic rounding by a model: what it may give, how often, from which seed.

No source says which random bits silicon takes. What is checked is what every reading has in common:
a rounded result is one of the two neighbours, and rounding to nearest gives one of them too.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from fuzz.campaign import LONG
from matrix_reference import filled, high_row
from pack_model import BFP, PAIRS, Pack
from pack_runner import execute, setup
from test_pack_rules import change
from unit_runner import count, run

from bhemu.errors import InputError
from bhemu.llk import options
from bhemu.machine.tile import Tile
from bhemu.tensix import config, lanes, rules
from bhemu.tensix.lanes import DOWN, RANDOM, REFUSED, UP
from bhemu.tensix.state import State

FP16, BF16, TF32, INT8 = 1, 5, 4, 14
ROWS = {"MVMUL": 8, "GAPOOL": 4, "ELWADD": 8, "ELWSUB": 8, "ELWMUL": 8, "CONV3S1": 8}
FORMATS = [(fmt, wide) for fmt in (BF16, TF32, FP16) for wide in (0, 1)]
Array = npt.NDArray[np.int64]


def value_of(cells: npt.NDArray[np.uint32], fmt: int, wide: int) -> Array:
    """Cells of Dst as sign-magnitude numbers that order as the datums do."""
    high = cells >> 16 if wide else cells
    if fmt == FP16 and not wide:
        magnitude = (high & 31) << 10 | high >> 5 & 0x3FF
    else:
        magnitude = (high & 255) << 7 | high >> 8 & 127
    magnitude = magnitude.astype(np.int64)
    if wide:
        magnitude = magnitude << 16 | cells & 0xFFFF
    return np.where(high >> 15 & 1, -magnitude, magnitude)


def result(
    name: str, fmt: int, wide: int, mode: int, seed: int, chance: int = 0
) -> tuple[Array, State]:
    s = filled(seed, fmt, bool(wide))
    s.stochastic[0], s.stochastic_seed[0] = mode, chance
    s.cfg[0, 1] |= int(mode != REFUSED)
    fields: dict[str, int] = {"dst": 40}
    if name == "GAPOOL":
        fields["instr_mod19"] = 1
    if name in ("ELWADD", "ELWSUB"):
        fields["dest_accum_en"] = seed & 1
    assert run(s, name, **fields) == rules.DONE
    at = [high_row(40 + r) if wide else 40 + r for r in range(ROWS[name])]
    assert (s.dst_valid[at] == 1).all()
    cells = s.dst[at].astype(np.uint32)
    if wide:
        cells = cells << 16 | s.dst[[r + 8 for r in at]]
    return value_of(cells, fmt, wide), s


@pytest.mark.parametrize("name", ["MVMUL", "GAPOOL", "ELWADD", "ELWSUB", "ELWMUL"])
@pytest.mark.parametrize(("fmt", "wide"), FORMATS)
def test_results_are_neighbours_of_the_nearest(name: str, fmt: int, wide: int) -> None:
    inexact = 0
    for seed in range(8 if LONG else 3):
        nearest, _ = result(name, fmt, wide, REFUSED, seed)
        down, _ = result(name, fmt, wide, DOWN, seed)
        up, _ = result(name, fmt, wide, UP, seed)
        random, s = result(name, fmt, wide, RANDOM, seed, seed + 1)
        assert (abs(down) <= abs(up)).all() and (abs(up) - abs(down) <= 1).all()
        assert ((nearest == down) | (nearest == up)).all()
        lost = down != up
        assert ((random == down) | (random == up))[lost].all()
        assert (abs(random) - abs(down) <= 1)[~lost].all()
        assert count(s, lanes._MODELLED) == 1
        inexact += int(lost.sum())
    assert inexact or (wide and name in ("ELWADD", "ELWSUB"))


def test_what_the_legacy_instructions_add_is_rounded_too() -> None:
    nearest, _ = result("CONV3S1", BF16, 0, REFUSED, 1)
    for mode in (UP, DOWN):
        exact, s = result("CONV3S1", BF16, 0, mode, 1)
        assert np.array_equal(nearest, exact) and count(s, lanes._MODELLED) == 1


def test_integers_do_not_round() -> None:
    want, _ = result("MVMUL", INT8, 1, REFUSED, 3)
    for mode in (UP, DOWN, RANDOM):
        got, s = result("MVMUL", INT8, 1, mode, 3)
        assert np.array_equal(got, want)
        assert count(s, lanes._MODELLED) == 0


def test_a_sum_goes_up_as_often_as_its_lost_bits_say() -> None:
    """1.0 + k/32 of the last place of bf16, some 500 times each."""
    for k in (1, 8, 16, 31):
        s = filled(0, TF32, False)
        s.stochastic[0], s.stochastic_seed[0] = RANDOM, 77 + k
        s.cfg[0, 1] |= 1
        s.src[0] = 0x3F800000
        s.src[1] = np.float32(k * 2.0**-12).view(np.uint32)  # 2^-12 is 1/32 of 2^-7
        grown = 0
        for _ in range(4):
            s.dst_valid[:] = 0
            assert run(s, "ELWADD", dst=40) == rules.DONE
            cells = value_of(s.dst[40:48].astype(np.uint32), BF16, 0)
            assert set(np.unique(cells)) <= {0x3F80, 0x3F81}
            grown += int((cells == 0x3F81).sum())
        want = 512 * k / 32
        assert abs(grown - want) < 5 * np.sqrt(512 * (k / 32) * (1 - k / 32)) + 1, (k, grown, want)


EARLY, LATE = "ALU_ROUNDING_MODE_Gasket_srnd_en", "ALU_ROUNDING_MODE_Packer_srnd_en"


def packed(p: Pack, mode: int, seed: int, *switches: str, chance: int = 5) -> tuple[State, int]:
    s, _ = setup(p, seed)
    s.stochastic[0], s.stochastic_seed[0] = mode, chance
    for switch in switches if mode != REFUSED else ():
        change(switch, 1)(s)
    s.adc[0, 2, 1, 0] = 15
    return s, execute(s, last=1)


SIZES = {0: "<u4", 4: "<u4", 1: "<u2", 5: "<u2", 6: "u1", 2: "u1", 10: "u1"}
ROUNDING = [(w, f, o) for w, f, o in PAIRS if (f, o) in {(5, 5), (1, 1), (4, 4), (6, 5), (2, 1)}]


def output(s: State, p: Pack) -> Array:
    """The 64 datums without their signs, as numbers that order as they do."""
    kind = np.dtype(SIZES[p.out])
    first = int(s.pack_data[0]) - 64 * kind.itemsize
    datums = s.l1[first : first + 64 * kind.itemsize].view(kind).astype(np.int64)
    return datums & ((1 << 8 * kind.itemsize - 1) - 1)


@pytest.mark.parametrize(("wide", "fmt", "out"), ROUNDING)
def test_early_conversion_gives_neighbours(wide: int, fmt: int, out: int) -> None:
    step = {(4, 4): 1 << 13, (6, 5): 2, (2, 1): 1 << 4}.get((fmt, out), 1)
    p, differ = Pack(wide=wide, fmt=fmt, out=out), 0
    for seed in range(4 if LONG else 2):
        nearest = output(packed(p, REFUSED, seed)[0], p)
        down, up, random = (
            output(packed(p, mode, seed, EARLY)[0], p) for mode in (DOWN, UP, RANDOM)
        )
        assert ((up == down) | (up == down + step) | (down == 0)).all()
        assert ((nearest == down) | (nearest == up)).all()
        assert ((random == down) | (random == down + step) | (random == up)).all()
        differ += int((up != down).sum())
    loses = (wide and fmt != 1) or (fmt, out) in {(6, 5), (2, 1)} or (wide and fmt == 1)
    assert bool(differ) == bool(loses)


@pytest.mark.parametrize("out", BFP)
@pytest.mark.parametrize("wide", [0, 1])
def test_late_conversion_to_bfp(wide: int, out: int) -> None:
    """Of magnitudes of 7 bits; those of 3 bits and one are what is left of them."""
    p = Pack(wide=wide, fmt=0 if wide else 5, out=out)
    grown = 0
    for seed in range(4):
        states = [packed(p, m, seed, LATE)[0] for m in (REFUSED, DOWN, UP, RANDOM)]
        assert len({s.l1[: int(s.pack_data[0])].tobytes()[-1024:-64] for s in states}) == 1
        if out != 6:
            continue
        nearest, down, up, random = (
            s.l1[int(s.pack_data[0]) - 64 : int(s.pack_data[0])].astype(np.int64) & 127
            for s in states
        )
        assert ((up == down) | (up == down + 1)).all()
        assert ((nearest == down) | (nearest == up)).all()
        assert ((random == down) | (random == up) | (random == down + 1)).all()
        grown += int((up > down).sum())
    assert grown or out != 6


def test_a_pack_that_rounds_is_noted_and_one_that_does_not_is_not() -> None:
    s, number = packed(Pack(wide=1, fmt=5, out=5), RANDOM, 1, EARLY)
    assert number == rules.DONE and count(s, lanes._MODELLED) == 1
    s, number = packed(Pack(wide=1, fmt=0, out=5), RANDOM, 1, EARLY, LATE)
    assert number == rules.DONE and count(s, lanes._MODELLED) == 0


def test_opaque_datums_and_integers_are_packed_as_they_are() -> None:
    for p in (Pack(wide=1, fmt=9, out=9), Pack(wide=1, fmt=14, out=14)):
        want = packed(p, REFUSED, 2)[0].l1
        for mode in (UP, DOWN, RANDOM):
            s, number = packed(p, mode, 2, EARLY)
            assert number == rules.DONE and np.array_equal(s.l1, want)


def test_sums_in_l1_round_as_they_do_without() -> None:
    p = replace(Pack(wide=1, fmt=0, out=5), accumulate=1)
    want = packed(p, REFUSED, 2)[0].l1
    s, number = packed(p, UP, 2, EARLY)
    assert number == rules.DONE and np.array_equal(s.l1, want)
    assert count(s, lanes._MODELLED) == 1


def test_the_seed_decides_until_prng_seed_is_written() -> None:
    runs = [result("MVMUL", BF16, 0, RANDOM, 4, chance)[0] for chance in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_prng_seed_starts_all_generators() -> None:
    """Writing it reseeds all of them (BackendConfiguration, ISA)."""
    first, second = Tile(stochastic=3), Tile(stochastic=4)
    for tile in (first, second):
        tile.core["brisc"].write32(0xFFEF0000 + 4 * config._PRNG_SEED, 0x1234)
    states = [[int(x) for x in tile.state.stochastic_state] for tile in (first, second)]
    assert states[0] == states[1] and len(set(states[0])) == 4
    first.core["brisc"].write32(0xFFEF0000 + 4 * config._PRNG_SEED, 0x1235)
    assert [int(x) for x in first.state.stochastic_state] != states[1]
    first.reset()
    assert not first.state.stochastic_state.any()  # power-up: from the seed again
    assert (int(first.state.stochastic[0]), int(first.state.stochastic_seed[0])) == (RANDOM, 3)


def test_the_option_of_the_tile() -> None:
    pairs = [(None, REFUSED), ("off", REFUSED), ("up", UP), ("down", DOWN), (0, RANDOM)]
    for value, mode in pairs:
        assert int(Tile(stochastic=value).state.stochastic[0]) == mode
    for wrong in ("nearest", 1 << 32, -1, True, 1.5):
        with pytest.raises(InputError, match="stochastic"):
            Tile(stochastic=wrong)  # type: ignore[arg-type]


def test_the_option_of_the_stand_in() -> None:
    assert options("stochastic=7")["stochastic"] == 7
    assert options("stochastic=up")["stochastic"] == "up"
    assert "stochastic" not in options("")
