"""What each agent waits for in a hang, and which others could end the wait; names for that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices import queues
from bhemu.devices.bus.address_map import FIRST_BUFFER_STREAMS, STREAM_ROLES, block_name
from bhemu.errors import InputError
from bhemu.machine.hang import explore
from bhemu.machine.hang.explore import Loop, Poll, Wanted
from bhemu.machine.hang.givers import Agents, Releaser, arrivals, name_of
from bhemu.machine.sentences import CONDITIONS
from bhemu.machine.word_text import meaning
from bhemu.noc.grid import XY
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.tensix import banks, mmio
from bhemu.tensix import thread as gate
from bhemu.tensix.frontend import FIFO_FULL
from bhemu.tensix.insn import decode, disassemble, effects
from bhemu.tensix.spaces import Effect, Kind
from bhemu.tensix.state import CORES, NOC_ARRIVED
from bhemu.tensix.thread_fields import STREAM_ID_SYNC_SEC0_BankSel
from bhemu.tensix.units.sync import WAIT_MUTEX
from bhemu.text import times

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile
    from bhemu.program.specs import TileSpec

# What each blocked thread or core, and each core that polls, waits for: the resource in words.

_SRC = ("SrcA", "SrcB")
_SEMAPHORES = range(
    mm.PC_BUF_BASE + mm.PC_BUF_SEMAPHORES_OFFSET, mm.PC_BUF_BASE + mm.PC_BUF_SEMAPHORES_END_OFFSET
)
BELOW_MAXIMUM = "fall below its maximum"  # the end of the reason of such a wait
_BY_STORE = 3  # semaphores.note: a store of a core
# Conditions of the wait gate: SRCA or SRCB, whether the bank is to become valid
_GATE_BANKS = {
    gate.WAIT_SRCA_FREE: (banks.SRCA, False),
    gate.WAIT_SRCB_FREE: (banks.SRCB, False),
    gate.WAIT_SRCA_VALID: (banks.SRCA, True),
    gate.WAIT_SRCB_VALID: (banks.SRCB, True),
}
_ORIGINS = ("", " of the MOP it expands", " from replay slot {}")  # by gate_from
_TTSYNC = (queues.DRAIN, queues.MOP_DRAIN)
_MOST_POLLS = 4
_OWN = range(mm.LOCAL_BASE, mm.LOCAL_BASE + max(mm.LOCAL_SIZES))  # memory of the core itself
_NOBODY = -1  # no core is left out
_WIDTHS = {1: "byte", 2: "half-word", 4: "word"}


_NOTHING = (
    "found nothing that could release it: no store in as much of the code as could be followed, no"
    " word in a program, queue, MOP or replay buffer"
)


@dataclass(frozen=True)
class Waiter:
    """One that waits, or goes round in a loop.

    `kind` names the sort of resource ("semaphore", "mutex", "fifo", "src", "mailbox", "pcbuf",
    "ttsync", "l1", "stream", "clock", ...), `resource` which one with its present value,
    `releasers` those that could have released it, `place` and `where` the instruction, `detail` the
    numbers, `history` the last to touch the resource, `wanted` the value of a polled word with
    which it goes on, `elsewhere` of which tiles this word of L1 was written, and by whom,
    if nobody has written it here.
    """

    who: str
    kind: str
    reason: str
    place: str = ""
    detail: str = ""
    resource: dict[str, int] = field(default_factory=dict)
    releasers: tuple[Releaser, ...] = ()
    where: dict[str, Any] = field(default_factory=dict)
    history: str = ""
    wanted: Wanted | None = None
    elsewhere: str = ""

    def __str__(self) -> str:
        text = f"{self.who} waits for {self.reason}"
        if self.detail:
            text += f" ({self.detail})"
        return f"{text}, {self.place}" if self.place else text

    def lines(self) -> list[str]:
        """The wait, then what could have ended it and what touched the resource last."""
        more = [str(releaser) for releaser in self.releasers] or [_NOTHING]
        return [f"  {self}", *(f"      {line}" for line in [*more, self.history] if line)]


def _wait(
    kind: str,
    numbers: dict[str, int],
    reason: str,
    detail: str = "",
    releasers: Iterable[Releaser] = (),
    history: str = "",
) -> Waiter:
    """A wait in words, before it has a name and a place."""
    return Waiter("", kind, reason, "", detail, numbers, tuple(releasers), {}, history)


# Threads


def thread(agents: Agents, t: int) -> Waiter:
    """What thread `t`, which has a word at its gate, waits for."""
    s = agents.s
    number, word, origin = int(s.gate_blocked[t]), int(s.gate_word[t]), int(s.gate_from[t])
    waiting = int(s.latch_word[t]) if s.latch[t] else word
    where = {"thread": t, "word": waiting, "decoded": disassemble(waiting)}
    head = disassemble(word) + _ORIGINS[min(origin, 2)].format(origin - 2)
    if s.latch[t]:
        name = disassemble(waiting).partition(" ")[0]
        head = f"{name} ({meaning(waiting, t)}) holds back {head}"
    if number in (gate.WAIT_SEM_ZERO, gate.WAIT_SEM_FULL):
        wait = _semaphore(agents, t, number == gate.WAIT_SEM_ZERO)
    elif number == WAIT_MUTEX:
        wait = _mutex(agents, t)
    elif number in _GATE_BANKS:
        which, valid = _GATE_BANKS[number]
        held = s.matrix_bank if valid else s.unpack_bank
        wait = _bank(agents, which, int(held[which]) & 1, valid)
    elif number in banks.WAITED_FOR:
        wait = _bank(agents, *banks.WAITED_FOR[number])
    elif number in (gate.WAIT_PHASE, gate.WAIT_MESSAGES):
        wait = _stream(agents, t, CONDITIONS[number].text)
    elif number == gate.WAIT_SCALAR:
        owner, text = int(s.thcon[0]) - 1, CONDITIONS[number].text
        wait = _wait("scalar", {"owner": owner}, text, "", [agents.thread(owner)])
    else:  # any other word: what its class says of it, and the word of L1 that it looks at
        text = CONDITIONS[number].text if number in CONDITIONS else "its turn"
        cls = decode(word)
        if cls is None or (at := cls.looks_at(s, t, word)) is None:
            wait = _wait("other", {}, text)
        else:
            releasers = agents.by_stores(at, _NOBODY)
            wait = _wait("l1", {"address": at}, text, cls.explain(s, t, word), releasers)
    detail = "; ".join(part for part in (wait.detail, head) if part)
    return replace(wait, detail=detail, where=where)


def _stream(agents: Agents, t: int, text: str) -> Waiter:
    """A latched STREAMWAIT: the register of the stream that its selector names now."""
    s, target = agents.s, int(agents.s.latch_target[t])
    selector = STREAM_ID_SYNC_SEC0_BankSel.word + int(s.latch_stream[t])
    n = int(s.thread_cfg[t, selector]) & (mmio.STREAMS - 1)
    registers = [int(v) for v in s.stream[n]]
    register, value = mmio.NUM_MSGS_RECEIVED, registers[mmio.NUM_MSGS_RECEIVED]
    if int(s.latch_cond[t]) == 1 << gate.PHASE:
        register = mmio.CURR_PHASE
        value = (registers[register] - registers[mmio.CURR_PHASE_BASE]) & mmio.PHASE_MASK
    at = mmio.STREAMS_BASE + 0x1000 * n + 4 * register
    releasers = agents.by_stores(at, _NOBODY) + agents.by_words(Effect(Kind.STORES, at), held=True)
    numbers = {"stream": n, "register": register, "value": value}
    return _wait("stream", numbers, text, f"stream {n} = {value}, awaited {target}", releasers)


def _semaphore(agents: Agents, t: int, zero: bool) -> Waiter:
    s = agents.s
    selected = [i for i in range(8) if int(s.latch_sem[t]) >> i & 1]
    waited = [i for i in selected if (s.sem[i] == 0 if zero else s.sem[i] >= s.sem_max[i])]
    i = (waited or selected)[0]
    shown = ", ".join(f"semaphore {k} = {int(s.sem[k])}, max {int(s.sem_max[k])}" for k in waited)
    reason = f"semaphore {i} to {'become non-zero' if zero else BELOW_MAXIMUM}"
    releasers = semaphore_releasers(agents, i, zero)
    if not zero and not s.sem_max[i]:  # never set up: no SEMGET lets it fall below 0
        releasers = agents.by_words(Effect(Kind.SETS_BELOW_MAXIMUM, i))
    return _wait("semaphore", _numbers(s, i), reason, shown, releasers, touched(agents, i))


def _numbers(s: Any, i: int) -> dict[str, int]:
    return {"index": i, "value": int(s.sem[i]), "max": int(s.sem_max[i])}


def semaphore_releasers(agents: Agents, i: int, zero: bool) -> list[Releaser]:
    """Agents that post (zero) or take; for one never set up, those that would set it up."""
    found = agents.by_words(Effect(Kind.POSTS if zero else Kind.TAKES, i))
    known = {releaser.who for releaser in found}
    for core in range(1, 4):  # a store of an even value posts, of an odd one takes
        stores = agents.stores(core).storing(_SEMAPHORES.start + 4 * i)
        fits = [one for one in stores if one.value is None or (one.value & 1 == 0) == zero]
        if fits and mm.CORE_NAMES[core] not in known:
            found.append(agents.store(core, *fits))
    sets = Kind.SETS_ABOVE_ZERO if zero else Kind.SETS_BELOW_MAXIMUM
    return found or ([] if agents.s.sem_max[i] else agents.by_words(Effect(sets, i)))


def touched(agents: Agents, i: int) -> str:
    """The agents that posted and took semaphore `i` last."""
    s, parts = agents.s, []
    for taken, verb in enumerate(("posted", "taken")):
        code = int(s.sem_by[i, taken]) - 1
        if code < 0:
            parts.append(f"never {verb}")
            continue
        who, core = code & 7, code >> 3
        name = mm.CORE_NAMES[core] if who == _BY_STORE else f"thread T{who}"
        parts.append(f"last {verb} by {name} at {agents.place(core, int(s.sem_pc[i, taken]))}")
    return f"semaphore {i} was {', '.join(parts)}"


def _mutex(agents: Agents, t: int) -> Waiter:
    s = agents.s
    cls = decode(int(s.gate_word[t]))
    assert cls is not None
    i = cls.operands(int(s.gate_word[t]))["mutex_index"]
    owner = int(s.mutex[i]) - 1
    taken = agents.place(int(s.mutex_core[i]), int(s.mutex_pc[i]))
    words = [w for w in agents.words() if w.thread == owner]
    released = Effect(Kind.RELEASES, i)
    mine = next((w for w in words if released in effects(w.word)), None)
    history = f"thread T{owner} acquired it at {taken}"
    if mine is None:
        releasers = [agents.thread(owner)]
        history += " and holds no ATRELM of it"
    else:
        able = f"thread T{owner}", mine.who
        releasers = [one for one in agents.by_words(released) if one.who in able]
    numbers, held = {"index": i, "owner": owner}, f"held by thread T{owner}"
    return _wait("mutex", numbers, f"mutex {i}", held, releasers, history)


def _bank(agents: Agents, which: int, bank: int, valid: bool) -> Waiter:
    name, owner = _SRC[which], "the unpacker" if valid else "the matrix unit"
    reason = f"{name} bank {bank} to become {'valid' if valid else 'free'}"
    releasers = agents.by_words(Effect(Kind.HANDS_OVER if valid else Kind.FREES, which))
    numbers = {"which": which, "bank": bank, "valid": int(not valid)}
    return _wait("src", numbers, reason, f"{owner} has it", releasers)


# Blocked cores


def core(agents: Agents, c: int, number: int, address: int) -> Waiter:
    """What core `c` waits for: condition `number` of its access to `address`."""
    text = CONDITIONS[number].text if number in CONDITIONS else "a device"
    shown = f"address {address:#010x}"
    if number == FIFO_FULL:
        t = (address - mm.INSTRN_BUF_BASE) >> 16 if c == 0 else c - 1
        queued = int(agents.s.fifo_write[t] - agents.s.fifo_read[t])
        reason = f"room in the instruction FIFO of T{t}"
        shown += f", {queued} words queued for T{t}"
        wait = _wait("fifo", {"thread": t, "queued": queued}, reason, shown, [agents.thread(t)])
    elif number in _TTSYNC:
        wait = _wait("ttsync", {"thread": c - 1}, text, shown, [agents.thread(c - 1)])
    elif number in (queues.MAILBOX_EMPTY, queues.MAILBOX_FULL):
        wait = _mailbox(agents, c, number, (address - mm.MAILBOX_BASE) >> 12, shown)
    elif number == queues.PCBUF_EMPTY:
        releasers = agents.by_store_of(0, mm.PC_BUF_BASE + mm.PC_BUF_OTHERS * (c - 1))
        wait = _wait("pcbuf", {"trisc": c - 1}, text, shown, releasers)
    elif number in (queues.PCBUF_FULL, queues.PCBUF_BUSY):
        t = (address - mm.PC_BUF_BASE) // mm.PC_BUF_OTHERS
        held = int(agents.s.pcbuf_write[t] - agents.s.pcbuf_read[t])
        releasers = [agents.core(t + 1, "reads that PCBuf")]
        if number == queues.PCBUF_BUSY and agents.s.gate_full[t]:
            releasers.append(agents.thread(t))
        shown += f", {held} entries for trisc{t}"
        wait = _wait("pcbuf", {"trisc": t, "held": held}, text, shown, releasers)
    else:
        wait = _wait("other", {}, text, shown)
    return replace(wait, where=_instruction(agents, int(agents.s.pc[c])))


def _instruction(agents: Agents, pc: int) -> dict[str, Any]:
    word = int(agents.s.l1[pc : pc + 4].view("<u4")[0])
    return {"word": word, "decoded": riscv_text(word, pc, None, disassemble)}


def _mailbox(agents: Agents, c: int, number: int, n: int, text: str) -> Waiter:
    s = agents.s
    if number == queues.MAILBOX_EMPTY:
        releasers = agents.by_store_of(n, mm.MAILBOX_BASE + 0x1000 * c)
        reason = f"a mailbox message from {mm.CORE_NAMES[n]}"
        return _wait("mailbox", {"writer": n, "reader": c}, reason, text, releasers)
    full = [r for r in range(4) if s.mailbox_write[c, r] != s.mailbox_read[c, r]]
    held = ", ".join(
        f"{int(s.mailbox_write[c, r] - s.mailbox_read[c, r])} for {mm.CORE_NAMES[r]}" for r in full
    )
    releasers = [agents.core(r, "has not taken its messages") for r in full]
    reason = "room in the mailboxes it writes (4 words in all)"
    return _wait("mailbox", {"writer": c}, reason, f"{text}, {held}", releasers)


# Cores that poll


def loop(agents: Agents, found: Loop) -> Iterator[tuple[int, Waiter]]:
    """(pc, wait) of everything that decides about the loop of a core; the clock only if alone."""
    span = f"its loop is 0x{found.pcs[0]:08X}..0x{found.pcs[-1]:08X}"
    if found.waits is not None:
        pc, number = found.waits
        yield pc, core(agents, found.core, number, int(agents.s.core_address[found.core]))
        return
    clocks = [p for p in found.polls if explore.is_clock(p.address)]
    polls = [p for p in found.polls if p not in clocks]
    polls = ([p for p in polls if p.address not in _OWN] or polls)[:_MOST_POLLS]
    if clocks:
        span += ", the clock it reads ends nothing"
    for poll in polls:
        value = "varies" if poll.value is None else f"is {poll.value:#x}"
        detail = f"it polls {poll.address:#x}, which {value}; {span}"
        wanted = explore.wanted(agents.tile, found, poll)
        wait = _polled(agents, found.core, poll, wanted)
        detail = "; ".join(part for part in (wait.detail, detail) if part)
        where = _instruction(agents, poll.pc)
        yield poll.pc, replace(wait, detail=detail, where=where, wanted=wanted)
    if not polls:
        what = "nothing but the clock" if clocks else "nothing"
        pc = int(agents.s.pc[found.core])
        wait = _wait("clock" if clocks else "loop", {}, f"{what}: it goes round", span)
        yield pc, replace(wait, where=_instruction(agents, pc))


def _polled(agents: Agents, c: int, poll: Poll, wanted: Wanted | None) -> Waiter:
    """The wait for a polled word, by what could change it and who did last."""
    at, change = poll.address, "to change" if wanted is None else f"to become {wanted}"
    numbers = {"address": at} | ({} if poll.value is None else {"value": poll.value})
    if at in _SEMAPHORES and 1 <= c <= 3:
        i = (at - _SEMAPHORES.start) >> 2
        both = semaphore_releasers(agents, i, True) + semaphore_releasers(agents, i, False)
        others = {r.who: r for r in both if r.who != mm.CORE_NAMES[c]}.values()
        numbers, history = _numbers(agents.s, i), touched(agents, i)
        return _wait("semaphore", numbers, f"semaphore {i} to change", "", others, history)
    releasers = agents.by_stores(at, c, poll.size, poll.value, wanted)
    if at < mm.L1_SIZE:
        name = f"L1 {_WIDTHS[poll.size]} {at:#x}{semaphore_name(agents.tile, c, at)} {change}"
        return _wait("l1", numbers, name, "", releasers)
    if mm.OVERLAY_BASE <= at < mm.OVERLAY_END:
        return _polled_stream(agents, poll, wanted, numbers, releasers)
    if mm.MAILBOX_BASE <= at < mm.MAILBOX_END and c < 4:
        return _mailbox(agents, c, queues.MAILBOX_EMPTY, (at - mm.MAILBOX_BASE) >> 12, "")
    block = block_name(at)
    if at >= mm.GPR_BASE:  # GPRs and Config: what a thread still holds may write them
        near = range(3) if c == 0 or at >= mm.TENSIX_CFG_BASE else (c - 1,)
        releasers += [agents.thread(t) for t in near if agents.s.gate_full[t]]
    return _wait("register", numbers, f"{block} word {at & ~3:#x} to change", "", releasers)


# Names for what is waited for: circular buffers and semaphores of the launched program.

# Registers of streams count the pages of circular buffers.

PAGES = {  # by register of a stream: what its store does with pages, what is done with them
    mmio.REMOTE_DEST_BUF_START: ("gives pages back", "given back"),
    mmio.REMOTE_DEST_BUF_SIZE: ("announces pages", "announced"),
}
_OPERANDS = re.compile(r"\b\w+=\S+ ")
_ADDRESS = re.compile(r" to 0x\w+$")


def _polled_stream(
    agents: Agents, poll: Poll, wanted: Wanted | None, numbers: dict[str, int], by: list[Releaser]
) -> Waiter:
    """As _polled, for a register of a stream: for pages, where the buffer that it counts is known;
    by: those that store to it."""
    stream, register = (poll.address - mm.OVERLAY_BASE) >> 12, (poll.address & 0xFFF) >> 2
    numbers |= {"stream": stream, "register": register}
    by = by + agents.by_words(Effect(Kind.STORES, poll.address), held=True)
    role, at = STREAM_ROLES.get(register), f"register {register} of stream {stream}"
    buffer = None if role is None else buffer_of(agents.tile, stream)
    if buffer is None:
        then = stream - FIRST_BUFFER_STREAMS[1]
        older = f", in older builds {then}" if then >= 0 else ""
        at += f" ({role}; in tt-metal of circular buffer {stream}{older})" if role else ""
        return _wait("stream", numbers, f"{at} to change", "", by)
    does, done = PAGES[register]
    how = f"{does} with its "
    by = [replace(r, how=how + _ADDRESS.sub("", _OPERANDS.sub("", r.how))) for r in by]
    name = f"pages of buffer {buffer} to be {done}"
    name += "" if wanted is None else f" ({poll.value} so far, {wanted.value} needed)"
    return _wait("stream", numbers | {"buffer": buffer}, name, f"{role}, {at}", by)


_SEMAPHORE_BASE = "sem_l1_base"  # the word in a core's local memory that says where they are
_APART = 16  # bytes from one semaphore of a program to the next


def semaphores(tile: Tile, c: int) -> range:
    """Where the semaphores of PROGRAM.toml lie, as a core has them."""
    count = max((len(part.semaphores) for part in _parts(tile)), default=0)
    try:
        base = tile.core[mm.CORE_NAMES[c]].read32(_SEMAPHORE_BASE) if count else 0
    except InputError:  # no such name
        return range(0)
    return range(base, base + _APART * count, _APART)


def _parts(tile: Tile) -> list[TileSpec]:
    """The parts of the launched program that a tile has."""
    program = tile.machine.loop.program
    return [part for part in program.placed() if tile.xy in part.at] if program else []


def semaphore_name(tile: Tile, c: int, address: int) -> str:
    """Which of the semaphores of PROGRAM.toml lies at an address, in words; "" for none."""
    known = semaphores(tile, c)
    return f" (semaphores[{known.index(address)}])" if address in known else ""


def buffer_of(tile: Tile, stream: int) -> int | None:
    """The circular buffer of the launched program that a stream counts; None: it cannot be told.

    The builds of a program begin at one of FIRST_BUFFER_STREAMS: at the only one by which every
    stream that counts something, this one included, is that of a declared buffer.
    """
    declared = {b.index for part in _parts(tile) for b in part.buffers}
    counts = tile.state.stream[:, list(PAGES)]
    used = {stream, *(n for n in range(mmio.STREAMS) if counts[n].any())}
    fits = [first for first in FIRST_BUFFER_STREAMS if {n - first for n in used} <= declared]
    return stream - fits[0] if len(fits) == 1 else None


# Who could change a word of L1 over the NoC: by what has come, by code, by registers.

NEVER = "nothing was ever written there over the NoC"
GAVE = "it has written there over the NoC"
_INITIATORS, _REGISTERS = 4, 12
_TILES = {mm.NOC_TARG_ADDR_LO + 8, mm.NOC_RET_ADDR_LO + 8}
_SET = _TILES | {mm.NOC_TARG_ADDR_LO, mm.NOC_RET_ADDR_LO}
_SET |= {mm.NOC_CTRL, mm.NOC_AT_LEN_BE}  # registers that say what a request writes to
_LATER = "its code sends a request to this word of a tile that it reads from what it waits for"
MOST = 4  # senders named for one wait
_LOOKED = 64  # cores whose code is looked at
_TRIED = 64  # combinations of their values for one request


def initiators(chip: Controls) -> Iterator[tuple[Tile, int, list[int]]]:
    """Every initiator of the tiles that are in use: its tile, NoC and registers."""
    for tile in chip.tiles_made():
        for noc, i in product((0, 1), range(_INITIATORS)):
            yield tile, noc, tile.state.niu_command[noc, i].tolist()


Sends = tuple[int, list[list[int]]]  # a request: its pc, what each register may hold


class Senders:
    """Who could write to words of L1 over the NoC, on a chip that stands still."""

    def __init__(self, chip: Controls, agents: dict[XY, Agents]) -> None:
        self._chip, self._agents = chip, agents
        self._elsewhere: dict[int, dict[str, Releaser]] = {}
        self._requests: dict[tuple[XY, int], list[Sends]] = {}

    def of(self, tile: Tile, address: int, beside: int) -> list[Releaser]:
        """Those that have written to the word, and others with their code, who has done so least
        first; else those whose code would; else tiles whose initiators are set up for it; else
        those whose code would on a tile that they are to learn. Without the core that waits.
        """
        found: dict[tuple[XY, int], Releaser] = {}
        came = [one for one in arrivals(self._chip, tile, address) if one[1] < CORES]
        count = Counter((sender.xy, core) for sender, core, _, _ in came)
        known = int(tile.state.noc_arrivals[0]) <= NOC_ARRIVED
        for sender, core, pc, when in came:
            if (at := (sender.xy, core)) not in found:
                how = f"{GAVE}{' ' + times(count[at]) if known else ''}, last in round {when}"
                by = self._core(sender.xy, core, pc, how)
                found[at] = replace(by, given=count[at] if known else None)
        x, y = tile.xy
        near = sorted(self._agents, key=lambda xy: abs(xy[0] - x) + abs(xy[1] - y))
        codes = {self._code(xy, core) for xy, core in found}
        alone = [one.able for one in found.values()] == [True]  # it has a word of its own
        asked = () if alone else product(near, (0, CORES - 1))
        for xy, core in asked:
            if (xy, core) in found or (codes and self._code(xy, core) not in codes):
                continue
            sent = self._sent(xy, core)
            sends = next((pc for pc, held in sent if _may_aim(held, tile.xy, address)), None)
            if sends is not None:
                by = self._core(xy, core, sends, "its code sends a request to it")
                found[xy, core] = replace(by, given=0)
        found.pop((tile.xy, beside), None)
        ready = sorted(found.values(), key=lambda one: one.given or 0)
        ready = ready or [*self._set_up(tile.xy, address)]
        return (ready or [*self._later(tile.xy, address, beside)])[:MOST]

    def _code(self, xy: XY, core: int) -> tuple[bytes, ...]:
        """The ELFs of a core."""
        return tuple(image.data for image in self._agents[xy].tile.core[mm.CORE_NAMES[core]].images)

    def _set_up(self, to: XY, address: int) -> Iterator[Releaser]:
        """The tiles whose initiators are set up for a request to a word."""
        known: set[XY] = set()
        for tile, noc, registers in initiators(self._chip):
            if tile.xy not in known and aims(registers, to, address):
                known.add(tile.xy)
                how = f"registers of its NoC {noc} name this word as the destination"
                cores = ", ".join(f"{one.name} {one.state}" for one in tile.core.values())
                yield Releaser(f"tile {name_of(tile)}", how, "", f"has {cores}")

    def elsewhere(self, address: int) -> dict[str, Releaser]:
        """By tile of which this word was written: the last core that did."""
        if address not in self._elsewhere:
            self._elsewhere[address] = found = dict[str, Releaser]()
            for other in self._chip.tiles_made():
                came = (one for one in arrivals(self._chip, other, address) if one[1] < CORES)
                for sender, core, pc, when in islice(came, 1):
                    how = f"{GAVE}, last in round {when}"
                    found[name_of(other)] = self._core(sender.xy, core, pc, how)
        return self._elsewhere[address]

    def _core(self, xy: XY, core: int, pc: int, how: str) -> Releaser:
        found = self._agents[xy].acts(core, pc, how)
        return replace(found, who=f"{name_of(self._agents[xy].tile)} {found.who}")

    def _later(self, to: XY, address: int, beside: int) -> Iterator[Releaser]:
        """Cores that go round, and whose code sends a request to a word of a tile that they read
        from what they wait for."""
        for (xy, core), sent in self._requests.items():
            agents, now = self._agents[xy], {pc for pc, _ in sent}
            if core in agents.loops and (xy, core) != (to, beside):
                for pc, values in self._of_code(agents, core, to):
                    if pc in now and _may_aim(values, to, address):
                        yield self._core(xy, core, pc, _LATER)
                        break

    def _sent(self, xy: XY, core: int) -> list[Sends]:
        """The requests that the code of a core sends.

        Of the first cores that are asked for: looking at code takes long.
        """
        if (xy, core) not in self._requests and len(self._requests) < _LOOKED:
            self._requests[xy, core] = list(self._of_code(self._agents[xy], core))
        return self._requests.get((xy, core), [])

    def _of_code(self, agents: Agents, core: int, later: XY | None = None) -> Iterator[Sends]:
        """By the order of the code: a register holds what the store before has left there.

        later: the words that the core waits for are others, and a tile that they name is this one.
        """
        held: dict[tuple[int, int], tuple[int, set[int]]] = {}
        now = agents.stores(core, held=True).stores
        unknown = {(one.pc, one.address) for one in now if one.value is None}
        for pc, address, _, value in agents.stores(core, held=True, later=later is not None).stores:
            noc, offset = divmod(address - mm.NOC0_BASE, mm.NOC_SIZE)
            i, register = divmod(offset, mm.NOC_CMD_BUF_OFFSET)
            if noc not in (0, 1) or i >= _INITIATORS:
                continue
            which = _INITIATORS * noc + i
            if register == mm.NOC_CMD_CTRL:
                values = [sorted(held.get((which, 4 * n), (0, {0}))[1]) for n in range(_REGISTERS)]
                if all(values) and agents.comes(core, pc):
                    yield pc, values
            elif register in _SET:
                by, known = held.get((which, register), (-1, set[int]()))
                known = known if by == pc else set()
                learns = register in _TILES and (pc, address) not in unknown
                if value is None and later is not None and learns:
                    value = later[0] | later[1] << 6
                held[which, register] = pc, known | ({value} if value is not None else set())


def _may_aim(values: list[list[int]], to: XY, address: int) -> bool:
    """Whether registers that may hold these values name a word as the destination."""
    if not any(low <= address for i in (0, 3) for low in values[i]):
        return False
    return any(aims([*one], to, address) for one in islice(product(*values), _TRIED))


def aims(registers: list[int], xy: XY, address: int) -> bool:
    """Whether the registers of an initiator name an address of a tile as the destination."""
    control = registers[mm.NOC_CTRL >> 2]
    kind = control & 3
    if kind not in (request.WRITE, request.ATOMIC):
        return False
    data = kind == request.WRITE and not control & request.INLINE
    first = (mm.NOC_RET_ADDR_LO if data else mm.NOC_TARG_ADDR_LO) >> 2
    low, given = registers[first], registers[first + 2]
    x, y = xy
    if control & request.MULTICAST:
        sides = [sorted((given & 63, given >> 12 & 63)), sorted((given >> 6 & 63, given >> 18))]
        here = sides[0][0] <= x <= sides[0][1] and sides[1][0] <= y <= sides[1][1] & 63
    else:
        here = given & 0xFFF == x | y << 6
    return here and low <= address < low + (registers[8] if data else 4)
