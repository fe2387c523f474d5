"""States of a chip that were saved before members were added to the record load as they were."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu import Chip, Snapshot
from bhemu.devices.niu_request import DUE
from bhemu.errors import InputError
from bhemu.launch import Program
from bhemu.machine import saved
from bhemu.noc import record
from bhemu.tensix.state import DTYPE, POINTERS

LAYOUTS = saved._layouts()


def older(path: Path, layout: str) -> Path:
    """The same state, as a file of an older version had it."""
    dtype = LAYOUTS[layout]
    arrays: dict[str, Any] = dict(np.load(path))
    meta = json.loads(str(arrays["meta"]))
    meta["layout"] = layout
    for number in meta["tiles"]:
        tile = arrays[f"tile{number}"].view(DTYPE)
        held = np.zeros(1, dtype)
        for name in set(dtype.names or ()) - set(POINTERS):
            held[name] = tile[name]
        arrays[f"tile{number}"] = held.view(np.uint8)
    for name in record.LATER:
        del arrays[f"chip_{name}"]
    arrays["meta"] = np.array(json.dumps(meta))
    made = path.with_name("older.npz")
    np.savez(made, **arrays)
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_state_of_each_layout_loads(tmp_path: Path, layout: str) -> None:
    chip = Chip()
    chip.tile[1, 2].write(0x100, b"as it was")
    chip.snapshot().save(tmp_path / "state.npz")
    found = Snapshot.load(older(tmp_path / "state.npz", layout))
    again = Chip()
    again.restore(found)
    assert again.tile[1, 2].read(0x100, 9) == b"as it was"


def test_seven_layouts_are_known() -> None:
    assert len(LAYOUTS) == 7


def test_a_late_run_with_rounds_in_its_requests_is_refused(tmp_path: Path) -> None:
    """Requests of late runs were due in rounds once; now the number says a cycle and a stage."""
    program = Path(__file__).parents[2] / "elfs" / "copy_dram"
    chip = Program.load(program).launch(late=6)
    while not any(tile.state.noc_requests[0] for tile in chip.tiles_made()):
        chip.run(limit=100)
    found = chip.snapshot()
    again = Program.load(program).launch(late=6)
    again.restore(found)
    for state in found.tiles.values():
        state.arrays["noc_request"][:, DUE] = 9
    with pytest.raises(InputError, match="due long ago"):
        again.restore(found)
