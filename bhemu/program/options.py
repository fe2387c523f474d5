"""The options of a run: each is declared once, here; late acts of agents, which one of them names.

An entry of the tables below is a keyword argument of Tile, Chip and launch, and by its `where` also
a key of [run] or [chip] in PROGRAM.toml, a flag of the commands, a parameter of a sweep and a row
of docs/options.md. Only the code that obeys an option stands elsewhere.
"""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypedDict

from bhemu import arguments
from bhemu.errors import InputError, naming
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import XY

# What is late in a late run: a seed alone, or a seed and the acts that it delays.


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
        last = arguments.MOST if self.last is None else self.last
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
    if (found := _ACTS.fullmatch(text)) is None:
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
        turned = f", and {to} comes before {first}" if first else ""
        raise InputError(f"{name}: {text!r} counts from 1 up{turned}", hint=_FORM)
    tile = None if found["x"] is None else (int(found["x"]), int(found["y"]))
    return Acts(agent, None if pc is None else int(pc, 16), first, to, tile)


KINDS: Final = ("elf", "image", "llk", "tt-metal")  # of programs
ENGINES: Final = ("unicorn", "compiled")
REFERENCES: Final = ("ttsim", "llk", "isa")
DELIVERIES: Final = ("round", "late")
MODELS: Final = ("off", "model")  # of time
BANKS: Final = 8  # of DRAM
CHIPS: Final = (1, 2, 4)  # how many a host may have
QUANTUM: Final = 1000  # instructions
LONGEST_TURN: Final = 10_000_000  # instructions


def silent(name: str, seconds: float) -> None:
    """Default of `progress`: say nothing."""


class Kind:
    """The values that an option accepts; the machine checks some of them itself.

    values: their text in docs/options.md.
    """

    def __init__(self, values: str = "") -> None:
        self.values = values

    def check(self, name: str, value: Any) -> Any:
        """The value that a Python program gives; InputError where it is none of these."""
        return value

    def check_written(self, name: str, value: Any) -> Any:
        """As check(), of a sweep's parameter."""
        return self.check(name, value)

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        table.fail(f"{name} is given in Python")


class Whole(Kind):
    """An integer of `least` to `most`; without a `most` files and flags take what counters hold."""

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most
        self.written = arguments.MOST if most is None else most
        bounded = most is not None and most < arguments.MOST
        self.values = f"{least} to {most}" if bounded else f"{least} or more"

    def check(self, name: str, value: Any) -> int:
        """The value that a Python program gives."""
        return arguments.integer(name, value, self.least, self.most)

    def check_written(self, name: str, value: Any) -> int:
        """The value of a sweep's parameter."""
        return arguments.integer(name, value, self.least, self.written)

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        return table.integer(name, None, lo=self.least, hi=self.written)


class Words(Kind):
    """One of `words`; with `none` a Python program may give None instead."""

    def __init__(self, *words: str, none: bool = False) -> None:
        self.words, self._none = words, none
        self.values = ", ".join(f'`"{word}"`' for word in words)

    def check(self, name: str, value: Any) -> str | None:
        """The value that a Python program gives."""
        if value is None and self._none:
            return None
        return arguments.choice(name, value, {word: word for word in self.words})

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        return table.text(name, None, choices=self.words)


class SeedOr(Kind):
    """A seed of 32 bits, or one of `words`; None is the first of these."""

    def __init__(self, *words: str) -> None:
        self.words, self.most = words, 0xFFFF_FFFF
        self.values = f"a seed of 32 bits, {Words(*words).values}"

    def check(self, name: str, value: Any) -> int | str:
        """The value that a Python program gives."""
        if value is None or (isinstance(value, str) and value in self.words):
            return str(value or self.words[0])
        if isinstance(value, bool) or not isinstance(value, int):
            words = ", ".join(repr(word) for word in (*self.words[1:], self.words[0]))
            raise InputError(f"{name} = {value!r} is not known", hint=f"a seed, {words}")
        return arguments.integer(name, value, 0, self.most)

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        return table.word(name, self.words, self.most)


class Delays(SeedOr):
    """A seed of 32 bits, alone or with the acts that are late (options.py), or one of `words`."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.values = f'{self.values}, `"SEED:AGENT@PC#FIRST-LAST,..."`'

    def check(self, name: str, value: Any) -> int | str:
        """The value that a Python program gives."""
        if value is None or (isinstance(value, str) and value in self.words):
            return str(value or self.words[0])
        words = ", ".join(map(repr, self.words))
        if not isinstance(value, int | str):
            raise InputError(f"{name} = {value!r} is not known", hint=f"a seed, {words}")
        if isinstance(value, str) and not value[:1].isdecimal() and len(self.words) > 1:
            raise InputError(f"{name} = {value!r} is not known", hint=f"{words}, or a seed")
        found = lateness(name, value)
        return str(found) if found.acts else found.seed

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        value = table.take(name, None, (str, int))
        with naming(table.origin):
            return None if value is None else self.check(name, value)


class Seconds(Kind):
    """A finite number of seconds, 0 or more."""

    def check(self, name: str, value: Any) -> float:
        """The value that a Python program gives."""
        return arguments.seconds(name, value)

    def read(self, table: Any, name: str) -> Any:
        """The value in a table of PROGRAM.toml, None without."""
        return table.number(name, None)


@dataclass(frozen=True)
class Option:
    """An option: the kind of its values, its default in Python, where else it is given, its help.

    `where`: any of "run" and "chip" (tables of PROGRAM.toml), "flag" (commands that run a program,
    parameters of a sweep) and "serve" (`bhemu serve`). `flag`: the name of the flag, if another;
    `metavar`: what help calls a value; `example`: a value that `bhemu new` writes.
    """

    kind: Kind
    default: Any
    where: tuple[str, ...]
    help: str
    flag: str = ""
    metavar: str = "N"
    example: Any = None


_MACHINE = ("run", "flag", "serve")


class EndOptions(TypedDict, total=False):
    """When a program ends at the latest."""

    limit: Annotated[
        int,
        Option(Whole(1), None, ("run", "flag"), "stop after N clock units", example="50_000_000"),
    ]
    timeout_s: Annotated[
        float,
        Option(
            Seconds("seconds"),
            None,
            ("run", "flag"),
            "stop after this many seconds",
            flag="timeout",
            metavar="SECONDS",
            example="60",
        ),
    ]


class Options(TypedDict, total=False):
    """The keyword arguments that Tile and Chip share."""

    livelock: Annotated[
        int,
        Option(
            Whole(0, arguments.MOST),
            2000,
            ("run", "flag"),
            "look for endless loops after so many rounds without a Tensix word; 0 = never",
            metavar="ROUNDS",
        ),
    ]
    seed: Annotated[int, Option(Whole(0), 0, _MACHINE, "seed of --poison random")]
    quantum: Annotated[
        int,
        Option(
            Whole(1, LONGEST_TURN),
            QUANTUM,
            ("flag",),
            f"instructions that a core runs per turn (default: {QUANTUM})",
        ),
    ]
    ub: Annotated[
        str,
        Option(
            Words("error", "warn", "silicon"), "error", _MACHINE, "what undefined behaviour does"
        ),
    ]
    poison: Annotated[
        str | None,
        Option(
            Words("off", "zero", "ff", "random", none=True),
            None,
            _MACHINE,
            "what L1 holds at power-up",
        ),
    ]
    reference: Annotated[
        str,
        Option(
            Words(*REFERENCES),
            "ttsim",
            _MACHINE,
            "which reference to follow where ttsim, tt-llk and the ISA text disagree",
        ),
    ]
    stochastic: Annotated[
        int | str | None,
        Option(
            SeedOr("off", "up", "down"),
            None,
            ("run", "flag"),
            "model stochastic rounding, not bit-exact (default: it is refused)",
            metavar="SEED|up|down",
        ),
    ]
    engine: Annotated[
        str | None,
        Option(
            Words(*ENGINES, none=True),
            None,
            _MACHINE,
            "what runs the RISC-V cores (default: BHEMU_ENGINE, else unicorn, for a chip compiled)",
        ),
    ]
    l0: Annotated[
        str,
        Option(
            Words("off", "model"),
            "off",
            ("chip", *_MACHINE),
            "data caches of the cores, which miss what others write to L1 (default: off)",
        ),
    ]
    timing: Annotated[
        int | str,
        Option(
            Delays(*MODELS),
            "off",
            ("chip", "run", "flag", "diff"),
            "let words, cores and transfers take the cycles of docs/timing.md; a seed: as --late"
            " (default: off)",
            metavar="off|model|SEED",
        ),
    ]
    late: Annotated[
        int | str | None,
        Option(
            Delays("off"),
            None,
            ("chip", *_MACHINE, "diff"),
            "let words, cores and requests be late, as hardware may, drawn from this seed",
            metavar="SEED",
        ),
    ]
    progress: Annotated[
        Callable[[str, float], None],
        Option(
            Kind("a callable"),
            silent,
            (),
            "called with (name, seconds) after something was compiled for the first time",
        ),
    ]


class TileOptions(Options, total=False):
    """The keyword arguments of Tile."""

    xy: Annotated[
        tuple[int, int], Option(Kind("two integers"), (1, 2), (), "coordinate on the NoCs")
    ]


class ChipOptions(Options, total=False):
    """The keyword arguments of Chip."""

    harvest: Annotated[
        Sequence[int], Option(Kind("columns"), (), (), "columns of Tensix tiles that are fused off")
    ]
    dram_banks: Annotated[
        int, Option(Whole(BANKS - 1, BANKS), BANKS, ("chip",), "banks of DRAM that work")
    ]
    delivery: Annotated[
        str,
        Option(
            Words(*DELIVERIES),
            "round",
            ("chip", "flag"),
            "when NoC transfers of a chip arrive (late: in any order, from --seed)",
        ),
    ]
    threads: Annotated[
        int, Option(Whole(1, 64), 1, ("chip", "flag"), "spread the tiles of a chip over N threads")
    ]


class LaunchOptions(TileOptions, ChipOptions, total=False):
    """The keyword arguments of Tile and of Chip."""


@functools.cache
def declared(*tables: Any) -> dict[str, Option]:
    """The options of some tables by name."""
    return {
        name: note.__metadata__[0]
        for table in tables
        for name, note in table.__annotations__.items()
    }


SHARED: Final = tuple(Options.__annotations__)
END_OPTIONS: Final = tuple(EndOptions.__annotations__)
CHIP_ONLY: Final = tuple(name for name in ChipOptions.__annotations__ if name not in SHARED)
_EVERY = declared(LaunchOptions, EndOptions)
OPTIONS: Final = {name: _EVERY[name] for name in (*CHIP_ONLY, *END_OPTIONS, *SHARED, "xy")}
"""Every option by name."""


def given_in(where: str) -> dict[str, Option]:
    """The options that can be given there: "run", "chip", "flag" or "serve"."""
    return {name: option for name, option in OPTIONS.items() if where in option.where}


def flag_of(name: str, option: Option) -> str:
    """The flag of an option, after its two dashes: its own name, or the option's with dashes."""
    return option.flag or name.replace("_", "-")


def read(table: Any, where: str) -> dict[str, Any]:
    """Those of the options of `where` that a table of PROGRAM.toml has."""
    found = {name: option.kind.read(table, name) for name, option in given_in(where).items()}
    return {name: value for name, value in found.items() if value is not None}


def filled(table: Any, given: Mapping[str, Any], call: str) -> dict[str, Any]:
    """Every option of `table`, checked: as given to `call`, else its default."""
    known = declared(table)
    for name in given:
        if name not in known:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")
    found = {
        name: option.kind.check(name, given.get(name, option.default))
        for name, option in known.items()
    }
    if found.get("timing") not in (None, *MODELS):  # what is late, under its other name
        if found["late"] not in ("off", found["timing"]):
            raise InputError("late and timing both say what is late: give one of them")
        found["late"], found["timing"] = found["timing"], MODELS[0]
    return found
