"""One program as both models run it: an L1 image, where the cores start, when it is finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.memmap import CORE_NAMES, L1_SIZE

SECONDS = 60.0  # a run may take
TRISC_STARTS = {"trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000}
DONE = ((0x100, 0xD0E0), (0x104, 0xD0E1), (0x108, 0xD0E2))


@dataclass(frozen=True)
class Case:
    """An L1 image (bytes, zero-extended to all of L1), the cores to release, the end condition.

    `starts` maps a core's name to its start address (brisc always starts at 0), `held` does so for
    cores that the program itself releases. `until` holds (L1 address, value) pairs that all must
    hold; without any the run ends when L1 equals `goal`, or at its limit. `regions` names parts of
    L1 as (name, address, size) for reports.
    """

    image: bytes
    starts: Mapping[str, int] = field(default_factory=lambda: dict(TRISC_STARTS))
    until: Sequence[tuple[int, int]] = DONE
    regions: Sequence[tuple[str, int, int]] = ()
    name: str = ""
    held: Mapping[str, int] = field(default_factory=dict)
    goal: bytes = b""

    def __post_init__(self) -> None:
        assert len(self.image) <= L1_SIZE, f"{len(self.image):#x} bytes do not fit L1"
        assert self.starts.keys() <= set(CORE_NAMES), self.starts
        assert self.until or self.goal, "a case needs an end condition"

    def place(self, address: int) -> str:
        """An L1 address as "region + offset", or as it is."""
        for name, start, size in self.regions:
            if start <= address < start + size:
                return f"{name} + {address - start:#x} (L1 {address:#x})"
        return f"L1 {address:#x}"


@dataclass(frozen=True)
class Outcome:
    """What became of a case on one model.

    kind: "done" (then `l1` is all of L1, uint8), "error" (category and text), "unfinished" (the
    clock limit came first, as with a deadlock), "timeout" or "crash". `seconds` is the time from
    the release of the cores to the end.
    """

    kind: str
    l1: npt.NDArray[np.uint8] | None = None
    category: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """The end condition was reached."""
        return self.kind == "done"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values, without the image."""
        return {
            "kind": self.kind,
            "category": self.category,
            "text": self.text,
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        if self.kind == "error":
            return f"{self.category}: {self.text}"
        return self.kind if not self.text else f"{self.kind} ({self.text})"
