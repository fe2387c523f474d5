"""Runs with drawn times: right programs stay right, and what nothing orders shows."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import golden_case
import golden_noc
import numpy as np
import pytest

from bhemu import Chip, Snapshot, Tile
from bhemu.errors import BhemuError, InputError
from bhemu.launch import Program

ELFS = Path(__file__).parents[2] / "elfs"
SEEDS = range(50 if os.environ.get("BHEMU_LONG") else 4)
TILES = ("add1", "eltwise", "matmul", "reduce", "sfpu")
CHIPS = ("add1_chip", "copy_dram", "all_gather", "matmul_mcast")
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*.npz"))
NOP = 0x02000000


def launched(name: str, **options: Any) -> Any:
    return Program.load(ELFS / name).launch(**options)


def instruction(word: int) -> int:
    """A Tensix word as a `.ttinsn` of the core."""
    return (word << 2 | word >> 30) & 0xFFFFFFFF


@pytest.mark.parametrize("name", TILES + CHIPS)
def test_a_right_program_is_right(name: str) -> None:
    for seed in SEEDS:
        machine = launched(name, late=seed)
        assert machine.run().reason == "until", seed
        assert [o.name for o in machine.check() if not o.equal] == [], seed


@pytest.mark.parametrize("name", CASES)
def test_l1_equals_the_golden_model(name: str) -> None:
    case = golden_case.load(name)
    for seed in SEEDS:
        tile = golden_case.start(case, late=seed)
        assert tile.run(golden_case.DONE, timeout_s=60).reason == "until", seed
        assert case.differences(tile.l1) == [], seed


@pytest.mark.parametrize("name", golden_noc.names())
def test_many_tiles_equal_the_golden_model(name: str) -> None:
    case = golden_noc.load(name)
    for seed in SEEDS:
        assert golden_noc.differences(case, golden_noc.run(case, late=seed)) == [], seed


def test_seeds_differ_and_a_seed_repeats() -> None:
    clocks = []
    for seed in (1, 1, 2, 3, 4, 5, 6, 7):
        tile = launched("matmul", late=seed)
        tile.run()
        clocks.append((tile.clock, int(tile.state.late_choices[0]), tile.l1.tobytes()))
    assert clocks[0] == clocks[1]
    assert len({clock for clock, *_ in clocks}) > 2


def test_interpreted_code_gives_the_same_clock() -> None:
    tile = launched("add1", late=5)
    tile.run()
    program = (
        "from bhemu.launch import Program\n"
        f"tile = Program.load({str(ELFS / 'add1')!r}).launch(late=5)\n"
        "tile.run()\n"
        "print(tile.clock, int(tile.state.late_choices[0]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.stdout.split() == [str(tile.clock), str(tile.state.late_choices[0])]


def seen(machine: Any) -> tuple[Any, ...]:
    """What two runs that are the same have in common."""
    tiles = tuple(
        (t.clock, t.state.late_log.tobytes(), t.state.retired.tobytes(), t.l1.tobytes())
        for t in machine.tiles_made()
    )
    pages = getattr(getattr(machine, "network", None), "pages", {})
    return machine.clock, tiles, tuple(sorted((at, p.tobytes()) for at, p in pages.items()))


@pytest.mark.parametrize("name", TILES + CHIPS)
def test_a_run_in_pieces_is_the_same_run(name: str) -> None:
    """However it is cut: by limits of a few cycles up to thousands."""
    for seed in SEEDS:
        whole = launched(name, late=seed)
        whole.run()
        dice = random.Random(f"{name} {seed}")
        most = (400, 7 if name in TILES else 90, 3000, 37 if name in TILES else 200)[seed % 4]
        machine = launched(name, late=seed)
        while machine.run(limit=dice.randrange(1, most)).reason == "limit":
            pass
        assert seen(machine) == seen(whole), seed


@pytest.mark.parametrize("name", CHIPS)
def test_saved_states_of_a_chip_go_on_as_the_run_would(name: str, tmp_path: Path) -> None:
    whole = launched(name, late=6)
    whole.run()
    dice = random.Random(name)
    chip, under_way = launched(name, late=6), 0
    while chip.run(limit=dice.randrange(1, 4000)).reason == "limit":
        chip.snapshot().save(tmp_path / "state.npz")
        under_way += sum(int(tile.state.noc_requests[0]) for tile in chip.tiles_made())
        chip = launched(name, late=6)
        chip.restore(Snapshot.load(tmp_path / "state.npz"))
    assert seen(chip) == seen(whole)
    assert under_way


def test_steps_of_a_chip_do_not_change_it() -> None:
    whole = launched("all_gather", late=6)
    whole.run()
    dice, chip = random.Random(6), launched("all_gather", late=6)
    tiles = chip.tiles()
    while chip.clock < whole.clock // 2:
        chip.run(limit=dice.randrange(1, 400))
        for _ in range(5):
            dice.choice(tiles).step("brisc")
    chip.run()
    assert seen(chip) == seen(whole)


def test_a_saved_state_goes_on_as_the_run_would(tmp_path: Path) -> None:
    whole = launched("matmul", late=7)
    whole.run(limit=1500)
    kept = whole.snapshot()
    whole.run()
    again = launched("matmul", late=7)
    again.restore(kept)
    again.run()
    assert (again.clock, again.l1.tobytes()) == (whole.clock, whole.l1.tobytes())


@pytest.mark.parametrize("name", ["matmul", "add1_chip"])
def test_it_can_go_back(name: str) -> None:
    whole = launched(name, late=7)
    whole.run()
    machine = launched(name, late=7)
    history = machine.keep_history(tile=None if name == "matmul" else (1, 2))
    machine.run()
    end = machine.clock
    history.goto((history.first + end) // 2)
    assert 0 < machine.clock < end
    machine.run()
    assert seen(machine) == seen(whole)
    assert [o.name for o in machine.check() if not o.equal] == []


def test_steps_do_not_change_it() -> None:
    whole = launched("add1", late=11)
    whole.run()
    tile = launched("add1", late=11)
    for _ in range(20):
        tile.step("brisc")
    tile.run(limit=150)
    for _ in range(20):
        tile.tstep(1)
    tile.run()
    assert (tile.clock, tile.l1.tobytes()) == (whole.clock, whole.l1.tobytes())


def outcome(name: str, address: int, seed: int | None) -> str:
    """How a program ends whose instruction at `address` is a NOP: "", "wrong", or a rule."""
    options: dict[str, Any] = {"engine": "compiled"} if seed is None else {"late": seed}
    tile = launched(name, **options)
    tile.l1[address : address + 4].view(np.uint32)[0] = instruction(NOP)
    try:
        assert tile.run().reason == "until"
    except BhemuError as error:
        return error.rule
    return "" if all(output.equal for output in tile.check()) else "wrong"


def waits(name: str, word: int) -> int:
    """Address of the last instruction of `name` that pushes `word`."""
    tile = launched(name)
    pushed = tile.l1.view(np.uint32) == instruction(word)
    return int(pushed.nonzero()[0][-1]) * 4


@pytest.mark.parametrize(
    ("name", "word", "seen"),
    [
        # STALLWAIT of the pack thread: ZEROACC, or a semaphore, before PACR has read Dst
        ("add1", 0xA2200008, "wrong"),
        ("matmul", 0xA2200008, "wrong"),
        # SEMWAIT of the pack thread
        ("add1", 0xA6008009, "SEM-GET-EMPTY"),
    ],
)
def test_a_missing_wait_shows(name: str, word: int, seen: str) -> None:
    address = waits(name, word)
    assert outcome(name, address, None) == ""
    assert seen in {outcome(name, address, seed) for seed in range(20)}


def test_the_next_address_may_come_while_an_unpacker_is_at_work() -> None:
    """Without the STALLWAIT of the unpack thread: where a word begins is kept (issue.py)."""
    address = waits("matmul", 0xA2010006)
    assert {outcome("matmul", address, seed) for seed in range(20)} == {""}


def test_a_chip_draws_differently_on_each_tile() -> None:
    chip = Chip(late=3)
    tiles = [chip.tile[xy].state.late_random[0] for xy in ((1, 2), (2, 2))]
    assert tiles[0] != tiles[1]


def test_the_compiled_engine_runs_the_cores() -> None:
    assert Tile(late=1, engine="unicorn").engine == "compiled"
    assert Tile(late="off").late is None


@pytest.mark.parametrize("flags", [("--late", "3"), ("--timing", "model")])
@pytest.mark.parametrize("command", [("run", "--check", "races"), ("why", "y[0,2]")])
def test_what_cannot_be_followed_is_refused(command: Any, flags: tuple[str, str]) -> None:
    """Checks and causes of values take words to be complete at the gate."""
    name, *more = command
    done = subprocess.run(
        [sys.executable, "-m", "bhemu", name, str(ELFS / "add1"), *more, *flags],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "words are complete at the gate" in done.stderr


def test_why_of_a_late_run_that_ends_as_always() -> None:
    for name in ("add1", "hang_cycle"):
        told = [
            subprocess.run(
                [sys.executable, "-m", "bhemu", "why", "-q", str(ELFS / name), *flags],
                capture_output=True, text=True,
            )
            for flags in ((), ("--late", "3"), ("--timing", "model"))
        ]  # fmt: skip
        assert len({one.stdout for one in told}) == 1
        assert {one.returncode for one in told} == {int(name == "hang_cycle")}


def test_the_log_has_every_delay() -> None:
    tile = launched("matmul", late=4)
    tile.run()
    count = int(tile.state.late_choices[0])
    log = tile.state.late_log[:count]
    assert 0 < count <= len(tile.state.late_log)
    assert list(log[:, 0]) == list(range(count))
    assert (log[1:, 3] >= log[:-1, 3]).all()  # in order of time
    assert log[:, 4].max() < 2048


def test_drawn_and_modelled_times_exclude_each_other() -> None:
    with pytest.raises(InputError, match="give one of them"):
        Tile(late=1, timing="model")


def test_polling_is_refused_unless_rounds_bound_it() -> None:
    tile = launched("hang_flag", late=1)
    with pytest.raises(InputError, match="has no meaning"):
        tile.run("polling")
    assert tile.run("polling", rounds=3).reason == "rounds"


def test_it_says_once_that_unicorn_does_not_run_the_cores() -> None:
    done = subprocess.run(
        [sys.executable, "-m", *f"bhemu run {ELFS}/add1 --late 3 --engine unicorn".split()],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.count("the compiled engine runs the cores") == 1


@pytest.mark.parametrize(
    ("name", "acts", "told"),
    [("add1", "noc@0x100", "program of one tile"), ("add1", "1-9/packer", "of no tile"),
     ("add1_chip", "9-9/packer#2", "of no tile")],
)  # fmt: skip
def test_acts_that_a_program_cannot_have_are_refused(name: str, acts: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        launched(name, late=f"7:{acts}")
    assert acts in caught.value.message
