"""Overlay stream registers, and what STREAMWAIT and STREAMWRCFG read (NoC overlay, ISA)."""

import random

import numpy as np
import pytest
from unit_runner import WORD, push, run, sentence, view

from bhemu.errors import NoProgress
from bhemu.machine.tile import Tile
from bhemu.tensix import config_fields as cf
from bhemu.tensix import mmio, rules, thread
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import assemble, instructions
from bhemu.tensix.state import State
from bhemu.tensix.units import cfg

# Registers that keep what is stored to them: index and width ("AsMMIORegisters" table).
PLAIN = {7: 18, 8: 17, 10: 17, 11: 17, 17: 17, 18: 17, 19: 17, 20: 17, 28: 20, 30: 17}
RELATIVE = {29: (20, 28), 5: (20, 28), 31: (17, 30)}
SYNC = (
    tf.STREAM_ID_SYNC_SEC0_BankSel,
    tf.STREAM_ID_SYNC_SEC1_BankSel,
    tf.STREAM_ID_SYNC_SEC2_BankSel,
    tf.STREAM_ID_SYNC_SEC3_BankSel,
)


def write(s: State, stream: int, register: int, value: int) -> int:
    return int(mmio.stream_write(view(s), stream, register, value))


def read(s: State, stream: int, register: int) -> int:
    """The value, or the number of a rule."""
    refused = int(mmio.stream_read(view(s), stream, register))
    return refused or int(s.loaded[0])


@pytest.mark.parametrize(("register", "width"), PLAIN.items())
def test_plain_registers_keep_their_width(register: int, width: int) -> None:
    s = State()
    for stream in (0, 17, 63):
        assert write(s, stream, register, WORD) == rules.DONE
        assert read(s, stream, register) == 2**width - 1
    assert not s.stream[1].any()


@pytest.mark.parametrize(("register", "rule"), RELATIVE.items())
def test_relative_registers(register: int, rule: tuple[int, int]) -> None:
    """The base is added on stores and subtracted on loads."""
    width, base = rule
    s, rng = State(), random.Random(register)
    for _ in range(50):
        first, value, second = (rng.getrandbits(width) for _ in range(3))
        write(s, 4, base, first)
        write(s, 4, register, value)
        assert read(s, 4, register) == value
        write(s, 4, base, second)
        assert read(s, 4, register) == (value + first - second) % 2**width


def test_registers_that_a_store_clears() -> None:
    """BUF_START clears both pointers, REMOTE_DEST_BUF_START the remote write pointer."""
    s = State()
    for register in (11, 19, 20):
        write(s, 2, register, 9)
    write(s, 2, 17, 1)
    assert [read(s, 2, r) for r in (17, 19, 20, 11)] == [1, 0, 0, 9]
    write(s, 2, 8, 3)
    assert [read(s, 2, r) for r in (8, 11)] == [3, 0]


def test_the_configuration_header_advances_the_phase() -> None:
    """Low 12 bits are added to CURR_PHASE, the high 20 are stored (modulo 2^20)."""
    s = State()
    write(s, 9, 28, 5)
    write(s, 9, 29, 0xFFFFF)
    write(s, 9, 34, 0xABCDE002)
    assert read(s, 9, 29) == 1
    assert read(s, 9, 34) == 0xABCDE000


@pytest.mark.parametrize("register", [259, 297])
def test_read_only_registers(register: int) -> None:
    s = State()
    assert read(s, 3, register) == 0
    assert write(s, 3, register, 5) == mmio.READ_ONLY
    assert sentence(s, mmio.READ_ONLY).startswith("0x5 stored to the read-only register")
    assert not s.stream.any()


def select(s: State, t: int, selector: int, stream: int) -> None:
    field = SYNC[selector]
    assert run(s, "SETC16", t, setc16_reg=field.word, setc16_value=stream << field.shift) == 0


def test_streamwrcfg_copies_any_readable_register() -> None:
    """Config[own bank][CfgIndex] = stream register (STREAMWRCFG, Blackhole ISA)."""
    rng = random.Random(8)
    s = State()
    for register in PLAIN:
        for stream in range(64):
            write(s, stream, register, rng.getrandbits(32))
    for _ in range(150):
        t, selector, stream = rng.randrange(3), rng.randrange(4), rng.randrange(64)
        bank, index, register = rng.randrange(2), rng.randrange(5, 180), rng.choice(list(PLAIN))
        s.thread_cfg[t, tf.CFG_STATE_ID_StateID.word] = bank
        select(s, t, selector, stream)
        want = s.cfg.copy()
        want[bank, index] = s.stream[stream, register]
        f = {"cfg_reg": index, "stream_reg_addr": register, "stream_id_sel": selector}
        assert run(s, "STREAMWRCFG", t, **f) == rules.DONE
        assert (s.cfg == want).all()


def test_streamwrcfg_has_the_side_effects_of_a_config_write() -> None:
    s = State()
    s.cfg[:] = 1
    assert run(s, "STREAMWRCFG", cfg_reg=cf.STATE_RESET_EN.word, stream_reg_addr=8) == rules.DONE
    assert not s.cfg[0, :180].any()
    assert (s.cfg[1] == 1).all()


def test_streamwrcfg_refusals() -> None:
    s = State()
    assert run(s, "STREAMWRCFG", cfg_reg=224) == cfg.CFG_INDEX
    assert run(s, "STREAMWRCFG", cfg_reg=9, stream_reg_addr=3) == mmio.UNKNOWN
    assert not s.cfg.any()


def fresh() -> State:
    s = State()
    for cls in instructions().values():
        s.stall[cls.opcode] = cls.stall_mask
    return s


def hold(s: State, mnemonic: str, t: int = 0) -> int:
    return int(thread.hold(view(s), t, assemble(mnemonic) >> 24))


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("selector", range(4))
def test_streamwait_holds_until_the_register_reaches_the_target(index: int, selector: int) -> None:
    """C0: phase, C1: messages; target = ThreadConfig high part << 10 | value (STREAMWAIT)."""
    s = fresh()
    number = (thread.WAIT_PHASE, thread.WAIT_MESSAGES)[index]
    high = (tf.STREAMWAIT_PHASE_HI_Val, tf.STREAMWAIT_NUM_MSGS_HI_Val)[index]
    top = (0x3FF, 0x7F)[index]
    register = (29, 259)[index]
    select(s, 1, selector, 40)
    run(s, "SETC16", 1, setc16_reg=high.word, setc16_value=top)
    f = {"target_value": 0x155, "target_sel": index, "wait_stream_sel": selector}
    target = top << 10 | 0x155
    assert run(s, "STREAMWAIT", 1, **f, stall_res=1 << 7) == rules.DONE
    assert s.latch[1] == thread.STREAM
    assert hold(s, "SFPMAD", 1) == 0
    for value in (0, target - 1):
        s.stream[:, register] = WORD if index else 0
        s.stream[40, register] = value
        assert hold(s, "WRCFG", 1) == number
    s.stream[40, register] = target
    assert hold(s, "WRCFG", 1) == 0
    assert s.latch[1] == thread.NONE
    assert [s.latch_stream[1], s.latch_target[1], s.latch_cond[1]] == [0, 0, 0]


def test_streamwait_that_is_satisfied_leaves_no_latch() -> None:
    s = fresh()
    s.stream[0, 29] = 7
    assert run(s, "STREAMWAIT", target_value=7) == rules.DONE
    assert run(s, "STREAMWAIT", 1, target_value=0, target_sel=1) == rules.DONE
    assert not s.latch.any()


def test_streamwait_compares_with_the_phase_as_it_is_read() -> None:
    """CURR_PHASE_BASE is subtracted."""
    s = fresh()
    write(s, 0, 28, 100)
    write(s, 0, 29, 3)
    run(s, "STREAMWAIT", target_value=4)
    assert hold(s, "MVMUL") == thread.WAIT_PHASE  # block mask 0 means the matrix unit
    write(s, 0, 34, 1)
    assert hold(s, "MVMUL") == 0


def test_streamwait_looks_up_its_stream_again_and_again() -> None:
    """Only the selector is latched: StreamIndex is read from ThreadConfig at each evaluation."""
    s = fresh()
    s.stream[5, 29] = 9
    run(s, "STREAMWAIT", target_value=9, wait_stream_sel=2, stall_res=1 << 6)
    assert hold(s, "MVMUL") == thread.WAIT_PHASE
    select(s, 0, 2, 5)
    assert hold(s, "MVMUL") == 0


@pytest.mark.parametrize("later", ["STALLWAIT", "SEMWAIT", "STREAMWAIT"])
def test_a_second_wait_is_held_by_a_latched_streamwait(later: str) -> None:
    s = fresh()
    run(s, "STREAMWAIT", target_value=1, stall_res=1 << 8)
    assert hold(s, later) == thread.WAIT_PHASE


def test_streamwait_in_the_wait_for_graph_and_released_by_a_store() -> None:
    tile = Tile()
    s = tile.state
    select(s, 2, 1, 12)
    f = {"wait_stream_sel": 1, "target_value": 6, "stall_res": 1 << 5}
    push(tile, 2, "STREAMWAIT", **f)
    push(tile, 2, "SETDMAREG", payload_sig_sel=3)
    with pytest.raises(NoProgress) as caught:
        tile.run()
    graph = str(caught.value.graph)
    assert "thread T2 waits for an overlay stream to reach a phase (STREAMWAIT C0)" in graph
    assert "stream 12 = 0, awaited 6" in graph
    (waiter,) = caught.value.graph.waiters  # type: ignore[attr-defined]
    assert waiter.resource == {"stream": 12, "register": 29, "value": 0}
    tile.write32(0xFFB40000 + 0x1000 * 12 + 4 * 29, 6)
    assert tile.run(resume=True).reason == "idle"
    assert s.gpr[2, 0] == 3
    assert np.count_nonzero(s.latch) == 0
