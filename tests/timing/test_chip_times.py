"""Modelled times on a chip: transfers take cycles, programs stay right, runs repeat."""

import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noc_program import READ, WRITE, hi, put, send, wait
from script_module import script

from bhemu import Chip
from bhemu.devices.niu import ACKS, READ_ANSWERS, READS
from bhemu.errors import InputError
from bhemu.launch import Program
from bhemu.memmap import DEBUG_BASE, RISCV_DEBUG_REG_WALL_CLOCK_0
from bhemu.noc import times
from bhemu.riscv.assembly import T0, ZERO, add, li, lw, sw

ELFS = Path(__file__).parents[2] / "elfs"
CHIPS = ("add1_chip", "copy_dram", "all_gather", "matmul_mcast")
CLOCK = DEBUG_BASE + RISCV_DEBUG_REG_WALL_CLOCK_0
HERE, DATA, RESULT = (1, 2), 0x30000, 0x2000
A3, A4, A5 = 13, 14, 15


def launched(name: str, **options: Any) -> Any:
    return Program.load(ELFS / name).launch(timing="model", **options)


def bytes_of(chip: Any) -> tuple[Any, ...]:
    """What two runs of the same chip have in common: clocks, L1 of all tiles, DRAM."""
    tiles = tuple((t.xy, t.clock, t.l1.tobytes()) for t in chip.tiles_made())
    pages = tuple(sorted((at, page.tobytes()) for at, page in chip.network.pages.items()))
    return chip.clock, tiles, pages


@pytest.fixture(scope="module")
def whole() -> Any:
    """The chips of CHIPS after their run."""
    made = {name: launched(name) for name in CHIPS}
    for chip in made.values():
        assert chip.run().reason == "until"
    return made


@pytest.mark.parametrize("name", CHIPS)
def test_outputs_are_those_of_the_plain_run(name: str, whole: Any) -> None:
    plain = Program.load(ELFS / name).launch()
    plain.run()
    chip = whole[name]
    assert [o.name for o in chip.check() if not o.equal] == []
    specs = [part for program in (plain.loop.program,) for part in program.outputs]
    assert specs
    for spec in specs:
        assert chip.output(spec) == plain.output(spec)


@pytest.mark.parametrize("name", CHIPS)
def test_a_run_in_pieces_is_the_same_run(name: str, whole: Any) -> None:
    chip, dice = launched(name), random.Random(5)
    while chip.run(limit=dice.randrange(1, 700)).reason == "limit":
        pass
    assert bytes_of(chip) == bytes_of(whole[name])


@pytest.mark.parametrize("name", CHIPS)
def test_a_saved_state_goes_on_as_the_run_would(name: str, whole: Any, tmp_path: Path) -> None:
    chip = launched(name)
    under_way = 0
    for limit in (1100, 900, 700):
        assert chip.run(limit=limit).reason == "limit"
        chip.snapshot().save(tmp_path / "state.npz")
        under_way += sum(int(tile.state.noc_requests[0]) for tile in chip.tiles_made())
        chip = launched(name)
        chip.restore(type(chip.snapshot()).load(tmp_path / "state.npz"))
    chip.run()
    assert bytes_of(chip) == bytes_of(whole[name])
    assert under_way or name != "copy_dram"  # requests are kept


def test_it_can_go_back(whole: Any) -> None:
    chip = launched("copy_dram")
    history = chip.keep_history(tile=(1, 2))
    chip.run()
    moment = (history.first + chip.clock) // 2
    history.goto(moment)
    assert moment <= chip.tile[1, 2].clock < whole["copy_dram"].clock
    chip.run()
    assert bytes_of(chip) == bytes_of(whole["copy_dram"])


def test_threads_of_the_host_do_not_change_it(whole: Any) -> None:
    chip = launched("all_gather", threads=2)
    chip.run()
    assert bytes_of(chip) == bytes_of(whole["all_gather"])


def test_nothing_shows_of_a_time_slice_that_ends_within_a_window() -> None:
    """A tile reaches the limit in the same window in which the time of another one is over."""
    seen = []
    for ticks, words in ((None, None), (1, 7)):
        chip = launched("copy_dram")
        for state in (tile.state for tile in chip.tiles_made() if ticks):
            state.time_slice[0], state.look_every[0] = ticks, words
        chip.run(limit=3000)
        seen.append([(tile.clock, *tile.state.retired.tolist()) for tile in chip.tiles_made()])
    assert seen[0] == seen[1]


def test_interpreted_code_gives_the_same_clock(tmp_path: Path) -> None:
    """From a state after the boot, which takes half a minute interpreted."""
    chip, state = launched("copy_dram"), tmp_path / "booted.npz"
    chip.snapshot().save(state)
    program = (
        "from bhemu.launch import Program\n"
        f"chip = Program.load({str(state)!r}).launch(timing='model')\n"
        "chip.run(limit=3000)\n"
        "print(chip.clock, sum(int(t.state.retired.sum()) for t in chip.tiles_made()))"
    )
    chip.run(limit=3000)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.stderr == ""
    retired = sum(int(tile.state.retired.sum()) for tile in chip.tiles_made())
    assert done.stdout.split() == [str(chip.clock), str(retired)]


def cycles_of(chip: Any, *words: Any) -> int:
    """Cycles between two readings of the wall clock around these words."""
    clock = [*li(T0, CLOCK), lw(A3, T0, 0), add(A3, A3, ZERO)]
    after = [*li(T0, CLOCK), lw(A4, T0, 0), *li(A5, RESULT), sw(A3, A5, 0), sw(A4, A5, 4)]
    put(chip, HERE, *clock, *words, *after)
    chip.run()
    begun, ended = (chip.tile[HERE].read32(RESULT + i) for i in (0, 4))
    return ended - begun


def test_data_and_counters_arrive_together_and_not_before() -> None:
    """A read of another tile: its bytes are those of the cycle in which the answer leaves it."""
    chip = Chip(timing="model")
    chip.tile[3, 4].write32(DATA, 0x600D)
    put(chip, HERE, send(READ, (DATA, hi((3, 4))), (DATA, hi(HERE))), wait(READ_ANSWERS, 1))
    state = chip.tile[HERE].state
    while not state.niu_counter[0, READ_ANSWERS]:
        assert chip.tile[HERE].read32(DATA) == 0
        if state.noc_requests[0]:
            first = chip.clock
        chip.run(limit=1)
    assert chip.tile[HERE].read32(DATA) == 0x600D
    assert chip.tile[3, 4].state.niu_counter[0, READS] == 1
    assert first > 29 * times.FIGURES["hop"].cycles


def test_a_way_round_both_axes_takes_its_hops() -> None:
    """17 more hops than of one column, as the cards."""
    taken = [
        cycles_of(Chip(timing="model"),
                  send(WRITE, (DATA, hi(HERE)), (DATA, hi(to)), 64), wait(ACKS, 1))
        for to in ((1, 5), (3, 5))
    ]  # fmt: skip
    assert taken[1] - taken[0] == pytest.approx(17 * times.FIGURES["hop"].cycles, abs=16)


def test_two_readers_of_one_bank_take_turns() -> None:
    def last(readers: tuple[tuple[int, int], ...]) -> int:
        chip = Chip(timing="model")
        for i, xy in enumerate(readers):
            reads = [
                send(READ, (0x10000 * i + 4096 * k, hi((17, 12))), (DATA, hi(xy)), 4096)
                for k in range(8)
            ]
            put(chip, xy, *reads, wait(READ_ANSWERS, 8))
        chip.run()
        return int(chip.clock)

    alone, both = last(((1, 2),)), last(((1, 2), (2, 3)))
    more = 8 * 64 * times.FIGURES["64 bytes of DRAM, read"].cycles
    assert both - alone > 0.8 * more


def test_what_draws_times_excludes_it() -> None:
    for options in ({"late": 1}, {"delivery": "late"}):
        with pytest.raises(InputError, match="give one of them"):
            Chip(timing="model", **options)


def test_program_and_command_accept_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *f"bhemu run {ELFS}/copy_dram --timing model --json".split()],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


noc_probes: Any = script("scripts/noc_probes.py")
ANCHORS = tomllib.loads(noc_probes.ANCHORS.read_text())


@pytest.mark.parametrize("family", ["read L1", "write L1", "read DRAM", "write DRAM"])
def test_bursts_take_what_a_card_takes(family: str) -> None:
    """Of 1, 16 and 64 requests from 64 to 16384 bytes: half of them within 3 %."""
    chosen = [b for b in ANCHORS["burst"] if b["family"] == family and b["requests"] in (1, 16, 64)]
    points = list(noc_probes.bursts({"burst": chosen}))
    assert len(points) >= 25
    assert np.median([abs(point.error) for point in points]) < 0.03


@pytest.mark.parametrize("family", ["size", "readport", "vc"])
def test_flows_take_what_a_card_takes(family: str) -> None:
    """By size, two from one NIU, and through one link on the same or another virtual channel."""
    chosen = [flows for flows in ANCHORS["flows"] if flows["family"] == family]
    for point in noc_probes.flows({"flows": chosen}):
        assert abs(point.error) < 0.04, point


def test_every_time_has_a_source() -> None:
    for name, figure in times.FIGURES.items():
        assert figure.cycles > 0 and figure.source, name
        assert figure.kind in ("isa", "measured", "derived", "estimate"), name


def test_a_request_makes_its_target_between_two_tiles() -> None:
    """Tiles of lower numbers are not there, and no loop has looked at them."""
    for options in ({"timing": "model"}, {"late": 2}, {}):
        chip = Chip(**options)
        put(chip, HERE, send(WRITE, (DATA, hi(HERE)), (DATA, hi((10, 9))), 64), wait(ACKS, 1))
        assert chip.run().reason == "idle"
        assert {tile.xy for tile in chip.tiles_made()} == {HERE, (10, 9)}
