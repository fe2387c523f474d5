"""An edit of a program's code: instructions replaced, left out or added before it runs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import SP, addi, jal, li, lw, sw
from bhemu.riscv.formats import Branch, IndirectJump, Jump, Store, Upper
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import AUIPC, XOR
from bhemu.riscv.isa.ttinsn import TTINSN

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
