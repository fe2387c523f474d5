"""Small programs for rules of the front end, the windows and the cores, each named by its id."""

import pytest

from bhemu.devices.bus import entries
from bhemu.errors import BhemuError, Internal
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import A0, A1, PARK, PUSH, ZERO, code, csrrs, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble
from bhemu.tensix.state import RUNNING

START = 0x10000
DST_WINDOW, TDMA, FEATURE_DISABLE = 0xFFBD8000, 0xFFB11000, 0xFFB12068
WRITE_32 = 0x666  # of the TDMA-RISC: one word to the address in parameter 0


def store(address: int, value: int) -> list[int]:
    return [*li(A0, address), *li(A1, value), sw(A1, A0)]


def push(mnemonic: str, **fields: int) -> list[int]:
    return store(PUSH, assemble(mnemonic, **fields))


HAND_OVER = assemble("UNPACR_NOP", unpacker_select=1) | 7  # without waiting
PROGRAMS: dict[str, list[int]] = {
    "ISA-REFUSED": push("RSTDMA"),
    "MMIO-WRITE-ONLY": [*li(A0, PUSH), lw(A1, A0)],
    "MMIO-FIELD": store(FEATURE_DISABLE, 1 << 12),
    "DST-WINDOW-CLEARED": [
        *push("ZEROACC", clear_mode=3),
        *store(0xFFE80004, 0),  # wait for the thread
        *li(A0, 0xFFE80004),
        lw(A1, A0),
        *li(A0, DST_WINDOW),
        lw(A1, A0),
    ],
    "MOP-RESERVED": store(PUSH, assemble("MOP", mop_type=1) | 1),
    "REPLAY-RESERVED": store(PUSH, assemble("REPLAY", len=1) | 8),
    "SRCB-ALREADY-VALID": store(PUSH, HAND_OVER) * 3,
    "THCON-MMIO-LOW": push("LOADREG", reg_addr=0x400),
    "TDMA-WRITE": [*store(TDMA, 0x180000), *store(TDMA + 0x10, WRITE_32)],
    "TDMA-SIDEBAND": [*li(A0, TDMA + 0x18), lw(A1, A0)],
    "RV-CSR": [csrrs(A0, 0x123)],
}


@pytest.mark.parametrize("rule", PROGRAMS)
def test_the_program_stops_at_the_rule(rule: str) -> None:
    tile = Tile()
    tile.write(START, code(PROGRAMS[rule], PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    with pytest.raises(BhemuError) as caught:
        tile.run(limit=100_000)
    assert caught.value.rule == rule, caught.value


def test_ncrisc_has_no_way_to_push_inline() -> None:
    tile = Tile()
    tile.write(START, code(ttinsn(assemble("NOP")), PARK))
    tile.core["ncrisc"].set_reset_pc(START)
    tile.core["ncrisc"].release()
    with pytest.raises(BhemuError) as caught:
        tile.run(limit=1000)
    assert caught.value.rule == "PUSH-NCRISC"


def test_a_failing_device_is_an_internal_error_with_its_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Python raises below compiled code comes out as INTERNAL, never as a wrong value."""

    def broken() -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(entries, "_addresses", {})  # so that the first access goes through Python
    tile = Tile()
    monkeypatch.setattr(tile.backend, "_window", broken)
    tile.write(START, code(li(A0, DST_WINDOW), sw(ZERO, A0), PARK))
    tile.state.core_state[1], tile.state.pc[1] = RUNNING, START
    with pytest.raises((Internal, RuntimeError), match=r"INTERNAL|broken on purpose"):
        tile.run(limit=1000)
