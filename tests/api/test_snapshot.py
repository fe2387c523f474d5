"""A run that goes on from a snapshot gives the bytes, counters, clock and trace of one without."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bhemu as package
from bhemu import Assert, InputError, NoProgress, Program, Snapshot, Tile
from bhemu.devices.bus.address_map import INERT
from bhemu.machine.saved import HOSTS
from bhemu.riscv.assembly import A0, A1, A2, EBREAK, PARK, ZERO, addi, bne, jal, li, lw, tt
from bhemu.tensix.state import MEMBERS, POINTERS

ROOT = Path(package.__file__).parent.parent
SYNC = 0xFFE80004
# Neither architectural: which pages the engine was told about, scratch of the vector unit.
APART = {*HOSTS, "flush", "scratch"}


def state(tile: Tile) -> dict[str, np.ndarray]:
    members = [m.name for m in MEMBERS if m.name not in POINTERS and m.name not in APART]
    arrays = {name: getattr(tile.state, name).copy() for name in members}
    arrays["regs"] = np.stack([core.regs for core in tile.core.values()])
    return arrays


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert [name for name in one if not np.array_equal(one[name], other[name])] == []


def program(name: str) -> Program:
    return Program.load(ROOT / "elfs" / name)


@pytest.mark.parametrize("clock", [1, 700, 1500, 2300])
@pytest.mark.parametrize("quantum", [7, 1000])
def test_the_same_tile_goes_on_as_before(clock: int, quantum: int) -> None:
    tile = program("add1").launch(quantum=quantum)
    tile.run("idle", limit=clock)
    here = tile.snapshot()
    at = state(tile)
    words = tile.trace()
    first, stop = state(tile), tile.stop
    for _ in range(2):
        tile.restore(here)
        same(state(tile), at)
        assert tile.trace() == words
        assert tile.stop == stop
        same(state(tile), first)


def test_a_file_goes_on_in_another_process(tmp_path: Path) -> None:
    tile = program("add1").launch(xy=(3, 4))
    tile.run_to("trisc1", "main")
    tile.snapshot().save(tmp_path / "here.npz")
    script = (
        "import sys; from bhemu import Snapshot, Tile\n"
        "tile = Tile(); tile.restore(Snapshot.load(sys.argv[1]))\n"
        "print(tile.core['trisc1'].where()); print(tile.run())\n"
        "tile.snapshot().save(sys.argv[2])\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "here.npz", tmp_path / "end.npz"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert result.stdout.splitlines()[0] == str(tile.core["trisc1"].where())
    assert result.stdout.splitlines()[1] == repr(tile.run())
    there = Snapshot.load(tmp_path / "end.npz")
    same(state(tile), {name: there.arrays[name] for name in state(tile)})


@pytest.mark.parametrize("engines", [("unicorn", "compiled"), ("compiled", "unicorn")])
def test_another_engine_goes_on_as_the_first(engines: tuple[str, str]) -> None:
    first, other = (program("add1").launch(engine=engine) for engine in engines)
    first.run("idle", limit=1500)
    other.restore(first.snapshot())
    assert other.trace() == first.trace()
    assert other.stop == first.stop
    same(state(first), state(other))


def test_code_that_was_changed_in_between_is_changed_back(tile) -> None:
    mine = tile(addi(A2, A2, 1), PARK)
    start = mine.snapshot()
    for _ in range(3):
        assert mine.run().reason == "idle"
        mine.write32(0x10000, EBREAK)
        mine.write32("SOFT_RESET_0", 0x47800)
        mine.core["trisc0"].release()
        with pytest.raises(Assert):
            mine.run()
        mine.restore(start)
        assert mine.error is None
    assert mine.run().reason == "idle"
    assert int(mine.core["trisc0"].regs[A2]) == 1


def test_registers_without_effect_are_part_of_it(tile) -> None:
    mine = tile(PARK)
    address = max(INERT)
    mine.write32(address, 77)
    here = mine.snapshot()
    mine.write32(address, 5)
    mine.restore(here)
    assert mine.read32(address) == 77


def test_breakpoints_stay_and_one_that_was_seen_is_left(tile) -> None:
    loop = [addi(A0, A0, 1), addi(A1, ZERO, 3), bne(A0, A1, -8), PARK]
    mine = tile(*loop)
    number = mine.break_at("trisc0", 0x10000)
    mine.run()
    here = mine.snapshot()
    other = mine.break_at("trisc0", 0x10008)
    for _ in range(2):
        mine.restore(here)
        assert [point.number for point in mine.breakpoints] == [number, other]
        assert mine.run().breakpoint == other
        assert mine.core["trisc0"].retired == 2


@pytest.mark.parametrize("through", [lambda s, path: s, lambda s, path: reloaded(s, path)])
def test_an_error_is_part_of_it(tile, tmp_path, through: Callable[..., Snapshot]) -> None:
    mine = tile(
        tt("SEMWAIT", wait_sem_cond=1, sem_sel=2, stall_res=0x1FF),
        *(tt("SEMGET", sem_sel=0), li(A0, SYNC), lw(A1, A0), PARK),
    )
    with pytest.raises(NoProgress) as caught:
        mine.run()
    here = through(mine.snapshot(), tmp_path / "s.npz")
    other = Tile()
    other.restore(here)
    for one in (other, mine):
        with pytest.raises(NoProgress) as again:
            one.run()
        assert json.dumps(again.value.as_dict()) == json.dumps(caught.value.as_dict())
    mine.reset()
    assert mine.error is None


def reloaded(snapshot: Snapshot, path: Path) -> Snapshot:
    snapshot.save(path)
    return Snapshot.load(path)


def test_the_options_of_the_tile_come_along(tmp_path) -> None:
    tile = Tile(seed=3, poison="random", ub="warn", quantum=50, xy=(5, 6))
    here = reloaded(tile.snapshot(), tmp_path / "s.npz")
    assert repr(here) == f"<Snapshot of tile (5,6) at clock 0, from {tmp_path / 's.npz'}>"
    other = Tile()
    other.restore(here)
    other.reset()
    assert repr(other) == repr(tile)
    assert (other.l1 == tile.l1).all()


def test_a_snapshot_is_a_copy_with_named_arrays(tile) -> None:
    mine = tile(addi(A0, A0, 1), jal(ZERO, -4))
    here = mine.snapshot()
    mine.run(limit=50)
    assert int(here.clock[0]) == 0
    assert int(here.retired[1]) == 0
    assert "retired" in dir(here)
    with pytest.raises(AttributeError, match="no member nothing"):
        print(here.nothing)


def test_a_file_of_old_is_refused(tile, tmp_path) -> None:
    here = tile(PARK).snapshot()
    np.savez(tmp_path / "old.npz", **here.arrays)
    old = Snapshot.load(tmp_path / "old.npz")  # can be looked at
    with pytest.raises(InputError, match="cannot be restored"):
        Tile().restore(old)
    np.savez(tmp_path / "part.npz", l1=here.l1)
    with pytest.raises(InputError, match="no array"):
        Snapshot.load(tmp_path / "part.npz")


def changed(path: Path, drop: str = "", **meta: object) -> Path:
    """A saved state without one array, its `meta` with other values; None takes one away."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != drop}
    about = {**json.loads(str(arrays["meta"])), **meta}
    about = {name: value for name, value in about.items() if value is not None}
    np.savez(path, **{**arrays, "meta": np.array(json.dumps(about))})
    return path


def test_a_state_carries_its_schema_and_another_one_is_refused_by_name(tile, tmp_path) -> None:
    tile(PARK).snapshot().save(tmp_path / "s.npz")
    path = changed(tmp_path / "s.npz", schema=2, bhemu="7.1")
    said = r"schema 2, written by bhemu 7\.1; bhemu .* reads schema 1"
    with pytest.raises(InputError, match=said):
        Snapshot.load(path)
    assert Snapshot.load(changed(path, schema=None)).about.get("schema") is None  # the first ones


def test_an_older_state_may_lack_what_a_host_looks_with_and_nothing_else(tile, tmp_path) -> None:
    mine = tile(addi(A0, A0, 1), jal(ZERO, -4))
    mine.run(limit=50)
    mine.snapshot().save(tmp_path / "s.npz")
    older = Snapshot.load(changed(tmp_path / "s.npz", drop="watch_mask"))
    assert not older.watch_mask.any()
    other = Tile()
    other.restore(older)
    assert other.run(limit=50).clock == mine.run(limit=50).clock
    assert other.core["trisc0"].regs.tolist() == mine.core["trisc0"].regs.tolist()
    with pytest.raises(InputError, match="no array retired"):
        Snapshot.load(changed(tmp_path / "s.npz", drop="retired"))
