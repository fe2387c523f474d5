"""Scalar unit: LOADIND and STOREIND in every form (LOADIND, STOREIND_*, Wormhole ISA)."""

import random

import numpy as np
import pytest
from scalar_reference import L1_SIZE, Memory, record_cell, src_cell
from unit_runner import ERROR, SILICON, WORD, push, run, sentence, view

from bhemu.errors import NoProgress, Undefined
from bhemu.machine.tile import Tile
from bhemu.tensix import banks, mmio, rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.state import State
from bhemu.tensix.units import memory

SPAN = 0x8000  # bytes of L1 that the random cases use


def filled(rng: random.Random) -> State:
    s = State()
    s.l1[:SPAN] = np.frombuffer(rng.randbytes(SPAN), np.uint8)
    s.gpr[:] = np.frombuffer(rng.randbytes(768), np.uint32).reshape(3, 64)
    return s


def fields(rng: random.Random, **fixed: int) -> dict[str, int]:
    chosen = {
        "addr_reg_index": rng.randrange(64),
        "data_reg_index": rng.randrange(64),
        "auto_inc_spec": rng.randrange(4),
        "offset_half_reg": rng.randrange(128),
    }
    return chosen | fixed


def offset_of(rng: random.Random) -> int:
    return rng.choice([0, 1, 2, 3, 5, 15, 16, 0x3FFE, 0x4001, rng.randrange(0x4000)])


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("store", [False, True])
def test_l1_against_the_reference(size: int, store: bool) -> None:
    """All sizes and increments, any overlap of the address, offset and data registers."""
    rng = random.Random(f"{size} {store}")
    s = filled(rng)
    for _ in range(250):
        t = rng.randrange(3)
        f = fields(rng, size_sel=size)
        if store:
            f |= {"size_sel": size >> 1, "reg_size_sel": size & 1}
        memory.put_half(view(s), t, f["offset_half_reg"], offset_of(rng))
        s.gpr[t, f["addr_reg_index"]] = rng.randrange(SPAN // 2 // 16)
        want = Memory(s.gpr[t].tobytes(), s.l1.tobytes())
        others = s.gpr.copy()
        ok = want.storeind(f) if store else want.loadind(f)
        name = "STOREIND" if store else "LOADIND"
        got = run(s, name, t, **f, **({"mem_hier_sel": 1} if store else {}))
        assert got == (rules.DONE if ok else memory.NOT_L1), f
        if ok:
            assert s.gpr[t].tobytes() == bytes(want.gprs), f
            assert s.l1.tobytes() == bytes(want.l1), f
        s.gpr[t] = others[t]
        assert (s.gpr == others).all()


@pytest.mark.parametrize("mode", [ERROR, SILICON])
@pytest.mark.parametrize(
    ("base", "offset"),
    [(0x18000, 0), (0x17FFF, 16), (0x17000, 0xFFFF + 1 - 0), (0x0FFFFFFF, 15), (0x8018000, 0)],
)
@pytest.mark.parametrize("mnemonic", ["LOADIND", "STOREIND"])
def test_addresses_outside_l1_are_undefined(
    mnemonic: str, base: int, offset: int, mode: int
) -> None:
    """Nothing is said of the effect, so no mode tolerates it; the offset does not move."""
    s = State()
    s.ub_mode[0] = mode
    s.gpr[0, 4], s.gpr[0, 5] = base + (offset >> 16 << 12), offset & 0xFFFF
    before = s.gpr.copy()
    more = {"mem_hier_sel": 1} if mnemonic == "STOREIND" else {}
    f = {"addr_reg_index": 4, "offset_half_reg": 10, "auto_inc_spec": 3, "data_reg_index": 8}
    assert run(s, mnemonic, **f, **more) == memory.NOT_L1
    address = (int(before[0, 4]) * 16 + int(before[0, 5])) % 2**32
    assert f"{address:#010x}" in sentence(s, memory.NOT_L1)
    assert (s.gpr == before).all()
    assert not s.l1.any()


def test_the_address_wraps_at_32_bits() -> None:
    """uint32 arithmetic: 0x10000001 * 16 is 16."""
    s = State()
    s.l1[16:20] = 7, 6, 5, 4
    s.gpr[0, 1] = 0x10000001
    assert run(s, "LOADIND", addr_reg_index=1, size_sel=1, data_reg_index=9) == rules.DONE
    assert s.gpr[0, 9] == 0x04050607


def test_the_last_bytes_of_l1() -> None:
    s = State()
    s.gpr[2, 1], s.gpr[2, 2] = L1_SIZE // 16 - 1, 15
    s.gpr[2, 8:12] = 1, 2, 3, 4
    f = {"addr_reg_index": 1, "offset_half_reg": 4, "data_reg_index": 8, "mem_hier_sel": 1}
    assert run(s, "STOREIND", 2, **f) == rules.DONE
    assert s.l1[-16:].view(np.uint32).tolist() == [1, 2, 3, 4]


def test_tile_header_store_of_the_pack_kernel() -> None:
    """ "TTI_STOREIND(1, 0, LD_16B, LO_16(0), INC_NONE, TILE_HEADER, OUTPUT_ADDR)" (seed 004)."""
    s = State()
    s.gpr[2, 16:20] = 0x800, 0, 0, 0x55
    s.gpr[2, 12] = 0x4000
    f = {"addr_reg_index": 12, "data_reg_index": 16, "offset_half_reg": 0, "mem_hier_sel": 1}
    assert run(s, "STOREIND", 2, **f) == rules.DONE
    assert s.l1[0x40000:0x40010].view(np.uint32).tolist() == [0x800, 0, 0, 0x55]


# MMIO form


def test_mmio_form_stores_a_register_and_then_increments() -> None:
    """Address 0xFFB00000 + ((GPR + (offset >> 4)) & 0xFFFFC) (STOREIND_MMIO)."""
    rng = random.Random(5)
    s = filled(rng)
    for _ in range(100):
        t, f = rng.randrange(3), fields(rng, size_sel=1)
        stream, register = rng.randrange(64), rng.choice([8, 10, 18, 28])
        offset, low = rng.randrange(0x10000), rng.randrange(4)
        at = 0x40000 + 0x1000 * stream + 4 * register
        base = (at + low - (offset >> 4) + (rng.randrange(0x1000) << 20)) % 2**32
        half = f["offset_half_reg"]
        if half >> 1 == f["addr_reg_index"]:
            continue
        memory.put_half(view(s), t, half, offset)
        s.gpr[t, f["addr_reg_index"]] = base
        value = int(s.gpr[t, f["data_reg_index"]])
        before = s.gpr.copy()
        assert run(s, "STOREIND", t, **f) == rules.DONE
        mask = 0xFFFFF if register == 28 else 0x1FFFF
        assert s.stream[stream, register] == value & mask
        want = Memory(before[t].tobytes(), b"")
        want.increment(half, f["auto_inc_spec"])
        assert s.gpr[t].tobytes() == bytes(want.gprs)


def test_mmio_form_below_its_window_and_of_another_size() -> None:
    s = State()
    s.gpr[0, 1] = 0x10FFC
    f = {"addr_reg_index": 1, "offset_half_reg": 4, "auto_inc_spec": 1, "size_sel": 1}
    assert run(s, "STOREIND", **f) == mmio.LOW
    assert sentence(s, mmio.LOW).startswith("address 0xffb10ffc is below")
    assert s.gpr[0, 2] == 0
    assert run(s, "STOREIND", size_sel=1, reg_size_sel=1) == memory.MMIO_SIZE


# Src form


def src_state() -> State:
    s = State()
    s.thread_cfg[:, tf.SRCA_SET_SetOvrdWithAddr.word] = 4
    return s


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("bank", [0, 1])
def test_src_form_against_the_reference(which: int, bank: int) -> None:
    """Four cells; low halves are in the order of Dst, high halves as in IEEE (STOREIND_Src)."""
    rng = random.Random(which * 2 + bank)
    s = src_state()
    s.src[:] = np.frombuffer(rng.randbytes(s.src.nbytes), np.uint32).reshape(s.src.shape)
    s.unpack_bank[which] = bank
    s.src_valid[:] = 1
    s.src_valid[which, bank] = 0
    s.src_prepared[:] = 3
    for _ in range(150):
        t, data = rng.randrange(3), rng.randrange(64)
        row, group = rng.randrange(16 if which else 64), rng.randrange(4)
        address = (row + (0 if which else 4)) * 4 + group
        offset = rng.randrange(0x10000)
        s.gpr[t] = np.frombuffer(rng.randbytes(256), np.uint32)
        s.gpr[t, 50], s.gpr[t, 51] = (address - (offset >> 4)) % 2**32, offset << 16
        f = {"addr_reg_index": 50, "offset_half_reg": 103, "data_reg_index": data}
        spec = rng.randrange(4)
        registers = [int(v) for v in s.gpr[t, data // 4 * 4 : data // 4 * 4 + 2]]
        before = s.src.copy()
        assert run(s, "STOREIND", t, **f, auto_inc_spec=spec, reg_size_sel=which) == rules.DONE
        cells = [record_cell(src_cell(v, high)) for v in registers for high in (False, True)]
        before[which, bank, row, 4 * group : 4 * group + 4] = cells
        assert (s.src == before).all()
        assert int(s.gpr[t, 51]) >> 16 == (offset + [0, 2, 4, 16][spec]) % 65536
        assert s.src_prepared[which, bank] == banks.STALE
    assert (s.src_prepared == 3).sum() == 3


def test_srca_rows_below_the_first_are_discarded() -> None:
    """Addresses 0 to 15 name rows -4 to -1: nothing is written, the offset moves."""
    s = src_state()
    for address in range(16):
        s.gpr[0, 1] = address
        f = {"addr_reg_index": 1, "offset_half_reg": 4, "auto_inc_spec": 1}
        assert run(s, "STOREIND", **f, data_reg_index=8) == rules.DONE
    assert not s.src.any()
    assert s.gpr[0, 2] == 32


@pytest.mark.parametrize(
    ("which", "override", "row", "rows"),
    [(0, 4, 64, 64), (0, 0, 16, 16), (1, 4, 16, 16), (1, 0, 16, 16)],
)
def test_rows_beyond_the_last_are_undefined(which: int, override: int, row: int, rows: int) -> None:
    s = State()
    s.thread_cfg[0, tf.SRCA_SET_SetOvrdWithAddr.word] = override
    f = {"addr_reg_index": 1, "offset_half_reg": 4, "auto_inc_spec": 1, "reg_size_sel": which}
    s.gpr[0, 1] = 4 * (row + (0 if which else 4))
    assert run(s, "STOREIND", **f) == memory.SRC_ROW
    assert sentence(s, memory.SRC_ROW) == (
        f"STOREIND to row {row} of a source register: there are {rows}"
    )
    s.gpr[0, 1] -= 4
    assert run(s, "STOREIND", **f) == rules.DONE
    s.gpr[0, 1] = 0x10000
    assert run(s, "STOREIND", **f) == memory.SRC_ADDRESS


@pytest.mark.parametrize(("which", "override", "row"), [(0, 0, 37), (0, 1, 5), (1, 0, 37)])
def test_the_row_offset_of_the_unpacker(which: int, override: int, row: int) -> None:
    """Unpackers[].SrcRow is added, but not to SrcA with SRCA_SET_SetOvrdWithAddr (STOREIND_Src)."""
    s = State()
    s.gpr[0, 1] = 4 * (5 if which else 9)
    s.gpr[0, 8] = 0x3F803F80
    s.unpack_row[which, 0] = 32
    s.thread_cfg[0, tf.SRCA_SET_SetOvrdWithAddr.word] = override << 2
    f = {"addr_reg_index": 1, "reg_size_sel": which, "data_reg_index": 8, "offset_half_reg": 20}
    assert run(s, "STOREIND", **f) == rules.DONE
    assert np.argwhere(s.src[which, 0].any(axis=1)).tolist() == [[row]]


def test_src_form_waits_for_the_bank_inside_the_scalar_unit() -> None:
    """Waiting for AllowedClient occupies the unit: no other thread enters (STOREIND_Src)."""
    tile = Tile()
    s = tile.state
    s.thread_cfg[:, tf.SRCA_SET_SetOvrdWithAddr.word] = 4
    s.src_valid[0, 0] = 1
    s.gpr[0, 1], s.gpr[0, 8] = 16, 0x3F803F80
    push(tile, 0, "STOREIND", addr_reg_index=1, offset_half_reg=4, data_reg_index=8)
    push(tile, 1, "SETDMAREG", payload_sig_sel=5)
    push(tile, 2, "SEMINIT", sem_sel=1, init_value=1, max_value=1)
    with pytest.raises(NoProgress) as caught:
        tile.run()
    graph = str(caught.value.graph)
    assert "thread T0 waits for SrcA bank 0 to become free" in graph
    assert "thread T1 waits for the scalar unit, which an instruction of another thread" in graph
    assert s.sem[0] == 1
    assert s.gpr[1, 0] == 0
    s.src_valid[0, 0] = 0
    assert tile.run(resume=True).reason == "idle"
    assert s.gpr[1, 0] == 5
    assert s.src[0, 0, 0, 1] == 0x3F800000
    assert s.thcon[0] == 0


def test_an_undefined_store_names_its_place() -> None:
    tile = Tile()
    tile.state.gpr[1, 3] = WORD
    push(tile, 1, "STOREIND", addr_reg_index=3, mem_hier_sel=1, size_sel=1)
    with pytest.raises(Undefined, match="THCON-L1"):
        tile.run()
