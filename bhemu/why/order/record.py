"""The record of an observed run: clocks of agents, last accesses of places, unordered pairs.

An agent is a core, the issue of a thread, the host (these are owners), a unit as one thread uses
it, the stores of a core to Config, or the NoC reads or writes of a core. A vector is a row of
clocks: first those of all agents in the order in which units take time, then (from PLAIN on) those
of owners in the plain order, in which everything is complete at once; there an agent knows what its
owner knows. The record lies beside that of the tile (tensix/state.py), which nothing here changes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.jit.intrinsics import record_at
from bhemu.jit.record import Member, Record, layout
from bhemu.memmap import L1_SIZE
from bhemu.tensix.compiled import OUTSIDE
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.state import CORES, NOC_FIELDS, NOC_REQUESTS, THREADS

_u8, _i16, _i32, _i64 = np.uint8, np.int16, np.int32, np.int64
_u32, _u64, _u16 = np.uint32, np.uint64, np.uint16

# Agents
UNIT_NAMES = ("scalar", "unpack0", "unpack1", "pack", "matrix", "vector", "mover")
UNITS = len(UNIT_NAMES)
ISSUE = CORES
HOST = ISSUE + THREADS
OWNERS = HOST + 1
UNIT = OWNERS
STORES = UNIT + THREADS * UNITS
NOC = STORES + CORES  # reads, then writes of each core over the NoC
AGENTS = NOC + 2 * CORES
# Tiles of a chip that are observed together. What they know of each other has columns of its own:
# cores and threads of each tile, sources of the writes of each tile by NoC, channels of requests.
TILES, SHARED, SOURCES, CHANNELS = 64, CORES + THREADS, 2, 96
FAR = (SHARED + SOURCES) * TILES + CHANNELS
# Columns of a vector. REACHED: how many words of a thread have reached a unit, how many stores of
# a core have left for Config: a unit works in the order in which words reach it.
REACHED = AGENTS
REACHED_STORES = REACHED + THREADS * UNITS
PLAIN = REACHED_STORES + CORES
OTHERS = PLAIN + OWNERS  # of other tiles
VECTOR = OTHERS + FAR

# Places: words of L1, halves of GPRs, rows of Dst, bits of Config, then bytes of those words of L1
# that are accessed in parts.
L1_WORDS = L1_SIZE // 4
GPRS = L1_WORDS
DST = GPRS + 2 * 64 * THREADS
CONFIG = DST + 1024
BYTES = CONFIG + 2 * 32 * CONFIG_WORDS
CELLS = BYTES + L1_SIZE
READERS = 4  # of a place that are remembered

# Columns of an event: an access, by whom, and what its owner (core or thread) had done before.
# VERSION: of far_known. PREVIOUS: of a write, 1 + column and clock of who wrote there before, 0 =
# another tile.
(
    AGENT, CLOCK, OWNER_CLOCK, WRITE, WAITED, PC, PUSHED, WORD, CORE, THREAD, TIME, PUSH_CLOCK,
    ACQUIRED, WAIT, WAIT_WORD, POLL, POLL_WORD, TAKEN, AGAIN, BEFORE, VERSION, PREVIOUS, KNOWN,
) = (*range(22), 23)  # fmt: skip
EVENT = KNOWN + OWNERS
EVENTS = 1 << 18
CACHED = 1 << 13
# Columns of a pair: both events, the place, bits
PLACE, BITS = 2 * EVENT, 2 * EVENT + 1
PAIR = BITS + 1
PAIRS = 64
# Bits: not even units that take no time order it; the second changes what is the first's thread's;
# which store to Config has none of the fields that the other sets.
BY_SPEED, FOREIGN, FIRST_CLEARS, SECOND_CLEARS = (1 << i for i in range(4))

RELEASED = 1 << 12  # releases of an owner that are remembered
LOOKED = 64  # names that an owner has acquired
VERSIONS = 512  # of a core's vector
PUSHES, POSTS, STORED = 64, 32, 64
NAMES = 1 << 10  # synchronizing objects by name
SLOTS, VALUES = 1024, 64  # polled words, values of each of them
LOG = 1 << 16  # stores of cores to L1
LOOK = 12  # instructions after a load until its value decides a branch
LISTS = 64  # sets of Config bits that words read
SITES = 1 << 10  # loads of a core, by pc
TEXTS = 1 << 14  # distinct words
RANGES = 64
KEPT_ROWS = 48
MARGIN = 1 << 12  # events that a step may make
FAR_VERSIONS, FAR_READERS, FAR_EVENTS, KNOWN_VALUES = 64, 3, 1 << 16, 1 << 12
HERE = KNOWN_VALUES  # row of value_known: what is before all that was sent here
PASSED, FIRST_ACCESSES = 1 << 12, 1 << 12
# Columns of a note (notes.py). THREAD: -1 = the core itself; VALUE: a word, what was stored, 1 = a
# read; LOW, HIGH: bytes of L1, an address; BY: of steps that have set the Config words, as `set_by`
(
    N_WHAT, N_THREAD, N_VALUE, N_PC, N_CORE, N_TIME, N_LOW, N_HIGH, N_FORMAT, N_DATUMS,
    N_BY_FORMAT, N_BY_ADDRESS,
) = (*range(11), 16)  # fmt: skip
NOTE, NOTES = N_BY_ADDRESS + 6, 1 << 18
M_UNIT, M_FORMAT, M_DATUMS = range(3)  # of `moving`
# Columns of `stack`: the highest sp, the end of the core's data, where sp was below that
S_START, S_END, S_PC, S_SP, S_TIME = range(5)
# Columns of a request that was sent: those of its row, then
SENT_CORE, SENT_CLOCK, SENT_PC, SENT_WORD, SENT_TIME, SENT_VALUE = range(NOC_FIELDS, NOC_FIELDS + 6)
SENT = NOC_FIELDS + 6
# Columns of an access of a request: the column of its agent, its clock, the tile whose core has
# sent it, bytes of L1, number of the request, where it was sent, the clock; as PREVIOUS
(
    F_COLUMN, F_CLOCK, F_HOME, F_WRITE, F_LOW, F_HIGH, F_NUMBER, F_PC, F_TIME, F_PREVIOUS,
) = range(10)  # fmt: skip
FAR_EVENT = F_PREVIOUS + 2
A_VALUE = F_PREVIOUS  # of `arrival`
# Columns of a pair of two tiles: address, accesses of requests (0: the core's or unit's, EVENT)
FP_PLACE, FP_FIRST, FP_SECOND, FP_EVENT = range(4)
FAR_PAIR = FP_EVENT + EVENT

MEMBERS = (
    Member("run_core", _u64, (1,), "the engine's entry"),
    Member("ask", _u64, (1,), "what Python answers: describe.py"),
    Member("full", _i64, (1,), "1 = events did not suffice, nothing is observed any more"),
    # clocks
    Member("clocks", _i64, (AGENTS, VECTOR), "what each agent knows of the others"),
    Member("epoch", _i64, (AGENTS,), "changes when others may have seen the agent's clock"),
    Member("plain_epoch", _i64, (OWNERS,), "the same"),
    Member("version", _i64, (CORES, VERSIONS, VECTOR), "vectors of a core, as a ring"),
    Member("version_clock", _i64, (CORES, VERSIONS), "from which clock of it each one holds"),
    Member("versions", _i64, (CORES,), "how many"),
    Member("done_by", _i64, (CORES, AGENTS), "clock of the last word that a core has pushed"),
    Member("push", _i64, (THREADS, PUSHES, 3), "by number of the word: core, clock, stores done"),
    Member("push_from", _i64, (THREADS,), "the first that was seen"),
    Member("pushed", _i64, (THREADS,), "the one that the thread executes"),
    Member("push_clock", _i64, (THREADS,), "of the core, when it pushed that"),
    Member("stored_at", _i64, (CORES, STORED), "clock of the core at its stores to Config"),
    Member("stored_done", _i64, (CORES,), "how many of them have taken place for certain"),
    Member("wait", _i64, (THREADS, 6), "blocks, conditions, semaphores, their condition, pc, word"),
    Member("object", _i64, (NAMES, VECTOR), "what is before whoever acquires a name"),
    Member("object_name", _i64, (NAMES,), "the name, 0 = free"),
    Member("sem_base", _i64, (8, VECTOR), "of the SEMINIT"),
    Member("sem_start", _i64, (8, 2), "its value, its maximum"),
    Member("sem_init", _i64, (8, 6), "the SEMINIT, as `step`"),
    Member("sem_count", _i64, (8, 2), "posts, gets since"),
    Member("sem_clock", _i64, (8, 2, POSTS, VECTOR), "what the n-th post, get comes after"),
    Member("waited", _i64, (OWNERS,), "1 = has acquired something since its last release"),
    Member("acquired", _i64, (OWNERS,), "its clock when it did"),
    Member("taken", _i64, (OWNERS,), "1 + semaphore waited for last, 8 more: it needed no post"),
    Member("dst_word", _i64, (OWNERS, 2), "pc of the last word at Dst; of that before the wait"),
    Member("release", _i64, (OWNERS, RELEASED, 7), "of an owner: its clock, step, name, as a ring"),
    Member("releases", _i64, (OWNERS,), "how many"),
    Member("looked", _i64, (OWNERS, LOOKED), "names that an owner has acquired"),
    Member("mop", _i64, (CORES, 3), "the last MOP of a core: pc, word, what it knew of its thread"),
    Member("mop_held", _i64, (CORES, 9), "1 + what it has stored to the template"),
    Member("mop_early", _i64, (CORES, 4), "a store to the template that a MOP may use: see cores"),
    Member("own", _u8, (L1_WORDS,), "a bit for each core of whose code the word is"),
    Member("stack", _i64, (CORES, 5), "from S_START on"),
    Member("last_pc", _i64, (CORES,), "of the last instruction of a core, -1: none"),
    Member("stale", _i64, (CORES,), "loads of old bytes from its data cache so far"),
    Member("core_reset", _i64, (CORES,), "1 = the core is in reset"),
    Member("valid", _i64, (2, 2), "src_valid as it was"),
    # other tiles, see requests.py
    Member("tiles", _i64, (1,), "observed together, 0 = this one alone"),
    Member("number", _i64, (1,), "of this tile among them"),
    Member("far", _i64, (1,), "columns of other tiles that are in use"),
    Member("far_version", _i64, (OWNERS,), "how often an owner has learned of another tile"),
    Member("far_known", _i64, (OWNERS, FAR_VERSIONS, FAR), "what it knew then, as a ring"),
    Member("sent", _i64, (NOC_REQUESTS, SENT), "requests of the present round"),
    Member("sent_known", _i64, (NOC_REQUESTS, FAR), "what their cores knew"),
    Member("sents", _i64, (1,), "how many"),
    Member("sends", _i64, (1,), "how many of all rounds"),
    Member("left", _i64, (2, 17, FAR), "by NoC and tag, then of all: what has left was read"),
    Member("answer", _i64, (2, 19, FAR), "by NoC and kind, then tag: what has been answered"),
    Member("tagged", _i64, (CORES, 2, 2, 16), "by NoC, writes, id: the clock of the last request"),
    Member("counter_seen", _i64, (CORES, 2, 64), "clock of a core at its last look at a counter"),
    Member("arrival", _i64, (A_VALUE + 1,), "the access of a request that arrives, its value"),
    Member("arrived", _i64, (FAR,), "what is before it"),
    Member("far_mark", _u8, (L1_WORDS,), "1 = a request has accessed the word, 2 = it is a flag"),
    Member("far_writer", _i32, (L1_WORDS,), "request that wrote it last"),
    Member("far_reader", _i32, (L1_WORDS, FAR_READERS), "requests that read it last"),
    Member("far_event", _i64, (FAR_EVENTS, FAR_EVENT), "accesses of requests"),
    Member("far_events", _i64, (1,), "how many, the first is none"),
    Member("far_pair", _i64, (PAIRS, FAR_PAIR), "accesses of two tiles that nothing orders"),
    Member("far_pair_known", _i64, (PAIRS, FAR), "what the access of a core or unit comes after"),
    Member("far_pairs", _i64, (1,), "how many"),
    Member("value_known", _i64, (KNOWN_VALUES + 1, FAR), "what is before values, as a ring"),
    Member("values_known", _i64, (1,), "how many"),
    Member("passed", _i64, (PASSED, 8), "looks that let a core go on, see requests.py"),
    Member("passes", _i64, (1,), "how many"),
    Member("first_access", _i64, (FIRST_ACCESSES, 3), "owner + 1, pc, clock of its first one"),
    # polled words
    Member("first", _u32, (L1_WORDS,), "L1 when the run began"),
    Member("slot", _i16, (L1_WORDS,), "1 + number of a word that is polled, 0 = it is not"),
    Member("marks", _u8, (L1_WORDS,), "1 = a core has stored there, 2 = read as one of two"),
    Member("polled_gpr", _u8, (64 * THREADS,), "1 = a core polls it"),
    Member("slots", _i64, (1,), "polled words"),
    Member("slot_word", _i64, (SLOTS,), "which"),
    Member("value", _i64, (SLOTS, VALUES, 5), "what was stored, as a ring, see polls.py"),
    Member("values", _i64, (SLOTS,), "how many"),
    Member("log", _i64, (LOG, 6), "stores to L1: word, value, core, clock, pc, time"),
    Member("logged", _i64, (1,), "how many"),
    Member("site", _u8, (L1_WORDS,), "by pc of a load, see polls.py"),
    Member("site_last", _i64, (CORES, SITES, 3), "pc, address, how often from there"),
    Member("look", _i64, (CORES, 6), "a load whose value is followed, see polls.py"),
    Member("look_regs", _u32, (CORES, 32), "registers before it"),
    Member("kept_regs", _u32, (32,), "scratch: registers after it"),
    Member("look_step", _i64, (CORES, LOOK + 1, 2), "pc and word of each instruction"),
    Member("poll", _i64, (CORES, 2), "the last poll: pc, word of L1"),
    # places
    Member("writer", _i32, (CELLS,), "event of the last write"),
    Member("reader", _i32, (CELLS, READERS), "events of the last reads"),
    Member("split", _u8, (L1_WORDS,), "1 = the bytes of the word have places of their own"),
    Member("memo", _i64, (2,), "events that were compared with the present access"),
    Member("event", _i64, (EVENTS, EVENT), "accesses"),
    Member("events", _i64, (1,), "how many, the first is none"),
    Member("cached", _i64, (CACHED, 6), "events that stand for others like them"),
    Member("moved", _i32, (EVENTS,), "scratch: numbers of events that are kept"),
    Member("pair", _i64, (PAIRS, PAIR), "what nothing orders"),
    Member("pairs", _i64, (1,), "how many"),
    Member("at_issue", _u8, (2 * CONFIG_WORDS,), "1 = the word is stepped after UNPACRs"),
    Member("config_epoch", _i64, (1,), "writes to Config so far"),
    Member("list_bits", _u32, (LISTS, 2 * CONFIG_WORDS), "bits of Config that words read"),
    Member("list_event", _i32, (LISTS, AGENTS), "last read of all of them by an agent"),
    Member("list_seen", _i64, (LISTS, AGENTS), "config_epoch then, 0 = never"),
    Member("lists", _i64, (1,), "how many"),
    Member("bit_thread", np.int8, (32 * CONFIG_WORDS,), "whose unit alone reads a bit, -1: none"),
    Member("config_event", _i32, (2 * CONFIG_WORDS,), "last store of a core to the word"),
    Member("config_value", _i64, (2 * CONFIG_WORDS,), "what it stored"),
    # words
    Member("of_config", _u8, (256,), "1 = a word of the configuration unit, by opcode"),
    Member("key_mask", _i64, (256,), "bits of a word that decide what it touches"),
    Member("text_word", _i64, (TEXTS,), "1 + word that is described, 0 = free"),
    Member("text", _i64, (TEXTS, 25), "see describe.py"),
    Member("text_list", _i16, (TEXTS, 2, 8, 2), "[bank][context]: 1 + list read at issue, later"),
    Member("texts", _i64, (1,), "how many"),
    Member("range", _i64, (RANGES, 2), "L1 that the present word reads, then writes"),
    Member("ranges", _i64, (2,), "how many of each"),
    Member("dst_row", _i64, (KEPT_ROWS,), "rows of Dst that it may touch"),
    Member("dst_rows", _i64, (2,), "how many, -1 = any; of how many it reads"),
    Member("macro_row", _i64, (64,), "rows that macros have yet to store"),
    Member("macro_dst", _u16, (64, 16), "what they hold"),
    Member("macro_valid", _i64, (64,), "and whether that counts"),
    Member("macro_rows", _i64, (1,), "how many"),
    Member("macro_step", _i64, (6,), "the last SFPLOADMACRO, as `step`"),
    Member("old_gpr", _u32, (3, 64), "before the word"),
    Member("old_cfg", _u32, (2, CONFIG_WORDS), "the same"),
    Member("old_dst", _u16, (1024, 16), "the same, of the rows that it may touch"),
    Member("old_valid", _i64, (1024,), "the same"),
    Member("old_l1", _u8, (16,), "the 16 bytes of L1 that it may write to"),
    Member("step", _i64, (6,), "the present access: pc, pushed, word, core, thread, time"),
    Member("set_by", _i64, (2 * CONFIG_WORDS, 6), "a `step`; of a WRCFG who wrote its GPR"),
    Member("moving", _i64, (3,), "unpacker or 2, format, -1: none; datums, 0: it tilizes"),
    Member("note", _i64, (NOTES, NOTE), "what the tile does, see notes.py"),
    Member("notes", _i64, (1,), "how many"),
)
ORDER_DTYPE = layout(MEMBERS)
at: Callable[[Any], Any] = record_at(ORDER_DTYPE)


class OrderRecord(Record):
    """The record of one tile's observed run."""

    MEMBERS = MEMBERS
    DTYPE = ORDER_DTYPE


ADDRESS = OUTSIDE
"""The place in the tile's `profile_table` that holds the record's address: a part without entry."""
