"""A core's turn: slices, polling loops that are skipped, and accesses that are refused."""

from typing import Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.devices.bus import window
from bhemu.jit.subset import by_name, njit
from bhemu.memmap import CORE_NAMES, INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import l0_cache, semantics
from bhemu.riscv.formats import Atomic, Load, NotModelled, Store
from bhemu.riscv.isa import alignment_masks, decode, rv32i
from bhemu.tensix import observe, rules, state
from bhemu.tensix.frontend import FIFO_FULL
from bhemu.tensix.thread import until_holds

# A core that polls: a loop that comes back to the same registers without any effect.
#
# Nothing else changes within a core's turn, so such a loop goes on until the turn is over.
# Its passes are counted instead of executed: they are taken from the fuel, and what is left of the
# last one is executed. Every turn begins with a pass that is executed; so code that writes what the
# loop reads need not tell. Both engines ask `look` before each instruction while LOOKING is set.

MEMBERS = (
    *("count_passes", "acted", "load_acted", "poll_began", "loop_pc", "loop_regs", "loop_fuel"),
    *("loop_polls", "loop_front", "loop_length", "loop_loads", "loop_yields", "loop_wait"),
)
"""Members of the record that say how a poller is run, and nothing about the tile."""

LOOKING = 8  # attention: is this slice a polling loop?
POLLS = 8  # repeated device loads after which the turn of a polling core is over
LONGEST_PASS = 64  # instructions
_SHORTEST_SLICE = 4
_LONGEST_WAIT = 31  # turns without a look, at a core that does other things


@njit
def _front_end(s: Any) -> Any:
    """Changes whenever the threads have taken, expanded, executed or latched something."""
    taken, held = np.int64(0), np.int64(0)
    for t in range(state.THREADS):
        taken += s.executed[t] + s.fifo_read[t]
        held = held << 3 | s.gate_full[t] << 2 | s.latch[t]
    return taken << 9 | held


@njit
def _note(s: Any, c: Any) -> None:
    """The state that a pass must come back to; the registers stand in s.regs."""
    s.loop_pc[c] = s.pc[c]
    s.loop_fuel[c] = s.fuel[c]
    s.loop_polls[c, 0], s.loop_polls[c, 1] = s.poll_pc[c], s.poll_count[c]
    s.loop_front[c] = _front_end(s)
    s.poll_began[c] = 0
    for i in range(1, 32):
        s.loop_regs[c, i] = s.regs[c, i]


@njit
def due(s: Any, c: Any) -> Any:
    """True when the slice that begins is to be looked at; `begin` then wants the registers."""
    s.acted[c] = s.loop_length[c] = 0
    s.loop_fuel[c] = -1
    if s.count_passes[0] == 0 or s.breakpoint_count[c] or s.watch_count[0] or s.stored[c]:
        return False
    if s.l0[0] or debug_port.watches(s, c):  # a load may change the lines of the L0 cache
        return False
    if s.fuel[c] < _SHORTEST_SLICE:
        return False
    if s.loop_wait[c, 0] > 0:
        s.loop_wait[c, 0] -= 1
        return False
    return True


@njit
def polling_begin(s: Any, c: Any) -> None:
    """Look at the slice that begins; the registers stand in s.regs."""
    _note(s, c)
    s.attention[0] |= LOOKING


@njit
def returns(s: Any, c: Any, address: Any) -> Any:
    """True when the pc is where the pass began: `look` then wants the registers."""
    return np.uint32(address) == s.loop_pc[c] and s.fuel[c] != s.loop_fuel[c]


@njit
def look(s: Any, c: Any, address: Any) -> None:
    """Before the instruction at `address` while LOOKING: a pass is over, or this is no such loop.

    A pass may count one and the same device load up, which ends the turn (access.py): the passes
    up to the last but one are skipped, counted as loads too.
    """
    length = s.loop_fuel[c] - s.fuel[c]
    if s.stored[c] or s.acted[c] or length > LONGEST_PASS:
        s.attention[0] &= ~LOOKING
        return
    if not returns(s, c, address):
        return
    for i in range(1, 32):
        if s.loop_regs[c, i] != s.regs[c, i]:
            return
    loads = s.poll_count[c] - s.loop_polls[c, 1]
    counts = s.poll_pc[c] == s.loop_polls[c, 0] and (loads == 0 or not s.poll_began[c])
    if not counts or _front_end(s) != s.loop_front[c]:
        _note(s, c)  # the first pass was another one
        return
    s.attention[0] &= ~LOOKING
    if s.turn_yield[0] or loads < 0:
        return
    s.loop_length[c], s.loop_loads[c] = length, loads
    passes = s.fuel[c] // length
    if loads > 0:
        passes = min(passes, (POLLS - 1 - s.poll_count[c]) // loads)
    s.fuel[c] -= passes * length
    s.poll_count[c] += passes * loads


@njit
def polling_end(s: Any, c: Any) -> None:
    """The slice is over: whether every later turn repeats it, and when to look again."""
    s.attention[0] &= ~LOOKING
    if s.loop_fuel[c] < 0:
        return
    if s.loop_length[c] == 0:
        s.loop_wait[c, 1] = min(2 * s.loop_wait[c, 1] + 1, _LONGEST_WAIT)
        s.loop_wait[c, 0] = s.loop_wait[c, 1]
        return
    s.loop_wait[c, 1] = 0
    used = s.fuel_given[c] - s.fuel[c]
    s.loop_yields[c] = s.turn_yield[0]
    recurs = used % s.loop_length[c] == 0 and s.poll_count[c] == s.loop_polls[c, 1]
    from_begin = s.loop_fuel[c] == s.fuel_given[c] and s.fuel_given[c] == s.turn_given[0]
    if not from_begin or (s.loop_loads[c] > 0 and not recurs):
        s.loop_length[c] = 0


# What a core may not execute: how an error stops its slice, misaligned accesses, atomics.

# stop_kind: why the last slice ended
NONE, TURN_OVER, WAITS, PARKS, BREAKPOINT, LIMIT, ASSERT, FAULT, UNTIL, FLUSHES, WATCH = range(11)
_STOPS = (  # what each of them but LIMIT stops, 0: the turn alone
    *(0, 0, 0, 0, rules.STOP_BREAKPOINT, 0, rules.STOP_ASSERT, 0),
    *(rules.STOP_UNTIL, rules.STOP_FLUSH, rules.STOP_WATCH),
)

_TRISC2 = CORE_NAMES.index("trisc2")
_LR, _SC = (cls.funct5.get(cls.match) for cls in (rv32i.LR_W, rv32i.SC_W))
LOAD_MASKS = alignment_masks(Load)
STORE_MASKS = alignment_masks(Store)
_STORE, _ATOMIC = Store.code(), Atomic.code()
_EBREAK = rv32i.EBREAK.match

RESERVATION = rules.error("RV-LRSC", rules.UB, "lr.w and sc.w ({word:#010x}) do not exist on these cores")  # fmt: skip
ATOMIC = rules.error("RV-AMO", rules.UB, "atomic access to {address:#010x}: atomics work on L1 only (word {word:#010x})")  # fmt: skip
ILLEGAL = rules.error("RV-ILLEGAL", rules.GUEST, "{word:#010x} is no instruction of these cores")
_EXTENSION = rules.error("RV-EXTENSION", rules.UNIMPLEMENTED, "{word:#010x} is an instruction of F, Zfh or V, which are not modelled", "build this code without them: -march=rv32im_zba_zbb -mabi=ilp32")  # fmt: skip
_VECTOR = rules.error("RV-VECTOR", rules.UB, "{word:#010x} is a vector instruction: trisc2 alone has them", "build this code without V: -march=rv32im_zba_zbb -mabi=ilp32")  # fmt: skip
SYSTEM = rules.error("RV-SYSTEM", rules.GUEST, "{word:#010x} (ecall, wfi or xret) has no meaning on these cores")  # fmt: skip
TRAP = rules.error("RV-TRAP", rules.GUEST, "trap with cause {cause} at {address:#010x}")


def illegal(core: int, word: int) -> int:
    """The rule that a word breaks at which a slice ended with ILLEGAL, which covers three."""
    rule, cls = ILLEGAL, decode(word)
    if cls is not None and issubclass(cls, NotModelled):
        rule = _VECTOR if cls.on_trisc2_only and core != _TRISC2 else _EXTENSION
    return rule


@by_name(rules.note)
def fail(s: Any, c: Any, rule: Any) -> None:
    """Record an error of core `c`, its details by name; the engine must stop before the next."""
    s.status[0] = rule
    s.status_core[0] = c
    s.status_thread[0] = -1
    s.stop_kind[c] = FAULT


@njit(inline="always")
def pushed(word: Any) -> Any:
    """The Tensix word that a `.ttinsn` pushes: rotated right by two."""
    return word >> 2 | (word & 3) << 30


@njit
def accessed(word: Any, base: Any) -> Any:
    """Address that a load, store or atomic names, with `base` in rs1."""
    offset = word >> 20
    if word & 0x7F == _STORE:
        offset = (word >> 25) << 5 | (word >> 7) & 31
    elif word & 0x7F == _ATOMIC:
        offset = np.int64(0)
    return (base + offset - ((offset & 0x800) << 1)) & 0xFFFFFFFF


@njit
def misaligned(s: Any, c: Any, word: Any, mask: Any, base: Any) -> None:
    """Refuse a load or store; the sentence needs its address, with the sign of the offset."""
    s.detail[2] = mask + 1  # the rule is one of the devices: address, value, size
    fail(s, c, window.MISALIGNED, address=accessed(word, base))


@njit
def atomic(s: Any, c: Any, word: Any, address: Any) -> Any:
    """lr, sc and the AMOs: True when the word may not execute."""
    function = word >> 27
    if function == _LR or function == _SC:
        fail(s, c, RESERVATION, word=word)
        return True
    if address >= L1_SIZE:
        fail(s, c, ATOMIC, word=word, address=address)
        return True
    if address & 3:
        misaligned(s, c, word, 3, address)
        return True
    s.stored[c] = 1
    return False


@njit
def stands(s: Any, c: Any, pc: Any, word: Any) -> None:
    """The core stays at `word`: `j .`, ebreak, or what the cores do not have of SYSTEM."""
    if word == semantics.JUMP_SELF:
        if not (debug_port.watches(s, c) and debug_port.parks(s, c, pc)):
            s.core_state[c] = state.PARKED
        s.stop_kind[c] = PARKS
    elif word != _EBREAK:
        fail(s, c, SYSTEM, word=word)
    elif debug_port.breaks(s, c, pc):
        s.fuel[c] -= 1
        s.stop_kind[c] = PARKS
    else:
        s.core_state[c] = state.ASSERTED
        s.stop_kind[c] = ASSERT


@njit
def clear_registers(s: Any, c: Any) -> Any:
    """After a reset x1-x31 of core `c` are 0 (x2 first_sp), its L0 cache is empty; was it due?"""
    due = s.fresh[c] != 0
    if due:
        s.fresh[c] = 0
        l0_cache.drop(s, c)
        s.regs[c, :] = np.uint32(0)
        s.regs[c, 2] = s.first_sp[c]
    return due


# A core's turn, whichever engine runs it: its length, what may stop it, what a stop means.

_LOCAL = state.OFFSET["local"]

STORED = 2  # attention, as LOOK: compare the until words after a store
REWRITTEN = 4  # attention: the Unicorn engine must look at the code again

# Why a slice ended by itself: an error of an access or a fetch, by the Unicorn engine's numbers.
LOAD_UNMAPPED, STORE_UNMAPPED, FETCH_UNMAPPED, FETCH_PROT = 6, 7, 8, 14
MISALIGNED_FETCH = 0  # cause of a trap
_ACCESS_ERRORS = (LOAD_UNMAPPED, STORE_UNMAPPED, 12, 13)


@njit
def must_stop(s: Any, c: Any, address: Any) -> Any:
    """Stop kind when the core may not execute the instruction at `address` now, else NONE."""
    if s.status[0] != 0:
        return FAULT
    if s.watch_count[0] and observe.changed(s):
        s.status_thread[0] = -1
        return WATCH
    if s.attention[0] & STORED:
        s.attention[0] &= ~STORED
        if until_holds(s):
            return UNTIL
    if s.core_state[c] != state.RUNNING or s.turn_yield[0]:
        return TURN_OVER
    if debug_port.watches(s, c) and debug_port.halts(s, c, address):
        return TURN_OVER
    if s.flush[c]:
        return FLUSHES
    if s.fuel[c] <= 0:
        return LIMIT if s.fuel_given[c] < s.left[c] else TURN_OVER
    if s.breakpoint_count[c]:
        if s.breakpoint_skip[c] == 0:
            for i in range(s.breakpoint_count[c]):
                if s.breakpoint[c, i] == np.uint32(address):
                    return BREAKPOINT
        s.breakpoint_skip[c] = 0
    if s.watch_count[0]:
        s.watch_pc[c] = np.uint32(address)
    return NONE


@njit
def watch_load(s: Any, c: Any, word: Any, base: Any) -> None:
    """Core `c` executes `word` next, with `base` in rs1: report its loads to watchpoints."""
    size, at = semantics.size(word), accessed(word, base)
    if size <= 0 or word & 0x7F == _STORE:
        return
    if at < L1_SIZE:
        observe.loads(s, at, size)
    elif LOCAL_BASE <= at < LOCAL_BASE + LOCAL_SIZES[c]:
        observe.loads(s, _LOCAL + c * state.LOCAL_SIZE + at - LOCAL_BASE, size)


@njit
def still_waits(s: Any, c: Any) -> Any:
    """A full FIFO that has not been drained: repeating the push would change nothing."""
    if s.core_state[c] != state.BLOCKED:
        return False
    if s.core_wait[c] == FIFO_FULL:
        t = (np.int64(s.core_address[c]) - INSTRN_BUF_BASE) >> 16 if c == 0 else c - 1
        if s.fifo_write[t] - s.fifo_read[t] >= state.FIFO_DEPTH:
            return True
    s.core_state[c] = state.RUNNING
    return False


@njit
def _clock(s: Any, c: Any) -> Any:
    """The clock as far as the turn of core `c` has come."""
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c]


@njit
def watchful(s: Any, c: Any) -> Any:
    """The attention that a slice of core `c` begins with."""
    if s.breakpoint_count[c] or s.turn_yield[0] or s.watch_count[0] or debug_port.watches(s, c):
        return rules.LOOK
    return 0


@njit
def opens(s: Any, c: Any) -> Any:
    """Begin or resume the turn of a core without translated code: False when it still waits."""
    s.core[0] = c
    if still_waits(s, c):
        return False
    s.flush[c] = 0
    s.translated[c] = 1
    clear_registers(s, c)
    return True


@njit
def starts(s: Any, c: Any) -> Any:
    """As `begin`, for a core whose registers stand in s.regs: the slice may be looked at."""
    if not begin(s, c):
        return False
    if due(s, c):
        polling_begin(s, c)
    return True


@njit
def begin(s: Any, c: Any) -> Any:
    """Open a slice: fuel, attention; False when the core cannot start, as `end` will tell."""
    s.stop_kind[c] = NONE
    s.attention[0] = watchful(s, c)
    fuel = min(s.left[c], rules.INSTRUCTIONS * s.look_every[0])
    if s.retired_limit[c] >= 0:
        fuel = min(fuel, s.retired_limit[c] - s.retired[c])
    if s.limit[0] >= 0:
        fuel = min(fuel, max(s.limit[0] - _clock(s, c), 0))
    s.fuel[c] = s.fuel_given[c] = fuel
    if s.pc[c] & np.uint32(3):
        fail(s, c, TRAP, address=np.int64(s.pc[c]), cause=np.int64(MISALIGNED_FETCH))
        return False
    return True


@njit
def end(s: Any, c: Any, error: Any, pc: Any) -> Any:
    """Close a slice that ended, by itself with `error` at `pc` if no stop kind says why.

    Returns 0 when the turn is over or waits, else why everything stops.
    """
    if error == FETCH_PROT or error == FETCH_UNMAPPED:
        s.pc[c] = np.uint32(pc)
    elif error != 0 and error in _ACCESS_ERRORS:
        s.fuel[c] += 1  # the load or store did not retire
    polling_end(s, c)
    status = _outcome(s, c, error)
    used = s.fuel_given[c] - s.fuel[c]
    s.fuel[c] = s.fuel_given[c] = 0
    s.left[c] -= used
    s.retired[c] += used
    return status


@njit
def _outcome(s: Any, c: Any, error: Any) -> Any:
    """Status of a slice that ended: 0 the turn is over or waits, else why everything stops."""
    status = s.status[0]
    if status != 0:
        if status > 0:
            s.status[0] = 0
        return status
    kind = s.stop_kind[c]
    if kind == NONE and error == FETCH_PROT:
        return np.int64(rules.STOP_CODE_PAGE)
    if kind == NONE:
        s.detail[0] = error
        return np.int64(rules.STOP_ENGINE)
    if kind == LIMIT:
        if s.limit[0] >= 0 and _clock(s, c) >= s.limit[0]:
            return np.int64(rules.STOP_LIMIT)
        retired = s.retired[c] + s.fuel_given[c] - s.fuel[c]
        stepped = 0 <= s.retired_limit[c] <= retired
        return np.int64(rules.STOP_STEP if stepped else rules.STOP_TIME)
    return np.int64(_STOPS[kind])
