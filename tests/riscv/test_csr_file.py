"""What the cores read from and write to their CSRs (CSRs, Blackhole ISA)."""

import pytest

from bhemu.errors import NoProgress, NotModelled
from bhemu.launch import tolerated
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    T0,
    ZERO,
    addi,
    code,
    csrrs,
    csrrw,
    li,
    sw,
    tt,
)
from bhemu.tensix.insn import assemble

START = 0x10000
CORES = ("brisc", "trisc0", "trisc1", "trisc2", "ncrisc")
QSTATUS, BSTATUS = 0xBC0, 0xBC1
# Bits of the instruction types in the status registers.
REPLAY, MOP, SCALAR, MOVER, UNPACK, PACK, CONFIG, SYNC, MISC, VECTOR, MATRIX = (
    1 << i for i in range(11)
)


def tile_with(program: bytes, core: str = "trisc0") -> Tile:
    tile = Tile()
    start = 0 if core == "brisc" else START
    tile.write(start, program)
    tile.core[core].set_reset_pc(start)
    tile.core[core].release()
    return tile


def registers(program: bytes, core: str = "trisc0") -> list[int]:
    tile = tile_with(program, core)
    assert tile.run(timeout_s=20).reason == "idle"
    return [int(x) for x in tile.core[core].regs]


def test_cfg0_is_storage_and_begins_with_its_store_merge_timer() -> None:
    regs = registers(code(li(A0, 0x40002), csrrs(A1, 0x7C0, A0), csrrs(A2, 0x7C0), PARK))
    assert (regs[A1], regs[A2]) == (16 << 13, 16 << 13 | 0x40002)


def test_release_from_reset_restores_cfg0() -> None:
    tile = tile_with(code(csrrw(A1, 0x7C0, ZERO), PARK))
    tile.run()
    assert tile.state.cfg0[1] == 0
    tile.core["trisc0"].hold()
    tile.core["trisc0"].release()
    tile.run()
    assert tile.core["trisc0"].regs[A1] == 16 << 13


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", range(0x7C1, 0x7C7))
def test_scratch_registers_keep_what_is_written(core: str, number: int) -> None:
    program = code(li(A0, 0xDEADBEEF), csrrw(ZERO, number, A0), csrrs(A1, number), PARK)
    assert registers(program, core)[A1] == 0xDEADBEEF


@pytest.mark.parametrize("core", ["brisc", "ncrisc"])
@pytest.mark.parametrize("number", range(0xBC2, 0xBCA))
def test_stream_status_is_scratch_on_brisc_and_ncrisc(core: str, number: int) -> None:
    program = code(li(A0, 0x600DF00D), csrrw(ZERO, number, A0), csrrs(A1, number), PARK)
    assert registers(program, core)[A1] == 0x600DF00D


@pytest.mark.parametrize("number", [*range(0xBC2, 0xBCA), 0xBCA, 0x003, 0x320, 0xB03, 0xC22, 0x305])
def test_what_has_no_model_is_refused_by_number(number: int) -> None:
    with pytest.raises(NotModelled, match=f"CSR {number:#x}"):
        registers(code(csrrs(A0, number), PARK))


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("number", "want"), [(0x300, 0x80006600), (0x301, 0x40201123), (0xF14, 0)])
def test_constant_registers(core: str, number: int, want: int) -> None:
    """What is written is dropped, and noted, because the RISC-V text has something else there."""
    program = code(addi(A0, ZERO, 5), csrrw(A1, number, A0), csrrs(A2, number), PARK)
    tile = tile_with(program, core)
    assert tile.run(timeout_s=20).reason == "idle"
    assert [int(tile.core[core].regs[r]) for r in (A1, A2)] == [want, want]
    assert tolerated([tile]) == {"RV-CSR-DROPPED": 1}


@pytest.mark.parametrize("number", [0x300, 0x301, 0xF14])
def test_reading_a_constant_register_notes_nothing(number: int) -> None:
    tile = tile_with(code(csrrs(A0, number), PARK))
    tile.run(timeout_s=20)
    assert tolerated([tile]) == {}


def test_a_host_is_told_that_a_register_keeps_nothing() -> None:
    tile = Tile()
    assert not tile.backend.set_csr(1, 0x301, 7) and not tile.backend.set_csr(1, BSTATUS, 7)
    assert tile.backend.set_csr(1, 0x7C3, 7) and tile.backend.csr(1, 0x7C3) == 7
    assert tolerated([tile]) == {}


@pytest.mark.parametrize(("number", "alias"), [(0xB00, 0xC00), (0xB02, 0xC02)])
def test_the_next_instruction_reads_what_was_written_to_a_counter(number: int, alias: int) -> None:
    """Privileged ISA, "Hardware Performance Monitor": writes take effect after the increment."""
    program = code(
        li(A0, 0x12345678), csrrw(ZERO, number, A0), csrrs(A1, alias), addi(T0, T0, 1),
        csrrs(A2, number), csrrw(ZERO, alias + 0x80, A0), csrrs(A3, number + 0x80), PARK,
    )  # fmt: skip
    regs = registers(program)
    assert (regs[A1], regs[A2], regs[A3]) == (0x12345678, 0x1234567A, 0x12345678)


def test_a_counter_carries_into_its_high_half() -> None:
    program = code(
        addi(A0, ZERO, -1), csrrw(ZERO, 0xB82, A0), csrrw(ZERO, 0xB02, A0), addi(T0, T0, 1),
        csrrs(A1, 0xB82), csrrs(A2, 0xB02), PARK,
    )  # fmt: skip
    regs = registers(program)
    assert (regs[A1], regs[A2]) == (0, 1)


def blocked(*words: int) -> list[int]:
    """Words behind a SEMWAIT that nobody satisfies: they stay in the queue of thread 0."""
    wait = tt("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)
    return [wait, *words]


QUEUED = [
    (tt("SETADC"), MISC),
    (tt("ADDDMAREG"), SCALAR | MISC),
    (tt("XMOV"), MOVER | MISC),
    (tt("UNPACR"), UNPACK | MISC),
    (tt("PACR"), PACK | MISC),
    (tt("WRCFG"), CONFIG),
    (tt("SEMPOST"), SYNC),
    (tt("SEMWAIT"), SYNC),
    (tt("SFPNOP"), VECTOR),
    (tt("MVMUL"), MATRIX),
    (tt("REPLAY", len=1), REPLAY),
    (tt("MOP"), MOP),
    (tt("MOP_CFG"), 0),
    (tt("NOP"), 0),
]


@pytest.mark.parametrize(("word", "types"), QUEUED)
def test_queue_status_names_the_types_that_wait(word: int, types: int) -> None:
    """The first word behind the wait stands at the gate: DMANOP; the others in the FIFO."""
    program = code(blocked(tt("DMANOP"), word), csrrs(A0, QSTATUS), csrrs(A1, BSTATUS), PARK)
    tile = tile_with(program)
    tile.core["brisc"].write32(0xFFE40000, assemble("SEMINIT", sem_sel=1, max_value=1))
    tile.step("trisc0", 5)
    types |= SCALAR | MISC
    regs = tile.core["trisc0"].regs
    assert regs[A0] == types | 1 << 11 | types << 13 | 1 << 24
    assert regs[A1] == types | types << 11


def test_an_empty_front_end_shows_nothing_and_other_cores_see_the_union() -> None:
    assert registers(code(tt("DMANOP"), csrrs(A0, QSTATUS), PARK))[A0] == 1 << 11 | 1 << 24
    tile = tile_with(code(blocked(tt("DMANOP")), PARK))
    tile.core["brisc"].write32(0xFFE40000, assemble("SEMINIT", sem_sel=1, max_value=1))
    with pytest.raises(NoProgress):
        tile.run()
    program = code(csrrs(A0, QSTATUS), csrrs(A1, BSTATUS), PARK)
    for core, at in (("brisc", 0), ("trisc1", 0x20000), ("ncrisc", 0x21000)):
        tile.write(at, program)
        tile.core[core].set_reset_pc(at)
        tile.core[core].release()
    with pytest.raises(NoProgress):
        tile.run(resume=True)
    lanes, word = 1 << 11 | 1 << 24, SCALAR | MISC
    for core in ("brisc", "ncrisc"):
        assert tile.core[core].regs[A0] == word | lanes | word << 13
        assert tile.core[core].regs[A1] == word | word << 11
    assert tile.core["trisc1"].regs[A0] == lanes | word << 13
    assert tile.core["trisc1"].regs[A1] == word << 11


def test_sfpu_cc_tells_whether_a_lane_is_enabled() -> None:
    tile = tile_with(code(csrrs(A0, QSTATUS), PARK))
    tile.state.cc[:] = 0
    assert tile.state.cc_en[0] == 1
    tile.run()
    assert tile.core["trisc0"].regs[A0] == 0


def test_frozen_status_registers_are_storage() -> None:
    """cfg0.DisTTStatusReg: hardware does not change them any more, CSR instructions do."""
    program = code(
        li(A0, 1 << 29), csrrs(ZERO, 0x7C0, A0), blocked(tt("DMANOP")), csrrs(A1, QSTATUS),
        csrrw(ZERO, BSTATUS, A0), csrrs(A2, BSTATUS), PARK,
    )  # fmt: skip
    tile = tile_with(program)
    tile.core["brisc"].write32(0xFFE40000, assemble("SEMINIT", sem_sel=1, max_value=1))
    tile.step("trisc0", 8)
    regs = tile.core["trisc0"].regs
    assert (regs[A1], regs[A2]) == (1 << 11 | 1 << 24, 1 << 29)


@pytest.mark.parametrize("number", [QSTATUS, BSTATUS])
def test_hardware_overwrites_live_status_registers_at_once(number: int) -> None:
    """CSRs: not read-only; only DisTTStatusReg keeps hardware from changing them."""
    program = code(li(A0, 0xFFFFFFFF), csrrw(A1, number, A0), csrrs(A2, number), PARK)
    tile = tile_with(program)
    assert tile.run(timeout_s=20).reason == "idle"
    idle = 1 << 11 | 1 << 24 if number == QSTATUS else 0
    assert [int(tile.core["trisc0"].regs[r]) for r in (A1, A2)] == [idle, idle]
    assert tolerated([tile]) == {}


def test_a_csr_read_stops_at_an_error_of_its_own_thread() -> None:
    """The thread runs first; its refused word is reported, the CSR is read after a resume only."""
    program = code(li(A1, 0xFFE40000), li(A0, 0xFF000000), sw(A0, A1), csrrs(A2, QSTATUS), PARK)
    with pytest.raises(Exception, match="ENC-OPCODE"):
        registers(program)
