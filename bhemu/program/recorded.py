"""Recorded sessions: what a host asked of a chip and what it got, in a file that runs as a program.

A file is a line that names it, a line of JSON (version, options of the chip) and, packed by zlib,
the acts in their order. It is whole at any time: what a process that was killed has not written is
missing at the end, and nothing else.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from bhemu.errors import InputError
from bhemu.program import files

MAGIC = b"bhemu session\n"
VERSION = 2  # of chips that are linked; that of a chip alone is 1
WRITE, READ, FETCH, STORE, END, SENT, ARRIVED = range(7)
"""What an act is: the host writes, reads; a kernel reads, writes the host's memory; the end; an
Ethernet tile has sent a packet, has received one (address: machine/ethernet.py)."""
ALONE = (0, 1)
_HEAD = Struct("<BBBxIQQ")  # kind, x, y, bytes, address, round
_FLUSH = 1 << 16  # bytes of acts after which the file is brought up to date
_HINT = "bhemu simulator FOLDER --record SESSION writes one"
XY = tuple[int, int]


class Act(NamedTuple):
    """One act: in which round of the chip, at which endpoint and address, the bytes."""

    kind: int
    round: int
    xy: XY
    address: int
    data: bytes


class Recorded(NamedTuple):
    """What a file holds: options of the chip by name, the acts.

    place: which chip it is, of how many that are linked.
    """

    options: Mapping[str, Any]
    acts: tuple[Act, ...]
    place: tuple[int, int] = ALONE

    @property
    def has_one_time(self) -> bool:
        """Whether others than the host act in it, so that it can be run in its own rounds alone."""
        return any(act.kind not in (WRITE, READ, END) for act in self.acts)


class Recorder:
    """Writes a session while it goes on."""

    def __init__(
        self, path: Path, options: Mapping[str, Any], place: tuple[int, int] = ALONE
    ) -> None:
        """InputError where the file cannot be written, or is another one than a session.

        place: which chip it is, of how many that are linked.
        """
        check_target(path)
        try:
            self._file = path.open("wb")
        except OSError as problem:
            raise InputError(f"{path}: cannot be written: {problem.strerror}") from problem
        self._pack, self._since = zlib.compressobj(6), 0
        values: dict[str, Any] = {"version": 1, "options": dict(options)}
        if place != ALONE:
            values |= {"version": VERSION, "place": list(place)}
        self._file.write(MAGIC + json.dumps(values, sort_keys=True).encode() + b"\n")
        self._file.flush()

    def act(self, kind: int, number: int, xy: XY, address: int, data: bytes) -> None:
        """An act has taken place in round `number`."""
        head = _HEAD.pack(kind, *xy, len(data), address, number)
        self._file.write(self._pack.compress(head + data))
        self._since += len(head) + len(data)
        if self._since > _FLUSH or kind == END:
            self._file.write(self._pack.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
            self._since = 0
        if kind == END:
            self._file.close()


def check_target(path: Path) -> None:
    """InputError where a session cannot be written to a path: another file is kept."""
    files.check_writable(path, "--record")
    if path.exists() and not files.begins_with(path, MAGIC):
        raise InputError(f"--record: {path} is there and no session", hint="name another file")


def read(path: Path) -> Recorded:
    """The session in a file; InputError where it is none, newer than this release, or too large."""
    data = files.read_bytes(path, "SESSION_BYTES")
    line, _, packed = data[len(MAGIC) :].partition(b"\n")
    try:
        head = json.loads(line)
        version, options = int(head["version"]), dict(head["options"])
        number, chips = (int(n) for n in head.get("place", ALONE))
    except (ValueError, LookupError, TypeError, RecursionError) as problem:
        raise InputError(f"{path}: not a recorded session: {problem}", hint=_HINT) from problem
    if not data.startswith(MAGIC) or version < 1:
        raise InputError(f"{path}: not a recorded session", hint=_HINT)
    if version > VERSION:
        text = f"{path}: a session of version {version}, this release reads up to {VERSION}"
        raise InputError(text, hint="pip install -U bhemu")
    return Recorded(options, tuple(_acts(path, packed)), (number, chips))


def _acts(path: Path, packed: bytes) -> Iterator[Act]:
    most = files.limit("SESSION_BYTES")
    try:
        data = zlib.decompressobj().decompress(packed, most + 1)
    except zlib.error as problem:
        raise InputError(f"{path}: damaged: {problem}", hint=_HINT) from problem
    files.check_limit("SESSION_BYTES", len(data), f"{path}: bytes, unpacked")
    at, last = 0, 0
    while at + _HEAD.size <= len(data):
        kind, x, y, size, address, number = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if kind > ARRIVED or number < last:
            raise InputError(f"{path}: damaged at byte {at} of its acts", hint=_HINT)
        if at + size > len(data):
            return  # its last act was never written
        yield Act(kind, number, (x, y), address, data[at : at + size])
        at, last = at + size, number
