"""The state of a tile outside of it: taken from a live tile, written to and read from one .npz."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import __version__
from bhemu.errors import InputError
from bhemu.program import arrays, files
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
    files.write_whole(path, lambda file: np.savez_compressed(file, **arrays), "--save")


def load_state(path: Path) -> Snapshot:
    """Read what `save_state` wrote; InputError when it is missing, damaged or of another shape."""
    try:
        with arrays.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
            held = {member.name: _member(archive, member, path) for member in SAVED}
    except arrays.UnreadableError as error:
        raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error
    return Snapshot(held, str(path))


def _member(archive: arrays.Archive, member: Member, path: Path) -> npt.NDArray[Any]:
    """The array of a member; nothing is unpacked unless its type and shape are right."""
    if member.name not in archive:
        raise InputError(f"{path}: no array {member.name}", hint=_HINT)
    header = archive.header(member.name)
    want = np.dtype(member.dtype)
    if header.shape != member.shape or header.dtype != want:
        text = f"{header.dtype} {list(header.shape)}, not {want} {list(member.shape)}"
        raise InputError(f"{path}: {member.name} is {text}", hint=_HINT)
    return archive.array(member.name, header.size)


_HINT = "written by bhemu run --save of the same version"
