"""The state of a chip outside of it: its tiles, its memory, what is under way; one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import __version__, arguments, errors, snapshot
from bhemu.errors import BhemuError, InputError
from bhemu.jit.keys import layout
from bhemu.machine.chip_runner import ChipRunner
from bhemu.noc import saved
from bhemu.noc.grid import TILES
from bhemu.noc.network import Network, Pages
from bhemu.noc.record import MEMORIES, MEMORY_PAGE, MEMORY_PAGES, ChipState
from bhemu.program import arrays as archives
from bhemu.program import files
from bhemu.snapshot import Snapshot
from bhemu.tensix.state import DTYPE
from bhemu.tile import Tile

_LAYOUT = hashlib.sha256(layout(DTYPE).encode()).hexdigest()[:20]
_META_BYTES = 16 << 20
_HINT = "written by ChipSnapshot.save of the same version"
_DAMAGE = (
    archives.UnreadableError,
    *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True)
class ChipSnapshot:
    """A chip's state: `tiles` by number, `arrays` of its record by member, `pages` of memory.

    `about` holds what is no array: harvested columns, banks, the error.
    """

    tiles: Mapping[int, Snapshot]
    arrays: Mapping[str, npt.NDArray[Any]]
    pages: Pages
    about: Mapping[str, Any]
    origin: str = "the chip"
    error: BhemuError | None = None

    def __repr__(self) -> str:
        clock = int(self.arrays["clock"][0])
        return f"<ChipSnapshot of {len(self.tiles)} tiles at clock {clock}, from {self.origin}>"

    def save(self, path: str | Path) -> None:
        """Write one .npz file: the records of the tiles whole, but for host addresses."""
        held: dict[str, Any] = {f"chip_{name}": value for name, value in self.arrays.items()}
        held |= {f"page_{which}_{page}": data for (which, page), data in self.pages.items()}
        about = {t: tile.about for t, tile in self.tiles.items()}
        meta = {"bhemu": __version__, "schema": snapshot.SCHEMA, "layout": _LAYOUT, **self.about}
        meta["tiles"] = about
        meta["pages"] = list(self.pages)
        for t, tile in self.tiles.items():
            held[f"tile{t}"] = _whole(tile)
            for i, symbols in enumerate(tile.images):
                held[f"elf{t}_{i}"] = np.frombuffer(symbols.data, np.uint8)
        held["meta"] = np.array(json.dumps(meta))
        files.write_whole(
            arguments.path(path), lambda file: np.savez_compressed(file, **held), "snapshot"
        )

    @classmethod
    def load(cls, path: str | Path) -> ChipSnapshot:
        """Read what `save` wrote; InputError when it is missing, damaged or of another version."""
        path = arguments.path(path)
        try:
            with archives.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
                return _read(archive, str(path))
        except _DAMAGE as error:
            raise InputError(f"{path}: not a saved chip: {error}", hint=_HINT) from error


def _whole(tile: Snapshot) -> npt.NDArray[np.uint8]:
    """A tile's record as bytes, without host addresses."""
    buffer = np.zeros(DTYPE.itemsize, np.uint8)
    record = buffer.view(DTYPE)
    for name, value in tile.arrays.items():
        record[name][0] = value
    return buffer


def _read(archive: archives.Archive, origin: str) -> ChipSnapshot:
    meta = json.loads(str(archive.array("meta", _META_BYTES)))
    snapshot.check_schema(meta, origin)
    if meta["layout"] != _LAYOUT:
        text = f"{origin} was saved by bhemu {meta['bhemu']} with another layout of the record"
        raise InputError(text, hint=_HINT)
    tiles = {}
    for number, about in meta.pop("tiles").items():
        t = int(number)
        buffer = np.array(archive.array(f"tile{t}", DTYPE.itemsize), np.uint8)
        if buffer.shape != (DTYPE.itemsize,):
            raise InputError(f"{origin}: tile{t} has another size", hint=_HINT)
        error = errors.from_dict(about["error"]) if about.get("error") else None
        images = snapshot.images_of(archive, f"elf{t}_", about)
        tiles[t] = snapshot.of_record(buffer, about, images, error)
        snapshot.check_values(tiles[t].arrays, Path(origin))
    arrays = {}
    for member in saved.SAVED:
        made = archive.array(f"chip_{member.name}", 1 << 16)
        arrays[member.name] = np.array(made, member.dtype).reshape(member.shape)
    pages = {}
    for which, page in meta.pop("pages"):
        if not 0 <= which < MEMORIES or not 0 <= page < MEMORY_PAGES:
            raise InputError(f"{origin}: no page {page} of memory {which}", hint=_HINT)
        data = np.array(archive.array(f"page_{which}_{page}", MEMORY_PAGE), np.uint8)
        pages[which, page] = data.reshape(MEMORY_PAGE)
    error = errors.from_dict(meta["error"]) if meta.get("error") else None
    return ChipSnapshot(tiles, arrays, pages, meta, origin, error)


def take(network: Network, tiles: Mapping[int, Tile], runner: ChipRunner) -> ChipSnapshot:
    """The state of a chip as it stands."""
    about = {
        "harvested": list(network.grid.harvested),
        "banks": network.grid.banks,
        "broken": runner.broken,
        "error": None if runner.error is None else runner.error.as_dict(),
    }
    return ChipSnapshot(
        {t: tile.snapshot() for t, tile in tiles.items()},
        {m.name: getattr(network.state, m.name).copy() for m in saved.SAVED},
        {place: page.copy() for place, page in network.pages.items()},
        about,
        error=runner.error,
    )


def check(network: Network, snap: ChipSnapshot) -> None:
    """InputError unless a chip of this shape can hold the state."""
    own = [list(network.grid.harvested), network.grid.banks]
    theirs = [snap.about["harvested"], snap.about["banks"]]
    if own != theirs:
        raise InputError(
            f"{snap.origin} is of a chip with {theirs[0] or 'no'} harvested columns and"
            f" {theirs[1]} banks of DRAM",
            hint="make the chip with the same harvest and dram_banks",
        )
    working = {t for t in range(TILES) if network.state.column[t] >= 0}
    if not snap.tiles.keys() <= working:
        raise InputError(f"{snap.origin} has a tile that this chip has not", hint=_HINT)
    endpoints = set(np.unique(network.state.map).tolist())
    wrong = [saved.check_tile(tile.arrays, endpoints) for tile in snap.tiles.values()]
    wrong.append(saved.check_chip(snap.arrays, snap.tiles))
    if any(wrong):
        raise InputError(f"{snap.origin}: {next(filter(None, wrong))}", hint=_HINT)


def restore(
    network: Network, tiles: Mapping[int, Tile], runner: ChipRunner, snap: ChipSnapshot
) -> None:
    """Put back what `take` took; `tiles`: all that it has, and those that did not exist then."""
    for t, tile in tiles.items():
        if t in snap.tiles:
            tile.restored(snap.tiles[t])
        else:
            tile.reset()
    for name, value in snap.arrays.items():
        getattr(network.state, name)[...] = value
    network.replace_pages(snap.pages)
    runner.restored(snap.error, snap.about["broken"])


def reset(network: Network, tiles: Mapping[int, Tile], runner: ChipRunner) -> None:
    """Put the chip back to power-up."""
    fresh = ChipState()
    arrays = {m.name: getattr(fresh, m.name) for m in saved.SAVED}
    restore(network, tiles, runner, ChipSnapshot({}, arrays, {}, {"broken": None}))
