"""What is late in a late run: a seed alone, or a seed and the acts that it delays."""

import re
from dataclasses import dataclass

from bhemu.arguments import MOST
from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import XY

UNITS = ("unpacker0", "unpacker1", "matrix", "vector", "packer", "mover")
_STORES = tuple(f"{core}_stores" for core in CORE_NAMES)
AGENTS = (*UNITS, *CORE_NAMES, "T0", "T1", "T2", *_STORES, "scalar_results")
"""What acts in time, by its number in the record of a tile."""
NOC = "noc"
MOST_ACTS = 16
_SEED = 0xFFFF_FFFF
_ACTS = re.compile(
    r"(?:(?P<x>\d{1,2})-(?P<y>\d{1,2})/)?(?P<agent>\w+)"
    r"(?:@(?P<pc>0x[0-9a-fA-F]{1,8}))?(?:#(?P<first>\d{1,18})(?P<to>-(?P<last>\d{0,18}))?)?"
)
_FORM = "SEED, or SEED:AGENT@PC#FIRST-LAST,... as in 7:packer@0x18190#3; docs/timing.md"


@dataclass(frozen=True)
class Acts:
    """Acts of one agent: those at `pc`, of these the `first` to the `last`, counted from 1.

    pc: None for all. last: None for all from the first on. tile: None for those of every tile.
    """

    agent: str
    pc: int | None = None
    first: int = 1
    last: int | None = None
    tile: XY | None = None

    def __str__(self) -> str:
        tile = "" if self.tile is None else "{}-{}/".format(*self.tile)
        pc = "" if self.pc is None else f"@{self.pc:#x}"
        count = "" if (self.first, self.last) == (1, None) else f"#{self.first}"
        if count and self.last != self.first:
            count += "-" if self.last is None else f"-{self.last}"
        return f"{tile}{self.agent}{pc}{count}"

    @property
    def row(self) -> tuple[int, int, int, int]:
        """As the record of a tile holds it: agent, pc or -1, first, last."""
        last = MOST if self.last is None else self.last
        pc = -1 if self.pc is None else self.pc
        return AGENTS.index(self.agent), pc, self.first, last


@dataclass(frozen=True)
class Lateness:
    """A seed; with `acts` these alone are late, without them what the seed draws."""

    seed: int
    acts: tuple[Acts, ...] = ()

    def __str__(self) -> str:
        return ":".join(filter(None, (str(self.seed), ",".join(map(str, self.acts)))))

    def of_tile(self, xy: XY) -> tuple[Acts, ...]:
        """The acts of a tile's own agents."""
        return tuple(one for one in self.acts if one.agent != NOC and one.tile in (None, xy))

    @property
    def requests(self) -> tuple[Acts, ...]:
        """Those of the NoC."""
        return tuple(one for one in self.acts if one.agent == NOC)


def lateness(name: str, value: int | str) -> Lateness:
    """The value of the option; InputError for one that names no seed, agent or count."""
    seed, colon, acts = str(value).partition(":")
    if isinstance(value, bool) or not seed.isdecimal() or int(seed) > _SEED or (colon and not acts):
        raise InputError(f"{name} = {value!r} is not known", hint=_FORM)
    found = tuple(_acts(name, part) for part in acts.split(",")) if acts else ()
    if len(found) > MOST_ACTS or sum(one.agent == NOC for one in found) > 1:
        hint = f"at most {MOST_ACTS} of them, and one of the NoC"
        raise InputError(f"{name} = {value!r} names too many acts", hint=hint)
    return Lateness(int(seed), found)


def _acts(name: str, text: str) -> Acts:
    found = _ACTS.fullmatch(text)
    if found is None:
        raise InputError(f"{name}: {text!r} names no acts", hint=_FORM)
    agent, pc = found["agent"], found["pc"]
    if agent not in (*AGENTS, NOC):
        raise InputError(f"{name}: no agent is called {agent!r}", hint=", ".join((*AGENTS, NOC)))
    first = int(found["first"] or 1)
    alone = found["first"] and not found["to"]
    to = int(found["last"]) if found["last"] else first if alone else None
    if agent == NOC and (first, to, found["x"]) != (1, None, None):
        raise InputError(f"{name}: {text!r}", hint="requests are named by their pc alone: noc@PC")
    if first < 1 or (to is not None and to < first):
        raise InputError(f"{name}: {text!r} counts from 1 up")
    tile = None if found["x"] is None else (int(found["x"]), int(found["y"]))
    return Acts(agent, None if pc is None else int(pc, 16), first, to, tile)
