"""The numbers in the sentences of rules of the vector, sync, scalar and matrix units.

What a sentence shows is a field, a counter or a register of the case, counted by hand.
"""

from collections.abc import Callable
from typing import Any

import pytest
from sfpu_runner import fresh
from unit_runner import numbers, run
from unpack_model import put

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix.state import State


def nothing(s: State) -> None:
    del s


def item(member: str, index: Any, value: int) -> Callable[[State], None]:
    return lambda s: getattr(s, member).__setitem__(index, value)


def srcb(fmt: int) -> Callable[[State], None]:
    return lambda s: put(s, cf.ALU_FORMAT_SPEC_REG1_SrcB, fmt)


def stack_base(value: int) -> Callable[[State], None]:
    return lambda s: put(s, cf.DEST_SP_BASE_Base, value)


def stack_of_flags(entries: int) -> Callable[[State], None]:
    def alter(s: State) -> None:
        for _ in range(entries):
            assert run(s, "SFPPUSHC") == rules.DONE

    return alter


def one_lane(lane: int) -> Callable[[State], None]:
    """LReg0 is equal in all lanes but one."""

    def put_lanes(s: State) -> None:
        s.lreg[0] = 0
        s.lreg[0, lane] = 9

    return put_lanes


Case = tuple[str, list[int], str, dict[str, int], Callable[[State], None]]
VECTOR: list[Case] = [
    ("VECTOR-IMPLIED-FORMAT", [13], "SFPLOAD", {}, srcb(13)),
    ("VECTOR-IMPLIED-FORMAT", [12], "SFPSTORE", {}, srcb(12)),
    ("VECTOR-STACK-BASE", [6], "SFPSTORE", {}, lambda s: put(s, cf.DEST_SP_BASE_Base, 6)),
    ("VECTOR-MODE", [9, 9], "SFPADDI", {"instr_mod1": 9}, nothing),
    ("VECTOR-IMPLIED-FORMAT", [12], "SFPLOAD", {}, srcb(12)),
    ("VECTOR-IMPLIED-FORMAT", [13], "SFPSTORE", {}, srcb(13)),
    ("VECTOR-STACK-BASE", [3], "SFPLOAD", {}, stack_base(3)),
    ("VECTOR-TEMPLATE-LOAD", [13], "SFPLOAD", {"instr_mod0": 2, "lreg_ind": 13}, nothing),
    ("VECTOR-DST-ODD", [7], "SFPLOAD", {"instr_mod0": 2, "dest_reg_addr": 7}, nothing),
    (
        "VECTOR-DST-ROW",
        [9],
        "SFPSTORE",
        {"instr_mod0": 2, "dest_reg_addr": 8},
        item("rwc", (0, 2), 1),
    ),
    ("VECTOR-DEST", [8], "SFPLOADI", {"lreg_ind": 8}, nothing),
    ("VECTOR-DEST", [11], "SFPMAD", {"lreg_dest": 11}, nothing),
    ("VECTOR-MODE-UNDEFINED", [3, 3], "SFPLOADI", {"instr_mod0": 3}, nothing),
    (
        "VECTOR-MUL-ZERO",
        [8],
        "SFPMUL",
        {"lreg_src_a": 1, "lreg_src_b": 2, "lreg_src_c": 8},
        nothing,
    ),
    (
        "VECTOR-MUL24-ADDEND",
        [4],
        "SFPMUL24",
        {"lreg_src_a": 1, "lreg_src_b": 2, "lreg_src_c": 4},
        nothing,
    ),
    (
        "VECTOR-ADD-ONE",
        [2, 5],
        "SFPADD",
        {"lreg_src_a": 2, "lreg_src_b": 5, "lreg_src_c": 1},
        nothing,
    ),
    ("VECTOR-SWAP-MODE", [12], "SFPSWAP", {"instr_mod1": 12, "lreg_src_c": 1}, nothing),
    ("VECTOR-SHIFT2-SOURCE", [16], "SFPSHFT2", {"instr_mod1": 5, "imm12_math": 16}, nothing),
    ("VECTOR-IMMEDIATE", [9, 3], "SFPSHFT2", {"instr_mod1": 3, "imm12_math": 9}, nothing),
    ("VECTOR-SHIFT-MODE", [4], "SFPSHFT", {"instr_mod1": 4}, nothing),
    ("VECTOR-CC-OVERFLOW", [8], "SFPPUSHC", {}, stack_of_flags(8)),
    ("VECTOR-ROUND-MODE", [3], "SFP_STOCH_RND", {"rnd_mode": 3}, nothing),
    (
        "VECTOR-ROUND-SCALE",
        [6, 1],
        "SFP_STOCH_RND",
        {"instr_mod1": 1, "imm8_math": 6},
        nothing,
    ),
    ("VECTOR-CC-TOP", [13], "SFPPUSHC", {"instr_mod1": 13}, nothing),
    ("VECTOR-MOV-MODE", [5], "SFPMOV", {"instr_mod1": 5}, nothing),
    ("VECTOR-CONFIG-CONSTANT", [9], "SFPCONFIG", {"config_dest": 9, "instr_mod1": 1}, nothing),
    ("VECTOR-CONFIG-LANES", [4, 6], "SFPCONFIG", {"config_dest": 4}, one_lane(6)),
    (
        "VECTOR-CONFIG-VALUE",
        [0x13],
        "SFPCONFIG",
        {"config_dest": 15, "instr_mod1": 1, "imm16_math": 0x13},
        nothing,
    ),
]

VECTOR += [
    ("VECTOR-DEST-ZERO", [5], "SFPPUSHC", {"lreg_dest": 5, "instr_mod1": 2}, nothing),
    ("VECTOR-DEST-ZERO", [3], "SFPTRANSP", {"lreg_dest": 3}, nothing),
    ("VECTOR-DIVP2-IMMEDIATE", [0x80], "SFPDIVP2", {"imm12_math": 0x80, "lreg_c": 3}, nothing),
    ("VECTOR-BITS-REGISTER", [7, 0], "SFPAND", {"imm12_math": 7, "lreg_c": 3}, nothing),
    ("VECTOR-TEMPLATE-LANES", [13], "SFPNOT", {"lreg_dest": 13, "lreg_c": 3}, item("cc", 3, 0)),
    ("TEN-2932", [5], "SFPNOT", {"lreg_dest": 5, "lreg_c": 3}, item("lane_config", slice(32), 4)),
    ("TEN-2932", [7], "SFPMULI", {"instr_mod1": 8}, item("lane_config", slice(32), 4)),
    ("TEN-2932", [7], "SFPLUT", {"instr_mod0": 12}, item("lane_config", slice(32), 4)),
    ("TEN-2932", [7], "SFPLUTFP32", {"instr_mod1": 8}, item("lane_config", slice(32), 4)),
    ("TEN-2932", [7], "SFPMUL24", {"instr_mod1": 8, "lreg_src_c": 9}, item("lane_config", 0, 4)),
]


def run_refused(case: Case, s: State) -> tuple[str, list[int]]:
    _, _, name, fields, alter = case
    alter(s)
    s.detail[:] = 77
    number = run(s, name, **fields)
    assert number in sentences.RULES, (name, fields, number)
    return rules.RULES[number].rule, numbers(s, number)


@pytest.mark.parametrize("case", VECTOR, ids=lambda case: f"{case[0]}-{case[2]}")
def test_vector(case: Case) -> None:
    s = fresh(3)
    assert run_refused(case, s) == (case[0], case[1])


def bf16(member: str, index: Any, value: int) -> Callable[[State], None]:
    """Both banks hold bf16."""

    def alter(s: State) -> None:
        s.src_fmt[:] = 5
        item(member, index, value)(s)

    return alter


OTHERS: list[Case] = [
    ("ADC-THREAD-OVERRIDE", [0x12345], "SETADC", {"value": 0x12345, "cnt_set_mask": 1}, nothing),
    ("ELW-PHASE", [2], "ELWADD", {"dst": 8}, bf16("rwc", (0, 3), 2)),
    ("ELW-PHASE", [1], "ELWSUB", {"dst": 8}, bf16("rwc", (0, 3), 1)),
    ("MATMUL-DST-ROW", [20, 8], "MVMUL", {"dst": 16}, bf16("rwc", (0, 2), 4)),
    ("MATMUL-DST-ROW", [10, 4], "GAPOOL", {"dst": 8, "instr_mod19": 1}, bf16("rwc", (0, 2), 2)),
    ("MVMUL-MODE", [1], "MVMUL", {"instr_mod19": 1, "dst": 8}, bf16("rwc", (0, 2), 8)),
    ("LEGACY-FIELD", [1025, 1023], "CONV3S1", {"dst": 1025}, bf16("rwc", (0, 2), 0)),
    ("MUTEX-TWICE", [3, 0], "ATGETM", {"mutex_index": 3}, item("mutex", 3, 1)),
    ("SRCA-NOT-VALID", [0], "CLEARDVALID", {"cleardvalid": 3}, item("src_valid", (0, 0), 0)),
    ("SRCB-NOT-VALID", [0], "CLEARDVALID", {"cleardvalid": 3}, item("src_valid", (1, 0), 0)),
    ("SEM-INIT", [9, 8], "SEMINIT", {"sem_sel": 1, "init_value": 9, "max_value": 8}, nothing),
    ("SEM-POST-FULL", [3, 5, 5], "SEMPOST", {"sem_sel": 8}, nothing),
    ("SEM-GET-EMPTY", [6], "SEMGET", {"sem_sel": 0x40}, nothing),
    ("MUTEX-INDEX", [1], "ATGETM", {"mutex_index": 1}, nothing),
    ("MUTEX-INDEX", [5], "ATRELM", {"mutex_index": 5}, nothing),
    ("MUTEX-OWNER", [3, 0], "ATRELM", {"mutex_index": 3}, nothing),
    ("ZEROACC-REVERT", [1, 0], "ZEROACC", {"clear_zero_flags": 1, "clear_mode": 1}, nothing),
    ("ZEROACC-REVERT", [3, 0], "ZEROACC", {"clear_zero_flags": 1, "clear_mode": 3}, nothing),
    ("ZEROACC-REVERT", [0, 1], "ZEROACC", {"clear_zero_flags": 1, "use_32_bit_mode": 1}, nothing),
    ("ZEROACC-WHERE", [1, 64], "ZEROACC", {"where": 64, "clear_mode": 1}, nothing),
    ("ZEROACC-WHERE", [1, 70], "ZEROACC", {"where": 38, "clear_mode": 1}, item("rwc", (0, 2), 512)),
    ("ZEROACC-WHERE", [2, 5], "ZEROACC", {"where": 5, "clear_mode": 2}, nothing),
    ("ZEROACC-WHERE", [3, 1], "ZEROACC", {"where": 1, "clear_mode": 3}, nothing),
    ("ZEROSRC-MODE", [1, 3], "ZEROSRC", {"src_mask": 1, "write_mode": 1, "bank_mask": 1}, nothing),
    ("ZEROSRC-MODE", [2, 1], "ZEROSRC", {"src_mask": 2, "bank_mask": 1}, nothing),
    ("ZEROSRC-MODE", [3, 0], "ZEROSRC", {"src_mask": 3}, nothing),
    ("ZEROACC-ROW-32", [8], "ZEROACC", {"where": 8, "use_32_bit_mode": 1}, nothing),
    ("ZEROACC-ROW", [1025], "ZEROACC", {"where": 1023}, item("rwc", (0, 2), 2)),
    ("SETRWC-CR", [8, 0], "SETRWC", {"rwc_cr": 8}, nothing),
    ("SETRWC-CR", [9, 5], "SETRWC", {"rwc_cr": 9, "bit_mask": 5, "clear_ab_vld": 2}, nothing),
    ("INCRWC-CR", [1], "INCRWC", {"rwc_cr": 1}, nothing),
    ("CLEARDVALID-RESET", [2, 1], "CLEARDVALID", {"reset": 2, "cleardvalid": 1}, nothing),
    ("CFG-ALIGN", [6, 4], "WRCFG", {"cfg_reg": 6, "wr128b": 1, "gpr_address": 4}, nothing),
    ("CFG-ALIGN", [8, 5], "WRCFG", {"cfg_reg": 8, "wr128b": 1, "gpr_address": 5}, nothing),
    ("CFG-INDEX", [224], "RDCFG", {"cfg_reg": 224}, nothing),
    ("CFG-THREAD-INDEX", [68], "SETC16", {"setc16_reg": 68}, nothing),
    *(
        ("THCON-ATOMIC-FIELDS", [1, 0], name, {"mem_hier_sel": 1, "data_reg_index": reg}, nothing)
        for name, reg in (("ATINCGET", 9), ("ATINCGETPTR", 9), ("ATSWAP", 9), ("ATCAS", 0))
    ),
    ("THCON-ATOMIC-FIELDS", [0, 5], "ATCAS", {"data_reg_index": 5, "sel32b": 2}, nothing),
    ("THCON-ATOMIC-FIELDS", [1, 6], "ATCAS", {"data_reg_index": 6, "mem_hier_sel": 1}, nothing),
    ("REG2FLOP-INDEX", [120, 116], "REG2FLOP", {"size_sel": 1, "flop_index": 120}, nothing),
    ("THCON-SHIFT", [5], "SHIFTDMAREG", {"op_sel": 5}, nothing),
    ("THCON-CMP", [3], "CMPDMAREG", {"op_sel": 3}, nothing),
    ("THCON-BITWOP", [4], "BITWOPDMAREG", {"op_sel": 4}, nothing),
    ("SHIFTXA-DIRECTION", [1], "SHIFTXA", {"direction": 1}, nothing),
    ("XMOV-FIELDS", [0, 1], "XMOV", {"mov_block_selection": 1}, nothing),
    ("XMOV-FIELDS", [1, 0], "XMOV", {"last": 1}, nothing),
]


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: f"{case[0]}-{case[2]}")
def test_other_units(case: Case) -> None:
    s = State()
    s.sem[3] = s.sem_max[3] = 5
    s.src_valid[:] = 1
    assert run_refused(case, s) == (case[0], case[1])
