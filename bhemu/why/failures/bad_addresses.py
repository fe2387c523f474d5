"""An access to a wrong address, which comes from an overwritten word or from a message."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from bhemu.errors import BhemuError
from bhemu.launch.session import data_of
from bhemu.machine.error_text import where_core
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, spans
from bhemu.memmap import CORE_NAMES, L1_SIZE, MAILBOX_BASE, MAILBOX_END
from bhemu.riscv.formats import Atomic, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.why.causes.chain import Chain
from bhemu.why.causes.instructions import sources_of, window
from bhemu.why.check import Context
from bhemu.why.findings import Finding, in_words, likely, place


def overwritten_address(context: Context, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote or sent it; the tile stands at the error, with a history."""
    where = None if error is None else error.where
    if where is None or context.is_chip or where.thread is not None or where.core is None:
        return
    tile = context.tile
    if where.core not in tile.core or tile.loop.observer is None:
        return
    given, end = list(_given(context, tile)), tile.clock
    found: list[Finding] = []
    with suppress(BhemuError):  # in which the run has ended
        for address, value in _loaded_from(tile, where.core):
            if found:
                break
            if MAILBOX_BASE <= address < MAILBOX_END:
                found += _sent(context, where.core, value, f"{where}")
            elif any(low <= address < high for low, high in given):
                tile.history.to(end)
                name = f"{address & ~3:#x}:4"
                change = Chain(tile).last_change(name, spans(tile, "brisc", name))
                if change is not None and change.where.core is not None:
                    found.append(_finding(tile, change, address & ~3, tile.clock, f"{where}"))
    with suppress(BhemuError), tile.history.replaying():
        tile.history.to(end)
    yield from found


def _given(context: Context, tile: Tile) -> Iterator[tuple[int, int]]:
    """L1 that [[set]] of PROGRAM.toml fills."""
    part = context.program.placed()[0]
    for spec in part.sets:
        at = resolve(tile, spec.at)
        yield at, at + len(data_of(spec, tile, part))


def _loaded_from(tile: Tile, name: str) -> Iterator[tuple[int, int]]:
    """Words of L1 and mailboxes from which an address comes that a core is about to access.

    With each what the core has loaded there.
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
    for who, word, pc, address, clock in reversed(tile.log):
        sends = who >= FIRST_CORE and MAILBOX_BASE <= address < MAILBOX_END
        core = CORE_NAMES[who - FIRST_CORE] if sends else reader
        if core != reader and word == value:
            who_sent = place(where_core(tile, CORE_NAMES.index(core), pc), clock, tile)
            yield Finding(
                "error", "error",
                f"{core} sends {reader} {value:#x}, from which an address comes that cannot be"
                " accessed", who_sent, {}, (f"used by {used}",), "look at what is sent",
                likely("message that is no address"),
            )  # fmt: skip
            return


def _finding(tile: Tile, change: Change, address: int, clock: int, reader: str) -> Finding:
    who = place(change.where, clock, tile)
    text = (
        f"{change.where.core} overwrites L1 {address:#x}, which PROGRAM.toml sets, with"
        f" {change.after:#x}: from there an address comes that cannot be accessed"
    )
    told = (f"the last change of it: {in_words(who)}", f"used by {reader}")
    return Finding(
        "error", "error", text, who, {"place": f"L1 {address:#x}"}, told,
        "leave the word to those who read it: look at the address of this store",
        likely("overwritten"),
    )  # fmt: skip
