"""Edits of a constant that a core loads into an LReg in two halves: both words are wrong."""

import struct
from collections.abc import Iterator
from itertools import pairwise

from bhemu.tensix.insn import decode
from bhemu.why.repair.edits import Code, Edit, Site, pushes, pushing, storing

LOW, HIGH = 10, 8  # instr_mod0 of SFPLOADI: which half it loads
_COST = 1.25
_SIGN, _ONE_EXPONENT = 0x80000000, 0x00800000
_COUNT = 1 << 16  # an integer below it may have been meant as a float


def edits(code: Code, groups: list[list[Site]]) -> Iterator[Edit]:
    """Each constant with another value, which both words together give."""
    loads = [
        (group, mode, value)
        for group in groups
        if (mode := _half(group)) is not None and (value := group[0].values[0]) is not None
    ]
    for (one, mode, word), (two, other, next_word) in pairwise(loads):
        same = one[0].core == two[0].core and (word ^ next_word) & 0x00F00000 == 0
        if not same or {mode, other} != {LOW, HIGH}:
            continue
        low, high = (word, next_word) if mode == LOW else (next_word, word)
        now = (high & 0xFFFF) << 16 | low & 0xFFFF
        for value, text in _values(now):
            halves = {LOW: value & 0xFFFF, HIGH: value >> 16}
            changed = (*_changed(code, one, halves[mode]), *_changed(code, two, halves[other]))
            yield Edit(one[0].core, changed, f"constant {text}, not {now:#x}", _COST, given=True)


def _half(group: list[Site]) -> int | None:
    """Which half of an LReg a line loads, where it is always the same value."""
    site = group[0]
    if not pushes(site) or len(site.values) != 1:
        return None
    cls = decode(site.values[0])
    if cls is None or cls.name != "SFPLOADI":
        return None
    mode = cls.operands(site.values[0])["instr_mod0"]
    return mode if mode in (LOW, HIGH) else None


def _changed(code: Code, group: list[Site], half: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    held, free = code.words[group[0].core], code.free_registers(group[0].core)
    for site in group:
        word = site.values[0] & ~0xFFFF | half
        if site.address is None:
            yield site.pc, (pushing(word),)
        else:
            yield site.pc, storing(held[site.pc], word, free)


def _values(now: int) -> Iterator[tuple[int, str]]:
    """What a constant may have been meant to be."""
    if 0 < now < _COUNT:
        yield _bits(float(now)), f"{float(now)}"
        yield _bits(-float(now)), f"{-float(now)}"
    as_float = struct.unpack("<f", now.to_bytes(4, "little"))[0]
    if as_float == as_float and abs(as_float) < _COUNT and as_float == int(as_float) != 0:
        yield int(as_float) & 0xFFFFFFFF, f"{int(as_float):#x}"
    for other in (now ^ _SIGN, now + _ONE_EXPONENT, now - _ONE_EXPONENT):
        if 0 <= other < 1 << 32:
            yield other, f"{other:#x}"


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")
