"""The search for changes that make a wrong run right, the likeliest kinds first, within bounds."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain, zip_longest

import numpy as np

from bhemu.errors import BhemuError, Where
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.memmap import (
    GPR_BASE,
    GPR_END,
    L1_SIZE,
    TENSIX_CFG_BASE,
    TENSIX_CFG_END,
)
from bhemu.program.options import QUANTUM
from bhemu.program.specs import Program
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.observe import WORDS_AND_STORES
from bhemu.why.findings import outside_headers, outside_helpers
from bhemu.why.repair import (
    alternation,
    constants,
    front_words,
    insertions,
    instructions,
    lines,
    owners,
    registers,
    sections,
    sequences,
    tables,
    tensors,
    turns,
    words,
)
from bhemu.why.repair.copies import Copies
from bhemu.why.repair.cures import Cure, best
from bhemu.why.repair.edits import (
    KEPT,
    MOST,
    Code,
    Edit,
    Lines,
    Site,
    code_of,
    firmware_of,
    keeping,
    sites,
)
from bhemu.why.repair.files import FileEdits
from bhemu.why.repair.origins import Origins
from bhemu.why.repair.trial import Trials

_ROOM = 1 << 10  # bytes for instructions that are added
_REACH = 1 << 20
# Work as trials count it: the same bounds, and so the same cures, on every machine.
WORK = 6_000_000_000  # instructions, of some 2 ns
_LIBRARY = 6_500_000_000  # more for the code of a library, behind the program's own
_FILES = 2_400_000_000  # more for changes of PROGRAM.toml
_SHARE = 0.6
_PLACES = 64  # addresses
_LONGER = 1_500_000_000  # that a kind still has once a cure is likely the one
_AT_MOST = 600.0  # seconds on the clock, where a machine is that slow
_PASSED = 0.05  # how much likelier it is that arguments are wrong than what a helper does
_DEFAULT = 0.01  # how much likelier a kernel sets too little than a helper that clears too much
_TABLE = 3  # Config words that one line stores to, where it takes them from a table
SURE = 1.3  # a cure that costs no more is likely the one


def _is_config(site: Site) -> bool:
    return TENSIX_CFG_BASE <= (site.address or 0) < TENSIX_CFG_END


class Part:
    """Tiles with the same code: what they execute, as seen on the first of them."""

    def __init__(self, number: int, trials: Trials) -> None:
        self.number, self._trials = number, trials
        self.others = firmware_of(trials.program)  # whose code calls the kernels
        self.tile = trials.bench.parts[number][0]
        log = self._record()
        self.code: Code = code_of(self.tile, log, self.others)
        self.sites: list[Site] = sites(self.code, log)
        if trials.program.is_alone:
            self.sites += front_words.sites(trials, self.code, self.sites, len(log))
        self.lines = Lines(self.tile, self.code)
        self.origins = Origins(self.tile, trials.program)
        self.room = self._room()

    def _record(self) -> list[Entry]:
        """What happens in the unchanged run, as far as it goes."""
        self._trials.begin()
        tile = self.tile
        tile.log = []
        tile.state.trace[0] = WORDS_AND_STORES
        try:
            self._trials.ends()
        except BhemuError:
            pass
        finally:
            tile.drain_log()
            tile.state.trace[0] = 0
        log, tile.log = tile.log[:MOST], []
        return log

    def _room(self) -> int:
        """A place in L1 that nobody uses, which code reaches by one jump."""
        tiles = [part[0] for part in self._trials.bench.parts]  # some have the same code
        used = np.any([(one.state.l1 != 0).reshape(-1, _ROOM).any(axis=1) for one in tiles], axis=0)
        return int(np.flatnonzero(~used[: _REACH // _ROOM])[-1]) * _ROOM

    def change(self, edit: Edit) -> Callable[[Tile], None]:
        """What puts an edit into a tile; firmware, which calls kernels, keeps its registers."""
        if self.others:
            edit = keeping(edit, KEPT.intersection(self.code.free_registers(edit.core)))
        return partial(edit.apply, room=self.room)

    def addresses(self) -> Iterator[int]:
        """L1 that Config and GPRs name, in units of 16 bytes less one for a header."""
        for site in self.sites:
            at = site.address or 0
            if TENSIX_CFG_BASE <= at < TENSIX_CFG_END or GPR_BASE <= at < GPR_END:
                for value in site.values:
                    if _ROOM <= (value + 1) << 4 < L1_SIZE:
                        yield (value + 1) << 4

    def own_settings(self, edit: Edit, where: Where) -> Where | None:
        """Where a helper in a header clears a Config word: the caller's last own store to Config.

        The helper sets defaults, and what the kernel needs otherwise it sets itself behind it.
        """
        outer = outside_headers(where)
        stored = [one for one in self.sites if (one.core, one.pc) == (edit.core, edit.at)]
        cleared = [one for one in stored if one.values == [0] and _is_config(one)]
        if outer == where or not cleared or outer.line is None:
            return None
        own = [
            place
            for one in self.sites
            if one.core == edit.core and _is_config(one) and one.first > cleared[0].first
            for place in [outside_headers(self.lines.where(one.core, one.pc))]
            if (place.file, place.function) == (outer.file, outer.function)
            and (place.line or 0) > outer.line
        ]
        return max(own, key=lambda place: place.line or 0, default=None)

    def _groups(self) -> list[list[Site]]:
        """Sites that are copies of each other, in the order of their first action."""
        found: dict[object, list[Site]] = {}
        for site in self.sites:
            where = self.lines.where(site.core, site.pc)
            line = site.pc if where.line is None else (where.function, where.file, where.line)
            at = "template" if words.is_template(site) else site.address
            found.setdefault((site.core, line, at, tuple(site.values)), []).append(site)
        return list(found.values())

    def _overwrites(self, site: Site) -> bool:
        """Whether it replaces what another line has put there before."""
        mine = words.places(site)
        return any(
            mine & words.places(other)
            for other in self.sites
            if (other.first, other.pc) < (site.last, site.pc)
            and self.lines.where(other.core, other.pc).line
            != self.lines.where(site.core, site.pc).line
        )

    def tiers(self) -> Iterator[Iterator[Edit]]:
        """Edits by kind, the likeliest kinds first."""
        known = words.known_values(self.sites)
        groups = self._groups()
        changes = (
            edit
            for group in groups
            for edit in words.edits(self.code, group, known, self._overwrites(group[0]))
        )
        judged = any(spec.expect for spec in self._trials.program.outputs)
        yield changes
        yield insertions.edits(self.code, groups, self.sites)
        if judged and self.origins.library:  # what else changes there rarely is the kernel's
            yield tensors.edits(self.code, self.sites, self.lines, self._trials.program)
        yield from self._of_values(groups, known)
        if not judged:
            return  # what only does not wait any more would pass for a cure
        for early in (instructions.factors, instructions.conditions):
            yield chain.from_iterable(early(self.code, core) for core in self.code.words)
        yield tensors.edits(self.code, self.sites, self.lines, self._trials.program)
        yield from self._of_cores()
        for tier in self._of_cores():
            yield (both for edit in tier if (both := self.lines.in_all_cores(edit)))
        yield insertions.repeats(self.code, groups)

    def _of_values(self, groups: list[list[Site]], known: words.Known) -> Iterator[Iterator[Edit]]:
        """Edits of what is given away: from tables, as constants, by lines that are alike."""
        yield chain(
            tables.numbers(self.code, self.sites, self.tile),
            tables.edits(self.code, groups, known, self.tile),
        )
        yield constants.edits(self.code, groups)
        yield insertions.set_up(self.code, groups, self.sites)
        yield insertions.cleared(self.code, groups, self.sites)
        yield lines.alike(self.code, self.sites, self.lines)
        yield lines.targets(self.code, self.sites, self.lines)
        yield sections.edits(self.code, self.sites, self.lines)
        yield lines.scaled(self.code, self.sites, self.lines)
        yield words.exchanges(self.code, groups)
        yield registers.edits(self.code, self.sites)
        yield (
            edit
            for core in self.code.words
            for edit in alternation.edits(self.code, self.sites, core, self.room)
        )
        for kind in (sequences.exchanges, sequences.units):
            yield chain.from_iterable(
                kind(self.code, self.sites, self.lines, core) for core in self.code.words
            )

    def _of_cores(self) -> Iterator[Iterator[Edit]]:
        """Edits of what the cores compute."""
        yield (edit for core in self.code.words for edit in instructions.left_out(self.code, core))
        yield merge(  # not core by core: a long run allows only some of them
            *(instructions.edits(self.code, core, self.lines) for core in self.code.words),
            key=lambda edit: edit.cost,
        )
        yield (
            edit
            for core in self.code.words
            for edit in sequences.steps(self.code, self.sites, self.lines, core, self.room)
        )
        yield (
            edit for core in self.code.words for edit in lines.bounds(self.code, core, self.lines)
        )
        yield (edit for core in self.code.words for edit in turns.begins(self.code, core))


class Search:
    """Tries edits on a program whose run went wrong."""

    def __init__(self, program: Program, clock: int, quantum: int = QUANTUM) -> None:
        self.trials = Trials(program, clock, quantum)
        self.parts = [Part(n, self.trials) for n in range(len(self.trials.bench.parts))]
        self.trials.look_early()
        self._copies = {
            (one.number, two.number): Copies(one.tile, one.code, two.tile, two.code)
            for one in self.parts
            for two in self.parts
            if one is not two
        }
        self._tried: set[tuple[int, tuple[tuple[int, tuple[int, ...]], ...]]] = set()
        self.cures: list[Cure] = []
        self._began = time.monotonic()

    def run(self, work: int = WORK) -> list[Cure]:
        """The changes that cure, the likeliest first; rarer kinds where none is likely."""
        self._files()
        library = any(part.origins.library for part in self.parts)
        until = self.trials.work.done + work
        self._tiers(until, by=Origins.own if library else Origins.every)
        if library and all(cure.cost > SURE for cure in self.cures):
            more = _LONGER if self.cures else min(work, WORK) * _LIBRARY // WORK
            self._tiers(self.trials.work.done + more, by=Origins.others)
        return best(self.cures)

    def _tiers(self, until: int, by: Callable[[Origins, Iterable[Edit]], Iterable[Edit]]) -> None:
        """Try the edits of each kind that `by` chooses."""
        done = self.trials.work
        for tier in zip_longest(*(part.tiers() for part in self.parts), fillvalue=()):
            if any(cure.cost <= SURE for cure in self.cures):
                break
            share = done.done + int(_SHARE * (until - done.done))  # so that every kind has its turn
            for part, edits in zip(self.parts, tier, strict=True):
                for edit in by(part.origins, edits):
                    if self._late(share):
                        break
                    new = (part.number, edit.code) not in self._tried  # as another part's
                    if new and self.trials.is_right(changes=self.changes(part, edit)):
                        if self._cured(part, edit) <= SURE:
                            share = min(share, done.done + _LONGER)

    def changes(self, part: Part, edit: Edit) -> dict[int, Callable[[Tile], None]]:
        """By number of a part what an edit changes there: one of an ELF in all that have it."""
        found = {part.number: part.change(edit)}
        for other in self.parts:
            if other is not part:
                moved = self._copies[part.number, other.number].moved(edit)
                if moved is not None:
                    found[other.number] = other.change(moved)
                    self._tried.add((other.number, moved.code))
        return found

    def _late(self, until: int) -> bool:
        """Whether the work that may be done is done."""
        return self.trials.work.done > until or time.monotonic() - self._began > _AT_MOST

    def _files(self) -> None:
        if self.trials.program.path is None:
            return
        until = self.trials.work.done + _FILES
        places = {at for part in self.parts for at in part.addresses()}
        for one in FileEdits(self.trials, sorted(places)[:_PLACES]).every():
            if self._late(until):
                break
            if one.cures():
                where = Where(file="PROGRAM.toml", line=one.line)
                self.cures.append(Cure(where, one.text, one.cost, None))

    def _cured(self, part: Part, edit: Edit) -> float:
        where = part.lines.where(edit.core, edit.at)
        if edit.common:
            where = part.lines.inner(edit.core, edit.at)
        elif edit.given:
            where = outside_helpers(part.tile, replace(where, thread=None))
        if edit.passed and (outer := outside_headers(where)) != where:
            self.cures.append(Cure(outer, edit.text, edit.cost - _PASSED, edit, part.number))
        cost = edit.cost
        self.cures.append(Cure(where, edit.text, cost, edit, part.number))
        if (own := part.own_settings(edit, where)) is not None:
            text = f"{edit.text}: is to be set behind what {where.function} sets"
            self.cures.append(Cure(own, text, cost - _DEFAULT, edit, part.number))
        if (owner := owners.unset(part.sites, edit, part.lines)) is not None:
            text = f"{edit.text}: is to be set beside this, whoever has left it so"
            self.cures.append(Cure(owner, text, cost + _DEFAULT, edit, part.number))
        return cost

    def config_store(self, cure: Cure) -> tuple[int, int] | None:
        """The Config word and its wrong value, where a cure changes what one store puts there."""
        if cure.edit is None:
            return None
        part, pc = self.parts[cure.part], cure.edit.at
        pc = part.lines.store_of(cure.edit.core, pc) or pc
        for site in part.sites:
            at = site.address or 0
            if (site.core, site.pc) == (cure.edit.core, pc) and len(site.values) == 1:
                if TENSIX_CFG_BASE <= at < TENSIX_CFG_END:
                    return (at - TENSIX_CFG_BASE) // 4 % CONFIG_WORDS, site.values[0]
        return None

    def stores_table(self, cure: Cure) -> bool:
        """Whether the line of a cure stores to several Config words, as of a table."""
        if cure.edit is None:
            return False
        part, stored = self.parts[cure.part], set[int]()
        for site in part.sites:
            if site.core == cure.edit.core and _is_config(site) and site.address is not None:
                where = part.lines.where(site.core, site.pc)
                if (where.file, where.line) == (cure.where.file, cure.where.line):
                    stored.add(site.address)
        return len(stored) >= _TABLE
