"""Random programs of every RV32IM, Zaamo, Zba and Zbb instruction against a literal model."""

import random
from functools import cache

import pytest
import rv32_model as model
from fuzz.campaign import campaign
from hypothesis import given
from hypothesis import strategies as st

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PARK, disassemble

START, DATA, SIZE = 0x20000, 0x40000, 0x1000
MIDDLE = DATA + SIZE // 2
CORES = ("brisc", "trisc0", "trisc1", "trisc2", "ncrisc")
BASE, LINK, POINTER = 31, 30, 28  # hold MIDDLE, a jump's base, an atomic's address
MOST_UNITS = 400

EDGES = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
LIMITS = (-2048, -4, -1, 0, 1, 4, 2044, 2047)
KINDS = [
    *(("register", name) for name in model.REGISTER),
    *(("unary", name) for name in model.UNARY),
    *(("immediate", name) for name in model.IMMEDIATE),
    *(("shift", name) for name in model.SHIFT),
    *(("branch", name) for name in model.BRANCH),
    *(("load", name) for name in model.LOAD),
    *(("store", name) for name in model.STORE),
    *(("atomic", name) for name in model.ATOMIC),
    *(("upper", name) for name in ("lui", "auipc")),
    *(("jump", name) for name in ("jal", "jalr")),
]
LENGTH = {"atomic": 2, "jalr": 2}  # steps of one unit, else 1


class Draw:
    """Random operands; the first steps of two programs of one seed are the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self) -> int:
        """A register's first value."""
        return self.random.choice((*EDGES, self.random.getrandbits(32)))

    def target(self) -> int:
        """A register that may be overwritten, x0 included."""
        return self.random.randrange(28)

    def source(self) -> int:
        """Any of those, or one of few, so that values meet."""
        return self.random.choice((self.target(), self.random.randrange(4), BASE))

    def immediate(self) -> int:
        """12 bits with a sign."""
        return self.random.choice((*LIMITS, self.random.randrange(-2048, 2048)))


def straight(kind: str, name: str, d: Draw) -> model.Step:
    """One step that goes on to the next."""
    if kind == "register":
        return model.register(name, d.target(), d.source(), d.source())
    if kind == "unary":
        return model.unary(name, d.target(), d.source())
    if kind == "immediate":
        return model.immediate(name, d.target(), d.source(), d.immediate())
    if kind == "shift":
        return model.shift(name, d.target(), d.source(), d.random.randrange(32))
    if kind == "load":
        return model.load(name, d.target(), BASE, d.immediate() & -model.LOAD[name][1])
    if kind == "store":
        return model.store(name, d.source(), BASE, d.immediate() & -model.STORE[name][1])
    return model.upper(name, d.target(), d.random.getrandbits(20))


def unit(kind: str, name: str, d: Draw, skip: int) -> list[model.Step]:
    """A few steps that belong together; `skip` is from the last one to a later unit's first."""
    if kind == "branch":
        return [model.branch(name, d.source(), d.source(), 4 * skip)]
    if name == "jal":
        return [model.jal(d.target(), 4 * skip)]
    if name == "jalr":  # an odd offset loses its bit 0
        offset = 4 + 4 * skip + d.random.randrange(2)
        return [model.upper("auipc", LINK, 0), model.jalr(d.target(), LINK, offset)]
    if kind == "atomic":
        address = model.immediate("addi", POINTER, BASE, d.immediate() & -4)
        return [address, model.atomic(name, d.target(), POINTER, d.source())]
    return [straight(kind, name, d)]


def body(d: Draw, units: int) -> list[model.Step]:
    """Random units; a jump goes one to four units on, at most behind the last."""
    drawn = [(d.random.choice(KINDS), d.random.randint(1, 4)) for _ in range(units)]
    starts = [0]
    for (kind, name), _ in drawn:
        starts.append(starts[-1] + LENGTH.get(kind, LENGTH.get(name, 1)))
    steps: list[model.Step] = []
    for i, ((kind, name), ahead) in enumerate(drawn):
        steps += unit(kind, name, d, starts[min(i + ahead, units)] - starts[i + 1] + 1)
    return steps


def setup(registers: list[int]) -> list[model.Step]:
    """x1-x27 and the base of the data."""
    steps = []
    for number, value in [*enumerate(registers, 1), (BASE, MIDDLE)]:
        low = model.signed(model.extend(value, 12))
        steps.append(model.upper("lui", number, (value - low) >> 12 & 0xFFFFF))
        steps.append(model.immediate("addi", number, number, low))
    return steps


@cache
def one_tile() -> Tile:
    """For all examples."""
    return Tile()


def run(core: str, steps: list[model.Step], data: bytes) -> Tile:
    tile = one_tile()
    tile.reset()
    words = [step.word for step in steps] + [PARK]
    tile.write(START, b"".join(word.to_bytes(4, "little") for word in words))
    tile.write(DATA, data)
    if core == "brisc":
        tile.write32(0, model.encode_jal(0, START))
    tile.core[core].set_reset_pc(0 if core == "brisc" else START)
    tile.core[core].release()
    assert tile.run(limit=100_000).reason == "idle"
    return tile


def compare(core: str, steps: list[model.Step], seed: int) -> None:
    data = random.Random(seed).randbytes(SIZE)
    tile = run(core, steps, data)
    machine = model.Machine(DATA, bytearray(data))
    machine.run(START, steps)
    listing = [disassemble(step.word, START + 4 * i) for i, step in enumerate(steps)]
    assert [int(x) for x in tile.core[core].regs] == machine.x, listing
    assert tile.read(DATA, SIZE) == bytes(machine.memory), listing
    assert tile.core[core].retired == machine.retired + (core == "brisc")


@campaign(60, 20_000)
@given(
    core=st.sampled_from(CORES), seed=st.integers(0, 1 << 32), units=st.integers(100, MOST_UNITS)
)
def test_random_programs(core: str, seed: int, units: int) -> None:
    d = Draw(seed)
    compare(core, setup([d.value() for _ in range(27)]) + body(d, units), seed)


PAIRS = [(a, b) for a in EDGES for b in EDGES]


@pytest.mark.parametrize("name", sorted(model.REGISTER))
def test_every_pair_of_corner_values(name: str) -> None:
    steps = []
    for i, (a, b) in enumerate(PAIRS):
        steps += [*setup([a, b])[:4], model.register(name, 3, 1, 2)]
        steps += [*setup([0])[2:], model.store("sw", 3, BASE, 4 * i)]
    compare("trisc1", steps, 0)


@pytest.mark.parametrize("name", [*sorted(model.UNARY), *sorted(model.SHIFT)])
def test_every_corner_value(name: str) -> None:
    steps = setup([0])
    patterns = [*EDGES, *(1 << i for i in range(32)), *(model.M >> i for i in range(32))]
    for i, a in enumerate(patterns):
        one = model.unary(name, 2, 1) if name in model.UNARY else model.shift(name, 2, 1, i & 31)
        steps += [*setup([a])[:2], one, model.store("sw", 2, BASE, 4 * i)]
    compare("ncrisc", steps, 0)


def test_the_disassembler_names_every_word_of_the_model() -> None:
    for table, step in ((model.REGISTER, model.register), (model.ATOMIC, model.atomic)):
        for name in table:
            assert disassemble(step(name, 1, 2, 3).word, 0).split()[0] == name
    for name in model.UNARY:
        assert disassemble(model.unary(name, 1, 2).word, 0).split()[0] == name
