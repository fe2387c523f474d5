"""A hang in which a word of L1 has held what is waited for, and was overwritten."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from bhemu.errors import BhemuError, InputError, NoProgress
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import spans
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.isa import decode
from bhemu.why.causes.chain import Chain
from bhemu.why.findings import Finding, place
from bhemu.why.ordering.recorder import comparison


class _Poll(NamedTuple):
    """A core polls a word of L1 in a hang; `values`: what its registers hold."""

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


def _ends(tile: Tile) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Words that the program was to end with, and does not."""
    for _, at, want in tile.loop.end.words:
        if int(tile.state.l1.view("<u4")[at >> 2]) != want:
            yield -1, at & ~3, (want,)


def _goes_on(tile: Tile, polls: list[_Poll], poller: int, at: int, values: tuple[int, int]) -> bool:
    """Whether a core's wait ends by neither of two values, as its branch compares them."""
    for one in polls:
        compared = comparison(tile, one.pc)
        if (one.core, one.address) != (poller, at):
            continue
        if compared is None:
            return values[1] == values[0] + 1  # it counts, and what is left of that is waited for
        branch, other = compared
        word = int(tile.state.l1.view("<u4")[branch >> 2])
        cls: Any = decode(word)
        held = int(tile.core[CORE_NAMES[poller]].regs[other]) if other else 0
        first = cls.rs2.get(word) == other
        pairs = [(one, held) if first else (held, one) for one in values]
        if len({bool(cls.execute(*pair)) for pair in pairs}) == 1:
            return True
    return False


def overwritten(tile: Tile, error: BhemuError | None) -> Iterator[Finding]:
    """Who overwrote it; `tile` stands in the hang, with its history."""
    if not isinstance(error, NoProgress) or tile.loop.observer is None:
        return
    polls, hang = list(_polls(error, tile)), tile.clock
    for poller, address, values in (*((p.core, p.address, p.values) for p in polls), *_ends(tile)):
        name = f"{address:#x}:4"
        try:
            last = Chain(tile).last_change(name, spans(tile, "brisc", name))
            clock = tile.clock
        except InputError:
            continue
        finally:
            tile.history.to(hang)
        if last is None or last.before not in values or not last.before:
            continue
        if poller >= 0 and last.where.core == CORE_NAMES[poller]:
            continue  # it has seen what it waited for, and waits for the next
        if _goes_on(tile, polls, poller, address, (last.before, last.after)):
            continue
        waiter = "the program" if poller < 0 else CORE_NAMES[poller]
        text = (
            f"L1 {address:#x} held {last.before:#x}, which {waiter} waits for, until"
            f" {last.where.core} overwrote it with {last.after:#x}"
        )
        who = place(last.where, clock, tile)
        yield Finding("hang", "error", text, who, {"place": f"L1 {address:#x}"}, (), "")
