"""The check "repair": one small change that makes a wrong run right."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bhemu.debug.places import Sources
from bhemu.errors import Limit, Where
from bhemu.text import joined
from bhemu.why.check import Check, Context, Outcome
from bhemu.why.findings import Finding, place
from bhemu.why.likelihood import likely
from bhemu.why.repair import tables
from bhemu.why.repair.cures import Cure
from bhemu.why.repair.search import SURE, WORK, Search
from bhemu.why.repair.tiles import AS_OTHERS
from bhemu.why.repair.toml_lines import TomlLines
from bhemu.why.repair.trial import Trials
from bhemu.why.repair.waits import waits_of

_MOST = 4  # lines that are named
_LEAST = WORK // 8  # where something else makes the run right
_LONGER = 4  # times what goes on for ever has reached: what cures goes further
_NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_LARGE = 0x100  # a value that is in a source for one reason alone
_COMPUTES = re.compile(r"[-+*/%&|?<>]")
_STATEMENT = 12  # lines of one
_FEW, _STANDS = 4, 1.2  # lines that cure, cost of what is missing where something stands for it


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


def _likelihood(search: Search, cure: Cure, rank: int, *, judged: bool) -> int:
    """Percent: less where many lines would cure, or where no output says whether it is one."""
    if not judged:
        return likely("cure that no output confirms", 3 * rank)
    if cure.edit is None and cure.cost <= AS_OTHERS:
        return likely("argument as others")
    lines = {(one.where.core, one.where.file, one.where.line) for one in search.cures}
    few = len(lines) <= _FEW
    sure = "cure" if few or cure.cost < _STANDS else "cure of many"
    far = "far cure" if few else "far cure of many"
    return likely(sure if cure.cost <= SURE else far, 3 * rank)


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


def finding(search: Search, cure: Cure, rank: int, seen: Outcome) -> Finding:
    """A cure, the `rank`-th from 0, of a run that ended so."""
    told, victim = _victim(seen)
    outputs = sum(one.report is not None for one in seen.results)
    right = "its output is" if outputs == 1 else f"all {outputs} outputs are"
    then = "the run ends" + (f" and {right} as expected" if outputs else "")
    where = Where(file=cure.where.file, line=cure.where.line)
    if cure.edit is not None:
        sources = Sources(search.trials.program, part=cure.part)
        where = _line_of_variable(cure, _line_of(cure, sources), sources)
        where = _line_of_table(search, cure, where, sources)
        if cure.edit.datum is not None and cure.where.core is not None:
            images = search.parts[cure.part].tile.core[cure.where.core].images
            where = tables.line_of(images, where, cure.edit.datum, sources)
    evidence = [f"with this one change {then} ({search.trials.count} changes were tried)", told]
    percent = _likelihood(search, cure, rank, judged=outputs > 0)
    return Finding(
        "repair",
        "error" if rank == 0 else "note",
        f"{_place_text(where)}: {cure.text}",
        place(where, _instant(search, cure)),
        victim,
        tuple(evidence),
        "make that change there and run the program again",
        percent,
    )


def _place_text(where: Where) -> str:
    core = f"{where.core} " if where.core else ""
    return f"{core}{where.file}:{where.line}" if where.file else f"{core}{where.pc or 0:#x}"


def _run(context: Context) -> Sequence[Finding]:
    if context.symptom.fine:
        return []
    if context.symptom.hangs and (found := _too_short(context)):
        return [found]
    waits = waits_of(context.symptom.error, context.tile)
    clock = min(context.end, _LONGER * context.last_activity)
    search = context.facts["search"] = Search(context.program, clock, context.quantum, waits)
    work = _LEAST if "order of an input" in context.facts else WORK
    listed = list(_findings(search, context.symptom, work))
    context.work.done += search.trials.work.done
    return listed


def _too_short(context: Context) -> Finding | None:
    """The limit of the run, where the unchanged program is right when it may run on."""
    program = context.program
    if not isinstance(context.symptom.error, Limit) or program.path is None:
        return None
    trials = Trials(program, context.end, context.quantum)
    if not trials.is_right():
        return None
    line = TomlLines(program.path).key("run", 0, "limit")
    text = "the program is right and needs more time than its limit"
    where = Where(file="PROGRAM.toml", line=line)
    told = f"{_place_text(where)}: {text}"
    proof = ("run on, it ends, with all outputs as expected",)
    return Finding(
        "repair", "error", told, place(where, None), {}, proof, "raise the limit", likely("limit")
    )


def _findings(search: Search, seen: Outcome, work: int) -> Iterator[Finding]:
    for rank, cure in enumerate(search.run(work)[:_MOST]):
        one = finding(search, cure, rank, seen)
        search.told[one.text] = cure
        yield one


CHECK = Check(
    name="repair",
    proves="that with one small change of the code or of PROGRAM.toml (a field of a Tensix word or"
    " of a Config word, a word or store left out or added, a constant, a layout, a value) the run"
    " ends and all outputs are as expected; that line is named, with what to write",
    misses="bugs that take more than one change, or a value that nobody would guess; several lines"
    " may cure the same symptom, then the likeliest come first",
    cost="only where a run went wrong: runs of the program, bounded in what they do: 5 to 20 s",
    applies=_applies,
    run=_run,
)
