"""The check "repair": one small change that makes a wrong run right."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bhemu.debug.places import Sources
from bhemu.errors import Where
from bhemu.text import joined
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import LIKELY, Finding, place
from bhemu.why.repair import tables
from bhemu.why.repair.cures import Cure
from bhemu.why.repair.search import Search

_MOST = 4  # lines that are named
_LONGER = 4  # times what goes on for ever has reached: what cures goes further
_NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_LARGE = 0x100  # a value that is in a source for one reason alone
_COMPUTES = re.compile(r"[-+*/%&|?<>]")
_STATEMENT = 12  # lines of one


def _applies(seen: Outcome) -> int:
    return 0 if seen.fine else 6


def _victim(seen: Outcome) -> tuple[str, dict[str, Any]]:
    """What went wrong, in words and as findings name it."""
    if seen.error is not None:
        return seen.error.message, place(seen.error.where, None)
    result = seen.wrong[0]
    report = result.report
    assert report is not None
    index = [] if report.first is None else list(report.first.index)
    return joined(str(report)), {"output": result.spec.name, "index": index}


def _instant(search: Search, cure: Cure) -> int | None:
    """The clock when the line first acted."""
    if cure.edit is None:
        return None
    known = search.parts[cure.part].sites
    return next((one.clock for one in known if one.pc == cure.edit.at), None)


def _line_of(cure: Cure, sources: Sources) -> Where:
    """The place of a cure; in a statement of several lines the one that names the field.

    The debug information knows the first line of a statement only; the source is looked for.
    """
    where, name = cure.where, cure.text.partition(" ")[0]
    if where.core is None or where.file is None or not where.line or "_" not in name:
        return where
    for number in range(where.line, where.line + _STATEMENT):
        text = sources.line(where.core, where.file, number)
        if text is None:
            break
        if re.search(rf"\b{re.escape(name)}\b", text):
            return replace(where, line=number)
        if ";" in text:
            break
    return where


def _line_of_variable(cure: Cure, where: Where, sources: Sources) -> Where:
    """The line that computes what a Config field is given, where its own line only names it.

    That one says nothing which could be wrong but a name: `CFG(FIELD, rows)`.
    """
    name = cure.text.partition(" ")[0]
    core, file, line = where.core, where.file, where.line or 0
    text = sources.line(core, file, line) if core and file and line else None
    named = None if text is None else re.search(rf"\(\s*{re.escape(name)}\s*,\s*(\w+)\s*\)", text)
    if named is None or named[1].isdigit() or core is None or file is None:
        return where
    made: list[tuple[int, str]] = []
    for number in range(line - 1, 0, -1):
        text = sources.line(core, file, number)
        if not text or not text[0].isspace():
            break  # where the function begins
        if (found := re.search(rf"\b{re.escape(named[1])}\s*=([^=].*)", text)) is not None:
            made.append((number, found[1]))
    computed = len(made) == 1 and _COMPUTES.search(made[0][1]) is not None
    return replace(where, line=made[0][0]) if computed else where


def _line_of_table(search: Search, cure: Cure, where: Where, sources: Sources) -> Where:
    """The line that has the wrong value in a table of Config words and their values, if one does.

    The loop that stores them is right. Compilers unroll it, so that the source has to be read.
    """
    stored = search.config_store(cure)
    if (
        stored is None
        or not search.stores_table(cure)
        or where.core is None
        or where.file is None
        or not where.line
    ):
        return where
    pairs, alone, number = [], [], 1
    while (text := sources.line(where.core, where.file, number)) is not None:
        values = [int(one, 0) for one in _NUMBER.findall(text)]
        pairs += [number] * (stored in pairwise(values))
        alone += [number] * (stored[1] in values)
        number += 1
    if stored[1] < _LARGE or len(alone) > 1:
        alone = []
    found = pairs or alone
    return replace(where, line=found[0]) if len(found) == 1 else where


def _finding(search: Search, cure: Cure, rank: int, seen: Outcome) -> Finding:
    """A cure, the `rank`-th from 0, of a run that ended so."""
    told, victim = _victim(seen)
    judged = any(one.report is not None for one in seen.results)
    where = Where(file=cure.where.file, line=cure.where.line)
    if cure.edit is not None:
        sources = Sources(search.trials.program, part=cure.part)
        where = _line_of_variable(cure, _line_of(cure, sources), sources)
        where = _line_of_table(search, cure, where, sources)
        if cure.edit.datum is not None and cure.where.core is not None:
            images = search.parts[cure.part].tile.core[cure.where.core].images
            where = tables.line_of(images, where, cure.edit.datum, sources)
    ends = "ends correctly" if judged else "comes to its end"
    text = f"the run also {ends} if {_place_text(where)} is changed: {cure.text}"
    evidence = (f"{search.trials.count} changes were tried; other lines may do as well", told)
    who, percent = place(where, _instant(search, cure)), LIKELY["other"] - rank
    return Finding("repair", "note", text, who, victim, evidence, "", percent)


def _place_text(where: Where) -> str:
    core = f"{where.core} " if where.core else ""
    return f"{core}{where.file}:{where.line}" if where.file else f"{core}{where.pc or 0:#x}"


def _run(context: Context) -> Sequence[Finding]:
    if context.symptom.fine:
        return []
    clock = min(context.end, _LONGER * context.last_activity)
    search = Search(context.program, clock, context.quantum)
    cures = search.run()[:_MOST]
    context.work.done += search.trials.work.done
    return [_finding(search, cure, rank, context.symptom) for rank, cure in enumerate(cures)]


CHECK = Check(
    name="repair",
    proves="that with one small change of the code or of PROGRAM.toml (a field of a Tensix word or"
    " of a Config word, a word or store left out or added, a constant, a layout, a value) the run"
    " also ends correctly: a note, and the last; not that this line is the wrong one",
    misses="whether the change is the one that was meant: several lines may cure one symptom; bugs"
    " that take more than one change; it is not asked where something waits, or another check has"
    " found something",
    cost="only where a run went wrong and nothing else was found: 5 to 20 s of runs, bounded in"
    " what they do",
    applies=_applies,
    run=_run,
)
