"""Configuration unit: Config, ThreadConfig and their side effects (Blackhole ISA)."""

import random
from typing import Any

import numpy as np
import pytest
from unit_runner import numbers, run

from bhemu.machine import sentences
from bhemu.tensix import config_fields as cf
from bhemu.tensix import rules
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.rules import counted
from bhemu.tensix.state import State
from bhemu.tensix.units import cfg

WORD = 0xFFFFFFFF


def use_bank(s: State, t: int, bank: int) -> None:
    assert run(s, "SETC16", t, setc16_reg=tf.CFG_STATE_ID_StateID.word, setc16_value=bank) == 0


@pytest.mark.parametrize("bank", [0, 1])
def test_wrcfg_writes_the_bank_of_the_thread(bank: int) -> None:
    s = State()
    use_bank(s, 1, bank)
    s.gpr[1, 63] = 0xDEADBEEF
    assert run(s, "WRCFG", 1, cfg_reg=76, gpr_address=63) == rules.DONE
    assert s.cfg[bank, 76] == 0xDEADBEEF
    assert np.count_nonzero(s.cfg) == 1


def test_words_from_180_on_are_shared_by_both_banks() -> None:
    """GLOBAL_CFGREG_BASE (BackendConfiguration)."""
    s = State()
    s.gpr[0, 5] = 7
    for index in (179, 180, 223):
        run(s, "WRCFG", cfg_reg=index, gpr_address=5)
    assert s.cfg[:, 179].tolist() == [7, 0]
    assert s.cfg[:, 180].tolist() == s.cfg[:, 223].tolist() == [7, 7]


def test_wrcfg_128_writes_four_words() -> None:
    s = State()
    s.gpr[0, 16:20] = [0x11111111, 0x22222222, 0xFFFFFFFF, 0x80000000]
    assert run(s, "WRCFG", cfg_reg=68, wr128b=1, gpr_address=16) == rules.DONE
    assert s.cfg[0, 68:72].tolist() == s.gpr[0, 16:20].tolist()
    assert np.count_nonzero(s.cfg) == 4


@pytest.mark.parametrize(("index", "register"), [(70, 16), (68, 19), (223, 63), (71, 18)])
def test_misaligned_wrcfg_128(index: int, register: int) -> None:
    """Silicon drops the low two bits of both (WRCFG, ISA); the golden model stops."""
    s = State()
    s.gpr[0] = np.arange(1, 65)
    before = s.cfg.copy()
    assert run(s, "WRCFG", cfg_reg=index, wr128b=1, gpr_address=register) == cfg.CFG_ALIGN
    assert (s.cfg == before).all()
    assert numbers(s, cfg.CFG_ALIGN) == [index, register]
    s.ub_mode[0] = 2
    assert run(s, "WRCFG", cfg_reg=index, wr128b=1, gpr_address=register) == rules.DONE
    low, first = index // 4 * 4, register // 4 * 4
    assert s.cfg[0, low : low + 4].tolist() == [first + 1 + i for i in range(4)]
    assert counted(s).get(cfg.CFG_ALIGN, 0) == 1


@pytest.mark.parametrize("bank", [0, 1])
def test_rdcfg_reads_the_bank_of_the_thread(bank: int) -> None:
    s = State()
    use_bank(s, 2, bank)
    s.cfg[:, 3] = [0x12345678, 0xFFFFFFFF]
    assert run(s, "RDCFG", 2, cfg_reg=3, gpr_address=9) == rules.DONE
    assert s.gpr[2, 9] == s.cfg[bank, 3]
    assert np.count_nonzero(s.gpr) == 1


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize(
    ("mnemonic", "field", "index"),
    [
        ("WRCFG", "cfg_reg", 224),
        ("WRCFG", "cfg_reg", 2047),
        ("RDCFG", "cfg_reg", 224),
        ("RDCFG", "cfg_reg", 1024),
        ("RMWCIB0", "cfg_reg_addr", 224),
        ("RMWCIB3", "cfg_reg_addr", 255),
        ("CFGSHIFTMASK", "cfg_reg", 224),
    ],
)
def test_index_beyond_the_bank_is_undefined(
    mode: int, mnemonic: str, field: str, index: int
) -> None:
    s = State()
    s.ub_mode[0] = mode
    assert run(s, mnemonic, **{field: index}) == cfg.CFG_INDEX
    assert s.detail[0] == index
    assert f"{index}" in sentences.RULES[cfg.CFG_INDEX].sentence(s.detail)


def test_setc16_writes_the_own_thread_only() -> None:
    s = State()
    s.thread_cfg[:, 67] = 0xAAAA
    assert run(s, "SETC16", 1, setc16_reg=67, setc16_value=0xFFFF) == rules.DONE
    assert s.thread_cfg[:, 67].tolist() == [0xAAAA, 0xFFFF, 0xAAAA]


def test_setc16_beyond_the_last_value_is_undefined() -> None:
    s = State()
    for index in (68, 255):
        assert run(s, "SETC16", setc16_reg=index, setc16_value=1) == cfg.THREAD_INDEX
        assert s.detail[0] == index
    assert not s.thread_cfg.any()


@pytest.mark.parametrize(
    ("field", "left"),
    [
        (tf.UNPACK_MISC_CFG_CfgContextCntReset_0, [0, 5]),
        (tf.UNPACK_MISC_CFG_CfgContextCntReset_1, [5, 0]),
    ],
)
def test_setc16_resets_the_context_counter_of_the_thread(field: Any, left: list[int]) -> None:
    s = State()
    s.unpack_context[:] = 5
    run(s, "SETC16", 2, setc16_reg=field.word, setc16_value=1 << field.shift)
    assert s.unpack_context.tolist() == [[5, 5, left[0]], [5, 5, left[1]]]


@pytest.mark.parametrize("byte", range(4))
def test_rmwcib_changes_masked_bits_of_one_byte(byte: int) -> None:
    rng = random.Random(byte)
    s = State()
    use_bank(s, 1, 1)
    for _ in range(100):
        index, old = rng.randrange(5, 180), rng.getrandbits(32)
        data, mask = rng.getrandbits(8), rng.choice([0, 255, rng.getrandbits(8)])
        s.cfg[1, index] = old
        fields = {"cfg_reg_addr": index, "data": data, "mask": mask}
        assert run(s, f"RMWCIB{byte}", 1, **fields) == rules.DONE
        old_bytes = bytearray(old.to_bytes(4, "little"))
        old_bytes[byte] = (data & mask) | (old_bytes[byte] & (255 - mask))
        assert s.cfg[1, index] == int.from_bytes(old_bytes, "little")
    assert not s.cfg[0].any()


def test_state_reset_clears_the_bank_but_not_by_rmwcib() -> None:
    """Any write of STATE_RESET_EN except RMWCIB clears words 0-179 (BackendConfiguration)."""
    s = State()
    s.cfg[:] = 1
    index = cf.STATE_RESET_EN.word
    run(s, "RMWCIB0", cfg_reg_addr=index, data=2, mask=2)
    assert s.cfg[0, index] == 3
    assert s.cfg[0, 0] == 1
    use_bank(s, 0, 1)
    run(s, "WRCFG", cfg_reg=index, gpr_address=0)
    assert (s.cfg[0] != 0).all()
    assert not s.cfg[1, :180].any()
    assert (s.cfg[1, 180:] == 1).all()


def test_prng_seed_reseeds_the_lanes() -> None:
    s = State()
    s.gpr[0, 1] = 0x12345678
    run(s, "WRCFG", cfg_reg=cf.PRNG_SEED_Seed_Val.word, gpr_address=1)
    state = 0x12345678

    def step(x: int) -> int:
        return x >> 1 | (1 - (bin(x & 0x80200003).count("1") & 1)) << 31

    for _ in range(32):
        state = step(state)
    lanes = []
    for _ in range(32):
        state = step(step(state))
        lanes.append(state)
    assert s.prng.tolist() == lanes[::-1]


def test_instruction_cache_invalidate_names_cores() -> None:
    """RISCV_IC_INVALIDATE: bit 0 B, 1-3 T0-T2, 4 NC (BackendConfiguration)."""
    s = State()
    s.gpr[0, 1] = 0b10100
    run(s, "WRCFG", cfg_reg=185, gpr_address=1)
    assert s.flush.tolist() == [0, 0, 1, 0, 1]


def shift_mask(old: int, scratch: int, width: int, rotate: int, operation: int, keep: int) -> int:
    """Literal reference on bit lists, lowest bit first (CFGSHIFTMASK, Blackhole ISA)."""
    mask = [int(i <= width) for i in range(32)]
    value = [(scratch >> i & 1) & mask[i] for i in range(32)]
    mask = mask[rotate:] + mask[:rotate]
    value = value[rotate:] + value[:rotate]
    bits = [old >> i & 1 for i in range(32)]
    if not keep:
        bits = [b if not m else 0 for b, m in zip(bits, mask, strict=True)]
    a, b = (sum(x << i for i, x in enumerate(v)) for v in (bits, value))
    flipped = sum((1 - x) << i for i, x in enumerate(value))
    results = (a | b, a & b, a ^ b, a + b, a | flipped, a & flipped, a ^ flipped, a - b)
    return results[operation] % 2**32


@pytest.mark.parametrize("operation", range(8))
def test_cfgshiftmask_against_the_reference(operation: int) -> None:
    rng = random.Random(operation)
    s = State()
    for n in range(200):
        t, select, bank = rng.randrange(3), rng.randrange(4), rng.randrange(2)
        use_bank(s, t, bank)
        scratch = [rng.choice([0, WORD, 1 << 31, rng.getrandbits(32)]) for _ in range(3)]
        s.cfg[:, 209:212] = scratch
        old = rng.choice([0, WORD, rng.getrandbits(32)])
        width = rng.choice([0, 31, rng.randrange(32)])
        rotate, keep = rng.choice([0, rng.randrange(32)]), n & 1
        s.cfg[:, 76] = 0x55555555
        s.cfg[bank, 76] = old
        done = run(
            s,
            "CFGSHIFTMASK",
            t,
            cfg_reg=76,
            scratch_sel=select,
            right_cshift_amt=rotate,
            mask_width=width,
            operation=operation,
            disable_mask_on_old_val=keep,
        )
        assert done == rules.DONE
        operand = scratch[t if select == 3 else select]
        want = shift_mask(old, operand, width, rotate, operation, keep)
        assert s.cfg[bank, 76] == want
        assert s.cfg[1 - bank, 76] == 0x55555555


def test_cfgshiftmask_as_llk_uses_it() -> None:
    """Adds scratch register 2 to a base address of thread 2 (llk_unpack_tilize)."""
    s = State()
    s.cfg[:, 211] = 0x100
    s.cfg[0, 76] = 0xFFFFFFF0
    run(
        s,
        "CFGSHIFTMASK",
        2,
        cfg_reg=76,
        scratch_sel=3,
        mask_width=31,
        operation=3,
        disable_mask_on_old_val=1,
    )
    assert s.cfg[0, 76] == 0xF0
