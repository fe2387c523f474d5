"""RV-ALIGN: a misaligned access is refused before the engine executes or splits it."""

from pathlib import Path

import pytest

from bhemu.errors import GuestFault, Undefined
from bhemu.machine.tile import Tile
from bhemu.riscv import hooks
from bhemu.riscv.assembly import A0, A1, PARK, addi, code, lb, lbu, lh, lhu, li, lw, sw

START = 0x10000
PLACES = {"L1": 0x8000, "local": 0xFFB00040, "Config": 0xFFEF0000, "stream": 0xFFB48020}
LOADS = {"lh": (lh, 2), "lhu": (lhu, 2), "lw": (lw, 4)}
MISALIGNED = [
    (name, place, offset)
    for place in PLACES
    for name in ("lh", "lhu", "lw", "sh", "sw")
    for offset in ((1, 3) if "h" in name else (1, 2, 3))
]


def access(name: str, offset: int) -> int:
    if name in LOADS:
        return LOADS[name][0](A0, A1, offset)
    return sw(A0, A1, offset, 1 if name == "sh" else 2)


def tile_with(program: bytes, core: str = "trisc0", engine: str | None = None) -> Tile:
    tile = Tile(engine=engine)
    tile.write(START, program)
    tile.core[core].set_reset_pc(START)
    tile.core[core].release()
    return tile


def misaligned(tile: Tile) -> Undefined:
    with pytest.raises(Undefined) as caught:
        tile.run()
    assert (caught.value.rule, caught.value.category) == ("RV-ALIGN", "NonContractualBehavior")
    return caught.value


@pytest.mark.parametrize(("name", "place", "offset"), MISALIGNED)
def test_a_misaligned_access_is_refused_before_any_effect(
    name: str, place: str, offset: int
) -> None:
    base = PLACES[place]
    tile = tile_with(code(li(A1, base), addi(A0, 0, 77), access(name, offset), PARK))
    l1, local = tile.state.l1.copy(), tile.state.local.copy()
    problem = misaligned(tile)
    assert f"{base + offset:#010x}" in problem.message
    assert ("2-byte" if "h" in name else "4-byte") in problem.message
    assert problem.where is not None
    assert problem.where.pc == START + 12
    core = tile.core["trisc0"]
    assert (core.retired, core.regs[A0]) == (3, 77)
    assert (tile.state.l1 == l1).all()
    assert (tile.state.local == local).all()
    assert not tile.state.stream.any()
    assert not tile.state.cfg.any()


def test_a_misaligned_base_may_have_an_aligned_sum_and_offsets_have_a_sign() -> None:
    program = code(li(A1, 0x8003), sw(A1, A1, -3), lw(A0, A1, -3), sw(A0, A1, 1), PARK)
    tile = tile_with(program)
    assert tile.run().reason == "idle"
    assert (tile.read32(0x8000), tile.read32(0x8004)) == (0x8003, 0x8003)
    problem = misaligned(tile_with(code(li(A1, 0x8000), lw(A0, A1, -1), PARK)))
    assert "0x00007fff" in problem.message


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_bytes_are_always_aligned_and_halves_at_even_addresses(offset: int) -> None:
    half = [sw(A0, A1, offset, 1), lhu(A0, A1, offset)] if offset % 2 == 0 else []
    program = code(li(A1, 0x8000), li(A0, 0x5A), sw(A0, A1, offset, 0), lbu(A0, A1, offset), half)
    tile = tile_with(program + code(lb(A0, A1, offset), PARK))
    assert tile.run().reason == "idle"
    assert tile.core["trisc0"].regs[A0] == 0x5A


@pytest.mark.parametrize("core", ["brisc", "trisc0", "trisc1", "trisc2", "ncrisc"])
def test_every_core_checks_its_own_registers(core: str) -> None:
    tile = Tile()
    start = 0 if core == "brisc" else START
    tile.write(start, code(li(A1, 0x8002), lw(A0, A1), PARK))
    tile.core[core].set_reset_pc(start)
    tile.core[core].release()
    problem = misaligned(tile)
    assert problem.where is not None
    assert problem.where.core == core


AMOADD = 0x00B5252F  # amoadd.w a0, a1, (a0)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_atomics_are_aligned_too(offset: int) -> None:
    misaligned(tile_with(code(li(A0, 0x8000 + offset), AMOADD, PARK)))


@pytest.mark.parametrize("address", [0x180000, 0xFFB00000, 0xFFEF0000, 0xFFFFFFFC])
def test_atomics_work_on_l1_only(address: int) -> None:
    tile = tile_with(code(li(A0, address), AMOADD, PARK))
    with pytest.raises(Undefined, match="RV-AMO") as caught:
        tile.run()
    assert f"{address:#010x}" in caught.value.message


@pytest.mark.parametrize("word", [0x0005B503, 0x0005F503, 0x00A5B023])
def test_64_bit_accesses_stay_illegal(word: int) -> None:
    """ld, lwu and sd do not exist; they are not reported as misaligned."""
    with pytest.raises(GuestFault, match="RV-ILLEGAL"):
        tile_with(code(li(A1, 0x8001), word, PARK)).run()


def test_without_a_known_place_the_engine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "locate", lambda uc, handle, layout: hooks.UNKNOWN)
    program = code(li(A1, 0x8000), lw(A0, A1, 4), lw(A0, A1, 2), PARK)
    tile = tile_with(program, engine="unicorn")
    assert not tile.state.registers.any()
    misaligned(tile)
    assert tile.core["trisc0"].retired == 3


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_registers_are_found_in_the_engine() -> None:
    """So that the check costs little (docs/benchmarks.md): of a core that Unicorn has executed."""
    tile = tile_with(code(li(A1, 0x8000), PARK), engine="unicorn")
    tile.run()
    trisc0 = list(tile.core).index("trisc0")
    assert tile.state.registers[trisc0]
