"""Machine code that a wheel carries, for levels of x86-64 and exactly the sources in the wheel.

It needs no key: it was made from these sources, whatever Python, NumPy or numba is here.  When a
source has been edited, on another processor, or when the environment asks for other code, it is as
if it were absent.  scripts/make_objects.py makes the files.
"""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from bhemu.jit import host, sources

FOLDER = sources.PACKAGE / "data"
_DIGEST = 32


def pack(images: dict[str, bytes]) -> bytes:
    """The content of the file that holds packed images by the labels of their entries."""
    places: dict[str, tuple[int, int]] = {}
    body = bytearray()
    for label, image in images.items():
        places[label] = len(body), len(image)
        body += hashlib.sha256(label.encode() + b"\0" + image).digest() + image
    head = json.dumps({"sources": sources.fingerprint(), "entries": places}).encode()
    return len(head).to_bytes(4, "little") + head + body


@functools.cache
def _entries(folder: Path) -> tuple[Path, int, dict[str, Any]]:
    """(file, where its first image begins, places by label); no places where none counts."""
    path = folder / f"{host.level()}.code"
    nothing: tuple[Path, int, dict[str, Any]] = path, 0, {}
    if host.settings():
        return nothing
    try:
        with path.open("rb") as opened:
            size = int.from_bytes(opened.read(4), "little")
            head = json.loads(opened.read(size))
    except (OSError, ValueError):
        return nothing
    if head["sources"] != sources.fingerprint():
        return nothing
    return path, 4 + size, head["entries"]


def find(label: str) -> bytes | None:
    """The packed image of an entry; None where there is none, or a damaged one."""
    path, begin, places = _entries(FOLDER)
    if label not in places:
        return None
    at, length = places[label]
    with path.open("rb") as opened:
        opened.seek(begin + at)
        digest, image = opened.read(_DIGEST), opened.read(length)
    return image if digest == hashlib.sha256(label.encode() + b"\0" + image).digest() else None
