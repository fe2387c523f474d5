"""Edits of a store to Config of one unpacker: to the same fields of the other one, or to both."""

from collections.abc import Iterator

from bhemu.memmap import TENSIX_CFG_BASE, TENSIX_CFG_END
from bhemu.riscv.formats import Store
from bhemu.riscv.isa import decode
from bhemu.tensix import config_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.config_fields import Field
from bhemu.why.repair.edits import Code, Edit, Lines, Site

_INSTEAD, _TOO = 1.12, 1.32  # costs
_AGAIN = 0.05  # how much likelier a line is wrong that stores where another one has stored
_PAIRS = (("SEC0", "SEC1"), ("SEC1", "SEC0"))


def _others() -> dict[int, tuple[int, str]]:
    """By Config word the word of the other section with the same fields, and a field there."""
    fields = {name: one for name, one in vars(config_fields).items() if isinstance(one, Field)}
    found: dict[int, tuple[int, str]] = {}
    for name, field in fields.items():
        for one, two in _PAIRS:
            other = name.replace(f"THCON_{one}_", f"THCON_{two}_")
            if other != name and other in fields:
                found.setdefault(field.word, (fields[other].word, other))
    return found


_OTHER = _others()


def edits(code: Code, sites: list[Site], lines: Lines) -> Iterator[Edit]:
    """What a line stores for one unpacker stored for the other, instead or as well."""
    found: dict[object, list[Site]] = {}
    for site in sites:
        if TENSIX_CFG_BASE <= (site.address or 0) < TENSIX_CFG_END:
            where = lines.where(site.core, site.pc)
            line = site.pc if where.line is None else (where.file, where.line)
            found.setdefault((site.core, line, site.address), []).append(site)
    before: set[tuple[int, int | None]] = set()
    for group in found.values():
        place = group[0].core, group[0].address
        yield from _of_line(code, group, _AGAIN * (place in before))
        before.add(place)


def _of_line(code: Code, group: list[Site], less: float) -> Iterator[Edit]:
    core, at = group[0].core, group[0].address or 0
    word = (at - TENSIX_CFG_BASE) // 4 % CONFIG_WORDS
    if word not in _OTHER:
        return
    other, name = _OTHER[word]
    instead, both = [], []
    for pc in sorted({site.pc for site in group}):
        held = code.words[core][pc]
        cls = decode(held)
        if cls is None or not issubclass(cls, Store):
            return
        imm = cls.imm.get(held) + 4 * (other - word)
        if not -2048 <= imm < 2048:
            return
        moved = cls.imm.put(held, imm)
        instead.append((pc, (moved,)))
        both.append((pc, (held, moved)))
    text = f"{name} is to be set here"
    yield Edit(core, tuple(instead), f"{text}, not the other section", _INSTEAD - less)
    yield Edit(core, tuple(both), f"{text} as well", _TOO)
