"""Runs single instructions on a bare state record, and pushed words on a tile."""

from collections.abc import Callable
from functools import cache
from string import Formatter
from typing import Any

from bhemu.jit.subset import JIT, njit
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PUSH
from bhemu.tensix import rules
from bhemu.tensix.compiled import Table
from bhemu.tensix.insn import LANE_MARKS, REGISTRY, assemble
from bhemu.tensix.rules import counted
from bhemu.tensix.state import DTYPE, State

WORD = 0xFFFFFFFF
ERROR, WARN, SILICON = 0, 1, 2
_TABLES: list[Table] = []  # whose callbacks are called


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return njit(cache=True)(function)


def view(s: State) -> Any:
    """The record as compiled code takes it."""
    return s.buffer.view(DTYPE)[0] if JIT else s


def run(s: State, mnemonic: str, t: int = 0, **fields: int) -> int:
    """Status of one instruction, its fields taken through its encoding."""
    cls = next(c for c in REGISTRY.values() if c.name == mnemonic)
    assert cls.execute is not None
    word = cls.decoded(cls.assemble(**fields))
    if s.doubt[2] and cls.doubts is not None:
        if JIT and not s.second[LANE_MARKS]:
            _TABLES.append(Table(s, lambda name, seconds: None))
        if found := int(compiled(cls.doubts)(view(s), t, word)):
            return found
    return int(compiled(cls.execute)(view(s), t, word))


def sentence(s: State, rule: int) -> str:
    """The sentence of a rule with the numbers the instruction left."""
    return rules.RULES[rule].sentence(s.detail)


def numbers(s: State, rule: int | str) -> list[int]:
    """The numbers that the sentence of a rule shows, in its order."""
    found = next(r for r in rules.RULES.values() if rule in (r.number, r.rule))
    names = [name for _, name, _, _ in Formatter().parse(found.text) if name]
    return [found.details(s.detail)[name] for name in names]


def count(s: State, rule: int) -> int:
    """How often a tolerated rule was counted."""
    return int(counted(s).get(rule, 0))


def push(tile: Tile, t: int, mnemonic: str, **fields: int) -> None:
    """brisc pushes one word to thread `t`; nothing runs yet but what brisc's access lets run."""
    tile.core["brisc"].write32(PUSH + 0x10000 * t, assemble(mnemonic, **fields))
