"""The architectural state of a tile: one structured record, and its members as arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.jit.record import PAGE, Member, Record, layout, offsets_of
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

_i64, _i16, _u8, _u16, _u32, _u64 = np.int64, np.int16, np.uint8, np.uint16, np.uint32, np.uint64

MEMBERS = (
    Member("l1", _u8, (L1_SIZE,), "L1 memory"),
    Member("local", _u8, (CORES, LOCAL_SIZE), "core-local data memory"),
    # backend configuration
    Member("cfg", _u32, (2, 224), "Config words of both banks"),
    Member("thread_cfg", _u32, (3, 68), "ThreadConfig values (low 16 bits)"),
    Member("gpr", _u32, (3, 64), "Tensix GPRs of each thread"),
    # the last writer of each, for messages (never architectural): see config.by_thread
    Member("cfg_by", _u32, (2, 224), "last writer of each Config word, 0 = none yet"),
    Member("thread_cfg_by", _u32, (3, 68), "last writer of each ThreadConfig value"),
    # sync unit
    Member("sem", _i64, (8,), "semaphore values"),
    Member("sem_max", _i64, (8,), "semaphore maxima"),
    Member("mutex", _i64, (8,), "0 = free, else 1 + the thread that holds it"),
    Member("mutex_next", _i64, (8,), "0 = any, else 1 + the thread that gets the free mutex"),
    # the agent that touched each last, for messages (never architectural): see semaphores.note
    Member("sem_by", _i64, (8, 2), "[semaphore][posted, taken]: last agent, 0 = none yet"),
    Member("sem_pc", _u32, (8, 2), "pc that pushed or stored it"),
    Member("mutex_core", _i64, (8,), "core that pushed the ATGETM"),
    Member("mutex_pc", _u32, (8,), "its pc"),
    # address counters: [thread][unpacker 0, unpacker 1, packer][channel][X Y Z W]
    Member("adc", _i64, (3, 3, 2, 4), "ADC counters"),
    Member("adc_cr", _i64, (3, 3, 2, 4), "ADC carriage-return values"),
    Member("unpack_row", _i64, (2, 3), "SrcRow: rows added to the target [unpacker][thread]"),
    Member("unpack_context", _i64, (2, 3), "config context counter [unpacker][thread]"),
    # row counters: [thread][SrcA SrcB Dst fidelity]
    Member("rwc", _i64, (3, 4), "RWC counters"),
    Member("rwc_cr", _i64, (3, 4), "RWC carriage-return values (fidelity: unused)"),
    # source registers: [SrcA SrcB][bank][row][column], cells s e8 m10 in bits 31..13
    Member("src", _u32, (2, 2, 64, 16), "SrcA and SrcB cells"),
    Member("src_valid", _i64, (2, 2), "1 = the bank belongs to the matrix unit"),
    Member("src_fmt", _i64, (2, 2), "format recorded when the bank was handed over"),
    Member("src_doubt", _i64, (2, 4), "rows of SrcA, see unpack/addresses.py [bank][16]: bits"),
    Member("unpack_bank", _i64, (2,), "bank the unpacker writes next"),
    Member("matrix_bank", _i64, (2,), "bank the matrix unit reads next"),
    Member("srca_row", _i64, (1,), "SrcA row of the last matrix instruction, -1 = not known"),
    # the same cells prepared for products, see units/matrix/operands.py (never architectural)
    Member("src_prepared", _i64, (2, 2), "form in which the bank is prepared, 0 = stale"),
    Member("src_exponent", _i16, (2, 2, 64, 16), "exponents"),
    Member("src_slice", _i16, (2, 2, 2, 64, 16), "signed slices of the mantissas, by phase bit"),
    Member("src_wide", _i64, (2, 2, 16), "exponent bits beyond 5 in each group of 4 rows"),
    Member("term_sum", _i16, (2, 128), "scratch: sums of products of both groups"),
    Member("term_exponent", _i16, (2, 128), "scratch: their exponents"),
    Member("term_magnitude", _u32, (128,), "scratch: magnitudes of element-wise results"),
    Member("dst", _u16, (1024, 16), "Dst storage (shuffled cells, see dest.py)"),
    Member("dst_valid", _i64, (1024,), "0 = ZEROACC marked the row as zero, else see dest.py"),
    # cells whose value no source fixes, see tensix/unspecified.py
    Member("doubt", _i64, (3,), "1 = a cell was in doubt: of Dst or Src; of Src; a lane is"),
    Member("dst_doubt", _u32, (1024,), "doubtful columns of a row, 16 bits for each cause"),
    Member("dst_doubt_pc", _u32, (1024,), "pc that pushed the word that left the doubt"),
    Member("doubt_row", _i64, (16,), "scratch: doubts of rows (never architectural)"),
    # vector unit
    Member("lreg", _u32, (16, 32), "LReg lanes (8-15 constants)"),
    Member("lane_tmp", _u32, (8, 32), "scratch rows of lane loops (never architectural)"),
    Member("lane_doubt", _i64, (CELLS,), "doubtful lanes, see tensix/unspecified.py"),
    Member("lane_doubt_new", _i64, (17,), "scratch: of LRegs whose write is staged"),
    Member("cc", _u32, (32,), "lane condition codes, 0 or 1"),
    Member("cc_en", _i64, (1,), "condition codes in use"),
    Member("cc_stack", _u32, (8, 32), "condition-code stack, lane flags"),
    Member("cc_stack_en", _i64, (8,), "condition-code stack, enables"),
    Member("cc_depth", _i64, (1,), "entries on the condition-code stack"),
    Member("lane_config", _u32, (32,), "LaneConfig of each lane"),
    Member("macro_template", _u32, (4,), "SFPLOADMACRO instruction templates"),
    Member("macro_sequence", _u32, (4,), "SFPLOADMACRO sequence registers"),
    Member("macro_misc", _u32, (1,), "SFPLOADMACRO miscellaneous register"),
    Member("macro_slot", _i64, (4, 8, 5), "scheduled: [sub-unit][delay][kind word LReg row mode]"),
    Member("macro_thread", _i64, (1,), "thread whose SFPLOADMACRO scheduled them"),
    Member("macro_last", _i64, (3,), "what the last cycle left to the next, see macro.py"),
    Member("macro_dest", _i64, (1,), "1 + LReg that the executing word writes, 0 = as it says"),
    Member("lreg16", _u32, (1, 32), "LReg 16, for scheduled instructions only"),
    Member("route", _i64, (1,), "opcode whose entry takes every word, 0 = each its own"),
    Member("stage_latency", _i64, (1,), "cycles until a write is visible, 0 = at once"),
    Member("stage_used", _i64, (1,), "writes that wait for the end of a cycle"),
    Member("stage_reg", _i64, (32,), "their registers"),
    Member("stage_left", _i64, (32,), "cycles until they are written"),
    Member("stage_value", _u32, (32, 32), "their values"),
    Member("stage_mask", _u32, (32, 32), "their lanes, 0 = not written"),
    Member("stage_doubt", _i64, (32,), "their doubtful lanes"),
    Member("prng", _u32, (32,), "pseudo-random generator of each lane"),
    # packer: position within the tile being packed
    Member("pack_open", _i64, (1,), "1 = a tile is being packed"),
    Member("pack_data", _i64, (1,), "next L1 byte of datums"),
    Member("pack_exp", _i64, (1,), "next L1 byte of shared exponents"),
    Member("pack_datum", _i64, (1,), "datums packed so far in this tile"),
    Member("pack_row", _i64, (1,), "row within the tile, for edge masks"),
    Member("pack_plane", _i64, (1,), "row within the xy plane (8 bits, kept from tile to tile)"),
    Member("pack_sum", _i64, (5,), "what conversion.py notes of the sums in L1"),
    Member("pack_histogram", _u8, (32,), "exponents of packed datums, saturating counts"),
    Member("pack_exponent", _i64, (3,), "largest exponent packed; PACRs without it, as int8"),
    Member("pack_tmp", _u32, (64,), "scratch datums of one PACR (never architectural)"),
    Member("pack_cells", _u16, (2, 64), "scratch Dst rows of one PACR (never architectural)"),
    Member("unpack_tmp", _u32, (1024,), "scratch cells of one UNPACR (never architectural)"),
    Member("unpack_weight", _u32, (1024,), "scratch magnitudes of bfp (never architectural)"),
    # front end
    Member("mop_cfg", _u32, (3, 9), "MOP configuration words"),
    Member("mop_live", _u32, (3, 9), "configuration latched by the MOP being expanded"),
    Member("mop_zmask_hi", _i64, (3,), "upper zero mask set by MOP_CFG"),
    Member("mop_on", _i64, (3,), "0 = none, 1 = template 0, 2 = template 1"),
    Member("mop_outer", _i64, (3,), "template 1: outer pass; template 0: step"),
    Member("mop_inner", _i64, (3,), "template 1: inner iteration"),
    Member("mop_stage", _i64, (3,), "position within the pass or step"),
    Member("mop_mask", _i64, (3,), "template 0: remaining zero mask"),
    Member("mop_count", _i64, (3,), "template 0: number of steps"),
    Member("mop_pc", _u32, (3,), "pc that pushed the MOP being expanded"),
    Member("mop_core", _i64, (3,), "core that pushed it"),
    Member("replay", _u32, (3, 32), "replay buffer"),
    Member("replay_pc", _u32, (3, 32), "pc that pushed each recorded word"),
    Member("record_left", _i64, (3,), "words still to record"),
    Member("record_at", _i64, (3,), "next replay slot to record"),
    Member("record_execute", _i64, (3,), "1 = recorded words execute too"),
    Member("play_left", _i64, (3,), "words still to play"),
    Member("play_at", _i64, (3,), "next replay slot to play"),
    Member("play_pc", _u32, (3,), "pc that pushed the REPLAY being played"),
    Member("fifo", _u32, (3, FIFO_DEPTH), "instruction FIFO of each thread"),
    Member("fifo_pc", _u32, (3, FIFO_DEPTH), "pc that pushed each word"),
    Member("fifo_core", _i64, (3, FIFO_DEPTH), "core that pushed each word"),
    Member("fifo_read", _i64, (3,), "words taken out so far"),
    Member("fifo_write", _i64, (3,), "words put in so far"),
    # wait gate
    Member("gate_full", _i64, (3,), "1 = a word stands at the gate"),
    Member("gate_word", _u32, (3,), "the word at the gate"),
    Member("gate_pc", _u32, (3,), "pc that pushed it"),
    Member("gate_core", _i64, (3,), "core that pushed it"),
    Member("gate_from", _i64, (3,), "0 pushed, 1 MOP, 2 + slot REPLAY"),
    Member("gate_blocked", _i64, (3,), "condition number that holds it, 0 = none"),
    Member("latch", _i64, (3,), "latched wait: 0 none, 1 STALLWAIT, 2 SEMWAIT, 3 STREAMWAIT"),
    Member("latch_block", _i64, (3,), "block bits of the latched wait"),
    Member("latch_cond", _i64, (3,), "condition bits of the latched wait"),
    Member("latch_sem", _i64, (3,), "semaphore mask of the latched SEMWAIT"),
    Member("latch_stream", _i64, (3,), "stream selector of the latched STREAMWAIT"),
    Member("latch_target", _i64, (3,), "target value of the latched STREAMWAIT"),
    Member("latch_word", _u32, (3,), "the latched wait instruction"),
    Member("latch_pc", _u32, (3,), "pc that pushed the latched wait"),
    Member("stall", _i64, (256,), "stall mask by opcode"),
    Member("wakes", _i64, (256,), "by opcode: whether it can end another thread's wait (insn.py)"),
    Member("thcon", _i64, (1,), "1 + the thread whose blocked word occupies the scalar unit"),
    # words that take time, see tensix/in_flight.py and timing/loop.py
    Member("timed", _i64, (1,), "0 = words are complete at the gate, 1 = modelled, 2 = drawn"),
    Member("agent_next", _i64, (AGENTS,), "cycle of its next act: units, cores, threads"),
    Member("agent_at", _i64, (1,), "agent that acts in the present cycle"),
    Member("window_end", _i64, (1,), "cycle in which the present window ends"),
    Member("woken", _i64, (1,), "1 = an agent did what others may wait for"),
    Member("in_flight", _i64, (3,), "words of each thread that units have not completed"),
    Member("unit_thread", _i64, (UNITS,), "0 = the unit is free, else 1 + thread of its word"),
    Member("unit_word", _u32, (UNITS,), "the word"),
    Member("unit_pc", _u32, (UNITS,), "pc that pushed it"),
    Member("unit_core", _i64, (UNITS,), "core that pushed it"),
    Member("unit_from", _i64, (UNITS,), "as gate_from"),
    # what the word saw when it was issued
    Member("unit_adc", _i64, (UNITS, 3, 2, 4), "ADC counters of the unit's engine, by thread"),
    Member("unit_adc_cr", _i64, (UNITS, 3, 2, 4), "their carriage-return values"),
    Member("unit_row", _i64, (UNITS, 3), "unpack_row of the unpacker"),
    Member("unit_context", _i64, (UNITS, 3), "unpack_context of the unpacker"),
    Member("unit_rwc", _i64, (UNITS, 4), "RWC counters of the thread"),
    Member("unit_rwc_cr", _i64, (UNITS, 4), "their carriage-return values"),
    Member("unit_thread_cfg", _u32, (UNITS, 68), "ThreadConfig of the thread"),
    Member("unit_debt", _i64, (UNITS,), "sixteenths of a cycle by which a unit lags whole cycles"),
    Member("unit_idle", _i64, (UNITS,), "cycle in which the pipeline of a unit is empty"),
    Member("unit_last", _i64, (UNITS,), "thread of the last word of a unit"),
    Member("dst_ready", _i64, (128,), "cycle from which a word may add to each 8 rows of Dst"),
    Member("shared_free", _i64, (SHARED_UNITS,), "cycle in which a unit takes a word again"),
    # results that come later, see tensix/in_flight.py
    Member("answer_first", _i64, (1,), "number of the first request that has not arrived"),
    Member("answer_last", _i64, (1,), "requests so far"),
    Member("answer", _i64, (ANSWERS, ASKED), "each of them, by its number modulo ANSWERS"),
    Member("answer_value", _u32, (ANSWERS, 1), "what the GPR gets, where that is known"),
    # Config before the last WRCFG, see tensix/in_flight.py
    Member("cfg_old", _u32, (3, 4), "Config words before the last WRCFG of each thread"),
    Member("cfg_old_at", _i64, (3, 3), "their bank, the first word, how many"),
    Member("cfg_old_until", _i64, (3,), "cycle in which a word of the thread still sees them"),
    Member("unit_cfg", _u32, (UNITS, 4), "what the word of a unit sees of them"),
    Member("unit_cfg_at", _i64, (UNITS, 3), "bank, first word, how many; 0 = none"),
    Member("unit_begun", _u32, (UNITS, BEGUN), "what it saw of them when it began"),
    Member("unit_begun_at", _i64, (UNITS, BEGUN), "each: 1 + place in both banks, 0 = none"),
    Member("thread_order", _i64, (3,), "threads in the order in which they act in this cycle"),
    Member("thread_last", _i64, (3,), "cycle in which a word of each thread was issued last"),
    # cores in time, see timing/core.py
    Member("turn_cycles", _i64, (1,), "cycles of the instruction that a core executes"),
    Member("turn_pc", _i64, (1,), "its pc"),
    Member("core_ready", _i64, (CORES, 32), "cycle in which each register has its value"),
    Member("core_store", _i64, (CORES,), "sixteenths of cycles: when the last store to L1 is done"),
    Member("core_load", _i64, (CORES,), "sixteenths of cycles: when L1 can be loaded again"),
    Member("l1_port", _i64, (2,), "sixteenths of cycles: when L1 takes a store, a load of a core"),
    Member("core_line", _i64, (CORES,), "1 + the 16 bytes of L1 to which the last store went"),
    # where cycles go, see timing/spent.py
    Member("spent", _i64, (1,), "1 = count where cycles go"),
    Member("spent_key", _i64, (SPENT, 3), "1 + agent, pc, condition waited for: a hash table"),
    Member("spent_cycles", _i64, (SPENT,), "cycles of each row"),
    Member("spent_times", _i64, (SPENT,), "how often"),
    Member("spent_since", _i64, (AGENTS,), "cycle since which an agent waits"),
    Member("spent_for", _i64, (AGENTS,), "the condition that it waits for, 0 = none"),
    Member("spent_of", _i64, (AGENTS,), "semaphores that it waits for, as a mask"),
    Member("span", _i64, (CORES, 3), "open span of each core: 1 + begin (0 = none), end, pc"),
    Member("counted", _i64, (COUNTED,), "semaphores and words in FIFOs as they were logged last"),
    Member("unit_cycles", _i64, (UNITS,), "cycles in which each unit has worked"),
    # performance counters, see devices/debug_regs.py
    Member("perf_on", _i64, (PERF_BANKS,), "1 = the bank counts"),
    Member("perf_since", _i64, (PERF_BANKS, PERF_EVENTS), "cycles, events when it was started"),
    Member("perf_taken", _i64, (PERF_BANKS, PERF_EVENTS), "of each until it was stopped"),
    # drawn times, see timing/draws.py
    Member("late_random", _u64, (1,), "generator of the draws"),
    Member("late_slow", _i64, (LATE_AGENTS,), "cycles that an act may be late now, or AT_ONCE"),
    Member("late_until", _i64, (1,), "cycle in which other agents become slow"),
    Member("late_choices", _i64, (1,), "delays drawn so far"),
    Member("gate_drawn", _i64, (3,), "1 = how late the word at the gate is has been drawn"),
    Member("store_at", _i64, (CORES, STORE_QUEUE), "L1 address of the last stores of each core"),
    Member("store_size", _i64, (CORES, STORE_QUEUE), "their bytes, and its number << 8"),
    Member("store_old", _i64, (CORES, STORE_QUEUE), "what was there before"),
    Member("store_due", _i64, (CORES, STORE_QUEUE), "cycle until which the NoC sees that"),
    Member("store_next", _i64, (CORES,), "stores of each core so far; a fence drains, as 4 do"),
    Member("late_named", _i64, (1,), "kinds of acts that alone are late, 0 = what the seed draws"),
    Member("late_acts", _i64, (LATE_ACTS, 4), "each: agent, pc or -1, the first, the last of them"),
    Member("late_seen", _i64, (LATE_ACTS,), "acts of each kind so far"),
    Member("late_log", _i64, (LATE_LOG, 5), "last delays: number, agent, pc, cycle, cycles late"),
    # counters, errors, trace
    Member("executed", _i64, (3,), "Tensix words executed by each thread"),
    Member("executed_limit", _i64, (3,), "stop the thread at this count, -1 = never"),
    Member("op_count", _i64, (3, 256), "executed words by thread and opcode"),
    Member("status", _i64, (1,), "status that stopped compiled code"),
    Member("status_thread", _i64, (1,), "thread that stopped, -1 = none"),
    Member("status_core", _i64, (1,), "core that stopped, -1 = none"),
    Member("detail", _i64, (6,), "words for the sentence of the status"),
    Member("ub_mode", _i64, (1,), "undefined behaviour: 0 error, 1 warn, 2 silicon"),
    Member("reference", _i64, (1,), "the reference: 0 ttsim, 1 llk, 2 isa (see rules.py)"),
    Member("stochastic", _i64, (1,), "stochastic rounding: 0 refused, else see lanes.py"),
    Member("stochastic_seed", _u32, (1,), "what its generators start from"),
    Member("stochastic_state", _u32, (4,), "generators of matrix unit and packer, 1 = started"),
    Member("rule_number", _i64, (256,), "rules that were tolerated (hash table, 0 = free)"),
    Member("rule_count", _i64, (256,), "how often each of them was"),
    Member("trace", _i64, (1,), "1 = log executed words, 2 = device stores of cores too"),
    Member("loaded", _i64, (1,), "value of the last device load"),
    Member("log", _u32, (LOG_SIZE, 4), "trace ring: see tensix/observe.py"),
    Member("log_clock", _i64, (LOG_SIZE,), "clock after each of them"),
    Member("log_write", _i64, (1,), "words written to the log so far"),
    Member("log_read", _i64, (1,), "words Python has taken"),
    Member("watch", _i64, (5,), "while tracing, see tensix/observe.py: kind, place, where to stop"),
    Member("watch_before", _u32, (1,), "what is watched, before the word that executes"),
    Member("watch_log", _u32, (LOG_SIZE, 2), "what is watched before and after each logged word"),
    # watchpoints, see tensix/observe.py
    Member("watch_count", _i64, (1,), "watchpoints set"),
    Member("watchpoint", _i64, (WATCHPOINTS, 4), "distance in the record, bytes, number, access"),
    Member("watch_mask", _u8, (WATCHPOINTS, WATCH_BYTES), "bits that are compared"),
    Member("watched", _u8, (WATCHPOINTS, WATCH_BYTES), "what was last seen there"),
    Member("watch_hit", _i64, (1,), "row of the watchpoint that stopped the run, -1 = none"),
    Member("watch_read", _i64, (2,), "1 + row that is being read, 0 = none; 1 = a read stopped"),
    Member("watch_old", _u8, (WATCH_BYTES,), "what was there before"),
    Member("watch_pc", _u32, (CORES,), "pc of each core's last instruction, while any is set"),
    # breakpoints on Tensix words, see tensix/observe.py
    Member("word_break_count", _i64, (1,), "how many are set"),
    Member("word_break", _i64, (WORD_BREAKPOINTS, 4), "mask, value, threads, number"),
    Member("word_break_hit", _i64, (1,), "number of the one that stopped the run"),
    Member("word_break_seen", _i64, (3,), "1 + words executed when a thread stopped at one"),
    # RISC-V cores
    Member("core_state", _i64, (CORES,), "0 reset, 1 running, 2 blocked, ...: see above"),
    Member("core_wait", _i64, (CORES,), "condition number the core waits for"),
    Member("core_address", _u32, (CORES,), "address of the last device access"),
    Member("pc", _u32, (CORES,), "program counter"),
    Member("regs", _u32, (CORES, 32), "x0-x31 of each core, while no other engine keeps them"),
    Member("retired", _i64, (CORES,), "instructions retired (minstret)"),
    Member("left", _i64, (CORES,), "instructions left in this turn when the slice began"),
    Member("fuel", _i64, (CORES,), "instructions the slice may still execute"),
    Member("fuel_given", _i64, (CORES,), "instructions the slice was given"),
    Member("attention", _i64, (1,), "1 = something must be looked at before each instruction"),
    Member("retired_limit", _i64, (CORES,), "stop at this count, -1 = never"),
    Member("breakpoint", _u32, (CORES, 16), "breakpoint addresses"),
    Member("breakpoint_count", _i64, (CORES,), "breakpoints set"),
    Member("breakpoint_skip", _i64, (CORES,), "1 = do not stop at the first instruction"),
    Member("debug_port", _u32, (CORES, 18), "DR(i) of the debug port, see devices/debug_port.py"),
    Member("port_used", _i64, (1,), "1 = a host uses the debug ports: ebreak halts"),
    Member("port_halt", _i64, (CORES,), "1 + count of instructions at which it halts, 0 = never"),
    Member("port_from", _i64, (CORES,), "1 + count at which it was resumed, 0 = never"),
    Member("cfg0", _u32, (CORES,), "CSR 0x7C0"),
    Member("csr", _u32, (CORES, 16), "CSRs that are storage, see riscv/csr.py"),
    Member("csr_offset", _i64, (CORES, 2), "what writes added to mcycle and minstret"),
    # L0 data caches, see riscv/l0_cache.py
    Member("l0", _i64, (1,), "1 = they are modelled"),
    Member("l0_line", _i64, (CORES, L0_LINES, 2), "1 + address, 0 = no line; when it was used"),
    Member("l0_filled", _i64, (CORES, L0_LINES), "clock of the load that filled the line"),
    Member("l0_data", _u32, (CORES, L0_LINES, L0_LINE // 4), "what the lines hold"),
    Member("l0_uses", _i64, (CORES,), "loads through the cache"),
    Member("l0_random", _u32, (CORES,), "generators of periodic flushes"),
    Member("l0_stale", _i64, (CORES, 3), "loads of older bytes than L1's; address, pc of the last"),
    Member("stop_kind", _i64, (CORES,), "why the last slice ended, see riscv/turn.py"),
    Member("engine", _u64, (CORES,), "engine handle of each core"),
    Member("registers", _u64, (CORES,), "host address of x0-x31 of each core, 0 = unknown"),
    Member("scratch", _u32, (64,), "register transfers with the engine"),
    Member("core", _i64, (1,), "core whose turn it is"),
    Member("fresh", _i64, (CORES,), "1 = registers must be cleared before the first instruction"),
    Member("first_sp", _u32, (CORES,), "what x2 holds then"),
    Member("code_page", _u8, (L1_SIZE // PAGE,), "mask of cores whose engine may hold its code"),
    Member("flush", _i64, (CORES,), "1 = drop translated code before the next slice"),
    Member("translated", _i64, (CORES,), "1 = the engine may hold translated code of the core"),
    Member("translate_after", _i64, (1,), "instructions of a page before translation, 0 = none"),
    Member("page_count", _i64, (CORES, L1_SIZE // PAGE), "instructions before that, by page"),
    # devices with compiled access
    Member("mailbox", _u32, (4, 4, 4), "mailbox entries [writer][reader]"),
    Member("mailbox_read", _i64, (4, 4), "entries taken"),
    Member("mailbox_write", _i64, (4, 4), "entries put"),
    Member("pcbuf", _u32, (3, 16), "PCBuf entries of each TRISC"),
    Member("pcbuf_read", _i64, (3,), "entries taken"),
    Member("pcbuf_write", _i64, (3,), "entries put"),
    Member("stream", _u32, (64, 1024), "overlay stream registers"),
    Member("debug", _u32, (1024,), "tile control and debug registers"),
    Member("ethernet", _u32, (130,), "of an Ethernet tile, see devices/ethernet.py"),
    Member("niu_command", _u32, (2, 4, 12), "NIU request initiators [NoC][initiator][register]"),
    Member("niu_config", _u32, (2, 32), "NIU and router configuration, from offset 0x100"),
    Member("niu_counter", _u32, (2, 64), "NIU counters, from offset 0x200"),
    Member("niu_node", _u32, (2,), "NOC_NODE_ID"),
    Member("niu_endpoint", _u32, (2,), "NOC_ENDPOINT_ID"),
    Member("niu_linked", _i64, (2, 4), "open linked transaction [NoC]: 1 = open, HI, core, pc"),
    Member("niu_zeroed", _u32, (2,), "NIU_TRANS_COUNT_RTZ_SOURCE"),
    Member("noc_request", _i64, (NOC_REQUESTS, NOC_FIELDS), "requests under way, oldest first"),
    Member("noc_requests", _i64, (1,), "how many of them"),
    Member("noc_issued", _i64, (1,), "requests issued so far"),
    Member("noc_data", _u8, (NOC_DATA,), "data of the writes under way"),
    Member("noc_data_used", _i64, (1,), "bytes of it"),
    Member("noc_source", _i64, (NOC_REQUESTS,), "when each takes its source's bytes, 0 = it has"),
    Member("noc_source_next", _i64, (1,), "drawn times: the first of these cycles, 0 = none"),
    Member("noc_source_late", _i64, (2,), "drawn times: 1 + seed << 16 | tile, 0 = none; pc or -1"),
    Member("noc_arrived", _i64, (NOC_ARRIVED, 6), "what the NoC wrote last to L1, as a ring:"),
    Member("noc_arrivals", _i64, (1,), "so many times: address, bytes, tile, core, pc, round"),
    Member("inert", _u32, (32,), "inert registers, in the order of their addresses"),
    Member("inert_count", _i64, (32,), "accesses to each of them"),
    Member("sync_declared", _i64, (3,), "1 = RESOURCEDECL changed what Auto TTSync tracks"),
    Member("tdma_param", _u32, (4,), "TDMA-RISC: parameters of the next command"),
    Member("tdma_base", _u32, (4,), "TDMA-RISC: source base of brisc, trisc0-2"),
    # tables of the device bus: rows = windows by address, see devices/bus/entries.py
    Member("window_at", _u8, (WINDOW_PAGES,), "first window that ends after the page's start"),
    Member("window", _i64, (WINDOW_ROWS, 8), "low, high, order; widths and agents [load, store]"),
    Member("window_rule", _i64, (2, WINDOW_ROWS, CORES + 1), "0 or why [load, store][core, host]"),
    # scheduler
    Member("clock", _i64, (1,), "instructions of all turns so far, at least 1 per round"),
    Member("round", _i64, (1,), "rounds completed"),
    Member("agent", _i64, (1,), "whose turn: 0-4 cores, 5 coprocessor"),
    Member("turn_open", _i64, (1,), "1 = that turn has begun"),
    Member("turn_yield", _i64, (1,), "1 = the open core turn ends before the next instruction"),
    Member("turn_given", _i64, (1,), "instructions the open core turn was given"),
    Member("stored", _i64, (CORES,), "this turn: 0 no store, 1 since the last load, 2 before"),
    Member("poll_pc", _u32, (CORES,), "pc of the last device load"),
    Member("poll_count", _i64, (CORES,), "device loads from there with no store in between"),
    Member("poll_began", _i64, (CORES,), "1 = since `loop_pc` that count has begun again"),
    # loops without effect, see riscv/turn.py (never architectural)
    Member("count_passes", _i64, (1,), "1 = their passes are counted instead of executed"),
    Member("acted", _i64, (CORES,), "1 = an access of the slice did more than load a value"),
    Member("load_acted", _i64, (1,), "the same, of the last device load"),
    Member("loop_pc", _u32, (CORES,), "pc where a pass began"),
    Member("loop_regs", _u32, (CORES, 32), "registers there"),
    Member("loop_fuel", _i64, (CORES,), "fuel there, -1 = the slice is not looked at"),
    Member("loop_polls", _i64, (CORES, 2), "poll_pc and poll_count there"),
    Member("loop_front", _i64, (CORES,), "how far the threads had come"),
    Member("loop_length", _i64, (CORES,), "instructions of a pass, 0 = the turn is no such loop"),
    Member("loop_loads", _i64, (CORES,), "device loads that a pass adds to poll_count"),
    Member("loop_yields", _i64, (CORES,), "1 = device loads ended the turn"),
    Member("loop_wait", _i64, (CORES, 2), "turns until the next look, and how many they were"),
    Member("turn_used", _i64, (CORES,), "instructions the core retired in its last turn"),
    Member("round_progress", _i64, (1,), "what was retired in the last round"),
    Member("sweep_open", _i64, (1,), "1 = a sweep over the threads was stopped in the middle"),
    Member("sweep_thread", _i64, (1,), "thread whose turn it is in the sweep"),
    Member("sweep_count", _i64, (1,), "words executed in this sweep"),
    Member("sweep_total", _i64, (1,), "words executed since the first of these sweeps"),
    Member("sweep_due", _i64, (1,), "threads that may be able to execute a word, as a mask"),
    Member("sweep_idle", _i64, (1,), "threads without words and waits in these sweeps, as a mask"),
    Member("sweep_left", _i64, (1,), "words the thread may still execute in its turn"),
    Member("progress", _i64, (1,), "what was retired in this round"),
    Member("quantum", _i64, (1,), "instructions per core turn"),
    Member("until_count", _i64, (1,), "until conditions set"),
    Member("until_address", _i64, (16,), "L1 words compared after stores, words, rounds"),
    Member("until_value", _u32, (16,), "their values"),
    Member("l1_written", _i64, (1,), "1 = a Tensix word wrote to L1 since they were compared"),
    Member("limit", _i64, (1,), "clock at which to stop, -1 = never"),
    Member("livelock", _i64, (1,), "rounds without a Tensix word before a look, 0 = never"),
    Member("quiet", _i64, (1,), "rounds since the last Tensix word"),
    Member("quiet_next", _i64, (1,), "value of `quiet` at which to look"),
    Member("quiet_words", _i64, (1,), "words executed when `quiet` began to count"),
    # when compiled code returns, see tensix/rules.py (never architectural)
    Member("time_slice", _i64, (1,), "how long it runs, in processor ticks"),
    Member("look_every", _i64, (1,), "words between looks at the time"),
    Member("look_left", _i64, (1,), "words until the next look"),
    Member("leave_at", _i64, (1,), "processor ticks at which it returns"),
    # pointers of compiled code
    Member("host", _u64, (1,), "address of this record"),
    Member("table", _u64, (256,), "entry of each opcode, 0 = not compiled yet"),
    Member("second", _u64, (SECOND_SLOTS,), "entries of parts, see insn.py"),
    Member("noc_map", _u64, (1,), "the chip's table of coordinates, 0 = no chip (noc/record.py)"),
    Member("run_rounds", _u64, (1,), "entry that runs rounds of this tile"),
    Member("run_core", _u64, (1,), "entry that runs a core for a slice"),
    Member("run_tensix", _u64, (1,), "entry that lets the coprocessor run"),
    Member("run_thread", _u64, (1,), "entry that lets one thread run"),
    Member("bus_read", _u64, (1,), "entry that performs a core's device load"),
    Member("bus_write", _u64, (1,), "entry that performs a core's device store"),
    Member("window_entry", _u64, (2, WINDOW_ROWS), "entries of the windows [load, store]"),
    Member("sync_entry", _u64, (1,), "entry that asks whether Auto TTSync holds an access"),
    Member("port_access", _u64, (1,), "entry: the debug port's accesses as the core"),
    # where time goes, see tensix/compiled.py (never architectural)
    Member("profile_table", _u64, (262,), "wrapped entry of each opcode and part"),
    Member("profile_ticks", _i64, (262,), "processor ticks charged to it"),
    Member("profile_calls", _i64, (262,), "how often it was called"),
    Member("profile_since", _i64, (1,), "ticks when the present part began"),
    Member("profile_part", _i64, (1,), "the present part"),
)


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
    s.watch[3] = -1
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


def _member_as(member: str, dtype: Any) -> Any:
    """A function of the state that gives `member` as array of `dtype`."""
    if not JIT:
        return lambda s: getattr(s, member).view(dtype)
    assert DTYPE.fields is not None
    width = np.dtype(dtype).itemsize
    count, offset = DTYPE.fields[member][0].itemsize // width, OFFSET[member]

    def member_as(typing: Any, s: Any) -> Any:
        from numba import from_dtype, types
        from numba.core import cgutils
        from numba.np.arrayobj import make_array, populate_array

        element = from_dtype(np.dtype(dtype))
        array = types.Array(element, 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = context.get_data_type(element)
            view = make_array(array)(context, builder)
            populate_array(
                view,
                data=cgutils.get_record_member(builder, args[0], offset, kind),
                shape=[context.get_constant(types.intp, count)],
                strides=[context.get_constant(types.intp, width)],
                itemsize=context.get_constant(types.intp, width),
                meminfo=None,
            )
            return view._getvalue()

        return array(s), emit

    return intrinsic(member_as)


l1_halves: Any = _member_as("l1", np.uint16)  # uint16[0xC0000]
l1_words: Any = _member_as("l1", np.uint32)  # uint32[0x60000]
weights: Any = _member_as("unpack_weight", np.float32)  # float32[1024]


# Pages of L1 that a core has executed: a write of the coprocessor there drops translated code.
#
# A core's own stores are noticed by the engine; another core's code changes for it at a write to
# RISCV_IC_INVALIDATE, as in hardware.

_PAGES = L1_SIZE // PAGE


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
        if page < _PAGES:
            cores |= s.code_page[page]
    if cores:
        flush(s, cores)
