"""SOFT_RESET_0, DISABLE_RESET: what entering and leaving reset drops (SoftReset, Blackhole ISA)."""

import pytest

from bhemu.errors import InputError
from bhemu.machine.sentences import RULES
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.tensix.rules import counted

SOFT_RESET, DISABLE_RESET = 0xFFB121B0, 0xFFB12224
SLOW = {"brisc": 0xFFB14000, "ncrisc": 0xFFB16000}
SLOW |= {f"trisc{i}": 0xFFB18000 + 0x2000 * i for i in range(3)}
KEEP_BIT = {"trisc0": 0, "trisc1": 2, "trisc2": 4, "brisc": 6, "ncrisc": 8}
HELD_BIT = {"brisc": 11, "trisc0": 12, "trisc1": 13, "trisc2": 14, "ncrisc": 18}
MAILBOX, PCBUF = 0xFFEC0000, 0xFFE80000


def running() -> Tile:
    tile = Tile()
    tile.write32(SOFT_RESET, 0)
    return tile


def held(tile: Tile, name: str) -> None:
    tile.write32(SOFT_RESET, 1 << HELD_BIT[name])


@pytest.mark.parametrize("name", CORE_NAMES)
@pytest.mark.parametrize("keep", [False, True])
def test_local_memory_is_cleared_unless_disabled_for_that_core(name: str, keep: bool) -> None:
    tile = running()
    for core in CORE_NAMES:
        tile.write32(SLOW[core] + 0x40, 0x1234)
    tile.write32(DISABLE_RESET, 1 << KEEP_BIT[name] if keep else 0x3FF ^ 1 << KEEP_BIT[name])
    held(tile, name)
    assert tile.read32(SLOW[name] + 0x40) == (0x1234 if keep else 0)
    others = [tile.read32(SLOW[core] + 0x40) for core in CORE_NAMES if core != name]
    assert others == [0x1234] * 4
    assert tile.read32(DISABLE_RESET) & 1 << KEEP_BIT[name] == (keep << KEEP_BIT[name])


def test_a_pcbuf_is_emptied_when_its_trisc_leaves_reset() -> None:
    """What brisc pushed before, or while the core was held, is lost."""
    tile = running()
    tile.core["brisc"].write32(PCBUF + 0x10000, 1)
    held(tile, "trisc1")
    tile.core["brisc"].write32(PCBUF + 0x10000, 2)
    tile.core["brisc"].write32(PCBUF, 3)
    assert list(tile.state.pcbuf_write - tile.state.pcbuf_read) == [1, 2, 0]
    tile.write32(SOFT_RESET, 0)
    assert list(tile.state.pcbuf_write - tile.state.pcbuf_read) == [1, 0, 0]


def test_mailboxes_are_emptied_when_their_writer_enters_reset() -> None:
    tile = running()
    tile.core["trisc0"].write32(MAILBOX + 0x2000, 7)  # to trisc1
    tile.core["trisc1"].write32(MAILBOX + 0x1000, 8)  # to trisc0
    held(tile, "trisc0")
    assert tile.core["trisc1"].read32(MAILBOX + 0x1004) == 0
    assert tile.core["trisc0"].read32(MAILBOX + 0x2004) == 1


@pytest.mark.parametrize("bit", [0, 2, 6, 8, 9, 10, 15, 16, 17, 19, 23, 30])
def test_units_of_the_coprocessor_have_no_reset_here(bit: int) -> None:
    tile = running()
    with pytest.raises(InputError, match="asks for what is not modelled"):
        tile.write32(SOFT_RESET, 1 << bit)
    assert tile.read32(SOFT_RESET) == 0


@pytest.mark.parametrize("bit", [0, 2, 5, 6, 17])
def test_packers_are_reset_as_tt_llks_dumps_do(bit: int) -> None:
    """Reference llk: bits 2 to 5 are taken and noted, the coprocessor stays as it is."""
    tile = Tile(reference="llk")
    tile.write32(SOFT_RESET, 0)
    if not 2 <= bit <= 5:
        with pytest.raises(InputError, match="asks for what is not modelled"):
            tile.write32(SOFT_RESET, 1 << bit)
        return
    tile.write32(SOFT_RESET, 1 << bit)
    assert tile.read32(SOFT_RESET) == 1 << bit
    tile.write32(SOFT_RESET, 0)
    assert {RULES[n].rule: k for n, k in counted(tile.state).items()} == {"DEBUG-PACKER-RESET": 1}
