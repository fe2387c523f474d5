"""The state of a machine outside of it: its tiles, its memory, what is under way; one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu import __version__, arguments, errors
from bhemu.devices.noc_map import tile_number
from bhemu.errors import BhemuError, InputError
from bhemu.jit import record
from bhemu.machine import saved_tile
from bhemu.machine.saved_tile import TileState
from bhemu.machine.stop import End
from bhemu.noc import saved as noc_saved
from bhemu.noc.grid import TILES, XY
from bhemu.noc.network import Network, Pages
from bhemu.noc.record import MEMORIES, MEMORY_PAGE, MEMORY_PAGES, ChipState
from bhemu.program import datafiles as archives
from bhemu.program import files
from bhemu.tensix.state import DTYPE, MAPPED, MEMBERS

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile


def _name(dtype: np.dtype[np.void]) -> str:
    from bhemu.jit.keys import layout  # much code that no run needs

    return hashlib.sha256(layout(dtype).encode()).hexdigest()[:20]


def _layouts() -> dict[str, np.dtype[np.void]]:
    """The types of a tile's record in files of this schema, by what they are called there."""
    before = record.layout(tuple(m for m in MEMBERS if m.name not in saved_tile.LATER), MAPPED)
    return {_name(dtype): dtype for dtype in (DTYPE, before)}


_META_BYTES = 16 << 20
_HINT = "written by bhemu run --save, or Snapshot.save, of the same version"
_DAMAGE = (
    archives.UnreadableError,
    *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True)
class NetworkState:
    """What lies between the tiles of a chip: its record by member, the pages of its memories.

    harvested: the columns; broken: number of the tile whose error stopped the chip.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    pages: Pages
    harvested: tuple[int, ...]
    banks: int
    broken: int | None = None


@dataclass(frozen=True, repr=False)
class Snapshot:
    """A machine's state: `tiles` by coordinate; `network` of a chip, None of a tile alone.

    Of one tile, what its state has can be had without naming it: `arrays`, `about`, `images`, the
    members of the record (`snapshot.sem`).
    """

    tiles: Mapping[XY, TileState]
    network: NetworkState | None = None
    origin: str = "the machine"
    error: BhemuError | None = None
    end: End | None = None  # of the program's runs; a file of a chip may lack it

    def __getattr__(self, name: str) -> Any:
        tiles = self.__dict__.get("tiles", {})
        if name.startswith("__") or not tiles:
            raise AttributeError(name)
        if len(tiles) > 1:
            raise AttributeError(f"{name}: of which of {len(tiles)} tiles? snapshot.tiles[x, y]")
        return getattr(next(iter(tiles.values())), name)

    def __dir__(self) -> list[str]:
        own = {*super().__dir__()}
        return sorted(own | {*dir(next(iter(self.tiles.values())))} if self._alone else own)

    @property
    def _alone(self) -> bool:
        return len(self.tiles) == 1

    def __repr__(self) -> str:
        what = f"{len(self.tiles)} tiles"
        if self._alone:
            x, y = next(iter(self.tiles))
            what = f"tile ({x},{y})"
        network = self.network
        clock = self.about.get("clock") if network is None else int(network.arrays["clock"][0])
        return f"<Snapshot of {what} at clock {clock}, from {self.origin}>"

    def save(self, path: str | Path) -> None:
        """Write one .npz file; `meta` in it is JSON.

        Of a tile alone it holds the members by name (TileState.held). Of a chip: `chip_NAME`,
        `page_MEMORY_NUMBER`, the record of each tile as a whole in `tileNUMBER`, its ELFs.
        """
        meta: dict[str, Any] = {"bhemu": __version__, "schema": saved_tile.SCHEMA}
        if self.network is None:
            state = next(iter(self.tiles.values()))
            meta, held = {**meta, **state.about}, state.held()
        else:
            held = self._held(self.network, meta)
        held["meta"] = np.array(json.dumps(meta))
        files.write_whole(
            arguments.path(path), lambda file: np.savez_compressed(file, **held), "snapshot"
        )

    def _held(self, network: NetworkState, meta: dict[str, Any]) -> dict[str, Any]:
        """The arrays of the file of a chip; what is no array goes into `meta`."""
        held: dict[str, Any] = {f"chip_{name}": value for name, value in network.arrays.items()}
        held |= {f"page_{which}_{page}": data for (which, page), data in network.pages.items()}
        meta |= {
            "layout": _name(DTYPE),
            "harvested": list(network.harvested),
            "banks": network.banks,
            "broken": network.broken,
            "error": None if self.error is None else self.error.as_dict(),
            "tiles": {tile_number(*xy): state.about for xy, state in self.tiles.items()},
            "pages": list(network.pages),
        }
        if self.end is not None:
            meta["end"] = [self.end.words, self.end.clock, self.end.timeout_s]
        for xy, state in self.tiles.items():
            t = tile_number(*xy)
            held[f"tile{t}"] = state.whole()
            for i, symbols in enumerate(state.images):
                held[f"elf{t}_{i}"] = np.frombuffer(symbols.data, np.uint8)
        return held

    @classmethod
    def load(cls, path: str | Path) -> Snapshot:
        """Read what `save` wrote; InputError when it is missing, damaged or of another version."""
        path = arguments.path(path)
        try:
            with archives.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
                meta: dict[str, Any] = {}
                if "meta" in archive:
                    meta = json.loads(str(archive.array("meta", _META_BYTES)))
                saved_tile.check_schema(meta, str(path))
                if "tiles" in meta:
                    return _read_chip(archive, meta, path)
                return of_state(saved_tile.read(archive, meta, path), str(path))
        except _DAMAGE as error:
            raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error


def _read_chip(archive: archives.Archive, meta: dict[str, Any], path: Path) -> Snapshot:
    origin = str(path)
    dtype = _layouts().get(meta["layout"])
    if dtype is None:
        text = f"{origin} was saved by bhemu {meta['bhemu']} with another layout of the record"
        raise InputError(text, hint=_HINT)
    tiles = {}
    for number, about in meta["tiles"].items():
        t = int(number)
        held = np.array(archive.array(f"tile{t}", dtype.itemsize), np.uint8)
        if held.shape != (dtype.itemsize,):
            raise InputError(f"{origin}: tile{t} has another size", hint=_HINT)
        buffer = np.zeros(DTYPE.itemsize, np.uint8)
        for name in dtype.names or ():
            buffer.view(DTYPE)[name] = held.view(dtype)[name]
        error = errors.from_dict(about["error"]) if about.get("error") else None
        images = saved_tile.images_of(archive, f"elf{t}_", about)
        state = saved_tile.of_record(buffer, about, images, error)
        state.origin = origin
        if tile_number(*state.xy) != t:
            raise InputError(f"{origin}: tile{t} says that it is at {state.xy}", hint=_HINT)
        tiles[state.xy] = state
        saved_tile.check_values(state.arrays, path)
    arrays = {}
    for member in noc_saved.SAVED:
        made = archive.array(f"chip_{member.name}", 1 << 16)
        arrays[member.name] = np.array(made, member.dtype).reshape(member.shape)
    pages = {}
    for which, page in meta["pages"]:
        if not 0 <= which < MEMORIES or not 0 <= page < MEMORY_PAGES:
            raise InputError(f"{origin}: no page {page} of memory {which}", hint=_HINT)
        data = np.array(archive.array(f"page_{which}_{page}", MEMORY_PAGE), np.uint8)
        pages[which, page] = data.reshape(MEMORY_PAGE)
    error = errors.from_dict(meta["error"]) if meta.get("error") else None
    columns = tuple(meta["harvested"])
    network = NetworkState(arrays, pages, columns, meta["banks"], meta["broken"])
    return Snapshot(tiles, network, origin, error, _end(meta))


def _end(meta: dict[str, Any]) -> End | None:
    """The end of the program that a file of a chip names."""
    if "end" not in meta:
        return None
    words, clock, timeout_s = meta["end"]
    made = tuple(((int(x), int(y)), int(at), int(value)) for (x, y), at, value in words)
    return End(made, clock, timeout_s)


def of_state(state: TileState, origin: str) -> Snapshot:
    """The snapshot of one tile."""
    end = saved_tile.end_of(state) if "end" in state.about else None
    return Snapshot({state.xy: state}, None, origin, state.error, end)


def of_tile(tile: Tile) -> Snapshot:
    """The state of one tile as it stands."""
    return of_state(saved_tile.take(tile, tile.seed, tile.poison), "the tile")


def of_machine(machine: Machine) -> Snapshot:
    """The state of a chip as it stands."""
    network, loop = machine.network, machine.loop
    made = machine.tiles_made()
    between = NetworkState(
        {m.name: getattr(network.state, m.name).copy() for m in noc_saved.SAVED},
        {place: page.copy() for place, page in network.pages.items()},
        tuple(network.grid.harvested),
        network.grid.banks,
        loop.rounds.broken,
    )
    tiles = {tile.xy: saved_tile.take(tile, tile.seed, tile.poison) for tile in made}
    return Snapshot(tiles, between, "the chip", loop.error, loop.end)


def _check_kind(snapshot: object, what: str) -> Snapshot:
    if not isinstance(snapshot, Snapshot):
        hint = "Snapshot.load(path) reads a file"
        raise InputError(f"{snapshot!r} is no snapshot{what}", hint=hint)
    return snapshot


def restore_tile(tile: Tile, snapshot: Snapshot) -> None:
    """Put a tile that is alone back to a state of one tile."""
    snapshot = _check_kind(snapshot, "")
    if snapshot.network is not None:
        count = len(snapshot.tiles)
        raise InputError(
            f"{snapshot.origin} is the state of a chip with {count} tile{'' if count == 1 else 's'}"
            " in use, and this is a tile that is alone",
            hint="Chip().restore() takes it, and so does every command that takes a program",
        )
    state = next(iter(snapshot.tiles.values()))
    saved_tile.restore(tile, state)
    tile.seed, tile.poison = state.about["seed"], state.about["poison"]
    tile.loop.end = snapshot.end or End()
    tile.loop.restored(snapshot.error, 0 if snapshot.error is not None else None)


def restore_machine(machine: Machine, snapshot: Snapshot) -> None:
    """Put a chip back to a state of one like it."""
    snapshot = _check_kind(snapshot, " of a chip")
    if snapshot.network is None:
        raise InputError(
            f"{snapshot.origin} is the state of a tile that is alone, and this is a chip",
            hint="Tile().restore() takes it, and so does every command that takes a program",
        )
    _check_fits(machine.network, snapshot, snapshot.network)
    for xy in snapshot.tiles:
        machine.tile_at_index(tile_number(*xy))
    put_back(machine, snapshot)
    machine.loop.end = snapshot.end or machine.loop.end


def _check_fits(network: Network, snapshot: Snapshot, saved: NetworkState) -> None:
    """InputError unless a chip of this shape can hold the state."""
    if (tuple(network.grid.harvested), network.grid.banks) != (saved.harvested, saved.banks):
        raise InputError(
            f"{snapshot.origin} is of a chip with {list(saved.harvested) or 'no'} harvested columns"
            f" and {saved.banks} banks of DRAM",
            hint="make the chip with the same harvest and dram_banks",
        )
    numbers = {tile_number(*xy) for xy in snapshot.tiles}
    working = {t for t in range(TILES) if network.state.column[t] >= 0}
    if not numbers <= working:
        raise InputError(f"{snapshot.origin} has a tile that this chip has not", hint=_HINT)
    endpoints = set(np.unique(network.state.map).tolist())
    wrong = [noc_saved.check_tile(state.arrays, endpoints) for state in snapshot.tiles.values()]
    wrong.append(noc_saved.check_chip(saved.arrays, numbers))
    if any(wrong):
        raise InputError(f"{snapshot.origin}: {next(filter(None, wrong))}", hint=_HINT)


def put_back(machine: Machine, snapshot: Snapshot) -> None:
    """Put a chip back to a state that it can hold; its other tiles are as after a reset."""
    network, saved = machine.network, snapshot.network
    assert saved is not None
    for tile in machine.tiles_made():
        state = snapshot.tiles.get(tile.xy)
        if state is None:
            tile.powered_up()
            continue
        saved_tile.restore(tile, state)
        tile.seed, tile.poison = state.about["seed"], state.about["poison"]
    for name, value in saved.arrays.items():
        getattr(network.state, name)[...] = value
    network.replace_pages(saved.pages)
    machine.loop.restored(snapshot.error, saved.broken)


def powered_up(network: Network) -> Snapshot:
    """The state of a chip after a reset."""
    fresh = ChipState()
    arrays = {m.name: getattr(fresh, m.name) for m in noc_saved.SAVED}
    return Snapshot({}, NetworkState(arrays, {}, tuple(network.grid.harvested), network.grid.banks))


def without_error(snapshot: Snapshot) -> Snapshot:
    """The same state, in which no error has stopped it: it is found anew."""
    made = replace(snapshot, error=None)
    for state in made.tiles.values():
        state.error = None
    return made
