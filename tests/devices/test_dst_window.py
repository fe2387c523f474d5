"""The Dst window against a literal transcription of the functional model in Dst, Blackhole ISA."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.errors import NotModelled, Undefined
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, PARK, code, lbu, lh, lhu, li, lw, sw
from bhemu.tensix.rules import counted

BASE = 0xFFBD8000
START = 0x10000
WIDTH = {0: 4, 1: 4, 2: 2, 3: 2, 4: 2, 5: 1}
CORES = ("trisc0", "trisc1", "trisc2")
FORMATS = st.sampled_from(sorted(WIDTH))


@cache
def one_tile() -> Tile:
    """For all examples: making one is slower than an access."""
    return Tile()


def control(tile: Tile, core: int, fmt: int, no_swizzle: int, unsigned: int) -> None:
    """RISC_DEST_ACCESS_CTRL_SEC[core], word 3 of Config bank 0."""
    old = int(tile.state.cfg[0, 3]) & ~(0x1F << (14 + 5 * core))
    tile.state.cfg[0, 3] = old | (no_swizzle | unsigned << 1 | fmt << 2) << (14 + 5 * core)


def adj32(row: int) -> int:
    return ((row & 0x1F8) << 1) | (row & 0x207)


def load32(dst: Any, address: int, fmt: int, no_swizzle: int) -> int:
    """Load32 of the ISA text."""
    i = (address - BASE) // 4
    row = adj32(i // 16)
    value = int(dst[row, i % 16]) << 16 | int(dst[row + 8, i % 16])
    if not no_swizzle:
        value = (value & 0x8000FFFF) | ((value & 0x7F000000) >> 8) | ((value & 0x00FF0000) << 7)
    if fmt == 1 and not no_swizzle and value >= 0x80000000:
        value = -(value & 0x7FFFFFFF) & 0xFFFFFFFF
    return value


def load16(dst: Any, address: int, fmt: int, no_swizzle: int, unsigned: int) -> int:
    """Load16 of the ISA text."""
    i = (address - BASE) // 2
    value = int(dst[i // 16, i % 16])
    if fmt == 2 and not no_swizzle:
        return (value & 0x8000) | ((value & 0x7FE0) >> 5) | ((value & 0x001F) << 10)
    if fmt == 3 and not no_swizzle:
        return (value & 0x8000) | ((value & 0x7F00) >> 8) | ((value & 0x00FF) << 7)
    if fmt == 4 and not (no_swizzle or unsigned or value < 0x8000):
        return -(value & 0x7FFF) & 0xFFFF
    return value


def load8(dst: Any, address: int, no_swizzle: int, unsigned: int) -> int:
    """Load8 of the ISA text."""
    i = address - BASE
    value = int(dst[i // 16, i % 16])
    if no_swizzle or unsigned:
        return (value >> 5) & 0xFF
    magnitude = (value >> 5) & 0x7F
    return (-magnitude & 0xFF) if value & 0x8000 else magnitude


def load(dst: Any, address: int, fmt: int, no_swizzle: int, unsigned: int) -> int:
    """One datum as a core sees it."""
    if WIDTH[fmt] == 4:
        return load32(dst, address, fmt, no_swizzle)
    if WIDTH[fmt] == 2:
        return load16(dst, address, fmt, no_swizzle, unsigned)
    return load8(dst, address, no_swizzle, unsigned)


def store32(dst: Any, address: int, value: int, fmt: int, no_swizzle: int) -> None:
    """Store32 of the ISA text."""
    if fmt == 1 and not (no_swizzle or value < 0x80000000):
        value = 0x80000000 | (-(value + (value == 0x80000000)) & 0xFFFFFFFF)
    if not no_swizzle:
        value = (value & 0x8000FFFF) | ((value & 0x7F800000) >> 7) | ((value & 0x007F0000) << 8)
    i = (address - BASE) // 4
    row = adj32(i // 16)
    dst[row, i % 16], dst[row + 8, i % 16] = value >> 16, value & 0xFFFF


def store16(dst: Any, address: int, value: int, fmt: int, no_swizzle: int, unsigned: int) -> None:
    """Store16 of the ISA text."""
    if fmt == 2 and not no_swizzle:
        value = (value & 0x8000) | ((value & 0x7C00) >> 10) | ((value & 0x03FF) << 5)
    if fmt == 3 and not no_swizzle:
        value = (value & 0x8000) | ((value & 0x7F80) >> 7) | ((value & 0x007F) << 8)
    if fmt == 4 and not (no_swizzle or unsigned or value < 0x8000):
        value = 0x8000 | (-(value + (value == 0x8000)) & 0xFFFF)
    i = (address - BASE) // 2
    dst[i // 16, i % 16] = value


def store8(dst: Any, address: int, value: int, no_swizzle: int, unsigned: int) -> None:
    """Store8 of the ISA text, its wrong conversion of negative bytes included."""
    if no_swizzle or unsigned or value < 0x80:
        cell = (value << 5) | (16 if value else 0)
    else:
        magnitude = (0x180 - value - (value == 0x80)) & 0xFF
        cell = 0x8000 | (magnitude << 5) | 16
    i = address - BASE
    dst[i // 16, i % 16] = cell


def store(dst: Any, address: int, value: int, fmt: int, no_swizzle: int, unsigned: int) -> None:
    """One datum stored by a core."""
    if WIDTH[fmt] == 4:
        store32(dst, address, value, fmt, no_swizzle)
    elif WIDTH[fmt] == 2:
        store16(dst, address, value, fmt, no_swizzle, unsigned)
    else:
        store8(dst, address, value, no_swizzle, unsigned)


def read(tile: Tile, core: int, address: int, size: int) -> int:
    status, value = tile.backend.read(address, size, core + 1)
    assert status == 0
    return value


EDGES = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x8000, 0x7FFF, 0xFFFF, 0x80000000, 0xFFFFFFFF])
VALUES = st.one_of(EDGES, st.integers(0, 0xFFFFFFFF))


@settings(max_examples=300)
@given(
    core=st.integers(0, 2),
    fmt=FORMATS,
    flags=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    index=st.integers(0, 512 * 16 - 1),
    cells=st.tuples(VALUES, VALUES),
)
def test_a_load_sees_the_datum_in_the_cores_layout(
    core: int, fmt: int, flags: tuple[int, int], index: int, cells: tuple[int, int]
) -> None:
    tile, address = one_tile(), BASE + index * WIDTH[fmt]
    control(tile, core, fmt, *flags)
    row = adj32(index // 16) if WIDTH[fmt] == 4 else index // 16
    tile.state.dst[row, index % 16] = cells[0] & 0xFFFF
    tile.state.dst[(row + 8) & 1023, index % 16] = cells[1] & 0xFFFF
    want = load(tile.state.dst, address, fmt, *flags)
    assert read(tile, core, address, WIDTH[fmt]) == want


@settings(max_examples=300)
@given(
    core=st.integers(0, 2),
    fmt=FORMATS,
    flags=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    index=st.integers(0, 512 * 16 - 1),
    value=VALUES,
)
def test_a_store_writes_one_datum_and_nothing_else(
    core: int, fmt: int, flags: tuple[int, int], index: int, value: int
) -> None:
    tile, width = one_tile(), WIDTH[fmt]
    value &= (1 << (8 * width)) - 1
    control(tile, core, fmt, *flags)
    want = tile.state.dst.copy()
    store(want, BASE + index * width, value, fmt, *flags)
    assert tile.backend.write(BASE + index * width, value, width, core + 1) == 0
    assert np.array_equal(tile.state.dst, want)


@settings(max_examples=200)
@given(
    fmt=st.sampled_from([2, 3, 4, 5]),
    flags=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    size=st.sampled_from([2, 4]),
    place=st.integers(0, 0xFFF),
    value=VALUES,
)
def test_trisc2_accesses_several_datums_at_once(
    fmt: int, flags: tuple[int, int], size: int, place: int, value: int
) -> None:
    tile, width = one_tile(), WIDTH[fmt]
    address, value = BASE + size * place, value & ((1 << (8 * size)) - 1)
    control(tile, 2, fmt, *flags)
    want = tile.state.dst.copy()
    for i in range(size // width):
        part = (value >> (8 * width * i)) & ((1 << (8 * width)) - 1)
        store(want, address + i * width, part, fmt, *flags)
    assert tile.backend.write(address, value, size, 3) == 0
    assert np.array_equal(tile.state.dst, want)
    parts = [load(want, address + i * width, fmt, *flags) for i in range(size // width)]
    want_value = sum(part << (8 * width * i) for i, part in enumerate(parts))
    assert read(tile, 2, address, size) == want_value


def tile_with(program: bytes, core: str = "trisc0") -> Tile:
    tile = Tile()
    tile.write(START, program)
    tile.core[core].set_reset_pc(START)
    tile.core[core].release()
    return tile


def test_a_program_stores_and_loads_bf16() -> None:
    """1.5 as bf16 is 0x3FC0, as a cell s0 m1000000 e01111111; -2.0 is loaded sign-extended."""
    tile = tile_with(code(li(A1, BASE + 36), li(A0, 0x3FC0), sw(A0, A1, 0, 1), lh(A2, A1, 2), PARK))
    control(tile, 0, 3, 0, 0)
    tile.state.dst[1, 3] = 0x8000 | 128
    assert tile.run().reason == "idle"
    assert tile.state.dst[1, 2] == 0x4000 | 127
    assert tile.core["trisc0"].regs[A2] == 0xFFFFC000


def test_each_thread_has_its_own_format_in_the_bank_it_uses() -> None:
    tile = Tile()
    tile.state.thread_cfg[1, 0] = 1  # CFG_STATE_ID of thread 1
    control(tile, 0, 2, 0, 0)
    tile.state.cfg[1, 3] = 3 << 21
    tile.state.dst[0, 0] = 0x1234
    assert read(tile, 0, BASE, 2) == (0x1234 & 0x7FE0) >> 5 | (0x1234 & 31) << 10
    assert read(tile, 1, BASE, 2) == (0x1234 & 0x7F00) >> 8 | (0x1234 & 255) << 7


NARROW_OR_WIDE = [
    (3, lw(A0, A1)),
    (0, lhu(A0, A1)),
    (2, lbu(A0, A1)),
    (1, sw(A0, A1, 0, 0)),
    (5, sw(A0, A1, 0, 1)),
]


@pytest.mark.parametrize(("fmt", "access"), NARROW_OR_WIDE)
def test_trisc0_must_match_the_width_of_the_datum(fmt: int, access: int) -> None:
    tile = tile_with(code(li(A1, BASE), access, PARK))
    control(tile, 0, fmt, 0, 0)
    with pytest.raises(Undefined, match="DST-WINDOW-WIDTH"):
        tile.run()


def test_trisc2_cannot_access_part_of_a_datum() -> None:
    tile = tile_with(code(li(A1, BASE), lhu(A0, A1), PARK), "trisc2")
    with pytest.raises(Undefined, match="DST-WINDOW-WIDTH"):
        tile.run()


@pytest.mark.parametrize("fmt", [6, 7])
def test_reserved_formats_are_refused(fmt: int) -> None:
    tile = tile_with(code(li(A1, BASE), lw(A0, A1), PARK))
    control(tile, 0, fmt, 0, 0)
    with pytest.raises(Undefined, match="DST-WINDOW-FORMAT"):
        tile.run()


def test_the_second_half_of_the_window_holds_no_8_bit_datum() -> None:
    tile = tile_with(code(li(A1, BASE + 0x4000), lbu(A0, A1), PARK))
    control(tile, 0, 5, 0, 0)
    with pytest.raises(Undefined, match="DST-WINDOW-ROWS"):
        tile.run()


@pytest.mark.parametrize("access", [lw(A0, A1, 64), sw(A0, A1, 64)])
def test_a_row_cleared_by_zeroacc_is_refused(access: int) -> None:
    tile = tile_with(code(li(A1, BASE), access, PARK))
    tile.state.dst_valid[1] = 0
    with pytest.raises(NotModelled, match="row 1"):
        tile.run()
    tile = tile_with(code(li(A1, BASE + 64), access, PARK))
    tile.state.dst_valid[1] = 0
    assert tile.run().reason == "idle"


def test_a_store_makes_a_cleared_row_count_as_tt_llks_tests_need_it() -> None:
    """Reference llk: what is stored is read back, the other datums are what the row held."""
    tile = Tile(reference="llk")
    control(tile, 1, 1, 1, 0)
    tile.state.dst[:16] = 7
    tile.state.dst_valid[0] = 0
    assert tile.backend.write(BASE + 4, 0x12345678, 4, 2) == 0
    assert tile.backend.write(BASE + 8, 0x9ABCDEF0, 4, 2) == 0
    assert tile.state.dst_valid[0] == 1
    assert [read(tile, 1, BASE + at, 4) for at in (0, 4, 8)] == [0x70007, 0x12345678, 0x9ABCDEF0]
    assert [(RULES[n].rule, k) for n, k in counted(tile.state).items()] == [
        ("DST-WINDOW-STORED", 1)
    ]
    tile.state.dst_valid[0] = 0
    assert tile.backend.read(BASE, 4, 2)[0] < 0


@pytest.mark.parametrize("core", ["brisc", "ncrisc"])
def test_the_window_belongs_to_the_triscs(core: str) -> None:
    tile = Tile()
    address = 0 if core == "brisc" else 0x12000
    tile.write(address, code(li(A1, BASE), lw(A0, A1), PARK))
    tile.core[core].release()
    with pytest.raises(Undefined, match="MMIO-CORE"):
        tile.run()
