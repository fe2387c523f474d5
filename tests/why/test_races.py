"""Races: bugs that nothing orders, and their corrected twins, on cores, threads and units."""

from pathlib import Path
from typing import NamedTuple

import pytest
from corpus import ROOT, Line, check_bug, folder, found, store, unordered

import bhemu.tensix.units  # noqa: F401  (declares the instructions)
from bhemu.riscv.assembly import A0, A1, T0, T1, ZERO, addi, beq, bne, li, lw, sw, tt
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config_fields import PCK_EDGE_OFFSET_SEC0_mask

DATA, FLAG, OUT, DONE = 0x20000, 0x20100, 0x20200, 0x20300
PC_BUF_SYNC, SEMAPHORES, GPR, CONFIG = 0xFFE80004, 0xFFE80020, 0xFFE00000, 0xFFEF0000
SYNC = [*li(T0, PC_BUF_SYNC), sw(ZERO, T0), lw(T1, T0), 0x00637033]  # and zero, t1, t1
STORED = 0x45


def wait_for(address: int, value: int) -> list[int]:
    """Poll a word of L1 until it has the value."""
    return [*li(A0, address), *li(A1, value), lw(T1, A0), bne(T1, A1, -4)]


def copy(source: int, target: int) -> list[int]:
    return [*li(A0, source), lw(A1, A0), *li(A0, target), sw(A1, A0)]


def gpr(number: int, value: int) -> list[int]:
    return [
        tt("SETDMAREG", reg_index_16b=2 * number, payload_sig_sel=value),
        tt("SETDMAREG", reg_index_16b=2 * number + 1),
    ]


def sem(mnemonic: str, number: int = 1, **more: int) -> int:
    return tt(mnemonic, sem_sel=1 << number, **more)


MATH, SYNC_UNIT, CFG_UNIT, VECTOR = 1 << 6, 1 << 1, 1 << 7, 1 << 8
INIT = sem("SEMINIT", max_value=1)
WAIT = sem("SEMWAIT", wait_sem_cond=1, stall_res=VECTOR)
WAIT_FULL = sem("SEMWAIT", wait_sem_cond=2, stall_res=VECTOR)
SFPU_DONE = tt("STALLWAIT", wait_res=0x800, stall_res=SYNC_UNIT)
LOADI = tt("SFPLOADI", imm16=0x3F80, lreg_ind=1)
LOADI2 = tt("SFPLOADI", imm16=0x4000, lreg_ind=1)
SFPSTORE = tt("SFPSTORE", lreg_ind=1, instr_mod0=3)
SFPLOAD = tt("SFPLOAD", lreg_ind=2, instr_mod0=3)
STALL_CFG = tt("STALLWAIT", wait_res=1, stall_res=CFG_UNIT)
WRCFG = tt("WRCFG", cfg_reg=60, gpr_address=4)
RETURN = [*li(A0, FLAG), *li(A1, 1), sw(A1, A0)]
NOPS: list[Line] = [0x13] * 60


class Bug(NamedTuple):
    """Kernels with the bug and without; who is to be named."""

    name: str
    bad: dict[str, list[Line]]
    good: dict[str, list[Line]]
    core: str
    line: int
    until: int = 0


def flag_then_data(late: bool) -> dict[str, list[Line]]:
    data, flag = store(DATA, 7), store(FLAG, 1)
    first = [flag, data] if late else [data, flag]
    return {"trisc0": first, "trisc1": [wait_for(FLAG, 1), copy(DATA, OUT)]}


def unwaited(wait: bool) -> dict[str, list[Line]]:
    reader: list[Line] = [wait_for(FLAG, 1)] if wait else [0x13]
    return {"trisc0": [store(DATA, 7), store(FLAG, 1)], "trisc1": [*reader, copy(DATA, OUT)]}


def two_writers(wait: bool) -> dict[str, list[Line]]:
    last: list[Line] = [wait_for(FLAG, 1)] if wait else [0x13]
    return {
        "trisc0": [store(OUT, 7), store(FLAG, 1)],
        "ncrisc": [*last, *NOPS[:4], store(OUT, 9)],
    }


def gpr_by_core(sync: bool) -> dict[str, list[Line]]:
    """A core reads the GPR that its thread sets."""
    read = [*li(A0, GPR + 16), lw(A1, A0), *li(A0, OUT), sw(A1, A0)]
    return {"trisc0": [gpr(4, 77), SYNC if sync else 0x13, read]}


def config_from_gpr(stall: bool) -> dict[str, list[Line]]:
    return {"trisc0": [gpr(4, 5), STALL_CFG if stall else 0x13, WRCFG, SYNC]}


def wrong_condition(right: bool) -> dict[str, list[Line]]:
    wait = STALL_CFG if right else tt("STALLWAIT", wait_res=0x8, stall_res=CFG_UNIT)
    return {"trisc0": [gpr(4, 5), wait, WRCFG, SYNC]}


def posted_early(stall: bool) -> dict[str, list[Line]]:
    """A thread posts while the scalar unit may still be at work."""
    wait = [*li(A0, SEMAPHORES + 4), lw(A1, A0), beq(A1, ZERO, -4)]
    read = [*li(A0, GPR + 16), lw(A1, A0), *li(A0, OUT), sw(A1, A0)]
    done = tt("STALLWAIT", wait_res=1, stall_res=SYNC_UNIT)
    return {"trisc0": [INIT, gpr(4, 9), done if stall else 0x13, sem("SEMPOST"), wait, read]}


def dst_between_threads(wait: bool) -> dict[str, list[Line]]:
    """T1 writes Dst, T2 reads it."""
    post: list[Line] = [SFPU_DONE, sem("SEMPOST")]
    last: list[Line] = [WAIT if wait else 0x13, SFPLOAD, SYNC]
    return {
        "trisc1": [INIT, store(FLAG, 1), LOADI, SFPSTORE, *post, SYNC],
        "trisc2": [wait_for(FLAG, 1), *NOPS, *last],
    }


def overwritten_dst(wait: bool) -> dict[str, list[Line]]:
    """T1 writes Dst again before T2 has read it."""
    again: list[Line] = [WAIT_FULL if wait else 0x13, SFPSTORE, SYNC]
    return {
        "trisc1": [
            INIT, store(FLAG, 1), LOADI, SFPSTORE, SFPU_DONE, sem("SEMPOST"), LOADI2, *again,
        ],
        "trisc2": [wait_for(FLAG, 1), WAIT, SFPLOAD, SFPU_DONE, sem("SEMGET"), SYNC],
    }  # fmt: skip


def got_early(early: bool) -> dict[str, list[Line]]:
    """T2 gives the semaphore back before it has read."""
    get = tt("STALLWAIT", wait_res=0x800, stall_res=SYNC_UNIT)
    wait = sem("SEMWAIT", wait_sem_cond=1, stall_res=VECTOR | SYNC_UNIT)
    take: list[Line] = [sem("SEMGET"), SFPLOAD] if early else [SFPLOAD, get, sem("SEMGET")]
    return {
        "trisc1": [
            INIT, store(FLAG, 1), LOADI, SFPSTORE, SFPU_DONE, sem("SEMPOST"), LOADI2, WAIT_FULL,
            SFPSTORE, SYNC,
        ],
        "trisc2": [wait_for(FLAG, 1), wait, *take, SYNC],
    }  # fmt: skip


def wrong_blocks(right: bool) -> dict[str, list[Line]]:
    """A wait whose block bits leave out the unit that reads."""
    blocks = VECTOR if right else MATH
    wait = sem("SEMWAIT", wait_sem_cond=1, stall_res=blocks)
    bugs = dst_between_threads(True)
    bugs["trisc2"] = [wait_for(FLAG, 1), *NOPS, wait, SFPLOAD, SYNC]
    return bugs


def done_too_early(wait: bool) -> dict[str, list[Line]]:
    """The word that ends the program, while another core has still to write the output."""
    last: list[Line] = [wait_for(FLAG, 1)] if wait else [0x13]
    return {
        "trisc1": [*NOPS, store(OUT, 5), store(FLAG, 1)],
        "trisc0": [*last, store(DONE, 1)],
    }


def config_of_another(silent: bool) -> dict[str, list[Line]]:
    """T1's core changes a part of the edge mask, which T2's core sets in full later on."""
    mask = CONFIG + 4 * PCK_EDGE_OFFSET_SEC0_mask.word
    return {
        "trisc1": [0x13 if silent else store(mask, 0x00FF), store(OUT, 1)],
        "trisc2": [*NOPS, store(mask, 0xFFFF)],
    }


def passes_time(wait: bool) -> dict[str, list[Line]]:
    """The same with a loop that counts in place of a wait."""
    delay = [*li(A0, 40), addi(A0, A0, -1), bne(A0, ZERO, -4)]
    last: list[Line] = [wait_for(FLAG, 1) if wait else delay]
    return {
        "trisc1": [store(OUT, 5), store(FLAG, 1)],
        "trisc0": [*last, 0x13, 0x13, 0x13, store(DONE, 1)],
    }


def released_early(early: bool) -> dict[str, list[Line]]:
    """A page is counted before it is written, by a core that has waited for room first."""
    count, page = store(FLAG, 1), store(DATA, 7)
    room = wait_for(FLAG + 4, 1)
    first: list[Line] = [room, count, page] if early else [room, page, count]
    return {
        "trisc0": first,
        "trisc1": [*NOPS, store(FLAG + 4, 1), wait_for(FLAG, 1), copy(DATA, OUT)],
    }


def config_behind_pack(word: int) -> dict[str, list[Line]]:
    """A word of Config changes while the packer, which has read it, may still be at work."""
    config = {
        1: 5 << 25,
        2: 0,
        12: 0x200000,
        13: 0x8000200,
        24: 0xFFFF,
        28: 0x1000,
        69: 0x2FFF,
        70: 0x551,
    }
    setup: list[Line] = [store(CONFIG + 4 * k, value) for k, value in config.items()]
    rows = tt("SETADCXX", cnt_set_mask=4, x_end2=15)
    change = tt("WRCFG", cfg_reg=word, gpr_address=4)
    setup += [gpr(4, 0x77), tt("ZEROACC", clear_mode=3), SYNC, rows]
    return {"trisc2": [*setup, tt("PACR"), STALL_CFG, change, SYNC]}


def config_behind_unpack(word: int) -> dict[str, list[Line]]:
    """A word of Config changes while the unpacker, which reads it, may still be at work."""
    face, bf16, descriptor = 256, 5, cf.THCON_SEC0_REG0_TileDescriptor.word
    config = {descriptor: bf16 | face << 16, descriptor + 1: 1 | 4 << 16}
    for field, value in (
        (cf.THCON_SEC0_REG2_Out_data_format, bf16),
        (cf.THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1),
        (cf.THCON_SEC0_REG3_Base_address, DATA // 16 - 1),
        (cf.THCON_SEC0_REG5_Tile_x_dim_cntx0, face),
        (cf.THCON_SEC0_REG5_Dest_cntx0_address, 64),
    ):
        config[field.word] = config.get(field.word, 0) | value << field.shift
    setup: list[Line] = [store(CONFIG + 4 * k, value) for k, value in config.items()]
    setup += [gpr(4, 0x77), SYNC, tt("SETADCXX", cnt_set_mask=1, x_end2=face - 1)]
    change = tt("WRCFG", cfg_reg=word, gpr_address=4)
    return {"trisc0": [*setup, tt("UNPACR", last=1, ovrd_thread_id=1), STALL_CFG, change, SYNC]}


def unwaited_twice() -> dict[str, list[Line]]:
    """WRCFG waits neither for the PACR that reads its Config nor for the GPR that it takes."""
    words = config_behind_pack(28)["trisc2"]
    change = words.index(tt("WRCFG", cfg_reg=28, gpr_address=4))
    return {"trisc2": [*words[: change - 1], gpr(4, 0x78), *words[change:]]}


def behind_macro(wait: bool, mode: int) -> dict[str, list[Line]]:
    """A macro stores LReg 0 while SETRWC is executed, which touches no Dst; ZEROACC clears it."""
    sequence = tt("SFPCONFIG", config_dest=4)
    misc = tt("SFPCONFIG", config_dest=8, instr_mod1=1, imm16_math=mode)
    load = tt("SFPLOADI", imm16=0x9300)  # delay 2, stores LReg 0
    stall = tt("STALLWAIT", wait_res=0x800, stall_res=MATH)
    words: list[Line] = [load, sequence, misc, tt("SFPLOADMACRO", lreg_ind=1)]
    words += [tt("SETRWC", bit_mask=4)] * 4
    return {"trisc1": [*words, stall if wait else 0x13, tt("ZEROACC", clear_mode=3), SYNC]}


def next_rows(same: bool) -> dict[str, list[Line]]:
    """T1 stores to rows 4 to 7; T2 loads odd columns of these, or of the four rows before."""
    store_4 = tt("SFPSTORE", lreg_ind=1, instr_mod0=3, dest_reg_addr=4)
    load = tt("SFPLOAD", lreg_ind=2, instr_mod0=3, dest_reg_addr=6 if same else 2)
    return {
        "trisc1": [store(FLAG, 1), LOADI, store_4, SYNC],
        "trisc2": [wait_for(FLAG, 1), *NOPS, load, SYNC],
    }


FORMAT = cf.THCON_SEC0_REG2_Out_data_format.word
BASE = cf.THCON_SEC0_REG3_Base_address.word
BUGS = [
    Bug("flag before data", flag_then_data(True), flag_then_data(False), "trisc0", 1),
    Bug("no wait for data", unwaited(False), unwaited(True), "trisc1", 2),
    Bug("two writers", two_writers(False), two_writers(True), "ncrisc", 6),
    Bug("GPR read too early", gpr_by_core(False), gpr_by_core(True), "trisc0", 3),
    Bug("WRCFG without STALLWAIT", config_from_gpr(False), config_from_gpr(True), "trisc0", 3),
    Bug("STALLWAIT for the packer", wrong_condition(False), wrong_condition(True), "trisc0", 3),
    Bug("no SEMWAIT", dst_between_threads(False), dst_between_threads(True), "trisc2", 63),
    Bug("SEMPOST without STALLWAIT", posted_early(False), posted_early(True), "trisc0", 4),
    Bug("no SEMWAIT for room", overwritten_dst(False), overwritten_dst(True), "trisc1", 9),
    Bug("SEMGET before the read", got_early(True), got_early(False), "trisc2", 3),
    Bug("block bits", wrong_blocks(False), wrong_blocks(True), "trisc2", 62),
    Bug("Config after PACR", config_behind_pack(28), config_behind_pack(69), "trisc2", 14),
    Bug("Config after UNPACR", *map(config_behind_unpack, (FORMAT, BASE)), "trisc0", 13),
    Bug("done too early", done_too_early(False), done_too_early(True), "trisc0", 2, DONE),
    Bug("Config of T2", config_of_another(False), config_of_another(True), "trisc1", 1),
    Bug("loop that passes time", passes_time(False), passes_time(True), "trisc0", 1, DONE),
    Bug("ZEROACC after a macro", behind_macro(False, 0), behind_macro(True, 0), "trisc1", 10),
    Bug("... of 32 bits", behind_macro(False, 4), behind_macro(True, 4), "trisc1", 10),
    Bug("the same rows", next_rows(True), next_rows(False), "trisc2", 62),
    Bug("counted before it is written", released_early(True), released_early(False), "trisc0", 2),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_race_is_found_and_its_twin_is_silent(bug: Bug, tmp_path: Path) -> None:
    run = f"until = [{{ word = {bug.until}, equals = 1 }}]" if bug.until else ""
    bad = folder(tmp_path / "bad", bug.bad, outputs={OUT: 1}, run=run)
    twin = folder(tmp_path / "twin", bug.good, outputs={OUT: 1}, run=run)
    check_bug(bad, twin, "races", bug.core, bug.line)


def test_of_two_units_the_one_that_may_be_late_is_told(tmp_path: Path) -> None:
    """Nothing can show that the scalar unit was waited for too little."""
    (told,) = unordered(folder(tmp_path, unwaited_twice(), outputs={OUT: 1}))
    assert "WRCFG does not wait for the pack unit" in told["text"]


@pytest.mark.parametrize("name", ["add1", "matmul", "eltwise", "reduce", "sfpu", "llk_like"])
def test_nothing_is_found_in_shipped_programs(name: str) -> None:
    assert found(ROOT / "elfs" / name) == []
