"""Scalar unit: GPR arithmetic, STOREREG and LOADREG on overlay streams (ScalarUnit pages, ISA)."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import njit

from bhemu.tensix import status, streams
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.jit import JIT
from bhemu.tensix.state import DTYPE, State
from bhemu.tensix.units import scalar

WORD = 0xFFFFFFFF


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return njit(cache=True)(function)


def view(s: State) -> Any:
    return s.buffer.view(DTYPE)[0] if JIT else s


def run(s: State, mnemonic: str, t: int = 0, **fields: int) -> int:
    """Status of one instruction, its fields taken through its encoding."""
    cls = next(c for c in REGISTRY.values() if c.name == mnemonic)
    values = cls.operands(cls.assemble(**fields))
    assert cls.execute is not None
    return int(compiled(cls.execute)(view(s), t, *values.values()))


@pytest.mark.parametrize("register", [0, 4, 63])
def test_setdmareg_sets_one_half(register: int) -> None:
    """16-bit immediate: payload_sig_sel and, above it, payload_sig_sel_size (SETDMAREG, ISA)."""
    s = State()
    s.gpr[1] = 0xAAAA5555
    low = {"reg_index_16b": 2 * register, "payload_sig_sel": 0x3234, "payload_sig_sel_size": 2}
    assert run(s, "SETDMAREG", 1, **low) == status.DONE
    assert s.gpr[1, register] == 0xAAAAB234
    high = {"reg_index_16b": 2 * register + 1, "payload_sig_sel": 1, "payload_sig_sel_size": 3}
    assert run(s, "SETDMAREG", 1, **high) == status.DONE
    assert s.gpr[1, register] == 0xC001B234
    assert np.count_nonzero(s.gpr != 0xAAAA5555) == 64 + 64 + 1  # two threads are 0, one GPR set


def test_setdmareg_signal_mode_is_refused_by_name() -> None:
    s = State()
    assert run(s, "SETDMAREG", set_signals_mode=1, payload_sig_sel=5) == scalar.SIGNALS
    assert status.RULES[scalar.SIGNALS].category == status.UNIMPLEMENTED
    assert not s.gpr.any()


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
        assert run(s, mnemonic, t, op_b_is_const=constant, **select, **fields) == status.DONE
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
    assert run(s, mnemonic, **fields) == status.DONE
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
    assert run(s, "STOREREG", 2, **store) == status.DONE
    load = {"reg_addr": stream(n, offset), "tdma_data_reg_index": 8}
    assert run(s, "LOADREG", 2, **load) == status.DONE
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
        assert run(s, "STOREREG", **update) == status.DONE
        run(s, "LOADREG", reg_addr=stream(9, 0x4A4), tdma_data_reg_index=9)
        assert s.gpr[0, 9] == want
    run(s, "LOADREG", reg_addr=stream(9, 0x28), tdma_data_reg_index=9)
    assert s.gpr[0, 9] == 0x1FFFF
    update = {"reg_addr": stream(9, 0x438), "tdma_data_reg_index": 3}
    assert run(s, "STOREREG", **update) == streams.UPDATE_LOW
    assert s.stream[9, 0x4A4 // 4] == want


def test_wide_remote_src_is_refused() -> None:
    s = State()
    s.gpr[0, 1] = 0x1000000
    wide = {"reg_addr": stream(3, 0x10), "tdma_data_reg_index": 1}
    assert run(s, "STOREREG", **wide) == streams.WIDE_SRC
    text = status.RULES[streams.WIDE_SRC].text.format(*(int(v) for v in s.detail))
    assert text.startswith("0x1000000 stored to REMOTE_SRC of overlay stream 3")
    assert not s.stream.any()


@pytest.mark.parametrize(
    ("mnemonic", "offset"),
    [("STOREREG", 0x0), ("STOREREG", 0x4A4), ("STOREREG", 0xFFC), ("LOADREG", 0x438)],
)
def test_other_stream_registers_are_refused_by_name(mnemonic: str, offset: int) -> None:
    s = State()
    fields = {"reg_addr": stream(17, offset), "tdma_data_reg_index": 1}
    assert run(s, mnemonic, **fields) == streams.UNKNOWN
    text = status.RULES[streams.UNKNOWN].text.format(*(int(v) for v in s.detail))
    assert f"register {offset // 4} of overlay stream 17" in text
    assert f"{0xFFB51000 + offset:#010x}" in text
    assert not s.stream.any()
    assert not s.gpr.any()


@pytest.mark.parametrize("mnemonic", ["STOREREG", "LOADREG"])
@pytest.mark.parametrize(
    ("address", "rule"),
    [
        (0xFFB00000, scalar.MMIO_LOW),
        (0xFFB10FFC, scalar.MMIO_LOW),
        (0xFFB11000, scalar.MMIO_TARGET),
        (0xFFB3FFFC, scalar.MMIO_TARGET),
        (0xFFB80000, scalar.MMIO_TARGET),
        (0xFFBFFFFC, scalar.MMIO_TARGET),
    ],
)
def test_addresses_outside_the_streams(mnemonic: str, address: int, rule: int) -> None:
    """Below 0xFFB11000 undefined (STOREREG, ISA); the rest is not modelled and named."""
    s = State()
    assert run(s, mnemonic, reg_addr=mmio(address)) == rule
    text = status.RULES[rule].text.format(*(int(v) for v in s.detail))
    assert f"{address:#010x}" in text


def test_reg2flop_is_declared_only() -> None:
    assert scalar.REG2FLOP.execute is None
