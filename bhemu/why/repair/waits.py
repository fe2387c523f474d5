"""What a run that hangs waits for: lines that wait, words of L1 that are polled."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, NoProgress
from bhemu.hang.stores import Stored, code_stores
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, MAILBOX_BASE, MAILBOX_END
from bhemu.riscv.asm import addi, li, sw
from bhemu.riscv.formats import Branch, Jump, Load, Store
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import JALR
from bhemu.why.repair.edits import NOP, Edit, moves, storing
from bhemu.why.repair.places import Lines
from bhemu.why.repair.sites import Code, Site

_NEAR = 64  # bytes: words that belong together
_COUNTED = 1.95  # cost of a constant where what is stored is computed


@dataclass(frozen=True)
class Waits:
    """Of a hang; nothing for any other end of a run.

    `lines`: (core, file, line) of who waits; `polled`: (core, address, values that the core holds);
    `ends`: words that the program would end with and what they should hold;
    `mail`: (writer, reader) of mailboxes whose reader waits;
    `loads`: (core, address, pc) of the polls.
    """

    lines: frozenset[tuple[Any, ...]] = frozenset()
    polled: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    ends: tuple[tuple[int, int], ...] = ()
    mail: tuple[tuple[int, int], ...] = ()
    loads: tuple[tuple[int, int, int], ...] = ()

    @property
    def pcs(self) -> tuple[int, ...]:
        """Where the polls of L1 stand."""
        return tuple(sorted({pc for _, _, pc in self.loads}))

    @property
    def wanted(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """(core or -1, address, values) of the words of L1 that somebody waits for."""
        yield from self.polled
        yield from ((-1, address, (value,)) for address, value in self.ends)


def waits_of(error: BhemuError | None, tile: Tile) -> Waits:
    """Who waits in the hang in which `tile` stands."""
    graph: Any = error.graph if isinstance(error, NoProgress) else None
    lines, polled, mail, loads = set(), [], [], []
    for waiter in () if graph is None else graph.waiters:
        where = waiter.where
        lines.add((where.get("core"), where.get("file"), where.get("line")))
        for call in where.get("inlined", ()):
            lines.add((where.get("core"), call["file"], call["line"]))
        if waiter.kind == "mailbox" and "reader" in waiter.resource:
            mail.append((waiter.resource["writer"], waiter.resource["reader"]))
        if waiter.kind == "l1" and waiter.who in CORE_NAMES:
            values = sorted({int(n) for n in tile.core[waiter.who].regs[1:]} - {0})
            number = CORE_NAMES.index(waiter.who)
            polled.append((number, waiter.resource["address"] & ~3, tuple(values)))
            loads.append((number, waiter.resource["address"] & ~3, int(where["pc"])))
    ends = [] if graph is None or error is None else tile.loop.end.words
    missing = [(at & ~3, want) for _, at, want in ends if _word(tile, at) != want]
    return Waits(*(frozenset(lines), tuple(polled), tuple(missing), tuple(mail), tuple(loads)))


def _word(tile: Tile, address: int) -> int:
    return int(tile.state.l1.view("<u4")[address >> 2])


def stores(code: Code, tile: Tile, waits: Waits) -> Iterator[Edit]:
    """A store nearby that goes to the word that is waited for, or brings what is waited for."""
    near: dict[int, list[Stored]] = {}
    for core in code.words:
        known = code_stores(tile, core).stores.values()
        near[core] = [one for found in known for one in found if one.pc in code.words[core]]
    for poller, address, values in waits.wanted:
        for core in code.words:
            for one in near[core] if core != poller else ():
                yield from _instead(code, core, one, address, values, near)


def _instead(
    code: Code,
    core: int,
    one: Stored,
    address: int,
    values: tuple[int, ...],
    near: dict[int, list[Stored]],
) -> Iterator[Edit]:
    held, away = code.words[core][one.pc], address - one.address
    cls, free = decode(held), code.free_registers(core)
    if cls is None or not issubclass(cls, Store) or not -_NEAR < away < _NEAR:
        return
    offset = cls.imm.get(held) + away
    if away and -2048 <= offset < 2048:
        cost = 1.0 + 0.02 * _crosses(core, address, near)
        text = f"store to {address:#x} instead of {one.address:#x}"
        yield Edit(core, ((int(one.pc), (cls.imm.put(held, offset),)),), text, cost)
    for by in (1, -1) if not away and one.value is None else ():
        counted = (addi(free[-1], held >> 20 & 31, by), _from(held, free[-1]))
        yield Edit(core, ((int(one.pc), counted),), f"store {by:+} to {address:#x}", 1.1)
    counts = one.value is None and not any(
        other.address == one.address and other.value is not None for other in near[core]
    )
    for value in values if not away else ():
        if value != one.value:
            text, cost = f"store {value:#x} to {address:#x}", _COUNTED if counts else 1.05
            yield Edit(core, ((int(one.pc), storing(held, value, free)),), text, cost)


def _from(store: int, register: int) -> int:
    """A store of another register."""
    return store & ~(31 << 20) | register << 20


def _crosses(core: int, address: int, near: dict[int, list[Stored]]) -> bool:
    """Whether a word of `core` would stand out of the order in which the cores have theirs."""
    return any(
        (other - core) * (one.address - address) < 0
        for other, found in near.items()
        for one in found
        if other not in (0, core) and abs(one.address - address) < _NEAR
    )


def messages(code: Code, sites: list[Site], waits: Waits) -> Iterator[Edit]:
    """What a core sends to another one sent to the one that waits for it as well."""
    for writer, reader in waits.mail:
        free = code.free_registers(writer) if writer in code.words else []
        for number, site in enumerate(sites):
            sends = site.address is not None and MAILBOX_BASE <= site.address < MAILBOX_END
            if site.core != writer or not sends or not free:
                continue
            held = code.words[writer][site.pc]
            to = MAILBOX_BASE + (MAILBOX_END - MAILBOX_BASE) // 4 * reader
            words = (held, *li(free[-1], to), sw(held >> 20 & 31, free[-1]))
            text = f"the same message to {CORE_NAMES[reader]} is missing behind this"
            yield Edit(writer, ((site.pc, words),), text, 1.25 - number / 10_000)


_STOPS = (0, 0xFFFFFFFF, 1)  # what a message may say that is the last one
_STOP = 1.3


def last_messages(code: Code, tile: Tile, waits: Waits) -> Iterator[Edit]:
    """A last message to all that wait for one, where the code of a core that has ended returns."""
    for writer in sorted({writer for writer, _ in waits.mail} & set(code.words)):
        held, core = code.words[writer], tile.core[CORE_NAMES[writer]]
        readers = [reader for one, reader in waits.mail if one == writer]
        returns = [
            pc for pc, word in held.items() if word == _RETURN and core.function(pc)[0] == "main"
        ]
        free = code.free_registers(writer)
        if not returns or len(free) < 2:
            continue
        for number, value in enumerate(_STOPS):
            sends = [*li(free[-2], value)]
            for reader in readers:
                to = MAILBOX_BASE + (MAILBOX_END - MAILBOX_BASE) // 4 * reader
                sends += [*li(free[-1], to), sw(free[-2], free[-1])]
            names = ", ".join(CORE_NAMES[reader] for reader in readers)
            text = f"a last message of {value:#x} to {names} is missing before this"
            changed = tuple((pc, (*sends, held[pc])) for pc in returns)
            yield Edit(writer, changed, text, _STOP + number / 100)


_UNANSWERED = 0.95  # that somebody waits for what all others have answered at another word


_STORED = 0.5  # how much less likely another store is of what a core stores already


def unanswered(code: Code, tile: Tile, waits: Waits, lines: Lines) -> Iterator[Edit]:
    """The wait for a word that no core stores, where each other core has a word beside it."""
    for poller, address, _ in waits.polled:
        near = set(range(address - _NEAR, address + _NEAR))
        others = {core: set(code_stores(tile, core).stores) for core in code.words}
        others.pop(poller, None)
        if not others or not all(near & stored for stored in others.values()):
            continue
        if any(address in stored for stored in others.values()):
            continue
        for pc, word in code.words.get(poller, {}).items():
            cls, where = decode(word), lines.where(poller, pc)
            waiting = (where.core, where.file, where.line) in waits.lines
            if waiting and cls is not None and issubclass(cls, Branch):
                text = f"nobody stores to {address:#x}: this wait is one too many"
                yield Edit(poller, ((pc, (NOP,)),), text, _UNANSWERED)


_RETURN = JALR.assemble(0, 1, 0)
_FEWER = 0.95  # and more, as of each change of a line that waits
_POLL = 16  # instructions of a loop that waits


def thresholds(code: Code, waits: Waits, lines: Lines) -> Iterator[Edit]:
    """What a core polls in a loop taken for some more or less: it waits for too many or too few.

    Not of messages, which say what their writer means.
    """
    readers = {CORE_NAMES[reader] for _, reader in waits.mail}
    waiting = {core for core, _, _ in waits.lines} - readers
    for core, held in code.words.items():
        found: dict[object, list[int]] = {}  # copies of a line, as of an unrolled loop
        for pc, word in sorted(held.items()) if CORE_NAMES[core] in waiting else ():
            where, cls = lines.where(core, pc), decode(word)
            line = where.core, where.file, where.line
            loads = cls is not None and issubclass(cls, Load) and word >> 7 & 31
            if line in waits.lines and loads:
                found.setdefault((line, where.inlined), []).append(pc)
        for loaded in found.values():
            for by in (1, -1, 2, -2) if any(_polls(held, pc) for pc in loaded) else ():
                text = f"wait for {abs(by)} {'less' if by > 0 else 'more'}"
                changed = ((pc, (held[pc], _more(held[pc] >> 7 & 31, by))) for pc in loaded)
                yield Edit(core, tuple(changed), text, _FEWER + abs(by) / 100)


def _more(register: int, by: int) -> int:
    return addi(register, register, by)


def _polls(held: dict[int, int], pc: int) -> bool:
    """Whether an instruction is in a short loop."""
    for end in range(pc, pc + 4 * _POLL, 4):
        cls: Any = decode(held.get(end, 0))
        if cls is not None and issubclass(cls, Branch | Jump):
            if end - 4 * _POLL < end + int(cls.offset.get(held[end])) <= pc:
                return True
    return False


def flags(code: Code, sites: list[Site], tile: Tile, waits: Waits) -> Iterator[Edit]:
    """A polled word of L1 stored behind the last line of another core."""
    last: dict[int, Site] = {}
    for site in sites:
        if site.core not in last or site.last > last[site.core].last:
            last[site.core] = site
    for poller, address, values in waits.polled:
        others = [core for core in code.words if core != poller]
        stored = {at for core in others for at in code_stores(tile, core).stores}
        for core, site in last.items():
            held, free = code.words[core], code.free_registers(core)
            if core == poller or len(free) < 2 or not moves(held[site.pc]):
                continue
            near = range(address - _NEAR, address + _NEAR)
            has_own = any(at in near for at in code_stores(tile, core).stores)
            more = 0.0 if address not in stored else _STORED
            for value in values:
                words = (*li(free[-1], address), *li(free[-2], value), sw(free[-2], free[-1]))
                text = f"a store of {value:#x} to {address:#x} is missing behind this"
                code_of = ((site.pc, (held[site.pc], *words)),)
                yield Edit(core, code_of, text, (1.4 if has_own else 1.2) + more)
