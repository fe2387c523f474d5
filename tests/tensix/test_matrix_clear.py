"""Clears, row counters and bank hand-over of the matrix unit (Wormhole ISA pages; ttsim)."""

import numpy as np
import pytest
from unit_runner import run

from bhemu.machine import sentences
from bhemu.tensix import rules
from bhemu.tensix.rules import REFERENCE_LLK, counted
from bhemu.tensix.state import State
from bhemu.tensix.units import MODULES

assert MODULES
FP32_ENABLED, INT8_ENABLED = 1 << 29, 1 << 31  # Config word 1
ABSOLUTE = 1 << 3  # Config word 220: DEST_ACCESS_CFG_zeroacc_absolute_tile_mode


def rule(number: int) -> str:
    return sentences.RULES[number].rule


def state(offset: int = 0, counter: int = 0) -> State:
    """Thread 0 with a math offset, RWC.Dst and ADDR_MOD section 2 (Dst += 5)."""
    s = State()
    s.dst[:] = np.arange(1024 * 16, dtype=np.uint16).reshape(1024, 16)
    s.thread_cfg[0, 1] = offset
    s.rwc[0, 2] = counter
    s.thread_cfg[0, 28 + 2] = 5
    return s


def zeroed(s: State) -> list[int]:
    return [int(row) for row in np.flatnonzero(s.dst_valid == 0)]


def wide_rows(block: int) -> list[int]:
    """High halves of the 16 32-bit rows of a block: rows 32*block + (i & 8)*2 + (i & 7)."""
    return sorted(32 * block + (i & 8) * 2 + (i & 7) for i in range(16))


@pytest.mark.parametrize(
    ("config", "row"), [(0, 7 + 20 + 100), (FP32_ENABLED, ((127 & 0x1F8) << 1) | (127 & 0x207))]
)
def test_zeroacc_one_row(config: int, row: int) -> None:
    s = state(100, 20)
    s.cfg[0, 1] = config
    before = s.dst.copy()
    assert run(s, "ZEROACC", where=7, addr_mode=2) == rules.DONE
    assert zeroed(s) == [row]
    assert (s.dst == before).all()  # only flags change
    assert s.rwc[0].tolist() == [0, 0, 25, 0]


@pytest.mark.parametrize(
    ("offset", "counter", "absolute", "block"),
    [
        (0, 0, 0, 3),
        (0, 511, 0, 3),
        (512, 0, 0, 35),
        (256, 256, 0, 35),
        (512, 512, 0, 3),
        (512, 0, 1, 3),
    ],
)
def test_zeroacc_16_rows(offset: int, counter: int, absolute: int, block: int) -> None:
    """Blackhole moves the block to the upper half when (math offset + RWC.Dst) & 512."""
    s = state(offset, counter)
    s.cfg[0, 220] = absolute * ABSOLUTE
    assert run(s, "ZEROACC", where=3, addr_mode=2, clear_mode=1) == rules.DONE
    assert zeroed(s) == list(range(block * 16, block * 16 + 16))
    assert s.rwc[0, 2] == (counter + 5) % 1024


@pytest.mark.parametrize(
    ("offset", "absolute", "block"),
    [(0, 0, 3), (255, 0, 3), (256, 0, 19), (512, 0, 19), (1024, 0, 3), (256, 1, 3)],
)
def test_zeroacc_16_rows_of_32_bit(offset: int, absolute: int, block: int) -> None:
    """As above, by (math offset + RWC.Dst) & 768."""
    s = state(offset)
    s.cfg[0, 220] = absolute * ABSOLUTE
    fields = {"where": 3, "addr_mode": 2, "clear_mode": 1, "use_32_bit_mode": 1}
    assert run(s, "ZEROACC", **fields) == rules.DONE
    assert zeroed(s) == wide_rows(block)
    assert s.rwc[0, 2] == 5


def test_zeroacc_clear_zero_flags_makes_rows_valid() -> None:
    s = state()
    s.dst_valid[:] = 0
    fields = {"where": 31, "clear_mode": 1, "use_32_bit_mode": 1, "clear_zero_flags": 1}
    assert run(s, "ZEROACC", **fields) == rules.DONE
    assert np.flatnonzero(s.dst_valid).tolist() == wide_rows(31)


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize(
    ("mode", "where", "first", "last"), [(2, 0, 0, 512), (2, 1, 512, 1024), (3, 0, 0, 1024)]
)
def test_zeroacc_half_and_all(wide: int, mode: int, where: int, first: int, last: int) -> None:
    """No offset and no address modification in these modes."""
    s = state(512, 40)
    s.thread_cfg[0, 47 + 2] = 1  # the section is not even looked at
    fields = {"where": where, "addr_mode": 2, "clear_mode": mode, "use_32_bit_mode": wide}
    assert run(s, "ZEROACC", **fields) == rules.DONE
    assert zeroed(s) == list(range(first, last))
    assert s.rwc[0, 2] == 40


@pytest.mark.parametrize(
    ("fields", "offset", "config", "name"),
    [
        ({"where": 1000}, 24, 0, "ZEROACC-ROW"),
        ({"where": 0}, 0, INT8_ENABLED, "ZEROACC-INT8"),
        ({"where": 0, "use_32_bit_mode": 1}, 0, 0, "ZEROACC-ROW-32"),
        ({"where": 64, "clear_mode": 1}, 0, 0, "ZEROACC-WHERE"),
        ({"where": 32, "clear_mode": 1}, 512, 0, "ZEROACC-WHERE"),
        ({"where": 32, "clear_mode": 1, "use_32_bit_mode": 1}, 0, 0, "ZEROACC-WHERE"),
        ({"where": 2, "clear_mode": 2}, 0, 0, "ZEROACC-WHERE"),
        ({"where": 1, "clear_mode": 3}, 0, 0, "ZEROACC-WHERE"),
        ({"where": 0, "clear_mode": 1, "clear_zero_flags": 1}, 0, 0, "ZEROACC-REVERT"),
        ({"where": 0, "clear_mode": 3, "clear_zero_flags": 1}, 0, 0, "ZEROACC-REVERT"),
        ({"where": 0, "clear_mode": 1, "addr_mode": 7}, 0, 0, "ADDR-MOD-BIAS"),
    ],
)
def test_zeroacc_rules(fields: dict[str, int], offset: int, config: int, name: str) -> None:
    s = state(offset)
    s.thread_cfg[0, 47 + 7] = 2
    s.cfg[0, 1] = config
    assert rule(run(s, "ZEROACC", **{"addr_mode": 2, **fields})) == name
    assert s.dst_valid.all()
    assert s.rwc[0, 2] == 0


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"where": 0xFF, "clear_mode": 1}, []),  # a way to apply ADDR_MOD only (RWCs, ISA)
        ({"where": 0x103, "clear_mode": 1}, list(range(48, 64))),  # the field has 8 bits
        ({"where": 32, "clear_mode": 1, "use_32_bit_mode": 1}, []),
        ({"where": 3, "clear_mode": 2}, list(range(512, 1024))),
        ({"where": 2, "clear_mode": 2}, list(range(512))),
        ({"where": 9, "clear_mode": 3}, list(range(1024))),
    ],
)
def test_zeroacc_where_on_silicon(fields: dict[str, int], want: list[int]) -> None:
    s = state()
    s.ub_mode[0] = 2
    assert run(s, "ZEROACC", addr_mode=2, **fields) == rules.DONE
    assert zeroed(s) == want
    assert s.rwc[0, 2] == (5 if fields["clear_mode"] == 1 else 0)
    assert s.rule_count.sum() == 1


def test_zeroacc_revert_on_silicon() -> None:
    s = state()
    s.ub_mode[0] = 1
    s.dst_valid[:] = 0
    assert run(s, "ZEROACC", where=1, clear_mode=1, clear_zero_flags=1) == rules.DONE
    assert np.flatnonzero(s.dst_valid).tolist() == list(range(16, 32))
    assert run(s, "ZEROACC", where=16, clear_zero_flags=1) == rules.DONE  # one row: ignored
    assert np.flatnonzero(s.dst_valid).tolist() == list(range(17, 32))
    assert s.rule_count.sum() == 2


def src_state() -> State:
    s = State()
    s.src[:] = 0x3F800000
    s.matrix_bank[:] = (1, 0)
    return s


def cleared(s: State) -> list[tuple[int, int]]:
    """(SrcA 0 / SrcB 1, bank) of every bank that is all zero; the others must be untouched."""
    zero = [(w, b) for w in range(2) for b in range(2) if not s.src[w, b].any()]
    rest = [s.src[w, b] for w in range(2) for b in range(2) if (w, b) not in zero]
    assert all((bank == 0x3F800000).all() for bank in rest)
    return zero


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"src_mask": 3, "bank_mask": 1}, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ({"src_mask": 1, "write_mode": 1}, [(0, 1)]),
        ({"src_mask": 2, "write_mode": 1}, [(1, 0)]),
        ({"src_mask": 3, "write_mode": 1}, [(0, 1), (1, 0)]),
    ],
)
def test_zerosrc(fields: dict[str, int], want: list[tuple[int, int]]) -> None:
    """Does not wait for valid banks and changes no counter."""
    s = src_state()
    assert run(s, "ZEROSRC", **fields) == rules.DONE
    assert cleared(s) == want
    assert not s.rwc.any()
    assert not s.src_valid.any()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"src_mask": 3, "bank_mask": 1, "zero_val": 1}, "ZEROSRC-VALUE"),
        ({"src_mask": 1, "bank_mask": 1}, "ZEROSRC-MODE"),
        ({"src_mask": 3, "bank_mask": 1, "write_mode": 1}, "ZEROSRC-MODE"),
        ({"src_mask": 3}, "ZEROSRC-MODE"),
        ({"write_mode": 1}, "ZEROSRC-MODE"),
    ],
)
def test_zerosrc_rules(fields: dict[str, int], name: str) -> None:
    s = src_state()
    assert rule(run(s, "ZEROSRC", **fields)) == name
    assert cleared(s) == []


def test_gatesrcrst_changes_nothing() -> None:
    s = State()
    before = s.buffer.copy()
    fields = {"reset_srca_gate_control": 1, "reset_srcb_gate_control": 1}
    assert run(s, "GATESRCRST", **fields) == rules.DONE
    assert (s.buffer == before).all()


@pytest.mark.parametrize("mask", [1, 2, 3])
def test_cleardvalid_returns_banks_and_flips(mask: int) -> None:
    s = State()
    s.src_valid[:] = 1
    s.matrix_bank[:] = (1, 0)
    s.thread_cfg[0, 7] = 3  # CLR_DVALID_Src{A,B}_Disable does not concern it
    assert run(s, "CLEARDVALID", cleardvalid=mask) == rules.DONE
    assert s.src_valid.tolist() == [[1, 0] if mask & 1 else [1, 1], [0, 1] if mask & 2 else [1, 1]]
    assert s.matrix_bank.tolist() == [1 - (mask & 1), mask >> 1]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"reset": 1}, "CLEARDVALID-RESET"),
        ({"reset": 2, "cleardvalid": 3}, "CLEARDVALID-RESET"),
        ({}, "CLEARDVALID-RESET"),
        ({"cleardvalid": 3}, "SRCB-NOT-VALID"),
        ({"cleardvalid": 1}, ""),
    ],
)
def test_cleardvalid_rules(fields: dict[str, int], name: str) -> None:
    s = State()
    s.src_valid[0, 0] = 1
    number = run(s, "CLEARDVALID", **fields)
    assert number == rules.DONE if not name else rule(number) == name
    assert s.src_valid[0, 0] == (1 if name else 0)


def test_cleardvalid_of_a_bank_that_is_not_valid_as_tt_llks_dumps_use_it() -> None:
    """Reference llk: it turns to the other bank all the same; SETRWC stays refused."""
    s = State()
    s.reference[0] = REFERENCE_LLK
    assert run(s, "CLEARDVALID", cleardvalid=1) == rules.DONE
    assert s.matrix_bank.tolist() == [1, 0] and s.src_valid.tolist() == [[0, 0], [0, 0]]
    assert [sentences.RULES[n].rule for n in counted(s)] == ["SRCA-NOT-VALID"]
    assert rule(run(s, "SETRWC", clear_ab_vld=1)) == "SRCA-NOT-VALID"


@pytest.mark.parametrize(
    ("fields", "want", "want_cr"),
    [
        ({"bit_mask": 0, "rwc_a": 9, "rwc_b": 9, "rwc_d": 9}, [1, 2, 3, 2], [60, 50, 1020, 0]),
        ({"bit_mask": 1, "rwc_a": 9, "rwc_b": 8}, [9, 2, 3, 2], [9, 50, 1020, 0]),
        ({"bit_mask": 2, "rwc_a": 9, "rwc_b": 8}, [1, 8, 3, 2], [60, 8, 1020, 0]),
        ({"bit_mask": 4, "rwc_d": 15}, [1, 2, 15, 2], [60, 50, 15, 0]),
        ({"bit_mask": 8}, [1, 2, 3, 0], [60, 50, 1020, 0]),
        (
            {"bit_mask": 15, "rwc_cr": 7, "rwc_a": 8, "rwc_b": 15, "rwc_d": 8},
            [4, 1, 4, 0],
            [4, 1, 4, 0],
        ),
        ({"bit_mask": 1, "rwc_cr": 4, "rwc_d": 8}, [0, 2, 3, 2], [0, 50, 1020, 0]),
    ],
)
def test_setrwc(fields: dict[str, int], want: list[int], want_cr: list[int]) -> None:
    s = State()
    s.rwc[1], s.rwc_cr[1] = (1, 2, 3, 2), (60, 50, 1020, 0)
    assert run(s, "SETRWC", 1, **fields) == rules.DONE
    assert (s.rwc[1].tolist(), s.rwc_cr[1].tolist()) == (want, want_cr)
    assert not s.rwc[0].any()
    assert not s.matrix_bank.any()


@pytest.mark.parametrize("mask", [1, 2, 3])
def test_setrwc_releases_banks(mask: int) -> None:
    s = State()
    s.src_valid[:, 0] = 1
    assert run(s, "SETRWC", bit_mask=4, rwc_d=8, clear_ab_vld=mask) == rules.DONE
    assert s.src_valid[:, 0].tolist() == [1 - (mask & 1), 1 - (mask >> 1)]
    assert s.matrix_bank.tolist() == [mask & 1, mask >> 1]
    assert s.rwc[0, 2] == 8


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rwc_cr": 8, "bit_mask": 4}, "SETRWC-CR"),
        ({"rwc_cr": 1, "bit_mask": 6}, "SETRWC-CR"),
        ({"rwc_cr": 2, "bit_mask": 5}, "SETRWC-CR"),
        ({"bit_mask": 15, "rwc_d": 1, "clear_ab_vld": 1}, "SRCA-NOT-VALID"),
    ],
)
def test_setrwc_rules(fields: dict[str, int], name: str) -> None:
    s = State()
    s.rwc[0] = 3
    assert rule(run(s, "SETRWC", **fields)) == name
    assert s.rwc[0].tolist() == [3, 3, 3, 3]
    assert not s.matrix_bank.any()


@pytest.mark.parametrize(
    ("rwc_cr", "want", "want_cr"),
    [(0, [5, 10, 1, 1], [60, 50, 1000, 0]), (4, [5, 10, 1010, 1], [60, 50, 1010, 0])],
)
def test_incrwc(rwc_cr: int, want: list[int], want_cr: list[int]) -> None:
    s = State()
    s.rwc[2], s.rwc_cr[2] = (62, 3, 1015, 1), (60, 50, 1000, 0)
    fields = {"rwc_a": 7, "rwc_b": 7, "rwc_d": 10, "rwc_cr": rwc_cr}
    assert run(s, "INCRWC", 2, **fields) == rules.DONE
    assert (s.rwc[2].tolist(), s.rwc_cr[2].tolist()) == (want, want_cr)


@pytest.mark.parametrize("rwc_cr", [1, 2, 3, 5, 7])
def test_incrwc_rules(rwc_cr: int) -> None:
    s = State()
    assert rule(run(s, "INCRWC", rwc_a=1, rwc_d=1, rwc_cr=rwc_cr)) == "INCRWC-CR"
    assert not s.rwc.any()
