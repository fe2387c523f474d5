"""Findings: their classes, their texts, their order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from typing import Any

from bhemu.errors import BhemuError, Call, InputError, NoProgress, Where, source_text
from bhemu.machine.error_text import caller, outside_headers
from bhemu.machine.hang.waits import Waiter
from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.riscv.formats import Branch, Load, Store
from bhemu.riscv.isa import decode

# The order of findings: by class, and within a class by time.
#
# A class says how much is known. A cure, by which only another program would be right, is the
# last.

CLASSES = {
    "error": ("error",),  # refused by a rule
    "waiting": ("hang",),  # a cycle of waits, or one that nothing can end
    "order": ("races", "barriers", "transfers", "stale", "late"),  # accesses that nothing orders
    "unwritten": ("unwritten", "powerup", "slots"),  # a value that nothing has written
    "contract": ("buffers", "formats", "stack", "jumps", "program"),  # what PROGRAM.toml declares
    "origin": ("output", "place"),  # who made the first wrong element
    "cure": ("cure",),  # a change with which the run ends correctly
}
CLASS_OF = {name: kind for kind, names in CLASSES.items() for name in names}
_RANKS = {kind: rank for rank, kind in enumerate(CLASSES)}


def order(found: "Finding") -> tuple[int, bool, float]:
    """The sort key of a finding: its class, then the clock of its culprit, else of its victim.

    A note comes after the errors and warnings of its class, a finding without a clock after those
    that have one.
    """
    times = [who.get("instant") for who in (found.culprit, found.victim)]
    known = [time for time in times if time is not None]
    return _RANKS[found.check], found.severity == "note", known[0] if known else inf


# What is wrong with a run: an error, a hang, an output that differs; and its culprit.

_ACCESSES = 2  # of a helper in the file that calls it
_SHOWN = 4  # tiles or places that are named where several have the same finding
_UNKNOWN: dict[str, Any] = {
    "tile": None, "core": "", "thread": None, "pc": None, "function": "", "file": "",
    "line": None, "inlined": [], "instant": None, "word": None, "role": "culprit",
}  # fmt: skip


@dataclass(frozen=True)
class Ends:
    """What a finding has to do with waits on a tile: those for these things.

    A thing is ("semaphore", index) or ("buffer", index, register). text: what the culprit has not
    done that would end such a wait, "" if it is only about the same hand-over.
    """

    tile: XY
    things: frozenset[tuple[str | int, ...]]
    text: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: its culprit, its victim, the evidence, and the advice.

    A culprit that is not blamed has another role: it is where the run stopped or waits, or has
    made what is wrong.
    """

    found_by: str  # "error", "hang", "program", "output", "place" or the name of a check
    severity: str  # "error", "warning" or "note"
    text: str
    culprit: dict[str, Any]
    victim: dict[str, Any]
    evidence: tuple[str, ...]
    advice: str
    ends: Ends | None = None

    @property
    def check(self) -> str:
        """Its class: error, waiting, order, unwritten, contract, origin or cure."""
        return CLASS_OF[self.found_by]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values; the culprit has every key, whether its value is known or not."""
        own = ("found_by", "ends")
        known = {name: value for name, value in vars(self).items() if name not in own}
        function = str(self.culprit.get("symbol") or "").partition("+")[0]
        culprit = {**_UNKNOWN, "function": function, **self.culprit}
        more = {"culprit": culprit, "evidence": list(self.evidence)}
        return {"check": self.check, **known, **more}

    def lines(self) -> Iterator[str]:
        """The finding as text."""
        yield f"[{self.check}] {self.text}"
        made = self.culprit.get("role", "culprit")
        for name, who in ((made, self.culprit), ("victim", self.victim)):
            if who.get("core"):
                yield f"  {name}: {in_words(who)}"
            elif who.get("file"):
                yield f"  {name}: {who['file']}:{who.get('line')}"
        for line in self.evidence:
            yield f"  {line}"
        if self.advice:
            yield f"  hint: {self.advice}"


def line_of(found: Finding) -> tuple[Any, ...]:
    """The check that found it, and the line of its culprit, on any tile."""
    who = found.culprit
    return found.found_by, who.get("core"), who.get("pc"), who.get("file"), who.get("line")


def merged(by_tile: Iterable[Iterable[Finding]]) -> list[Finding]:
    """The findings of several tiles, one for each line; its evidence names the other tiles."""
    lines: dict[Any, list[Finding]] = {}
    for one in chain.from_iterable(by_tile):
        lines.setdefault(line_of(one), []).append(one)
    return [together(same) for same in lines.values()]


def together(same: Sequence[Finding]) -> Finding:
    """The first of findings that say the same; its evidence names the other places and tiles."""
    culprits = [one.culprit for one in same]
    places = dict.fromkeys(f"pc {one['pc']:#010x}" for one in culprits if "pc" in one)
    tiles = dict.fromkeys("({},{})".format(*one.get("tile", ("?", "?"))) for one in culprits)
    told = []
    for named, (_, *others) in (("at {} more place", places or [""]), ("on {} more tile", tiles)):
        if others:
            more = f"{named.format(len(others))}{'' if len(others) == 1 else 's'}"
            shown = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
            told.append(f"the same {more}: {shown}")
    return with_evidence(same[0], told)


def with_evidence(found: Finding, lines: Sequence[str]) -> Finding:
    """The finding with more lines of evidence."""
    return replace(found, evidence=(*found.evidence, *lines))


def with_rest(shown: list[Finding], left: int) -> list[Finding]:
    """The findings that are shown; the last one says how many more there are."""
    if not left:
        return shown
    more = "1 more line like this is" if left == 1 else f"{left} more lines like this are"
    return [*shown[:-1], with_evidence(shown[-1], [f"{more} not shown"])]


def _is_helper(tile: Tile, where: Where) -> bool:
    if where.core is None or where.pc is None:
        return False
    core, accesses = tile.core[where.core], 0  # of the call, also those of calls within it
    _, low, high = core.function(where.pc)
    polls = issubclass(decode(tile.read32(where.pc)) or object, Load)
    lines: set[tuple[str | None, int | None]] = set()
    for pc in range(low, high, 4):
        cls = decode(word := tile.read32(pc)) or object
        name, calls = core.inlined(pc)
        own = polls and name == where.function
        if own and issubclass(cls, Branch) and Branch.offset.get(word) < 0:
            return False
        if issubclass(cls, Load | Store):
            names = (name, *(call.function for call in calls))
            frames = [(names[k], calls[k:]) for k in range(len(names))]
            accesses += (where.function, where.inlined) in frames
        _, file, line = core.locate(pc)
        for call in calls:
            if name == where.function and line:
                lines.add((file, line))
            name, file, line = call.function, call.file, call.line
    few = where.file != where.inlined[0].file or accesses <= _ACCESSES
    return few and len(lines) == 1


def outside_helpers(tile: Tile, where: Where) -> Where:
    """The place of a load or store outside of helpers: inlined functions of one line without a
    loop, and of few accesses if the same file calls them."""
    while where.thread is None and where.inlined and where.function and _is_helper(tile, where):
        where = caller(where)
    return where


def place(where: Where | None, instant: int | None, tile: Tile | None = None) -> dict[str, Any]:
    """A culprit or victim, as findings have it; unknown values are left out.

    tile: if given, code without a line gets the next one, and the caller stands for a helper.
    """
    if where is None:
        return {}
    known = (where if tile is None else outside_helpers(tile, _with_line(tile, where))).as_dict()
    function = known.pop("function", None) or known.pop("symbol", None)
    shown = {**known, "function": function, "instant": instant}
    return {name: value for name, value in shown.items() if value is not None}


def _with_line(tile: Tile, where: Where) -> Where:
    """The place; code without a line, as a function's prologue, gets the next line."""
    if where.line != 0 or where.core is None or where.pc is None:
        return where
    core = tile.core[where.core]
    _, low, high = core.function(where.pc)
    first: Where | None = None
    for pc in (*range(where.pc, high, 4), *range(where.pc, low - 4, -4)):
        _, file, line = core.locate(pc)
        if line:
            function, calls = core.inlined(pc)
            found = replace(where, file=file, line=line, function=function, inlined=calls)
            first = first or found
            if function == where.function:  # code merged from copies is of the same function
                return found
    return first or where


def in_words(who: dict[str, Any]) -> str:
    """A culprit or victim as one line: core, place, source, instant."""
    tile = who.get("tile")
    text = "tile ({},{}) ".format(*tile) if isinstance(tile, list) else ""
    text += str(who.get("core", ""))
    text += f" (T{who['thread']})" if "thread" in who else ""
    text += f" pc {who['pc']:#010x}" if "pc" in who else ""
    calls = tuple(Call(**call) for call in who.get("inlined", ()))
    source = source_text(who.get("file"), who.get("line"), who.get("function"), calls)
    text += f" ({source})" if source and text else source or ""
    return text + (f", clock {who['instant']}" if "instant" in who else "")


_ASSERT = "EBREAK"


def of_error(error: BhemuError, clock: int, tile: Tile | None = None) -> Finding:
    """The finding of the error that ended the run; of a hang its root, with all waits as evidence.

    tile: as in `place`.
    """
    where, text = error.where, error.message
    if not isinstance(error, NoProgress):
        if where is not None and error.rule == _ASSERT:  # the line that states the condition
            where = outside_headers(where)
        culprit = with_role(place(where, clock, tile), "stopped at")
        return Finding("error", "error", text, culprit, {}, (), error.hint)
    graph: Any = error.graph
    culprit, evidence = place(where, clock, tile), tuple(error.waits)
    if waiters := waiters_of(error):
        culprit = culprit or with_role({**who_waits(waiters[0]), "instant": clock}, "waits at")
        text, evidence = f"{error.category.lower()}: {graph.headline()}", (text, *evidence)
    return Finding("hang", "error", text, culprit, {}, evidence, error.hint)


def of_refusal(error: InputError, where: Where) -> Finding:
    """The finding of a mistake in PROGRAM.toml that keeps the program from running."""
    text = f"{where.file}:{where.line}: {error.message}"
    return Finding("error", "error", text, place(where, None), {}, (), error.hint)


def with_role(who: dict[str, Any], role: str) -> dict[str, Any]:
    """The place of a finding that is not blamed for it; nothing where the place is not known."""
    return {**who, "role": role} if who else {}


def waiters_of(error: BhemuError | None, *kinds: str) -> list[Waiter]:
    """All that wait in a hang, its root first, or those for these kinds of resources; none if
    nobody has looked for them."""
    every = getattr(getattr(error, "graph", None), "waiters", ())
    return [one for one in every if not kinds or one.kind in kinds]


def who_waits(waiter: Any) -> dict[str, Any]:
    """A waiter of a hang, as a culprit or victim."""
    known = dict(waiter.where)
    return {"function": known.pop("symbol", None), **known}


def of_one_hang(hang: Finding, facts: Iterable[Finding]) -> Finding:
    """The hang, with more facts and their places as evidence."""
    lines = [f"{one.text}: {in_words(one.culprit)}" for one in facts]
    return replace(hang, evidence=(*hang.evidence, *lines))
