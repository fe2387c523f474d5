"""The order in which threads take turns where one hands something to another."""

import pytest
from released import release

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, code, li, lw, tt

SRCA, SRCB = 0, 1
GPR = 0xFFE00000


def pair() -> list[int]:
    """Hand over SrcA when the unpacker's bank is free, SrcB when the matrix unit's bank is."""
    words = {"set_dvalid": 1, "unpack_pop": 1}
    return [
        tt("UNPACR_NOP", unpacker_select=SRCA, stall_clr_cntrl=1, **words),
        tt("UNPACR_NOP", unpacker_select=SRCB, **words),
    ]


def consume() -> list[int]:
    """Wait for SrcA alone, then release both."""
    wait = tt("STALLWAIT", wait_res=1 << 7, stall_res=1 << 6)
    return [wait, tt("SETRWC", clear_ab_vld=3)]


@pytest.mark.parametrize("quantum", [1, 3, 1000])
@pytest.mark.parametrize("looks", [False, True])
def test_an_unpacker_hands_over_before_the_matrix_unit_goes_on(quantum: int, looks: bool) -> None:
    """T1 never waits for SrcB: T0, which waited for its release, must come before T1's next word.

    With `looks` trisc1 reads a GPR after every pair, so that its thread runs within that access.
    """
    tile = Tile(quantum=quantum)
    look = [*li(A0, GPR), lw(A1, A0)] if looks else []
    programs = {"trisc0": code(pair() * 8, PARK), "trisc1": code([*consume(), *look] * 8, PARK)}
    for i, (name, program) in enumerate(programs.items()):
        tile.write(0x10000 + 0x4000 * i, program)
        tile.core[name].set_reset_pc(0x10000 + 0x4000 * i)
        tile.core[name].release()
    assert tile.run(timeout_s=60).reason == "idle"
    assert not tile.state.src_valid.any()
    assert list(tile.state.executed) == [16, 16, 0]


def recorded() -> Tile:
    """All threads log by words whose order shows in one stream register; T1 within its looks."""
    tile = Tile()
    look = [*li(A0, GPR), lw(A1, A0)]

    def log(t: int, n: int) -> list[int]:
        """REMOTE_SRC of stream 0 = t and n, through a GPR of the thread."""
        value = tt("SETDMAREG", payload_sig_sel=n << 4 | t, reg_index_16b=8)
        return [
            value,
            tt("STOREREG", reg_addr=(0xFFB40010 - 0xFFB00000) // 4, tdma_data_reg_index=4),
        ]

    programs = {
        "trisc0": [word for n in range(8) for word in [*pair(), *log(0, n)]],
        "trisc1": [word for n in range(8) for word in [*consume(), *log(1, n), *look]],
        "trisc2": [word for n in range(30) for word in [*log(2, n), *look]],
    }
    release(tile, **{name: code(program, PARK) for name, program in programs.items()})
    return tile


@pytest.mark.parametrize("thread", [0, 1, 2])
def test_steps_of_a_thread_change_nothing(thread: int) -> None:
    """A stop within a core's access, in the middle of the threads' turns, resumes the same turn."""
    free, stepped = recorded(), recorded()
    free.state.trace[0] = stepped.state.trace[0] = 1
    assert free.run().reason == "idle"
    for _ in range(30):
        stepped.tstep(thread)
    assert stepped.run().reason == "idle"
    for tile in (free, stepped):
        tile.drain_log()
    assert stepped.log == free.log
    assert stepped.clock == free.clock
    assert int(stepped.state.round[0]) == int(free.state.round[0])
