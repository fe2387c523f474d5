"""Races that hardware has, by mechanism, in small kernels: late runs show them and spare the twins.

Each kernel is equal in the plain run with and without its mistake.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from bhemu import Chip, Tile
from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.errors import BhemuError
from bhemu.riscv.assembly import A0, A1, PARK, T0, T1, ZERO, addi, bne, code, li, lw, sw, tt
from bhemu.tensix import config_fields as cf
from bhemu.tensix import dest

LONG = bool(os.environ.get("BHEMU_LONG"))
SEEDS = range(50 if LONG else 12)
NEAR = [
    seed for seed in range(100 if LONG else 24) if seed % 4 < 2
]  # by 512 cycles at most: kernels pause longer
TEXT = {"brisc": 0x0, "trisc0": 0x10000, "trisc1": 0x14000, "trisc2": 0x18000}
FLAGS, OUT, LOADED, CONFIG = 0x20000, 0x20100, 0x20200, mm.TENSIX_CFG_BASE + 4 * 60
MATH, SRCA_VLD, MATH_IDLE = 1 << 6, 1 << 7, 1 << 4
Line = int | list[int]
Kernels = dict[str, Sequence[Line]]


def pause(n: int) -> list[int]:
    return [*li(A0, n), addi(A0, A0, -1), bne(A0, ZERO, -4)]


def store(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), sw(A1, A0)]


def wait(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), lw(T1, A0), bne(T1, A1, -4)]


def source_banks(wrong: bool) -> Kernels:
    """R1: the wait for SrcA sees the bank that a word at work has still to give back."""
    fill = tt("UNPACR_NOP", set_dvalid=1, unpack_pop=1)
    valid = tt("STALLWAIT", stall_res=MATH, wait_res=SRCA_VLD)
    after = valid if wrong else tt("STALLWAIT", stall_res=MATH, wait_res=SRCA_VLD | MATH_IDLE)
    back = tt("SETRWC", clear_ab_vld=1)
    move = tt("MOVD2A", instr_mod=2)
    return {"trisc0": [fill, pause(60), fill], "trisc1": [valid, back, after, move]}


def shared_config_word(wrong: bool) -> Kernels:
    """R4: two cores change fields of one Config word, each reads and writes it as a whole."""
    take, give = tt("ATGETM"), tt("ATRELM")
    sync: list[int] = [] if wrong else [*li(T0, 0xFFE80004), sw(ZERO, T0), lw(T1, T0), 0x00637033]

    def change(bit: int, flag: int) -> list[Line]:
        body = [*li(A0, CONFIG), lw(T1, A0), addi(T1, T1, bit), sw(T1, A0), lw(T1, A0), 0x00637033]
        own = body if wrong else [take, *sync, *body, give]
        return [own, store(FLAGS + flag, 1)]

    read = [*li(A0, CONFIG), lw(T1, A0), *li(A0, OUT), sw(T1, A0)]
    return {
        "trisc0": change(1, 0), "trisc1": change(0x100, 4),
        "brisc": [wait(FLAGS, 1), wait(FLAGS + 4, 1), read],
    }  # fmt: skip


def pushed_words(wrong: bool) -> Kernels:
    """R6: a core tells another one that its pushed words are done, without TTSync."""
    words = [tt("SETDMAREG", reg_index_16b=8, payload_sig_sel=0x1234)]
    sync = [] if wrong else [[*li(T0, 0xFFE80004), sw(ZERO, T0), lw(T1, T0), 0x00637033]]
    gpr = 0xFFE00000 + 4 * 4
    read = [*li(A0, gpr), lw(T1, A0), *li(A0, OUT), sw(T1, A0)]
    return {"trisc0": [*words, pause(4), *sync, store(FLAGS, 1)], "brisc": [wait(FLAGS, 1), read]}


def packed_rows(wrong: bool) -> Kernels:
    """R7: a thread hands rows of Dst over before the vector unit has read them."""
    stall = tt("STALLWAIT", stall_res=1 << 1, wait_res=1 << 11)
    own: list[Line] = [tt("SFPLOAD", lreg_ind=1, instr_mod0=4)]
    own += [] if wrong else [stall]
    own += [tt("SEMPOST", sem_sel=2)]
    other = [
        tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=1 << 6),
        tt("ZEROACC", clear_mode=3),
    ]
    first = [tt("SEMINIT", max_value=1, sem_sel=2)]
    return {"trisc1": [*first, pause(200), *own], "trisc2": [pause(60), *other]}


def zeroed_rows(wrong: bool) -> Kernels:
    """R2: a dummy UNPACR_NOP zeroes rows of SrcA that the math thread has filled from Dst."""
    dummy = tt("UNPACR_NOP", set_dvalid=1, unpack_pop=1)
    handed = tt("STALLWAIT", stall_res=MATH, wait_res=SRCA_VLD | MATH_IDLE)
    move = tt("MOVD2A", instr_mod=2)
    return {"trisc0": [dummy], "trisc1": [pause(60), *([] if wrong else [handed]), move]}


def half(place: int, value: int) -> int:
    """SETDMAREG of half a GPR."""
    size = value >> 14
    return tt(
        "SETDMAREG", reg_index_16b=place, payload_sig_sel=value & 0x3FFF, payload_sig_sel_size=size
    )


ADDRESS, LOADED_TO = 8, 12  # GPRs
REGISTER = mm.OVERLAY_BASE + 4 * 8  # storage, of stream 0
LATE_LOADS = {
    "LOADIND": {"addr_reg_index": ADDRESS, "data_reg_index": LOADED_TO, "size_sel": 1},
    "LOADREG": {"reg_addr": (REGISTER - mm.LOCAL_BASE) >> 2, "tdma_data_reg_index": LOADED_TO},
    "ATINCGET": {"addr_reg_index": ADDRESS, "data_reg_index": LOADED_TO, "wrap_val": 31},
}
SYNC = [*li(T0, 0xFFE80004), sw(ZERO, T0), lw(T1, T0), 0x00637033]


def loaded_late(name: str) -> Callable[[bool], Kernels]:
    """R5: WRCFG reads a GPR before what the scalar unit loads into it is there."""

    def kernels(wrong: bool) -> Kernels:
        there = [half(2 * ADDRESS, LOADED >> 4), half(2 * LOADED_TO, 0)]
        wait = tt("STALLWAIT", stall_res=1 << 7, wait_res=1 << 0)  # C0
        use = tt("WRCFG", gpr_address=LOADED_TO, cfg_reg=60)
        words = [*there, tt(name, **LATE_LOADS[name]), *([] if wrong else [wait]), use]
        ready = [store(LOADED, 0x1234), store(REGISTER, 0x1234), pause(60)]
        read = [*li(A0, CONFIG), lw(T1, A0), *li(A0, OUT), sw(T1, A0)]
        return {"trisc0": [*ready, *words, SYNC, read]}

    return kernels


def flushed_late(wrong: bool) -> Kernels:
    """R5, with FLUSHDMA in place of STALLWAIT, and STOREIND as what reads the GPR."""
    address = [half(2 * ADDRESS, LOADED >> 4), half(2 * ADDRESS + 2, OUT >> 4)]
    load = tt("LOADIND", **LATE_LOADS["LOADIND"])
    flush = [] if wrong else [tt("FLUSHDMA", condition_mask=0)]
    to = {"addr_reg_index": ADDRESS + 1, "data_reg_index": LOADED_TO, "mem_hier_sel": 1}
    keep = tt("STOREIND", reg_size_sel=1, **to)
    return {"trisc0": [store(LOADED, 0x1234), pause(60), *address, load, *flush, keep, SYNC]}


def second_cycle(instruction: str) -> Callable[[bool], Kernels]:
    """The word behind one that writes Config reads Config: the vector unit, how rows are stored."""

    def kernels(wrong: bool) -> Kernels:
        fp32 = 1 << cf.ALU_ACC_CTRL_SFPU_Fp32_enabled.shift
        word = cf.ALU_ACC_CTRL_SFPU_Fp32_enabled.word
        value = [half(2 * ADDRESS, fp32 & 0xFFFF), half(2 * ADDRESS + 1, fp32 >> 16)]
        change = tt("WRCFG", gpr_address=ADDRESS, cfg_reg=word)
        if instruction == "CFGSHIFTMASK":
            value += [tt("WRCFG", gpr_address=ADDRESS, cfg_reg=cf.SCRATCH_SEC0_val.word)]
            change = tt("CFGSHIFTMASK", cfg_reg=word, mask_width=31)
        load = tt("SFPLOAD", lreg_ind=1, instr_mod0=0)
        return {"trisc1": [*value, pause(60), change, *([] if wrong else [tt("NOP")]), load, SYNC]}

    return kernels


class Mechanism(NamedTuple):
    """How the kernels are made; what of the tile says how they ended."""

    name: str
    agent: str  # whose lateness shows it
    make: Callable[[bool], Kernels]
    left: Callable[[Tile], Any]


MECHANISMS = (
    Mechanism("R1 bank seen too early", "matrix", source_banks, lambda t: t.state.src[0].tobytes()),
    Mechanism("R4 one Config word of two", "trisc0", shared_config_word, lambda t: t.read32(OUT)),
    Mechanism("R6 words still to come", "T0", pushed_words, lambda t: t.read32(OUT)),
    Mechanism(
        "R7 rows handed over early", "vector", packed_rows, lambda t: t.state.lreg[1].tobytes()
    ),
    Mechanism("R2 rows zeroed", "T0", zeroed_rows, lambda t: t.state.src[0].tobytes()),
    *(
        Mechanism(f"R5 {name}", "scalar_results", loaded_late(name), lambda t: t.read32(OUT))
        for name in LATE_LOADS
    ),
    Mechanism("R5 FLUSHDMA", "scalar_results", flushed_late, lambda t: t.read32(OUT)),
    *(
        Mechanism(
            f"second cycle of {name}",
            "mover",
            second_cycle(name),
            lambda t: t.state.lreg[1].tobytes(),
        )
        for name in ("WRCFG", "CFGSHIFTMASK")
    ),
)


def ending(mechanism: Mechanism, wrong: bool, **options: Any) -> Any:
    tile = Tile(engine="compiled", ub="silicon", **options)
    tile.state.dst[:4] = 0x3F80
    tile.state.dst[dest.LOW_HALF : dest.LOW_HALF + 4] = 0x1234
    for core, lines in mechanism.make(wrong).items():
        words = [word for line in lines for word in (line if isinstance(line, list) else [line])]
        tile.write(TEXT[core], code(*words, PARK))
        if core != "brisc":
            tile.core[core].set_reset_pc(TEXT[core])
        tile.core[core].release()
    try:
        tile.run(limit=4_000_000)
    except BhemuError as error:
        return error.rule
    return mechanism.left(tile)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_late_runs_show_it_and_spare_its_twin(mechanism: Mechanism) -> None:
    right = ending(mechanism, False)
    assert ending(mechanism, True) == right
    chosen = [f"{seed}:{mechanism.agent}" for seed in NEAR]
    assert {ending(mechanism, False, late=late) for late in (*SEEDS, *chosen)} == {right}
    assert {ending(mechanism, True, late=late) for late in chosen} - {right}


USED = 0x00637033  # and x0, t1, t1
FOUND = [*li(A0, OUT), lw(T1, A0), USED]
ADDED = [*li(A0, OUT), A0 << 15 | 2 << 12 | T1 << 7 | 0x2F, USED]  # amoadd.w t1, zero, (a0)
FENCE = 0x0FF0000F
OTHER = [*li(A0, OUT + 64), lw(T1, A0), USED]  # of L1 too, so in order with what has gone there
OTHERS = [*li(A0, mm.LOCAL_BASE), *4 * [sw(ZERO, A0)]]  # fill the store queue
ORDERED = {"load": FOUND, "atomic": ADDED, "fence": [FENCE, *OTHER], "stores": [*OTHERS, *OTHER]}
UNORDERED = {"nothing": [], "fence": [FENCE], "stores": OTHERS, "load of another word": OTHER}


def sent(seen: list[int], **options: Any) -> int:
    """R10: brisc stores a word and sends it over the NoC; what arrives.

    seen: what it executes between both.
    """
    there, own = 5 << 6 | 1, 2 << 6 | 1
    chip = Chip(**options)
    tile = chip.tile[1, 2]
    command = [
        (mm.NOC_CTRL, request.WRITE | request.ANSWERED), (mm.NOC_TARG_ADDR_LO, OUT),
        (mm.NOC_TARG_ADDR_LO + 8, own), (mm.NOC_RET_ADDR_LO, OUT),
        (mm.NOC_RET_ADDR_LO + 8, there), (mm.NOC_AT_LEN_BE, 16), (mm.NOC_CMD_CTRL, 1),
    ]  # fmt: skip
    set_up = [word for at, value in command[:-1] for word in store(mm.NOC0_BASE + at, value)]
    go = store(mm.NOC0_BASE + mm.NOC_CMD_CTRL, 1)
    tile.write(0, code(*set_up, pause(60), store(OUT, 0x1234), seen, go, PARK))
    tile.core["brisc"].release()
    chip.run(limit=100_000)
    return chip.tile[1, 5].read32(OUT)


@pytest.mark.parametrize("between", ORDERED)
def test_a_store_has_arrived_where_l1_has_answered_after_it(between: str) -> None:
    chosen = [f"{seed}:brisc_stores" for seed in SEEDS]
    ends = {sent(ORDERED[between], late=late) for late in (None, *SEEDS, *chosen)}
    assert ends == {0x1234}


@pytest.mark.parametrize("between", UNORDERED)
def test_a_request_overtakes_a_late_store_of_its_core(between: str) -> None:
    assert sent(UNORDERED[between]) == 0x1234
    chosen = [f"{seed}:brisc_stores" for seed in SEEDS]
    assert {sent(UNORDERED[between], late=late) for late in chosen} == {0, 0x1234}


def test_a_late_store_across_the_end_of_l1_is_refused_as_any_other() -> None:
    def refusal(**options: Any) -> str:
        tile = Tile(engine="compiled", **options)
        tile.write(0, code(store(mm.L1_SIZE - 2, 0x1234), PARK))
        tile.core["brisc"].release()
        with pytest.raises(BhemuError) as caught:
            tile.run(limit=1000)
        return caught.value.message

    assert refusal() == refusal(late="1:brisc_stores")
