"""Backend configuration window: layout, dual write and side effects (BackendConfiguration, ISA)."""

import random

import pytest

from bhemu.errors import InputError
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PUSH
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields
from bhemu.tensix.insn import assemble

CFG = 0xFFEF0000
BANK, DUAL, THREAD = 0x380, 0x700, 0xA80
STATE_RESET, IC_INVALIDATE, PRNG_SEED = 4, 185, 186


@pytest.mark.parametrize("core", ["brisc", "trisc0", "trisc1", "trisc2"])
def test_banks_and_dual_write(core: str) -> None:
    """Config[0] at 0, Config[1] at 0x380, ConfigDualWrite at 0x700; 180 and above are shared."""
    rng = random.Random(core)
    tile = Tile()
    port = tile.core[core]
    want = [[0] * 224, [0] * 224]
    for _ in range(150):
        word = rng.choice([i for i in range(224) if i not in (STATE_RESET, IC_INVALIDATE)])
        where, value = rng.choice([0, 1, 2]), rng.getrandbits(32)
        port.write32(CFG + (0, BANK, DUAL)[where] + 4 * word, value)
        for bank in (0, 1) if where == 2 or word >= 180 else (where,):
            want[bank][word] = value
    assert tile.tensix.cfg.tolist() == want
    for word in range(224):
        assert port.read32(CFG + 4 * word) == want[0][word]
        assert port.read32(CFG + BANK + 4 * word) == want[1][word]
        assert port.read32(CFG + DUAL + 4 * word) == want[0][word]


@pytest.mark.parametrize("t", range(3))
def test_thread_config_has_68_words_per_thread_and_is_read_only(t: int) -> None:
    """Entry j of thread t at 0xA80 + 0x110 * t + 4 * j: 16 bits of value, 16 of padding."""
    tile = Tile()
    for j in (1, 40, 67):
        word = assemble("SETC16", setc16_reg=j, setc16_value=0xFFFF - j)
        tile.core["brisc"].write32(PUSH + 0x10000 * t, word)
    tile.run()
    for j in (0, 1, 40, 67):
        at = CFG + THREAD + 0x110 * t + 4 * j
        value = 0xFFFF - j if j else 0
        assert tile.core["trisc1"].read32(at) == value
        with pytest.raises(InputError, match="read-only"):
            tile.core["trisc1"].write32(at, 5)
        assert tile.core["brisc"].read32(at) == value


def test_beyond_the_last_thread_word_and_other_clients() -> None:
    tile = Tile()
    last = CFG + THREAD + 3 * 0x110
    with pytest.raises(InputError):
        tile.core["brisc"].read32(last)
    with pytest.raises(InputError, match="no access"):
        tile.core["ncrisc"].read32(CFG)
    with pytest.raises(InputError, match="no access"):
        tile.read32(CFG)


@pytest.mark.parametrize(("base", "cleared"), [(0, [0]), (BANK, [1]), (DUAL, [0, 1])])
def test_state_reset(base: int, cleared: list[int]) -> None:
    """Any store to STATE_RESET_EN clears words 0-179 of its bank, whatever the value."""
    tile = Tile()
    tile.state.cfg[:] = 3
    tile.core["brisc"].write32(CFG + base + 4 * STATE_RESET, 0)
    for bank in (0, 1):
        assert (tile.state.cfg[bank, :180] == (0 if bank in cleared else 3)).all()
    assert (tile.state.cfg[:, 180:] == 3).all()


@pytest.mark.parametrize("base", [0, BANK, DUAL])
def test_prng_seed_and_instruction_cache(base: int) -> None:
    """Both words are shared, so every address has the effect."""
    tile, other = Tile(), Tile()
    tile.core["trisc0"].write32(CFG + base + 4 * PRNG_SEED, 0x1234)
    other.core["brisc"].write32(CFG + 4 * PRNG_SEED, 0x1234)
    assert tile.state.prng.any()
    assert (tile.state.prng == other.state.prng).all()
    tile.state.flush[:] = 0
    tile.core["trisc0"].write32(CFG + base + 4 * IC_INVALIDATE, 0b01001)
    assert tile.state.flush.tolist() == [1, 0, 0, 1, 0]


def test_clock_gating_of_the_source_pipelines_is_storage() -> None:
    """CG_SRC_PIPELINE: the seed's CG_CTRL_* of ThreadConfig do not exist on Blackhole."""
    assert not [name for name in vars(thread_fields) if name.startswith("CG_")]
    tile = Tile()
    before = tile.state.buffer.copy()
    at = tile.state.cfg[:, cf.CG_SRC_PIPELINE_GateSrcAPipeEn.word]
    tile.core["brisc"].write32(CFG + 4 * cf.CG_SRC_PIPELINE_GateSrcAPipeEn.word, 3)
    assert at.tolist() == [3, 3]
    at[:] = 0
    for name in ("loaded", "detail", "core_address", "cfg_by"):  # bookkeeping of the access
        getattr(tile.state, name)[:] = 0
    assert (tile.state.buffer == before).all()


@pytest.mark.parametrize("size", [1, 2])
def test_narrow_loads_and_stores(size: int) -> None:
    """lw, lh, lhu, lb, lbu; sw only."""
    tile = Tile()
    tile.state.cfg[0, 70] = 0x89ABCDEF
    for at in range(0, 4, size):
        value = 0x89ABCDEF >> 8 * at & (1 << 8 * size) - 1
        assert tile.backend.read(CFG + 280 + at, size, 1) == (0, value)
    assert tile.backend.write(CFG + 280, 0, size, 1) < 0
    assert tile.state.cfg[0, 70] == 0x89ABCDEF
