"""The debug interface of the cores: DebugInterface (Wormhole ISA), and how tt-exalens uses it."""

import pytest
from devices.debug_port_user import CNTL_0, CNTL_1, CORES, START, STATUS_0, Port

from bhemu.devices import debug_port
from bhemu.errors import Assert, InputError
from bhemu.machine.sentences import RULES
from bhemu.riscv.assembly import A0, A1, EBREAK, PARK, T0, ZERO, addi, branch, jal, li, lw, sw
from bhemu.riscv.isa import rv32i

pytestmark = pytest.mark.usefixtures("both_engines")

HALTED, BY_BREAKPOINT, BY_WATCHPOINT, BY_EBREAK = 1, 3, 5, 9
DATA, MAILBOX = 0x10000, 0xFFEC1000
COUNT = [addi(A0, A0, 1), jal(ZERO, -4)]  # for ever


@pytest.mark.parametrize("core", CORES)
def test_a_core_halts_steps_and_goes_on(core: str) -> None:
    at = Port([addi(A0, A0, 1)] * 8, PARK, core=core)
    at.command(debug_port.HALT)
    assert (at.core.state, at.at(), at.read(debug_port.STATUS)) == ("halted", 0, HALTED)
    assert at.run() == "idle" and at.at() == 0
    for done in (1, 2, 3):
        at.step()
        assert (at.at(), at.read(debug_port.STATUS), at.core.regs[A0]) == (done, HALTED, done)
    assert at.resume() == 0
    assert (at.core.state, at.core.regs[A0]) == ("parked", 8)


def test_two_step_commands_are_one_instruction() -> None:
    at = Port([addi(A0, A0, 1)] * 8, PARK)
    at.command(debug_port.HALT, debug_port.STEP)
    at.run()
    assert (at.at(), at.core.state) == (0, "halted")
    at.command(*[debug_port.STEP] * 5)
    at.run()
    assert (at.at(), at.core.retired) == (3, 3)


def test_a_running_core_halts_between_two_instructions() -> None:
    at = Port(COUNT)
    at.run()
    at.command(debug_port.HALT)
    seen = at.core.regs[A0]
    at.run()
    assert at.core.regs[A0] == seen > 100
    at.command(debug_port.RESUME)
    at.run()
    assert at.core.regs[A0] > seen


def test_a_breakpoint_halts_before_its_instruction_each_time() -> None:
    at = Port(COUNT)
    at.command(debug_port.HALT)
    at.point(3, debug_port.ENABLED, START + 4)
    for done in (1, 2, 3):
        assert at.resume() == BY_BREAKPOINT | 0x800
        assert (at.at(), at.core.regs[A0]) == (1, done)
    at.step()
    assert (at.at(), at.read(debug_port.STATUS)) == (0, HALTED)
    at.write(debug_port.MODES, 0)
    assert at.resume() == 0 and at.core.state == "running"


def test_a_core_is_halted_at_a_jump_to_itself_too() -> None:
    at = Port(addi(A0, A0, 1), PARK)
    at.command(debug_port.HALT)
    at.point(0, debug_port.ENABLED, START + 4)
    for _ in range(2):
        assert at.resume() == BY_BREAKPOINT | 0x100
        assert at.at() == 1
    at.step()
    assert (at.at(), at.core.state) == (1, "halted")


ACCESSES = [*li(A0, DATA), lw(T0, A0), sw(T0, A0), lw(T0, A0, 8), sw(T0, A0, 2, width=0), PARK]
LOAD, STORE, ELSEWHERE, BYTE = 2, 3, 4, 5  # where they stand: `li` is two words


@pytest.mark.parametrize(
    ("mode", "address", "where"),
    [
        (debug_port.READS, DATA, [LOAD]),
        (debug_port.WRITES, DATA, [STORE]),
        (debug_port.READS | debug_port.WRITES, DATA, [LOAD, STORE]),
        (debug_port.READS | debug_port.WRITES, DATA + 2, [LOAD, STORE, BYTE]),
        (debug_port.WRITES, DATA + 8, []),
        (debug_port.READS, DATA + 8, [ELSEWHERE]),
        (debug_port.READS, DATA + 12, []),
    ],
)
def test_a_watchpoint_halts_behind_the_access(mode: int, address: int, where: list[int]) -> None:
    at = Port(ACCESSES)
    at.command(debug_port.HALT)
    at.point(1, debug_port.ENABLED | mode, address)
    for place in where:
        assert at.resume() == BY_WATCHPOINT | 0x200
        assert at.at() == place + 1
    assert at.resume() == 0 and at.core.state == "parked"


def test_an_atomic_reads_and_writes() -> None:
    add = rv32i.AMOADD_W.assemble(ZERO, A0, A0)
    for mode in (debug_port.READS, debug_port.WRITES):
        at = Port(li(A0, DATA), add, PARK)
        at.command(debug_port.HALT)
        at.point(0, debug_port.ENABLED | mode, DATA)
        assert at.resume() == BY_WATCHPOINT | 0x100
        assert (at.at(), at.tile.read32(DATA)) == (3, DATA)


def test_a_core_that_polls_is_executed_while_it_is_watched() -> None:
    at = Port(li(A0, DATA), lw(T0, A0), branch(0, T0, ZERO, -4), PARK)
    at.command(debug_port.HALT)
    at.point(0, debug_port.ENABLED | debug_port.READS, DATA)
    assert [at.resume() for _ in range(3)] == [BY_WATCHPOINT | 0x100] * 3


def test_registers_are_read_and_written() -> None:
    at = Port(addi(A1, A0, 1), PARK)
    at.command(debug_port.HALT)
    assert [at.gpr(i) for i in range(32)] == [0] * 32
    at.set_gpr(A0, 0xFFFFFFFF)
    at.set_gpr(0, 5)
    assert (at.gpr(A0), at.gpr(0), at.gpr(debug_port.PC)) == (0xFFFFFFFF, 0, START)
    at.set_gpr(A0, 41)
    at.step()
    assert (at.gpr(A1), at.gpr(debug_port.PC)) == (42, START + 4)
    at.command(debug_port.CLEAR_GPRS)
    assert (at.gpr(A0), at.gpr(A1)) == (0, 0)


def test_the_pc_is_set() -> None:
    at = Port([addi(A0, A0, 1)] * 4, PARK)
    at.command(debug_port.HALT)
    at.write(debug_port.ARG_1, START + 12)
    at.command(debug_port.SET_PC)
    assert (at.at(), at.core.state) == (3, "halted")
    at.resume()
    assert at.core.regs[A0] == 1


def test_memory_is_what_the_core_sees() -> None:
    at = Port(PARK)
    at.command(debug_port.HALT)
    for address in (DATA, 0xFFB00010, 0xFFE00000):  # L1, its local memory, a Tensix GPR
        at.set_word(address, 0x12345678)
        assert at.word(address) == 0x12345678
    assert at.tile.read32(DATA) == 0x12345678
    assert at.core.read32(0xFFB00010) == 0x12345678
    assert at.tile.core["trisc2"].read32(0xFFB00010) == 0
    at.set_word(START, EBREAK)
    assert at.resume() == BY_EBREAK


def test_an_ebreak_halts_whom_somebody_debugs() -> None:
    at = Port(addi(A0, A0, 1), EBREAK, addi(A0, A0, 1), PARK)
    at.run()
    assert (at.at(), at.read(debug_port.STATUS), at.core.regs[A0]) == (2, BY_EBREAK, 1)
    assert at.resume() == 0 and at.core.regs[A0] == 2


def test_an_ebreak_is_an_error_until_somebody_does() -> None:
    at = Port(EBREAK, addi(A0, A0, 1), PARK, used=False)
    with pytest.raises(Assert):
        at.run()
    assert (at.core.state, at.core.pc) == ("assert", START)
    assert (at.read(debug_port.STATUS), at.at(), at.core.state) == (BY_EBREAK, 1, "halted")
    assert at.tile.run(resume=True).reason == "idle"
    assert at.resume() == 0 and at.core.regs[A0] == 1


def test_ncrisc_has_no_port_and_stands_on_its_ebreak() -> None:
    at = Port(PARK)
    at.tile.core["ncrisc"].set_reset_pc(DATA)
    at.tile.write32(DATA, EBREAK)
    at.tile.core["ncrisc"].release()
    with pytest.raises(Assert):
        at.run()


def test_reset_clears_the_port_and_discards_writes() -> None:
    at = Port(COUNT)
    at.command(debug_port.HALT)
    at.point(0, debug_port.ENABLED, START)
    at.core.hold()
    assert [at.read(i) for i in (debug_port.STATUS, debug_port.MODES, debug_port.ADDRESSES)] == [
        0,
        0,
        0,
    ]
    at.write(debug_port.MODES, debug_port.ENABLED)
    at.command(debug_port.HALT)
    assert at.read(debug_port.MODES) == 0
    at.core.release()
    at.run()
    assert at.core.state == "running" and at.core.retired > 0


def test_who_waits_for_a_halted_core_is_no_deadlock() -> None:
    at = Port(COUNT, core="trisc1")
    waits = at.tile.core["trisc0"]
    waits.set_reset_pc(DATA)
    at.tile.write(DATA, b"".join(w.to_bytes(4, "little") for w in [*li(A0, MAILBOX), lw(T0, A0)]))
    waits.release()
    at.run()
    at.command(debug_port.HALT)
    assert (waits.state, at.run()) == ("blocked", "idle")


def test_a_halted_core_is_so_in_a_saved_state() -> None:
    at = Port(COUNT)
    at.command(debug_port.HALT)
    at.point(0, debug_port.ENABLED, START + 4)
    saved = at.tile.snapshot()
    at.resume()
    at.tile.restore(saved)
    assert (at.at(), at.core.state) == (0, "halted")
    assert at.resume() == BY_BREAKPOINT | 0x100


def test_status_0_echoes_the_request() -> None:
    at = Port(PARK, core="trisc2")
    at.tile.write32(CNTL_0, 0x80000000 | 3 << 17 | 5)
    assert at.tile.read32(STATUS_0) == 0xC0000005
    at.tile.write32(CNTL_0, 0)
    at.tile.write32(CNTL_1, 0)
    at.tile.write32(CNTL_0, 0x80010000 | 3 << 17 | 5)
    assert at.tile.read32(STATUS_0) == 0x80000005 | 1 << 16
    with pytest.raises(InputError, match="read-only"):
        at.tile.write32(STATUS_0, 0)


def test_a_core_uses_the_port_of_another() -> None:
    stores = [*li(A0, CNTL_0), *li(A1, 0x80000001), sw(A1, A0, 4), *li(A1, 0x80050001), sw(A1, A0)]
    at = Port(COUNT, core="trisc1")
    at.tile.write(0, b"".join(w.to_bytes(4, "little") for w in [*stores, PARK]))
    at.tile.core["brisc"].release()
    assert at.run() == "idle"
    assert (at.core.state, at.tile.core["brisc"].state) == ("halted", "parked")


def test_a_core_halts_itself_and_another_lets_it_go_on() -> None:
    stores = [*li(A0, CNTL_0), *li(A1, 0x80000001), sw(A1, A0, 4), *li(A1, 0x80010001), sw(A1, A0)]
    at = Port(stores, addi(T0, T0, 1), PARK, core="brisc")
    assert at.run() == "idle"
    assert (at.core.state, at.at(), at.core.regs[T0]) == ("halted", len(stores), 0)
    at.tile.write32(CNTL_0, 0)
    assert at.resume() == 0 and at.core.regs[T0] == 1


@pytest.mark.parametrize("action", [debug_port.READ_GPR, debug_port.RESUME, debug_port.STEP])
def test_a_running_core_takes_only_a_halt(action: int) -> None:
    at = Port(COUNT)
    at.run()
    sentence = RULES[debug_port.NOT_HALTED].sentence(
        [debug_port.SLOW | action, CORES.index("trisc1")]
    )
    with pytest.raises(InputError, match=sentence):
        at.command(action)


@pytest.mark.parametrize(
    ("register", "value", "message"),
    [
        (
            debug_port.CONTROL,
            debug_port.SLOW | debug_port.READ_GPR | debug_port.WRITE_GPR,
            "command 0x80000018",
        ),
        (debug_port.CONTROL, debug_port.SET_PC, "command 0x100"),
        (7, 0, "no register 7"),
        (18, 0, "no register 18"),
    ],
)
def test_what_the_port_does_not_have_is_refused(register: int, value: int, message: str) -> None:
    at = Port(PARK)
    at.command(debug_port.HALT)
    with pytest.raises(InputError, match=message):
        at.write(register, value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (DATA + 2, "not aligned"),
        (0x180000, "not mapped"),
        (0xFFB01000, "not mapped"),
        (MAILBOX, "would wait at 0xffec1000"),
    ],
)
def test_memory_that_the_core_could_not_load_is_refused(address: int, message: str) -> None:
    at = Port(PARK, core="trisc1")
    at.command(debug_port.HALT)
    with pytest.raises(InputError, match=message):
        at.word(address)
    with pytest.raises(InputError, match="no register 33"):
        at.gpr(33)
