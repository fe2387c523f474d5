"""The state of a tile outside of it: taken from a live tile, written to and read from one .npz."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import __version__
from bhemu.errors import InputError
from bhemu.launch import write_whole
from bhemu.tensix.state import CORES, MEMBERS, POINTERS, Member
from bhemu.tile import Tile

REGS = Member("regs", np.uint32, (CORES, 32), "x0-x31 of each core")
SAVED = (*(member for member in MEMBERS if member.name not in POINTERS), REGS)
"""What a saved state holds: the record without host addresses, and the cores' registers."""


class Snapshot:
    """The arrays of a state by member name, as attributes; `origin` names it in messages."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], origin: str) -> None:
        self.arrays, self.origin = arrays, origin

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        try:
            return self.__dict__["arrays"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"the state has no member {name}") from None


def snapshot(tile: Tile) -> Snapshot:
    """The state of a tile as it stands (views: valid until it runs on), with `regs`."""
    arrays = {member.name: view for member, view in tile.state.members()}
    arrays = {name: view for name, view in arrays.items() if name not in POINTERS}
    arrays[REGS.name] = np.stack([core.regs for core in tile.core.values()])
    return Snapshot(arrays, "the tile")


def save_state(tile: Tile, path: Path) -> None:
    """Write every member of the state record (tensix/state.py) and the cores' registers.

    Arrays carry the members' names and types; `regs` is uint32 (5, 32), x0-x31 of each core in the
    record's order; `meta` is JSON: version, tile coordinate, clock. Host addresses are left out.
    """
    meta = {"bhemu": __version__, "tile": list(tile.xy), "clock": tile.clock}
    arrays: dict[str, Any] = {**snapshot(tile).arrays, "meta": np.array(json.dumps(meta))}
    write_whole(path, lambda file: np.savez_compressed(file, **arrays), "--save")


def load_state(path: Path) -> Snapshot:
    """Read what `save_state` wrote; InputError when it is missing, damaged or of another shape."""
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError(f"{path}: a single array, not a saved state", hint=_HINT)
        with archive:
            arrays = {m.name: archive[m.name] for m in SAVED if m.name in archive}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    for member in SAVED:
        array = arrays.get(member.name)
        if array is None:
            raise InputError(f"{path}: no array {member.name}", hint=_HINT)
        if array.shape != member.shape or array.dtype != member.dtype:
            held = f"{array.dtype} {list(array.shape)}"
            want = f"{np.dtype(member.dtype)} {list(member.shape)}"
            raise InputError(f"{path}: {member.name} is {held}, not {want}", hint=_HINT)
    return Snapshot(arrays, str(path))


_HINT = "written by bhemu run --save of the same version"
