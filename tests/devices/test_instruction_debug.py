"""Debug pushes (PushTensixInstruction, "Debug registers") and PCBuf overrides (PCBufs, ISA)."""

import pytest

from bhemu.errors import InputError, NoProgress, Undefined
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, addi, code, li, lw, tt
from bhemu.tensix.insn import assemble

CTRL0, CTRL1, STATUS = 0xFFB120A0, 0xFFB120A4, 0xFFB120A8
OVERRIDE = 0xFFB12090
PUSH, PC_BUF = 0xFFE40000, 0xFFE80000
EMPTY, ROOM = 0x70, 0x07


@pytest.mark.parametrize("t", [0, 1, 2])
def test_a_rising_bit_pushes_once(t: int) -> None:
    tile = Tile()
    assert tile.read32(STATUS) == EMPTY | ROOM
    tile.write32(CTRL0, 1 << t)
    for value in (5, 6):
        tile.write32(CTRL1, assemble("SETDMAREG", payload_sig_sel=value, reg_index_16b=8 * value))
        tile.write32(CTRL0, 1 << t | 16 << t)
        tile.write32(CTRL0, 1 << t | 16 << t)
        assert tile.read32(STATUS) == (EMPTY & ~(16 << t)) | ROOM
        tile.write32(CTRL0, 1 << t)
    assert len(tile.tensix.fifo[t]) == 2
    tile.write32(CTRL0, 0)
    assert tile.run().reason == "idle"
    assert [int(tile.tensix.gpr[t][4 * value]) for value in (5, 6)] == [5, 6]


def test_without_control_nothing_is_pushed() -> None:
    tile = Tile()
    tile.write32(CTRL1, assemble("NOP"))
    tile.write32(CTRL0, 0x70)
    assert tile.read32(STATUS) == EMPTY | ROOM
    assert (tile.read32(CTRL0), tile.read32(CTRL1)) == (0x70, assemble("NOP"))


def test_a_full_fifo_is_refused_and_status_is_read_only() -> None:
    tile = Tile()
    tile.write32(CTRL0, 2)
    for _ in range(32):
        tile.write32(CTRL0, 0x22)
        tile.write32(CTRL0, 2)
    assert tile.read32(STATUS) == (EMPTY & ~0x20) | (ROOM & ~2)
    with pytest.raises(InputError, match="full"):
        tile.write32(CTRL0, 0x22)
    with pytest.raises(InputError, match="read-only"):
        tile.write32(STATUS, 0)


def started(program: bytes, core: str = "trisc0") -> Tile:
    tile = Tile()
    at = 0 if core == "brisc" else 0x10000
    tile.write(at, program)
    tile.core[core].set_reset_pc(at)
    tile.core[core].release()
    return tile


def test_pushes_of_cores_are_refused_while_the_debug_bus_has_control() -> None:
    tile = started(code(tt("NOP"), PARK))
    tile.write32(CTRL0, 1)
    with pytest.raises(Undefined, match="PUSH-DEBUG"):
        tile.run()
    with pytest.raises(InputError, match="debug bus"):
        tile.core["brisc"].write32(PUSH, assemble("NOP"))
    tile.core["brisc"].write32(PUSH + 0x10000, assemble("NOP"))


@pytest.mark.parametrize("core", ["trisc0", "trisc1", "trisc2"])
def test_an_override_value_is_read_from_an_empty_pcbuf_only(core: str) -> None:
    program = code(li(A1, PC_BUF), lw(A0, A1), lw(A1, A1), PARK)
    tile, t = started(program, core), int(core[-1])
    with pytest.raises(NoProgress):
        tile.run()
    tile = started(program, core)
    tile.core["brisc"].write32(PC_BUF + (t << 16), 77)
    tile.write32(OVERRIDE, (1 | 0xA5 << 2) << (10 * t))
    assert tile.run().reason == "idle"
    assert [int(tile.core[core].regs[r]) for r in (A0, A1)] == [77, 0xA5]


def test_busy_override_ends_waits_of_brisc_and_ttsync() -> None:
    barrier = code(li(A1, PC_BUF + 0x20000), lw(A0, A1), addi(A0, A0, 9), PARK)
    tile = started(barrier, "brisc")
    tile.write32(OVERRIDE, 1 << 20)
    with pytest.raises(NoProgress):
        tile.run()
    tile.write32(OVERRIDE, 3 << 20)
    assert tile.run(resume=True).reason == "idle"
    assert tile.core["brisc"].regs[A0] == 9
    wait = tt("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)
    for offset in (4, 8):
        tile = started(code(wait, tt("NOP"), tt("MOP"), li(A1, PC_BUF), lw(A0, A1, offset), PARK))
        tile.core["brisc"].write32(PUSH, assemble("SEMINIT", sem_sel=1, max_value=1))
        tile.write32(OVERRIDE, 3)
        tile.step("trisc0", 6)
        assert tile.core["trisc0"].retired == 6
