"""Where the code of a program acts: the instructions that push a word or store to a device."""

from dataclasses import dataclass, field

from bhemu.machine.core import Core
from bhemu.machine.hang.explore import reachable
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.memmap import CORE_NAMES, INSTRN_BUF_BASE, INSTRN_BUF_END
from bhemu.program.schema import Program
from bhemu.riscv.formats import Pushed, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.frontend import FROM_MOP
from bhemu.tensix.observe import FIRST_CORE
from bhemu.tensix.state import CORES

_TAKEN = 64
KEPT = frozenset((8, 9, *range(18, 28)))  # registers that a function leaves as they were
MOST = 400_000  # entries of the log that are looked at


@dataclass
class Site:
    """An instruction that acts: of core `core`, at `pc`; what it pushed or stored, in order.

    `address` is None for `.ttinsn`; `thread` is that of a pushed word; `taken`: more of the values.
    """

    core: int
    pc: int
    address: int | None
    thread: int | None
    values: list[int] = field(default_factory=list)
    first: int = 0  # number of its first action in the log
    last: int = 0
    count: int = 0
    clock: int | None = None  # of the first action
    taken: list[int] = field(default_factory=list)

    def add(self, value: int, number: int, clock: int | None) -> None:
        """It acted once more."""
        if not self.values:
            self.first, self.clock = number, clock
        if value not in self.values and len(self.values) < 8:
            self.values.append(value)
        if len(self.taken) < _TAKEN and value not in self.taken:
            self.taken.append(value)
        self.last = number
        self.count += 1


@dataclass(frozen=True)
class Code:
    """The code of a tile's cores: for each the instructions that its paths may reach."""

    words: dict[int, dict[int, int]]  # core -> pc -> word

    def owner(self, pc: int) -> int | None:
        """The core whose code `pc` is."""
        return next((core for core, words in self.words.items() if pc in words), None)

    def free_registers(self, core: int) -> list[int]:
        """Registers that no instruction of the core names; last those that a caller does not keep.

        Firmware calls a kernel and goes on with what it had in the others.
        """
        used = {0, 1, 2, 3}
        for word in self.words[core].values():
            used |= {word >> 7 & 31, word >> 15 & 31, word >> 20 & 31}
        free = [n for n in range(1, 32) if n not in used]
        return sorted(free, key=lambda n: n not in KEPT) or [4]


def code_of(tile: Tile, log: list[Entry], others: frozenset[bytes] = frozenset()) -> Code:
    """The code that the cores may reach, and what a run reached whose log this is.

    others: ELFs that are not looked at.
    """
    words = tile.state.l1.view("<u4")
    seen: dict[int, set[int]] = {c: set() for c in range(CORES)}
    for pc, who in {(pc, who) for who, _, pc, *_ in log}:
        # A word of T0 may be brisc's; ncrisc stores only.
        core = who - FIRST_CORE if who >= FIRST_CORE else who + 1
        if tile.core[CORE_NAMES[core]].locate(pc)[0] is not None:
            seen[core] |= {pc, _start(tile.core[CORE_NAMES[core]], pc)}
        elif who == 0:
            seen[0].add(pc)
    found = {
        c: {int(pc): int(words[pc >> 2]) for pc in reachable(tile, c, seen[c])}
        for c in range(CORES)
    }
    for c, known in found.items():
        foreign = [one for one in tile.core[CORE_NAMES[c]].images if one.data in others]
        for pc in [pc for pc in known if any(one.lookup(pc) for one in foreign)]:
            del known[pc]
    return Code({c: known for c, known in found.items() if known})


def _start(core: Core, pc: int) -> int:
    """Where the function begins that an instruction stands in: kernels are called indirectly."""
    offsets = (found[1] for image in core.images if (found := image.lookup(pc)))
    return pc - next(offsets, 0)


def firmware_of(program: Program) -> frozenset[bytes]:
    """The ELFs of its firmware, which is taken to be right."""
    elfs = {} if program.firmware is None else program.firmware.elfs
    return frozenset(path.read_bytes() for path in elfs.values())


def sites(code: Code, log: list[Entry]) -> list[Site]:
    """The instructions that acted in a run whose log this is, in the order of their first time."""
    found: dict[tuple[int, int], Site] = {}
    for number, (who, value, pc, origin, clock) in enumerate(log):
        if who >= FIRST_CORE:
            core: int | None = who - FIRST_CORE
            if pc not in code.words.get(who - FIRST_CORE, ()):
                continue
            site = Site(who - FIRST_CORE, pc, origin, None)
        elif origin == FROM_MOP:
            continue
        else:
            core = code.owner(pc)
            if core is None:
                continue
            cls = decode(code.words[core][pc])
            pushed = cls is not None and issubclass(cls, Pushed)
            if not pushed and (cls is None or not issubclass(cls, Store)):
                continue  # what REPLAY plays of a MOP
            site = Site(core, pc, None if pushed else INSTRN_BUF_BASE, who)
        found.setdefault((core or 0, pc), site).add(value, number, clock)
    for core, words in code.words.items():  # MOP and REPLAY, which the front end keeps
        for pc, word in words.items():
            cls = decode(word)
            if cls is not None and issubclass(cls, Pushed) and (core, pc) not in found and word:
                site = found[core, pc] = Site(core, pc, None, max(core - 1, 0))
                site.add(cls.pushed(word), len(log), None)
    return sorted(found.values(), key=lambda site: (site.first, site.core, site.pc))


def name_of(core: int) -> str:
    """The core's name."""
    return CORE_NAMES[core]


def pushes(site: Site) -> bool:
    """Whether what it gives away is a Tensix word for the FIFO."""
    return site.address is None or INSTRN_BUF_BASE <= site.address < INSTRN_BUF_END
