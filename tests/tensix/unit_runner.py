"""Runs single instructions on a bare state record, and pushed words on a tile."""

import weakref
from ctypes import CFUNCTYPE, c_int64, c_uint32, c_void_p
from functools import cache
from string import Formatter
from typing import Any

from bhemu.jit.build import load
from bhemu.jit.intrinsics import callback
from bhemu.jit.subset import JIT
from bhemu.machine import sentences
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PUSH
from bhemu.tensix import compiled
from bhemu.tensix.insn import ENTRIES, Instruction, assemble, instructions
from bhemu.tensix.rules import counted
from bhemu.tensix.state import DTYPE, State

WORD = 0xFFFFFFFF
ERROR, WARN, SILICON = 0, 1, 2
_ENTRY = CFUNCTYPE(c_int64, c_void_p, c_int64, c_uint32)


def view(s: State) -> Any:
    """The record as compiled code takes it."""
    return s.buffer.view(DTYPE)[0] if JIT else s


class _Second:
    """Loads second entries of instructions when they are needed, for records without a tile."""

    def _on_second(self, slot: int, base: int, t: int, word: int) -> int:
        return int(_ENTRY(load(compiled.second_entry(slot)).address)(base, t, word))


_SECOND = _Second()


@cache
def _escapes() -> tuple[list[int], list[int]]:
    slots = list(ENTRIES)
    return slots, [callback(_ENTRY, "words", "_on_second", slot) for slot in slots]


@cache
def _entry(mnemonic: str) -> tuple[Any, type[Instruction]]:
    """The compiled entry of an instruction, as tiles call it, and its class."""
    cls = next(c for c in instructions().values() if c.name == mnemonic)
    return _ENTRY(load(compiled.entry(cls.opcode)).address) if JIT else None, cls


def execute(s: State, mnemonic: str, t: int, word: int) -> int:
    """Status of one instruction word, by what tiles call; the record's pointers stay the same."""
    if not JIT:
        return compiled.interpret(s, t, word)
    entry, _ = _entry(mnemonic)
    if s.words is not None and s.words() is not _SECOND:
        return int(entry(s.base, t, word))
    s.words = weakref.ref(_SECOND)
    slots, escapes = _escapes()
    s.second[slots] = escapes
    status = int(entry(s.base, t, word))
    s.second[slots] = 0
    return status


def run(s: State, mnemonic: str, t: int = 0, **fields: int) -> int:
    """Status of one instruction, its fields taken through its encoding."""
    return execute(s, mnemonic, t, _entry(mnemonic)[1].assemble(**fields))


def sentence(s: State, rule: int) -> str:
    """The sentence of a rule with the numbers the instruction left."""
    return sentences.RULES[rule].sentence(s.detail)


def numbers(s: State, rule: int | str) -> list[int]:
    """The numbers that the sentence of a rule shows, in its order."""
    found = next(r for r in sentences.RULES.values() if rule in (r.number, r.rule))
    names = [name for _, name, _, _ in Formatter().parse(found.text) if name]
    return [found.details(s.detail)[name] for name in names]


def count(s: State, rule: int) -> int:
    """How often a tolerated rule was counted."""
    return int(counted(s).get(rule, 0))


def push(tile: Tile, t: int, mnemonic: str, **fields: int) -> None:
    """brisc pushes one word to thread `t`; nothing runs yet but what brisc's access lets run."""
    tile.core["brisc"].write32(PUSH + 0x10000 * t, assemble(mnemonic, **fields))
