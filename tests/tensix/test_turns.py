"""The order in which threads take turns where one hands something to another."""

import pytest

from bhemu.riscv.asm import A0, A1, PARK, ZERO, code, li, lw, sw, tt
from bhemu.tile import Tile

SRCA, SRCB = 0, 1
SYNC = 0xFFE80004
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


def test_steps_of_a_thread_through_releases_change_nothing() -> None:
    def started() -> Tile:
        tile = Tile()
        sync = [*li(A0, SYNC), sw(ZERO, A0), lw(A1, A0)]
        programs = {"trisc0": code(pair() * 6, PARK), "trisc1": code(consume() * 6, sync, PARK)}
        for i, (name, program) in enumerate(programs.items()):
            tile.write(0x10000 + 0x4000 * i, program)
            tile.core[name].set_reset_pc(0x10000 + 0x4000 * i)
            tile.core[name].release()
        return tile

    free, stepped, traced = started(), started(), started()
    for _ in range(12):
        stepped.tstep(1)
    traced.state.trace[0] = 1
    for tile in (free, stepped, traced):
        assert tile.run().reason == "idle"
    for tile in (stepped, traced):
        assert tile.clock == free.clock
        assert list(tile.state.executed) == list(free.state.executed)
        assert int(tile.state.round[0]) == int(free.state.round[0])
