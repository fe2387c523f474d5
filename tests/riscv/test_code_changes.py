"""Code that changes after it has run: who must do what before the new words execute.

A core's own stores are seen at once; another core's after a write to RISCV_IC_INVALIDATE; what the
host or the coprocessor writes, before the next instruction.
"""

import numpy as np
import pytest

from bhemu.jit.record import PAGE
from bhemu.machine.tile import Tile
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    RA,
    T0,
    T1,
    ZERO,
    addi,
    bne,
    code,
    jal,
    jalr,
    li,
    lw,
    sw,
    tt,
)
from bhemu.tensix.state import RUNNING

START, FUNCTION, FLAG, OTHER = 0x10000, 0x11000, 0x8000, 0x20000
INVALIDATE = 0xFFEF02E4
SYNC = 0xFFE80004
OLD, NEW = addi(A0, ZERO, 1), addi(A0, ZERO, 2)
RETURN = jalr(ZERO, RA)
CALL = [*li(T0, FUNCTION), jalr(RA, T0)]


def released(tile: Tile, core: str, start: int, program: bytes) -> None:
    tile.write(start, program)
    tile.core[core].set_reset_pc(start)
    tile.core[core].release()


def calls(change: list[int], quantum: int = 1000, after: list[int] | None = None) -> Tile:
    """Call the function (A2 = result), change it, call it again (A3 = result)."""
    tile = Tile(quantum=quantum)
    tile.write(FUNCTION, code(OLD, RETURN))
    keep = addi(A2, A0, 0)
    program = code(CALL, keep, change, after or [], CALL, addi(A3, A0, 0), PARK)
    released(tile, "trisc0", START, program)
    return tile


def results(tile: Tile) -> tuple[int, int]:
    assert tile.run(timeout_s=20).reason == "idle"
    regs = tile.core["trisc0"].regs
    return int(regs[A2]), int(regs[A3])


@pytest.fixture(autouse=True, params=[0, 3, 4096])
def translate_after(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many instructions of a page run in the compiled loop before it is translated."""
    monkeypatch.setenv("BHEMU_TRANSLATE_AFTER", str(request.param))
    return int(request.param)


translated = pytest.mark.parametrize("translate_after", [0], indirect=True)
quanta = pytest.mark.parametrize("quantum", [1, 7, 1000])


@quanta
def test_a_cores_own_store(quantum: int) -> None:
    change = [*li(A1, FUNCTION), *li(T1, NEW), sw(T1, A1)]
    assert results(calls(change, quantum)) == (1, 2)


@quanta
def test_another_cores_store_after_an_invalidate_of_its_own(quantum: int) -> None:
    """trisc0 waits for the flag, then invalidates its own cache and calls within the same turn."""
    wait = [*li(A1, FLAG), lw(T1, A1), bne(T1, ZERO, 8), jal(ZERO, -8)]
    invalidate = [*li(A1, INVALIDATE), addi(T1, ZERO, 2), sw(T1, A1)]
    tile = calls(wait, quantum, invalidate)
    change = [*li(A1, FUNCTION), *li(T1, NEW), sw(T1, A1), *li(A1, FLAG), sw(T1, A1), PARK]
    released(tile, "trisc1", OTHER, code([addi(A0, A0, 1)] * 200, change))
    assert results(tile) == (1, 2)


@pytest.mark.parametrize("through", ["write", "l1", "write32"])
def test_the_host(through: str) -> None:
    tile = calls([*li(A1, FLAG), lw(T1, A1), bne(T1, ZERO, 8), jal(ZERO, -8)])
    tile.run(limit=2000)
    assert tile.core["trisc0"].regs[A2] == 1
    if through == "write":
        tile.write(FUNCTION, code(NEW))
    elif through == "l1":
        tile.l1[FUNCTION : FUNCTION + 4] = np.frombuffer(code(NEW), np.uint8)
    else:
        tile.write32(FUNCTION, NEW)
    tile.write32(FLAG, 1)
    assert results(tile) == (1, 2)


def set_gpr(register: int, value: int) -> list[int]:
    half = [value & 0xFFFF, value >> 16]
    return [
        tt("SETDMAREG", payload_sig_sel=h, reg_index_16b=2 * register + i)
        for i, h in enumerate(half)
    ]


@quanta
def test_the_scalar_unit_in_the_middle_of_a_turn(quantum: int) -> None:
    """STOREIND of a 32-bit GPR to the function, then a drain load, then the call."""
    words = [*set_gpr(4, FUNCTION >> 4), *set_gpr(5, NEW), *set_gpr(6, 0)]
    store = tt(
        "STOREIND", addr_reg_index=4, data_reg_index=5, offset_half_reg=12, reg_size_sel=1,
        mem_hier_sel=1,
    )  # fmt: skip
    drain = [*li(A1, SYNC), sw(ZERO, A1), lw(T1, A1)]
    assert results(calls([*words, store, *drain], quantum)) == (1, 2)


@quanta
def test_an_atomic_of_the_coprocessor(quantum: int) -> None:
    """ATINCGET adds NEW - OLD to the function's first word."""
    words = [*set_gpr(4, FUNCTION >> 4), *set_gpr(5, NEW - OLD)]
    add = tt("ATINCGET", addr_reg_index=4, data_reg_index=5, wrap_val=31)
    drain = [*li(A1, SYNC), sw(ZERO, A1), lw(T1, A1)]
    assert results(calls([*words, add, *drain], quantum)) == (1, 2)


@translated
def test_executed_pages_are_known_and_data_pages_are_not() -> None:
    tile = calls([])
    assert results(tile) == (1, 1)
    assert list(np.flatnonzero(tile.state.code_page)) == [START // PAGE, FUNCTION // PAGE]


@translated
@quanta
def test_pages_behind_the_first_of_a_run_of_pushed_words(quantum: int) -> None:
    """2500 .ttinsn words reach over two page ends: every page is known as code, no word is lost."""
    tile = Tile(quantum=quantum)
    released(tile, "trisc0", START, code([tt("NOP")] * 2500, PARK))
    assert tile.run(timeout_s=60).reason == "idle"
    assert list(tile.state.executed) == [2500, 0, 0]
    first = START // PAGE
    assert list(tile.state.code_page[first - 1 : first + 4]) == [0, 2, 2, 2, 0]
    assert tile.core["trisc0"].retired == 2500


@translated
def test_a_write_beside_code_in_its_page_keeps_the_translation_and_one_over_it_does_not(
    monkeypatch,
) -> None:
    """The host writes data behind the code of a page, then the code itself."""
    tile = calls([])
    assert results(tile) == (1, 1)
    engine, dropped = tile.backend.engine, []
    changed = engine.changed
    monkeypatch.setattr(engine, "changed", lambda *a: (dropped.append(a), changed(*a)))
    flush = engine.flush
    monkeypatch.setattr(engine, "flush", lambda core: (dropped.append(core), flush(core)))
    tile.write(FUNCTION + PAGE, bytes(256))
    assert dropped == []
    tile.write(FUNCTION + 0x100, bytes(64))
    assert dropped == [(1, FUNCTION + 0x100, 64)]
    assert again(tile) == (1, 1)
    tile.write(FUNCTION, code(NEW))
    assert again(tile) == (2, 2)


def again(tile: Tile) -> tuple[int, int]:
    """The results of the program, started from its beginning with what is translated."""
    tile.state.pc[1], tile.state.core_state[1] = START, RUNNING
    return results(tile)


@pytest.mark.parametrize("size", [4, PAGE, 3 * PAGE])
def test_code_of_several_cores_changes_for_all_that_have_executed_it(size: int) -> None:
    """The host replaces a function that three cores have called, alone or with what is around."""
    tile = Tile()
    tile.write(FUNCTION, code(OLD, RETURN))
    cores = ("trisc0", "trisc2", "ncrisc")
    for i, core in enumerate(cores):
        again = code(CALL, addi(A2, A0, 0), CALL, jal(ZERO, -4 * (len(CALL) + 1)))
        released(tile, core, START + 0x4000 * i, again)
    tile.run(limit=5000)
    assert [int(tile.core[core].regs[A2]) for core in cores] == [1, 1, 1]
    page = bytearray(tile.read(FUNCTION, size))
    page[:4] = code(NEW)
    tile.write(FUNCTION, page)
    tile.run(limit=5000)
    assert [int(tile.core[core].regs[A2]) for core in cores] == [2, 2, 2]


@pytest.mark.parametrize("at", [FUNCTION, FUNCTION + 4, FUNCTION + 0x100])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_pushed_word_that_the_host_replaces(at: int, before: int) -> None:
    """The engine traps at the word, which is no part of its block: the block must go too."""
    tile = Tile()
    lead = [addi(T1, T1, 1)] * before
    tile.write(at, code(lead, tt("NOP"), RETURN))
    program = code(
        addi(A0, ZERO, 1), li(T0, at), jalr(RA, T0), addi(A2, A0, 0), addi(A3, A0, 0), PARK
    )
    released(tile, "trisc0", START, program)
    assert results(tile) == (1, 1)
    tile.write(at + 4 * before, code(NEW))
    assert again(tile) == (2, 2)
    assert tile.state.executed[0] == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_pushed_word_that_its_own_core_replaces(engine: str, before: int, behind: int) -> None:
    """A word that traps is no part of the block in front of it, which still must be dropped."""
    head = [addi(A0, ZERO, 0), *li(A2, addi(A0, A0, 1)), addi(A3, ZERO, 2)]
    word = len(head) + 2 + before
    loop = [*[addi(T1, T1, 1)] * before, tt("NOP"), *[addi(T1, T1, 1)] * behind]
    loop += [sw(A2, A1, 0), addi(A3, A3, -1)]
    program = [*head, *li(A1, START + 4 * word), *loop, bne(A3, ZERO, -4 * len(loop)), PARK]
    tile = Tile(engine=engine)
    released(tile, "trisc0", START, code(program))
    assert tile.run(timeout_s=20).reason == "idle"
    core = tile.core["trisc0"]
    assert int(core.regs[A0]) == 1
    assert int(tile.state.executed[0]) == 1
    assert core.retired == len(head) + 2 + 2 * (len(loop) + 1)
