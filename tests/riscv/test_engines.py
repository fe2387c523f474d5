"""Choosing the engine: by argument, environment, PROGRAM.toml; states that change engines."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bhemu import Program, Snapshot, Tile
from bhemu.errors import InputError
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, bne, code, li, sw

START = 0x10000
ADD1 = Path(__file__).parents[2] / "elfs" / "add1"
COUNTED = code(li(A0, 500), li(A1, 0x8000), sw(A0, A1), addi(A0, A0, -1), bne(A0, ZERO, -8), PARK)
OTHER = dict(zip(ENGINES, reversed(ENGINES), strict=True))


def started(engine: str | None) -> Tile:
    tile = Tile(engine=engine)
    tile.write(START, COUNTED)
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    return tile


def test_unicorn_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BHEMU_ENGINE", raising=False)
    assert Tile().engine == "unicorn"


def test_the_environment_chooses_where_the_caller_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BHEMU_ENGINE", "compiled")
    assert (Tile().engine, Tile(engine="unicorn").engine) == ("compiled", "unicorn")
    assert Program.load(ADD1).launch().engine == "compiled"
    assert Program.load(ADD1).launch(engine="unicorn").engine == "unicorn"


def test_a_program_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BHEMU_ENGINE", "unicorn")
    program = Program.load(ADD1)
    run = program.run.with_options({"engine": "compiled"})
    assert replace(program, run=run).launch().engine == "compiled"


def test_another_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="engine = 'qemu'"):
        Tile(engine="qemu")
    monkeypatch.setenv("BHEMU_ENGINE", "qemu")
    with pytest.raises(InputError, match="BHEMU_ENGINE = 'qemu'"):
        Tile()


def test_the_compiled_engine_does_without_unicorn() -> None:
    program = (
        "import sys, bhemu\n"
        "bhemu.Program.load(sys.argv[1]).launch(engine='compiled').run()\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'unicorn'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ADD1)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_goes_on_under_the_other_engine(engine: str, tmp_path: Path) -> None:
    tile, whole = started(engine), started(engine)
    tile.run(limit=777)
    tile.snapshot().save(tmp_path / "state.npz")
    other = Tile(engine=OTHER[engine])
    other.restore(Snapshot.load(tmp_path / "state.npz"))
    assert list(other.core["trisc1"].regs) == list(tile.core["trisc1"].regs)
    assert other.core["trisc1"].regs[A1] == 0x8000
    for each in (tile, other, whole):
        assert each.run().reason == "idle"
    assert tile.clock == other.clock == whole.clock
    assert tile.core["trisc1"].retired == other.core["trisc1"].retired
    assert bytes(tile.l1) == bytes(other.l1) == bytes(whole.l1)


@pytest.mark.parametrize("engine", ENGINES)
def test_registers_are_zero_after_a_reset_of_the_tile(engine: str) -> None:
    tile = started(engine)
    tile.run(limit=100)
    assert tile.core["trisc1"].regs.any()
    tile.reset()
    assert not tile.core["trisc1"].regs.any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("pc", [0x10002, 0x10001])
def test_a_core_does_not_start_between_two_words(engine: str, pc: int) -> None:
    tile = Tile(engine=engine)
    tile.write(START, COUNTED)
    tile.core["trisc1"].set_reset_pc(pc)
    tile.core["trisc1"].release()
    with pytest.raises(Exception, match="RV-TRAP"):
        tile.run()
    assert tile.core["trisc1"].retired == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_jump_to_the_last_words_of_the_address_space(engine: str) -> None:
    """0xFFFFFFF0 is where the Unicorn engine is told to stop: an address like any other."""
    from bhemu.riscv.assembly import jalr

    tile = Tile(engine=engine)
    tile.write(START, code(addi(A0, ZERO, -16), jalr(ZERO, A0)))
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    with pytest.raises(Exception, match="jump to 0xfffffff0"):
        tile.run()
    assert tile.core["trisc1"].retired == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_into_the_words_that_come_next(engine: str) -> None:
    """The next word is overwritten before it executes, within one turn and one block."""
    word = addi(A0, ZERO, 2)
    program = [*li(A1, START), *li(A0, word), sw(A0, A1, 20), addi(A0, ZERO, 1), PARK]
    tile = Tile(engine=engine)
    tile.write(START, code(program))
    tile.core["trisc1"].set_reset_pc(START)
    tile.core["trisc1"].release()
    assert tile.run().reason == "idle"
    assert tile.core["trisc1"].regs[A0] == 2
    assert tile.core["trisc1"].retired == 6
