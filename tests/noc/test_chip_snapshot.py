"""The state of a chip, taken and put back: the same run goes on, in this process or from a file."""

import json
from pathlib import Path

import golden_noc
import numpy as np
import pytest

from bhemu import ChipSnapshot
from bhemu.errors import InputError
from bhemu.machine.machine import Chip

DELAYED = "random_4"


def under_way(chip: Chip) -> bool:
    """Whether a request waits for its delivery, where any ever does at the end of a round."""
    late = bool(chip.network.state.late[0])
    return not late or any(tile.state.noc_requests[0] for tile in chip.tiles())


def begun(rounds: int, **options: object) -> tuple[golden_noc.Case, Chip]:
    """A case in the middle of its run."""
    case = golden_noc.load(DELAYED)
    chip = Chip(quantum=50, **options)  # type: ignore[arg-type]
    golden_noc.put(case, chip)
    golden_noc.release(case, chip)
    assert chip.run(lambda chip: chip.round >= rounds and under_way(chip)).reason == "until"
    return case, chip


def finish(case: golden_noc.Case, chip: Chip) -> tuple[int, int]:
    """Clock and round at the end, which is as the golden model says."""
    assert chip.run(case.done, limit=10_000_000).reason == "until"
    assert golden_noc.differences(case, chip) == []
    return chip.clock, chip.round


@pytest.mark.usefixtures("both_engines")
@pytest.mark.parametrize("delivery", ["round", "late"])
def test_a_run_goes_on_from_a_snapshot_as_the_first_time(delivery: str) -> None:
    case, chip = begun(20, delivery=delivery, seed=3)
    here = chip.snapshot()
    first = finish(case, chip)
    chip.restore(here)
    assert finish(case, chip) == first
    other = Chip(quantum=50, delivery=delivery, seed=3)
    other.tile[10, 9].write32(0, 5)  # a tile that the snapshot has not
    other.dram[2].write(0, b"gone")
    other.restore(here)
    assert other.read32(10, 9, 0) == 0
    assert other.dram[2].read(0, 4) == bytes(4)
    assert finish(case, other) == first


def test_a_file_holds_it_all(tmp_path: Path) -> None:
    case, chip = begun(20, delivery="late", seed=1)
    chip.snapshot().save(tmp_path / "chip.npz")
    first = finish(case, chip)
    loaded = ChipSnapshot.load(tmp_path / "chip.npz")
    assert repr(loaded).startswith("<Snapshot of ")
    other = Chip(quantum=50, delivery="late", seed=1)
    other.restore(loaded)
    assert finish(case, other) == first


def test_the_error_that_stopped_the_chip_is_part_of_it() -> None:
    chip = Chip()
    chip.write32(1, 2, 0, 0xFFFFFFFF)  # no instruction
    chip.tile[1, 2].core["brisc"].release()
    with pytest.raises(Exception, match="RV-ILLEGAL"):
        chip.run()
    other = Chip()
    other.restore(chip.snapshot())
    assert str(other.error) == str(chip.error)
    with pytest.raises(type(chip.error)):
        other.run()


def test_a_chip_of_another_shape_does_not_take_it() -> None:
    here = Chip(harvest=(16,)).snapshot()
    with pytest.raises(InputError, match="harvested columns"):
        Chip().restore(here)
    with pytest.raises(InputError, match="no snapshot of a chip"):
        Chip().restore("here")  # type: ignore[arg-type]
    tile = Chip().tile[1, 2]
    with pytest.raises(InputError, match="on a chip"):
        tile.restore(tile.snapshot())


BROKEN = {
    "noc_requests": lambda a: a["noc_requests"].__setitem__(0, 257),
    "noc_data_used": lambda a: a["noc_data_used"].__setitem__(0, -1),
    "no request": lambda a: a["noc_request"].__setitem__((0, 6), 1 << 40),
    "noc_arrivals": lambda a: a["noc_arrivals"].__setitem__(0, -1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_numbers_that_no_chip_holds_are_refused(name: str) -> None:
    _, chip = begun(20, delivery="late", seed=1)
    saved = chip.snapshot()
    full = next(t for t in saved.tiles.values() if t.arrays["noc_requests"][0])
    BROKEN[name](full.arrays)
    with pytest.raises(InputError, match=name):
        Chip(quantum=50).restore(saved)


@pytest.mark.parametrize(
    ("member", "index", "value"),
    [("phase", 0, 9), ("left", 3, 500), ("awake", 77, 1), ("at", 0, -1)],
)
def test_a_chips_own_numbers_are_checked_too(member: str, index: int, value: int) -> None:
    saved = begun(10)[1].snapshot()
    assert saved.network is not None
    saved.network.arrays[member][index] = value
    with pytest.raises(InputError):
        Chip(quantum=50).restore(saved)


def test_a_damaged_file_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "chip.npz"
    Chip().snapshot().save(path)
    good = path.read_bytes()
    for data in (b"", good[:200], good[:-100], b"PK" + good[2:100] + bytes(50)):
        path.write_bytes(data)
        with pytest.raises(InputError):
            ChipSnapshot.load(path)
    np.savez(path, meta=np.array("{}"))
    with pytest.raises(InputError):
        ChipSnapshot.load(path)


def test_a_state_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "chip.npz"
    Chip().snapshot().save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    meta = json.loads(str(arrays["meta"]))
    assert meta["schema"] == 1
    for more, said in (
        ({"schema": 9, "bhemu": "7.1"}, r"schema 9, written by bhemu 7\.1"),
        ({"layout": "x", "bhemu": "7.1"}, r"saved by bhemu 7\.1 with another layout"),
    ):
        np.savez(path, **{**arrays, "meta": np.array(json.dumps({**meta, **more}))})
        with pytest.raises(InputError, match=said):
            ChipSnapshot.load(path)


def test_reset_is_power_up_again() -> None:
    case, chip = begun(3)
    chip.dram[0].write(0x100, b"\x55")
    chip.reset()
    assert (chip.clock, chip.round, chip.idle, chip.error, chip.stop) == (0, 0, True, None, None)
    assert not any(tile.l1.any() for tile in chip.tiles())
    assert [chip.dram[b].pages for b in range(8)] == [[]] * 8
    golden_noc.put(case, chip)
    golden_noc.release(case, chip)
    again = finish(case, chip)
    fresh = Chip(quantum=50)
    golden_noc.put(case, fresh)
    golden_noc.release(case, fresh)
    assert again == finish(case, fresh)


def test_a_bank_of_dram_holds_tensors() -> None:
    bank = Chip().dram[2]
    values = np.arange(2048, dtype=np.float32).reshape(32, 64)
    bank.put_tensor(0x1000, values, "fp32")
    assert (bank.tensor(0x1000, (32, 64), "fp32") == values).all()
    assert bank.tensor(0x1000, (1, 4), "fp32", layout="raw")[0, 1] == 1
