"""From a status number to the error a user reads: sentence, rule, place, word, hint; senders.

And where cores and threads stand, a line each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu import errors
from bhemu.devices.bus.address_map import block_name
from bhemu.devices.niu_check import REQUEST_RULES
from bhemu.devices.niu_request import CORE, PC, describe
from bhemu.errors import BhemuError, NotModelled, Where
from bhemu.jit.record import plain
from bhemu.machine.sentences import CONDITIONS, RULES
from bhemu.machine.word_text import describe as describe_word
from bhemu.machine.word_text import meaning
from bhemu.memmap import CORE_NAMES, HOST, L1_SIZE, LOCAL_BASE
from bhemu.noc.record import ChipState
from bhemu.riscv import turn
from bhemu.riscv.assembly import RA, SP
from bhemu.riscv.assembly import disassemble as riscv_text
from bhemu.riscv.formats import Load, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix import dest
from bhemu.tensix.frontend import FROM_MOP, FROM_PUSH, FROM_REPLAY
from bhemu.tensix.insn import decode, disassemble
from bhemu.tensix.rules import GUEST, Rule

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile
    from bhemu.tensix.state import State

_CLASSES = {
    "UndefinedBehavior": errors.Undefined,
    "NonContractualBehavior": errors.Undefined,
    "Unsupported": errors.NotModelled,
    "Unimplemented": errors.NotModelled,
    "MissingSpecification": errors.NotModelled,
    GUEST: errors.GuestFault,
}
_UNWRITTEN = "PACR-UNWRITTEN"
_RANGES = 3  # of rows that are named
_ENGINE_ERRORS = {6: "load from", 7: "store to", 8: "jump to", 12: "store to", 13: "load from"}


def where_core(tile: Tile, c: int, pc: int | None = None, **more: Any) -> Where:
    """Place of core `c` (0-4) at `pc` (default: where it stands)."""
    at = int(tile.state.pc[c]) if pc is None else pc
    name, file, line = tile.locate(c, at)
    function, calls = tile.core[CORE_NAMES[c]].inlined(at)
    if calls:
        more = {**more, "function": function, "inlined": calls}
    return Where(tile=tile.xy, core=CORE_NAMES[c], pc=at, symbol=name, file=file, line=line, **more)


def where_thread(tile: Tile, t: int) -> Where:
    """Place of the word at the wait gate of thread `t`: the core that pushed it, from where.

    Of a replay slot that nothing has recorded it is the REPLAY that plays it.
    """
    s = tile.state
    word, pc = int(s.gate_word[t]), int(s.gate_pc[t])
    if pc == 0 and s.gate_from[t] >= FROM_REPLAY:
        pc = int(s.play_pc[t])
    return where_core(tile, int(s.gate_core[t]), pc, thread=t, word=word, decoded=disassemble(word))


def where_instruction(tile: Tile, c: int, pc: int | None = None) -> Where:
    """As where_core, with word and text of the instruction there; without them outside of L1."""
    pc = int(tile.state.pc[c]) if pc is None else pc
    if not 0 <= pc <= L1_SIZE - 4:
        return where_core(tile, c, pc)
    word = int.from_bytes(tile.state.l1[pc : pc + 4].tobytes(), "little")
    return where_core(tile, c, pc, word=word, decoded=riscv_text(word, pc))


HEADERS = (".h", ".hpp", ".hh", ".inc")


def outside_headers(where: Where) -> Where:
    """The innermost call that is not in a header; the place itself if there is none."""
    return outside(where, lambda file: file.endswith(HEADERS))


def outside(where: Where, inner: Callable[[str], bool]) -> Where:
    """The innermost call whose file is not `inner`; the place itself if there is none."""
    outer = where
    while outer.inlined and inner(str(outer.file)):
        outer = caller(outer)
    return where if inner(str(outer.file)) else outer


def caller(where: Where) -> Where:
    """The call that a place is inlined at."""
    call, *rest = where.inlined
    return replace(where, **call._asdict(), inlined=tuple(rest))


def kind_of(rule: Rule) -> type[Any]:
    """The class of the errors of a rule."""
    return _CLASSES.get(rule.category, errors.Internal)


def rule_error(tile: Tile, status: int) -> BhemuError:
    """The error of a negative status; the place is the thread's word or the core's instruction."""
    s = tile.state
    t, c = int(s.status_thread[0]), int(s.status_core[0])
    if status == turn.ILLEGAL:
        status = turn.illegal(c, RULES[status].details(s.detail)["word"])
    rule = RULES[status]
    text = rule.sentence(s.detail)
    if t >= 0:
        where = where_thread(tile, t)
        cls = decode(int(s.gate_word[t]))
        if cls is not None:
            text = text if text.startswith(f"{cls.name} ") else f"{cls.name}: {text}"
            if cls.refused and rule.rule == "ISA-REFUSED":
                text += f": {cls.refused}"
        if rule.rule == _UNWRITTEN:
            text += f"; {_rows_of_dst(s, rule.details(s.detail)['bits'])}"
    elif c >= 0:
        where = where_instruction(tile, c)
        if rule.rule.startswith("MMIO"):
            text += f" ({block_name(rule.details(s.detail)['address'])})"
        if status in REQUEST_RULES:  # the request stands after those under way
            text += f"; {describe(s.noc_request[int(s.noc_requests[0])])}"
    else:
        where = Where(tile=tile.xy)
    kind: type[Any] = kind_of(rule)
    category = rule.category if kind is not errors.Internal else "Internal"
    found: BhemuError = kind(text, category=category, rule=rule.rule, where=where, hint=rule.hint)
    return found


def _rows_of_dst(s: State, bits: int) -> str:
    """Which rows something has written or cleared, as PACR counts rows of so many bits."""
    high, low = plain(dest.adj32), plain(dest.row16)
    storage = [high(row) if bits == 32 else low(s, row) for row in range(dest.ROWS)]
    flags = [int(s.dst_valid[at]) & dest.UNWRITTEN for at in storage]
    told = []
    for flag, state in enumerate(("cleared", "written")):
        starts = [row for row in range(dest.ROWS) if flags[row] == flag != (-1, *flags)[row]]
        ends = [row for row in range(dest.ROWS) if flags[row] == flag != (*flags, -1)[row + 1]]
        shown = [f"{a} to {b}" for a, b in zip(starts, ends, strict=True)][:_RANGES]
        told += [f"{state} are rows {', '.join(shown)}"] if shown else []
    return "; ".join(told) or "nothing has written Dst"


def engine_error(tile: Tile) -> BhemuError:
    """The engine stopped by itself: an access or jump outside the mapped memory."""
    s = tile.state
    number, c = int(s.detail[0]), int(s.core[0])
    where = where_instruction(tile, c)
    verb = _ENGINE_ERRORS.get(number)
    if verb is None:
        return errors.Internal(f"the RISC-V engine stopped with error {number}", where=where)
    word = where.word or 0
    cls: Any = decode_riscv(word)
    address = int(s.pc[c])
    hint = f"check the pointer; L1 ends at {L1_SIZE:#x}, local RAM starts at 0x{LOCAL_BASE:X}"
    if cls is not None and issubclass(cls, Load | Store):
        base = tile.backend.engine.read_register(c, cls.rs1.get(word))
        address = int(base + cls.imm.get(word)) & 0xFFFFFFFF
        if cls.rs1.get(word) == SP:
            hint = (
                "the base is sp: set it before C code runs, as in lui sp,0xffb01; or it overflowed"
            )
    return errors.GuestFault(
        f"{verb} {address:#010x}, which is not mapped for {CORE_NAMES[c]} ({block_name(address)})",
        category="Unmapped",
        rule="RV-UNMAPPED",
        where=where,
        hint=hint,
    )


def fetch_error(tile: Tile, c: int) -> BhemuError:
    """A jump out of L1."""
    pc = int(tile.state.pc[c])
    return errors.GuestFault(
        f"{CORE_NAMES[c]} jumps to {pc:#010x}: code executes from L1 only",
        category="Unmapped",
        rule="RV-FETCH",
        where=where_core(tile, c),
        hint="check the function pointer or the return address",
    )


def assert_error(tile: Tile, c: int) -> BhemuError:
    """A core stands on ebreak."""
    return errors.Assert(
        f"{CORE_NAMES[c]} reached ebreak, the device assert",
        rule="EBREAK",
        where=where_instruction(tile, c),
        hint=f"look at the failed condition at that source line{_called_from(tile, c)}",
    )


def _called_from(tile: Tile, c: int) -> str:
    """The call that led to the function a core is in, "" where ra cannot be it."""
    core = tile.core[CORE_NAMES[c]]
    call = int(core.regs[RA]) - 4
    name = core.locate(call)[0]
    if name is None or _function(core, call) == _function(core, core.pc):
        return ""
    source = core.source(call)
    return f"; called from {name}" + (f" ({source})" if source else "")


def sent_by(chip: Controls, t: int, core: int, pc: int) -> Where:
    """The place of core `core` of tile `t`; of the host the tile alone."""
    tile = chip.tile_at_index(t)
    return where_core(tile, core, pc) if core < HOST else Where(tile=tile.xy)


class HostAccess(NamedTuple):
    """A request for the host's memory at the PCIe tile: in words, and its sender."""

    request: str
    where: Where


def host_access(chip: Controls, state: ChipState) -> HostAccess:
    """The request that is being delivered, which wants a page of the host's memory."""
    t, i = (int(word) for word in state.at)
    row = chip.tile_at_index(t).state.noc_request[i]
    return HostAccess(describe(row), sent_by(chip, t, int(row[CORE]), int(row[PC])))


def refused(chip: Controls, state: ChipState) -> BhemuError:
    """The error of a request that its target refused: the sender's place, the whole request."""
    t, i, u, status = (int(word) for word in state.refused)
    sender, target = chip.tile_at_index(t), chip.tile_at_index(u)
    target.backend.surface()
    row = sender.state.noc_request[i]
    where = sent_by(chip, t, int(row[CORE]), int(row[PC]))
    if status > 0:
        text, rule, kind, hint = CONDITIONS[status].text, "NOC-WAITS", NotModelled, ""
    else:
        found = RULES[status]
        text, rule, hint = found.sentence(target.state.detail), found.rule, found.hint
        kind = kind_of(found)
    x, y = target.xy
    return kind(
        f"tile ({x},{y}) refuses a request: {text}; {describe(row)}",
        rule=rule,
        where=where,
        hint=hint,
    )


# Where cores and threads stand and what they wait for, one line each.
class WhereReport(tuple[str, ...]):
    """One line for every core and thread; prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(self)

    __str__ = __repr__


def where_lines(tile: Tile) -> Iterator[str]:
    """Every core, then every thread."""
    for core in tile.core.values():
        yield where_core_line(tile, core)
    for t in range(3):
        yield where_thread_line(tile, t)


def where_core_line(tile: Tile, core: Core) -> str:
    """State, place, retired instructions; what a blocked core waits for."""
    if core.state == "reset":
        return f"{core.name:<7} reset"
    symbol, source = core.locate(core.pc)[0], core.source(core.pc)
    place = f"pc 0x{core.pc:08X}" + (f" {symbol}" if symbol else "")
    place += f" {source}" if source else ""
    text = f"{core.name:<7} {core.state:<8} {place}, {core.retired} retired"
    condition = CONDITIONS.get(int(tile.state.core_wait[core.index]))
    if core.state == "blocked" and condition is not None:
        address = int(tile.state.core_address[core.index])
        text += f", waits for {condition.text} (address {address:#010x})"
    return text


def where_thread_line(tile: Tile, t: int) -> str:
    """Executed and queued words, the word at the gate and what holds it."""
    s = tile.state
    queued = int(s.fifo_write[t] - s.fifo_read[t])
    text = f"T{t}      {int(s.executed[t])} words executed, {queued} queued"
    if not s.gate_full[t]:
        return text
    core, pc = int(s.gate_core[t]), int(s.gate_pc[t])
    symbol = tile.core[CORE_NAMES[core]].locate(pc)[0]
    text += f", at the gate: {disassemble(int(s.gate_word[t]))}{origin(int(s.gate_from[t]))}"
    text += f" from {CORE_NAMES[core]} pc {pc:#x}" + (f" {symbol}" if symbol else "")
    told = describe_word(tile, t, int(s.gate_word[t]))
    text += f" ({told})" if told else ""
    condition = CONDITIONS.get(int(s.gate_blocked[t]))
    if condition is not None:
        text += f", waits for {condition.text}"
    if s.latch[t]:
        text += f", held by {disassemble(int(s.latch_word[t]))}"
        held = meaning(int(s.latch_word[t]), t)
        text += f" ({held})" if held else ""
    return text


def origin(code: int) -> str:
    """How a word came to the gate: pushed says nothing."""
    if code == FROM_PUSH:
        return ""
    return " (MOP)" if code == FROM_MOP else f" (REPLAY slot {code - FROM_REPLAY})"


def backtrace(core: Core) -> Iterator[str]:
    """The pc with its inlined calls, and the return address as far as ra can be trusted."""
    yield from (f"#{n}  {frame}" for n, frame in enumerate(frames(core)))


def frames(core: Core) -> Iterator[str]:
    """The frames of a core in words, the innermost first."""
    yield from _frames(core, core.pc, "")
    ra = int(core.regs[1])
    if ra:
        # No frame records exist (-fomit-frame-pointer): ra is the caller until it is reused.
        same = _function(core, ra - 4) == _function(core, core.pc)
        doubt = "; this function may have called another since: then ra is stale" if same else ""
        yield from _frames(core, ra - 4, f"  (call before ra {ra:#x}{doubt})")


def _function(core: Core, pc: int) -> str | None:
    symbol = core.locate(pc)[0]
    return None if symbol is None else symbol.split("+")[0]


def _frames(core: Core, pc: int, note: str) -> Iterator[str]:
    symbol, file, line = core.locate(pc)
    function, calls = core.inlined(pc)
    place = f" ({file}:{line})" if file else ""
    if not calls:
        yield f"0x{pc:08X} {symbol or '?'}{place}{note}"
        return
    yield f"0x{pc:08X} {function or '?'}{place}, inlined"
    for call in calls[:-1]:
        yield f"0x{pc:08X} {call.function} ({call.file}:{call.line}), inlined"
    last = calls[-1]
    yield f"0x{pc:08X} {symbol or last.function} ({last.file}:{last.line}){note}"
