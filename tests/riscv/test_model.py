"""Random programs of every RV32IM, Zaamo, Zba and Zbb instruction against a literal model."""

import random
from collections.abc import Callable

import pytest
import rv32_model as model
from fuzz.campaign import campaign
from hypothesis import given
from hypothesis import strategies as st

from bhemu.riscv.asm import PARK
from bhemu.riscv.disasm import disassemble
from bhemu.tile import Tile

START, DATA, SIZE = 0x20000, 0x40000, 0x1000
MIDDLE = DATA + SIZE // 2
CORES = ("brisc", "trisc0", "trisc1", "trisc2", "ncrisc")
BASE, LINK, POINTER = 31, 30, 28  # hold MIDDLE, a jump's base, an atomic's address
TILE = Tile()

EDGES = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
values = st.one_of(st.sampled_from(EDGES), st.integers(0, model.M))
sources = st.one_of(st.integers(0, 27), st.sampled_from([0, 1, 2, 31]))
targets = st.integers(0, 27)
offsets = st.one_of(st.sampled_from([-2048, -4, 0, 4, 2044]), st.integers(-2048, 2047))
immediates = st.one_of(st.sampled_from([-2048, -1, 0, 1, 2047]), st.integers(-2048, 2047))

# A unit is a few steps that belong together; it takes the number of steps from its last one to a
# later unit's first, for jumps.
Unit = Callable[[int], list[model.Step]]


def plain(step: Callable[..., model.Step], *parts: st.SearchStrategy[object]) -> object:
    return st.tuples(*parts).map(lambda drawn: (1, lambda skip: [step(*drawn)]))


def aligned(size: int, imm: int) -> int:
    return imm & -size


def memory(table: dict[str, tuple[int, ...]], step: Callable[..., model.Step]) -> object:
    return st.tuples(st.sampled_from(sorted(table)), targets, offsets).map(
        lambda d: (1, lambda skip: [step(d[0], d[1], BASE, aligned(table[d[0]][1], d[2]))])
    )


def atomics() -> object:
    return st.tuples(st.sampled_from(sorted(model.ATOMIC)), targets, sources, offsets).map(
        lambda d: (
            2,
            lambda skip: [
                model.immediate("addi", POINTER, BASE, aligned(4, d[3])),
                model.atomic(d[0], d[1], POINTER, d[2]),
            ],
        )
    )


def branches() -> object:
    return st.tuples(st.sampled_from(sorted(model.BRANCH)), sources, sources).map(
        lambda d: (1, lambda skip: [model.branch(*d, 4 * skip)])
    )


def jumps() -> object:
    return targets.map(lambda rd: (1, lambda skip: [model.jal(rd, 4 * skip)]))


def indirect_jumps() -> object:
    """The base is the address of the auipc; an odd offset loses its bit 0."""
    return st.tuples(targets, st.integers(0, 1)).map(
        lambda d: (
            2,
            lambda skip: [
                model.upper("auipc", LINK, 0),
                model.jalr(d[0], LINK, 4 + 4 * skip + d[1]),
            ],
        )
    )


def names(table: dict[str, object]) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(table))


units = st.one_of(
    plain(model.register, names(model.REGISTER), targets, sources, sources),
    plain(model.unary, names(model.UNARY), targets, sources),
    plain(model.immediate, names(model.IMMEDIATE), targets, sources, immediates),
    plain(model.shift, names(model.SHIFT), targets, sources, st.integers(0, 31)),
    plain(model.upper, st.sampled_from(["lui", "auipc"]), targets, st.integers(0, 0xFFFFF)),
    memory(model.LOAD, model.load),
    memory(model.STORE, model.store),
    atomics(),
    branches(),
    jumps(),
    indirect_jumps(),
)
programs = st.lists(st.tuples(units, st.integers(1, 6)), min_size=1, max_size=120)


def assemble(drawn: list[tuple[tuple[int, Unit], int]]) -> list[model.Step]:
    """Lay the units out; a jump goes that many units on, at most behind the last."""
    starts = [0]
    for (length, _), _ in drawn:
        starts.append(starts[-1] + length)
    steps: list[model.Step] = []
    for i, ((length, unit), ahead) in enumerate(drawn):
        steps += unit(starts[min(i + ahead, len(drawn))] - (starts[i] + length - 1))
    return steps


def setup(registers: list[int]) -> list[model.Step]:
    """x1-x27 and the base of the data."""
    steps = []
    for number, value in [*enumerate(registers, 1), (BASE, MIDDLE)]:
        low = model.signed(model.extend(value, 12))
        steps.append(model.upper("lui", number, (value - low) >> 12 & 0xFFFFF))
        steps.append(model.immediate("addi", number, number, low))
    return steps


def run(core: str, steps: list[model.Step], data: bytes) -> Tile:
    TILE.reset()
    words = [step.word for step in steps] + [PARK]
    TILE.write(START, b"".join(word.to_bytes(4, "little") for word in words))
    TILE.write(DATA, data)
    if core == "brisc":
        TILE.write32(0, model.encode_jal(0, START))
    TILE.core[core].set_reset_pc(0 if core == "brisc" else START)
    TILE.core[core].release()
    assert TILE.run(limit=100_000).reason == "idle"
    return TILE


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
    core=st.sampled_from(CORES),
    registers=st.lists(values, min_size=27, max_size=27),
    drawn=programs,
    seed=st.integers(0, 1 << 32),
)
def test_random_programs(
    core: str, registers: list[int], drawn: list[tuple[tuple[int, Unit], int]], seed: int
) -> None:
    compare(core, setup(registers) + assemble(drawn), seed)


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
