"""The order of a run: a compiled observer keeps happens-before of all agents, in this record.

It holds clocks of agents, last accesses of places, unordered pairs.

An agent is a core, the issue of a thread, the host (these are owners), a unit as one thread uses
it, the stores of a core to Config, or what lets requests to the NoC leave or arrive. A vector is a
row of clocks: first those of a tile's agents in the order in which units take time, then (from
PLAIN on) those of the plain order, in which everything is complete at once: of the owners of all
tiles and of requests. There an agent knows what its owner knows. The record lies beside that of the
tile (tensix/state.py), which nothing here changes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bhemu.jit.intrinsics import record_at
from bhemu.jit.record import Record, layout, members
from bhemu.memmap import L1_SIZE
from bhemu.tensix.compiled import OUTSIDE
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.state import CORES, NOC_FIELDS, NOC_REQUESTS, THREADS

# Agents
UNIT_NAMES = ("scalar", "unpack0", "unpack1", "pack", "matrix", "vector", "mover")
UNITS = len(UNIT_NAMES)
ISSUE = CORES
HOST = ISSUE + THREADS
OWNERS = HOST + 1
UNIT = OWNERS
STORES = UNIT + THREADS * UNITS
AGENTS = STORES + CORES
REQUEST, ROWS = AGENTS, AGENTS + 1  # of a request that accesses L1 now: what came before it
# Columns of the plain order: the owners of each tile that is observed (one, or those of a chip),
# sources of the writes of each tile by NoC, channels of requests.
TILES, SOURCES, CHANNELS = 64, 2, 96
COLUMNS = (OWNERS + SOURCES) * TILES + CHANNELS
# Columns of a vector. REACHED: how many words of a thread have reached a unit, how many stores of
# a core have left for Config: a unit works in the order in which words reach it.
REACHED = AGENTS
REACHED_STORES = REACHED + THREADS * UNITS
PLAIN = REACHED_STORES + CORES
VECTOR = PLAIN + COLUMNS

# Places: words of L1, halves of GPRs, rows of Dst, bits of Config, words of MOP templates, then
# bytes of those words of L1 that are accessed in parts.
L1_WORDS = L1_SIZE // 4
GPRS = L1_WORDS
DST = GPRS + 2 * 64 * THREADS
CONFIG = DST + 1024
TEMPLATES = CONFIG + 2 * 32 * CONFIG_WORDS
TEMPLATE = 9  # words
BYTES = TEMPLATES + TEMPLATE * THREADS
CELLS = BYTES + L1_SIZE
READERS = 4  # of a place that are remembered

# Columns of an event: an access, by whom, and what its owner (core or thread) had done before.
# VERSION: of its owner. WRITE: ADDS of an increment over the NoC. PREVIOUS: of a write, 1 + column
# and clock of who wrote there before, negative: of another tile. HOME: the tile whose agent it is.
# Of a request AGENT is PLAIN + its column, SENT is 1 + its number, THERE 1 at its other end; the
# rest is of its core when that sent it.
(
    AGENT, CLOCK, OWNER_CLOCK, WRITE, WAITED, PC, PUSHED, WORD, CORE, THREAD, TIME, PUSH_CLOCK,
    ACQUIRED, WAIT, WAIT_WORD, POLL, POLL_WORD, TAKEN, AGAIN, BEFORE, VERSION, HOME, SENT, THERE,
    PREVIOUS, KNOWN,
) = (*range(25), 26)  # fmt: skip
EVENT = KNOWN + OWNERS
ADDS = 2
EVENTS = 1 << 18
CACHED = 1 << 13
# Columns of a pair: both events, the place, bits
PLACE, BITS = 2 * EVENT, 2 * EVENT + 1
PAIR = BITS + 1
PAIRS = 64
# Bits: not even units that take no time order it; the second changes what is the first's thread's;
# which store to Config has none of the fields that the other sets; unless the word is a flag.
BY_SPEED, FOREIGN, FIRST_CLEARS, SECOND_CLEARS, IF_DATA = (1 << i for i in range(5))
BRANCHED = 4  # of `marks`

RELEASED = 1 << 12  # releases of an owner that are remembered
LOOKED = 64  # names that an owner has acquired
VERSIONS = 512  # of an owner's vector
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
KNOWN_VALUES = 1 << 12
HERE = KNOWN_VALUES  # row of value_known: what is before all that was sent here
PASSED, FIRST_ACCESSES = 1 << 12, 1 << 12
# Columns of a note (shadow.py). THREAD: -1 = the core itself; VALUE: a word, what was stored, 1 = a
# read; LOW, HIGH: bytes of L1, an address; BY: of steps that have set the Config words, as `set_by`
(
    N_WHAT, N_THREAD, N_VALUE, N_PC, N_CORE, N_TIME, N_LOW, N_HIGH, N_FORMAT, N_DATUMS,
    N_BY_FORMAT, N_BY_ADDRESS,
) = (*range(11), 16)  # fmt: skip
NOTE, NOTES = N_BY_ADDRESS + 6, 1 << 18
M_UNIT, M_FORMAT, M_DATUMS = range(3)  # of `moving`
# Columns of `stack`: the highest sp, the end of the core's data, where sp was below that
S_START, S_END, S_PC, S_SP, S_TIME = range(5)
# Columns of a request that was sent: its event, its row; its value. Of one that arrives: its event,
# bytes of L1, its value
S_ROW, S_VALUE = EVENT, EVENT + NOC_FIELDS
SENT_ROW, SENTS = S_VALUE + 1, NOC_REQUESTS  # columns, requests of a round
A_LOW, A_HIGH, A_VALUE = range(EVENT, EVENT + 3)

ALL_GPRS, BANK_WORDS, BANK_BITS = 64 * THREADS, 2 * CONFIG_WORDS, 32 * CONFIG_WORDS
LOOKS, ARRIVAL, KNOWN_ROWS = LOOK + 1, A_VALUE + 1, KNOWN_VALUES + 1
MEMBERS = members(Path(__file__).parents[2] / "data" / "order_record.txt", globals())
ORDER_DTYPE = layout(MEMBERS)
at: Callable[[Any], Any] = record_at(ORDER_DTYPE)


class OrderRecord(Record):
    """The record of one tile's observed run."""

    MEMBERS = MEMBERS
    DTYPE = ORDER_DTYPE


ADDRESS = OUTSIDE
"""The place in the tile's `profile_table` that holds the record's address: a part without entry."""
