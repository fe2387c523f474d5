"""Edits of a program that are tried as repairs, and the places where they can stand."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bhemu.errors import Where
from bhemu.machine.core import Core
from bhemu.machine.error_text import instruction, where_core
from bhemu.machine.hang.explore import reachable
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry
from bhemu.memmap import CORE_NAMES, INSTRN_BUF_BASE, INSTRN_BUF_END
from bhemu.program.schema import Program
from bhemu.riscv.assembly import SP, addi, jal, li, lw, sw
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Load, Pushed, Store, Upper
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import AUIPC, XOR
from bhemu.riscv.isa.ttinsn import TTINSN
from bhemu.tensix.frontend import FROM_MOP
from bhemu.tensix.observe import FIRST_CORE
from bhemu.tensix.state import CORES

# An edit of a program's code: instructions replaced, left out or added before it runs.

NOP = addi(0, 0, 0)
xor = XOR.assemble


@dataclass(frozen=True)
class Edit:
    """At each pc of `code` other instructions stand in place of that one.

    A jump among several is written for that pc: it goes on to the same place from where it is put.
    `text`: the advice; `cost`: how far it goes, less is likelier; `given`: the value comes from the
    caller of a helper; `passed`: it may be one of the helper's arguments, however deep the calls;
    `common`: it changes a line of a header in the code of several cores; `datum`: the word of a
    table that it changes.
    """

    core: int
    code: tuple[tuple[int, tuple[int, ...]], ...]
    text: str
    cost: float
    given: bool = False
    passed: bool = False
    common: bool = False
    datum: int | None = None

    @property
    def at(self) -> int:
        """The first pc."""
        return self.code[0][0]

    def apply(self, tile: Tile, room: int) -> None:
        """Put it into L1; `room`: where instructions go that do not fit."""
        words = tile.state.l1.view("<u4")
        for pc, instead in self.code:
            if len(instead) == 1:
                words[pc >> 2] = instead[0]
                continue
            words[pc >> 2] = jal(0, room - pc)
            for one in instead:
                words[room >> 2] = _placed(one, pc, room)
                room += 4
            words[room >> 2] = jal(0, pc + 4 - room)
            room += 4


def _placed(word: int, pc: int, at: int) -> int:
    """An instruction that was written for `pc`, at another address."""
    cls = decode(word)
    if cls is None or not issubclass(cls, Jump):
        return word
    return int(cls.offset.put(word, cls.offset.get(word) + pc - at))


def keeping(edit: Edit, registers: frozenset[int]) -> Edit:
    """The edit without a trace in registers: what it adds saves them below the stack pointer."""
    if edit.datum is not None:
        return edit
    return replace(edit, code=tuple((pc, _keeping(words, registers)) for pc, words in edit.code))


def _keeping(words: tuple[int, ...], registers: frozenset[int]) -> tuple[int, ...]:
    decoded = [decode(word) for word in words]
    if any(cls is None or issubclass(cls, Branch | Jump | IndirectJump) for cls in decoded):
        return words
    if any(word >> 7 & 31 == SP for word in words):
        return words
    added = [
        word >> 7 & 31
        for word, cls in zip(words, decoded, strict=True)
        if not issubclass(cls or Store, Store) and word >> 7 & 31 in registers
    ]
    used = list(dict.fromkeys(added))
    saved = [sw(one, SP, -4 * n) for n, one in enumerate(used, 1)]
    return (*saved, *words, *(lw(one, SP, -4 * n) for n, one in enumerate(used, 1)))


def moves(word: int) -> bool:
    """Whether an instruction does the same elsewhere."""
    cls = decode(word)
    if cls is None:
        return False
    return not issubclass(cls, Branch | Jump | IndirectJump | Upper) or (
        issubclass(cls, Upper) and cls is not AUIPC
    )


def pushing(word: int) -> int:
    """The instruction that pushes a Tensix word."""
    return int(TTINSN.assemble(word))


def storing(word: int, value: int, free: list[int]) -> tuple[int, ...]:
    """In place of store `word`: the same of another value, in a register that nobody uses."""
    return (*li(free[-1], value), _stored(word, free[-1]))


def xoring(word: int, mask: int, free: list[int]) -> tuple[int, ...]:
    """In place of store `word`: the same with some bits of the value the other way round."""
    register = free[-1]
    return (*li(register, mask), xor(register, register, word >> 20 & 31), _stored(word, register))


def _stored(word: int, register: int) -> int:
    """Store `word` of another register."""
    cls = decode(word)
    assert cls is not None
    assert issubclass(cls, Store)
    return int(cls.assemble(register, cls.rs1.get(word), cls.imm.get(word)))


def alternatives(
    value: int, width: int, known: frozenset[int] = frozenset()
) -> Iterator[tuple[int, float]]:
    """Values that may have been meant, and how far away each is: those `known` are near."""
    most = (1 << width) - 1
    seen = {value}
    near = [value + 1, value - 1, 0, 2 * value, value // 2, 1]
    flips = [value ^ 1 << bit for bit in range(width)]
    low = value & -value  # what a number of such steps is counted in
    some = [value + low, value - low, 4 * value, value // 4, most, *(1 << n for n in range(3, 11))]
    some = list(range(most + 1)) if width <= 4 else some
    for far, group in enumerate((known, near, flips, some)):
        for one in group:
            if 0 <= one <= most and one not in seen:
                seen.add(one)
                yield one, far / 100


# Where the code of a program acts: the instructions that push a word or store to a device.

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


# Which instructions use what another one computes, along every path of the code.

_DEEPEST = 8  # results of results


def readers(words: Mapping[int, int], pc: int) -> Iterator[int]:
    """The instructions that may read the result of the one at `pc`, until it is replaced."""
    result, todo, seen = words[pc] >> 7 & 31, [pc + 4], set[int]()
    while todo and result:
        at = todo.pop()
        cls: Any = decode(words[at]) if at in words else None
        if at in seen or cls is None:
            continue
        seen.add(at)
        names = [name for name in ("rs1", "rs2") if name in (cls.text or "")]
        if result in [getattr(cls, name).get(words[at]) for name in names]:
            yield at
        writes = not issubclass(cls, Store | Branch)
        if issubclass(cls, IndirectJump) or (writes and words[at] >> 7 & 31 == result):
            continue
        if issubclass(cls, Branch | Jump):
            todo.append(at + cls.offset.get(words[at]))
        if not issubclass(cls, Jump) or words[at] >> 7 & 31:
            todo.append(at + 4)


def computed_for(words: Mapping[int, int], pc: int, line: Callable[[int], int | None]) -> set[int]:
    """Its readers that have a line; of others the readers of what they compute."""
    found, seen, todo = set[int](), set[int](), [(pc, 0)]
    while todo:
        at, depth = todo.pop()
        for one in readers(words, at):
            if line(one):
                found.add(one)
            elif depth < _DEEPEST and one not in seen:
                seen.add(one)
                todo.append((one, depth + 1))
    return found


# The source line of an instruction: the caller's where the compiler inlined a library.

_AHEAD, _CLOSE = 16, 6  # instructions
_OVER_ONE = 8  # bytes that a branch goes on which leaves out one instruction
_SHARED = 0.02  # cost of a change in several cores
_HEADERS = (".h", ".hpp", ".hh", ".inc")


def _at(where: Where, other: Where) -> Where:
    """An instruction with the source of another one."""
    return replace(
        where, function=other.function, file=other.file, line=other.line, inlined=other.inlined
    )


def other_lines(where: Where, used: Where) -> bool:
    """Whether a place stands at none of the lines from which an inlined one was called."""
    return all((call.file, call.line) != (where.file, where.line) for call in used.inlined)


class Lines:
    """The places of a tile's code; a header that several cores use is a library."""

    def __init__(self, tile: Tile, code: Code) -> None:
        self.tile, self._code = tile, code
        self._known: dict[tuple[int, int], Where] = {}

    @cached_property
    def _library(self) -> frozenset[str]:
        users: dict[str, set[int]] = {}
        for core, words in self._code.words.items():
            for pc in words:
                where = where_core(self.tile, core, pc)
                for file in (where.file, *(call.file for call in where.inlined)):
                    if file is not None and file.endswith(_HEADERS):
                        users.setdefault(file, set()).add(core)
        return frozenset(file for file, cores in users.items() if len(cores) > 1)

    def in_all_cores(self, edit: Edit) -> Edit | None:
        """The same change in each core whose code has that line of a header; None: in one only.

        Of several instructions, as those of a loop, where all of them are as far apart there.
        """
        places = self._copies(edit.core, edit.at)
        if len(edit.code) > 1:
            places = [at for at in places if self._is_alike(edit, at - edit.at)]
        if not places or min(places) < edit.at:
            return None
        moved = ((pc + at - edit.at, instead) for at in places for pc, instead in edit.code)
        return replace(edit, code=(*edit.code, *moved), cost=edit.cost + _SHARED, common=True)

    def _is_alike(self, edit: Edit, far: int) -> bool:
        """Whether all instructions of an edit stand `far` further on as well, in one core."""
        held = self._code.words[edit.core]
        return any(
            all(pc in held and words.get(pc + far) == held[pc] for pc, _ in edit.code)
            for core, words in self._code.words.items()
            if core != edit.core
        )

    def _copies(self, core: int, pc: int) -> list[int]:
        """Where other cores have the same instruction of the same line of a header."""
        mine = where_core(self.tile, core, pc)
        if mine.file not in self._library:
            return []
        word = self._code.words[core][pc]
        return [
            at
            for other, words in self._code.words.items()
            for at, held in words.items()
            if other != core and held == word
            for one in [where_core(self.tile, other, at)]
            if (one.file, one.line) == (mine.file, mine.line)
        ]

    def where(self, core: int, pc: int) -> Where:
        """The place of an instruction, the line of the program's own code first."""
        key = core, pc
        if key not in self._known:
            self._known[key] = self._outward(self.inner(core, pc))
        return self._known[key]

    def inner(self, core: int, pc: int) -> Where:
        """The place of an instruction, in a header too."""
        where = where_core(self.tile, core, pc, **instruction(self.tile, pc))
        if where.line == 0:
            return self._near(where, core, pc)
        return self._chosen(self._accessed(where, core, pc), core, pc)

    def _near(self, where: Where, core: int, pc: int) -> Where:
        """The place of what the compiler names no line for: of who uses its result, or nearby."""
        user = self._user(core, pc)
        if user is not None:
            return _at(where, where_core(self.tile, core, user))
        if (place := self._used_for(where, core, pc)) is not None:
            return place
        near, before = where, pc
        while near.line == 0 and before - 4 in self._code.words.get(core, {}):
            before -= 4
            near = where_core(self.tile, core, before)
        behind = pc
        while near.line == 0 and behind + 4 in self._code.words.get(core, {}):
            behind += 4
            near = where_core(self.tile, core, behind)
        file, line, function = near.file, near.line, near.function
        if near.inlined:
            function, file, line = near.inlined[-1]
        return replace(where, file=file, line=line, function=function, inlined=())

    def _user(self, core: int, pc: int) -> int | None:
        """The next instruction with a line that uses the result of one."""
        found = (
            other for other in self._users(core, pc) if where_core(self.tile, core, other).line
        )
        return next(found, None)

    def _used_for(self, where: Where, core: int, pc: int) -> Where | None:
        """The one line of its function for which a result is computed, as in front of a loop."""
        words = self._code.words.get(core, {})
        if pc not in words:
            return None
        found = set()
        for at in computed_for(words, pc, lambda at: where_core(self.tile, core, at).line):
            used, outer = where_core(self.tile, core, at), len(where.inlined)
            calls = [(used.function, used.file, used.line)]
            calls += [(call.function, call.file, call.line) for call in used.inlined]
            inside = used.inlined[len(used.inlined) - outer :] == where.inlined
            found.add(calls[-1 - outer] if inside and len(calls) > outer else None)
        if len(found) != 1 or None in found:
            return None
        ((function, file, line),) = (one for one in found if one is not None)
        return replace(where, function=function, file=file, line=line)

    def _users(self, core: int, pc: int) -> Iterator[int]:
        """Instructions behind one that use its result, and what the last of them makes of it."""
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        for other in range(pc + 4, pc + 4 * _AHEAD, 4):
            cls: Any = decode(words.get(other, 0))
            if cls is None or not result or other not in words:
                return
            reads = [getattr(cls, name, None) for name in ("rs1", "rs2")]
            writes = not issubclass(cls, Store | Branch)
            if result in [field.get(words[other]) for field in reads if field is not None]:
                yield other
                result = words[other] >> 7 & 31 if writes else 0
            elif writes and words[other] >> 7 & 31 == result:
                return

    def _accessed(self, where: Where, core: int, pc: int) -> Where:
        """The place of the load or store whose address an instruction of a caller computes."""
        word = self._code.words.get(core, {}).get(pc, 0)
        cls: Any = decode(word)
        if cls is None or issubclass(cls, Load | Store | Branch | Jump | IndirectJump | Pushed):
            return where
        if (inside := self._used_inside(where, core, pc)) is not None:
            return inside
        for other in self._users(core, pc):
            kind: Any = decode(self._code.words[core][other])
            used = where_core(self.tile, core, other)
            if issubclass(kind, Load | Store) and used.inlined[-1:] != where.inlined[-1:]:
                if len(used.inlined) > len(where.inlined):
                    return _at(where, used)
        return where

    def store_of(self, core: int, pc: int) -> int | None:
        """The store that gives away what an instruction close before it computes."""
        words = self._code.words.get(core, {})
        for other in self._users(core, pc):
            cls: Any = decode(words[other])
            if issubclass(cls, Store):
                return other
        return None

    def _used_inside(self, where: Where, core: int, pc: int) -> Where | None:
        """The line of an inlined call for whose loop a value is computed in front of it.

        The compiler does so with what a loop does not change; the value is used by that line alone.
        """
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        if where.symbol is None:
            return None
        _, low, high = self.tile.core[CORE_NAMES[core]].function(pc)
        found: set[tuple[Any, ...]] = set()
        used = where
        for other in range(low, high, 4):
            cls: Any = decode(words[other]) if other in words else None
            if cls is None or other == pc:
                continue
            names = [name for name in ("rs1", "rs2") if name in (cls.text or "")]
            reads = [getattr(cls, name).get(words[other]) for name in names]
            writes = not issubclass(cls, Store | Branch) and words[other] >> 7 & 31 == result
            if writes and not (issubclass(cls, Load) and cls.rs1.get(words[other]) == SP):
                return None
            if result in reads and not (issubclass(cls, Store) and reads[0] == SP):
                used = where_core(self.tile, core, other)
                found.add((used.file, used.line, used.inlined))
        if len(found) != 1 or not used.line or len(used.inlined) <= len(where.inlined):
            return None
        return _at(where, used) if other_lines(where, used) else None

    def _chosen(self, where: Where, core: int, pc: int) -> Where:
        """Of one of two values between which a branch chooses, the place of the branch."""
        words = self._code.words.get(core, {})
        result = words.get(pc, 0) >> 7 & 31
        for other in range(pc + 4, pc + 4 * _CLOSE, 4):
            cls: Any = decode(words.get(other, 0))
            if cls is None or not issubclass(cls, Branch):
                continue
            used = where_core(self.tile, core, other)
            same = words.get(other + 4, 0) >> 7 & 31 == result and result != 0
            if same and cls.offset.get(words[other]) == _OVER_ONE and used.line:
                return _at(where, used) if len(used.inlined) > len(where.inlined) else where
        return where

    def _outward(self, where: Where) -> Where:
        inner = where
        while inner.file in self._library and inner.inlined:
            call = inner.inlined[0]
            inner = replace(
                inner,
                function=call.function,
                file=call.file,
                line=call.line,
                inlined=inner.inlined[1:],
            )
        return where if inner.file in self._library else inner
