"""One walk of a tile that tells both orders what every step touches, and which words are polled."""

import itertools
from typing import Any

import numpy as np

from bhemu.launch.session import data_of
from bhemu.machine.machine import Chip
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.riscv.formats import (
    Atomic,
    Branch,
    Csr,
    IndirectJump,
    Jump,
    Load,
    NotModelled,
    Store,
)
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.ttinsn import TTINSN
from bhemu.why.check import Context
from bhemu.why.network.unanswered import Unanswered
from bhemu.why.ordering import effects
from bhemu.why.ordering.conflicts import Races
from bhemu.why.ordering.effects import Range
from bhemu.why.ordering.templates import Templates
from bhemu.why.walk import MOST, Access, ChipWalk, Instruction, Walk, Word

_CHIPS = 150_000  # steps of a tile of a chip
_TILES = 4  # of a chip, more where more kinds of them are
_HANGS = 20_000  # steps of a program that goes on for ever
_BEHIND = 5000  # steps behind the end of a program
_LOOK, _CLOSE = 8, 4  # instructions within which a polled word is compared, behind another one
_ACTS = TTINSN | Store | Jump | IndirectJump | Atomic | Csr | NotModelled


class Recorder:
    """One walk for both orders: `plain` and `units`."""

    def __init__(self, tile: Tile, chip: Chip | None = None) -> None:
        self.tile, self._chip = tile, chip
        self.polled: set[int] = set()  # words of L1 by which cores synchronize
        self._counters: set[int] = set()  # words that somebody may count in, and has not so far
        self.plain = Races(tile, self.polled, self._counters, units=False)
        self.units = Races(tile, self.polled, self._counters, units=True)
        self.templates = Templates(tile, self.plain.order)
        self.unanswered = Unanswered(tile)
        self.ended = False  # the walk has come to the program's end
        self.steps: Walk
        self._polls: dict[tuple[int, int], tuple[int, int]] = {}
        self._spins: dict[int, bool] = {}
        self._counts: dict[int, bool] = {}
        self._stored: set[int] = set()  # words that cores have stored to
        self._cfg = tile.state.cfg.copy()

    def given(self, words: list[Range]) -> None:
        """Tell both which words of L1 PROGRAM.toml sets."""
        self.plain.given = self.units.given = words

    def walk(self, most: int, outputs: list[Range]) -> bool:
        """To the end of the program and on for a while; False: `most` steps did not reach it."""
        walk = self.steps = Walk(
            self.tile, instruction=self._instruction, before=self._before, after=self._after
        )
        if self._chip is not None:
            self.ended = ChipWalk(self._chip, [walk]).run(most)
            return self.ended
        ended = walk.run(most)
        words = [at for _, at, _ in self.tile.loop.end.words]
        if ended and words and self.tile.loop.error is None:
            for races in (self.plain, self.units):
                races.ended(words, outputs)
            walk.run(_BEHIND, "idle")
        return ended

    def _instruction(self, step: Instruction) -> None:
        access, found = step.access(), effects.NOTHING
        self.unanswered.instruction(step, access)
        if access is not None and not access.private:
            found = effects.of_access(step.core, access, self._cfg, self.tile.state)
            if access.address < L1_SIZE and access.reads:
                if self._polling(step, access):
                    self.polled.add(access.address & ~3)
                elif self._counts[step.pc]:
                    self._counters.add(access.address & ~3)
            if access.writes:
                self._stored.add(access.address & ~3)
        for races in (self.plain, self.units):
            races.instruction(step, access, found)
        self.templates.instruction(step, access)
        self._cfg[:] = self.tile.state.cfg

    def _before(self, step: Word) -> effects.Before | None:
        return effects.before_word(self.tile.state, step.thread, step.word)

    def _after(self, step: Word, before: effects.Before | None) -> None:
        found = effects.NOTHING if before is None else effects.after_word(self.tile.state, before)
        for races in (self.plain, self.units):
            races.word(step, found)
        self._cfg[:] = self.tile.state.cfg

    @property
    def polls(self) -> list[tuple[int, int, int]]:
        """(core, pc, address) of loads of L1 that look at one place until it changes."""
        return [
            (core, pc, at) for (core, pc), (at, _) in self._polls.items() if at & ~3 in self.polled
        ]

    def _polling(self, step: Instruction, access: Access) -> bool:
        """Whether a load looks at one place until it changes."""
        if step.pc not in self._spins:
            self._spins[step.pc] = is_polled(self.tile, step.pc)
            self._counts[step.pc] = is_one_of_two(self.tile, step.pc)
        last, times = self._polls.get((step.core, step.pc), (-1, 0))
        times = times + 1 if last == access.address else 1
        self._polls[step.core, step.pc] = access.address, times
        counts = self._counts[step.pc] and access.address & ~3 in self._stored
        return self._spins[step.pc] or counts or times > 3


def recorded(context: Context) -> list[Recorder]:
    """The walk of a program, on a chip of some tiles of each kind; checks share it."""
    if "recorders" not in context.facts:
        few = filter(context.steps, context.few(context.symptom.machine, 2 * _CHIPS))
        most = max(_TILES, len(context.kinds))
        chosen = {tile.xy for tile in itertools.islice(few, most)}
        context.facts["recorders"] = [_recorded(context, xy) for xy in sorted(chosen)]
    found: list[Recorder] = context.facts["recorders"]
    return found


def _recorded(context: Context, xy: tuple[int, int]) -> Recorder:
    machine = context.launch(engine="compiled")
    tile = machine.tile[xy] if context.is_chip else machine
    recorder = Recorder(tile, machine if context.is_chip else None)
    specs = () if context.is_chip else context.program.outputs
    recorder.given(given_words(context, tile))
    outputs = [(at, at + spec.size) for spec in specs for at in [tile.address(spec.at)]]
    most = _CHIPS if context.is_chip else MOST
    recorder.walk(_HANGS if context.symptom.hangs else most, outputs)
    context.work.walked([recorder.steps])
    return recorder


def given_words(context: Context, tile: Tile) -> list[Range]:
    """The words of L1 that [[set]] of PROGRAM.toml puts something into for a tile."""
    found = []
    for part in context.program.placed():
        for spec in part.sets if not context.is_chip or tile.xy in part.at else ():
            low = resolve(tile, spec.at)
            for at in range(low, low + len(data_of(spec, tile, part)), 4):
                if at < L1_SIZE and tile.state.l1[at : at + 4].any():
                    found.append((at, at + 4))
    return found


def is_polled(tile: Tile, pc: int) -> bool:
    """Whether what the load at `pc` loads is looked at by a branch first: a word that is polled.

    Or what is computed from it decides a branch back to the load, over nothing that acts.
    """
    return comparison(tile, pc) is not None or spin(tile, pc) is not None


def spin(tile: Tile, pc: int) -> tuple[int, int] | None:
    """First and last pc of the loop that a load waits in for its word, if it stands in one.

    Such a loop loads, computes and branches, and the load is of one place.
    """
    words = tile.state.l1[pc : pc + 4 * _LOOK].view(np.uint32).tolist()
    base, made = words[0] >> 15 & 31, {words[0] >> 7 & 31}
    for n, word in enumerate(words[1:], 1):
        cls: Any = decode(word)
        if not _is_quiet(cls, word, base):
            return None
        text = cls.text or ""
        used = [getattr(cls, name).get(word) for name in ("rs1", "rs2") if name in text]
        decides = not made.isdisjoint(used)
        if issubclass(cls, Branch):
            head, end = pc + 4 * n + int(cls.offset.get(word)), pc + 4 * n
            if decides and max(pc - 4 * _LOOK, 0) <= head <= pc:
                before = tile.state.l1[head:pc].view(np.uint32).tolist()
                return (head, end) if all(_is_quiet(decode(o), o, base) for o in before) else None
            continue
        rd = {cls.rd.get(word)} if "rd" in text else set()
        made = made | rd if decides else made - rd
    return None


def _is_quiet(cls: Any, word: int, base: int) -> bool:
    """Whether an instruction does nothing that others see, and keeps the register `base`."""
    if cls is None or issubclass(cls, _ACTS):
        return False
    return not ("rd" in (cls.text or "") and base and cls.rd.get(word) == base)


def is_one_of_two(tile: Tile, pc: int) -> bool:
    """Whether a branch looks first at what is computed from two words, one of them that of `pc`.

    So cores wait whose queue has a counter of each side.
    """
    words = tile.state.l1[pc - 4 * _CLOSE : pc + 4 * _LOOK].view(np.uint32).tolist()
    loaded: dict[int, set[int]] = {}  # by register, the loads that it is computed from
    for n, word in enumerate(words):
        cls: Any = decode(word)
        if cls is None or issubclass(cls, TTINSN | Store | Jump | IndirectJump):
            loaded = {}
            if n >= _CLOSE:
                return False
            continue
        names = [name for name in ("rs1", "rs2") if name in (cls.text or "")]
        read = [loaded.get(getattr(cls, name).get(word), set()) for name in names]
        made = {n} if issubclass(cls, Load) else set().union(*read)
        if issubclass(cls, Branch) and n > _CLOSE:
            return _CLOSE in made and len(made) > 1
        if "rd" in (cls.text or "") and cls.rd.get(word):  # x0 keeps nothing
            loaded[cls.rd.get(word)] = made
    return False


def comparison(tile: Tile, pc: int) -> tuple[int, int] | None:
    """The branch that looks at a loaded word first: its pc, the register that it compares with."""
    words = tile.state.l1[pc : pc + 4 * _LOOK].view(np.uint32).tolist()
    loaded = words[0] >> 7 & 31
    for n, word in enumerate(words[1:], 1):
        cls = decode(word)
        if cls is None or cls is TTINSN:
            return None
        if issubclass(cls, Branch):
            pair = [cls.rs1.get(word), cls.rs2.get(word)]
            return (pc + 4 * n, pair[1 - pair.index(loaded)]) if loaded in pair else None
        if issubclass(cls, Store | Jump | IndirectJump) or _uses(cls, word, loaded):
            return None
    return None


def _uses(cls: Any, word: int, register: int) -> bool:
    """Whether an instruction reads or overwrites a register."""
    names = [name for name in ("rd", "rs1", "rs2") if hasattr(cls, name)]
    return any(getattr(cls, name).get(word) == register for name in names)
