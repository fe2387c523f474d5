"""Scalar unit: GPR arithmetic, SETDMAREG, STOREREG and LOADREG (ScalarUnit pages, ISA)."""

import random

import numpy as np
import pytest
from unit_runner import WORD, push, run

from bhemu.errors import BhemuError
from bhemu.machine import sentences
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, A2, PARK, ZERO, addi, bne, code, li, lw, sw, tt
from bhemu.tensix import mmio as mmio_window
from bhemu.tensix import rules
from bhemu.tensix.state import State
from bhemu.tensix.units import scalar


@pytest.mark.parametrize("register", [0, 4, 63])
def test_setdmareg_sets_one_half(register: int) -> None:
    """16-bit immediate: payload_sig_sel and, above it, payload_sig_sel_size (SETDMAREG, ISA)."""
    s = State()
    s.gpr[1] = 0xAAAA5555
    low = {"reg_index_16b": 2 * register, "payload_sig_sel": 0x3234, "payload_sig_sel_size": 2}
    assert run(s, "SETDMAREG", 1, **low) == rules.DONE
    assert s.gpr[1, register] == 0xAAAAB234
    high = {"reg_index_16b": 2 * register + 1, "payload_sig_sel": 1, "payload_sig_sel_size": 3}
    assert run(s, "SETDMAREG", 1, **high) == rules.DONE
    assert s.gpr[1, register] == 0xC001B234
    assert np.count_nonzero(s.gpr != 0xAAAA5555) == 64 + 64 + 1  # two threads are 0, one GPR set


@pytest.mark.parametrize("source", [0, 1, 2, 3, 4, 5, 8])
def test_setdmareg_of_packer_state_is_refused_by_name(source: int) -> None:
    """Tile sizes and zero flags are not kept (SETDMAREG_Special)."""
    s = State()
    fields = {"set_signals_mode": 1, "payload_sig_sel": source << 3}
    assert run(s, "SETDMAREG", **fields) == scalar.SIGNALS
    assert sentences.RULES[scalar.SIGNALS].category == rules.UNIMPLEMENTED
    assert f"source {source}:" in sentences.RULES[scalar.SIGNALS].sentence(s.detail)
    assert not s.gpr.any()


def packer_values(s: State, source: int) -> bytes:
    """The 128 bits of an InputSource (SETDMAREG_Special); 10 and above are no case: all zero."""
    if source in (6, 7):
        return s.pack_histogram[16 * (source - 6) : 16 * (source - 5)].tobytes()
    if source == 9:
        return int(s.pack_exponent[0]).to_bytes(16, "little")
    return bytes(16)


@pytest.mark.parametrize("size", range(4))
@pytest.mark.parametrize("source", [6, 7, 9, *range(10, 16)])
def test_setdmareg_special_form_against_the_reference(source: int, size: int) -> None:
    """ResultSize 0: one half, 1: one register, 2: four, 3: the fields of a tile header."""
    rng = random.Random(16 * size + source)
    s = State()
    for _ in range(60):
        t, half, part = rng.randrange(3), rng.randrange(128), rng.randrange(8)
        s.pack_histogram[:] = [rng.randrange(256) for _ in range(32)]
        s.pack_exponent[0] = rng.randrange(256)
        s.gpr[t] = [rng.getrandbits(32) for _ in range(64)]
        want, values = bytearray(s.gpr[t].tobytes()), packer_values(s, source)
        group = half // 8 * 16
        if size == 0:
            want[2 * half : 2 * half + 2] = values[2 * part : 2 * part + 2]
        elif size == 1:
            at = half // 2 * 4
            want[at : at + 4] = values[part // 2 * 4 : part // 2 * 4 + 4]
        elif size == 2:
            want[group : group + 16] = values
        else:  # TileSize, DataFormat + DisableZeroCompression + SpareBits, AllZeroFlags
            for at in (0, 1, 6, 8, 9, 10, 11):
                want[group + at] = values[at]
        packers = rng.randrange(16) if source >= 9 else rng.choice([0, 4, 8, 12])
        select = packers << 7 | source << 3 | part
        fields = {"set_signals_mode": 1, "payload_sig_sel": select, "reg_index_16b": half}
        assert run(s, "SETDMAREG", t, **fields, payload_sig_sel_size=size) == rules.DONE
        assert s.gpr[t].tobytes() == bytes(want)


@pytest.mark.parametrize("source", [6, 7, 9])
def test_setdmareg_of_exponents_that_were_not_followed(source: int) -> None:
    """Silicon follows the largest exponent always, bhemu only while statistics are enabled; the
    histogram lacks int8, whose bins are unspecified."""
    s = State()
    s.pack_exponent[1 if source == 9 else 2] = 5
    fields = {"set_signals_mode": 1, "payload_sig_sel": source << 3, "reg_index_16b": 4}
    assert run(s, "SETDMAREG", **fields) == scalar.STATISTICS
    text = sentences.RULES[scalar.STATISTICS].sentence(s.detail)
    assert "but 5 PACRs ran without them since CLREXPHIST" in text
    assert not s.gpr.any()


@pytest.mark.parametrize("source", [6, 7])
@pytest.mark.parametrize("packer", [1, 2, 3])
def test_setdmareg_of_packers_that_blackhole_lacks(source: int, packer: int) -> None:
    """WhichPackers & 3 is an index of packers; there is one."""
    s = State()
    fields = {"set_signals_mode": 1, "payload_sig_sel": packer << 7 | source << 3}
    assert run(s, "SETDMAREG", **fields) == scalar.NO_PACKER
    assert s.detail[0] == packer


def test_setdmareg_special_form_has_unused_bits() -> None:
    s = State()
    fields = {"set_signals_mode": 1, "payload_sig_sel": 1 << 11 | 10 << 3}
    assert run(s, "SETDMAREG", **fields) == rules.RESERVED_BITS
    assert s.detail[0] == 1 << 19


def arithmetic(mnemonic: str, mode: int, a: int, b: int) -> int:
    """Literal reference (ADDDMAREG ... CMPDMAREG, ISA)."""
    table: dict[str, tuple[int, ...]] = {
        "ADDDMAREG": (a + b,),
        "SUBDMAREG": (a - b,),
        "MULDMAREG": ((a % 65536) * (b % 65536),),
        "BITWOPDMAREG": (a & b, a | b, a ^ b),
        "SHIFTDMAREG": (a * 2 ** (b % 32), a // 2 ** (b % 32)),
        "CMPDMAREG": (int(a > b), int(a < b), int(a == b)),
    }
    return table[mnemonic][mode] % 2**32


MODES = [
    *[(name, 0) for name in ("ADDDMAREG", "SUBDMAREG", "MULDMAREG")],
    *[("BITWOPDMAREG", mode) for mode in range(3)],
    *[("SHIFTDMAREG", mode) for mode in range(2)],
    *[("CMPDMAREG", mode) for mode in range(3)],
]


@pytest.mark.parametrize(("mnemonic", "mode"), MODES)
@pytest.mark.parametrize("constant", [0, 1])
def test_arithmetic_against_the_reference(mnemonic: str, mode: int, constant: int) -> None:
    rng = random.Random(f"{mnemonic} {mode} {constant}")
    s = State()
    select = {} if mnemonic[:3] in ("ADD", "SUB", "MUL") else {"op_sel": mode}
    for _ in range(150):
        t, a, b, result = rng.randrange(3), *(rng.randrange(64) for _ in range(3))
        s.gpr[t, b] = rng.choice([0, 1, 31, 32, 0xFFFF, 1 << 31, WORD, rng.getrandbits(32)])
        same = int(s.gpr[t, b])
        s.gpr[t, a] = rng.choice([0, 1, 0x10000, WORD, same, b, rng.getrandbits(32)])
        left, right = int(s.gpr[t, a]), b if constant else int(s.gpr[t, b])
        before = s.gpr.copy()
        fields = {"op_a_reg_index": a, "op_b_reg_index": b, "result_reg_index": result}
        assert run(s, mnemonic, t, op_b_is_const=constant, **select, **fields) == rules.DONE
        before[t, result] = arithmetic(mnemonic, mode, left, right)
        assert (s.gpr == before).all()


@pytest.mark.parametrize(
    ("mnemonic", "first", "rule"),
    [
        ("BITWOPDMAREG", 3, scalar.BITWOP_MODE),
        ("SHIFTDMAREG", 2, scalar.SHIFT_MODE),
        ("CMPDMAREG", 3, scalar.CMP_MODE),
    ],
)
def test_other_modes_are_undefined(mnemonic: str, first: int, rule: int) -> None:
    s = State()
    s.gpr[:] = 3
    s.ub_mode[0] = 2  # the ISA says nothing, so they stay errors
    for mode in range(first, 8):
        assert run(s, mnemonic, op_sel=mode) == rule
        assert s.detail[0] == mode
    assert (s.gpr == 3).all()


@pytest.mark.parametrize("mnemonic", ["DMANOP", "FLUSHDMA"])
def test_nothing_to_do(mnemonic: str) -> None:
    s = State()
    s.gpr[:] = 9
    before = s.buffer.copy()
    fields = {"condition_mask": 15} if mnemonic == "FLUSHDMA" else {}
    assert run(s, mnemonic, **fields) == rules.DONE
    assert (s.buffer == before).all()


def mmio(address: int) -> int:
    return (address - 0xFFB00000) // 4


def stream(n: int, offset: int) -> int:
    return mmio(0xFFB40000 + 0x1000 * n + offset)


@pytest.mark.parametrize("n", [0, 8, 24, 63])
@pytest.mark.parametrize(
    ("offset", "value", "kept"),
    [(0x10, 0xFFFFFF, 0xFFFFFF), (0x20, WORD, 0x1FFFF), (0x28, 0x2000A, 0xA)],
)
def test_stream_registers_keep_their_width(n: int, offset: int, value: int, kept: int) -> None:
    """REMOTE_SRC 24 bits, BUF_START and BUF_SIZE 17 bits (ttsim's overlay model)."""
    s = State()
    s.gpr[2, 7] = value
    store = {"reg_addr": stream(n, offset), "tdma_data_reg_index": 7}
    assert run(s, "STOREREG", 2, **store) == rules.DONE
    load = {"reg_addr": stream(n, offset), "tdma_data_reg_index": 8}
    assert run(s, "LOADREG", 2, **load) == rules.DONE
    assert s.gpr[2, 8] == kept
    assert not s.stream[np.arange(64) != n].any()


def test_space_available_follows_size_and_update() -> None:
    """A store to BUF_SIZE sets it, the update at 0x438 adds bits 31:6, modulo 2**17."""
    s = State()
    s.gpr[0, :4] = [0x1FFFF, 3 << 6, WORD & ~0x3F, 0x41]
    run(s, "STOREREG", reg_addr=stream(9, 0x28), tdma_data_reg_index=0)
    want = 0x1FFFF
    for register in (1, 2):
        want = (want + (int(s.gpr[0, register]) >> 6)) % 2**17
        update = {"reg_addr": stream(9, 0x438), "tdma_data_reg_index": register}
        assert run(s, "STOREREG", **update) == rules.DONE
        run(s, "LOADREG", reg_addr=stream(9, 0x4A4), tdma_data_reg_index=9)
        assert s.gpr[0, 9] == want
    run(s, "LOADREG", reg_addr=stream(9, 0x28), tdma_data_reg_index=9)
    assert s.gpr[0, 9] == 0x1FFFF
    update = {"reg_addr": stream(9, 0x438), "tdma_data_reg_index": 3}
    assert run(s, "STOREREG", **update) == mmio_window.UPDATE_LOW
    assert s.stream[9, 0x4A4 // 4] == want


def test_wide_remote_src_is_refused() -> None:
    s = State()
    s.gpr[0, 1] = 0x1000000
    wide = {"reg_addr": stream(3, 0x10), "tdma_data_reg_index": 1}
    assert run(s, "STOREREG", **wide) == mmio_window.WIDE_SRC
    text = sentences.RULES[mmio_window.WIDE_SRC].sentence(s.detail)
    assert text.startswith("0x1000000 stored to REMOTE_SRC of overlay stream 3")
    assert not s.stream.any()


@pytest.mark.parametrize(
    ("mnemonic", "offset"),
    [("STOREREG", 0x0), ("STOREREG", 0x8), ("STOREREG", 0xFFC), ("LOADREG", 0x438)],
)
def test_other_stream_registers_are_refused_by_name(mnemonic: str, offset: int) -> None:
    s = State()
    fields = {"reg_addr": stream(17, offset), "tdma_data_reg_index": 1}
    assert run(s, mnemonic, **fields) == mmio_window.UNKNOWN
    text = sentences.RULES[mmio_window.UNKNOWN].sentence(s.detail)
    assert f"register {offset // 4} of overlay stream 17" in text
    assert f"{0xFFB51000 + offset:#010x}" in text
    assert not s.stream.any()
    assert not s.gpr.any()


@pytest.mark.parametrize("mnemonic", ["STOREREG", "LOADREG"])
@pytest.mark.parametrize("address", [0xFFB00000, 0xFFB10FFC])
def test_core_local_memory_is_out_of_reach(mnemonic: str, address: int) -> None:
    """Below 0xFFB11000 undefined (STOREREG, LOADREG, ISA)."""
    s = State()
    assert run(s, mnemonic, reg_addr=mmio(address)) == mmio_window.LOW
    text = sentences.RULES[mmio_window.LOW].sentence(s.detail)
    assert f"{address:#010x}" in text


@pytest.mark.parametrize("mnemonic", ["STOREREG", "LOADREG"])
@pytest.mark.parametrize(
    ("address", "rule"),
    [
        (0xFFB11000, "MMIO-CORE"),  # TDMA-RISC: unmapped for the NoC and the coprocessor
        (0xFFB13000, "MMIO-NOT-MODELLED"),  # PIC
        (0xFFB80000, "MMIO-"),  # MOP configuration
        (0xFFBFFFFC, "MMIO-UNMAPPED"),
    ],
)
def test_other_blocks_answer_as_to_the_noc(mnemonic: str, address: int, rule: str) -> None:
    """What the memory map gives the NoC it gives the coprocessor (BabyRISCV, Blackhole ISA)."""
    tile = Tile()
    push(tile, 1, mnemonic, reg_addr=mmio(address))
    with pytest.raises(BhemuError, match=rule) as caught:
        tile.run()
    assert f"{address:#010x}" in str(caught.value)


def test_storereg_and_loadreg_reach_debug_registers_and_local_memory() -> None:
    """Tile control and the slow path to the local memories are in the NoC's column."""
    tile = Tile()
    s = tile.state
    s.gpr[2, 1:3] = 0x12345678, 0x00ABCDEF
    local, reset_pc = 0xFFB18000 + 0x40, 0xFFB12228  # trisc0's memory, its reset PC
    for address, register in ((local, 1), (reset_pc, 2)):
        push(tile, 2, "STOREREG", reg_addr=mmio(address), tdma_data_reg_index=register)
        push(tile, 2, "LOADREG", reg_addr=mmio(address), tdma_data_reg_index=register + 8)
    assert tile.run().reason == "idle"
    assert s.local[1, 0x40:0x44].view(np.uint32)[0] == 0x12345678
    assert tile.read32(reset_pc) == 0x00ABCDEF
    assert s.gpr[2, 9:11].tolist() == [0x12345678, 0x00ABCDEF]


def test_loadreg_of_the_wall_clock_within_the_turn_of_a_core() -> None:
    """The core reads the clock, LOADREG does, the core again: time never runs backwards."""
    tile = Tile()
    clock = 0xFFB121F0
    delay = [*li(A2, 100), addi(A2, A2, -1), bne(A2, ZERO, -4)]
    look = [*li(A0, clock), lw(A1, A0), *li(A0, 0xFFE00000), sw(A1, A0, 0)]
    word = tt("LOADREG", reg_addr=mmio(clock), tdma_data_reg_index=1)
    again = [*li(A0, clock), lw(A1, A0), *li(A0, 0xFFE00000), sw(A1, A0, 8)]
    tile.write(0x10000, code(delay, look, word, delay, again, PARK))
    tile.core["trisc0"].set_reset_pc(0x10000)
    tile.core["trisc0"].release()
    assert tile.run().reason == "idle"
    first, second, third = (int(v) for v in tile.state.gpr[0, :3])
    assert 200 < first < second < third


def test_the_tensix_words_of_a_core_can_release_another() -> None:
    """STOREREG to SOFT_RESET_0; the access that lets them run keeps its own address and value."""
    tile = Tile()
    tile.write(0x6000, code(li(A0, 0x9000), li(A1, 77), sw(A1, A0), PARK))
    tile.state.gpr[1, 4] = 0x47800 & ~0x3000  # trisc0 and trisc1 run
    word = tt("STOREREG", reg_addr=mmio(0xFFB121B0), tdma_data_reg_index=4)
    tile.write(0x10000, code(word, li(A0, 0xFFE00000), lw(A1, A0, 16), lw(A1, A0, 0x100), PARK))
    tile.core["trisc1"].set_reset_pc(0x10000)
    tile.core["trisc1"].release()
    with pytest.raises(BhemuError, match="0xffe00100"):
        tile.run()
    tile.core["trisc1"].hold()
    assert tile.run(resume=True).reason == "idle"
    assert tile.read32(0x9000) == 77
