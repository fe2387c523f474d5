"""Mover: XMOV in every direction against the literal reference (XMOV, Mover, Wormhole ISA)."""

import random

import numpy as np
import pytest
from mover_reference import L1_SIZE, Mover
from unit_runner import numbers, push, run, sentence

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, RA, ZERO, code, jalr, li, lw, sw, tt
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State
from bhemu.tensix.units import cfg

SPAN = 0x4000  # bytes of L1 that the random cases use
ZERO_L1, L1_CONFIG, ZERO_CONFIG, L1_L1 = range(4)
END = L1_SIZE // 16


def program(s: State, bank: int, dst: int, src: int, count: int, mode: int) -> None:
    """The transfer's parameters in Config, all three in 16-byte units."""
    s.cfg[bank, cf.THCON_SEC0_REG6_Destination_address.word] = dst
    s.cfg[bank, cf.THCON_SEC0_REG6_Source_address.word] = src
    s.cfg[bank, cf.THCON_SEC0_REG6_Buffer_size.word] = count | mode << 30


def filled(rng: random.Random) -> State:
    s = State()
    s.l1[:SPAN] = np.frombuffer(rng.randbytes(SPAN), np.uint8)
    return s


@pytest.mark.parametrize("mode", range(4))
def test_xmov_against_the_reference(mode: int) -> None:
    """Copies and fills, with the parameters of the thread's bank."""
    rng = random.Random(mode)
    s = filled(rng)
    units = SPAN // 16
    for _ in range(120):
        t, bank = rng.randrange(3), rng.randrange(2)
        s.thread_cfg[t, tf.CFG_STATE_ID_StateID.word] = bank
        s.cfg[:] = np.frombuffer(rng.randbytes(s.cfg.nbytes), np.uint32).reshape(s.cfg.shape)
        s.cfg[1, 180:] = s.cfg[0, 180:]
        count = rng.choice([0, 1, 2, rng.randrange(20)])
        src = rng.randrange(units // 2 - 20)
        dst = units // 2 + rng.randrange(units // 2 - 20)
        if mode in (L1_CONFIG, ZERO_CONFIG):
            dst = rng.choice([18, 25, 30, 80, 90, 120, 140]) + rng.randrange(5)
            count %= 8
        program(s, bank, dst, src, count, mode)
        want = Mover(s.l1.tobytes(), s.cfg.tolist())
        want.move(dst, src, count, mode)
        assert run(s, "XMOV", t) == rules.DONE
        assert s.l1.tobytes() == bytes(want.l1)
        assert s.cfg.tolist() == want.config


def test_a_copy_to_itself_and_the_full_size() -> None:
    """Buffer_size is 16 bits of units: 0xFFFF is 1 MiB less one unit; the rest is ignored."""
    s = State()
    s.l1[:] = np.arange(L1_SIZE) % 251
    before = s.l1.copy()
    program(s, 0, 5, 5, 100, L1_L1)
    assert run(s, "XMOV") == rules.DONE
    assert (s.l1 == before).all()
    program(s, 0, 1, 0, 0xFFFF | 0x3FF0000, ZERO_L1)
    assert run(s, "XMOV") == rules.DONE
    assert not s.l1[16:0x100000].any()
    assert (s.l1[0x100000:] == before[0x100000:]).all()
    assert (s.l1[:16] == before[:16]).all()


def test_destinations_in_no_region_are_discarded() -> None:
    """ "Operation still happens, but the writes get discarded" (Mover)."""
    s = filled(random.Random(1))
    before = s.l1.copy()
    for dst in (0x1000, 0x5000, 0x1000000):
        for mode in (L1_CONFIG, ZERO_CONFIG):
            program(s, 0, dst, 1, 4, mode)
            assert run(s, "XMOV") == rules.DONE
    assert (s.l1 == before).all()
    assert np.count_nonzero(s.cfg) == 3  # the parameters
    assert not s.flush.any()


@pytest.mark.parametrize(
    ("dst", "src", "count", "mode", "rule", "shown"),
    [
        (END, 0, 1, ZERO_L1, cfg.OUTSIDE, [16, 0x180000]),
        (END - 1, 0, 2, L1_L1, cfg.OUTSIDE, [32, 0x17FFF0]),
        (0, END, 1, L1_L1, cfg.OUTSIDE, [16, 0x180000]),
        (0, END - 1, 2, L1_CONFIG, cfg.OUTSIDE, [32, 0x17FFF0]),
        (0x1000, END, 1, L1_CONFIG, cfg.OUTSIDE, [16, 0x180000]),
        (10, 11, 2, L1_L1, cfg.OVERLAP, [32, 0xB0, 0xA0]),
        (11, 10, 2, L1_L1, cfg.OVERLAP, [32, 0xA0, 0xB0]),
        (0xA8, 0, 1, L1_CONFIG, cfg.CONFIG_RANGE, [16, 0xA80]),
        (0xA7, 0, 2, ZERO_CONFIG, cfg.CONFIG_RANGE, [32, 0xA70]),
        (0xFFF, 0, 2, ZERO_CONFIG, cfg.CONFIG_RANGE, [32, 0xFFF0]),
        (0x4000, 0, 1, L1_CONFIG, cfg.INSTRUCTION_RAM, [0x40000]),
        (0x4FFF, 0, 1, ZERO_CONFIG, cfg.INSTRUCTION_RAM, [0x4FFF0]),
    ],
)
def test_refusals_before_any_effect(
    dst: int, src: int, count: int, mode: int, rule: int, shown: list[int]
) -> None:
    """The sentence shows the bytes, and where."""
    s = filled(random.Random(2))
    program(s, 0, dst, src, count, mode)
    s.ub_mode[0] = 2
    s.detail[:] = 77
    l1, config = s.l1.copy(), s.cfg.copy()
    assert run(s, "XMOV") == rule
    assert numbers(s, rule) == shown
    assert sentence(s, rule)
    assert (s.l1 == l1).all()
    assert (s.cfg == config).all()


@pytest.mark.parametrize("field", ["last", "mov_block_selection"])
def test_fields_that_the_text_does_not_have(field: str) -> None:
    s = State()
    assert run(s, "XMOV", **{field: 1}) == cfg.XMOV_FIELDS


def test_writes_to_config_have_their_side_effects() -> None:
    """The zeroing of STATE_RESET_EN and the shared words, as for any other writer."""
    s = State()
    s.cfg[:] = 1
    s.l1[:16] = 5
    program(s, 0, 46, 0, 1, L1_CONFIG)  # words 184 to 187: both banks, RISCV_IC_INVALIDATE = 185
    assert run(s, "XMOV") == rules.DONE
    assert s.cfg[:, 184:188].tolist() == [[0x05050505] * 4] * 2
    assert s.flush.tolist() == [1, 0, 1, 0, 0]
    program(s, 0, 1, 0, 1, ZERO_CONFIG)
    assert run(s, "XMOV") == rules.DONE
    assert not s.cfg[0, :180].any()
    assert (s.cfg[1, :180] == 1).all()


def test_stallwait_c9_never_waits_for_a_transfer() -> None:
    """C9: the mover has requests outstanding (STALLWAIT); a transfer is complete with its XMOV."""
    tile = Tile()
    s = tile.state
    s.l1[:16] = 7
    program(s, 0, 0x400, 0, 1, L1_L1)
    push(tile, 1, "XMOV")
    push(tile, 1, "STALLWAIT", wait_res=1 << 9, stall_res=1 << 5)
    push(tile, 1, "LOADIND", addr_reg_index=4, size_sel=1, data_reg_index=5)
    s.gpr[1, 4] = 0x400
    assert tile.run().reason == "idle"
    assert s.gpr[1, 5] == 0x07070707


def test_code_that_the_mover_replaces_is_executed_anew() -> None:
    """A core calls a routine, moves another one over it and calls it again, within one turn."""
    tile = Tile()
    routine, second, start = 0x11000, 0x12000, 0x10000
    for at, value in ((routine, 1), (second, 2)):
        body = code(li(A0, value), li(A1, 0x4000 + 4 * value), sw(A0, A1), jalr(ZERO, RA))
        tile.write(at, body.ljust(64, b"\0"))
    program(tile.state, 0, routine // 16, second // 16, 4, L1_L1)
    words = [*li(A1, routine), jalr(RA, A1), tt("XMOV"), *li(A1, 0xFFE80004), lw(A0, A1)]
    tile.write(start, code(words, li(A1, routine), jalr(RA, A1), PARK))
    tile.core["trisc0"].set_reset_pc(start)
    tile.core["trisc0"].release()
    assert tile.run().reason == "idle"
    assert [tile.read32(0x4004), tile.read32(0x4008)] == [1, 2]
