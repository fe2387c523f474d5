"""Saved states: of a machine and of each tile, written to and read from files."""

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
from bhemu.errors import BhemuError, InputError
from bhemu.jit import record
from bhemu.jit.record import Member
from bhemu.machine.stop import EndCondition
from bhemu.noc import record as noc_saved
from bhemu.noc.grid import XY, Grid, number_at
from bhemu.noc.network import Network, Pages
from bhemu.noc.record import MEMORIES, MEMORY_PAGE, MEMORY_PAGES, ChipState
from bhemu.program import files, input_files
from bhemu.program.elf import Move, Symbols
from bhemu.riscv import turn
from bhemu.tensix.state import CORES, DTYPE, HALTED, MAPPED, MEMBERS, POINTERS, TIMED
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.machine.machine import Machine
    from bhemu.machine.tile import Tile

# The state of a tile outside of it: taken from a live tile, put back, as arrays of a file.

SCHEMA = 1
"""Of saved states, of tiles and of chips: what their members and `meta` mean."""
REGS = next(member for member in MEMBERS if member.name == "regs")
SAVED = tuple(member for member in MEMBERS if member.name not in POINTERS)
"""What a saved state holds: the record without host addresses, and the cores' registers."""

HOSTS = (
    *("breakpoint", "breakpoint_count", "breakpoint_skip", "retired_limit", "executed_limit"),
    *("until_count", "until_address", "until_value", "limit", "trace", "log_end"),
    *("watch_count", "watchpoint", "watch_mask", "watched", "watch_hit", "watch_old", "watch_pc"),
    *("watch_read", "word_break_count", "word_break", "word_break_hit", "word_break_seen"),
    *turn.MEMBERS,
    "scratch",
    *("log", "log_clock", "log_write", "log_read", "profile_ticks", "profile_calls"),
    *("profile_since", "profile_part", "translated"),
    *("time_slice", "look_every", "look_left", "leave_at", "attention"),
    *("code_page", "translate_after", "page_count"),
)
"""Members that say how a host looks on: no part of what `restore` puts back."""
_RESTORED = tuple(m.name for m in MEMBERS if m.name not in (*POINTERS, *HOSTS))
_BEGUN = ("unit_begun", "unit_begun_at")
_SOURCES = ("noc_source", "noc_source_next", "noc_source_late")
# In this order, since the first state.
_ADDED = (("pack_sum",), TIMED, ("ethernet", "first_sp"), ("l0_filled",), _BEGUN, _SOURCES)
_BEFORE = {"second": (8,)}  # shapes of pointers, before TIMED was added
LATER = tuple(name for names in _ADDED for name in names)
"""Members that states of this schema may lack: 0 is what they held."""
_MOST = {"core_state": HALTED, "gate_core": CORES - 1, "src_fmt": 255, "cc_depth": 8, "mop_on": 2}
_TIMES = ("without times", 'with timing = "model"', "with late")  # by `timed` of the record
_QUEUES = ("fifo", "mailbox", "pcbuf")
_SAVED_TILE_HINT = "written by bhemu run --save of the same version"


class TileState:
    """A tile's state: the arrays by member name (tensix/state.py) as attributes, and `regs`.

    `origin` names it in messages; `about` holds what is no array: coordinates, seed, end of the
    program, error, loaded ELFs.
    """

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[Any]],
        origin: str,
        about: Mapping[str, Any] | None = None,
        images: tuple[Symbols, ...] = (),
    ) -> None:
        self.arrays, self.origin = arrays, origin
        self.about = dict(about or {})
        self.images = images
        self.error: BhemuError | None = None

    @property
    def xy(self) -> tuple[int, int]:
        """The tile's coordinate."""
        x, y = self.about.get("tile", (0, 0))
        return int(x), int(y)

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        try:
            return self.__dict__["arrays"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"the state has no member {name}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.arrays})

    def __repr__(self) -> str:
        x, y = self.about.get("tile", ("?", "?"))
        clock = self.about.get("clock")
        return f"<TileState of tile ({x},{y}) at clock {clock}, from {self.origin}>"

    def held(self) -> dict[str, Any]:
        """The arrays of a file: members by name and type, `regs`, the loaded ELFs.

        `regs` is uint32 (5, 32), x0-x31 of each core in the record's order; `elf0`, `elf1`, ...
        are the ELFs. Host addresses are left out.
        """
        elfs = (np.frombuffer(symbols.data, np.uint8) for symbols in self.images)
        return {**self.arrays, **{f"elf{i}": elf for i, elf in enumerate(elfs)}}


def read(archive: input_files.Archive, about: Mapping[str, Any], path: Path) -> TileState:
    """What `held` gave, from a file.

    A state of an older version may lack what only says how a host looked on, or what notes are made
    from: it counts as zero.
    """
    arrays = {member.name: _member(archive, member, path) for member in SAVED}
    state = TileState(arrays, str(path), about, images_of(archive, "elf", about))
    if about.get("error"):
        state.error = errors.from_dict(about["error"])
    check_values(arrays, path)
    return state


def _member(archive: input_files.Archive, member: Member, path: Path) -> npt.NDArray[Any]:
    """The array of a member; nothing is unpacked unless its type and shape are right."""
    if member.name not in archive and member.name in (*HOSTS, *LATER) and REGS.name in archive:
        return np.zeros(member.shape, member.dtype)
    if member.name not in archive:
        raise InputError(f"{path}: no array {member.name}", hint=_SAVED_TILE_HINT)
    header = archive.header(member.name)
    want = np.dtype(member.dtype)
    if header.shape != member.shape or header.dtype != want:
        text = f"{header.dtype} {list(header.shape)}, not {want} {list(member.shape)}"
        raise InputError(f"{path}: {member.name} is {text}", hint=_SAVED_TILE_HINT)
    return archive.array(member.name, header.size)


def check_schema(about: Mapping[str, Any], origin: str) -> None:
    """InputError for a state whose schema this version does not know; the first had no number."""
    schema = about.get("schema", 1)
    if schema != SCHEMA:
        raise InputError(
            f"{origin}: a saved state of schema {schema!r}, written by bhemu {about.get('bhemu')};"
            f" bhemu {__version__} reads schema {SCHEMA}",
            hint="save it anew with this version, or look at it with that one",
        )


def check_values(held: Mapping[str, npt.NDArray[Any]], path: Path) -> None:
    """InputError for a number that no tile holds, where it chooses or counts what is shown."""
    for name, most in _MOST.items():
        if (held[name] < 0).any() or (held[name] > most).any():
            raise InputError(f"{path}: {name} is not within 0..{most}", hint=_SAVED_TILE_HINT)
    for name in _QUEUES:
        first, end = held[f"{name}_read"], held[f"{name}_write"]
        depth = held[name].shape[-1]
        if (first < 0).any() or (end < first).any() or (end - first > depth).any():
            raise InputError(f"{path}: {name} holds no 0 to {depth} entries", hint=_SAVED_TILE_HINT)


def images_of(
    archive: input_files.Archive, prefix: str, about: Mapping[str, Any]
) -> tuple[Symbols, ...]:
    """The loaded ELFs that a saved tile names, from the arrays `prefix`0, `prefix`1, ..."""
    most = files.limit("ELF_BYTES")
    return tuple(
        Symbols(
            archive.array(f"{prefix}{i}", most).tobytes(),
            printable(elf["path"]),
            elf["offset"],
            [Move(*move) for move in elf["moves"]],
        )
        for i, elf in enumerate(about.get("images", ()))
    )


def take(tile: Tile) -> TileState:
    """The state of a live tile."""
    return of_record(whole_record(tile), *outside(tile), tile.error)


def whole_record(tile: Tile) -> npt.NDArray[np.uint8]:
    """A copy of the record's bytes, the cores' registers in it."""
    buffer = tile.state.buffer.copy()
    buffer.view(DTYPE)[REGS.name][0] = np.stack([core.regs for core in tile.core.values()])
    return buffer


def of_record(
    buffer: npt.NDArray[np.uint8],
    about: Mapping[str, Any],
    images: tuple[Symbols, ...],
    error: BhemuError | None,
) -> TileState:
    """The state whose arrays are views of `buffer`, as `whole_record` gave it."""
    record = buffer.view(DTYPE)
    arrays = {m.name: record[m.name][0] for m in MEMBERS if m.name not in POINTERS}
    state = TileState(arrays, "the tile", about, images)
    state.error = error
    return state


def outside(tile: Tile) -> tuple[dict[str, Any], tuple[Symbols, ...]]:
    """What a state holds beside the record: JSON-ready values and the loaded ELFs.

    The end of the program is the machine's: it stands here for a tile that is alone.
    """
    cores, alone = tile.core.values(), tile.network is None
    end = tile.loop.end if alone else EndCondition()
    error = tile.loop.error if alone else None
    about = {
        "seed": tile.seed,
        "poison": tile.poison or "off",
        "tile": list(tile.xy),
        "clock": tile.clock,
        "end": [[(at, value) for _, at, value in end.words], end.clock, end.timeout_s],
        "error": None if error is None else error.as_dict(),
        "seen": [[core, retired] for core, retired in tile.stepping.seen.items()],
        "first": [own.first for own in tile.loaded],
        "ranges": tile.ranges,
        "images": [
            {
                "core": core.name,
                "path": symbols.path,
                "offset": symbols.offset,
                "moves": symbols.moves,
            }
            for core in cores
            for symbols in core.images
        ],
    }
    images = tuple(symbols for core in cores for symbols in core.images)
    return json.loads(json.dumps(about)), images


def restore(tile: Tile, state: TileState) -> None:
    """Put everything back that `take` took; breakpoints and traces stay as they are."""
    about, s = state.about, tile.state
    if "first" not in about:
        raise InputError(f"{state.origin} cannot be restored", hint=_SAVED_TILE_HINT)
    kept, here = (_TIMES[int(n)] for n in (state.arrays["timed"][0], s.timed[0]))
    if kept != here:
        raise InputError(f"{state.origin} is of a machine {kept}, this one is {here}")
    for name in _RESTORED:
        getattr(s, name)[...] = state.arrays[name]
    engine = tile.backend.engine
    for c in range(CORES):
        for number in range(1, 32):
            engine.write_register(c, number, int(state.arrays[REGS.name][c, number]))
    engine.forget_code()
    tile.xy, tile.seed, tile.poison = state.xy, about["seed"], about["poison"]
    tile.ranges[:] = [(low, high, name) for low, high, name in about["ranges"]]
    for own, first in zip(tile.loaded, about["first"], strict=True):
        own.forget()
        own.first = first
    for elf, symbols in zip(about["images"], state.images, strict=True):
        tile.core[elf["core"]].images.append(symbols)
    tile.stepping.seen.clear()
    tile.stepping.seen.update(dict(about["seen"]))
    s.log_read[0] = s.log_write[0]
    s.breakpoint_skip[:] = s.word_break_seen[:] = 0


def _name(dtype: np.dtype[np.void]) -> str:
    from bhemu.jit.keys import layout  # much code that no run needs

    return hashlib.sha256(layout(dtype).encode()).hexdigest()[:20]


def _layouts() -> dict[str, np.dtype[np.void]]:
    """The types of a tile's record in files of this schema, by what they are called there."""
    known = [DTYPE]
    for i in range(len(_ADDED)):
        absent = tuple(name for names in _ADDED[i:] for name in names)
        shapes = _BEFORE if TIMED[0] in absent else {}
        kept = (m for m in MEMBERS if m.name not in absent)
        members = tuple(m._replace(shape=shapes.get(m.name, m.shape)) for m in kept)
        known.append(record.layout(members, MAPPED))
    return {_name(dtype): dtype for dtype in known}


_META_BYTES = 16 << 20
_HINT = "written by bhemu run --save, or Snapshot.save, of the same version"
_DAMAGE = (
    input_files.UnreadableError,
    *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True)
class NetworkState:
    """What lies between the tiles of a chip: its record by member, the pages of its memories.

    broken: number of the tile whose error stopped the chip.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    pages: Pages
    grid: Grid
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
    end: EndCondition | None = None  # of the program's runs; a file of a chip may lack it

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
        held = self.held()
        files.write_whole(
            arguments.path(path), lambda file: np.savez_compressed(file, **held), "snapshot"
        )

    def held(self) -> dict[str, Any]:
        """The arrays of a file by name."""
        meta: dict[str, Any] = {"bhemu": __version__, "schema": SCHEMA}
        if self.network is None:
            state = next(iter(self.tiles.values()))
            meta, held = {**meta, **state.about}, state.held()
            return {**held, "meta": np.array(json.dumps(meta))}
        network = self.network
        held = {f"chip_{name}": value for name, value in network.arrays.items()}
        held |= {f"page_{which}_{page}": data for (which, page), data in network.pages.items()}
        meta |= {
            "layout": _name(DTYPE),
            "harvested": list(network.grid.harvested),
            "banks": network.grid.banks,
            "place": [network.grid.number, network.grid.chips],
            "broken": network.broken,
            "error": None if self.error is None else self.error.as_dict(),
            "tiles": {number_at(xy): state.about for xy, state in self.tiles.items()},
            "pages": list(network.pages),
        }
        if self.end is not None:
            meta["end"] = [self.end.words, self.end.clock, self.end.timeout_s]
        for xy, state in self.tiles.items():
            t = number_at(xy)
            held[f"tile{t}"] = np.zeros(DTYPE.itemsize, np.uint8)  # without host addresses
            for name, value in state.arrays.items():
                held[f"tile{t}"].view(DTYPE)[name][0] = value
            for i, symbols in enumerate(state.images):
                held[f"elf{t}_{i}"] = np.frombuffer(symbols.data, np.uint8)
        return {**held, "meta": np.array(json.dumps(meta))}

    @classmethod
    def load(cls, path: str | Path) -> Snapshot:
        """Read what `save` wrote; InputError when it is missing, damaged or of another version."""
        path = arguments.path(path)
        return cls.of_bytes(files.read_bytes(path, "ARCHIVE_BYTES"), path)

    @classmethod
    def of_bytes(cls, data: bytes, path: Path) -> Snapshot:
        """As load(), of the content of a file."""
        try:
            with input_files.Archive(data) as archive:
                meta: dict[str, Any] = {}
                if "meta" in archive:
                    meta = json.loads(str(archive.array("meta", _META_BYTES)))
                check_schema(meta, str(path))
                if "tiles" in meta:
                    return _read_chip(archive, meta, path)
                return of_state(read(archive, meta, path), str(path))
        except _DAMAGE as error:
            raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error


def _read_chip(archive: input_files.Archive, meta: dict[str, Any], path: Path) -> Snapshot:
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
        for name in set(dtype.names or ()) - set(POINTERS):
            buffer.view(DTYPE)[name] = held.view(dtype)[name]
        error = errors.from_dict(about["error"]) if about.get("error") else None
        images = images_of(archive, f"elf{t}_", about)
        state = of_record(buffer, about, images, error)
        state.origin = origin
        if number_at(state.xy) != t:
            raise InputError(f"{origin}: tile{t} says that it is at {state.xy}", hint=_HINT)
        tiles[state.xy] = state
        check_values(state.arrays, path)
    arrays = {}
    grid = Grid(tuple(meta["harvested"]), meta["banks"], *meta.get("place", (0, 1)))
    for member in noc_saved.saved(grid.tiles):
        if f"chip_{member.name}" not in archive and member.name in noc_saved.LATER:
            arrays[member.name] = np.zeros(member.shape, member.dtype)
            continue
        made = archive.array(f"chip_{member.name}", 1 << 18)
        arrays[member.name] = np.array(made, member.dtype).reshape(member.shape)
    pages = {}
    for which, page in meta["pages"]:
        if not 0 <= which < MEMORIES or not 0 <= page < MEMORY_PAGES:
            raise InputError(f"{origin}: no page {page} of memory {which}", hint=_HINT)
        data = np.array(archive.array(f"page_{which}_{page}", MEMORY_PAGE), np.uint8)
        pages[which, page] = data.reshape(MEMORY_PAGE)
    error = errors.from_dict(meta["error"]) if meta.get("error") else None
    network = NetworkState(arrays, pages, grid, meta["broken"])
    return Snapshot(tiles, network, origin, error, _end(meta))


def _end(about: Mapping[str, Any], own: XY = (0, 0)) -> EndCondition | None:
    """The end of the program that a state names; `own`: the tile of words that name none."""
    if "end" not in about:
        return None
    words, clock, timeout_s = about["end"]
    parts = ((*([own] if len(word) == 2 else []), *word) for word in words)
    made = tuple(((int(x), int(y)), int(at), int(value)) for (x, y), at, value in parts)
    return EndCondition(made, clock, timeout_s)


def of_state(state: TileState, origin: str) -> Snapshot:
    """The snapshot of one tile."""
    end = _end(state.about, state.xy)
    return Snapshot({state.xy: state}, None, origin, state.error, end)


def of_tile(tile: Tile) -> Snapshot:
    """The state of one tile as it stands."""
    return of_state(take(tile), "the tile")


def of_machine(machine: Machine) -> Snapshot:
    """The state of a chip as it stands."""
    network, loop = machine.network, machine.loop
    between = NetworkState(
        noc_saved.held(network.state, network.grid.tiles),
        {place: page.copy() for place, page in network.pages.items()},
        network.grid,
        loop.rounds.broken,
    )
    tiles = {tile.xy: take(tile) for tile in machine.tiles_made()}
    return Snapshot(tiles, between, "the chip", loop.error, loop.end)


def _check_kind(snapshot: object, kind: str) -> Snapshot:
    if not isinstance(snapshot, Snapshot):
        hint = "Snapshot.load(path) reads a file"
        raise InputError(f"{snapshot!r} is no snapshot{kind}", hint=hint)
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
    restore(tile, state)
    tile.loop.end = snapshot.end or EndCondition()
    tile.loop.restored(snapshot.error, 0 if snapshot.error is not None else None)


def restore_machine(machine: Machine, snapshot: Snapshot) -> None:
    """Put a chip back to a state of one like it."""
    snapshot = _check_kind(snapshot, " of a chip")
    if snapshot.network is None:
        raise InputError(
            f"{snapshot.origin} is the state of a tile that is alone, and this is a chip",
            hint="Tile().restore() takes it, and so does every command that takes a program",
        )
    # InputError unless a chip of this shape can hold the state
    if machine.network.grid != snapshot.network.grid:
        raise InputError(
            f"{snapshot.origin} is of {snapshot.network.grid}",
            hint="make the chip with the same harvest and dram_banks",
        )
    numbers = {number_at(xy) for xy in snapshot.tiles}
    working = {t for t in range(machine.network.grid.tiles) if machine.network.state.column[t] >= 0}
    if not numbers <= working:
        raise InputError(f"{snapshot.origin} has a tile that this chip has not", hint=_HINT)
    endpoints = set(np.unique(machine.network.state.map).tolist())
    states, clock = snapshot.tiles.values(), int(snapshot.network.arrays["clock"][0])
    wrong = [noc_saved.check_tile(state.arrays, endpoints, clock) for state in states]
    wrong.append(noc_saved.check_chip(snapshot.network.arrays, numbers))
    if any(wrong):
        raise InputError(f"{snapshot.origin}: {next(filter(None, wrong))}", hint=_HINT)
    for xy in snapshot.tiles:
        machine.tile_at_index(number_at(xy))
    restore_checked(machine, snapshot)
    machine.loop.end = snapshot.end or machine.loop.end


def restore_checked(machine: Machine, snapshot: Snapshot) -> None:
    """Put a chip back to a state that it can hold; its other tiles are as after a reset."""
    network, saved = machine.network, snapshot.network
    assert saved is not None
    for tile in machine.tiles_made():
        state = snapshot.tiles.get(tile.xy)
        if state is None:
            tile.powered_up()
            continue
        restore(tile, state)
    for name, value in saved.arrays.items():
        getattr(network.state, name)[: len(value)] = value
    network.replace_pages(saved.pages)
    machine.loop.restored(snapshot.error, saved.broken)


def powered_up(network: Network) -> Snapshot:
    """The state of a chip after a reset."""
    fresh = ChipState()
    between = NetworkState(noc_saved.held(fresh, network.grid.tiles), {}, network.grid)
    return Snapshot({}, between)


def without_error(snapshot: Snapshot) -> Snapshot:
    """The same state, in which no error has stopped it: it is found anew."""
    made = replace(snapshot, error=None)
    for state in made.tiles.values():
        state.error = None
    return made
