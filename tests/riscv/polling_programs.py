"""Random programs that mostly poll, with a little work between two polls."""

import random

from bhemu import memmap as mm
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    A3,
    PARK,
    T0,
    T1,
    T2,
    ZERO,
    addi,
    bne,
    branch,
    code,
    jal,
    lw,
    sw,
    tt,
    word,
)
from bhemu.riscv.assembly import li as _li
from bhemu.riscv.isa import rv32i

FLAGS = 0x80000  # a word per core, which counts its steps up
DATA = 0x90000
START = {"brisc": 0, "trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000, "ncrisc": 0x40000}
STREAM = mm.OVERLAY_BASE + 0x8028  # 8: messages received, as kernels count them
SEMAPHORES = mm.PC_BUF_BASE + 0x20
CLOCK = mm.DEBUG_BASE + 0x1F0
MCYCLE, MINSTRET = 0xB00, 0xB02
_BEQ, _BLTU, _BGEU = 0, 6, 7


def li(rd: int, value: int) -> list[int]:
    return _li(rd, value & 0xFFFFFFFF)


FENCE = rv32i.FENCE.match


class Poller:
    """Steps of one core; each is announced in its flag word."""

    def __init__(self, r: random.Random, core: int) -> None:
        self.r, self.core, self.steps = r, core, 0

    def _filler(self) -> list[int]:
        """What a pass may do beside its load: all of it comes back to the same registers."""
        choices = [
            [FENCE],
            [addi(ZERO, ZERO, 0)],
            [addi(T1, A0, 3), word("andi", T1, T1, 12)],
            [lw(T1, A3, 4 * self.r.randrange(16))],
            [word("lui", T2, 5), word("sub", T1, T2, A0)],
            [addi(T2, ZERO, 2), addi(T2, T2, -1), bne(T2, ZERO, -4)],
        ]
        return [w for _ in range(self.r.randrange(3)) for w in self.r.choice(choices)]

    def wait(self, address: int, value: int) -> list[int]:
        """Until the word at `address` is at least `value`."""
        body = [*self._filler(), lw(A0, A1), *self._filler()]
        if self.r.random() < 0.3:  # a device register as well: a look that ends no turn early
            body += [lw(T1, T0), *self._filler()]
        other = self.r.choice((STREAM + 0x2000, mm.DEBUG_BASE + 0x1B0, mm.LOCAL_BASE + 0x100))
        setup = [*li(A1, address), *li(A2, value), *li(A3, DATA), *li(T0, other)]
        return [*setup, *body, branch(_BLTU, A0, A2, -4 * len(body))]

    def until_flag(self, others: int) -> list[int]:
        """Until another core has come as far as this one was a while ago."""
        other = self.r.choice([c for c in range(5) if c != self.core])
        return self.wait(FLAGS + 4 * other, max(0, min(self.steps, others) - self.r.randrange(3)))

    def delay(self) -> list[int]:
        """Count down; many instructions without a store, and no pass like another."""
        return [*li(A0, self.r.choice((3, 40, 700))), addi(A0, A0, -1), bne(A0, ZERO, -4)]

    def clock(self) -> list[int]:
        """Until some time has passed."""
        setup = [*li(A1, CLOCK), lw(A2, A1), addi(A2, A2, self.r.choice((5, 300, 2000)))]
        return [*setup, *self._filler(), lw(A0, A1), branch(_BLTU, A0, A2, -4)]

    def counters(self) -> list[int]:
        """The same with the core's own counters."""
        number = self.r.choice((MCYCLE, MINSTRET))
        read = word("csrrs", A0, number, ZERO)
        return [read, addi(A2, A0, 200), read, branch(_BLTU, A0, A2, -4)]

    def words(self) -> list[int]:
        """A TRISC's thread posts a semaphore, another's waits for it; ncrisc and brisc store."""
        stream = [*li(A1, STREAM), lw(A0, A1), addi(A0, A0, 1), sw(A0, A1)]
        if self.core in (0, 4):
            return stream
        post, take = tt("SEMPOST", sem_sel=2), tt("SEMGET", sem_sel=2)
        held = tt("SEMWAIT", sem_sel=2, stall_res=0x1FF, wait_sem_cond=1)
        look = [*li(A1, SEMAPHORES + 4), lw(A0, A1), branch(_BEQ, A0, ZERO, -4)]
        return self.r.choice(([post], [post, *look], [held, take, post], [post, tt("NOP")], stream))

    def step(self) -> list[int]:
        """One step, then the flag."""
        kinds = (self.until_flag, self.until_flag, self.delay, self.clock, self.counters)
        act = self.r.choice((*kinds, self.words))
        done = act(self.steps + 1) if act == self.until_flag else act()  # type: ignore[call-arg]
        self.steps += 1
        return [*done, *li(A1, FLAGS + 4 * self.core), *li(A2, self.steps), sw(A2, A1)]

    def program(self, steps: int) -> bytes:
        """`steps` steps, then it stands still or polls for ever."""
        body = [w for _ in range(steps) for w in self.step()]
        end = self.r.choice(([PARK], [*li(A1, DATA), lw(A0, A1), jal(ZERO, -4)]))
        start = [tt("SEMINIT", max_value=15, init_value=2, sem_sel=2)] if self.core == 1 else []
        return code(start, body, end)


def start(tile: Tile, texts: dict[str, bytes]) -> None:
    """Put the programs where they begin and release their cores."""
    for core, text in texts.items():
        tile.write(START[core], text)
        tile.core[core].set_reset_pc(START[core])
        tile.core[core].release()


def programs(seed: int, steps: int) -> dict[str, bytes]:
    """A program for each core."""
    r = random.Random(seed)
    return {core: Poller(r, i).program(steps) for i, core in enumerate(CORE_NAMES)}
