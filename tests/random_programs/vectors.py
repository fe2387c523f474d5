"""Vector files: what ttsim computed for chosen generated programs, replayed without the library.

A program is made again from (unit, seed, index); the file holds a digest of its image, what the
program changed in L1, and how often it exercises each (mnemonic, mode, format).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import InputError
from bhemu.memmap import L1_SIZE
from bhemu.oracle.libttsim import Library, Outcome
from random_programs.plan import Plan
from random_programs.units import generate

SEED = 2
GENERATOR = "random_programs.units, seed 2"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Choice:
    """Which programs of a unit become vectors: until every cell has `least`, at most `most`.

    `step` and `first` pick the candidates: for the vector unit those with short blocks, because
    after a long one few lanes are still on; the programs of `always`, long ones, come besides.
    """

    least: int
    most: int
    first: int = 0
    step: int = 1
    always: tuple[int, ...] = ()


CHOICES: Mapping[str, Choice] = {
    "front": Choice(8, 3),
    "scalar": Choice(1, 1),
    "config": Choice(100, 3),
    "sync": Choice(100, 3),
    "adc": Choice(100, 4),
    "matrix": Choice(3, 49),
    "vector": Choice(6, 42, first=3, step=4, always=(0, 1)),
    "unpack": Choice(3, 36),
    "pack": Choice(16, 9),
    "copy": Choice(16, 3),
    "accept": Choice(1, 137),
}
_CANDIDATES = 120  # programs that are looked at
_GAP = 16  # equal bytes that two changed pieces may have between them
_UNTIL_CLOCKS = 200_000


def forms(plan: Plan) -> Counter[Key]:
    """How often a program exercises each (mnemonic, mode, format)."""
    return Counter(step.key for block in plan.blocks for step in block)


def chosen(unit: str) -> Iterator[Plan]:
    """The unit's programs, always the same ones."""
    choice = CHOICES[unit]
    if unit == "accept":
        yield from (generate(unit, SEED, index) for index in range(choice.most))
        return
    yield from (generate(unit, SEED, index) for index in choice.always)
    have: Counter[Key] = Counter()
    taken = len(choice.always)
    for i in range(_CANDIDATES):
        if taken == choice.most:
            return
        plan = generate(unit, SEED, choice.first + choice.step * i)
        new = forms(plan)
        if any(have[key] < choice.least for key in new):
            have += new
            taken += 1
            yield plan


@dataclass(frozen=True)
class Vector:
    """One program's expected end: its kind, and what it changed in L1 (digest only for accept)."""

    index: int
    image: str
    outcome: Mapping[str, str]
    pieces: tuple[tuple[int, bytes], ...]
    digest: str

    def expected(self, image: bytes) -> npt.NDArray[np.uint8]:
        """All of L1 after the program."""
        l1 = np.zeros(L1_SIZE, np.uint8)
        l1[: len(image)] = np.frombuffer(image, np.uint8)
        for address, data in self.pieces:
            l1[address : address + len(data)] = np.frombuffer(data, np.uint8)
        return l1


def digest(data: bytes | npt.NDArray[np.uint8]) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(bytes(data)).hexdigest()


def _changes(image: bytes, after: npt.NDArray[np.uint8]) -> tuple[tuple[int, bytes], ...]:
    before = np.zeros(L1_SIZE, np.uint8)
    before[: len(image)] = np.frombuffer(image, np.uint8)
    changed = np.flatnonzero(before != after)
    if changed.size == 0:
        return ()
    cuts = np.flatnonzero(np.diff(changed) > _GAP)
    starts = changed[np.concatenate(([0], cuts + 1))]
    ends = changed[np.concatenate((cuts, [changed.size - 1]))] + 1
    return tuple((int(a), after[a:b].tobytes()) for a, b in zip(starts, ends, strict=True))


def make(library: Library, unit: str) -> tuple[list[Vector], Counter[Key]]:
    """Run the unit's programs on ttsim: their vectors and the coverage."""
    vectors, counts = [], Counter[Key]()
    for plan in chosen(unit):
        case = plan.case()
        outcome = library.run(case, clocks=_UNTIL_CLOCKS if unit == "accept" else 1_000_000)
        if unit != "accept" and not outcome.done:
            raise InputError(f"{plan.name} does not end on this library: {outcome}")
        vectors.append(_vector(plan, case.image, outcome))
        if outcome.done:
            counts += forms(plan)
    return vectors, counts


def _vector(plan: Plan, image: bytes, outcome: Outcome) -> Vector:
    whole = outcome.l1
    kept = () if whole is None or plan.unit == "accept" else _changes(image, whole)
    ends = {"kind": outcome.kind, "category": outcome.category}
    return Vector(plan.index, digest(image), ends, kept, "" if whole is None else digest(whole))


def save(
    path: Path,
    unit: str,
    vectors: list[Vector],
    counts: Mapping[Key, int],
    provenance: Mapping[str, str],
) -> None:
    """Write one vector file."""
    pieces = [piece for vector in vectors for piece in vector.pieces]
    meta = {
        "provenance": {**provenance, "generator": GENERATOR, "unit": unit, "seed": SEED},
        "programs": [
            {
                "index": v.index,
                "image": v.image,
                "outcome": dict(v.outcome),
                "pieces": len(v.pieces),
                "l1": v.digest,
            }
            for v in vectors
        ],
        "coverage": [[*key, n] for key, n in sorted(counts.items())],
    }
    data = b"".join(data for _, data in pieces)
    np.savez_compressed(
        path,
        meta=np.array(json.dumps(meta, indent=0)),
        addresses=np.array([a for a, _ in pieces], np.uint32),
        lengths=np.array([len(d) for _, d in pieces], np.uint32),
        data=np.frombuffer(data, np.uint8),
    )


def load(path: Path) -> tuple[dict[str, Any], list[Vector]]:
    """meta and vectors of a file that `save` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        meta: dict[str, Any] = json.loads(str(archive["meta"]))
        data = archive["data"].tobytes()
        addresses, lengths = archive["addresses"].tolist(), archive["lengths"].tolist()
    ends = np.cumsum([0, *lengths]).tolist()
    pieces = [(a, data[ends[i] : ends[i + 1]]) for i, a in enumerate(addresses)]
    vectors, at = [], 0
    for row in meta["programs"]:
        own = tuple(pieces[at : at + row["pieces"]])
        at += row["pieces"]
        vectors.append(Vector(row["index"], row["image"], row["outcome"], own, row["l1"]))
    return meta, vectors


def coverage(folder: Path) -> Counter[Key]:
    """Vectors per (mnemonic, mode, format) in all files of a folder."""
    counts: Counter[Key] = Counter()
    for path in sorted(folder.glob("*.npz")):
        if path.stem != "accept":
            for mnemonic, mode, form, n in load(path)[0]["coverage"]:
                counts[mnemonic, mode, form] += n
    return counts
