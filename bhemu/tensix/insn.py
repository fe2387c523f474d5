"""The instruction base class: one class declares opcode, fields, resources, effects and meaning."""

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bhemu.bits import Word as Word
from bhemu.bits import bits as bits
from bhemu.bits import choice, flags, number
from bhemu.jit.interpreted import used
from bhemu.jit.intrinsics import call_entry
from bhemu.jit.subset import JIT, Compiled, njit
from bhemu.tensix import lanes, spaces
from bhemu.tensix.config_fields import Field
from bhemu.tensix.spaces import Clause, Effect, Values
from bhemu.tensix.state import SECOND_SLOTS

REGISTRY: dict[int, type["Instruction"]] = {}

STALL_ANY = 0x1FF  # wait instructions are held by any block bit
STALL_ALL_NINE = 0x200  # NOP is held only when all nine block bits are set

# Whether executing a word can end the wait of another thread; by bank: only where it changes who
# owns a Src bank
WAKES, WAKES_BY_BANK, WAKES_NOBODY = 0, 1, 2


def decoder(layout: type[Word]) -> Any:
    """The compiled function (word) -> Fields of a layout, which several classes may share."""

    def made() -> Any:
        space: dict[str, Any] = {"__name__": __name__, "_Fields": layout.Fields, "np": np}
        exec(f"def decoded(w):\n    return {layout.source('w')}", space)
        return space["decoded"]

    return Compiled.generated(made, {}) if JIT else made()


class Unit(NamedTuple):
    """An execution unit: what its instructions have in common unless one says another."""

    stall: str
    wakes: int = WAKES


UNITS = {
    "front": Unit("never"),
    "adc": Unit("B0"),
    "sync": Unit("B1"),
    "pack": Unit("B0,B2", WAKES_BY_BANK),
    "unpack": Unit("B0,B3", WAKES_BY_BANK),
    "mover": Unit("B0,B4"),
    "scalar": Unit("B0,B5"),
    "matrix": Unit("B6", WAKES_BY_BANK),
    "cfg": Unit("B7"),
    "vector": Unit("B8", WAKES_NOBODY),
}

# Spaces whose contents words compute from, in the order of questions; the units in between take
# Config and counters as settings.
_CONTENTS = (
    *(spaces.GPR, spaces.LREG, spaces.SRC, spaces.DST, spaces.L1),
    *(spaces.CFG, spaces.THREAD_CFG, spaces.ADC, spaces.SEM, spaces.MUTEX),
)
_CONFIGURED = ("pack", "unpack", "matrix", "vector")


class Argument(NamedTuple):
    """An argument of an instruction's C macros: bits [hi:lo] of the word."""

    name: str
    hi: int
    lo: int

    @property
    def max(self) -> int:
        """The largest value that it holds."""
        return (2 << self.hi - self.lo) - 1


def stall_mask(stall: str) -> int:
    """Block-bit mask of a stall class: "B0,B5", "any", "all nine" or "never" (STALLWAIT)."""
    named = {"any": STALL_ANY, "all nine": STALL_ALL_NINE, "never": 0}
    if stall in named:
        return named[stall]
    return sum(1 << int(part.removeprefix("B")) for part in stall.split(","))


class Instruction(Word):
    """One Tensix instruction.

    A subclass states `opcode`, `unit`, its bit fields and, once modelled, `execute(s, t, f) ->
    status`, where `f` is the tuple `Fields` of its Word. Fields that several instructions have are
    declared in a class without opcode that each of them inherits, or in a Word before Instruction.
    `stall`, `wakes`: where they are not those of its unit (UNITS).
    `uncertain=True`: field widths are upper bounds only, so reserved bits are not checked.
    `unread`: bits that belong to no field and that kernels proven on silicon set all the same.
    `refused`: the reason why an instruction without `execute` stays so; `oracle`: a golden
    simulator can execute it.
    `reads`, `writes`: clauses of spaces.py; `formats`: which formats are in force for it
    ("src", "dst", "sfpu", "unpack" or "pack"); `by_chance`: Config fields that make it round by
    chance;
    `second_entries`: slots of insn.py; `facts`: what its own unit must know of it.
    `doubts(s, t, f) -> status`: what goes before `execute` while a lane of the vector unit is in
    doubt (lanes.py): as `reads` and `writes` say or, where values change lanes or places, `moves`.
    `ready(s, t, f) -> condition`, `advance(s, t, f)`: what the wait gate asks, and which counters
    move, when a unit takes the word to execute it later (issue.py has the usual ones).
    `arguments`: those of its C macros, from high bits to low, as tt-llk's ckernel_ops.h has them:
    its fields, but for the bits of `macro`, which tt-llk gives an argument where no field is
    declared, or one for several.
    `route(s, t, word) -> status`: while the opcode is in `s.route`, it takes every word of every
    thread; a negative t says that thread -1 - t waits.
    """

    name: ClassVar[str]
    opcode: ClassVar[int]
    unit: ClassVar[str]
    stall_mask: ClassVar[int]
    reserved: ClassVar[int]
    wakes: ClassVar[int]
    arguments: ClassVar[tuple[Argument, ...]]
    reads: ClassVar[Clause] = spaces.NOTHING
    writes: ClassVar[Clause] = spaces.NOTHING
    # As the class statement says:
    stall: ClassVar[str] = ""
    oracle: ClassVar[bool] = True
    uncertain: ClassVar[bool] = False
    unread: ClassVar[int] = 0
    refused: ClassVar[str] = ""
    formats: ClassVar[str] = ""
    by_chance: ClassVar[tuple[Field, ...]] = ()
    second_entries: ClassVar[tuple[int, ...]] = ()
    facts: ClassVar[Any] = None
    macro: ClassVar[tuple[Argument, ...]] = ()
    execute: ClassVar[Callable[..., Any] | None] = None
    doubts: ClassVar[Callable[..., Any] | None] = None
    moves: ClassVar[Callable[..., Any] | None] = None
    route: ClassVar[Callable[..., Any] | None] = None
    ready: ClassVar[Callable[..., Any] | None] = None
    advance: ClassVar[Callable[..., Any] | None] = None

    @classmethod
    def looks_at(cls, s: Any, t: int, word: int) -> int | None:
        """L1 address on whose word a blocked `word` of thread `t` waits, if there is one."""
        return next((at for at, _ in cls.l1_read(s, t, word, awaited=True)), None)

    @classmethod
    def l1_read(cls, s: Any, t: int, word: int, awaited: bool) -> Iterator[tuple[int, int]]:
        """Addresses and sizes of the L1 that a word reads, as far as its registers say them."""
        gprs, halves = s.gpr[t], s.gpr[t].view(np.uint16)
        functions = {"gpr": lambda n: int(gprs[n]), "half": lambda n: int(halves[n])}
        for term in cls.reads.of(values := cls.operands(word)):
            if term.space == spaces.L1 and term.place and term.awaited == awaited:
                at = spaces.value(term.place, values, **functions) & 0xFFFFFFFF
                yield at, spaces.value(term.length, values)

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Members of the state whose contents its words compute from, including lane flags and
        excluding settings."""
        kept = (one for one in cls.writes if one.keeps or one.space == spaces.LREG)
        used = {one.space for one in (*cls.reads, *kept)}
        if cls.unit in _CONFIGURED:
            used -= {spaces.CFG, spaces.ADC}
        if cls.unit != "cfg":
            used.discard(spaces.THREAD_CFG)
        flags = ("cc",) if any("cc" in one.members for one in used) else ()
        return (*(m for one in _CONTENTS if one in used for m in one.contents), *flags)

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """Numbers of state record `s` that a blocked `word` of thread `t` waits on, or ""."""
        return ""

    @classmethod
    def stores(cls) -> str:
        """ "L1" or "atomic" for a word of a core's kind, which stores to L1; else ""."""
        if cls.unit not in ("scalar", "mover") or not cls.writes.may(spaces.L1):
            return ""
        kept = any(one.space == spaces.L1 and one.keeps for one in cls.writes)
        return "atomic" if cls.unit == "scalar" and (kept or cls.reads.may(spaces.L1)) else "L1"

    @classmethod
    def gives_gprs(cls, values: Values) -> frozenset[int]:
        """GPRs of its thread that a word with these fields copies to Config or to a register."""
        if not any(term.space in (spaces.CFG, spaces.MMIO) for term in cls.writes.of(values)):
            return frozenset()
        return cls.reads.places(spaces.GPR, values) or frozenset()

    @classmethod
    def dst_rows_of(cls, values: Values) -> int:
        """How many rows of Dst a word with these fields reads or fills, from an aligned one on."""
        terms = (*cls.reads.of(values), *cls.writes.of(values))
        lengths = (one.length for one in terms if one.space == spaces.DST and one.place)
        return max((spaces.value(length, values) for length in lengths), default=0)

    @classmethod
    def effects(cls, values: Values) -> Iterable[Effect]:
        """What executing a word with these fields may end the wait of."""
        return cls.writes.effects(values)

    def __init_subclass__(
        cls, *, opcode: int | None = None, unit: str = "", wakes: int | None = None, **stated: Any
    ) -> None:
        super().__init_subclass__()
        cls.unit = unit = unit or cls.unit
        if opcode is None:  # what several instructions have
            return
        cls.name, cls.opcode = cls.__name__, opcode
        for name, value in stated.items():
            assert hasattr(Instruction, name), f"{cls.name} states {name}"
            setattr(cls, name, value)
        cls.stall = cls.stall or UNITS[unit].stall
        if cls.reads.may(spaces.CFG) or cls.writes.may(spaces.CFG):
            cls.reads |= spaces.STATE_ID
        if unit == "vector" and any(f.name == "lreg_dest" for f in cls.fields):
            cls.writes |= spaces.TEMPLATE
        cls.wakes = UNITS[unit].wakes if wakes is None else wakes
        cls.stall_mask = stall_mask(cls.stall)
        alone = (f for f in cls.fields if not any(m.lo <= f.lo <= m.hi for m in cls.macro))
        arguments = (*cls.macro, *(Argument(f.name, f.hi, f.lo) for f in alone))
        cls.arguments = tuple(sorted(arguments, key=lambda one: -one.lo))
        used = 0
        for field in cls.fields:
            assert not used & field.mask, f"{cls.name}.{field.name} overlaps"
            used |= field.mask
        assert used < 1 << 24, f"{cls.name}: a field reaches into the opcode"
        assert not used & cls.unread, f"{cls.name}: a field has bits that are not read"
        cls.reserved = 0 if cls.uncertain else 0xFFFFFF & ~(used | cls.unread)
        if cls.execute is not None:
            code = cls.execute.__code__
            got = code.co_varnames[: code.co_argcount]
            assert got == ("s", "t", "f"), f"{cls.name}.execute takes {got}, not s, t, f"
        datums = cls.reads.may(spaces.DST) or cls.writes.may(spaces.DST)  # marks go with them
        if cls.execute and unit == "vector" and not datums:
            cls.doubts = lanes.declared(cls, _MOVE_MARKS)
        assert opcode not in REGISTRY, f"opcode {opcode:#04x} is declared twice"
        REGISTRY[opcode] = cls

    @classmethod
    def assemble(cls, **values: int) -> int:
        """The 32-bit word; fields not named are 0; ValueError for an unknown or too big field."""
        known = {f.name: f for f in cls.fields}
        if unknown := sorted(values.keys() - known.keys()):
            raise ValueError(f"{cls.name} has no field {', '.join(unknown)} (has {list(known)})")
        word = cls.opcode << 24
        for name, value in values.items():
            word = known[name].put(word, value)
        return word

    @classmethod
    def operands(cls, word: int) -> dict[str, int]:
        """Field values of a word, by name."""
        return {f.name: f.get(word) for f in cls.fields}

    @classmethod
    def summary(cls) -> str:
        """First line of the class docstring: what the instruction does and its chapter."""
        return (cls.__doc__ or "").strip().splitlines()[0]


@functools.cache
def instructions() -> dict[int, type[Instruction]]:
    """Every instruction by opcode; the modules of the units, which declare them, are imported."""
    importlib.import_module("bhemu.tensix.units")
    return REGISTRY


def decode(word: int) -> type[Instruction] | None:
    """The class whose opcode is in bits [31:24] of `word`, or None."""
    return instructions().get(word >> 24)


def assemble(mnemonic: str, **values: int) -> int:
    """Encode one instruction by mnemonic, e.g. assemble("SEMPOST", sem_sel=2)."""
    for cls in instructions().values():
        if cls.name == mnemonic:
            return cls.assemble(**values)
    raise ValueError(f"no Tensix instruction is called {mnemonic}")


def effects(word: int) -> Iterable[Effect]:
    """What executing a word may end the wait of; nothing for an unknown opcode."""
    cls = decode(word)
    return () if cls is None else cls.effects(cls.operands(word))


def disassemble(word: int) -> str:
    """Mnemonic and non-zero fields; unknown opcodes and reserved bits are said, never hidden."""
    cls = decode(word)
    if cls is None:
        return f"unknown opcode {word >> 24:#04x}"
    shown = [f"{name}={value:#x}" for name, value in cls.operands(word).items() if value]
    if word & cls.reserved:
        shown.append(f"reserved bits {word & cls.reserved:#x}")
    if word & cls.unread:
        shown.append(f"unread bits {word & cls.unread:#x}")
    return " ".join([cls.name, *shown])


# Tables of operands that instructions of several units have (bits.py).
#
# Names of classes and conditions: STALLWAIT, Blackhole ISA, and tt-llk (p_stall); of semaphores:
# tt-llk.

BLOCKS = flags(
    *("TDMA", "SYNC", "PACK", "UNPACK", "XMOV", "THCON", "MATH", "CFG", "SFPU"),
    about="classes of instructions that are held, B0 to B8",
    none="MATH (the default)",
    every="everything",
)
CONDITIONS = flags(
    *("THCON idle", "UNPACK0 idle", "UNPACK1 idle", "PACK idle", "MATH idle"),
    *("SRCA_CLR", "SRCB_CLR", "SRCA_VLD", "SRCB_VLD"),
    *("XMOV idle", "TRISC_CFG idle", "SFPU idle", "CFGEXU idle"),
    about="what is waited for, C0 to C12 (CLR: free to unpack to, VLD: valid for the matrix unit)",
    none="THCON, UNPACK0, UNPACK1, PACK idle (default)",
)
SEMAPHORE_NAMES = (
    *("FPU_SFPU", "MATH_PACK", "UNPACK_TO_DEST", "UNPACK_OPERAND_SYNC"),
    *("PACK_DONE", "UNPACK_SYNC", "UNPACK_MATH_DONE", "MATH_DONE"),
)
"""What tt-llk calls the eight semaphores."""
SEMAPHORES = flags(
    *(f"semaphore {i} ({name})" for i, name in enumerate(SEMAPHORE_NAMES)), none="no semaphore"
)
STREAM_SELECTOR = choice(
    {i: f"STREAM_ID_SYNC_SEC{i}" for i in range(4)},
    about="the ThreadConfig field that names the stream",
)

GPR = number("GPR of the issuing thread")
GPR_OR_NUMBER = number("GPR of the issuing thread, or (op_b_is_const) the number itself")
GPR_ADDRESS = number("GPR with an address in L1, which counts 16 bytes")
HALF_GPR = number("half of a GPR: twice its number, plus 1 for the high half")
CONFIG_WORD = number("word of Config")
THREAD = choice(
    "the issuing thread", "thread 1", "thread 2", about="whose address counters are in force"
)

ENGINES = flags("unpacker 0", "unpacker 1", "packer", about="whose counters change")
SRC_BANKS = flags("SrcA", "SrcB")
RELEASED = flags("SrcA", "SrcB", about="whose bank goes back to the unpacker")
ADDR_MOD = number("ADDR_MOD section, applied to the row counters afterwards")
DST_ROW = number("Dst row, to which RWC.Dst and the math offset are added")
SRC_ROW = number("Src row, to which the row counter is added")
COUNTER_VALUE = number("value of the counter of this name, or its increment")
IGNORED = number("has no effect")
ZERO = number("not specified: has to be 0")
UNKNOWN = number("nothing says what it is")


# Second entries: parts of an instruction that are compiled only when a program uses them.
#
# An instruction with many modes keeps the common ones in its own entry and hands the word to
# second entries for the others.  `s.second` is the pointer table; compiled.py fills it like that
# of the opcodes.

# Slots; their numbers are part of compiled code.
UNPACK_STAGES, PACK_STAGES, UNPACK_ZEROS, PACK_ACCUMULATE, UNPACK_DATUM_STREAM = range(5)
UNPACK_EXPONENTS, UNPACK_DST_16, FPU_STOCHASTIC, LANE_MARKS = 5, 6, 7, 8
NAMES = {
    UNPACK_STAGES: "UNPACR, stage by stage",
    PACK_STAGES: "PACR, stage by stage",
    UNPACK_ZEROS: "UNPACR, zeros",
    PACK_ACCUMULATE: "PACR, L1 accumulation",
    UNPACK_DATUM_STREAM: "UNPACR, datum by datum",
    UNPACK_EXPONENTS: "UNPACR, 5-bit exponents",
    UNPACK_DST_16: "UNPACR, 16-bit datums to Dst",
    FPU_STOCHASTIC: "matrix unit, stochastic rounding",
    LANE_MARKS: "vector unit, unspecified lanes",
}
ENTRIES: dict[int, tuple[Callable[..., Any], type[Word]]] = {}


def second_entry(slot: int, function: Callable[..., Any], layout: type[Word]) -> Any:
    """Declare `function(s, t, f) -> status` for `slot`; returns what others call instead.

    That takes the word whose Fields, as `layout` says, `f` will be: (s, t, word) -> status.
    """
    assert slot not in ENTRIES, slot
    assert slot < SECOND_SLOTS, slot
    ENTRIES[slot] = function, layout
    if not JIT:
        path = f"{function.__module__}.{function.__name__}"

        def interpret(s: Any, t: Any, word: Any) -> Any:
            used.add(path)
            return function(s, t, layout.decoded(int(word)))

        return interpret

    @njit
    def call(s: Any, t: Any, word: Any) -> Any:
        return call_entry(s.second[slot], s, t, np.uint32(word))

    return call


_MOVE_MARKS = second_entry(LANE_MARKS, lanes.move, lanes.Cells)
