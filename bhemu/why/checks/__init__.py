"""The checks: each file declares one, or some that ask nearly the same question."""

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from bhemu.errors import InputError
from bhemu.jit.subset import JIT
from bhemu.program.toml import suggestion
from bhemu.why.check import Check, Context
from bhemu.why.checks.buffers import BYTES
from bhemu.why.checks.races import with_pairs
from bhemu.why.findings import CLASS_OF, CLASSES, Finding, order

_CURES = "cure"
_LAST = (_CURES, "late")  # looked for where nothing else is found
_BEFORE = {"repair": _CURES, "uninit": "unwritten", "leaks": "unwritten"}  # earlier names


TOOLS = {
    "races": CLASSES["order"],
    "order": CLASSES["order"],
    "init": CLASSES["unwritten"],
    "bounds": tuple(name for name in CLASSES["contract"] if name != "program"),
}
"""By the usual name of a sanitizer: the checks that ask the same question."""


@cache
def every() -> dict[str, Check]:
    """All checks by name."""
    names = (f"{__name__}.{one.name}" for one in pkgutil.iter_modules(__path__))
    files = map(importlib.import_module, names)
    found = [one for file in files for one in vars(file).values() if isinstance(one, Check)]
    return {check.name: check for check in sorted(found, key=lambda one: one.name)}


def named(text: str) -> list[Check]:
    """The checks that `--check` names: NAME,... or all."""
    known = every()
    given = [name.strip() for name in text.split(",") if name.strip()]
    if not given:
        raise InputError("no check is named", hint=f"all, or of: {', '.join(known)}")
    if "all" in given:
        return list(known.values())
    names = [*dict.fromkeys(_BEFORE.get(name, name) for name in given)]
    for name in names:
        if name not in known:
            hint = suggestion(name, list(known)) or f"all, or of: {', '.join(known)}"
            raise InputError(f"no check is called {name!r}", hint=hint)
    return [known[name] for name in names]


def fitting(context: Context) -> list[Check]:
    """The checks that fit how the run ended, the best first; those of order only compiled."""
    known = [one for one in every().values() if JIT or CLASS_OF.get(one.name) != "order"]
    fits = [(check.applies(context.symptom), check) for check in known]
    return [check for fit, check in sorted(fits, key=lambda one: -one[0]) if fit > 0]


def findings(
    context: Context, checks: list[Check], found: Sequence[Finding] = (), *, roots: bool = False
) -> list[Finding]:
    """The findings of the checks and `found`; checks for which no work is left are `skipped`.

    roots: after an error of order unwritten values are not looked for: they may be read too early.
    A cure is looked for only if nothing else is found and nothing waits: that another program is
    right does not prove that a line of this one is wrong. So are late runs of everything, which do
    not name what is not ordered.
    """
    told = list(found)
    searches = [one for one in checks if one.name in _LAST]
    others = [one for one in checks if one.name not in _LAST]
    others.sort(key=lambda one: [*CLASSES].index(CLASS_OF.get(one.name, _CURES)))
    for number, check in enumerate(others, 1):
        early = roots and any(one.check == "order" and one.severity == "error" for one in told)
        if not (early and check.name == "unwritten"):
            told += _of(check, context, f"{number} of {len(others)}")
    sure = [one for one in told if one.severity != "note"]
    if sure or getattr(context.symptom.error, "graph", None) is not None:
        return ordered(told)
    last = f"{len(checks)} of {len(checks)}"
    for check in searches:
        shown = _of(check, context, last)
        told = [*told, *shown] if check.name == _CURES else with_pairs(shown, told)
    return ordered(told)


def _of(check: Check, context: Context, number: str) -> Sequence[Finding]:
    if context.late:
        context.skipped.append(check.name)
        return []
    context.say(f"checking {check.name}, {number}")
    return check.run(context)


def ordered(found: Iterable[Finding]) -> list[Finding]:
    """The findings in the order of their classes, in which a user should read them."""
    known = sorted(found, key=order)
    return [one for one in known if not any(_tells(other, one) for other in known)]


def _tells(root: Finding, one: Finding) -> bool:
    """Whether the finding `root` already tells the fact of `one`.

    An unwritten value, if the instruction that reads it breaks a contract: it reads too early.
    Unordered accesses, if one of them contradicts a declaration of PROGRAM.toml, or the counts of a
    buffer. A line of PROGRAM.toml that `root` names as the culprit of unordered accesses.
    """
    if root.check == "contract" and one.check in ("unwritten", "order"):
        breaks = one.check == "unwritten" or _declared(root) or root.found_by == "buffers"
        same = not _accesses(root).isdisjoint(_accesses(one))
        apart = one.found_by == "transfers"  # where tiles have the same buffers
        mine, its = root.ends, one.ends
        if mine is not None and its is not None and (apart or mine.tile == its.tile):
            of_both = mine.things & its.things  # the pages of one buffer
            same = same or any(thing[0] == BYTES for thing in of_both)
        return breaks and same
    if root.check == "order" and one.check == "contract" and _declared(one):
        return all(root.culprit.get(name) == one.culprit.get(name) for name in ("file", "line"))
    return False


def explained(refused: Finding, found: Sequence[Finding]) -> list[Finding]:
    """A refused word, and the findings; that of what it uses which nothing has written, or in
    another format than declared, is one with it."""
    for one in found:
        explains = one.check == "unwritten" or one.found_by == "formats"
        if explains and _accesses(refused) & _accesses(one):
            text, evidence = f"{refused.text}: {one.text}", (*refused.evidence, *one.evidence)
            told = replace(refused, text=text, culprit=one.culprit, victim=refused.culprit)
            told = replace(told, evidence=evidence, advice=one.advice)
            return [told, *(other for other in found if other is not one)]
    known = any(one.found_by == "error" and one.text.startswith(refused.text) for one in found)
    return [*found] if known else [refused, *found]


def _declared(found: Finding) -> bool:
    """Whether its culprit is a line of PROGRAM.toml."""
    return "file" in found.culprit and "pc" not in found.culprit


def _accesses(found: Finding) -> set[tuple[object, ...]]:
    """The instructions of its culprit and victim, by core and pc; of cores also the lines that call
    them: a request takes several instructions."""
    sides = [one for one in (found.culprit, found.victim) if one.get("pc") is not None]
    of_cores = [(one, (one.get("inlined") or [one])[-1]) for one in sides if "thread" not in one]
    lines = {(one.get("core"), at["file"], at["line"]) for one, at in of_cores if at.get("line")}
    return {*lines, *((one.get("core"), one["pc"]) for one in sides)}
