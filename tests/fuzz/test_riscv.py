"""Random RISC-V words on all five cores: whatever they are, only bhemu's own errors come out."""

import random
from functools import cache

from campaign import campaign
from hypothesis import given
from hypothesis import strategies as st

from bhemu.devices.bus.address_map import BLOCKS
from bhemu.errors import BhemuError, Internal
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import PARK, code, li

STARTS = {"brisc": 0, "trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000, "ncrisc": 0x40000}
OPCODES = (0x03, 0x0F, 0x13, 0x17, 0x23, 0x2F, 0x33, 0x37, 0x63, 0x67, 0x6F, 0x73)
POINTERS = [x for low, high, _ in BLOCKS for x in (low, high - 4, high, (low + high) // 2)]
WORDS = 60


def word(r: random.Random) -> int:
    """A known opcode with random fields, a `.ttinsn`, or any 32 bits."""
    kind = r.randrange(10)
    if kind < 7:
        fields = r.getrandbits(25) << 7
        if r.randrange(2):  # the encodings of Zba, Zbb, M and the shifts
            fields = fields & 0x01FFFFFF | r.choice((0x00, 0x01, 0x05, 0x10, 0x20, 0x30)) << 25
        return fields | r.choice(OPCODES)
    return r.getrandbits(32) | (3 if kind == 7 else 0)


def pointer(r: random.Random) -> int:
    """Into or beside a block of the address map, aligned or not."""
    return (r.choice((*POINTERS, r.getrandbits(32))) + r.choice((0, 0, 0, 4, 1, -2))) & 0xFFFFFFFF


def program(r: random.Random) -> bytes:
    """Registers that point somewhere, then random words."""
    loads = [li(i, pointer(r)) for i in range(1, 32) if r.randrange(2)]
    return code(*loads, [word(r) for _ in range(WORDS)], PARK)


@cache
def one_tile() -> Tile:
    """For all examples."""
    return Tile()


def run(tile: Tile) -> BhemuError | str:
    """The error that ended the run, or the reason of its stop."""
    try:
        return tile.run(limit=20_000, timeout_s=60, resume=True).reason
    except BhemuError as problem:
        return problem


def execute(seed: int) -> tuple[str, int, list[int]]:
    """(outcome, clock, instructions retired) of one program per core."""
    r, tile = random.Random(seed), one_tile()
    tile.reset()
    for name in CORE_NAMES:
        tile.write(STARTS[name], program(r))
        tile.core[name].set_reset_pc(STARTS[name])
        tile.core[name].release()
    outcomes = []
    for _ in range(20):  # an error of one core does not end the others
        outcome = run(tile)
        outcomes.append(str(outcome))
        if isinstance(outcome, str):
            break
        assert not isinstance(outcome, Internal), outcome
        assert outcome.rule, outcome
        stopped = int(tile.state.status_core[0])
        for c in [stopped] if stopped >= 0 else range(5):
            tile.core[CORE_NAMES[c]].hold()
    return "\n".join(outcomes), tile.clock, [core.retired for core in tile.core.values()]


@campaign(40, 5_000)
@given(seed=st.integers(0, 1 << 40))
def test_random_words_end_in_bhemus_own_errors(seed: int) -> None:
    execute(seed)


@campaign(10, 500)
@given(seed=st.integers(0, 1 << 40))
def test_the_same_words_end_the_same_way(seed: int) -> None:
    assert execute(seed) == execute(seed)
