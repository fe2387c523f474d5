"""Words that somebody has written over: arguments, an address, code, what a core waits for."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bhemu.errors import BhemuError, NoProgress
from bhemu.launch.session import data_of
from bhemu.machine.error_text import where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change
from bhemu.memmap import CORE_NAMES, L1_SIZE, MAILBOX_BASE, MAILBOX_END
from bhemu.program.loader import Segment, read_elf
from bhemu.program.specs import Program
from bhemu.riscv.assembly import NOP
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.why.check import Context
from bhemu.why.findings import Finding, in_words, place
from bhemu.why.order.sites import comparison
from bhemu.why.origin.chain import last_change
from bhemu.why.origin.instructions import sources_of, window

_MOST = 4  # stores that are left out
_KINDS = ("elf", "llk")  # of these the host leaves every ELF where it was linked to
_ADVICE = "leave the word to those who read it: look at the address of this store"


def _found(
    kind: str, tile: Tile, change: Change, clock: int, address: int, text: str,
    *told: str, advice: str = "",
) -> Finding:  # fmt: skip
    """A word of L1 and who has changed it last."""
    who = place(change.where, clock, tile)
    evidence = (f"the last change of it: {in_words(who)}", *told) if advice else ()
    victim = {"place": f"L1 {address:#x}"}
    return Finding(kind, "error", text, who, victim, evidence, advice)


def _given(context: Context, tile: Tile) -> Iterator[tuple[int, bytes]]:
    """What [[set]] of PROGRAM.toml puts into L1."""
    part = context.program.placed()[0]
    for spec in part.sets:
        yield resolve(tile, spec.at), data_of(spec, tile, part)


def arguments(context: Context) -> Iterator[Finding]:
    """Who has written over a word of [[set]], where without that store all outputs are right.

    `context.tile` stands at the end of a run that went wrong, with its history.
    """
    if context.symptom.fine or context.is_chip or not context.program.outputs:
        return
    tile = context.tile
    if tile.loop.observer is None:
        return

    def without(pc: int) -> Callable[[Tile], None]:
        return lambda tile: tile.write(pc, NOP.to_bytes(4, "little"))

    tried, words = set[int](), tile.state.l1.view("<u4")
    for at, data in _given(context, tile):
        given = np.frombuffer(data[: len(data) & ~3], "<u4")
        held = words[at // 4 :][: len(given)]
        fits = at % 4 == 0 and at + len(data) <= L1_SIZE
        for n in np.flatnonzero(given != held) if fits else ():
            address = at + 4 * int(n)
            change, clock = last_change(tile, address)
            pc = None if change is None or change.where.thread is not None else change.where.pc
            cls = None if pc is None else decode(tile.read32(pc))
            if change is None or pc is None or pc in tried or len(tried) == _MOST:
                continue
            if cls is None or not issubclass(cls, Store):
                continue
            tried.add(pc)
            if context.again(without(pc)).fine:
                yield _found(
                    "program", tile, change, clock, address,
                    f"{change.where.core} overwrites L1 {address:#x}, which PROGRAM.toml sets to"
                    f" {change.before:#x}, with {change.after:#x}",
                    "without this store all outputs are right",
                    advice=_ADVICE,
                )  # fmt: skip
                return


def address(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote or sent the word that a refused address comes from.

    The tile stands at the error, with a history.
    """
    at = None if error is None else error.where
    if at is None or context.is_chip or at.thread is not None or at.core is None:
        return
    tile = context.tile
    if at.core not in tile.core or tile.loop.observer is None:
        return
    given = [(low, low + len(data)) for low, data in _given(context, tile)]
    end, loaded, found = tile.clock, list[tuple[int, int]](), list[Finding]()
    with suppress(BhemuError):  # in which the run has ended
        loaded = list(_loaded_from(tile, at.core))
    with suppress(BhemuError), tile.history.replaying():
        tile.history.to(end)
    for word, value in loaded:
        if MAILBOX_BASE <= word < MAILBOX_END:
            found += _sent(context, at.core, value, f"{at}")
        elif any(low <= word < high for low, high in given):
            change, clock = last_change(tile, word)
            if change is not None and change.where.core is not None:
                text = f"{change.where.core} overwrites L1 {word & ~3:#x}, which PROGRAM.toml sets,"
                text += f" with {change.after:#x}: from there an address comes that cannot be"
                found.append(
                    _found(
                        "error", tile, change, clock, word & ~3, f"{text} accessed",
                        f"used by {at}", advice=_ADVICE,
                    )
                )  # fmt: skip
        if found:
            break
    yield from found


def _loaded_from(tile: Tile, name: str) -> Iterator[tuple[int, int]]:
    """Words of L1 and mailboxes from which an address comes that a core is about to access.

    With each what the core has loaded there; the tile moves back.
    """
    executed = window(tile.history, tile.core[name])
    cls: Any = decode(executed[-1].word)
    if cls is None or not issubclass(cls, Load | Store | Atomic):
        return
    behind = dict(pairwise(executed))
    for one in sources_of(executed, cls.rs1.get(executed[-1].word)):
        if one.kind == "load" and one.at in behind:
            if one.address < L1_SIZE or MAILBOX_BASE <= one.address < MAILBOX_END:
                yield one.address, behind[one.at].regs[one.at.word >> 7 & 31]


def _sent(context: Context, reader: str, value: int, used: str) -> Iterator[Finding]:
    """Who has sent a core, last of all, a message that is no address."""
    tile = context.launch(engine="compiled")
    tile.log, tile.state.trace[0] = [], WORDS_AND_STORES
    with suppress(BhemuError):
        tile.run(limit=max(context.end - tile.clock, 1))
    tile.drain_log()
    for who, word, pc, at, clock in reversed(tile.log):
        sends = who >= FIRST_CORE and MAILBOX_BASE <= at < MAILBOX_END
        core = CORE_NAMES[who - FIRST_CORE] if sends else reader
        if core != reader and word == value:
            by = place(where_core(tile, CORE_NAMES.index(core), pc), clock, tile)
            text = f"{core} sends {reader} {value:#x}, from which an address comes that cannot be"
            yield Finding(
                "error", "error", f"{text} accessed", by, {}, (f"used by {used}",),
                "look at what is sent",
            )  # fmt: skip
            return


def code(tile: Tile, program: Program) -> Iterator[Finding]:
    """Who has written over code, first in memory; `tile` stands at the end, with its history."""
    if program.kind not in _KINDS or tile.loop.observer is None:
        return
    for core, spec in program.cores.items():
        for segment in () if spec.elf is None else read_elf(spec.elf).segments:
            at = _changed(tile, core, segment)
            change, clock = (None, 0) if at is None else last_change(tile, at)
            if at is None or change is None:
                continue
            symbol, file, line = tile.core[core].locate(at)
            what = f"{symbol} ({file}:{line})" if line else str(symbol)
            text = f"{change.where.core} writes {change.after:#x} over code of {core} at {at:#x}"
            yield _found(
                "error", tile, change, clock, at, f"{text}, {what}",
                advice="look at the address: a null pointer, an index beyond its array, another"
                " core's memory",
            )  # fmt: skip
            return


def _changed(tile: Tile, core: str, segment: Segment) -> int | None:
    """The first instruction of a segment that is another one now; data beside the code may be."""
    size = len(segment.data) & ~3
    if not segment.executable or segment.vaddr != segment.paddr or segment.vaddr + size > L1_SIZE:
        return None
    held = tile.state.l1[segment.vaddr : segment.vaddr + size].view("<u4")
    linked = np.frombuffer(segment.data[:size], "<u4")
    places = (segment.vaddr + 4 * int(n) for n in np.flatnonzero(held != linked))
    return next((at for at in places if tile.core[core].locate(at)[2]), None)


# A hang in which a word of L1 has held what is waited for.


class _Poll(NamedTuple):
    """A core polls a word of L1 in a hang; `values`: what its registers hold. Core -1: the end."""

    core: int
    address: int
    pc: int
    values: tuple[int, ...]


def _polls(error: NoProgress, tile: Tile) -> Iterator[_Poll]:
    for waiter in getattr(error.graph, "waiters", ()):
        if waiter.kind == "l1" and waiter.who in CORE_NAMES:
            values = sorted({int(n) for n in tile.core[waiter.who].regs[1:]} - {0})
            at, pc = waiter.resource["address"] & ~3, int(waiter.where["pc"])
            yield _Poll(CORE_NAMES.index(waiter.who), at, pc, tuple(values))
    for _, at, want in tile.loop.end.words:
        if int(tile.state.l1.view("<u4")[at >> 2]) != want:
            yield _Poll(-1, at & ~3, 0, (want,))


def awaited(tile: Tile, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote what is waited for; `tile` stands in the hang, with its history."""
    if not isinstance(error, NoProgress) or tile.loop.observer is None:
        return
    polls = list(_polls(error, tile))
    for one in polls:
        last, clock = last_change(tile, one.address)
        if last is None or last.before not in one.values or not last.before:
            continue
        if one.core >= 0 and last.where.core == CORE_NAMES[one.core]:
            continue  # it has seen what it waited for, and waits for the next
        same = [other for other in polls if other[:2] == one[:2] and one.core >= 0]
        if any(_goes_on(tile, other, (last.before, last.after)) for other in same):
            continue
        waiter = "the program" if one.core < 0 else CORE_NAMES[one.core]
        text = f"L1 {one.address:#x} held {last.before:#x}, which {waiter} waits for, until"
        text += f" {last.where.core} overwrote it with {last.after:#x}"
        yield _found("hang", tile, last, clock, one.address, text)


def _goes_on(tile: Tile, poll: _Poll, values: tuple[int, int]) -> bool:
    """Whether a core's wait ends by neither of two values, as its branch compares them."""
    compared = comparison(tile.state.l1, poll.pc)
    if compared is None:
        return values[1] == values[0] + 1  # it counts, and what is left of that is waited for
    branch, other = compared
    word = int(tile.state.l1.view("<u4")[branch >> 2])
    cls: Any = decode(word)
    held = int(tile.core[CORE_NAMES[poll.core]].regs[other]) if other else 0
    first = cls.rs2.get(word) == other
    pairs = [(one, held) if first else (held, one) for one in values]
    return len({bool(cls.execute(*pair)) for pair in pairs}) == 1
