"""Scalar unit: atomics on L1 against the literal reference (AT* pages, Wormhole ISA)."""

import random

import numpy as np
import pytest
from scalar_reference import Memory
from unit_runner import ERROR, SILICON, WORD, push, run, sentence

from bhemu.errors import NoProgress
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, addi, bne, code, li, sw, tt
from bhemu.tensix import rules
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import State
from bhemu.tensix.units import memory

SPAN = 0x400


def filled(rng: random.Random) -> State:
    s = State()
    s.l1[:SPAN] = np.frombuffer(rng.randbytes(SPAN), np.uint8)
    s.gpr[:] = np.frombuffer(rng.randbytes(768), np.uint32).reshape(3, 64)
    return s


def same(s: State, t: int, want: Memory) -> bool:
    return s.gpr[t].tobytes() == bytes(want.gprs) and s.l1[:SPAN].tobytes() == bytes(want.l1)


def before(s: State, t: int) -> Memory:
    return Memory(s.gpr[t].tobytes(), s.l1[:SPAN].tobytes())


@pytest.mark.parametrize("width", [0, 1, 7, 15, 30, 31, None])
def test_atincget(width: int | None) -> None:
    """IntWidth + 1 bits change, the old word goes to the register that gave the increment."""
    rng = random.Random(width)
    s = filled(rng)
    for _ in range(100):
        t = rng.randrange(3)
        f = {
            "addr_reg_index": rng.randrange(64),
            "data_reg_index": rng.randrange(64),
            "sel32b": rng.randrange(4),
            "wrap_val": rng.randrange(32) if width is None else width,
        }
        s.gpr[t, f["data_reg_index"]] = rng.choice([0, 1, WORD, 1 << 31, rng.getrandbits(32)])
        s.gpr[t, f["addr_reg_index"]] = rng.randrange(SPAN // 16)
        want = before(s, t)
        want.atincget(f)
        assert run(s, "ATINCGET", t, **f) == rules.DONE
        assert same(s, t, want), f


def fifo_fields(rng: random.Random) -> dict[str, int]:
    return {
        "addr_reg_index": rng.randrange(64),
        "data_reg_index": rng.randrange(64),
        "sel32b": rng.choice([0, 1, 0, 1, 2, 3]),
        "wrap_val": rng.randrange(16),
        "incr_val": rng.randrange(16),
        "no_incr": rng.randrange(2),
    }


def test_atincgetptr() -> None:
    """All widths, increments and words; what blocks changes neither L1 nor the GPRs."""
    rng = random.Random(3)
    s = filled(rng)
    done = {True: 0, False: 0}
    for _ in range(800):
        t, f = rng.randrange(3), fifo_fields(rng)
        at = rng.randrange(SPAN // 16)
        s.gpr[t, f["addr_reg_index"]] = at
        read = rng.choice([0, 1, WORD, rng.getrandbits(f["wrap_val"] + 1)])
        capacity = 2 ** max(f["wrap_val"] - 1, 0) if f["wrap_val"] else 0x8000
        write = (read + rng.choice([0, capacity, 2 * capacity, 1, rng.randrange(9)])) % 2**32
        s.l1[16 * at : 16 * at + 8].view(np.uint32)[:] = read, write
        want = before(s, t)
        ok = want.atincgetptr(f)
        blocked = memory.WAIT_ROOM if f["sel32b"] & 1 else memory.WAIT_ENTRY
        assert run(s, "ATINCGETPTR", t, **f) == (rules.DONE if ok else blocked), f
        assert same(s, t, want), f
        assert s.thcon[0] == (0 if ok else t + 1)
        done[ok] += 1
    assert min(done.values()) > 100


def test_atincgetptr_as_a_queue_of_four() -> None:
    """Pushes until full, pops until empty; the counters have one bit more than the capacity needs.

    "For a FIFO with capacity 2^N, these counters are both unsigned N+1-bit integers".
    """
    s = State()
    s.gpr[0, 1] = 2
    push_word = {"addr_reg_index": 1, "data_reg_index": 2, "sel32b": 1, "wrap_val": 3}
    pop = push_word | {"sel32b": 0, "data_reg_index": 3}
    written = 0
    for turn in range(5):
        for _ in range(4):
            assert run(s, "ATINCGETPTR", **push_word) == rules.DONE
            assert s.gpr[0, 2] == written % 8
            written += 1
        assert run(s, "ATINCGETPTR", **push_word) == memory.WAIT_ROOM
        assert run(s, "ATINCGETPTR", **push_word, no_incr=1) == memory.WAIT_ROOM
        for i in range(4):
            assert run(s, "ATINCGETPTR", **pop, no_incr=1) == rules.DONE
            assert run(s, "ATINCGETPTR", **pop) == rules.DONE
            assert s.gpr[0, 3] == (4 * turn + i) % 8
        assert run(s, "ATINCGETPTR", **pop) == memory.WAIT_ENTRY


@pytest.mark.parametrize("single", [0, 1])
def test_atswap(single: int) -> None:
    """Half-words by mask; the GPRs keep their values; the single register's neighbours are zero."""
    rng = random.Random(single)
    s = filled(rng)
    for _ in range(200):
        t = rng.randrange(3)
        f = {
            "addr_reg_index": rng.randrange(64),
            "data_reg_index": rng.randrange(64),
            "swap_mask": rng.choice([0, 0xFF, rng.getrandbits(8)]),
            "single_data_reg": single,
        }
        s.gpr[t, f["addr_reg_index"]] = rng.randrange(SPAN // 16)
        want = before(s, t)
        want.atswap(f)
        assert run(s, "ATSWAP", t, **f) == rules.DONE
        assert same(s, t, want), f


@pytest.mark.parametrize("compare", range(16))
def test_atcas(compare: int) -> None:
    """All 32 bits must equal the 4-bit value; the new value replaces all of them."""
    rng = random.Random(compare)
    for word in (compare, compare | 1 << 31, compare | 0x10, (compare + 1) % 16):
        s, offset, new = State(), rng.randrange(4), rng.randrange(16)
        s.l1.view(np.uint32)[8:12] = 0x11111111
        s.l1.view(np.uint32)[8 + offset] = word
        s.gpr[2, 60] = 2
        want = s.l1.copy()
        f = {"addr_reg_index": 60, "sel32b": offset, "cmp_val": compare, "swap_val": new}
        got = run(s, "ATCAS", 2, **f)
        if word == compare:
            assert got == rules.DONE
            want.view(np.uint32)[8 + offset] = new
        else:
            assert got == memory.WAIT_EQUAL
        assert (s.l1 == want).all()
        assert np.count_nonzero(s.gpr) == 1


def test_atcas_waits_for_a_store_of_a_core() -> None:
    """Retried until trisc1 stores the value; other threads cannot enter the scalar unit."""
    tile = Tile()
    tile.state.gpr[0, 1] = 0x4000 // 16
    push(tile, 0, "ATCAS", addr_reg_index=1, sel32b=2, cmp_val=9, swap_val=5)
    push(tile, 0, "SETDMAREG", payload_sig_sel=7, reg_index_16b=6)
    push(tile, 2, "SETDMAREG", payload_sig_sel=8, reg_index_16b=6)
    with pytest.raises(NoProgress) as caught:
        tile.run()
    graph = str(caught.value.graph)
    assert "thread T0 waits for a word of L1 to become equal to the 4-bit value of ATCAS" in graph
    assert "L1[0x4008] = 0x0, awaited 0x9" in graph
    assert "thread T2 waits for the scalar unit" in graph
    first, second = caught.value.graph.waiters  # type: ignore[attr-defined]
    assert (first.kind, first.resource) == ("l1", {"address": 0x4008})
    assert (second.kind, [r.who for r in second.releasers]) == ("scalar", ["thread T0"])
    loop = [addi(A1, A1, -1), bne(A1, 0, -4)]
    tile.write(0x10000, code(li(A1, 3000), *loop, li(A0, 0x4008), li(A1, 9), sw(A1, A0), PARK))
    tile.core["trisc1"].set_reset_pc(0x10000)
    tile.core["trisc1"].release()
    assert tile.run(resume=True).reason == "idle"
    assert tile.read32(0x4008) == 5
    assert tile.state.gpr[[0, 2], 3].tolist() == [7, 8]
    assert tile.state.thcon[0] == 0


def test_a_pop_that_waits_keeps_other_threads_out_of_the_scalar_unit() -> None:
    """So no thread can push for it with ATINCGETPTR; a RISC-V core or the host can (ScalarUnit)."""
    tile = Tile()
    tile.state.gpr[:, 1] = 0x4000 // 16
    push(tile, 1, "ATINCGETPTR", addr_reg_index=1, wrap_val=3, data_reg_index=5)
    with pytest.raises(NoProgress) as caught:
        tile.run()
    assert "L1[0x4000]: read counter 0x0, write counter 0x0" in str(caught.value.graph)
    push(tile, 0, "ATINCGETPTR", addr_reg_index=1, wrap_val=3, sel32b=1, data_reg_index=5)
    with pytest.raises(NoProgress) as caught:
        tile.run(resume=True)
    assert "thread T0 waits for the scalar unit" in str(caught.value.graph)
    tile.write32(0x4004, 1)
    assert tile.run(resume=True).reason == "idle"
    assert [tile.read32(0x4000), tile.read32(0x4004)] == [1, 2]
    assert tile.state.gpr[:2, 5].tolist() == [1, 0]


@pytest.mark.parametrize("mnemonic", ["ATINCGET", "ATINCGETPTR", "ATSWAP", "ATCAS"])
def test_addresses_outside_l1_are_undefined(mnemonic: str) -> None:
    for mode in (ERROR, SILICON):
        s = State()
        s.ub_mode[0] = mode
        s.gpr[0, 2] = 0x18000
        assert run(s, mnemonic, addr_reg_index=2) == memory.NOT_L1
        assert s.detail[0] == 0x180000
        assert np.count_nonzero(s.gpr) == 1


@pytest.mark.parametrize("mnemonic", ["ATINCGET", "ATINCGETPTR", "ATSWAP", "ATCAS"])
def test_other_memories_are_refused(mnemonic: str) -> None:
    """mem_hier_sel is 0 in the ISA's syntax."""
    s = State()
    assert run(s, mnemonic, mem_hier_sel=1) == memory.FIELDS
    assert sentence(s, memory.FIELDS).startswith("an L1 atomic with mem_hier_sel 1")
    if mnemonic == "ATCAS":
        assert run(s, mnemonic, data_reg_index=4) == memory.FIELDS


def test_encodings_are_those_of_the_diagrams() -> None:
    """Bit positions of the encoding diagrams (ATINCGET ... ATCAS)."""
    assert assemble("ATINCGET", addr_reg_index=63, wrap_val=31) == 0x61 << 24 | 31 << 14 | 63
    assert assemble("ATINCGETPTR", no_incr=1, incr_val=15) == 0x62 << 24 | 1 << 22 | 15 << 18
    assert assemble("ATSWAP", swap_mask=255, single_data_reg=1) == 0x63 << 24 | 0x1FF << 14
    assert assemble("ATCAS", cmp_val=15, swap_val=10) == 0x64 << 24 | 10 << 18 | 15 << 14
    assert tt("ATCAS", swap_val=1) != tt("ATCAS", cmp_val=1)
