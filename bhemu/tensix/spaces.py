"""What an instruction reads and writes, declared once on its class: spaces, and clauses of them.

    class RDCFG(...):
        reads = config_word("cfg_reg")
        writes = gpr("gpr_address")

A clause is a union (`|`) of terms. A term names a space, the places in it and the condition on
which it counts; places and conditions are expressions of the instruction's fields. A partial
write does not count as a read of the lanes or bits that it keeps. Bookkeeping for messages and
scratch memory are no spaces.
"""

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config_fields import Field

Values = Mapping[str, int]


class Kind(Enum):
    """What a write does to its target, where an agent may wait for that."""

    POSTS = auto()  # semaphore: incremented
    TAKES = auto()  # semaphore: decremented
    SETS_ABOVE_ZERO = auto()  # semaphore
    SETS_BELOW_MAXIMUM = auto()  # semaphore
    RELEASES = auto()  # mutex
    HANDS_OVER = auto()  # Src bank: to the matrix unit
    FREES = auto()  # Src bank: to the unpacker
    STORES = auto()  # address of a register


class Effect(NamedTuple):
    """One thing that a word does; `target`: number of the semaphore, mutex or Src, or address."""

    kind: Kind
    target: int


class Space(NamedTuple):
    """Part of a tile's state: its name and the members of the record that hold it."""

    name: str
    members: tuple[str, ...]

    @property
    def contents(self) -> tuple[str, ...]:
        """Without the members that say whether the others count."""
        return tuple(m for m in self.members if m not in ("dst_valid", "mutex_next", "lreg16"))

    def at(self, place: str | int, count: str | int = 1, **more: Any) -> "Clause":
        """`count` places from one on; `more`: of the Term."""
        return Clause((Term(self, str(place), str(count), **more),))

    def each(self, mask: str | int, effect: Kind | None = None) -> "Clause":
        """The places whose bits are set."""
        return Clause((Term(self, str(mask), each=True, effect=effect),))

    def named(self, *names: str) -> "Clause":
        """Fields of Config or ThreadConfig by name or pattern."""
        return Clause((Term(self, fields=names),))


class Term(NamedTuple):
    """Places of one space.

    `place`: expression of the first, "" for all of them; `length`: of how many; `each`: the place
    is a mask, of which every bit is a place; `fields`: of Config or ThreadConfig; `when`:
    expression of the condition, "" for always; `effect`: what an agent may wait for; `keeps`:
    expression: the write leaves some bits as they were; `awaited`: the place on which the blocked
    word waits; `own`: read only to compute what is written back to the same place.
    """

    space: Space
    place: str = ""
    length: str = "1"
    each: bool = False
    fields: tuple[str, ...] = ()
    when: str = ""
    effect: Kind | None = None
    keeps: str = ""
    awaited: bool = False
    own: bool = False

    def applies(self, values: Values) -> bool:
        """Whether it counts for a word with these fields."""
        return not self.when or bool(value(self.when, values))

    def places(self, values: Values) -> frozenset[int] | None:
        """The numbers of its places, None for all of the space; bits of Config count from 0."""
        if self.fields:
            return _bits_of(self.space.name, self.fields)
        if not self.place:
            return None
        first = value(self.place, values)
        if self.each:
            return frozenset(i for i in range(first.bit_length()) if first >> i & 1)
        found = range(first, first + value(self.length, values))
        if self.space == CFG:
            return frozenset(32 * word + bit for word in found for bit in range(32))
        return frozenset(found)

    def __str__(self) -> str:
        place = " ".join(self.fields) or self.place
        if place and self.length != "1":
            place += f", {self.length} of them"
        shown = self.space.name + (f"[{place}]" if place else "")
        if self.effect is not None:
            shown += f" {self.effect.name.lower().replace('_', ' ')}"
        return f"{shown} if {self.when}" if self.when else shown


class Clause(tuple[Term, ...]):
    """A union of terms."""

    __slots__ = ()

    def __or__(self, other: "Clause") -> "Clause":
        return Clause(dict.fromkeys((*self, *other)))

    def when(self, condition: str) -> "Clause":
        """The same, for words whose fields fulfil the condition."""
        both = (f"({term.when}) and ({condition})" if term.when else condition for term in self)
        return Clause(term._replace(when=when) for term, when in zip(self, both, strict=True))

    def unless(self, condition: str) -> "Clause":
        """The same, for all other words."""
        return self.when(f"not ({condition})")

    def own(self) -> "Clause":
        """The same, read only to compute what the word writes back there."""
        return Clause(term._replace(own=True) for term in self)

    def of(self, values: Values) -> Iterator[Term]:
        """The terms that count for a word with these fields."""
        return (term for term in self if term.applies(values))

    def may(self, space: Space) -> bool:
        """Whether any word touches the space."""
        return any(term.space == space for term in self)

    def places(self, space: Space, values: Values) -> frozenset[int] | None:
        """The places of a space that a word with these fields touches, None for all of them."""
        found: frozenset[int] = frozenset()
        for term in self.of(values):
            if term.space == space:
                here = term.places(values)
                if here is None:
                    return None
                found |= here
        return found

    def effects(self, values: Values) -> Iterator[Effect]:
        """What an agent may wait for."""
        for term in self.of(values):
            if term.effect is not None:
                yield from (Effect(term.effect, n) for n in sorted(term.places(values) or ()))


_NO_NAMES: dict[str, Any] = {"__builtins__": {}}


@cache
def _code(text: str) -> CodeType:
    return compile(text, "<declaration>", "eval")


def value(text: str, values: Values, **functions: Callable[[int], int]) -> int:
    """An expression of fields."""
    return int(eval(_code(text), _NO_NAMES, {**values, **functions} if functions else values))


@cache
def _bits_of(space: str, patterns: tuple[str, ...]) -> frozenset[int]:
    """Bits of the fields of Config or ThreadConfig that the patterns name, 32 for each word."""
    fields = fields_named(space, patterns).values()
    sizes = ((32 * field.word + field.shift, field.mask.bit_length()) for field in fields)
    return frozenset(bit for low, size in sizes for bit in range(low, low + size))


@cache
def fields_named(space: str, patterns: tuple[str, ...]) -> dict[str, Field]:
    """The fields of Config ("CFG") or ThreadConfig that the patterns name."""
    known = config_fields.fields_of(config_fields if space == CFG.name else thread_fields)
    found: dict[str, Field] = {}
    for pattern in patterns:
        names = [pattern] if pattern in known else fnmatch.filter(known, pattern)
        here = {name: known[name] for name in names}
        assert here, f"no field of {space} is named {pattern}"
        found |= here
    return found


NOTHING = Clause()


def _all(name: str, *members: str) -> tuple[Space, Clause]:
    space = Space(name, members)
    return space, Clause((Term(space),))


# Of the vector unit
LREG, LREGS = _all("LREG", "lreg", "lreg16")
CC = _all("CC", "cc", "cc_en")[1]  # flags
STACK = _all("STACK", "cc_stack", "cc_stack_en")[1]
DEPTH = _all("DEPTH", "cc_depth")[1]
RANDOM = _all("RANDOM", "prng")[1]
LANE_CONFIG = _all("LANE_CONFIG", "lane_config")[1]
LANES = _all("LANES", "cc", "cc_en", "lane_config")[1]  # which lanes of which LReg are written
MACRO = _all("MACRO", "macro_template", "macro_sequence", "macro_misc")[1]
SCHEDULE = _all(
    *("SCHEDULE", "macro_slot", "macro_thread", "macro_last", "macro_dest", "route"),
    *("stage_latency", "stage_used", "stage_reg", "stage_left", "stage_value", "stage_mask"),
)[1]
# Of the units that move and multiply tiles; banks: which unit owns them, and the formats
DST, ALL_DST = _all("DST", "dst", "dst_valid")
SRC, ALL_SRC = _all("SRC", "src")
BANK, BANKS = _all("BANK", "src_valid", "src_fmt", "unpack_bank", "matrix_bank")
LAST_ROW = _all("LAST_ROW", "srca_row")[1]
RWC = _all("RWC", "rwc", "rwc_cr")[1]
ADC, ADCS = _all("ADC", "adc", "adc_cr")
UNPACKER = _all("UNPACKER", "unpack_row", "unpack_context")[1]
PACKER = _all(
    *("PACKER", "pack_open", "pack_data", "pack_exp", "pack_datum", "pack_row", "pack_plane"),
    "pack_sum",
)[1]
EXPONENTS = _all("EXPONENTS", "pack_histogram", "pack_exponent")[1]
STOCHASTIC = _all("STOCHASTIC", "stochastic_state")[1]
# Of the thread, and of all
GPR, GPRS = _all("GPR", "gpr")
CFG, CONFIG = _all("CFG", "cfg")
THREAD_CFG = _all("THREAD_CFG", "thread_cfg")[0]
L1, ALL_L1 = _all("L1", "l1")
SEM = _all("SEM", "sem", "sem_max")[0]
MUTEX = _all("MUTEX", "mutex", "mutex_next")[0]
LATCH = _all(
    *("LATCH", "latch", "latch_block", "latch_cond", "latch_sem", "latch_stream"),
    *("latch_target", "latch_word", "latch_pc"),
)[1]
OCCUPIED = _all("OCCUPIED", "thcon")[1]  # the scalar unit, by a word that waits within it
MMIO, REGISTERS = _all("MMIO")  # registers beyond the Tensix coprocessor
STREAMS = _all("STREAMS", "stream")[1]
DEBUG = _all("DEBUG", "debug")[1]
TDMA_STATE, TDMA = _all("TDMA")  # what Auto TTSync calls the state of TDMA-RISC
SLOTS = _all("SLOTS")[1]  # of MOP and REPLAY


lreg, gpr = LREG.at, GPR.at
config_word, cfg = CFG.at, CFG.named  # in the bank of the thread
thread_word, thread_cfg = THREAD_CFG.at, THREAD_CFG.named
sem, mutex = SEM.each, MUTEX.at
bank = BANK.each  # the owners of the banks of SrcA (0) and SrcB (1), and their formats
src = SRC.each  # cells of SrcA (bit 0) and SrcB (bit 1)
adc = ADC.each  # of the thread for unpackers and packer
dst = DST.at  # aligned rows around the one that the field, RWC.Dst and the offsets name
l1 = L1.at  # bytes from an address on, in which gpr(n) and half(n) are GPRs and halves of them
TEMPLATE = MACRO.when("lreg_dest > 11")  # a vector word is stored instead of executed
STATE_ID = thread_cfg("CFG_STATE_ID_StateID")  # which bank of Config is in force
DST_ROW = RWC | cfg("DEST_REGW_BASE_Base") | thread_cfg("DEST_TARGET_REG_CFG_MATH_Offset")
ADDR_MODS = RWC | thread_cfg("ADDR_MOD_AB_*", "ADDR_MOD_DST_*", "ADDR_MOD_BIAS_*")
