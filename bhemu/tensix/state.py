"""The architectural state of a tile: one structured record, and its members as arrays."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.jit.intrinsics import arrayobj, cgutils, numba
from bhemu.jit.record import PAGE, Record, layout, members, offsets_of
from bhemu.jit.subset import JIT, intrinsic, njit, signature
from bhemu.memmap import DEVICE_BASE, L1_SIZE
from bhemu.tensix.dest import UNWRITTEN
from bhemu.tensix.rules import LOOK, LOOK_EVERY, TIME_SLICE
from bhemu.tensix.unspecified import CELLS

# The architectural state of a tile: one structured record.
#
# The record is the argument of all compiled code, the user pointer of the engine's callbacks and
# the snapshot (one memory copy).  Every scalar is an array element, no two fields overlap.
# Counters are int64; data-path cells have the width of the hardware.  L1 comes first and is
# page-aligned, so that it can be mapped into the engine; so are the five local memories.

LOCAL_SIZE = 0x2000
CORES = 5  # brisc, trisc0, trisc1, trisc2, ncrisc: the order of turns
THREADS = 3
RESET, RUNNING, BLOCKED, PARKED, ASSERTED, HELD, HALTED = range(7)  # core_state
FIFO_DEPTH = 32  # words a thread's instruction FIFO holds (first FIFO, PushTensixInstruction)
CFG0_RESET = 16 << 13  # CSR cfg0 after reset: StMergeTimer = 16, all else 0 (CSRs, Blackhole ISA)
SECOND_SLOTS = 9  # second entries of instructions, see insn.py
WATCHPOINTS, WATCH_BYTES = 16, 128  # how many, and how much one of them watches
WORD_BREAKPOINTS = 16  # breakpoints on Tensix words
WINDOW_ROWS = 32  # of the tables of the device bus, see devices/bus/entries.py
WINDOW_PAGES = ((1 << 32) - DEVICE_BASE) // PAGE
LOG_SIZE = 1 << 14  # words the trace ring holds before Python must drain it
NOC_REQUESTS, NOC_FIELDS = 256, 16  # of both NIUs, see devices/niu_request.py; fields of each
NOC_ARRIVED = 64  # writes of the NoC to L1 that a tile remembers, for messages
NOC_DATA = 1 << 18  # bytes of writes that may be under way
L0_LINES, L0_LINE = 4, 16  # lines of a core's data cache, bytes of each
L1_PAGES, L0_WORDS = L1_SIZE // PAGE, L0_LINE // 4
ACCESSORS = CORES + 1  # of windows: the cores and the host

UNITS = 6  # that hold a word while they work on it, see tensix/in_flight.py
BEGUN = 7  # words of Config that a unit reads when it begins, see tensix/issue.py
AGENTS = UNITS + CORES + THREADS  # of the timed form
LATE_AGENTS = AGENTS + CORES + 1  # and the stores of each core to L1, results of the scalar unit
SCALAR_RESULTS = LATE_AGENTS - 1
STORE_QUEUE = 4  # of a core: stores to L1 that it does not wait for
SHARED_UNITS = 2  # scalar and configuration unit, whose words are complete at the gate
ANSWERS, ASKED = 16, 8  # results that may be on their way, what is known of each: see in_flight.py
SPENT = 1 << 13  # rows of the table of where cycles go
COUNTED = 8 + THREADS  # semaphores and FIFOs, whose values a profile follows
PERF_BANKS, PERF_EVENTS = 5, 6  # of performance counters; cycles, and what they count
MODELLED, DRAWN = 1, 2  # of `timed`
LATE_LOG = 1 << 12  # drawn delays that are remembered
LREG_CONSTANTS = (0x3F56594B, 0, 0x3F800000, 0xBF800000, 0x3B000000, 0xBF2CC4C7, 0xBEB08FF9)
LATE_ACTS = 16  # kinds of acts that a late run may be told to delay

_FILE = Path(__file__).parents[1] / "data" / "tile_record.txt"
MEMBERS = members(_FILE, globals() | {"CELLS": CELLS})
POINTERS = (
    *("host", "engine", "registers", "table", "second", "noc_map", "run_rounds", "run_core"),
    *("run_tensix", "run_thread", "bus_read", "bus_write", "window_entry", "sync_entry"),
    *("port_access", "profile_table"),
)
_NAMES = tuple(member.name for member in MEMBERS)
TIMED = _NAMES[_NAMES.index("timed") : _NAMES.index("late_log") + 1]
"""Members of the timed form, all 0 without it."""
MAPPED = ("l1", "local")
"""Members that an engine maps, and that begin at a page."""
DTYPE = layout(MEMBERS, MAPPED)
OFFSET = offsets_of(DTYPE)


class State(Record):
    """One tile's record: `s.sem`, `s.dst`, ... are views of its members."""

    MEMBERS = MEMBERS
    DTYPE = DTYPE
    is_copy = False  # of the record of another new tile: nobody need fill it

    def __init__(self, memory: npt.NDArray[np.uint8] | None = None) -> None:
        super().__init__(memory)
        self.py: Any = None  # interpreted twins of the compiled entries
        # What compiled code calls (intrinsics.callback): of words, accesses, the observed order
        self.words: Any = None
        self.accesses: Any = None
        self.order: Any = None
        self.time_slice[0], self.look_every[0] = TIME_SLICE, LOOK_EVERY
        self.count_passes[0] = 1
        _set(self)


def reset(s: Any) -> None:
    """Power-up values of everything but L1 and the pointers (SoftReset; numerics of LReg 8-15)."""
    keep = (
        *("l1", "code_page", "translated", "stall", "wakes", "quantum", "ub_mode", "reference"),
        *("livelock", "time_slice", "look_every", "count_passes", "stochastic", "stochastic_seed"),
        *("l0", "timed", "translate_after", "window_at", "window", "window_rule", "noc_data"),
        *POINTERS,
    )
    for member in MEMBERS:
        if member.name not in keep:
            getattr(s, member.name)[...] = 0
    _set(s)


def _set(s: Any) -> None:
    """What is not 0 at power-up; a new record has never been touched beyond that."""
    s.host[0] = s.base
    s.dst_valid[:] = UNWRITTEN
    s.lreg[8:15] = np.array(LREG_CONSTANTS, np.uint32)[:, None]
    s.lreg[15] = 2 * np.arange(32)
    s.cc[:] = 1
    s.cc_en[0] = 1
    s.cfg0[:] = CFG0_RESET
    s.executed_limit[:] = s.retired_limit[:] = s.limit[:] = -1
    s.log_end[0] = -1
    s.status_thread[0] = s.status_core[0] = s.srca_row[0] = -1


# Signatures of the compiled functions that are called through pointers of the record.

ENTRY = signature("int64", DTYPE, "int64", "uint32")  # execute one word of thread t
STEP = signature("int64", DTYPE, "int64")  # run a core, or the coprocessor for n words
ACCESS = signature("int64", DTYPE, "int64", "int64", "int64", "int64")


# Members of the state record read as arrays of another element type, without a copy.
#
# `s.l1.view(...)` does the same in compiled code, but costs 10 ns a call and 60 ms of compile time
# for each element type.  Interpreted, these functions are that view.

WORD = 0xFFFFFFFF  # all bits of one


def _member_as(member: str, dtype: Any, *columns: int) -> Any:
    """A function of the state that gives `member` as array of `dtype`, in rows of `columns`."""
    assert DTYPE.fields is not None
    width, offset = np.dtype(dtype).itemsize, OFFSET[member]
    shape = (DTYPE.fields[member][0].itemsize // width // math.prod(columns), *columns)
    if not JIT:
        return lambda s: getattr(s, member).reshape(-1).view(dtype).reshape(shape)

    def member_as(typing: Any, s: Any) -> Any:
        element = numba.from_dtype(np.dtype(dtype))
        array = numba.types.Array(element, len(shape), "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind, size = context.get_data_type(element), numba.types.intp
            strides = (width * n for n in (*columns, 1))
            view = arrayobj.make_array(array)(context, builder)
            arrayobj.populate_array(
                view,
                data=cgutils.get_record_member(builder, args[0], offset, kind),
                shape=[context.get_constant(size, n) for n in shape],
                strides=[context.get_constant(size, n) for n in strides],
                itemsize=context.get_constant(size, width),
                meminfo=None,
            )
            return view._getvalue()

        return array(s), emit

    return intrinsic(member_as)


l1_halves: Any = _member_as("l1", np.uint16)  # uint16[0xC0000]
l1_words: Any = _member_as("l1", np.uint32)  # uint32[0x60000]
weights: Any = _member_as("unpack_weight", np.float32)  # float32[1024]
# Dst as groups of four rows: the 32 lanes of one load are the even or odd columns of a group, so
# lane l is one half of the group's 32-bit word l.  uint32[256, 32]
column_pairs: Any = _member_as("dst", np.uint32, 32)


# Pages of L1 that a core has executed: a write of the coprocessor there drops translated code.
#
# A core's own stores are noticed by the engine; another core's code changes for it at a write to
# RISCV_IC_INVALIDATE, as in hardware.


@njit
def flush(s: Any, cores: Any) -> None:
    """Drop the translated code of the cores in the bit mask before their next instruction."""
    for c in range(CORES):
        if (cores >> c) & 1:
            s.flush[c] = 1
    s.attention[0] |= LOOK


@njit
def written(s: Any, first: Any, size: Any) -> None:
    """A Tensix word or a device wrote bytes `first` to `first + size` of L1."""
    s.l1_written[0] = 1
    cores = np.int64(0)
    for page in range(first // PAGE, (first + size + PAGE - 1) // PAGE):
        if page < L1_PAGES:
            cores |= s.code_page[page]
    if cores:
        flush(s, cores)
