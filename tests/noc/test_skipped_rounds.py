"""Tiles that only poll are left out of rounds; nothing that can be seen depends on it.

The same programs run with such tiles left out and with every round run.
"""

import random
from typing import Any

import noc_program as p
import numpy as np
import pytest
from fuzz.campaign import LONG
from riscv.lockstep.pair import OWN
from riscv.polling_programs import CLOCK, DATA, FLAGS, STREAM, programs, start

from bhemu import Chip
from bhemu.errors import NoProgress
from bhemu.machine.history import Mark, Marks
from bhemu.memmap import CORE_NAMES
from bhemu.noc.grid import XY
from bhemu.noc.record import SAVED
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import A0, A1, PARK, ZERO, addi, bne, branch, code, jal, li, lw
from bhemu.tensix.state import MEMBERS

# `core`: whose turn it was last, which nothing reads between turns.
OTHER = {"core", "loaded", "noc_arrived"} | OWN
VISIBLE = [member.name for member in MEMBERS if member.name not in OTHER]
POLLERS: tuple[XY, ...] = ((1, 2), (1, 3), (2, 3))
SENDER: XY = (2, 2)
VALUES, INTO = 0x98000, 0xA0000  # what the sender writes, 32 bytes of each; where it reads to


class Sender:
    """A core that works between requests that wake pollers, or look at their registers."""

    def __init__(self, r: random.Random) -> None:
        self.r = r

    def request(self) -> list[int]:
        """A write, an atomic or a read at a poller; most of them to what it polls."""
        r, to, own = self.r, p.hi(self.r.choice(POLLERS)), p.hi(SENDER)
        flag = FLAGS + 4 * r.randrange(5)
        word = r.choice((flag, DATA))
        value = (VALUES + 32 * r.randrange(20) + word % 16, own)
        answer = (INTO, own)
        kinds = (
            lambda: p.send(p.WRITE, value, (word, to)),
            lambda: p.send(p.WRITE | p.MULTICAST, value, (word, p.box((1, 2), (2, 3)))),
            lambda: p.send(p.INLINE, (STREAM, to), answer, data=r.randrange(9)),
            lambda: p.send(p.ATOMIC, (flag, to), answer, p.INCREMENT, data=1),
            lambda: p.send(p.READ, (r.choice((CLOCK, flag)), to), (INTO + flag % 16, own)),
        )
        return r.choice(kinds)()

    def program(self, steps: int) -> bytes:
        """Requests, each after a while."""
        words: list[int] = []
        for _ in range(steps):
            times = self.r.choice((1, 30, 500, 4000, 30_000))
            words += [*li(A0, times), addi(A0, A0, -1), bne(A0, ZERO, -4), *self.request()]
        return code(words, PARK)


def chips(seed: int, **options: Any) -> list[Chip]:
    """Two chips with the same programs: tiles left out, and not."""
    r = random.Random(seed)
    texts = {xy: programs(r.randrange(1 << 30), 25) for xy in POLLERS}
    texts[SENDER] = {"brisc": Sender(r).program(25)}
    values = np.repeat(np.arange(20, dtype="<u4"), 8).tobytes()
    made = [Chip(ub="silicon", livelock=0, **options) for _ in range(2)]
    for chip, skipping in zip(made, (1, 0), strict=True):
        chip.network.state.skipping[0] = skipping
        chip.write(*SENDER, VALUES, values)
        for xy, cores in texts.items():
            start(chip.tile[xy], cores)
    return made


def differences(made: list[Chip]) -> list[str]:
    """What of two chips differs."""
    states = [chip.network.state for chip in made]
    found = [
        member.name
        for member in SAVED
        if not np.array_equal(*(getattr(state, member.name) for state in states))
    ]
    for one, other in zip(*(chip.tiles() for chip in made), strict=True):
        for name in VISIBLE:
            if not np.array_equal(getattr(one.state, name), getattr(other.state, name)):
                found.append(f"{one.xy} {name}")
        for core in CORE_NAMES:
            if list(one.core[core].regs) != list(other.core[core].regs):
                found.append(f"{one.xy} registers of {core}")
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("quantum", "last"), [(7, 12), (64, 18), (1000, 3)])
def test_random_pollers(engine: str, quantum: int, last: int) -> None:
    """In pieces, with a host that writes what they read, on threads, and late.

    `last`: a seed where one tile reaches a limit in the round in which another is to be translated.
    """
    skipped = 0
    for seed in range(40) if LONG else (0, 1, last):
        r = random.Random(1000 * quantum + seed)
        more: dict[str, Any] = r.choice(({}, {"threads": 2}, {"delivery": "late"}))
        made = chips(seed, engine=engine, quantum=quantum, **more)
        for piece in range(25):
            how = r.choice(({"limit": r.choice((1, 333, 9000))}, {"rounds": r.randrange(1, 80)}))
            stops = [chip.run(**how) for chip in made]
            assert stops[0] == stops[1]
            assert differences(made) == [], f"quantum {quantum}, seed {seed}, piece {piece}"
            skipped += int(made[0].network.state.skip_until.any())
            if r.random() < 0.2:
                xy, flag, value = r.choice(POLLERS), r.randrange(5), r.randrange(20)
                for chip in made:
                    chip.write32(*xy, FLAGS + 4 * flag, value)
    assert skipped


def polling(value: int) -> bytes:
    """Wait until DATA is `value`, then poll it for ever in a loop of three instructions."""
    wait = [*li(A1, DATA), lw(A0, A1), addi(A0, A0, -value), bne(A0, ZERO, -8)]
    return code(wait, [lw(A0, A1), addi(A0, A0, 0), branch(0, ZERO, ZERO, -8)])


def waiting(skipping: int) -> Chip:
    """Two pollers and a core that counts."""
    chip = Chip(livelock=0, quantum=100)
    chip.network.state.skipping[0] = skipping
    counts = code(li(A0, 0), addi(A0, A0, 1), jal(ZERO, -4))
    for xy, text in ((POLLERS[0], polling(1)), (POLLERS[1], polling(2)), (SENDER, counts)):
        tile = chip.tile[xy]
        tile.write(0, text)
        tile.core["brisc"].set_reset_pc(0)
        tile.core["brisc"].release()
    return chip


def test_a_callable_sees_every_tile_where_it_is() -> None:
    seen: list[list[tuple[int, ...]]] = []
    for skipping in (1, 0):
        chip, rows = waiting(skipping), []

        def note(it: Chip, rows: list[tuple[int, ...]] = rows) -> bool:
            rows.append(tuple(tile.core["brisc"].retired for tile in it.tiles()))
            return len(rows) == 50

        assert chip.run(note).reason == "until"
        seen.append(rows)
    assert seen[0] == seen[1]


def test_a_hang_is_found_as_of_tiles_that_run() -> None:
    texts = []
    for skipping in (1, 0):
        chip = waiting(skipping)
        chip.tile[SENDER].core["brisc"].hold()
        chip.loop.rounds.livelock = 500
        with pytest.raises(NoProgress) as caught:
            chip.run(timeout_s=60)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "(1,2) brisc waits for L1 word 0x90000 to become 1 (" in texts[0]
    assert "(1,3) brisc waits for L1 word 0x90000 to become 2 (" in texts[0]


def test_a_tile_that_is_left_out_has_no_turns() -> None:
    """Otherwise the comparisons above would show nothing."""
    chip = waiting(1)
    state = chip.network.state
    chip.run(rounds=20)
    assert chip.network.call("run_rounds", 50) == 0
    assert [int(n) for n in (state.skip_from >= 0).nonzero()[0]] != []
    left_out = [tile for tile in chip.tiles() if tile.xy != SENDER]
    before = [tile.core["brisc"].retired for tile in left_out]
    chip.network.call("run_rounds", 50)
    assert [tile.core["brisc"].retired for tile in left_out] == before
    chip.network.call("catch_up", 0)
    assert all(tile.core["brisc"].retired > n for tile, n in zip(left_out, before, strict=True))


class Marking(Marks):
    """Marks at every pause, for which all tiles stand where they would be."""

    def run_pauses(self) -> None:
        self._seconds = -1.0
        super().run_pauses()

    def mark(self) -> Mark:
        assert (self.loop.rounds.owner.network.state.skip_from < 0).all()
        return super().mark()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["end", "delivery", "turn", "mark"])
def test_code_that_is_translated_while_a_tile_catches_up(how: str, threads: int) -> None:
    """The engine asks Python for the page in the middle of the rounds that are run."""
    stopped = 0
    for left in range(100, 1500, 200):  # instructions until the page is translated
        made = []
        for skipping in (1, 0):
            chip = Chip(livelock=0, quantum=100, engine="unicorn", threads=threads)
            state = chip.network.state
            state.skipping[0] = skipping
            nops = [addi(ZERO, ZERO, 0)] * 34
            loop = code(li(A1, DATA), [lw(A0, A1), *nops, branch(0, ZERO, ZERO, -4 * 35)])
            send = p.send(p.WRITE, (VALUES, p.hi(SENDER)), (VALUES, p.hi(POLLERS[0])))
            later = [*li(A0, 3500), addi(A0, A0, -1), bne(A0, ZERO, -4)]
            texts = {POLLERS[0]: loop, SENDER: code(later, send if how == "delivery" else [], PARK)}
            for xy, text in texts.items():
                start(chip.tile[xy], {"brisc": text})
            chip.run(rounds=40)
            polls = chip.tile[POLLERS[0]].state
            polls.page_count[0, :] = polls.translate_after[0] - left
            if how == "mark":
                chip.loop.observer = Marking(chip.loop)
            if how == "turn":
                polls.limit[0] = polls.clock[0] + 7000
            chip.run(rounds=53 + 34 * (how != "end"))
            polls.limit[0] = -1
            made.append(chip)
        assert differences(made) == [], left
        stopped += int(made[0].tile[POLLERS[0]].state.translated[0])
    assert stopped
