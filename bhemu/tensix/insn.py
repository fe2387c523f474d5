"""The Tensix instruction base class: one class declares opcode, fields, stall class and meaning."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from bhemu.bits import Word, bits
from bhemu.tensix.config_fields import Field
from bhemu.tensix.effects import Effect, Values, gives_back
from bhemu.tensix.resources import OTHERS, Resources

__all__ = [
    "NO_TEXT",
    "REGISTRY",
    "Argument",
    "Instruction",
    "Word",
    "assemble",
    "bits",
    "decode",
    "disassemble",
    "effects",
]

REGISTRY: dict[int, type["Instruction"]] = {}

STALL_ANY = 0x1FF  # wait instructions are held by any block bit
STALL_ALL_NINE = 0x200  # NOP is held only when all nine block bits are set


# Of an instruction that the ISA only names, with fields from an opcode table.
NO_TEXT: dict[str, Any] = {"oracle": False, "uncertain": True, "refused": "no text in the ISA"}

# Whether executing a word can end the wait of another thread; by bank: only where it changes who
# owns a Src bank
WAKES, WAKES_BY_BANK, WAKES_NOBODY = 0, 1, 2


class Unit(NamedTuple):
    """An execution unit: what its instructions have in common unless one says another.

    `inputs`: members of the state that its words compute from.
    """

    stall: str
    inputs: tuple[str, ...] = ()
    wakes: int = WAKES


UNITS = {
    "front": Unit("never"),
    "adc": Unit("B0", ("adc", "adc_cr", "gpr")),
    "sync": Unit("B1", ("sem", "sem_max", "mutex")),
    "pack": Unit("B0,B2", ("dst", "l1"), WAKES_BY_BANK),
    "unpack": Unit("B0,B3", ("l1",), WAKES_BY_BANK),
    "mover": Unit("B0,B4", ("l1", "cfg")),
    "scalar": Unit("B0,B5", ("gpr", "l1", "cfg")),
    "matrix": Unit("B6", ("src", "dst"), WAKES_BY_BANK),
    "cfg": Unit("B7", ("gpr", "cfg", "thread_cfg")),
    "vector": Unit("B8", ("lreg", "dst"), WAKES_NOBODY),
}


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
    declared in a Word that each of them inherits first.
    `stall`, `wakes`: where they are not those of its unit (UNITS).
    `uncertain=True`: field widths are upper bounds only, so reserved bits are not checked.
    `unread`: bits that belong to no field and that kernels proven on silicon set all the same.
    `refused`: the reason why an instruction without `execute` stays so; `oracle`: a golden
    simulator can execute it.
    `resources`: what Auto TTSync counts it as using; `formats`: which formats are in force for it
    ("src", "dst", "sfpu", "unpack" or "pack"); `by_chance`: Config fields that make it round by
    chance; `dst_rows`: how many rows of Dst it reads or fills, the ones around that of its field;
    `stores`: "L1" or "atomic" when it changes L1 where its registers or Config say;
    `second_entries`: slots of second_entries.py; `facts`: what its own unit must know of it.
    `doubts(s, t, f) -> status`: what goes before `execute` while a lane of the vector unit is in
    doubt (lane_doubt.py).
    `arguments`: those of its C macros, from high bits to low, as tt-llk's ckernel_ops.h has them:
    its fields, but for the bits of `macro`, which tt-llk gives an argument where no field is
    declared, or one for several.
    `route(s, t, word) -> status`: while the opcode is in `s.route`, it takes every word of every
    thread; a negative t says that thread -1 - t waits.
    """

    name: ClassVar[str]
    opcode: ClassVar[int]
    unit: ClassVar[str]
    stall: ClassVar[str]
    stall_mask: ClassVar[int]
    reserved: ClassVar[int]
    unread: ClassVar[int]
    oracle: ClassVar[bool]
    refused: ClassVar[str]
    wakes: ClassVar[int]
    resources: ClassVar[Resources]
    formats: ClassVar[str]
    by_chance: ClassVar[tuple[Field, ...]]
    dst_rows: ClassVar[int]
    stores: ClassVar[str]
    inputs: ClassVar[tuple[str, ...]]
    second_entries: ClassVar[tuple[int, ...]]
    facts: ClassVar[Any]
    arguments: ClassVar[tuple[Argument, ...]]
    execute: ClassVar[Callable[..., Any] | None] = None
    doubts: ClassVar[Callable[..., Any] | None] = None
    route: ClassVar[Callable[..., Any] | None] = None

    @staticmethod
    def looks_at(s: Any, t: int, word: int) -> int | None:
        """L1 address on whose word a blocked `word` of thread `t` waits, if there is one."""
        return None

    @staticmethod
    def explain(s: Any, t: int, word: int) -> str:
        """Numbers of state record `s` that a blocked `word` of thread `t` waits on, or ""."""
        return ""

    @staticmethod
    def gives_gprs(values: Values) -> range:
        """GPRs of its thread that a word with these fields copies to Config or to a register."""
        return range(0)

    @classmethod
    def dst_rows_of(cls, values: Values) -> int:
        """How many rows of Dst a word with these fields reads or fills, from an aligned one on."""
        return cls.dst_rows

    @staticmethod
    def loads_from(s: Any, t: int, word: int) -> int | None:
        """L1 address of the 16 bytes that `word` of thread `t` would load to GPRs, if it loads."""
        return None

    @staticmethod
    def effects(values: Values) -> Iterable[Effect]:
        """What executing a word with these fields may end the wait of."""
        return gives_back(values)

    def __init_subclass__(
        cls,
        *,
        opcode: int,
        unit: str,
        stall: str = "",
        oracle: bool = True,
        uncertain: bool = False,
        unread: int = 0,
        refused: str = "",
        wakes: int | None = None,
        resources: Resources = OTHERS,
        formats: str = "",
        by_chance: tuple[Field, ...] = (),
        dst_rows: int = 0,
        stores: str = "",
        second_entries: tuple[int, ...] = (),
        facts: Any = None,
        macro: tuple[Argument, ...] = (),
    ) -> None:
        super().__init_subclass__()
        cls.name = cls.__name__
        cls.opcode, cls.unit, cls.oracle = opcode, unit, oracle
        cls.stall, cls.inputs = stall or UNITS[unit].stall, UNITS[unit].inputs
        cls.refused = refused
        cls.wakes = UNITS[unit].wakes if wakes is None else wakes
        cls.resources, cls.formats = resources, formats
        cls.by_chance, cls.dst_rows, cls.stores = by_chance, dst_rows, stores
        cls.second_entries, cls.facts = second_entries, facts
        cls.stall_mask = stall_mask(cls.stall)
        alone = (f for f in cls.fields if not any(m.lo <= f.lo <= m.hi for m in macro))
        arguments = (*macro, *(Argument(f.name, f.hi, f.lo) for f in alone))
        cls.arguments = tuple(sorted(arguments, key=lambda one: -one.lo))
        used = 0
        for field in cls.fields:
            assert not used & field.mask, f"{cls.name}.{field.name} overlaps"
            used |= field.mask
        assert used < 1 << 24, f"{cls.name}: a field reaches into the opcode"
        assert not used & unread, f"{cls.name}: a field has bits that are not read"
        cls.unread = unread
        cls.reserved = 0 if uncertain else 0xFFFFFF & ~(used | unread)
        if cls.execute is not None:
            got = list(inspect.signature(cls.execute).parameters)
            assert got == ["s", "t", "f"], f"{cls.name}.execute takes {got}, not s, t, f"
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


def decode(word: int) -> type[Instruction] | None:
    """The class whose opcode is in bits [31:24] of `word`, or None."""
    return REGISTRY.get(word >> 24)


def assemble(mnemonic: str, **values: int) -> int:
    """Encode one instruction by mnemonic, e.g. assemble("SEMPOST", sem_sel=2)."""
    for cls in REGISTRY.values():
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
