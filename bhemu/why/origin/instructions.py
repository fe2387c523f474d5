"""What a RISC-V store put into memory: the core's own instructions behind it, back to its loads."""

from dataclasses import dataclass

from bhemu.machine.core import Core
from bhemu.machine.history import History
from bhemu.machine.stop import now
from bhemu.riscv.formats import Atomic, Branch, Csr, Load, Store
from bhemu.riscv.isa import decode

WINDOW = 256  # instructions of the core that are looked at


@dataclass(frozen=True)
class Executed:
    """One instruction: its pc and word, the clock before it, and x0-x31 before it."""

    pc: int
    word: int
    clock: int
    regs: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """Where a value comes from: a load (its address and width), a constant, or not followed."""

    kind: str  # "load", "constant", "csr", "earlier"
    at: Executed | None
    address: int = 0
    size: int = 0


def window(history: History, core: Core) -> list[Executed]:
    """The last instructions that `core` has executed, the next one last; moves the tile back."""
    s = history.tile.state
    c, target = core.index, int(s.retired[core.index])
    history.before(core, max(target - WINDOW, 0))
    executed: list[Executed] = []
    with history.unobserved():
        while int(s.retired[c]) <= target:
            pc = core.pc
            word = int.from_bytes(s.l1[pc : pc + 4].tobytes(), "little") if pc < s.l1.size else 0
            executed.append(Executed(pc, word, now(s), tuple(int(n) for n in core.regs)))
            if int(s.retired[c]) == target:
                break
            history.forward(core, 1)
    return executed


def sources(executed: list[Executed]) -> tuple[tuple[Source, ...], Executed]:
    """Where the value that the last instruction stores comes from."""
    last = executed[-1]
    cls = decode(last.word)
    if cls is None or not issubclass(cls, Store | Atomic):
        return (), last
    found: dict[Source, None] = {}
    _follow(executed, len(executed) - 1, cls.rs2.get(last.word), found, set())
    return tuple(found), last


def sources_of(executed: list[Executed], register: int) -> tuple[Source, ...]:
    """Where the value comes from that a register holds before the last instruction."""
    found: dict[Source, None] = {}
    _follow(executed, len(executed) - 1, register, found, set())
    return tuple(found)


def _follow(
    executed: list[Executed], before: int, register: int, found: dict[Source, None], seen: set[int]
) -> None:
    """Add the sources of the value that `register` holds before instruction number `before`."""
    if register == 0:
        return
    for i in range(before - 1, -1, -1):
        one = executed[i]
        cls = decode(one.word)
        if cls is None or issubclass(cls, Store | Branch) or cls.rd.get(one.word) != register:
            continue
        if i in seen:
            return
        seen.add(i)
        if issubclass(cls, Load | Atomic):
            offset = cls.imm.get(one.word) if issubclass(cls, Load) else 0
            address = (one.regs[cls.rs1.get(one.word)] + offset) & 0xFFFFFFFF
            found[Source("load", one, address, _size(one.word))] = None
        elif issubclass(cls, Csr):
            found[Source("csr", one)] = None
        elif not cls.operands:
            found[Source("constant", one)] = None
        else:
            names = {"a": "rs1", "b": "rs2"}
            inputs = [
                getattr(cls, names[operand]).get(one.word) for operand in sorted(cls.operands)
            ]
            if not any(inputs):
                found[Source("constant", one)] = None
            for number in inputs:
                _follow(executed, i, number, found, seen)
        return
    found[Source("earlier", None)] = None


def _size(word: int) -> int:
    return 1 << (word >> 12 & 3)
