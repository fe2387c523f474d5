"""What limit, timeout, steps, going back, gdb and saved states mean in runs with times."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bhemu import Chip, Snapshot, Tile
from bhemu.cli import main
from bhemu.errors import InputError
from bhemu.hosts.gdb_target import Target
from bhemu.launch import Launched, Program
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_WALL_CLOCK_0
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    T0,
    T1,
    ZERO,
    add,
    addi,
    code,
    csrrs,
    jal,
    li,
    lw,
    sw,
    word,
)  # fmt: skip
from bhemu.tensix.units.matrix.matmul import MVMUL

ELFS = Path(__file__).parents[2] / "elfs"
MCYCLE = 0xB00
TIMES = ("model", 7)  # modelled, and late as of a seed


def launched(timing: Any, name: str = "matmul") -> Any:
    return Program.load(ELFS / name).launch(timing=timing)


def seen(tile: Any) -> tuple[Any, ...]:
    """What must be equal where two runs are the same."""
    s = tile.state
    counts = s.retired.tobytes(), s.executed.tobytes(), s.unit_thread.tobytes()
    return (tile.clock, *counts, tile.l1.tobytes(), s.dst.tobytes(), s.agent_next.tobytes())


@pytest.fixture(scope="module")
def whole() -> dict[Any, tuple[Any, ...]]:
    found = {}
    for timing in TIMES:
        tile = launched(timing)
        assert tile.run().reason == "until"
        found[timing] = seen(tile)
    return found


def at_work(tile: Any) -> bool:
    """Whether a unit holds a word that it has not completed."""
    return bool(tile.state.unit_thread.any())


@pytest.mark.parametrize("timing", TIMES)
def test_limit_counts_cycles(timing: Any, whole: Any) -> None:
    """It ends a run before the first cycle from there on in which something happens.

    Words may be under way then, and the run goes on from it.
    """
    tile = launched(timing)
    worked, exact, before = 0, 0, 0
    while tile.run(limit=100).reason == "limit":
        assert before + 100 <= tile.clock <= int(tile.state.agent_next.min())
        exact += tile.clock == before + 100
        worked += at_work(tile)
        before = tile.clock
    assert worked > 0 and exact > 0
    assert seen(tile) == whole[timing]


def endless(timing: Any) -> Tile:
    """A core that counts in L1 for ever."""
    tile = Tile(timing=timing)
    tile.write(0, code(li(A0, 0x2000), addi(A1, A1, 1), sw(A1, A0), jal(ZERO, -8)))
    tile.core["brisc"].release()
    return tile


@pytest.mark.parametrize("timing", TIMES)
def test_timeout_is_in_seconds_of_the_host(timing: Any) -> None:
    """A run that it ends goes on as if it had not been ended."""
    tile, alike = endless(timing), endless(timing)
    for _ in range(3):
        assert tile.run(timeout_s=0.05).reason == "timeout"
    end = tile.clock + 1000
    tile.run(limit=1000)
    assert alike.run(limit=end).reason == "limit"
    assert alike.clock > 1000
    assert seen(tile) == seen(alike)


@pytest.mark.parametrize("timing", TIMES)
def test_a_step_is_one_instruction_or_one_issued_word(timing: Any, whole: Any) -> None:
    """Meanwhile time passes for the others too; the word's unit may still be at work."""
    tile = launched(timing)
    worked = 0
    while tile.core["trisc1"].state == "reset":
        tile.run(limit=10)
    for _ in range(60):
        before = int(tile.state.retired[2])
        tile.step("trisc1")
        assert int(tile.state.retired[2]) == before + 1
    for _ in range(200):
        words = int(tile.state.executed[1])
        tile.tstep(1)
        assert int(tile.state.executed[1]) == words + 1
        worked += at_work(tile)
    assert worked > 0
    assert tile.run().reason == "until"
    assert seen(tile) == whole[timing]


@pytest.mark.parametrize("timing", TIMES)
def test_going_back_goes_to_what_was_there(timing: Any, whole: Any) -> None:
    """History, so `step`'s and gdb's reverse commands: words under way are under way again."""
    tile = launched(timing)
    history = tile.keep_history()
    tile.run(limit=700)
    middle = seen(tile)
    assert tile.run().reason == "until"
    history.goto(700)
    assert seen(tile) == middle
    assert tile.run().reason == "until"
    assert seen(tile) == whole[timing]


@pytest.mark.parametrize("timing", TIMES)
def test_a_saved_state_holds_words_under_way(timing: Any, whole: Any, tmp_path: Path) -> None:
    tile = launched(timing)
    tile.run(limit=500)
    while not at_work(tile):
        tile.run(limit=1)
    tile.snapshot().save(tmp_path / "state.npz")
    again = launched(timing)
    again.restore(Snapshot.load(tmp_path / "state.npz"))
    assert at_work(again)
    again.run()
    assert seen(again) == whole[timing]


@pytest.mark.parametrize("timing", TIMES)
def test_a_state_of_other_times_is_refused(timing: Any, tmp_path: Path) -> None:
    tile = launched(timing)
    tile.run(limit=500)
    tile.snapshot().save(tmp_path / "state.npz")
    for other in {"off", *TIMES} - {timing}:
        with pytest.raises(InputError, match="of a machine with "):
            launched(other).restore(Snapshot.load(tmp_path / "state.npz"))
    with pytest.raises(InputError, match="this one is without times"):
        Program.load(tmp_path / "state.npz").launch()
    assert Program.load(tmp_path / "state.npz").launch(timing=timing).run().reason == "until"


@pytest.mark.parametrize("timing", TIMES)
def test_breakpoints_stop_before_and_watchpoints_behind(timing: Any, whole: Any) -> None:
    """A word stops before it is issued; what changes Dst stops where the unit has completed it."""
    tile = launched(timing)
    point = tile.break_word("MVMUL")
    assert tile.run().reason == "breakpoint"
    assert tile.state.op_count[:, MVMUL.opcode].sum() == 0
    tile.delete(point)
    before = tile.clock
    point = tile.watch("dst:0")
    stop = tile.run()
    assert stop.reason == "watchpoint" and stop.change.where.word >> 24 == MVMUL.opcode
    assert tile.clock >= before + 1
    tile.delete(point)
    assert tile.run().reason == "until"
    assert seen(tile) == whole[timing]


@pytest.mark.parametrize("timing", TIMES)
def test_a_trace_has_words_when_they_are_complete(timing: Any, whole: Any) -> None:
    tile = launched(timing)
    words = tile.trace()
    assert len(words) == tile.state.executed.sum() - tile.state.in_flight.sum()
    clocks = [word.clock for word in words]
    assert clocks == sorted(clocks)
    assert seen(tile) == whole[timing]


@pytest.mark.parametrize("timing", TIMES)
def test_gdb_steps_and_goes_on_in_that_time(timing: Any, whole: Any) -> None:
    target = Target(Launched(Program.load(ELFS / "matmul"), timing=timing))
    tile = target.tile
    for _ in range(20):
        before = int(tile.state.retired[0])
        target.step(0, 0, 0, lambda: False)
        assert int(tile.state.retired[0]) == before + 1
    assert tile.run().reason == "until"
    assert seen(tile) == whole[timing]


def test_a_seed_is_what_late_is(tmp_path: Path) -> None:
    """`timing` as a seed: in Python, TOML and as a flag."""
    given = launched(7)
    late = Program.load(ELFS / "matmul").launch(late=7)
    assert (str(given.late), given.timing) == (str(late.late), late.timing) == ("7", "off")
    assert given.run().clock == late.run().clock
    assert given.state.late_log.tobytes() == late.state.late_log.tobytes()
    assert str(Chip(timing=7).late) == "7"
    assert str(Tile(timing="7:packer@0x18190#3").late) == "7:packer@0x18190#3"
    path = ELFS / "matmul" / "PROGRAM.toml"
    runs = []
    for flag in (["--timing", "7"], ["--late", "7"]):
        done = CliRunner().invoke(main, ["run", "--json", str(path), *flag])
        assert done.exit_code == 0, done.output
        runs.append(json.loads(done.stdout)["clock"])
    assert runs == [given.clock, given.clock]
    elf = ELFS / "add1" / "brisc.elf"
    for line, seed in (("timing = 7", "7"), ('timing = "model"', "None"), ("late = 7", "7")):
        (tmp_path / "PROGRAM.toml").write_text(
            f'bhemu = 1\n[cores]\nbrisc = {{ elf = "{elf}" }}\n[run]\n{line}\n'
        )
        program = Program.load(tmp_path / "PROGRAM.toml", allow_outside=True)
        assert str(program.launch().late) == seed


def test_what_is_neither_is_refused() -> None:
    for wrong in (-1, 1 << 32, "modle", True, 1.5):
        with pytest.raises(InputError, match="timing"):
            Tile(timing=wrong)
    with pytest.raises(InputError, match="give one of them"):
        Tile(timing=7, late=8)
    assert str(Tile(timing=7, late=7).late) == "7"


def test_the_clock_of_a_machine_is_its_cycles() -> None:
    assert launched("model").cycles == 0
    for name in ("matmul", "copy_dram"):
        machine = launched("model", name)
        begun = machine.cycles
        machine.run()
        assert machine.cycles == machine.clock > begun
    with pytest.raises(InputError, match="timing"):
        Tile().cycles  # noqa: B018


def test_all_clocks_that_a_core_reads_tick_in_cycles() -> None:
    """Eight divisions, of 33 cycles each, by the wall clock, its high half, mcycle, the host."""
    tile = Tile(timing="model")
    wall = DEBUG_BASE + RISCV_DEBUG_REG_WALL_CLOCK_0
    divisions = [word("divu", A3, A2, A1)] * 8
    read = [lw(T0, A0), csrrs(T1, MCYCLE)]
    kept = [sw(T0, A1, 0), sw(T1, A1, 4)]
    start = [*li(A0, wall), *li(A1, 0x2000), *li(A2, 0x12345678), *read, *kept]
    again = [*read, sw(T0, A1, 8), sw(T1, A1, 12), lw(T0, A0, 4), sw(T0, A1, 16)]
    tile.write(0, code(*start, *[add(A3, A3, A3)], *divisions, add(A3, A3, A3), *again, PARK))
    tile.core["brisc"].release()
    assert tile.run().reason == "idle"
    first, mcycle, last, mcycle_last, high = (tile.read32(0x2000 + 4 * i) for i in range(5))
    assert 0 <= mcycle - first <= 20
    assert 0 <= mcycle_last - last <= 20
    assert 8 * 28 <= last - first <= 8 * 40
    assert high == 0
    assert last <= tile.read32(wall) == tile.cycles
