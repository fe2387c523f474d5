"""The state of a tile outside of it: taken from a live tile, put back, as arrays of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bhemu import __version__, errors
from bhemu.errors import BhemuError, InputError
from bhemu.jit.record import Member
from bhemu.machine.stop import End
from bhemu.program import datafiles as archives
from bhemu.program import limits
from bhemu.program.symbols import Move, Symbols
from bhemu.riscv import polling
from bhemu.tensix.state import CORES, DTYPE, HALTED, MEMBERS, POINTERS
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

SCHEMA = 1
"""Of saved states, of tiles and of chips: what their members and `meta` mean."""
REGS = next(member for member in MEMBERS if member.name == "regs")
SAVED = tuple(member for member in MEMBERS if member.name not in POINTERS)
"""What a saved state holds: the record without host addresses, and the cores' registers."""

HOSTS = (
    *("breakpoint", "breakpoint_count", "breakpoint_skip", "retired_limit", "executed_limit"),
    *("until_count", "until_address", "until_value", "limit", "trace", "watch", "watch_before"),
    *("watch_count", "watchpoint", "watch_mask", "watched", "watch_hit", "watch_old", "watch_pc"),
    *("watch_read", "word_break_count", "word_break", "word_break_hit", "word_break_seen"),
    *polling.MEMBERS,
    *("watch_log", "log", "log_clock", "log_write", "log_read", "profile_ticks", "profile_calls"),
    *("profile_since", "profile_part", "translated"),
    *("time_slice", "look_every", "look_left", "leave_at", "attention"),
    *("code_page", "translate_after", "page_count"),
)
"""Members that say how a host looks on: no part of what `restore` puts back."""
_RESTORED = tuple(m.name for m in MEMBERS if m.name not in (*POINTERS, *HOSTS))
LATER = ("pack_sum",)
"""Members that states of this schema may lack: what notes are made from."""
_MOST = {"core_state": HALTED, "gate_core": CORES - 1, "src_fmt": 255, "cc_depth": 8, "mop_on": 2}
_QUEUES = ("fifo", "mailbox", "pcbuf")
_HINT = "written by bhemu run --save of the same version"


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

    def whole(self) -> npt.NDArray[np.uint8]:
        """The record as bytes, without host addresses."""
        buffer = np.zeros(DTYPE.itemsize, np.uint8)
        record = buffer.view(DTYPE)
        for name, value in self.arrays.items():
            record[name][0] = value
        return buffer


def read(archive: archives.Archive, about: Mapping[str, Any], path: Path) -> TileState:
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


def _member(archive: archives.Archive, member: Member, path: Path) -> npt.NDArray[Any]:
    """The array of a member; nothing is unpacked unless its type and shape are right."""
    if member.name not in archive and member.name in (*HOSTS, *LATER) and REGS.name in archive:
        return np.zeros(member.shape, member.dtype)
    if member.name not in archive:
        raise InputError(f"{path}: no array {member.name}", hint=_HINT)
    header = archive.header(member.name)
    want = np.dtype(member.dtype)
    if header.shape != member.shape or header.dtype != want:
        text = f"{header.dtype} {list(header.shape)}, not {want} {list(member.shape)}"
        raise InputError(f"{path}: {member.name} is {text}", hint=_HINT)
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
            raise InputError(f"{path}: {name} is not within 0..{most}", hint=_HINT)
    for name in _QUEUES:
        first, behind = held[f"{name}_read"], held[f"{name}_write"]
        depth = held[name].shape[-1]
        if (first < 0).any() or (behind < first).any() or (behind - first > depth).any():
            raise InputError(f"{path}: {name} holds no 0 to {depth} entries", hint=_HINT)


def images_of(
    archive: archives.Archive, prefix: str, about: Mapping[str, Any]
) -> tuple[Symbols, ...]:
    """The loaded ELFs that a saved tile names, from the arrays `prefix`0, `prefix`1, ..."""
    most = limits.limit("ELF_BYTES")
    return tuple(
        Symbols(
            archive.array(f"{prefix}{i}", most).tobytes(),
            printable(elf["path"]),
            elf["offset"],
            [Move(*move) for move in elf["moves"]],
        )
        for i, elf in enumerate(about.get("images", ()))
    )


def take(tile: Tile, seed: int, poison: str | None) -> TileState:
    """The state of a live tile."""
    about, images = outside(tile, seed, poison)
    return of_record(whole_record(tile), about, images, tile.error)


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


def outside(
    tile: Tile, seed: int, poison: str | None
) -> tuple[dict[str, Any], tuple[Symbols, ...]]:
    """What a state holds beside the record: JSON-ready values and the loaded ELFs.

    The end of the program is the machine's: it stands here for a tile that is alone.
    """
    cores, alone = tile.core.values(), tile.network is None
    end = tile.loop.end if alone else End()
    error = tile.loop.error if alone else None
    about = {
        "seed": seed,
        "poison": poison,
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
        raise InputError(f"{state.origin} cannot be restored", hint=_HINT)
    for name in _RESTORED:
        getattr(s, name)[...] = state.arrays[name]
    engine = tile.backend.engine
    for c in range(CORES):
        for number in range(1, 32):
            engine.write_register(c, number, int(state.arrays[REGS.name][c, number]))
    engine.forget_code()
    x, y = about["tile"]
    tile.xy = (x, y)
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


def end_of(state: TileState) -> End:
    """How the program of a tile that was alone ends."""
    words, clock, timeout_s = state.about["end"]
    return End(tuple((state.xy, at, value) for at, value in words), clock, timeout_s)
