"""What the lines of a program's code give away: Tensix words, and what they store to devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bhemu import memmap as mm
from bhemu.errors import Where
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.explore import reachable
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.riscv.assembly import NOP, jal, li, ttinsn
from bhemu.riscv.formats import Pushed, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix.frontend import FROM_MOP
from bhemu.tensix.insn import decode
from bhemu.tensix.observe import FIRST_CORE
from bhemu.why.findings import outside_helpers
from bhemu.why.firmware import in_firmware

_TP = 4  # the register that no compiler uses
_VALUES = 2  # of a line that are kept: one more than of a line that always gives away the same
Code = Mapping[int, tuple[int, ...]]  # by pc the instructions that stand there instead


@dataclass
class Act:
    """A line that pushes a word or stores to a device, with all copies that a compiler has made.

    `address`: where it stores, None for a word of the code itself; `thread`: that of a word;
    `values`: what it gives away, at most two; `held`: its instructions by pc; `first`: the number
    of its first action; `clock`: when that was, None where no log has it.
    """

    tile: Tile
    core: int
    where: Where
    address: int | None
    thread: int | None
    first: int
    clock: int | None
    values: tuple[int, ...] = ()
    held: dict[int, int] = field(default_factory=dict)

    @property
    def word(self) -> int | None:
        """The Tensix word that it pushes or puts into the template of a MOP, if always the same."""
        at, words = self.address, (mm.INSTRN_BUF_BASE, mm.INSTRN_BUF_END)
        if at is not None and mm.MOP_CFG_BASE <= at < mm.MOP_CFG_END:
            words = mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END
        pushes = at is None or words[0] <= at < words[1]
        return self.values[0] if pushes and len(self.values) == 1 else None

    def left_out(self) -> Code:
        """Without it."""
        return dict.fromkeys(self.held, (NOP,))

    def giving(self, value: int) -> Code:
        """With another value."""
        if self.address is None:
            return dict.fromkeys(self.held, (ttinsn(value),))
        load, rs2 = li(_TP, value), 31 << 20
        return {pc: (*load, word & ~rs2 | _TP << 20) for pc, word in self.held.items()}

    def beside(self, word: int, *, before: bool) -> Code:
        """With a word pushed before or behind it."""
        pushed = ttinsn(word)
        return {pc: (pushed, own) if before else (own, pushed) for pc, own in self.held.items()}

    def put(self, tile: Tile, code: Code, room: int) -> None:
        """Change a tile that has the same ELF; `room`: where instructions go that do not fit."""
        name, words = mm.CORE_NAMES[self.core], tile.state.l1.view("<u4")
        mine = self.tile.core[name].images
        for pc, instead in code.items():
            own = next(image for image in mine if image.lookup(pc))
            for image in tile.core[name].images:
                at = pc + image.offset - own.offset
                if image.data != own.data or words[at >> 2] != self.held[pc]:
                    continue
                if len(instead) == 1:
                    words[at >> 2] = instead[0]
                    continue
                words[at >> 2] = jal(0, room - at)
                for word in (*instead, jal(0, at + 4 - room - 4 * len(instead))):
                    words[room >> 2] = word
                    room += 4
        tile.state.flush[:] = 1


def acts(tile: Tile, log: Sequence[Entry], firmware: frozenset[bytes]) -> list[Act]:
    """The lines of a tile's code, not of firmware, that act in a run, in the order of its log."""
    found: dict[tuple[int, int], Act] = {}
    for number, (agent, value, pc, origin, clock) in enumerate(log):
        core, address, thread = agent - FIRST_CORE, origin, None
        if agent < FIRST_CORE:
            cores = (core for core in (agent + 1, 0) if tile.locate(core, pc)[0] is not None)
            core, address, thread = next(cores, -1), mm.INSTRN_BUF_BASE, agent
        cls = decode_riscv(tile.read32(pc)) if core >= 0 else None
        if cls is None or (thread is not None and origin == FROM_MOP):
            continue
        if not issubclass(cls, Pushed | Store):
            continue  # what a REPLAY plays of a MOP
        if (act := found.get((core, pc))) is None:
            at = None if issubclass(cls, Pushed) else address
            act = Act(tile, core, where_core(tile, core, pc), at, thread, number, clock)
            found[core, pc] = act
        if value not in act.values and len(act.values) < _VALUES:
            act.values += (value,)
    for core in range(1, len(mm.CORE_NAMES) - 1):  # MOP and REPLAY, which no log has
        own = {pc for known, pc in found if known == core}
        for pc in sorted(reachable(tile, core, own) - own):
            cls = decode_riscv(held := tile.read32(pc))
            value = cls.pushed(held) if cls and issubclass(cls, Pushed) else 0
            word = decode(value)
            if held and word and word.unit == "front" and tile.locate(core, pc)[0]:
                where = where_core(tile, core, pc)
                act = Act(tile, core, where, None, core - 1, len(log), None, (value,))
                found[core, pc] = act
    lines, callers = dict[object, Act](), dict[object, Where]()
    for (core, pc), act in found.items():
        if in_firmware(firmware, tile.core[mm.CORE_NAMES[core]], pc):
            continue
        if act.address is not None:  # an accessor: the line that calls it
            inner = core, act.where.function, act.where.file, act.where.line, act.where.inlined
            if inner not in callers:
                callers[inner] = outside_helpers(tile, act.where)
            act.where = callers[inner]
        line = act.where.file, act.where.line or pc
        key = core, line, act.address, act.thread, act.values
        lines.setdefault(key, act).held[pc] = tile.read32(pc)
    return sorted(lines.values(), key=lambda act: (act.first, act.core, min(act.held)))
