"""States of a chip that were saved before members were added to the record load as they were."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu import Chip, Snapshot
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
