"""The observer of a tile: it hooks the tile before a run, and gives unordered pairs after it."""

import ctypes
import weakref
from collections.abc import Sequence

from bhemu.jit.build import function, load
from bhemu.jit.intrinsics import callback
from bhemu.jit.record import plain
from bhemu.machine.core import Core
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, LOCAL_BASE, LOCAL_SIZES
from bhemu.program import elf
from bhemu.tensix import compiled
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.spaces import fields_named
from bhemu.tensix.state import ENTRY, RESET, STEP
from bhemu.why.order import clocks, cores, describe, shadow, words
from bhemu.why.order import record as r
from bhemu.why.order.record import OrderRecord

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
        return "word {1} of the MOP template of T{0}".format(
            *divmod(place - r.TEMPLATES, r.TEMPLATE)
        )
    bank, bit = divmod(place - r.CONFIG, 32 * CONFIG_WORDS)
    return f"{field_name(bit)} (Config word {bit >> 5} of bank {bank})"


def field_name(place: int) -> str:
    """The Config field that a bit of a bank belongs to."""
    word, bit = divmod(place, 32)
    for title, field in fields_named("CFG", ("*",)).items():
        if field.word == word and field.mask << field.shift >> bit & 1:
            return title
    return f"bit {bit} of word {word}"


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
        describe.begin(o)
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
            if what == words.TEXT:
                describe.text(self.record, a, b)
            elif what == words.LIST:
                describe.lists(self.record, a, b, c)
            elif what == words.SITE:
                describe.site(self.record, self.tile.state.l1, a)
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
        found: list[list[int]] = self.record.pair[: int(self.record.pairs[0])].tolist()
        return [(n, row) for n, row in enumerate(found) if not self._is_polled(row)]

    def _is_polled(self, row: list[int]) -> bool:
        """Whether cores or threads of a tile synchronize by the place of a pair."""
        o, place = self.record, row[r.PLACE]
        if row[r.HOME] != row[r.EVENT + r.HOME]:
            return False
        if (address := l1_address(place)) is not None:
            return bool(o.slot[address >> 2] or o.marks[address >> 2] & 2)
        if kind(place) == "GPR":
            return bool(o.polled_gpr[(place - r.GPRS) // 2])
        return False
