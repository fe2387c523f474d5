"""The RISC-V engine around one core: traps, counts, blocking, code changes, stops.

Each behaviour is a property of the pinned engine version that bhemu relies on.
"""

from pathlib import Path

import pytest

from bhemu.errors import Assert, GuestFault, NotModelled, Undefined
from bhemu.jit.subset import JIT
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    EBREAK,
    PARK,
    PUSH,
    RA,
    T0,
    T1,
    ZERO,
    addi,
    beq,
    bne,
    code,
    cpop,
    csrrs,
    jal,
    jalr,
    li,
    lui,
    lw,
    sw,
    tt,
    ttinsn,
)
from bhemu.tensix.insn import assemble

START = 0x10000
SYNC = 0xFFE80004
GPR = 0xFFE00000


def tile_with(program: bytes, core: str = "trisc0", **options: int) -> Tile:
    tile = Tile(**options)
    tile.write(START, program)
    tile.core[core].set_reset_pc(START)
    tile.core[core].release()
    return tile


def run(program: bytes, core: str = "trisc0", **options: int) -> Tile:
    tile = tile_with(program, core, **options)
    assert tile.run(timeout_s=20).reason == "idle"
    return tile


@pytest.mark.parametrize("word", [0x00010001, 0x80828082, 0x45014501, 0xFFFFFFFE, 0xABCD0002])
def test_words_of_the_compressed_encoding_are_pushed_never_executed(word: int) -> None:
    """0x00010001 is a pair of c.nop for a core with the C extension."""
    tile = tile_with(code(addi(A0, A0, 1), word, addi(A0, A0, 1), PARK))
    tile.step("trisc0", 3)
    assert tile.core["trisc0"].regs[A0] == 2
    assert tile.tensix.fifo[0] == [(word >> 2 | word << 30) & 0xFFFFFFFF]


def test_a_run_of_ttinsn_words_is_pushed_in_order_and_counted_one_by_one() -> None:
    words = [assemble("SETDMAREG", payload_sig_sel=i, reg_index_16b=2 * i) for i in range(60)]
    tile = run(code([ttinsn(w) for w in words], PARK))
    assert [int(x) & 0xFFFF for x in tile.tensix.gpr[0][:60]] == list(range(60))
    assert tile.core["trisc0"].retired == 60
    assert int(tile.state.executed[0]) == 60


def test_bit_manipulation_is_emulated_and_counted_once() -> None:
    tile = run(code(li(A0, 0xF0F01234), cpop(A1, A0), addi(A2, A1, 1), PARK))
    assert tile.core["trisc0"].regs[A1] == bin(0xF0F01234).count("1")
    assert tile.core["trisc0"].regs[A2] == bin(0xF0F01234).count("1") + 1
    assert tile.core["trisc0"].retired == 4


def test_a_word_of_no_extension_is_a_fault_with_its_place() -> None:
    tile = tile_with(code(addi(A0, A0, 1), 0x0000000B, PARK))
    with pytest.raises(GuestFault) as caught:
        tile.run()
    assert caught.value.rule == "RV-ILLEGAL"
    assert caught.value.where is not None
    assert caught.value.where.pc == START + 4
    assert caught.value.where.core == "trisc0"
    assert tile.core["trisc0"].retired == 1


def test_ebreak_is_the_device_assert_and_can_be_resumed_only_on_request() -> None:
    tile = tile_with(code(addi(A0, A0, 7), EBREAK, PARK))
    for _ in range(2):
        with pytest.raises(Assert) as caught:
            tile.run()
    assert caught.value.exit_code == 6
    assert caught.value.where is not None
    assert caught.value.where.pc == START + 4
    assert tile.core["trisc0"].state == "assert"


@pytest.mark.parametrize("word", [0x00000073, 0x10500073, 0x30200073])
def test_ecall_wfi_and_mret_are_faults(word: int) -> None:
    with pytest.raises(GuestFault, match="RV-SYSTEM"):
        tile_with(code(word, PARK)).run()


@pytest.mark.parametrize("word", [0x1005A52F, 0x18B5252F])
def test_lr_and_sc_do_not_exist(word: int) -> None:
    with pytest.raises(Undefined, match="RV-LRSC"):
        tile_with(code(li(A1, 0x8000), word, PARK)).run()


def test_amoadd_works() -> None:
    amoadd = 0x00B5252F  # amoadd.w a0, a1, (a0)
    tile = run(code(li(A0, 0x8000), li(A1, 5), sw(A1, A0), amoadd, PARK))
    assert tile.read32(0x8000) == 10
    assert tile.core["trisc0"].regs[A0] == 5


def test_minstret_and_mcycle_count_emulated_time_only() -> None:
    program = code(csrrs(A0, 0xB02), addi(T0, T0, 1), csrrs(A1, 0xB02), csrrs(A2, 0xB00), PARK)
    first, second = run(program).core["trisc0"].regs, run(program).core["trisc0"].regs
    assert (first[A0], first[A1]) == (0, 2)
    assert list(first) == list(second)


def test_unknown_csr_is_refused_by_name() -> None:
    with pytest.raises(NotModelled, match="CSR 0x305"):
        tile_with(code(csrrs(A0, 0x305), PARK)).run()


def test_a_full_fifo_stops_the_store_before_any_effect() -> None:
    """Words behind a SEMWAIT fill the FIFO; the pushing core waits; released, nothing is lost."""
    wait = tt("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)
    count = assemble("ADDDMAREG", op_a_reg_index=4, op_b_reg_index=5, result_reg_index=4)
    setup = [tt("SETDMAREG", payload_sig_sel=1, reg_index_16b=10)]
    pushes = [li(A1, PUSH), li(A0, count), [sw(A0, A1)] * 100]
    words = [w for part in pushes for w in part]
    tile = tile_with(code(setup, wait, words, PARK))
    post = tt("SEMPOST", sem_sel=1)
    other = code(li(A1, 0x8000), lw(A0, A1), beq(A0, ZERO, -4), post, PARK)
    tile.write(0x20000, other)
    tile.core["trisc1"].set_reset_pc(0x20000)
    tile.core["trisc1"].release()
    init = assemble("SEMINIT", sem_sel=1, max_value=15)
    tile.core["brisc"].write32(PUSH, init)
    tile.run(limit=20000)
    assert tile.core["trisc0"].state == "blocked"
    assert len(tile.tensix.fifo[0]) == 32
    tile.write32(0x8000, 1)
    assert tile.run().reason == "idle"
    assert int(tile.tensix.gpr[0][4]) == 100
    assert tile.core["trisc0"].retired == 2 + 4 + 100


def test_ttinsn_waits_for_room_in_the_fifo_too() -> None:
    wait = tt("SEMWAIT", sem_sel=1, stall_res=511, wait_sem_cond=1)
    count = tt("ADDDMAREG", op_a_reg_index=4, op_b_reg_index=5, result_reg_index=4)
    tile = tile_with(
        code(tt("SETDMAREG", payload_sig_sel=1, reg_index_16b=10), wait, [count] * 100, PARK)
    )
    tile.core["brisc"].write32(PUSH, assemble("SEMINIT", sem_sel=1, max_value=15))
    with pytest.raises(Exception, match="deadlock"):
        tile.run()
    assert tile.core["trisc0"].state == "blocked"
    tile.core["brisc"].write32(0xFFE50000, assemble("SEMPOST", sem_sel=1))
    assert tile.run(resume=True).reason == "idle"
    assert int(tile.tensix.gpr[0][4]) == 100
    assert tile.core["trisc0"].retired == 102


def test_a_sync_load_waits_and_is_counted_once() -> None:
    push = [tt("SETDMAREG", payload_sig_sel=9, reg_index_16b=8)] * 20
    program = code(li(A1, SYNC), push, sw(ZERO, A1), lw(A0, A1), li(A1, GPR), lw(A2, A1, 16), PARK)
    tile = run(program)
    assert tile.core["trisc0"].regs[A2] == 9
    assert tile.core["trisc0"].retired == 2 + 20 + 2 + 2 + 1


def test_code_written_by_the_host_is_what_runs_next() -> None:
    tile = run(code(addi(A0, ZERO, 1), PARK))
    assert tile.core["trisc0"].regs[A0] == 1
    tile.core["trisc0"].hold()
    tile.write(START, code(addi(A0, ZERO, 2), PARK))
    tile.core["trisc0"].release()
    tile.run()
    assert tile.core["trisc0"].regs[A0] == 2


def test_code_changed_by_another_core_runs_after_an_invalidate() -> None:
    """trisc1 rewrites trisc0's loop body and invalidates trisc0's instruction cache (bit 1)."""
    loop = code(addi(A0, A0, 1), jal(ZERO, -4))
    tile = tile_with(loop)
    tile.run(limit=3000)
    change = [*li(A1, START), *li(A2, PARK), sw(A2, A1), *li(A1, 0xFFEF02E4), addi(A2, ZERO, 2)]
    tile.write(0x20000, code(change, sw(A2, A1), PARK))
    tile.core["trisc1"].set_reset_pc(0x20000)
    tile.core["trisc1"].release()
    assert tile.run(limit=100_000).reason == "idle"
    assert tile.core["trisc0"].state == "parked"


@pytest.mark.parametrize(
    ("access", "address"),
    [(lw(A0, A1), 0x180000), (sw(A0, A1), 0xFF000000), (lw(A0, A1), 0xFFB01000)],
)
def test_an_unmapped_access_names_address_and_pc(access: int, address: int) -> None:
    tile = tile_with(code(li(A1, address), access, PARK))
    with pytest.raises(GuestFault) as caught:
        tile.run()
    assert f"{address:#010x}" in caught.value.message
    assert caught.value.where is not None
    assert caught.value.where.pc == START + 8
    assert tile.core["trisc0"].retired == 2


def test_a_jump_out_of_l1_names_the_target() -> None:
    tile = tile_with(code(li(A1, 0x200000), jalr(ZERO, A1), PARK))
    with pytest.raises(GuestFault, match="0x00200000"):
        tile.run()


def test_local_memory_is_private_and_reachable_by_the_slow_path() -> None:
    store = code(li(A1, 0xFFB00010), li(A0, 0x1234), sw(A0, A1), PARK)
    tile = run(store)
    assert tile.read32(0xFFB18010) == 0x1234
    assert tile.core["trisc0"].read32(0xFFB00010) == 0x1234
    assert tile.core["trisc1"].read32(0xFFB00010) == 0


def test_registers_are_zero_after_release() -> None:
    tile = run(code(addi(T1, T1, 5), addi(RA, ZERO, 3), PARK))
    tile.core["trisc0"].hold()
    tile.core["trisc0"].release()
    tile.run()
    assert tile.core["trisc0"].regs[T1] == 5


COUNTED = code(li(A0, 2500), lui(A1, 0x8000), addi(T0, T0, 3), sw(T0, A1), addi(A0, A0, -1),
               bne(A0, ZERO, -12), PARK)  # fmt: skip


@pytest.mark.parametrize("quantum", [1, 7, 1000, 100_000])
def test_counts_do_not_depend_on_the_quantum(quantum: int) -> None:
    tile = run(COUNTED, quantum=quantum)
    assert tile.core["trisc0"].retired == 3 + 4 * 2500
    assert tile.read32(0x8000) == 7500


def test_stepping_equals_running() -> None:
    whole, stepped = run(COUNTED), tile_with(COUNTED)
    for n in (1, 1, 5, 999, 1000, 1001, 3):
        before = stepped.core["trisc0"].retired
        stop = stepped.step("trisc0", n)
        assert (stop.reason, stepped.core["trisc0"].retired) == ("step", before + n)
    assert stepped.run().reason == "idle"
    assert stepped.core["trisc0"].retired == whole.core["trisc0"].retired
    assert stepped.clock == whole.clock
    assert bytes(stepped.l1) == bytes(whole.l1)


def test_a_breakpoint_stops_before_the_instruction_every_time() -> None:
    tile = tile_with(COUNTED)
    s = tile.state
    s.breakpoint[1, 0], s.breakpoint_count[1] = START + 12, 1
    for turn in range(3):
        assert tile.run().reason == "breakpoint"
        assert tile.core["trisc0"].pc == START + 12
        assert tile.core["trisc0"].regs[T0] == 3 * turn
        s.breakpoint_skip[1] = 1
    s.breakpoint_count[1] = 0
    assert tile.run().reason == "idle"
    assert tile.clock == run(COUNTED).clock


def test_brisc_starts_at_zero_and_ncrisc_at_its_reset_pc() -> None:
    tile = Tile()
    tile.write(0, code(addi(A0, ZERO, 1), PARK))
    tile.write(0x12000, code(addi(A0, ZERO, 2), PARK))
    for name in ("brisc", "ncrisc"):
        tile.core[name].release()
    assert tile.run().reason == "idle"
    assert (tile.core["brisc"].regs[A0], tile.core["ncrisc"].regs[A0]) == (1, 2)


def test_ncrisc_cannot_push() -> None:
    with pytest.raises(Undefined, match="ncrisc"):
        tile_with(code(tt("DMANOP"), PARK), "ncrisc").run()


def test_a_trisc_store_to_another_threads_window_is_an_error_not_a_hang() -> None:
    with pytest.raises(Undefined, match="PUSH-TRISC"):
        tile_with(code(li(A1, 0xFFE60000), sw(A0, A1), PARK), "trisc2").run()


def test_a_word_condition_stops_exactly_at_the_store() -> None:
    body = [li(A0, 5), li(A1, 0x8000), addi(T0, T0, 1), sw(T0, A1), bne(T0, A0, -8), PARK]
    tile = tile_with(code(*body))
    stop = tile.run([{"word": 0x8000, "equals": 3}])
    assert stop.reason == "until"
    assert tile.read32(0x8000) == 3
    assert tile.core["trisc0"].retired == 4 + 3 * 3 - 1
    assert tile.run().reason == "idle"
    assert tile.clock == run(code(*body)).clock


def test_the_self_test_notices_an_engine_that_executes_compressed_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import unicorn
    from unicorn import riscv_const

    from bhemu.errors import Internal
    from bhemu.riscv import unicorn_core

    def plain() -> unicorn.Uc:
        cpu = riscv_const.UC_CPU_RISCV32_SIFIVE_E31
        return unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32, cpu)

    monkeypatch.setattr(unicorn_core, "_new_core", plain)
    with pytest.raises(Internal, match="compressed"):
        unicorn_core.self_test()


@pytest.mark.skipif(not JIT, reason="nothing is kept in the interpreted mode")
def test_an_engine_is_inspected_once_and_again_when_its_file_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from bhemu.jit import cache
    from bhemu.riscv import unicorn_core

    tests = []
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    monkeypatch.setattr(unicorn_core, "self_test", lambda: tests.append(1))
    inspected = unicorn_core._inspected.__wrapped__
    assert inspected() == inspected() != []
    assert len(tests) == 1
    library = tmp_path / "library"
    library.write_bytes(b"another")
    monkeypatch.setattr(unicorn_core, "LIBRARY", str(library))
    assert inspected() != [] and len(tests) == 2


@pytest.mark.parametrize("limit", [1, 100, 1500])
def test_a_clock_limit_is_exact_and_resumes(limit: int) -> None:
    tile = tile_with(COUNTED)
    stop = tile.run(limit=limit)
    assert (stop.reason, tile.core["trisc0"].retired) == ("limit", limit)
    assert tile.run().reason == "idle"
    assert tile.clock == run(COUNTED).clock


@pytest.mark.parametrize("limit", [1, 37, 999])
def test_limits_in_a_row_count_from_where_the_turn_stands(limit: int) -> None:
    """A second limit within the same turn of a core goes on; the sum is the free run."""
    tile, whole = tile_with(COUNTED), run(COUNTED)
    retired = 0
    while tile.run(limit=limit).reason == "limit":
        assert tile.core["trisc0"].retired == retired + limit
        retired += limit
    assert tile.core["trisc0"].retired == whole.core["trisc0"].retired
    assert tile.clock == whole.clock
