"""The debug array and the debug bus: what a debugger reads of the coprocessor."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.bus.window import KEPT, Effect, access_error, debug_register
from bhemu.jit.intrinsics import call_access
from bhemu.jit.subset import njit
from bhemu.tensix import state
from bhemu.tensix.rules import DONE, UB, UNIMPLEMENTED, UNSUPPORTED, error, refuse
from bhemu.tensix.state import ASSERTED, BLOCKED, HALTED, PARKED, RESET, RUNNING, THREADS

# The debug interface of brisc and trisc0-2: RISC_DBG_CNTL and STATUS, 0xFFB12080.
#
# Four registers of the tile lead to the debug registers DR(i) of each core. Sources:
# DebugInterface and SoftReset (Wormhole ISA, the only text), and tt-exalens for what differs
# on Blackhole: a new pc stands in DR(3), and one instruction takes two STEPs. A core halts between
# two instructions: before one with a breakpoint, as debuggers expect it, and after an access that
# is watched. The pipeline, which on hardware shifts both, does not exist here.

NOT_HALTED = error("PORT-RUNNING", UB, "command {command:#x} for the debug port of core {core}, which is not halted", "halt it first: DR(1) = 0x80000001")  # fmt: skip
COMMAND = error("PORT-COMMAND", UNSUPPORTED, "command {command:#x} for the debug port of core {core}")  # fmt: skip
REGISTER = error("PORT-REGISTER", UB, "the debug port has no register {register}")
WAITS = access_error("PORT-WAITS", UNSUPPORTED, "the debug port would wait at {address:#010x} as the core does", "look at the device from another core, or over the NoC")  # fmt: skip

# DR(i); the row of a core in the record has one more, for STEPs
STATUS, CONTROL, ARG_0, ARG_1, RESULT, MODES, STEPS, ADDRESSES, END = 0, 1, 2, 3, 4, 5, 6, 10, 18
HALT, STEP, RESUME, READ_GPR, WRITE_GPR, READ_MEMORY, WRITE_MEMORY, CLEAR_GPRS, SET_PC = (
    1 << bit for bit in range(9)
)
SLOW = 1 << 31  # execution mode, without effect here; "debug mode" of tt-exalens
_ACTIONS = (1 << 9) - 1
BY_BREAKPOINT, BY_WATCHPOINT, BY_EBREAK = 2, 4, 8  # DR(0): why the core is halted
FIRST_POINT = 8  # bit of DR(0): which of the eight it was
POINTS = 8
ENABLED, READS, WRITES = 8, 1, 2  # of DR(5), four bits for each of them
PC = 32  # number of the pc in DR(2)
_PORTS = 4  # ncrisc has none

_CNTL_0, _CNTL_1 = mm.RISCV_DEBUG_REG_RISC_DBG_CNTL_0 >> 2, mm.RISCV_DEBUG_REG_RISC_DBG_CNTL_1 >> 2
_STATUS_0 = mm.RISCV_DEBUG_REG_RISC_DBG_STATUS_0 >> 2
_TRIGGER, _VALID = 1 << 31, 1 << 30
_CORE = 5  # in the storage of STATUS_0: bits of the core, above DR(i)


@njit
def clear(s: Any, c: Any) -> None:
    """The core goes into reset."""
    s.debug_port[c, :END] = np.uint32(0)
    s.port_halt[c] = s.port_from[c] = 0


@njit
def _done(s: Any, c: Any) -> Any:
    """Instructions that the core has executed, within a slice too, and 1."""
    return s.retired[c] + s.fuel_given[c] - s.fuel[c] + 1


@njit
def watches(s: Any, c: Any) -> Any:
    """True when something must be asked of the port before each instruction of the core."""
    return s.port_halt[c] != 0 or s.debug_port[c, MODES] != np.uint32(0)


@njit
def _halt(s: Any, c: Any, why: Any) -> None:
    s.core_state[c] = HALTED
    s.core_wait[c] = s.port_halt[c] = 0
    s.debug_port[c, STATUS] = np.uint32(why)
    s.debug_port[c, STEPS] = np.uint32(0)


@njit
def _breakpoint(s: Any, c: Any, pc: Any) -> Any:
    """Why core `c` halts before the instruction at `pc`: bits of DR(0), or 0."""
    modes, hit = np.int64(s.debug_port[c, MODES]), np.int64(0)
    for i in range(POINTS):
        mode = (modes >> (4 * i)) & 15
        if mode == ENABLED and s.debug_port[c, ADDRESSES + i] == np.uint32(pc):
            hit |= BY_BREAKPOINT | 1 << (FIRST_POINT + i)
    return hit


@njit
def halts(s: Any, c: Any, pc: Any) -> Any:
    """Before the instruction at `pc`: True when the core halts instead.

    Not at the breakpoint from which it was resumed.
    """
    done, why = _done(s, c), np.int64(0)
    if s.port_halt[c] and done >= s.port_halt[c]:
        why = np.int64(s.debug_port[c, STATUS])
    else:
        why = _breakpoint(s, c, pc) if done != s.port_from[c] else np.int64(0)
        if why == 0:
            return False
    _halt(s, c, why)
    return True


@njit
def parks(s: Any, c: Any, pc: Any) -> Any:
    """At a jump to itself: True when the core halts there, now or in the next of its passes."""
    why = np.int64(s.debug_port[c, STATUS]) if s.port_halt[c] else _breakpoint(s, c, pc)
    if s.port_halt[c] == 0 and why == 0:
        return False
    _halt(s, c, why)
    return True


@njit
def breaks(s: Any, c: Any, pc: Any) -> Any:
    """At an ebreak: True when the core halts after it, because a debugger uses the ports."""
    if s.port_used[0] == 0 or c >= _PORTS:
        return False
    _halt(s, c, np.int64(BY_EBREAK))
    s.pc[c] = np.uint32(pc + 4)
    return True


@njit
def watch(s: Any, c: Any, address: Any, size: Any, reads: Any, writes: Any) -> None:
    """Before an access of `size` bytes: a core that is watched there halts after it."""
    ways = (READS if reads else 0) | (WRITES if writes else 0)
    modes, hit = np.int64(s.debug_port[c, MODES]), np.int64(0)
    for i in range(POINTS):
        mode, at = (modes >> (4 * i)) & 15, np.int64(s.debug_port[c, ADDRESSES + i])
        if ENABLED < mode <= ENABLED | READS | WRITES and mode & ways:
            if address <= at < address + size:
                hit |= BY_WATCHPOINT | 1 << (FIRST_POINT + i)
    if hit:
        s.debug_port[c, STATUS] = np.uint32(hit)
        s.port_halt[c] = _done(s, c) + 1


@njit
def _resume(s: Any, c: Any) -> None:
    s.core_state[c] = RUNNING
    s.debug_port[c, STATUS] = np.uint32(0)
    s.port_from[c] = _done(s, c)


@njit
def _step(s: Any, c: Any) -> None:
    """Every second STEP is an instruction, as on Blackhole."""
    s.debug_port[c, STEPS] += np.uint32(1)
    if s.debug_port[c, STEPS] & np.uint32(1):
        return
    if s.core_state[c] == HALTED:
        _resume(s, c)
        s.port_halt[c] = _done(s, c)
    s.port_halt[c] += 1


@njit
def _command(s: Any, c: Any, value: Any) -> Any:
    """What a write to DR(1) does at once."""
    action, state = value & _ACTIONS, s.core_state[c]
    if action == HALT:
        if state == RUNNING or state == BLOCKED or state == PARKED:
            _halt(s, c, np.int64(0))
            s.attention[0] |= 1
        return DONE
    if action == 0:
        return DONE
    if state != HALTED and not (action == STEP and s.debug_port[c, STEPS]):
        return refuse(s, NOT_HALTED, command=value, core=np.int64(c))
    if action == STEP:
        _step(s, c)
    elif action & SET_PC and action & ~(SET_PC | STEP | RESUME) == 0 and value & SLOW:
        s.pc[c] = s.debug_port[c, ARG_1]
        if action & RESUME:
            _resume(s, c)
    elif action == RESUME:
        _resume(s, c)
    elif action & (action - 1) or action & (SET_PC | RESUME | HALT):
        return refuse(s, COMMAND, command=value, core=np.int64(c))
    else:
        # Registers and memory, as the core
        where, value = np.int64(s.debug_port[c, ARG_0]), np.int64(s.debug_port[c, ARG_1])
        if action & (READ_GPR | WRITE_GPR) and where > PC:
            return refuse(s, REGISTER, register=where)
        status = call_access(s.port_access[0], s, np.int64(c), where, np.int64(action), value)
        if status > DONE:
            return np.int64(WAITS)
        if status == DONE and action & (READ_GPR | READ_MEMORY):
            s.debug_port[c, RESULT] = np.uint32(s.loaded[0])
        return status
    return DONE


@njit
def _write(s: Any, c: Any, i: Any, value: Any) -> Any:
    """Write DR(i) of core `c`."""
    if s.core_state[c] == RESET:
        return DONE
    if i == CONTROL:
        status = _command(s, c, value)
        if status != DONE:
            return status
    if i != STATUS and i != RESULT:
        s.debug_port[c, i] = np.uint32(value)
        s.attention[0] |= 1
    return DONE


@njit
def adopt(s: Any) -> None:
    """The first use of the ports: a core that stands on ebreak is halted after it."""
    if s.port_used[0] == 0:
        s.port_used[0] = 1
        for c in range(_PORTS):
            if s.core_state[c] == ASSERTED:
                breaks(s, np.int64(c), np.int64(s.pc[c]))


@njit
def _store_control(s: Any, value: Any) -> Any:
    """CNTL_0: a trigger that rises reads or writes DR(i) of a core."""
    before = np.int64(s.debug[_CNTL_0])
    if value & _TRIGGER and not before & _TRIGGER:
        i, c = value & 0x7FF, (value >> 17) & 3
        if not (i <= MODES or ADDRESSES <= i < END):
            return refuse(s, REGISTER, register=i)
        adopt(s)
        if (value >> 16) & 1:
            status = _write(s, c, i, np.int64(s.debug[_CNTL_1]))
            if status != DONE:
                return status
            s.debug[_STATUS_0] = np.uint32(0)
        else:
            s.debug[_STATUS_0] = np.uint32(_VALID | c << _CORE | i)
    s.debug[_CNTL_0] = np.uint32(value)
    return DONE


@njit
def _load_status(s: Any) -> Any:
    """STATUS_0: what CNTL_0 says, and whether STATUS_1 holds what was read."""
    control = np.int64(s.debug[_CNTL_0])
    write = ((control >> 16) & 1) << (13 + ((control >> 17) & 3))
    echo = (control & (_TRIGGER | 0x7FF)) | write
    s.loaded[0] = echo | np.int64(s.debug[_STATUS_0]) & _VALID
    return DONE


@njit
def _load_result(s: Any) -> Any:
    """STATUS_1: the DR(i) that was read last, as it is now.

    A host that asks whether a core has halted meanwhile must see that: time passes for the chip
    between its requests, and none between a trigger and this load.
    """
    read = np.int64(s.debug[_STATUS_0])
    c, i = (read >> _CORE) & 3, read & 31
    s.loaded[0] = np.int64(s.debug_port[c, i]) if read & _VALID else np.int64(0)
    if read & _VALID and i == STATUS:
        s.loaded[0] = s.loaded[0] | 1 if s.core_state[c] == HALTED else np.int64(0)
    return DONE


REGISTERS = (
    debug_register("RISC_DBG_CNTL_0", KEPT, _store_control),
    debug_register("RISC_DBG_CNTL_1"),
    debug_register("RISC_DBG_STATUS_0", _load_status, None),
    debug_register("RISC_DBG_STATUS_1", _load_result, None, effect=Effect.VARIES),
)


# What the debug daisychain presents: 128 bits for each chain and signal, in words of 32.
#
# Sources: DebugDaisychain (Wormhole ISA) for where the cores stand; tt-exalens for the positions
# of RWC and ADC counters on Blackhole. Nothing is on its way in a pipeline here: what a core
# fetches, decodes and retires next is one and the same, and the matrix unit's pipeline is empty.

UNKNOWN = -1
_CORES, _RWC, _ADC = 7, 3, 6  # chains
_FIRST, _LAST, _NCRISC = 10, 17, 24  # group A of brisc, group B of trisc2, group A of ncrisc
_SOURCES, _DST, _FIDELITY = 2, 3, 4  # signals of the RWC chain
_ADCS = 6  # unpacker 0, unpacker 1 of T0, packer of T2; each with two channels
_PC_BITS = (1 << 30) - 1
# First bits of [SrcA SrcB][thread][counter, carriage-return value] and of [thread][...] of Dst
_SOURCE_AT = (((0, 10), (24, 30), (40, 50)), ((60, 70), (84, 90), (100, 110)))
_DST_AT = ((120 - 128, 2), (12, 22), (32, 42))
_ADC_AT = ((0, 18), (64, 80), (96, 104), (112, 120))  # [X Y Z W]
_FIDELITY_AT, _EMPTY_AT = 60, 73
_EMPTY = 7  # no thread has an instruction in a buffer


@njit
def _in_word(value: Any, at: Any, part: Any) -> Any:
    """What a field whose first bit is `at` adds to word `part`."""
    shift = at - 32 * part
    if shift <= -32 or shift >= 32:
        return np.int64(0)
    return (value << shift if shift >= 0 else value >> -shift) & 0xFFFFFFFF


@njit
def _core(s: Any, c: Any, second_group: Any, part: Any) -> Any:
    """Where core `c` stands: groups A and B."""
    pc = np.int64(s.pc[c])
    if second_group:
        return np.int64((0, pc & _PC_BITS | 1 << 31, 0, 1 << 7)[part])
    return np.int64((pc & 0x7FFFFFFF | 1 << 31, 0, pc & _PC_BITS, 0)[part])


@njit
def present(s: Any, chain: Any, signal: Any, part: Any) -> Any:
    """Word `part` (0-3) of the signals, or UNKNOWN."""
    if chain == _CORES and _FIRST <= signal <= _LAST:
        return _core(s, (signal - _FIRST) >> 1, signal & 1, part)
    if chain == _CORES and signal >> 1 == _NCRISC >> 1:
        return _core(s, np.int64(4), signal & 1, part)
    if chain == _RWC and _SOURCES <= signal <= _FIDELITY:
        # The row counters of the threads
        word = np.int64(0)
        for t in range(THREADS):
            if signal == _SOURCES:
                for i in range(2):
                    word |= _in_word(s.rwc[t, i], _SOURCE_AT[i][t][0], part)
                    word |= _in_word(s.rwc_cr[t, i], _SOURCE_AT[i][t][1], part)
            elif signal == _DST:
                word |= _in_word(s.rwc[t, 2], _DST_AT[t][0], part)
                word |= _in_word(s.rwc_cr[t, 2], _DST_AT[t][1], part)
            else:
                word |= _in_word(s.rwc[t, 3] & 3, _FIDELITY_AT + 2 * t, part)
        if signal == _SOURCES:
            word |= _in_word(s.rwc[0, 2], _DST_AT[0][0] + 128, part)
        return word | _in_word(np.int64(_EMPTY), _EMPTY_AT, part) if signal == _FIDELITY else word
    if chain == _ADC and signal < _ADCS:
        # The address counters of an unpacker for T0, or of the packer for T2
        unit, channel, word = signal >> 1, signal & 1, np.int64(0)
        t = 2 if unit == 2 else 0
        for i in range(4):
            word |= _in_word(s.adc[t, unit, channel, i], _ADC_AT[i][0], part)
            word |= _in_word(s.adc_cr[t, unit, channel, i], _ADC_AT[i][1], part)
        return word
    return np.int64(UNKNOWN)


# The debug daisychain, 0xFFB12048: what it presents is loaded, or written to L1 at a trigger.
#
# Source: DebugDaisychain (Wormhole ISA). Signals that are not modelled are refused by their
# numbers, and so are samples at intervals.

SIGNAL = error("DEBUG-BUS", UNIMPLEMENTED, "signals {signal} of debug daisychain {chain} are not modelled (control {control:#010x})", "where the cores stand, RWC and ADC counters are: chains 7, 3 and 6")  # fmt: skip
SAMPLES = error("DEBUG-BUS-SAMPLES", UNIMPLEMENTED, "DBG_L1_MEM_REG2 = {value:#x} asks the debug daisychain for samples at intervals", "write mode 0 or 1 writes one sample for each trigger")  # fmt: skip
_CONTROL = mm.RISCV_DEBUG_REG_DBG_BUS_CNTL_REG >> 2
_TARGET = mm.RISCV_DEBUG_REG_DBG_L1_MEM_REG0 >> 2  # L1 address >> 4
_WRITING = mm.RISCV_DEBUG_REG_DBG_L1_MEM_REG2 >> 2
_ENABLED = 1 << 29
_DEBUG_BUS_TRIGGER, _MODE, _NEXT = 1 << 12, 15, 1
_REACH = 1 << 16  # targets in the low 1 MiB


@njit
def _word(s: Any, control: Any, part: Any) -> Any:
    """One of the four words that are presented, or UNKNOWN."""
    if control & _ENABLED == 0:
        return np.int64(UNKNOWN)
    return present(s, (control >> 16) & 0xFF, control & 0xFFFF, part)


@njit
def _refused(s: Any, control: Any) -> Any:
    return refuse(s, SIGNAL, signal=control & 0xFFFF, chain=(control >> 16) & 0xFF, control=control)


@njit
def _debug_bus_store_control(s: Any, value: Any) -> Any:
    """What is presented, to a debugger."""
    adopt(s)
    s.debug[_CONTROL] = np.uint32(value)
    return DONE


@njit
def _load(s: Any) -> Any:
    """The selected 32 of 128 bits."""
    control = np.int64(s.debug[_CONTROL])
    word = _word(s, control, (control >> 25) & 3)
    if word == UNKNOWN:
        return _refused(s, control)
    s.loaded[0] = word
    return DONE


@njit
def _store_writing(s: Any, value: Any) -> Any:
    """A trigger that rises writes all 128 bits to L1."""
    if value & _DEBUG_BUS_TRIGGER and not s.debug[_WRITING] & np.uint32(_DEBUG_BUS_TRIGGER):
        control, target = np.int64(s.debug[_CONTROL]), np.int64(s.debug[_TARGET])
        if value & _MODE > _NEXT or target >= _REACH:
            return refuse(s, SAMPLES, value=value)
        if _word(s, control, np.int64(0)) == UNKNOWN:
            return _refused(s, control)
        words = s.l1.view(np.uint32)
        for part in range(4):
            words[4 * target + part] = np.uint32(_word(s, control, np.int64(part)))
        state.written(s, 16 * target, np.int64(16))
        s.debug[_TARGET] += np.uint32(value & _MODE)
    s.debug[_WRITING] = np.uint32(value)
    return DONE


DEBUG_BUS_REGISTERS = (
    debug_register("DBG_L1_MEM_REG0"),
    debug_register("DBG_L1_MEM_REG1"),
    debug_register("DBG_L1_MEM_REG2", KEPT, _store_writing),
    debug_register("DBG_BUS_CNTL_REG", KEPT, _debug_bus_store_control),
    debug_register("DBG_RD_DATA", _load, None, effect=Effect.VARIES),
)
