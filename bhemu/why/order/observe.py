"""The observer of a tile: it hooks the tile before a run, answers what compiled code asks (what a
word touches, what follows a load), and gives unordered pairs after it."""

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.jit.build import function, load
from bhemu.jit.intrinsics import callback
from bhemu.jit.record import plain
from bhemu.machine.core import Core
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import elf
from bhemu.riscv import formats
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Load, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.riscv.isa.rv32i import TTINSN
from bhemu.tensix import compiled, spaces, thread
from bhemu.tensix.config import CONFIG_WORDS, SHARED, bits_read
from bhemu.tensix.insn import decode, instructions
from bhemu.tensix.issue import AT_ISSUE
from bhemu.tensix.spaces import fields_named
from bhemu.tensix.state import ENTRY, RESET, STEP
from bhemu.tensix.units.unpack.unpacr import UNPACR
from bhemu.why import order as r
from bhemu.why.order import LISTS, UNIT_NAMES, OrderRecord, clocks, cores, polls, shadow, words

_WORD = function(ENTRY, words.observed_word)
_CORE = function(STEP, cores.observed_core)
_ENDED = function(STEP, cores.ended)
_ARRIVES = function(STEP, cores.arrives)
_ASKED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 4)
_STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
owner_of = plain(clocks.owner)
Range = tuple[int, int]  # first byte, byte after the last
ENTRIES = (_WORD, _CORE, _ENDED, _ARRIVES)


def kind(place: int) -> str:
    """ "L1", "GPR", "Dst", "Config" or "MOP template"."""
    return ("L1", "GPR", "Dst", "Config", "MOP template")[plain(shadow.kind)(place)]


def l1_address(place: int) -> int | None:
    """The address of a place in L1, None elsewhere."""
    if kind(place) != "L1":
        return None
    return 4 * place if place < r.GPRS else place - r.BYTES


def name(place: int) -> str:
    """A place in words."""
    if (address := l1_address(place)) is not None:
        return f"L1 {address:#x}"
    if place < r.DST:
        thread, index = divmod((place - r.GPRS) // 2, 64)
        return f"GPR {index} of T{thread}"
    if place < r.CONFIG:
        return f"Dst row {place - r.DST}"
    if place >= r.TEMPLATES:
        thread, index = divmod(place - r.TEMPLATES, r.TEMPLATE)
        return f"word {index} of the MOP template of T{thread}"
    bank, at = divmod(place - r.CONFIG, 32 * CONFIG_WORDS)
    word, bit = divmod(at, 32)
    fields = fields_named("CFG", ("*",)).items()
    own = (one for one, f in fields if f.word == word and f.mask << f.shift >> bit & 1)
    title = next(own, f"bit {bit} of word {word}")
    return f"{title} (Config word {word} of bank {bank})"


def is_own(tile: Tile, core: int, pc: int) -> bool:
    """Whether an address lies in an ELF of a core."""
    return any(image.lookup(pc) is not None for image in tile.core[CORE_NAMES[core]].images)


def data_end(core: Core) -> int:
    """Where the data of a core's ELFs in its own memory end, as their segments say."""
    held = (one for image in core.images for one in elf.segments(image.data, image.path))
    own = range(LOCAL_BASE, LOCAL_BASE + LOCAL_SIZES[core.index])
    ends = [o.vaddr + o.memsz for o in held if o.kind == "PT_LOAD" and o.vaddr in own]
    return max([LOCAL_BASE, *ends])


class Observer:
    """Follows a tile (engine "compiled") from now on; keep it as long as the tile runs.

    left: by core the last instruction within its ELFs, the clock after it, and the next address.
    """

    def __init__(self, tile: Tile) -> None:
        assert tile.engine == "compiled"
        self.tile, self.record = tile, OrderRecord()
        self.left: dict[int, tuple[int, int, int]] = {}
        self._failure: BaseException | None = None
        o, s = self.record, tile.state
        self.template = s.mop_cfg.copy()  # of the MOPs of each thread, when the run began
        o.bit_thread[:] = -1
        for bit, t in threads().items():
            o.bit_thread[bit] = t
        o.key_mask[:] = 0xFF000000
        for cls in instructions().values():
            o.key_mask[cls.opcode] |= sum(f.mask for f in cls.fields if f.name not in _DATA)
        for core in (tile.core[name] for name in CORE_NAMES):
            o.stack[core.index, r.S_END] = data_end(core) if core.images else 0
        s.order = weakref.ref(self)
        o.ask[0] = callback(_ASKED, "order", "_answer")
        o.first[:] = s.l1.view("<u4")
        o.core_reset[:] = s.core_state == RESET
        o.valid[:] = s.src_valid
        o.mop_cfg[:] = s.mop_cfg
        o.push_from[:] = s.fifo_write
        o.pushed[:] = o.look[:, 0] = o.cached[:, 0] = o.mop[:, 0] = -1
        o.event[0, r.AGENT] = -1
        o.last_pc[:] = -1
        o.events[0] = 1
        o.config_epoch[0] = 1
        o.mine[0], o.columns[0] = r.PLAIN, r.OWNERS
        s.profile_table[r.ADDRESS] = o.base
        s.profile_table[: len(s.table)] = s.table
        tile.backend.table.entries = s.profile_table  # also those that are compiled from now on
        s.table[:] = load(_WORD).address
        o.run_core[0] = s.run_core[0]
        s.run_core[0] = load(_CORE).address
        s.count_passes[0] = 0  # a pass that is only counted would not be seen

    def _answer(self, base: int, what: int, a: int, b: int, c: int) -> int:
        """Answer a question of compiled code."""
        try:
            o = self.record
            if what == words.TEXT:
                o.text[a], o.text_list[a] = _text(b), 0
            elif what == words.LIST:
                lists(o, a, b, c)
            elif what == words.SITE:
                first = max(a - REACH, 0)
                o.site[a >> 2] = _site(self.tile.state.l1[first : a + REACH].tobytes(), a - first)
            else:
                self._goes_on(a, b, c)
        except BaseException as problem:  # must not cross the compiled frames
            self._failure, self.record.full[0] = problem, 1
            return compiled.FAILED
        return 0

    def _goes_on(self, core: int, last: int, pc: int) -> None:
        """A core goes on at a new address: mark its function, or note that the core has left."""
        own, bit = self.record.own, 1 << core
        low, high = pc, pc + 4
        if is_own(self.tile, core, pc):
            _, low, high = self.tile.core[CORE_NAMES[core]].function(pc)
        elif is_own(self.tile, core, last):
            self.left.setdefault(core, (last, now(self.tile.state), pc))
        own[min(low, pc) >> 2 : max(high, pc + 4) + 3 >> 2] |= bit

    @property
    def full(self) -> bool:
        """Whether the observer gave up before the end."""
        return bool(self.record.full[0])

    def ended(self, until: Sequence[int], outputs: Sequence[Range]) -> None:
        """The host reads the words that end the program, and then its outputs."""
        o = self.record
        ranges = [*((at, at + 4) for at in until), *outputs][: r.RANGES]
        for k, found in enumerate(ranges):
            o.range[k] = found
        o.ranges[0] = len(until)
        _STEP(load(_ENDED).address)(self.tile.state.base, len(ranges) - len(until))

    def arrives(self, does: int) -> None:
        """The request in `arrival` of the record reaches the tile; does: see cores.py."""
        _STEP(load(_ARRIVES).address)(self.tile.state.base, does)

    def rows(self) -> list[tuple[int, list[int]]]:
        """The unordered pairs of the record, with their numbers there."""
        if self._failure is not None:
            raise self._failure
        o = self.record
        found: list[list[int]] = o.pair[: int(o.pairs[0])].tolist()
        return [(n, row) for n, row in enumerate(found) if not self._is_polled(row)]

    def _is_polled(self, row: list[int]) -> bool:
        """Whether cores or threads of a tile synchronize by the place of a pair."""
        o, place = self.record, row[r.PLACE]
        if row[r.HOME] != row[r.EVENT + r.HOME]:
            return False
        if (address := l1_address(place)) is not None:
            return bool(o.slot[address >> 2] or o.marks[address >> 2] & polls.COUNTER)
        return kind(place) == "GPR" and bool(o.polled_gpr[(place - r.GPRS) // 2])


# What a word touches: the rows of `text`, and the lists of Config bits.

_KINDS = {
    "STALLWAIT": words.WAITS, "SEMWAIT": words.WAITS, "STREAMWAIT": words.WAITS,
    "SEMINIT": words.SEMINIT, "SEMPOST": words.SEMPOST, "SEMGET": words.SEMGET,
    "ATGETM": words.ATGETM, "ATRELM": words.ATRELM, "STOREREG": words.STOREREG,
    "SFPLOADMACRO": words.MACRO, "WRCFG": words.WRCFG,
}  # fmt: skip
_UNKNOWN = -2  # AGENT_UNIT of a word that no opcode knows
_BANKS = {"unpack": 1, "matrix": 2}
# Columns that are a field of the word: the first that it has
_FIELDS = {
    words.BLOCKS: ("stall_res",), words.SEMAPHORES: ("sem_sel",),
    words.SEM_CONDITION: ("wait_sem_cond",), words.MOST: ("max_value",),
    words.VALUE: ("init_value", "mutex_index", "reg_addr"),
    words.DATA_GPR: ("tdma_data_reg_index",), words.DST_FIELD: ("dst", "dest_reg_addr"),
    words.MODE: ("instr_mod0",), words.ADDRESS_GPR: ("addr_reg_index",),
    words.OFFSET_HALF: ("offset_half_reg",),
}  # fmt: skip
_DATA = "payload_sig_sel", "payload_sig_sel_size"  # fields that say no place


def unit_of(word: int) -> str | None:
    """The unit that executes a word some time after its issue; None: it is complete at once."""
    cls = decode(word)
    if cls is None:
        return None
    if cls.unit == "unpack":
        return f"unpack{cls.operands(word).get('unpack_block_selection', 0)}"
    return cls.unit if cls.unit in UNIT_NAMES else None


@lru_cache(1 << 14)
def _text(word: int) -> npt.NDArray[np.int64]:
    """The row of `text` that describes a word."""
    found = np.zeros(words.COLUMNS, np.int64)
    cls = decode(word)
    if cls is None:
        found[words.AGENT_UNIT] = _UNKNOWN
        return found
    values, unit = cls.operands(word), unit_of(word)
    found[words.AGENT_UNIT] = -1 if unit is None else UNIT_NAMES.index(unit)
    found[words.BANKS] = _BANKS.get(cls.unit, 0)
    found[words.STALL] = cls.stall_mask
    found[words.KIND] = _KINDS.get(cls.name, 0)
    for column, names in _FIELDS.items():
        found[column] = next((values[name] for name in names if name in values), 0)
    found[words.BLOCKS] = found[words.BLOCKS] or thread.DEFAULT_BLOCKS
    if "wait_res" in values:
        found[words.CONDITIONS] = values["wait_res"] or thread.DEFAULT_CONDITIONS
    gprs = np.array(sum(1 << n for n in cls.gives_gprs(values)), np.uint64)
    found[words.GPR_READ] = gprs.astype(np.int64)
    found[words.GPR_WRITE] = cls.writes.may(spaces.GPR)
    found[words.CONFIG_WRITE] = cls.writes.may(spaces.CFG)
    found[words.MOVES] = {"unpack": words.UNPACKS, "pack": words.PACKS}.get(cls.formats, 0)
    found[words.CONFIG_READ] = cls.formats in FOLLOWED
    # The rows of Dst that it reads or fills: some that a field gives, or any; of an unpacker
    # unpack.modes says whether to Dst.
    vector, count = cls.unit == "vector", cls.dst_rows_of(values)
    written = [one for one in cls.writes.of(values) if one.space == spaces.DST]
    if count and cls.unit != "unpack":
        found[words.DST_COUNT] = count
        found[words.DST_HOW] = words.VECTOR_ROWS if vector else words.MATRIX_ROWS
    if written and vector and "dest_reg_addr" in values:  # as loadstore has it
        found[words.DST_COUNT], found[words.DST_HOW] = 4, words.STORED_ROWS
    elif any(not one.place for one in written) and not (count and vector) and cls.unit != "unpack":
        found[words.DST_HOW] |= words.ANY_ROW
    # The L1 that a word of the scalar unit or the mover touches.
    stores = cls.stores()
    if stores == "atomic":
        found[words.L1_WRITE], found[words.IS_ATOMIC] = words.ATOMIC_LINE, 1
    elif stores and cls.unit == "mover":
        found[words.L1_WRITE] = words.MOVER
    elif stores and any(one.space == spaces.L1 for one in cls.writes.of(values)):
        found[words.L1_WRITE] = words.INDIRECT
    if cls.writes.may(spaces.GPR) and not cls.writes.may(spaces.L1):
        for one in cls.reads.of(values):
            if one.space == spaces.L1 and one.place and not one.awaited:
                found[words.L1_READ] = spaces.value(one.length, values)
    return found


def lists(o: OrderRecord, row: int, bank: int, context: int) -> None:
    """Describe the bits of Config that a word reads at issue and later, in a bank and context."""
    word = int(o.text_word[row]) - 1
    for later, bits in enumerate(_bits(word, bank, context)):
        count = int(o.lists[0])
        same = np.flatnonzero((o.list_bits[:count] == bits).all(axis=1))
        number = int(same[0]) if same.size else min(count, LISTS - 1)  # too many share the last one
        o.list_bits[number] |= bits
        o.lists[0] = max(count, number + 1)
        o.text_list[row, bank, context, later] = number + 1


@lru_cache(1 << 10)
def _bits(word: int, bank: int, context: int) -> npt.NDArray[np.uint32]:
    """[at issue, later][word of both banks]: the bits that a word reads."""
    found = np.zeros((2, 2, CONFIG_WORDS), np.uint32)
    early = AT_ISSUE.get(instructions()[word >> 24].unit, {})
    for bit in read_by(word, context):
        at = bit // 32
        later = int(early.get(at, 0) >> bit % 32 & 1 == 0)
        found[later, 0 if at >= SHARED else bank, at] |= np.uint32(1 << bit % 32)
    return found.reshape(2, -1)


@lru_cache(1 << 14)
def _site(code: bytes, at: int) -> int:
    """What the code after a load does with the loaded value."""
    l1, kind = np.frombuffer(code, np.uint8), polls.KNOWN
    kind |= polls.POLLS if is_polled(l1, at) else 0
    kind |= polls.ONE_OF_TWO if is_one_of_two(l1, at) else 0
    return kind | (polls.SPINS if spin(l1, at) is not None else 0)


FOLLOWED = ("unpack", "pack", "src")
"""Kinds of words whose reads of Config are followed (`formats` of their classes). Kernels set the
modes of ZEROACC and of the vector unit once, at their start, and nothing orders that."""


@lru_cache(4096)
def read_by(word: int, context: int) -> tuple[int, ...]:
    """The bits of a Config bank that a word reads, in order; context: of an unpacker."""
    cls = instructions()[word >> 24]
    read = bits_read(cls.reads, cls.operands(word), context)
    bits = np.unpackbits(read.view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(bits).tolist())


@cache
def threads() -> dict[int, int]:
    """By bit of Config: the only thread whose unit reads it, 0 (unpackers) or 2 (packer)."""
    read: dict[int, set[int]] = {}
    for cls in instructions().values():
        thread = {"unpack": 0, "pack": 2}.get(cls.unit, 1)
        for unpacker, context in product((0, 1), range(8)) if cls.formats else ():
            word = cls.opcode << 24 | unpacker << UNPACR.unpack_block_selection.lo
            for bit in read_by(word, context):
                read.setdefault(bit, set()).add(thread)
    for field in fields_named("CFG", ("ALU_*",)).values():
        for bit in range(field.mask.bit_length()):
            read.setdefault(32 * field.word + field.shift + bit, set()).add(1)
    return {bit: next(iter(by)) for bit, by in read.items() if len(by) == 1 and 1 not in by}


# What the code around a load does with its value.

Memory = npt.NDArray[np.uint8]
_LOOK, _CLOSE = 8, 4  # instructions within which a polled word is compared, after another one
REACH = 8 * _LOOK
"""Bytes of code before and after a load that are looked at."""
_LEAVES = TTINSN | Store | Jump | IndirectJump
_ACTS = _LEAVES | formats.Atomic | formats.Csr | formats.NotModelled
_NO_REGISTER = -1


def _code(l1: Memory, first: int, end: int) -> Iterator[tuple[Any, int, list[int], int]]:
    """Class, word, registers read, register written of each instruction between two addresses."""
    for word in l1[first:end].view(np.uint32).tolist():
        cls: Any = decode_riscv(word)
        text = getattr(cls, "text", None) or ""
        read = [getattr(cls, name).get(word) for name in ("rs1", "rs2") if name in text]
        yield cls, word, read, cls.rd.get(word) if "rd" in text else _NO_REGISTER


def is_polled(l1: Memory, pc: int) -> bool:
    """Whether the load at `pc` polls a word: a branch uses the loaded value first.

    Or a value that is computed from it decides a branch back to the load, and the loop only waits.
    """
    return comparison(l1, pc) is not None or spin(l1, pc) is not None or _looks_first(l1, pc)


def _looks_first(l1: Memory, pc: int) -> bool:
    """Whether the load at `pc` is the first look of a loop whose own load stands after it.

    So compilers write `while`: a look that may skip the loop, then the loop with one at its end.
    """
    (_, load, _, rd), *code = _code(l1, pc, pc + 4 * _LOOK)
    base = load >> 15 & 31
    for at, (cls, word, _, made) in enumerate(code, 1):
        if word == load:
            return rd != base and spin(l1, pc + 4 * at) is not None
        if cls is None or issubclass(cls, _ACTS) or (made == base and base):
            return False
    return False


def spin(l1: Memory, pc: int) -> tuple[int, int] | None:
    """First and last pc of the loop in which a load waits for its word; None if there is none.

    Such a loop only loads, computes and branches, and the load reads one place.
    """
    (_, load, _, _), *code = _code(l1, pc, pc + 4 * _LOOK)
    base, made = load >> 15 & 31, {load >> 7 & 31} - {0}  # x0 keeps nothing

    def is_quiet(cls: Any, rd: int) -> bool:  # no effect outside, and the base register stays
        return cls is not None and not issubclass(cls, _ACTS) and (rd != base or not base)

    for at, (cls, word, read, rd) in enumerate(code, 1):
        if not is_quiet(cls, rd):
            return None
        decides = not made.isdisjoint(read)
        if issubclass(cls, Branch):
            end = pc + 4 * at
            head = end + int(cls.offset.get(word))
            if decides and max(pc - 4 * _LOOK, 0) <= head <= pc:
                before = all(is_quiet(one, rd) for one, _, _, rd in _code(l1, head, pc))
                return (head, end) if before else None
        else:
            made = made | {rd} if decides else made - {rd}
    return None


def is_one_of_two(l1: Memory, pc: int) -> bool:
    """Whether a branch first uses a value computed from two words, one of them loaded at `pc`.

    Cores wait so for a queue that has a counter of each side.
    """
    loaded: dict[int, set[int]] = {}  # by register, the loads that it is computed from
    for n, (cls, _, read, rd) in enumerate(_code(l1, pc - 4 * _CLOSE, pc + 4 * _LOOK)):
        if cls is None or issubclass(cls, _LEAVES):
            loaded = {}
            if n >= _CLOSE:
                return False
            continue
        made = {n} if issubclass(cls, Load) else set().union(*(loaded.get(n, ()) for n in read))
        if issubclass(cls, Branch) and n > _CLOSE:
            return _CLOSE in made and len(made) > 1
        if rd > 0:  # x0 keeps nothing
            loaded[rd] = made
    return False


def comparison(l1: Memory, pc: int) -> tuple[int, int] | None:
    """The first branch that compares a loaded word: its pc, and the other register."""
    (_, load, _, _), *code = _code(l1, pc, pc + 4 * _LOOK)
    loaded = load >> 7 & 31
    for at, (cls, _, read, made) in enumerate(code, 1):
        if cls is None or cls is TTINSN or not loaded:
            return None
        if issubclass(cls, Branch):
            return (pc + 4 * at, read[1 - read.index(loaded)]) if loaded in read else None
        if issubclass(cls, Store | Jump | IndirectJump) or loaded in (*read, made):
            return None
    return None
