"""Words that can end nobody's wait run on without asking blocked threads: nothing shows of it.

The reference is the same run with every opcode declared to end waits, so that after each word
every thread is asked again. Nor does it show where compiled code has returned in between.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.machine.tile import Tile
from bhemu.riscv import turn
from bhemu.riscv.assembly import A0, A1, PARK, code, li, lw, tt, ttinsn
from bhemu.tensix.insn import WAKES, WAKES_BY_BANK, WAKES_NOBODY, instructions
from bhemu.tensix.state import MEMBERS, POINTERS

GPR = 0xFFE00000
# Positions within a sweep, what says how the order was found, what is known of loops without
# effect, addresses of this process.
NOT_COMPARED = {
    "wakes",
    "page_count",  # when code becomes Unicorn's
    "sweep_due",
    "sweep_left",
    "sweep_idle",
    "time_slice",
    "look_every",
    *turn.MEMBERS,
    *POINTERS,
}
WALL_CLOCK = 0xFFB121F0

VECTOR = [
    tt("SFPLOADI", lreg_ind=1, instr_mod0=2, imm16=7),
    tt("SFPIADD", lreg_c=1, lreg_dest=2, instr_mod1=1, imm12_math=3),
    tt("SFPENCC", imm12_math=3, instr_mod1=10),
    tt("SFPSTORE", lreg_ind=2, instr_mod0=4),
    tt("NOP"),
]
MATRIX = [
    tt("MOVA2D", instr_mod=2),
    tt("SETRWC", clear_ab_vld=3),
    tt("SETRWC", clear_ab_vld=1),
    tt("INCRWC", rwc_d=2),
    tt("STALLWAIT", wait_res=1 << 7, stall_res=1 << 6),
]
UNPACK = [
    tt("UNPACR_NOP", unpacker_select=0, set_dvalid=1, unpack_pop=1, stall_clr_cntrl=1),
    tt("UNPACR_NOP", unpacker_select=1, set_dvalid=1, unpack_pop=1, stall_clr_cntrl=1),
    tt("STALLWAIT", wait_res=1 << 5, stall_res=1 << 3),
]
SYNC = [
    tt("SEMPOST", sem_sel=1),
    tt("SEMGET", sem_sel=1),
    tt("SEMWAIT", sem_sel=1, wait_sem_cond=1, stall_res=0x1FF),
    tt("SEMWAIT", sem_sel=1, wait_sem_cond=2, stall_res=0x1FF),
    tt("SEMINIT", sem_sel=1, max_value=3, init_value=1),
    tt("ATGETM", mutex_index=2),
    tt("ATRELM", mutex_index=2),
    tt("SETDMAREG", payload_sig_sel=5, reg_index_16b=8),
    tt("LOADREG", tdma_data_reg_index=9, reg_addr=(WALL_CLOCK - 0xFFB00000) // 4),
]
LOOK = [*li(A0, GPR), lw(A1, A0)]  # lets the core's thread run until its head blocks
PIECES = st.one_of(*(st.sampled_from(words) for words in (VECTOR, MATRIX, UNPACK, SYNC)))
PROGRAM = st.lists(st.one_of(PIECES.map(lambda word: [word]), st.just(LOOK)), max_size=60)


def outcome(
    programs: list[list[list[int]]], quantum: int, run_on: bool, look_every: int = 0
) -> dict[str, Any]:
    """What is left of a run; with `look_every` compiled code returns after so many words."""
    tile = Tile(quantum=quantum, ub="silicon")
    if not run_on:
        tile.state.wakes[:] = WAKES
    if look_every:
        tile.state.look_every[0], tile.state.time_slice[0] = look_every, 0
    tile.state.trace[0] = 1
    for t, pieces in enumerate(programs):
        at = 0x10000 + 0x4000 * t
        tile.write(at, code(*pieces, PARK))
        tile.core[f"trisc{t}"].set_reset_pc(at)
        tile.core[f"trisc{t}"].release()
    try:
        why = str(tile.run(limit=20_000, timeout_s=60).reason)
    except Exception as problem:  # a deadlock or a rule: both runs must end so
        why = str(problem)
    tile.drain_log()
    s = tile.state
    state = {m.name: getattr(s, m.name).tobytes() for m in MEMBERS if m.name not in NOT_COMPARED}
    return {"why": why, "words": tile.log, **state}


@settings(max_examples=60)
@given(st.lists(PROGRAM, min_size=3, max_size=3), st.sampled_from([1, 7, 1000]))
def test_random_programs_run_as_if_every_thread_were_asked_after_every_word(
    programs: list[list[list[int]]], quantum: int
) -> None:
    """Semaphores, mutexes, banks and vector words in three threads: same record, log and end."""
    assert outcome(programs, quantum, True) == outcome(programs, quantum, False)


@settings(max_examples=60)
@given(st.lists(PROGRAM, min_size=3, max_size=3), st.sampled_from([1, 7, 1000]), st.integers(1, 5))
def test_random_programs_run_as_if_compiled_code_did_not_return(
    programs: list[list[list[int]]], quantum: int, look_every: int
) -> None:
    """In the middle of a round, of a core's access, of a sweep: same record, log and end."""
    assert outcome(programs, quantum, True) == outcome(programs, quantum, True, look_every)


TO_MUTEX = [[tt("ATGETM", mutex_index=2)]]
WAKERS = {
    # what the waking thread does first, its waking word, what the other waits with
    "SEMPOST": ([], SYNC[0], [SYNC[2], SYNC[1]]),
    "SEMGET": (
        [[tt("SEMINIT", sem_sel=1, max_value=1, init_value=1)]],
        SYNC[1],
        [SYNC[3], SYNC[0]],
    ),
    "SEMINIT": ([], tt("SEMINIT", sem_sel=1, max_value=3, init_value=2), [SYNC[2], SYNC[1]]),
    "ATRELM": (TO_MUTEX, SYNC[6], [SYNC[5], SYNC[6]]),
    "UNPACR_NOP": ([], UNPACK[0], [MATRIX[4], MATRIX[1]]),
    "SETDVALID": ([], tt("SETDVALID", setvalid=1), [MATRIX[4], MATRIX[1]]),
    "SETRWC": ([[UNPACK[0]], [UNPACK[0]]], MATRIX[2], [UNPACK[0]]),
}


@pytest.mark.parametrize("name", WAKERS)
@pytest.mark.parametrize("waker", [0, 1])
def test_a_thread_goes_on_right_after_the_word_that_ends_its_wait(name: str, waker: int) -> None:
    """Neither later, nor after the vector words that stand behind it in the waking thread."""
    first, word, waits = WAKERS[name]
    programs: list[list[list[int]]] = [[], [], []]
    programs[waker] = [*first, *[[VECTOR[1]]] * 12, [word], *[[VECTOR[1]]] * 12]
    programs[1 - waker] = [*[[VECTOR[0]]] * 4, *([w] for w in waits), [VECTOR[0]]]
    one, other = (outcome(programs, 1000, run_on) for run_on in (True, False))
    assert one == other
    order = [(thread, ttinsn(tensix)) for thread, tensix, *_ in one["words"]]
    at = len(order) - 1 - order[::-1].index((waker, word))
    assert 1 - waker in [thread for thread, _ in order[at + 1 : at + 3]]
    assert order[at + 3 :].count((waker, VECTOR[1])) > 8


def test_every_condition_has_a_unit_that_ends_it() -> None:
    """Units whose words never end a wait hold no bank, semaphore, mutex, stream or L1 FIFO."""
    kinds = {cls.name: cls.wakes for cls in instructions().values()}
    for name in ("SEMPOST", "SEMGET", "SEMINIT", "ATRELM", "SETDVALID", "STOREIND", "SFPLOADMACRO"):
        assert kinds[name] == WAKES, name
    for name in ("SETRWC", "MVMUL", "CLEARDVALID", "UNPACR", "UNPACR_NOP", "PACR"):
        assert kinds[name] == WAKES_BY_BANK, name
    nobody = {cls.unit for cls in instructions().values() if cls.wakes == WAKES_NOBODY}
    assert nobody == {"vector", "front", "adc", "scalar"}
