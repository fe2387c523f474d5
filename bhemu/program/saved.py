"""A saved state as a program: what a run, a step or a question begins from."""

import json
from pathlib import Path
from typing import Any

from bhemu.errors import InputError
from bhemu.program import files
from bhemu.program.arrays import Archive, UnreadableError
from bhemu.program.specs import ChipSpec, Program, TileSpec

KIND = "state"
_META_BYTES = 16 << 20
_HINT = "written by bhemu run --save, bhemu simulator --keep, or snapshot().save()"


def program(path: Path) -> Program:
    """What begins at the state in `path`, of a tile or of a chip; InputError for no such file."""
    if files.is_missing(path):
        raise InputError(f"{path}: no such file", hint=_HINT)
    try:
        with Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
            about = json.loads(str(archive.array("meta", _META_BYTES)))
        return _of(path, about)
    except (UnreadableError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not a saved state: {error}", hint=_HINT) from error


def _of(path: Path, about: dict[str, Any]) -> Program:
    if "tiles" not in about:
        return Program(path.stem, KIND, {}, path=path, image=path)
    placed = [tuple(int(n) for n in tile["tile"]) for tile in about["tiles"].values()]
    tiles = tuple(TileSpec(((x, y),), {}) for x, y in sorted(placed))
    chip = ChipSpec(tuple(about["harvested"]), int(about["banks"]))
    return Program(path.stem, KIND, {}, path=path, image=path, tiles=tiles, chip=chip)
