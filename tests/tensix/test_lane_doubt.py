"""Doubtful lanes of the vector unit: what loads them, where they go, what refuses to go by them."""

import numpy as np
import pytest
from doubtful import BF16, doubtful, in_doubt, note, rule, storage
from pack_model import Pack
from pack_runner import execute, setup
from unit_runner import run, sentence

from bhemu.errors import BhemuError
from bhemu.machine.tile import Tile
from bhemu.riscv import csr
from bhemu.riscv.assembly import A0, PARK, code, csrrs
from bhemu.tensix import rules, unspecified
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import State
from bhemu.tensix.unspecified import DENORMAL, EXPONENT

START = 0x1000
FLAGS, STACK, RANDOM = unspecified.FLAGS, unspecified.STACK, unspecified.RANDOM
BONUS = 16
LOAD = {"instr_mod0": 2, "dest_reg_addr": 42}


def lanes(s: State, cell: int, causes: int = EXPONENT | DENORMAL) -> set[int]:
    """Lanes of a cell that have a mark of these causes."""
    mask = int(s.lane_doubt[cell])
    found = mask * (causes & 1) | (mask >> 32) * (causes >> 1)
    return {lane for lane in range(32) if found >> lane & 1}


def marked(**cells: set[int]) -> State:
    """Marks in LRegs, as r3={0, 4}, in condition codes, as flags={7}, or in their stack."""
    s = State()
    s.lreg[:8] = np.random.default_rng(5).integers(0, 1 << 32, (8, 32), dtype=np.uint32)
    s.dst_valid[:] = 1
    s.doubt[:] = 1, 0, 1
    names = {"flags": FLAGS, "stack": STACK, "random": RANDOM}
    for name, chosen in cells.items():
        cell = names.get(name) or int(name[1:])
        s.lane_doubt[cell] = sum(1 << lane for lane in chosen)
    return s


@pytest.mark.parametrize(("wide", "mode"), [(0, 2), (1, 3)])
def test_a_load_takes_the_doubt_of_its_datums_and_a_store_leaves_that_of_its_lanes(
    wide: int, mode: int
) -> None:
    s = doubtful(wide, columns=0x0030)
    for address, lane in ((40, 2), (42, 2)):  # even columns, odd ones
        load = {"instr_mod0": mode, "dest_reg_addr": address}
        assert run(s, "SFPLOAD", lreg_ind=address & 3, **load) == rules.DONE
        assert lanes(s, address & 3) == {lane}
    assert s.doubt[2]
    s.gate_pc[0] = 0x99C
    store = {"instr_mod0": mode, "dest_reg_addr": 50, "lreg_ind": 2}
    assert run(s, "SFPSTORE", **store) == rules.DONE
    assert in_doubt(s, storage(wide, 48)) == {5}  # row 48, odd columns
    assert int(s.dst_doubt_pc[storage(wide, 48)]) == 0x99C
    assert run(s, "SFPSTORE", **(store | {"lreg_ind": 5})) == rules.DONE
    assert in_doubt(s, storage(wide, 48)) == set()


def test_disabled_lanes_take_no_doubt() -> None:
    s = doubtful(columns=0x0030)
    s.cc[2] = 0
    assert run(s, "SFPLOAD", **LOAD) == rules.DONE
    assert not s.lane_doubt.any() and s.doubt[2] == 0


def test_each_lane_has_both_causes() -> None:
    """Lane 8 j + k reads column 2 k or, at the second pair of rows, 2 k + 1 of row j."""
    for column in range(16):
        for shift, cause in ((0, EXPONENT), (16, DENORMAL)):
            s = doubtful(columns=1 << (column + shift), row=41)
            address, lane = 40 + 2 * (column & 1), 8 + column // 2
            assert run(s, "SFPLOAD", instr_mod0=2, dest_reg_addr=address) == rules.DONE
            assert lanes(s, 0, cause) == {lane} and lanes(s, 0, cause ^ 3) == set()
            back = 44 + 2 * (column & 1)
            assert run(s, "SFPSTORE", instr_mod0=2, dest_reg_addr=back) == rules.DONE
            assert int(s.dst_doubt[45]) == 1 << (column + shift)
            assert run(s, "SFPLOAD", instr_mod0=2, dest_reg_addr=address ^ 2) == rules.DONE
            assert lanes(s, 0) == set() and s.doubt[2] == 0


@pytest.mark.parametrize(("mode", "expected"), [(11, set()), (14, {2, 9}), (15, {2, 9}), (9, {2})])
def test_a_load_of_halves_keeps_the_other_and_one_of_zeros_reads_nothing(
    mode: int, expected: set[int]
) -> None:
    s = doubtful(columns=0x0020)
    s.lane_doubt[0], s.doubt[2] = 1 << 9, 1
    assert run(s, "SFPLOAD", **(LOAD | {"instr_mod0": mode})) == rules.DONE
    assert lanes(s, 0) == expected


def test_overwriting_ends_doubt_lane_by_lane() -> None:
    s = marked(r1={3, 20})
    s.cc[20] = 0
    assert run(s, "SFPLOADI", instr_mod0=8, lreg_ind=1) == rules.DONE  # the upper half
    assert lanes(s, 1) == {3, 20}
    assert run(s, "SFPLOADI", lreg_ind=1) == rules.DONE
    assert lanes(s, 1) == {20} and s.doubt[2] == 1
    s.cc[20] = 1
    assert run(s, "SFPMOV", lreg_c=2, lreg_dest=1) == rules.DONE
    assert lanes(s, 1) == set() and s.doubt[2] == 0


def test_a_result_has_the_doubt_of_its_operands() -> None:
    s = marked(r1={3}, r2={4}, r5={5})
    fields = {"lreg_src_a": 1, "lreg_src_b": 2, "lreg_src_c": 3, "lreg_dest": 6}
    assert run(s, "SFPMAD", **fields) == rules.DONE
    assert lanes(s, 6) == {3, 4}
    assert run(s, "SFPIADD", lreg_c=5, lreg_dest=6, instr_mod1=5) == rules.DONE
    assert lanes(s, 6) == {5}  # the immediate, and no flags
    assert lanes(s, FLAGS) == set()


def test_comparisons_of_doubtful_lanes_leave_the_choice_in_doubt() -> None:
    s = marked(r0={3}, r4={9})
    fields = {"lreg_dest": 0, "lreg_src_c": 1}
    s.lane_config[:] = 4  # ENABLE_DEST_INDEX
    assert run(s, "SFPSWAP", instr_mod1=1, **fields) == rules.DONE
    assert lanes(s, 0) == lanes(s, 1) == {3}
    assert lanes(s, 4) | lanes(s, 5) == {3, 9} and lanes(s, 4) & lanes(s, 5) == {3}
    assert lanes(s, 2) == set()


def test_a_transposition_moves_marks() -> None:
    s = marked(r1={17}, r6={2})  # row 2 of LReg 1, row 0 of LReg 6
    assert run(s, "SFPTRANSP") == rules.DONE
    assert {r: lanes(s, r) for r in range(8) if lanes(s, r)} == {2: {9}, 4: {18}}


def test_flags_of_doubtful_lanes_leave_open_what_is_written() -> None:
    s = marked(r1={3})
    assert run(s, "SFPSETCC", lreg_c=1) == rules.DONE
    assert lanes(s, FLAGS) == {3}
    assert run(s, "SFPLOADI", lreg_ind=2, imm16=7) == rules.DONE
    assert lanes(s, 2) == {3}
    assert run(s, "SFPPUSHC") == rules.DONE
    assert run(s, "SFPENCC", instr_mod1=10, imm12_math=3) == rules.DONE
    assert (lanes(s, FLAGS), lanes(s, STACK)) == (set(), {3})
    assert run(s, "SFPPOPC") == rules.DONE
    assert (lanes(s, FLAGS), lanes(s, STACK)) == ({3}, set())
    assert run(s, "SFPSTORE", instr_mod0=2, dest_reg_addr=40, lreg_ind=3) == rules.DONE
    assert in_doubt(s, 40) == {6}


def test_the_random_state_of_open_lanes_is_in_doubt_until_it_is_seeded() -> None:
    s = marked(flags={3})
    fields = {"lreg_src_c": 1, "lreg_dest": 2, "rnd_mode": 1}
    assert run(s, "SFP_STOCH_RND", **fields) == rules.DONE
    assert lanes(s, RANDOM) == {3}
    s.lane_doubt[FLAGS] = 0
    assert run(s, "SFP_STOCH_RND", **fields) == rules.DONE
    assert lanes(s, 2) == {3}


def test_a_store_to_a_row_that_was_cleared_needs_lanes_that_are_certain() -> None:
    s = marked(flags={0, 1, 2})
    s.cc[:8] = 0
    s.dst_valid[40] = 0
    store = {"instr_mod0": 2, "dest_reg_addr": 40}
    number = run(s, "SFPSTORE", **store)
    assert rule(number) == "VECTOR-DOUBT-LANES"
    assert sentence(s, number).startswith("whether lane 0 is enabled decides more")
    s.cc[7] = 1
    assert run(s, "SFPSTORE", **store) == rules.DONE
    assert in_doubt(s, 40) == {0, 2, 4}


def test_configuration_is_not_taken_from_doubtful_lanes() -> None:
    s = marked(r0={9})
    assert run(s, "SFPCONFIG", config_dest=11) == rules.DONE  # the first row counts
    assert lanes(s, 11) == set()
    s = marked(r0={5})
    assert run(s, "SFPCONFIG", config_dest=11) == rules.DONE
    assert lanes(s, 11) == {5, 13, 21, 29}
    s.lreg[0] = 0
    number = run(s, "SFPCONFIG", config_dest=15)
    assert rule(number) == "VECTOR-DOUBT-REGISTER"
    assert sentence(s, number).startswith("LReg[0] of lane 5 decides more")
    assert run(s, "SFPCONFIG", config_dest=15, instr_mod1=1) == rules.DONE
    s = marked(flags={5})
    assert rule(run(s, "SFPCONFIG", config_dest=15, instr_mod1=1)) == "VECTOR-DOUBT-LANES"


@pytest.mark.parametrize("name", ["SFPNOT", "SFPMOV", "SFPSWAP", "SFPSETCC", "SFPMAD"])
def test_a_template_is_stored_where_all_lanes_are_enabled_for_certain(name: str) -> None:
    s = marked(r0={5})
    assert run(s, name, lreg_dest=13) == rules.DONE
    assert lanes(s, 0) == {5}
    s = marked(flags={5})
    assert rule(run(s, name, lreg_dest=13)) == "VECTOR-DOUBT-LANES"


def test_an_indirect_destination_that_is_in_doubt() -> None:
    s = marked(r7={4}, r1={6})
    s.lreg[7] = 2
    fields = {"lreg_src_a": 1, "lreg_src_b": 10, "lreg_src_c": 9, "instr_mod1": 8}
    assert run(s, "SFPMAD", **fields) == rules.DONE
    assert [lanes(s, r) for r in range(8)] == [{4}, {4, 6}, {4, 6}, *[{4}] * 5]


def test_scheduled_instructions_go_by_no_open_lanes() -> None:
    s = marked(flags={5})
    number = run(s, "SFPLOADMACRO", **LOAD)
    assert rule(number) == "VECTOR-DOUBT-LANES"
    assert s.route[0] == 0  # nothing is scheduled


def test_sfploadmacro_loads_doubt_as_sfpload_does() -> None:
    s = doubtful()
    s.macro_sequence[0] = 3 << 24  # a store
    assert run(s, "SFPLOADMACRO", **LOAD) == rules.DONE
    assert lanes(s, 0) == {2} and s.route[0] != 0


def test_a_datum_that_went_through_the_vector_unit_is_not_packed() -> None:
    s, _ = setup(Pack(offset=4))
    s.adc[0, 2, 1, 0] = 15
    s.dst_valid[:] = 1
    note(s, 40, 0x0020)
    assert run(s, "SFPLOAD", **LOAD) == rules.DONE
    assert run(s, "SFPABS", lreg_c=0, lreg_dest=1) == rules.DONE
    assert run(s, "SFPSTORE", instr_mod0=2, dest_reg_addr=6, lreg_ind=1) == rules.DONE
    before = s.l1.copy()
    assert rule(execute(s)) == "FPU-EXPONENT"
    assert np.array_equal(s.l1, before)
    assert run(s, "SFPLOADI", lreg_ind=1) == rules.DONE
    assert run(s, "SFPSTORE", instr_mod0=2, dest_reg_addr=6, lreg_ind=1) == rules.DONE
    assert execute(s) == rules.DONE


@pytest.mark.parametrize(("enabled", "refused"), [(0, True), (1, False)])
def test_a_core_that_asks_whether_any_lane_is_enabled(enabled: int, refused: bool) -> None:
    tile = Tile()
    tile.write(START, code(csrrs(A0, csr.TT_CFG_QSTATUS), PARK))
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    s = tile.state
    s.doubt[:], s.lane_doubt[FLAGS] = (1, 0, 1), 1 << 4
    s.cc[:], s.cc[9] = 0, enabled
    if not refused:
        assert tile.run().reason == "idle"
        return
    with pytest.raises(BhemuError) as caught:
        tile.run()
    assert caught.value.rule == "VECTOR-DOUBT-LANES"
    assert "lane 4" in str(caught.value)


def test_every_instruction_of_the_unit_says_what_it_does_to_marks() -> None:
    """Those that load or store take them with the datums."""
    own = {"SFPLOAD", "SFPSTORE", "SFPLOADMACRO"}
    vector = [cls for cls in instructions().values() if cls.unit == "vector" and cls.execute]
    assert {cls.name for cls in vector if cls.doubts is None} == own
    assert not [cls.name for cls in instructions().values() if cls.doubts and cls.unit != "vector"]


def test_nothing_is_marked_where_nothing_is_in_doubt() -> None:
    s = doubtful(columns=0, fmt=BF16)
    assert not (s.dst_valid & unspecified.DOUBT).any()
    for name in ("SFPLOAD", "SFPSTORE"):
        assert run(s, name, **LOAD) == rules.DONE
    assert s.doubt[2] == 0 and not s.lane_doubt.any()
