"""Which instructions use what another one computes, along every path of the code."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bhemu.riscv.formats import Branch, IndirectJump, Jump, Store
from bhemu.riscv.isa import decode

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
