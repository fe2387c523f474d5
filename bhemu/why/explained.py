"""Which conflicts a cure explains: those that are gone from the run once it is in place.

A wrong address or half of Dst is a conflict with who uses that place by right. Whom it blames can
be wrong then; a change of one value that takes it away and makes the run right is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bhemu.riscv.formats import Branch, Pushed, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.insn import decode as decode_word
from bhemu.why import checks, filled
from bhemu.why.check import Context
from bhemu.why.checks import repair
from bhemu.why.failures.end_words import wrong_end
from bhemu.why.findings import Finding
from bhemu.why.likelihood import likely
from bhemu.why.repair.cures import Cure
from bhemu.why.repair.edits import NOP
from bhemu.why.repair.search import WORK, Search

_CONFLICTS = ("races", "barriers", "transfers")
_TWO_SIDED = ("races", "slots")  # say that two lines do not fit, and blame one of them
_PAGE = 4096  # bytes of the largest tile
_LIKELY = 1.1  # cost of a cure of another schedule, or that says who of two is wrong


@dataclass
class _Cured(Context):
    """The program with a change in its code."""

    change: Callable[[Any], None] = lambda machine: None

    def launch(self, **options: Any) -> Any:
        """The changed program once more."""
        machine = super().launch(**options)
        self.change(machine)
        return machine


def ranked(context: Context, found: list[Finding]) -> list[Finding]:
    """The findings; behind a cure the conflicts that it explains."""
    search: Search | None = context.facts.get("search")
    found = _of_formats(_of_narrow_pages(context, wrong_end(context, found)))
    if search is None:
        return filled.cured(context, _of_schedule(context, found))
    cures = [one for one in checks.likeliest(found) if one.check == "repair"]
    cure = search.told.get(cures[0].text) if cures else None
    if cure is None:
        return found
    if not _is_value(search, cure):
        return _of_other_sides(cure, cures, found)
    return _of_other_sides(cure, cures, _behind(context, search, cure, cures[0], found))


def _of_narrow_pages(context: Context, found: list[Finding]) -> list[Finding]:
    """The findings; what is unwritten in a page behind who packs it in too narrow a format."""
    pages = context.facts.get("narrow", [])
    left = {
        text
        for text, xy, at in context.facts.get("left", [])
        if any(xy == tile and 0 <= at - first < _PAGE for tile, first in pages)
    }
    most = max((one.likelihood for one in found if one.text in left), default=0)
    if not most:
        return found
    return [
        replace(one, likelihood=most + 1) if one.check == "formats" and _packs(one) else one
        for one in found
    ]


def _packs(found: Finding) -> bool:
    word = found.victim.get("word")
    cls = decode_word(word) if isinstance(word, int) else None
    return cls is not None and cls.name == "PACR"


def _of_formats(found: list[Finding]) -> list[Finding]:
    """The findings; behind a wrong format for certain what that access does wrong besides.

    It takes more bytes than its page has, or fewer.
    """
    sure = [one for one in found if one.check == "formats" and one.severity == "error"]
    by = {_access(one.victim): one.likelihood - 1 for one in sure}
    most = [min(by.get(_access(who), 101) for who in (f.culprit, f.victim)) for f in found]
    return [
        one if one in sure else replace(one, likelihood=min(one.likelihood, limit))
        for one, limit in zip(found, most, strict=True)
    ]


def _access(who: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(who.get("tile") or ()), who.get("core"), who.get("pc", -1)


def _of_other_sides(cure: Cure, cures: list[Finding], found: list[Finding]) -> list[Finding]:
    """The findings; behind a likely cure those whose other side it changes: that one is wrong."""
    first, lines = cures[0], {_line(one.culprit) for one in cures}
    if cure.cost > _LIKELY:
        return found
    told = f"the other side is wrong: see {first.text}"
    return [
        replace(f, likelihood=first.likelihood - 1, evidence=(*f.evidence, told))
        if f.check in _TWO_SIDED
        and f.likelihood >= first.likelihood
        and _line(f.victim) == _line(first.culprit)
        and _line(f.culprit) not in lines
        else f
        for f in found
    ]


def _line(who: dict[str, Any]) -> tuple[Any, ...]:
    return who.get("core"), who.get("file"), who.get("line")


def _behind(
    context: Context, search: Search, cure: Cure, first: Finding, found: list[Finding]
) -> list[Finding]:
    # A conflict that blames a value of PROGRAM.toml, and no core, has its own cure.
    blamed = [f for f in found if f.check in _CONFLICTS and f.culprit.get("core")]
    above = [f for f in blamed if f.likelihood > first.likelihood]
    gone = _gone(context, search, cure, above)
    told = f"not there any more with the change of {first.text}"
    return [
        replace(f, likelihood=first.likelihood - 1, evidence=(*f.evidence, told))
        if f in gone
        else f
        for f in found
    ]


def _gone(context: Context, search: Search, cure: Cure, found: Sequence[Finding]) -> list[Finding]:
    """Those that the checks do not find any more in the cured program, which must be right."""
    if not found or cure.edit is None:
        return []
    again = _Cured(context.program, context.symptom, context.quantum, context.say)
    again.change, again.work = partial(_change, search, cure), context.work
    again.symptom = again.again()
    if not again.symptom.fine:
        return []
    names = sorted({one.check for one in found})
    still = {_key(one) for name in names for one in checks.every()[name].run(again)}
    return [one for one in found if _key(one) not in still]


def _change(search: Search, cure: Cure, machine: Any) -> None:
    """Put a cure into a launched program."""
    program = search.trials.program
    assert cure.edit is not None
    for number, change in search.changes(search.parts[cure.part], cure.edit).items():
        tiles = [machine]
        if not program.is_alone:
            tiles = [machine.tile[xy] for xy in program.placed()[number].at]
        for tile in tiles:
            change(tile)
            tile.state.flush[:] = 1


def _key(found: Finding) -> tuple[Any, ...]:
    return found.check, *_line(found.culprit)


def _is_value(search: Search, cure: Cure) -> bool:
    """Whether a cure changes values alone, and nothing that waits, orders or adds work."""
    if cure.edit is None:
        return False
    code = search.parts[cure.part].code
    for pc, instead in cure.edit.code:
        owner = code.owner(pc)  # of a header's line every core that has it
        if owner is None:
            continue  # a word of a table
        held = code.words[owner][pc]
        if len(instead) == 1 and _lets_fewer_pass(held, instead[0]):
            continue
        if NOP in instead or _waits(held) or any(map(_waits, instead)):
            return False
        if instead[0] == held and any(map(_acts, instead[1:])):
            return False
    return True


def _acts(word: int) -> bool:
    cls = decode(word)
    return cls is not None and issubclass(cls, Pushed | Store)


def _waits(word: int) -> bool:
    """Whether it is a branch, or pushes what waits or hands over."""
    cls = decode(word)
    if cls is None or issubclass(cls, Branch):
        return True
    pushed = decode_word(cls.pushed(word)) if issubclass(cls, Pushed) else None
    return pushed is not None and pushed.unit == "sync"


def _lets_fewer_pass(held: int, instead: int) -> bool:
    """Whether a SEMINIT gives its semaphores a smaller value at first: nobody waits less."""
    then, now = (_semaphores(word) for word in (held, instead))
    if then is None or now is None:
        return False
    same = all(then[name] == now[name] for name in ("sem_sel", "max_value"))
    return same and now["init_value"] < then["init_value"]


def _semaphores(word: int) -> dict[str, int] | None:
    """What a SEMINIT that an instruction pushes gives which semaphores."""
    cls = decode(word)
    pushed = cls.pushed(word) if cls is not None and issubclass(cls, Pushed) else 0
    name = decode_word(pushed)
    return name.operands(pushed) if name is not None and name.name == "SEMINIT" else None


def _of_schedule(context: Context, found: list[Finding]) -> list[Finding]:
    """The findings and, of a run that is right by luck, a cure of one that is not."""
    other = context.facts.get("witness")
    raced = [one for one in found if one.check in _CONFLICTS]
    if not context.symptom.fine or context.is_chip or not raced or other is None:
        return found
    if not other.outcome.wrong or other.outcome.error is not None or other.other.seed is not None:
        return found
    search = Search(context.program, context.end, other.other.quantum)
    cures = [one for one in search.run(WORK // 4) if one.cost <= _LIKELY]
    for cure in cures[:1] if all(_is_value(search, one) for one in cures) else ():
        if len(_gone(context, search, cure, raced)) == len(raced):
            one = repair.finding(search, cure, 0, other.outcome)
            told = (*one.evidence, *other.commands(context))
            return [replace(one, likelihood=likely("cure of a conflict"), evidence=told), *found]
    return found
