"""The state of a tile in one .npz file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bhemu import __version__
from bhemu.launch import write_whole
from bhemu.tensix.state import POINTERS
from bhemu.tile import Tile


def save_state(tile: Tile, path: Path) -> None:
    """Write every member of the state record (tensix/state.py) and the cores' registers.

    Arrays carry the members' names and types; `regs` is uint32 (5, 32), x0-x31 of each core in the
    record's order; `meta` is JSON: version, tile coordinate, clock. Host addresses are left out.
    """
    arrays: dict[str, Any] = {
        member.name: view for member, view in tile.state.members() if member.name not in POINTERS
    }
    arrays["regs"] = np.stack([core.regs for core in tile.core.values()])
    meta = {"bhemu": __version__, "tile": list(tile.xy), "clock": tile.clock}
    arrays["meta"] = np.array(json.dumps(meta))
    write_whole(path, lambda file: np.savez_compressed(file, **arrays), "--save")
